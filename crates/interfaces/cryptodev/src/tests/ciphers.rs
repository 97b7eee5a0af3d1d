//! Ciphers through `CIOCCRYPT`.

use crate::testing::{Ranges, device, hex};
use crate::{Answer, Device, Errno};
use bywash_client::{Client, Config, Counts};
use bywash_cryptodev_abi::linux::*;

/// SP 800-38A appendix F: key, the first plaintext block twice over, IV.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const TEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51";
const IV: &str = "000102030405060708090a0b0c0d0e0f";
/// F.2.1.
const CBC: &str = "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2";

pub(crate) fn open(device: &Device, memory: &Ranges, cipher: u32, key: &[u8]) -> Result<u32, Errno> {
    let key_at = memory.put(key);
    let argument = memory.put_struct(&SessionOp { cipher, keylen: key.len() as u32, key: key_at, ..SessionOp::default() });
    device.request(CIOCGSESSION, argument, memory)?;
    Ok(memory.get_struct::<SessionOp>(argument).ses)
}

fn crypt(device: &Device, memory: &Ranges, op: CryptOp) -> Result<CryptOp, Errno> {
    let argument = memory.put_struct(&op);
    assert_eq!(device.request(CIOCCRYPT, argument, memory)?, Answer::Value(0));
    Ok(memory.get_struct(argument))
}

#[test]
fn cbc_both_ways_at_once_and_in_pieces() {
    let (device, memory) = (device(), Ranges::default());
    let ses = open(&device, &memory, CRYPTO_AES_CBC, &hex(KEY)).unwrap();
    let (src, dst, iv) = (memory.put(&hex(TEXT)), memory.put(&[0; 32]), memory.put(&hex(IV)));
    crypt(&device, &memory, CryptOp { ses, len: 32, src, dst, iv, ..CryptOp::default() }).unwrap();
    assert_eq!(memory.get(dst, 32), hex(CBC));
    let again = memory.put(&[0; 32]);
    crypt(&device, &memory, CryptOp { ses, len: 16, src, dst: again, iv, ..CryptOp::default() }).unwrap();
    crypt(&device, &memory, CryptOp { ses, len: 16, src: src + 16, dst: again + 16, ..CryptOp::default() }).unwrap();
    assert_eq!(memory.get(again, 32), hex(CBC));
    // Back, in place, and the IV that would go on.
    crypt(&device, &memory, CryptOp { ses, op: COP_DECRYPT, flags: COP_FLAG_WRITE_IV, len: 32, src: dst, dst, iv, ..CryptOp::default() })
        .unwrap();
    assert_eq!(memory.get(dst, 32), hex(TEXT));
    assert_eq!(memory.get(iv, 16), hex(CBC)[16..]);
}

/// F.3.13 and F.4.1: the second block of each goes on from the first.
#[test]
fn feedback_modes_go_on_both_ways() {
    const CFB: &str = "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b";
    const OFB: &str = "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed825";
    let (device, memory) = (device(), Ranges::default());
    for (cipher, enciphered) in [(CRYPTO_AES_CFB, CFB), (CRYPTO_AES_OFB, OFB)] {
        let ses = open(&device, &memory, cipher, &hex(KEY)).unwrap();
        let iv = memory.put(&hex(IV));
        for (op, from, to) in [(COP_ENCRYPT, TEXT, enciphered), (COP_DECRYPT, enciphered, TEXT)] {
            let (src, dst) = (memory.put(&hex(from)), memory.put(&[0; 32]));
            crypt(&device, &memory, CryptOp { ses, op, len: 16, src, dst, iv, ..CryptOp::default() }).unwrap();
            crypt(&device, &memory, CryptOp { ses, op, len: 15, src: src + 16, dst: dst + 16, ..CryptOp::default() }).unwrap();
            assert_eq!(memory.get(dst, 31), hex(to)[..31], "cipher {cipher}, op {op}");
        }
    }
}

#[test]
fn blowfish_takes_keys_of_many_lengths() {
    let (device, memory) = (device(), Ranges::default());
    for length in 0..=70 {
        let opened = open(&device, &memory, CRYPTO_BLF_CBC, &vec![5; length]);
        assert_eq!(opened.is_ok(), (4..=56).contains(&length), "{length} bytes");
    }
}

