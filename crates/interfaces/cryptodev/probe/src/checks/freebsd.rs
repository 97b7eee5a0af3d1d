//! FreeBSD's dialect.

use crate::port::{at, out};
use crate::vectors::{AEADS, CIPHERS, HASHES};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::freebsd::*;

const TEXT: usize = 64;

pub(crate) fn add(list: &mut Vec<Check>) {
    let mut check = |name: &str, run: fn(&Handle<'_>) -> Outcome| {
        list.push(Check::new(format!("freebsd/{name}"), move |port| run(&Handle::open(port)?)))
    };
    check("cipher", |device| {
        let ses = open(device, CRYPTO_AES_CBC, 16, 0, 0)?.ses;
        let (iv, text, mut result) = (bytes(16, 5), bytes(TEXT, 1), vec![0; TEXT]);
        let op = CryptOp { ses, op: COP_ENCRYPT, len: TEXT as u32, iv: at(&iv), ..CryptOp::default() };
        device.ask(CIOCCRYPT, &mut CryptOp { src: at(&text), dst: out(&mut result), ..op })?;
        same_bytes(&unhex(CIPHERS[0].enciphered), &result)?;
        let place = out(&mut result);
        device.ask(CIOCCRYPT, &mut CryptOp { op: COP_DECRYPT, src: place, dst: place, ..op })?;
        same_bytes(&text, &result)
    });
    check("counter", |device| {
        let ses = open(device, CRYPTO_AES_ICM, 16, 0, 0)?.ses;
        let (iv, text, mut result) = (bytes(16, 5), bytes(TEXT, 1), vec![0; TEXT]);
        let (src, dst) = (at(&text), out(&mut result));
        device.ask(CIOCCRYPT, &mut CryptOp { ses, op: COP_ENCRYPT, len: TEXT as u32, src, dst, iv: at(&iv), ..CryptOp::default() })?;
        let ctr = CIPHERS.iter().find(|vector| vector.name == "aes-ctr-128").map_or("", |vector| vector.enciphered);
        same_bytes(&unhex(ctr), &result)
    });
    check("hash", |device| {
        let ses = open(device, 0, 0, CRYPTO_SHA2_256, 0)?.ses;
        let (text, mut mac) = (bytes(TEXT, 1), [0; 32]);
        device.ask(CIOCCRYPT, &mut CryptOp { ses, len: TEXT as u32, src: at(&text), mac: out(&mut mac), ..CryptOp::default() })?;
        let sha256 = HASHES.iter().find(|vector| vector.name == "sha256").map_or("", |vector| vector.of_text);
        same_bytes(&unhex(sha256), &mac)
    });
    check("cipher-then-mac", |device| {
        let ses = open(device, CRYPTO_AES_CBC, 16, CRYPTO_SHA1_HMAC, 20)?.ses;
        let (iv, text, mut result, mut mac) = (bytes(16, 5), bytes(TEXT, 1), vec![0; TEXT], [0; 20]);
        let mac_at = out(&mut mac);
        let op = CryptOp { ses, flags: COP_F_CIPHER_FIRST, len: TEXT as u32, iv: at(&iv), mac: mac_at, ..CryptOp::default() };
        device.ask(CIOCCRYPT, &mut CryptOp { op: COP_ENCRYPT, src: at(&text), dst: out(&mut result), ..op })?;
        let (place, decrypt) = (out(&mut result), COP_DECRYPT);
        device.ask(CIOCCRYPT, &mut CryptOp { op: decrypt, src: place, dst: place, ..op })?;
        same_bytes(&text, &result)?;
        core::hint::black_box(&mut mac)[0] ^= 1;
        refused(libc::EBADMSG, device.ask(CIOCCRYPT, &mut CryptOp { op: decrypt, src: place, dst: place, ..op }))
    });
    check("gcm", |device| aead(device, CRYPTO_AES_NIST_GCM_16, "aes-gcm-128"));
    check("ccm", |device| aead(device, CRYPTO_AES_CCM_16, "aes-ccm-128-tag-16"));
    check("chacha20-poly1305", |device| {
        let ses = open(device, CRYPTO_CHACHA20_POLY1305, 32, 0, 0)?.ses;
        let (iv, text, mut tag) = (bytes(12, 5), bytes(TEXT, 1), [0; 16]);
        let mut data = text.clone();
        let place = out(&mut data);
        let op =
            CryptAead { ses, len: TEXT as u32, ivlen: 12, src: place, dst: place, tag: out(&mut tag), iv: at(&iv), ..CryptAead::default() };
        device.ask(CIOCCRYPTAEAD, &mut CryptAead { op: COP_ENCRYPT, ..op })?;
        same(true, data != text)?;
        device.ask(CIOCCRYPTAEAD, &mut CryptAead { op: COP_DECRYPT, ..op })?;
        same_bytes(&text, &data)
    });
    check("finds-its-driver", |device| {
        let crid = open(device, CRYPTO_AES_CBC, 16, 0, 0)?.crid as i32;
        let mut found = CryptFindOp { crid, ..CryptFindOp::default() };
        device.ask(CIOCFINDDEV, &mut found)?;
        let mut again = CryptFindOp { crid: -1, ..found };
        device.ask(CIOCFINDDEV, &mut again)?;
        same(crid, again.crid)?;
        refused(libc::ENOENT, device.ask(CIOCFINDDEV, &mut CryptFindOp { crid: 77, ..found }))
    });
    check("unknown-session-does-not-close", |device| refused(libc::EINVAL, device.ask(CIOCFSESSION, &mut 77u32)));
    check("no-iv", |device| {
        let (ses, mut data) = (open(device, CRYPTO_AES_CBC, 16, 0, 0)?.ses, [0; 16]);
        let place = out(&mut data);
        refused(
            libc::EINVAL,
            device.ask(CIOCCRYPT, &mut CryptOp { ses, op: COP_ENCRYPT, len: 16, src: place, dst: place, ..CryptOp::default() }),
        )
    });
    check("too-long", |device| {
        let (ses, mut data) = (open(device, CRYPTO_AES_CBC, 16, 0, 0)?.ses, [0; 16]);
        let place = out(&mut data);
        let op = CryptOp { ses, op: COP_ENCRYPT, len: 262_144, src: place, dst: place, ..CryptOp::default() };
        refused(libc::E2BIG, device.ask(CIOCCRYPT, &mut { op }))
    });
    check("features-are-written", |device| {
        let mut features = u32::MAX;
        device.ask(CIOCASYMFEAT, &mut features)?;
        same(0, features & !0x1f)
    });
}

