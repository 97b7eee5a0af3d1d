//! TLS records and SRTP packets.

use crate::port::{at, out};
use crate::vectors::{CIPHERS, HASHES};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes};
use bywash_cryptodev_abi::linux::*;

const HEADER: usize = 13;

pub(crate) fn add(list: &mut Vec<Check>) {
    for (cipher, hash) in [(0, 3), (2, 9), (12, 3), (0, 1)] {
        let (cipher, hash) = (&CIPHERS[cipher], &HASHES[hash]);
        for length in [0, 1, 11, 12, 100, 16_384] {
            list.push(Check::new(format!("tls/{}+{}/record-of-{length}", cipher.name, hash.name), move |port| {
                let device = Handle::open(port)?;
                let (key, mackey) = (bytes(cipher.key_len, 3), bytes(20, 3));
                let ses = device.session(cipher.cipher, &key, hash.mac, &mackey)?;
                record(&device, ses, cipher.iv_len, hash.of_text.len() / 2, length)
            }));
        }
    }
    for (what, place) in [("padding", 63), ("tag", 40), ("text", 0)] {
        list.push(Check::new(format!("tls/wrong-{what}"), move |port| wrong(&Handle::open(port)?, place)));
    }
    list.push(Check::new("tls/not-in-place", |port| {
        let (device, text, mut result) = (Handle::open(port)?, [0; 16], [0; 64]);
        let ses = device.session(CRYPTO_AES_CBC, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
        let op =
            CryptAuthOp { ses, flags: COP_FLAG_AEAD_TLS_TYPE, len: 16, src: at(&text), dst: out(&mut result), ..CryptAuthOp::default() };
        refused(libc::EINVAL, device.auth(op))
    }));
    for (length, tag_len) in [(16_384, 0), (1, 10), (100, 4)] {
        list.push(Check::new(format!("srtp/packet-of-{length}-tag-{tag_len}"), move |port| packet(&Handle::open(port)?, length, tag_len)));
    }
    list.push(Check::new("srtp/wrong-tag", |port| {
        let (device, mut data, mut tag) = (Handle::open(port)?, [0; 64], [0; 20]);
        let ses = device.session(CRYPTO_AES_CTR, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
        refused(libc::EBADMSG, device.auth(CryptAuthOp { op: COP_DECRYPT, ..srtp(ses, &mut data, &mut tag, 20) }))
    }));
    list.push(Check::new("srtp/block-cipher", |port| {
        let (device, mut data, mut tag) = (Handle::open(port)?, [0; 64], [0; 20]);
        let ses = device.session(CRYPTO_AES_CBC, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
        refused(libc::EINVAL, device.auth(srtp(ses, &mut data, &mut tag, 20)))
    }));
    list.push(Check::new("srtp/payload-behind-the-packet", |port| {
        let (device, mut data, mut tag) = (Handle::open(port)?, [0; 64], [0; 20]);
        let ses = device.session(CRYPTO_AES_CTR, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
        refused(libc::EINVAL, device.auth(CryptAuthOp { auth_len: 40, ..srtp(ses, &mut data, &mut tag, 20) }))
    }));
}

/// A record against what cipher and hash say of it one by one, and opened again.
fn record(device: &Handle<'_>, ses: u32, iv_len: usize, tag_len: usize, length: usize) -> Outcome {
    let (iv, header, text) = (bytes(16, 5), bytes(HEADER, 9), bytes(length, 1));
    let mut place = text.clone();
    place.resize(length + tag_len + 32, 0xee);
    let dst = out(&mut place);
    let op = CryptAuthOp {
        ses,
        flags: COP_FLAG_AEAD_TLS_TYPE,
        auth_len: HEADER as u32,
        auth_src: at(&header),
        src: dst,
        dst,
        iv: at(&iv),
        iv_len: iv_len as u32,
        ..CryptAuthOp::default()
    };
    let sealed = device.auth(CryptAuthOp { len: length as u32, ..op })?.len;
    let block = if iv_len == 0 { 16 } else { iv_len };
    same((length + tag_len) / block * block + block, sealed as usize)?;
    // Deciphered alone it is text, tag and padding.
    let mut plain = vec![0; sealed as usize];
    let mut mac = [0; 64];
    let alone = CryptOp {
        ses,
        op: COP_DECRYPT,
        len: sealed,
        src: dst,
        dst: out(&mut plain),
        iv: at(&iv),
        mac: out(&mut mac),
        ..CryptOp::default()
    };
    device.crypt(alone)?;
    let padding = sealed as usize - length - tag_len;
    same_bytes(&text, &plain[..length])?;
    same(true, plain[length + tag_len..].iter().all(|byte| usize::from(*byte) == padding - 1))?;
    let authenticated = [&header[..], &text].concat();
    let mut unused = vec![0; authenticated.len().next_multiple_of(16)];
    let rounded = authenticated.len().is_multiple_of(block);
    if rounded {
        let op = CryptOp { ses, len: authenticated.len() as u32, src: at(&authenticated), dst: out(&mut unused), ..CryptOp::default() };
        device.crypt(CryptOp { iv: at(&iv), mac: out(&mut mac), ..op })?;
        same_bytes(&mac[..tag_len], &plain[length..length + tag_len])?;
    }
    let opened = device.auth(CryptAuthOp { op: COP_DECRYPT, len: sealed, ..op })?.len;
    same(length as u32, opened)?;
    same_bytes(&text, &place[..length])
}

fn wrong(device: &Handle<'_>, byte: usize) -> Outcome {
    let ses = device.session(CRYPTO_AES_CBC, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
    let (iv, mut place) = (bytes(16, 5), vec![7; 64]);
    let dst = out(&mut place);
    let op = CryptAuthOp { ses, flags: COP_FLAG_AEAD_TLS_TYPE, src: dst, dst, iv: at(&iv), ..CryptAuthOp::default() };
    let len = device.auth(CryptAuthOp { len: 36, ..op })?.len;
    same(64, len)?;
    place[byte] ^= 0x40;
    refused(libc::EBADMSG, device.auth(CryptAuthOp { op: COP_DECRYPT, len, ..op }))
}

fn srtp(ses: u32, data: &mut [u8], tag: &mut [u8], tag_len: u32) -> CryptAuthOp {
    let (len, auth_len, start) = (data.len() as u32 - 12, data.len() as u32, out(data));
    let (src, tag, flags) = (start + 12, out(tag), COP_FLAG_AEAD_SRTP_TYPE);
    CryptAuthOp { ses, flags, len, auth_len, auth_src: start, src, dst: src, tag, tag_len, ..CryptAuthOp::default() }
}

fn packet(device: &Handle<'_>, length: usize, tag_len: usize) -> Outcome {
    let ses = device.session(CRYPTO_AES_CTR, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
    let (ctr, hmac) = (device.cipher(CRYPTO_AES_CTR, &[1; 16])?, device.hash(CRYPTO_SHA1_HMAC, &[2; 20])?);
    let (iv, plain, mut tag) = (bytes(16, 5), bytes(12 + length, 1), [0xee; 20]);
    let mut data = plain.clone();
    let op = CryptAuthOp { iv: at(&iv), ..srtp(ses, &mut data, &mut tag, tag_len as u32) };
    same(length as u32, device.auth(op)?.len)?;
    let (mut expected, mut mac) = (plain.clone(), [0; 20]);
    let dst = out(&mut expected[12..]);
    device.crypt(CryptOp { ses: ctr, len: length as u32, src: dst, dst, iv: at(&iv), ..CryptOp::default() })?;
    device.crypt(CryptOp { ses: hmac, len: expected.len() as u32, src: at(&expected), mac: out(&mut mac), ..CryptOp::default() })?;
    same_bytes(&expected, &data)?;
    let made = if tag_len == 0 { 20 } else { tag_len };
    same_bytes(&mac[..made], &tag[..made])?;
    if length >= made {
        device.auth(CryptAuthOp { op: COP_DECRYPT, ..op })?;
        same_bytes(&plain, &data)?;
    }
    Ok(())
}