#[test]
fn long_texts_are_those_of_short_pieces() {
    let (device, memory) = (device(), Ranges::default());
    let text: Vec<u8> = (0..40_000u32).map(|index| (index * 7) as u8).collect();
    let block_modes = [(CRYPTO_AES_CBC, 32, 16), (CRYPTO_3DES_CBC, 24, 8), (CRYPTO_BLF_CBC, 16, 8), (CRYPTO_AES_ECB, 24, 16)];
    let others = [(CRYPTO_AES_CTR, 16, 16), (CRYPTO_AES_CFB, 16, 16), (CRYPTO_AES_OFB, 32, 16)];
    for (cipher, key_len, block) in block_modes.into_iter().chain(others) {
        let ses = open(&device, &memory, cipher, &text[..key_len]).unwrap();
        let (src, iv) = (memory.put(&text), memory.put(&[0xff; 16]));
        let (whole, parts) = (memory.put(&vec![0; text.len()]), memory.put(&vec![0; text.len()]));
        let len = text.len() as u32;
        crypt(&device, &memory, CryptOp { ses, len, src, dst: whole, iv, ..CryptOp::default() }).unwrap();
        for (index, at) in (0..len).step_by(block * 500).enumerate() {
            let iv = if index == 0 { iv } else { 0 };
            let (src, dst, len) = (src + u64::from(at), parts + u64::from(at), (len - at).min(block as u32 * 500));
            crypt(&device, &memory, CryptOp { ses, len, src, dst, iv, ..CryptOp::default() }).unwrap();
        }
        assert_eq!(memory.get(whole, text.len()), memory.get(parts, text.len()), "cipher {cipher}");
    }
}

#[test]
fn refusals_come_in_the_order_of_the_module() {
    let (device, memory) = (device(), Ranges::default());
    let ses = open(&device, &memory, CRYPTO_AES_CBC, &hex(KEY)).unwrap();
    let (src, dst) = (memory.put(&[0; 64]), memory.put(&[0; 64]));
    let good = CryptOp { ses, len: 32, src, dst, ..CryptOp::default() };
    let refused = |op: CryptOp| crypt(&device, &memory, op).unwrap_err();
    assert_eq!(device.request(CIOCCRYPT, 0, &memory), Err(Errno::EFAULT));
    assert_eq!(device.request(CIOCCRYPT, u64::MAX - 8, &memory), Err(Errno::EFAULT));
    assert_eq!(refused(CryptOp { ses: ses ^ 1, iv: 1, ..good }), Errno::EINVAL, "session before IV");
    assert_eq!(refused(CryptOp { op: 2, iv: 1, ..good }), Errno::EFAULT, "IV before operation");
    assert_eq!(refused(CryptOp { op: 2, len: 0, ..good }), Errno::EINVAL);
    assert_eq!(refused(CryptOp { len: 17, src: 0, ..good }), Errno::EINVAL, "length before data");
    assert_eq!(refused(CryptOp { src: 0, ..good }), Errno::EFAULT);
    assert_eq!(refused(CryptOp { dst: 0, ..good }), Errno::EFAULT);
    assert_eq!(refused(CryptOp { len: 0xffff_fff0, ..good }), Errno::EFAULT);
    assert_eq!(crypt(&device, &memory, CryptOp { len: 0, src: 0, dst: 0, flags: 0xff80, ..good }).map(|_| ()), Ok(()));
    assert_eq!(device.request(0xc030_63ff, src, &memory), Err(Errno::EINVAL));
}

#[test]
fn a_refusal_says_what_was_wrong() {
    let (device, memory) = (device(), Ranges::default());
    let ses = open(&device, &memory, CRYPTO_AES_CBC, &hex(KEY)).unwrap();
    let argument = memory.put_struct(&CryptOp { ses, len: 17, ..CryptOp::default() });
    let refusal = device.explained(CIOCCRYPT, argument, &memory).unwrap_err();
    assert_eq!(refusal.to_string(), "CIOCCRYPT: len is 17: cbc(aes) takes a multiple of 16 bytes; pad the data (EINVAL)");
}

#[test]
fn sessions_end() {
    let (device, memory) = (device(), Ranges::default());
    let ses = open(&device, &memory, CRYPTO_AES_CBC, &hex(KEY)).unwrap();
    let other = super::super::testing::device();
    assert_eq!(crypt(&other, &memory, CryptOp { ses, ..CryptOp::default() }).unwrap_err(), Errno::EINVAL);
    let number = memory.put(&ses.to_ne_bytes());
    assert_eq!(device.request(CIOCFSESSION, number, &memory), Ok(Answer::Value(0)));
    assert_eq!(device.request(CIOCFSESSION, number, &memory), Ok(Answer::Value(0)), "an unknown session is no error");
    assert_eq!(crypt(&device, &memory, CryptOp { ses, ..CryptOp::default() }).unwrap_err(), Errno::EINVAL);
    assert_eq!(device.sessions(), 0);
    let read_only = memory.put_read_only(&memory.get(memory.put_struct(&SessionOp { cipher: CRYPTO_NULL, ..SessionOp::default() }), 48));
    assert_eq!(device.request(CIOCGSESSION, read_only, &memory), Err(Errno::EFAULT));
    assert_eq!(device.sessions(), 0, "a session whose number cannot be told does not stay");
}

