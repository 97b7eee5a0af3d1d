//! Lengths around blocks and pages, and lengths that nobody means.

use crate::pages::Pages;
use crate::port::{at, out};
use crate::{Check, Handle, bytes, refused, same_bytes};
use bywash_cryptodev_abi::linux::*;

pub(crate) fn add(list: &mut Vec<Check>) {
    for length in [1, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 16_385, 65_535, 65_536, 131_073] {
        list.push(Check::new(format!("lengths/ctr-{length}"), move |port| {
            let device = Handle::open(port)?;
            let (ses, iv, text) = (device.cipher(CRYPTO_AES_CTR, &bytes(16, 3))?, bytes(16, 5), bytes(length, 1));
            let (mut secret, mut back) = (vec![0; length], vec![0; length]);
            let op = CryptOp { ses, len: length as u32, iv: at(&iv), ..CryptOp::default() };
            device.crypt(CryptOp { src: at(&text), dst: out(&mut secret), ..op })?;
            device.crypt(CryptOp { op: COP_DECRYPT, src: at(&secret), dst: out(&mut back), ..op })?;
            same_bytes(&text, &back)
        }));
        list.push(Check::new(format!("lengths/gcm-{length}"), move |port| {
            let device = Handle::open(port)?;
            let (ses, iv, text) = (device.cipher(CRYPTO_AES_GCM, &bytes(16, 3))?, bytes(12, 5), bytes(length, 1));
            let (mut sealed, mut back) = (vec![0; length + 16], vec![0; length + 16]);
            let op = CryptAuthOp { ses, iv: at(&iv), ..CryptAuthOp::default() };
            let len = device.auth(CryptAuthOp { len: length as u32, src: at(&text), dst: out(&mut sealed), ..op })?.len;
            device.auth(CryptAuthOp { op: COP_DECRYPT, len, src: at(&sealed), dst: out(&mut back), ..op })?;
            same_bytes(&text, &back[..length])
        }));
    }
    for len in [0xffff_fff0, 0x8000_0000, 0x7fff_fff0, 0x1000_0000] {
        for (name, cipher) in [("cbc", CRYPTO_AES_CBC), ("ctr", CRYPTO_AES_CTR), ("ecb", CRYPTO_AES_ECB)] {
            list.push(Check::new(format!("lengths/huge-{name}-{len:#x}"), move |port| {
                let device = Handle::open(port)?;
                let (ses, pages) = (device.cipher(cipher, &bytes(16, 3))?, Pages::new(1));
                let place = pages.start();
                refused(libc::EFAULT, device.crypt(CryptOp { ses, len, src: place, dst: place, ..CryptOp::default() }))
            }));
        }
        list.push(Check::new(format!("lengths/huge-hash-{len:#x}"), move |port| {
            let device = Handle::open(port)?;
            let (ses, pages, mut mac) = (device.hash(CRYPTO_SHA1, &[])?, Pages::new(1), [0; 20]);
            refused(libc::EFAULT, device.crypt(CryptOp { ses, len, src: pages.start(), mac: out(&mut mac), ..CryptOp::default() }))
        }));
        for flags in [COP_FLAG_AEAD_TLS_TYPE, COP_FLAG_AEAD_SRTP_TYPE] {
            list.push(Check::new(format!("lengths/huge-auth-flags-{flags}-{len:#x}"), move |port| {
                let device = Handle::open(port)?;
                let ses = device.session(CRYPTO_AES_CTR, &bytes(16, 3), CRYPTO_SHA1_HMAC, &[2; 20])?;
                let (pages, iv) = (Pages::new(1), [0; 16]);
                let place = pages.start();
                let op = CryptAuthOp { ses, flags, len, src: place, dst: place, auth_src: place, iv: at(&iv), ..CryptAuthOp::default() };
                refused(libc::EINVAL, device.auth(CryptAuthOp { auth_len: if flags == COP_FLAG_AEAD_SRTP_TYPE { len } else { 0 }, ..op }))
            }));
        }
    }
    list.push(Check::new("lengths/ends-with-the-page", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        let (mut pages, iv) = (Pages::new(3), bytes(16, 5));
        pages.last(10_000).copy_from_slice(&bytes(10_000, 1));
        let place = pages.end() - 10_000;
        let op = CryptOp { ses, len: 10_000, src: place, dst: place, iv: at(&iv), ..CryptOp::default() };
        device.crypt(op)?;
        device.crypt(CryptOp { op: COP_DECRYPT, ..op })?;
        same_bytes(&bytes(10_000, 1), pages.last(10_000))
    }));
}
