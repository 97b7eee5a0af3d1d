//! FreeBSD's dialect.

use crate::port::{at, out};
use crate::vectors::{AEADS, CIPHERS, HASHES};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::freebsd::*;
use bywash_cryptodev_abi::linux;

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
        let op = CryptOp { ses, len: TEXT as u32, iv: at(&iv), mac: mac_at, ..CryptOp::default() };
        let (flags, dst) = (COP_F_CIPHER_FIRST, out(&mut result));
        device.ask(CIOCCRYPT, &mut CryptOp { op: COP_ENCRYPT, flags, src: at(&text), dst, ..op })?;
        let (place, decrypt) = (out(&mut result), COP_DECRYPT);
        refused(libc::EINVAL, device.ask(CIOCCRYPT, &mut CryptOp { op: decrypt, flags, src: place, dst: place, ..op }))?;
        device.ask(CIOCCRYPT, &mut CryptOp { op: decrypt, src: place, dst: place, ..op })?;
        same_bytes(&text, &result)?;
        core::hint::black_box(&mut mac)[0] ^= 1;
        refused(libc::EBADMSG, device.ask(CIOCCRYPT, &mut CryptOp { op: decrypt, src: place, dst: place, ..op }))
    });
    check("session-of-linux", |device| {
        let key = bytes(16, 3);
        let ses = device.session(linux::CRYPTO_AES_CTR, &key, linux::CRYPTO_SHA1_HMAC, &key)?;
        let (iv, mut text, mut mac) = (bytes(16, 5), bytes(TEXT, 1), [0; 20]);
        let (place, mac) = (out(&mut text), out(&mut mac));
        for (op, iv) in [(COP_ENCRYPT, 0), (COP_DECRYPT, 0), (COP_ENCRYPT, at(&iv)), (COP_DECRYPT, at(&iv))] {
            let asked = CryptOp { ses, op, len: TEXT as u32, src: place, dst: place, mac, iv, ..CryptOp::default() };
            refused(libc::EINVAL, device.ask(CIOCCRYPT, &mut { asked }))?;
        }
        same_bytes(&bytes(TEXT, 1), &text)
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
    check("iv-in-front", |device| {
        let ses = open(device, CRYPTO_AES_CBC, 16, 0, 0)?.ses;
        let (data, mut result) = ([bytes(16, 5), bytes(TEXT, 1)].concat(), vec![0xA5; 16 + TEXT]);
        let (src, dst) = (at(&data), out(&mut result));
        device.ask(CIOCCRYPT, &mut CryptOp { ses, op: COP_ENCRYPT, len: data.len() as u32, src, dst, ..CryptOp::default() })?;
        same_bytes(&[0xA5; 16], &result[..16])?;
        same_bytes(&unhex(CIPHERS[0].enciphered), &result[16..])
    });
    check("iv-in-front-of-what-has-a-mac", |device| {
        let ses = open(device, CRYPTO_AES_CBC, 16, CRYPTO_SHA1_HMAC, 20)?.ses;
        let (iv, text) = (bytes(16, 5), bytes(TEXT, 1));
        let (mut whole, mut macs) = ([iv.clone(), text.clone()].concat(), [[0; 20]; 2]);
        let place = out(&mut whole);
        let op = CryptOp { ses, op: COP_ENCRYPT, len: (16 + TEXT) as u32, src: place, dst: place, ..CryptOp::default() };
        device.ask(CIOCCRYPT, &mut CryptOp { mac: out(&mut macs[0]), ..op })?;
        // The MAC is of the text alone: the same as where the IV lies apart. Nothing is written where no place is given.
        let (src, iv_at, len) = (at(&text), at(&iv), TEXT as u32);
        device.ask(CIOCCRYPT, &mut CryptOp { len, src, dst: 0, iv: iv_at, mac: out(&mut macs[1]), ..op })?;
        same_bytes(&macs[0], &macs[1])?;
        device.ask(CIOCCRYPT, &mut CryptOp { op: COP_DECRYPT, mac: out(&mut macs[0]), ..op })?;
        same_bytes(&text, &whole[16..])?;
        refused(libc::EINVAL, device.ask(CIOCCRYPT, &mut CryptOp { len: 0, ..op }))
    });
    check("xts", |device| {
        let (key, text) = (bytes(64, 3), bytes(TEXT, 1));
        let (cipher, mac, mackeylen) = (CRYPTO_AES_XTS, CRYPTO_SHA1_HMAC, 20);
        let mut session = Session2Op { cipher, keylen: 64, key: at(&key), mac, mackeylen, mackey: at(&key), ..Session2Op::default() };
        session.crid = CRYPTO_FLAG_HARDWARE | CRYPTO_FLAG_SOFTWARE;
        refused(libc::EINVAL, device.ask(CIOCGSESSION2, &mut Session2Op { ivlen: 16, ..session }))?;
        session.ivlen = 8;
        device.ask(CIOCGSESSION2, &mut session)?;
        // Of 16 bytes of IV the last eight do not count.
        let (iv, mut results, mut tag) = (bytes(16, 5), [[0; TEXT]; 2], [0; 20]);
        for (ivlen, result) in [8, 16].into_iter().zip(&mut results) {
            let op = CryptAead { ses: session.ses, op: COP_ENCRYPT, len: TEXT as u32, ivlen, iv: at(&iv), ..CryptAead::default() };
            device.ask(CIOCCRYPTAEAD, &mut CryptAead { src: at(&text), dst: out(result), tag: out(&mut tag), ..op })?;
        }
        same(true, results[0][..] != text[..])?;
        same_bytes(&results[0], &results[1])
    });
    check("what-has-no-use", |device| {
        let ses = open(device, CRYPTO_NULL_CBC, 0, 0, 0)?.ses;
        let (iv, mut data) = (bytes(16, 5), bytes(16, 1));
        let place = out(&mut data);
        let op = CryptOp { ses, op: COP_ENCRYPT, len: 16, src: place, dst: place, ..CryptOp::default() };
        device.ask(CIOCCRYPT, &mut { op })?;
        refused(libc::EINVAL, device.ask(CIOCCRYPT, &mut CryptOp { iv: at(&iv), ..op }))?;
        let ses = open(device, 0, 0, CRYPTO_SHA2_256, 0)?.ses;
        device.ask(CIOCCRYPT, &mut CryptOp { ses, op: 0, dst: 0, ..op })?;
        refused(libc::EINVAL, device.ask(CIOCCRYPT, &mut CryptOp { ses, op: 3, ..op }))
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