#[test]
fn srtp_takes_counter_mode_or_no_cipher_and_no_other_stream() {
    let (device, memory) = (device(), Ranges::default());
    let ciphers = [(CRYPTO_AES_CTR, 16), (CRYPTO_NULL, 0), (CRYPTO_AES_CFB, 16), (CRYPTO_AES_OFB, 16), (CRYPTO_AES_CBC, 16)];
    let taken = ciphers.map(|(cipher, keylen)| {
        let (key, packet, tag, iv) = (memory.put(&hex(KEY)), memory.put(&[7; 44]), memory.put(&[0; 20]), memory.put(&hex(IV)));
        let mac = CRYPTO_SHA1_HMAC;
        let argument = memory.put_struct(&SessionOp { cipher, keylen, key, mac, mackeylen: 16, mackey: key, ses: 0 });
        device.request(CIOCGSESSION, argument, &memory).unwrap();
        let (ses, flags, src) = (memory.get_struct::<SessionOp>(argument).ses, COP_FLAG_AEAD_SRTP_TYPE, packet + 12);
        let asked =
            CryptAuthOp { ses, flags, len: 32, auth_len: 44, auth_src: packet, src, dst: src, tag, tag_len: 20, iv, ..Default::default() };
        device.request(CIOCAUTHCRYPT, memory.put_struct(&asked), &memory)
    });
    let (right, wrong) = (Ok(Answer::Value(0)), Err(Errno::EINVAL));
    assert_eq!(taken, [right, right, wrong, wrong, wrong]);
}

#[test]
fn sessions_of_all_files_of_a_user_are_counted_until_they_end() {
    let (memory, counts) = (Ranges::default(), Counts::new(100, 3));
    let of = |uid| Device::of_user(Client::new(Config::default()), counts.clone(), uid);
    let (first, second, other) = (of(1), of(1), of(2));
    let null = |device: &Device| open(device, &memory, CRYPTO_NULL, &[]);
    let ses = null(&first).unwrap();
    null(&first).unwrap();
    null(&second).unwrap();
    assert_eq!((null(&first), null(&second)), (Err(Errno::ENOMEM), Err(Errno::ENOMEM)));
    null(&other).unwrap();
    let argument = memory.put_struct(&SessionOp { cipher: CRYPTO_NULL, ..SessionOp::default() });
    let refusal = first.explained(CIOCGSESSION, argument, &memory).unwrap_err().to_string();
    assert!(refusal.contains("user 1 has all") && refusal.contains("ENOMEM"), "{refusal}");
    first.request(CIOCFSESSION, memory.put(&ses.to_ne_bytes()), &memory).unwrap();
    null(&second).unwrap();
    drop(first);
    null(&second).unwrap();
    assert_eq!(null(&second), Err(Errno::ENOMEM));
}

#[test]
fn a_counter_does_not_go_on_in_a_child() {
    let (device, memory) = (device(), Ranges::default());
    let (ctr, cbc) =
        (open(&device, &memory, CRYPTO_AES_CTR, &hex(KEY)).unwrap(), open(&device, &memory, CRYPTO_AES_CBC, &hex(KEY)).unwrap());
    let (src, dst, iv) = (memory.put(&[7; 32]), memory.put(&[0; 32]), memory.put(&hex(IV)));
    let op = CryptOp { len: 32, src, dst, ..CryptOp::default() };
    for ses in [ctr, cbc] {
        crypt(&device, &memory, CryptOp { ses, iv, ..op }).unwrap();
    }
    let child = device.copy_for_child();
    crypt(&device, &memory, CryptOp { ses: ctr, ..op }).unwrap();
    assert_eq!(crypt(&child, &memory, CryptOp { ses: ctr, ..op }).unwrap_err(), Errno::EINVAL);
    crypt(&child, &memory, CryptOp { ses: ctr, iv, ..op }).unwrap();
    crypt(&child, &memory, CryptOp { ses: ctr, ..op }).unwrap();
    crypt(&device, &memory, CryptOp { ses: cbc, ..op }).unwrap();
    let parents = memory.get(dst, 32);
    crypt(&child, &memory, CryptOp { ses: cbc, ..op }).unwrap();
    assert_eq!(memory.get(dst, 32), parents, "both go on from the same chain");
}
