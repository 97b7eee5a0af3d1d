//! Every hash and HMAC, at once and in pieces; copies.

use crate::port::{at, out};
use crate::vectors::{CIPHERS, HASHES, HashVector};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::linux::*;

const TEXT: usize = 64;

pub(crate) fn add(list: &mut Vec<Check>) {
    for vector in HASHES {
        let mut check = |what: &str, run: fn(&Handle<'_>, u32, &HashVector) -> Outcome| {
            list.push(Check::new(format!("hash/{}/{what}", vector.name), move |port| {
                let device = Handle::open(port)?;
                let ses = device.hash(vector.mac, &bytes(vector.key_len, 3))?;
                run(&device, ses, vector)
            }));
        };
        check("at-once", |device, ses, vector| digest(device, ses, 0, &bytes(TEXT, 1), vector.of_text));
        check("at-once-copied", |device, ses, vector| digest(device, ses, COP_FLAG_NO_ZC, &bytes(TEXT, 1), vector.of_text));
        check("nothing", |device, ses, vector| digest(device, ses, 0, &[], vector.of_nothing));
        check("twice", |device, ses, vector| {
            digest(device, ses, 0, &bytes(TEXT, 1), vector.of_text)?;
            digest(device, ses, 0, &bytes(TEXT, 1), vector.of_text)
        });
        check("pieces", |device, ses, vector| {
            updates(device, ses)?;
            digest(device, ses, COP_FLAG_FINAL, &[], vector.of_text)
        });
        check("pieces-that-end-with-none", |device, ses, vector| {
            updates(device, ses)?;
            digest(device, ses, COP_FLAG_UPDATE, &[], vector.of_text)
        });
        check("reset", |device, ses, vector| {
            updates(device, ses)?;
            updates(device, ses)?;
            digest(device, ses, COP_FLAG_FINAL, &[], vector.of_text)
        });
        check("update-and-final-at-once", |device, ses, vector| {
            let flags = COP_FLAG_UPDATE | COP_FLAG_FINAL | COP_FLAG_RESET;
            digest(device, ses, flags, &bytes(TEXT, 1), vector.of_text)
        });
        check("copy", |device, ses, vector| {
            let other = device.hash(vector.mac, &bytes(vector.key_len, 3))?;
            let text = bytes(TEXT, 1);
            update(device, ses, COP_FLAG_UPDATE | COP_FLAG_RESET, &text[..30])?;
            device.ask(CIOCCPHASH, &mut CphashOp { dst_ses: other, src_ses: ses })?;
            digest(device, other, COP_FLAG_FINAL, &text[30..], vector.of_text)?;
            digest(device, ses, COP_FLAG_FINAL, &text[30..], vector.of_text)?;
            digest(device, other, 0, &text, vector.of_text)
        });
        check("nowhere-to-write", |device, ses, _| refused(libc::EFAULT, device.crypt(CryptOp { ses, ..CryptOp::default() })));
        check("long", |device, ses, _| {
            let (text, mut whole, mut parts) = (bytes(100_000, 1), [0; 64], [0; 64]);
            let op = CryptOp { ses, len: text.len() as u32, src: at(&text), ..CryptOp::default() };
            device.crypt(CryptOp { mac: out(&mut whole), ..op })?;
            for (index, part) in text.chunks(9_999).enumerate() {
                update(device, ses, if index == 0 { COP_FLAG_UPDATE | COP_FLAG_RESET } else { COP_FLAG_UPDATE }, part)?;
            }
            device.crypt(CryptOp { ses, flags: COP_FLAG_FINAL, mac: out(&mut parts), ..CryptOp::default() })?;
            same_bytes(&whole, &parts)
        });
    }
    for vector in HASHES.iter().filter(|vector| vector.key_len > 0) {
        list.push(Check::new(format!("hash/{}/key-of-512", vector.name), move |port| {
            Handle::open(port)?.hash(vector.mac, &[3; CRYPTO_HMAC_MAX_KEY_LEN])?;
            Ok(())
        }));
        list.push(Check::new(format!("hash/{}/key-of-513", vector.name), move |port| {
            refused(libc::EINVAL, Handle::open(port)?.hash(vector.mac, &[3; CRYPTO_HMAC_MAX_KEY_LEN + 1]))
        }));
    }
    for (cipher, hash) in [(0, 1), (3, 3), (6, 5), (12, 7)] {
        let (cipher, hash) = (&CIPHERS[cipher], &HASHES[hash]);
        list.push(Check::new(format!("both/{}+{}", cipher.name, hash.name), move |port| both(&Handle::open(port)?, cipher, hash)));
    }
}

fn digest(device: &Handle<'_>, ses: u32, flags: u16, text: &[u8], expected: &str) -> Outcome {
    let mut mac = [0xee; 80];
    device.crypt(CryptOp { ses, flags, len: text.len() as u32, src: at(text), mac: out(&mut mac), ..CryptOp::default() })?;
    let expected = unhex(expected);
    same_bytes(&expected, &mac[..expected.len()])?;
    same(true, mac[expected.len()..].iter().all(|byte| *byte == 0xee))
}

fn update(device: &Handle<'_>, ses: u32, flags: u16, text: &[u8]) -> Outcome {
    device.crypt(CryptOp { ses, flags, len: text.len() as u32, src: at(text), ..CryptOp::default() })?;
    Ok(())
}

/// The text in three pieces.
fn updates(device: &Handle<'_>, ses: u32) -> Outcome {
    let text = bytes(TEXT, 1);
    update(device, ses, COP_FLAG_UPDATE | COP_FLAG_RESET, &text[..1])?;
    update(device, ses, COP_FLAG_UPDATE, &text[1..40])?;
    update(device, ses, COP_FLAG_UPDATE, &text[40..])
}

/// A cipher and a hash in one session: the hash is of the plaintext, both ways.
fn both(device: &Handle<'_>, cipher: &crate::vectors::CipherVector, hash: &HashVector) -> Outcome {
    let ses = device.session(cipher.cipher, &bytes(cipher.key_len, 3), hash.mac, &bytes(hash.key_len, 3))?;
    let (iv, plain, mac_len) = (bytes(16, 5), bytes(TEXT, 1), unhex(hash.of_text).len());
    let (mut secret, mut back, mut mac) = (vec![0; TEXT], vec![0; TEXT], [0; 64]);
    let op = CryptOp { ses, len: TEXT as u32, iv: at(&iv), ..CryptOp::default() };
    device.crypt(CryptOp { src: at(&plain), dst: out(&mut secret), mac: out(&mut mac), ..op })?;
    same_bytes(&unhex(cipher.enciphered), &secret)?;
    same_bytes(&unhex(hash.of_text), &mac[..mac_len])?;
    let mut mac = [0; 64];
    device.crypt(CryptOp { op: COP_DECRYPT, src: at(&secret), dst: out(&mut back), mac: out(&mut mac), ..op })?;
    same_bytes(&plain, &back)?;
    same_bytes(&unhex(hash.of_text), &mac[..mac_len])
}