fn open(device: &Handle<'_>, cipher: u32, keylen: usize, mac: u32, mackeylen: usize) -> Result<Session2Op, i32> {
    let (key, mackey) = (bytes(keylen, 3), bytes(mackeylen, 3));
    let (keylen, mackeylen) = (keylen as u32, mackeylen as i32);
    let mut op = Session2Op { cipher, mac, keylen, key: at(&key), mackeylen, mackey: at(&mackey), ..Session2Op::default() };
    op.crid = CRYPTO_FLAG_HARDWARE | CRYPTO_FLAG_SOFTWARE;
    device.ask(CIOCGSESSION2, &mut op)?;
    Ok(op)
}

fn aead(device: &Handle<'_>, cipher: u32, name: &str) -> Outcome {
    let sealed = AEADS.iter().find(|vector| vector.name == name).map_or("", |vector| vector.sealed);
    let (expected, ses) = (unhex(sealed), open(device, cipher, 16, 0, 0)?.ses);
    let (iv, aad, text, mut tag) = (bytes(12, 5), bytes(20, 9), bytes(TEXT, 1), [0; 16]);
    let mut data = text.clone();
    let place = out(&mut data);
    let (tag_at, aad_at) = (out(&mut tag), at(&aad));
    let op = CryptAead { ses, len: TEXT as u32, aadlen: 20, ivlen: 12, src: place, dst: place, aad: aad_at, ..CryptAead::default() };
    let op = CryptAead { tag: tag_at, iv: at(&iv), ..op };
    device.ask(CIOCCRYPTAEAD, &mut CryptAead { op: COP_ENCRYPT, ..op })?;
    same_bytes(&expected[..TEXT], &data)?;
    same_bytes(&expected[TEXT..], &tag)?;
    device.ask(CIOCCRYPTAEAD, &mut CryptAead { op: COP_DECRYPT, ..op })?;
    same_bytes(&text, &data)?;
    core::hint::black_box(&mut tag)[0] ^= 1;
    refused(libc::EBADMSG, device.ask(CIOCCRYPTAEAD, &mut CryptAead { op: COP_DECRYPT, ..op }))
}
