//! Five calls that crash the module in the kernel. Here each is an error, and the device goes on.

use crate::port::{at, out};
use crate::{Check, Handle, Outcome, refused};
use bywash_cryptodev_abi::linux::*;

const HOW: &str = "the module crashes the kernel";

pub(crate) fn add(list: &mut Vec<Check>) {
    let mut check = |name: &str, run: fn(&Handle<'_>) -> Outcome| {
        let check = Check::new(format!("crash/{name}"), move |port| {
            let device = Handle::open(port)?;
            run(&device)?;
            device.cipher(CRYPTO_AES_CBC, &[1; 16]).map(drop).map_err(Into::into)
        });
        list.push(check.deviating(HOW));
    };
    check("src-null-with-a-length", |device| {
        let (ses, mut result) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, [0; 32]);
        refused(libc::EFAULT, device.crypt(CryptOp { ses, len: 32, dst: out(&mut result), ..CryptOp::default() }))
    });
    check("hash-src-null-with-a-length", |device| {
        let (ses, mut mac) = (device.hash(CRYPTO_SHA1, &[])?, [0; 32]);
        refused(libc::EFAULT, device.crypt(CryptOp { ses, len: 32, mac: out(&mut mac), ..CryptOp::default() }))
    });
    check("dst-null-on-a-cipher", |device| {
        let (ses, text) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, [0; 32]);
        refused(libc::EFAULT, device.crypt(CryptOp { ses, len: 32, src: at(&text), ..CryptOp::default() }))
    });
    check("hash-decrypts-with-dst-null", |device| {
        let (ses, text, mut mac) = (device.hash(CRYPTO_SHA1, &[])?, [0; 32], [0; 20]);
        let op = CryptOp { ses, op: COP_DECRYPT, len: 32, src: at(&text), mac: out(&mut mac), ..CryptOp::default() };
        refused(libc::EFAULT, device.crypt(op))
    });
    check("plain-request-on-an-aead", |device| {
        let (ses, mut data) = (device.cipher(CRYPTO_AES_GCM, &[1; 16])?, [0; 64]);
        let place = out(&mut data);
        refused(libc::EINVAL, device.crypt(CryptOp { ses, len: 32, src: place, dst: place, ..CryptOp::default() }))
    });
    check("gcm-tag-of-5", |device| {
        let (ses, mut data, iv) = (device.cipher(CRYPTO_AES_GCM, &[1; 16])?, [0; 64], [0; 12]);
        let place = out(&mut data);
        let op = CryptAuthOp { ses, len: 32, src: place, dst: place, iv: at(&iv), tag_len: 5, ..CryptAuthOp::default() };
        refused(libc::EINVAL, device.auth(op))
    });
}
