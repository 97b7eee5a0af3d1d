//! Copies for a child, and what is counted.

use crate::Device;
use crate::testing::{Ranges, hex};
use bywash_client::{Client, Config};
use bywash_core::Algorithm;
use bywash_cryptodev_abi::linux::*;

fn hash(device: &Device, memory: &Ranges) -> u32 {
    let open = memory.put_struct(&SessionOp { mac: CRYPTO_SHA1, ..SessionOp::default() });
    device.request(CIOCGSESSION, open, memory).unwrap();
    memory.get_struct::<SessionOp>(open).ses
}

fn crypt(device: &Device, memory: &Ranges, op: CryptOp) {
    let argument = memory.put_struct(&op);
    device.request(CIOCCRYPT, argument, memory).unwrap();
}

/// FIPS 180-4's example of SHA-1: "abc".
const OF_ABC: &str = "a9993e364706816aba3e25717850c26c9cd0d89d";

#[test]
fn a_message_under_way_goes_on_in_parent_and_child() {
    let (device, memory) = (crate::testing::device(), Ranges::default());
    let ses = hash(&device, &memory);
    let text = memory.put(b"abc");
    crypt(&device, &memory, CryptOp { ses, flags: COP_FLAG_UPDATE | COP_FLAG_RESET, len: 1, src: text, ..CryptOp::default() });
    let child = device.copy_for_child();
    for side in [&device, &child] {
        let mac = memory.put(&[0; 20]);
        crypt(side, &memory, CryptOp { ses, flags: COP_FLAG_FINAL, len: 2, src: text + 1, mac, ..CryptOp::default() });
        assert_eq!(memory.get(mac, 20), hex(OF_ABC));
    }
    drop(device);
    assert_eq!(child.sessions(), 1);
}

#[test]
fn work_is_counted_by_what_it_is() {
    let client = Client::new(Config::default());
    let (device, memory) = (Device::new(client.clone()), Ranges::default());
    let (ses, text, mac) = (hash(&device, &memory), memory.put(&[1; 100]), memory.put(&[0; 20]));
    crypt(&device, &memory, CryptOp { ses, len: 100, src: text, mac, ..CryptOp::default() });
    assert_eq!(client.counted(Algorithm::Sha1), (1, 100));
    let key = memory.put(&[3; 16]);
    let open = memory.put_struct(&SessionOp { cipher: CRYPTO_AES_CBC, keylen: 16, key, ..SessionOp::default() });
    device.request(CIOCGSESSION, open, &memory).unwrap();
    let ses = memory.get_struct::<SessionOp>(open).ses;
    crypt(&device, &memory, CryptOp { ses, len: 96, src: text, dst: text, ..CryptOp::default() });
    assert_eq!(client.counted(Algorithm::Aes128Cbc), (1, 96));
}
