//! GCM and CCM.

use crate::port::{at, out};
use crate::vectors::{AEADS, AeadVector};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::linux::*;

const TEXT: usize = 64;
const AAD: usize = 20;

pub(crate) fn add(list: &mut Vec<Check>) {
    for vector in AEADS {
        let mut check = |what: &str, run: fn(&Handle<'_>, &AeadVector, CryptAuthOp) -> Outcome| {
            let check = Check::new(format!("aead/{}/{what}", vector.name), move |port| {
                let device = Handle::open(port)?;
                let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
                let (iv, aad) = (iv(vector.cipher), bytes(AAD, 9));
                let tag_len = if vector.tag_len == 16 { 0 } else { vector.tag_len as u32 };
                let (auth_len, auth_src) = (AAD as u32, at(&aad));
                run(&device, vector, CryptAuthOp { ses, iv: at(&iv), iv_len: 12, auth_len, auth_src, tag_len, ..CryptAuthOp::default() })
            });
            list.push(check);
        };
        check("seal", |device, vector, op| {
            let (text, mut sealed) = (bytes(TEXT, 1), vec![0xee; TEXT + 17]);
            let answer = device.auth(CryptAuthOp { len: TEXT as u32, src: at(&text), dst: out(&mut sealed), ..op })?;
            let length = TEXT + vector.tag_len;
            same_bytes(&unhex(vector.sealed), &sealed[..length])?;
            same((length as u32, vector.tag_len as u32), (answer.len, answer.tag_len))?;
            same(0xee, sealed[length])
        });
        check("seal-in-place", |device, vector, op| {
            let mut sealed = bytes(TEXT, 1);
            sealed.resize(TEXT + vector.tag_len, 0);
            let place = out(&mut sealed);
            device.auth(CryptAuthOp { len: TEXT as u32, src: place, dst: place, ..op })?;
            same_bytes(&unhex(vector.sealed), &sealed)
        });
        check("open", |device, vector, op| {
            let (sealed, mut text) = (unhex(vector.sealed), vec![0; TEXT + 16]);
            let answer =
                device.auth(CryptAuthOp { op: COP_DECRYPT, len: sealed.len() as u32, src: at(&sealed), dst: out(&mut text), ..op })?;
            same_bytes(&bytes(TEXT, 1), &text[..TEXT])?;
            same(TEXT as u32, answer.len)
        });
        for byte in [0, TEXT - 1, TEXT] {
            list.push(Check::new(format!("aead/{}/wrong-byte-{byte}", vector.name), move |port| {
                let device = Handle::open(port)?;
                let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
                let (iv, aad, mut sealed, mut text) = (iv(vector.cipher), bytes(AAD, 9), unhex(vector.sealed), vec![0; TEXT + 16]);
                sealed[byte] ^= 1;
                let op =
                    CryptAuthOp { ses, op: COP_DECRYPT, iv: at(&iv), auth_len: AAD as u32, auth_src: at(&aad), ..CryptAuthOp::default() };
                let (len, src, dst) = (sealed.len() as u32, at(&sealed), out(&mut text));
                refused(libc::EBADMSG, device.auth(CryptAuthOp { len, src, dst, tag_len: vector.tag_len as u32, ..op }))
            }));
        }
    }
    list.push(Check::new("aead/gcm/no-text", |port| {
        // SP 800-38D's first example: a key and a nonce of zeros, and nothing else.
        let device = Handle::open(port)?;
        let (ses, mut tag) = (device.cipher(CRYPTO_AES_GCM, &[0; 16])?, [0; 16]);
        device.auth(CryptAuthOp { ses, iv: at(&[0; 12]), dst: out(&mut tag), ..CryptAuthOp::default() })?;
        same_bytes(&unhex("58e2fccefa7e3061367f1d57a4e7455a"), &tag)
    }));
    for (auth_len, errno) in [(4096, 0), (4097, libc::EINVAL)] {
        list.push(Check::new(format!("aead/gcm/associated-{auth_len}"), move |port| {
            let device = Handle::open(port)?;
            let (ses, aad, mut tag) = (device.cipher(CRYPTO_AES_GCM, &[0; 16])?, bytes(auth_len, 9), [0; 16]);
            let iv = [0; 12];
            let op = CryptAuthOp { ses, iv: at(&iv), auth_len: auth_len as u32, auth_src: at(&aad), ..CryptAuthOp::default() };
            let got = device.auth(CryptAuthOp { dst: out(&mut tag), ..op });
            if errno == 0 { got.map(drop).map_err(Into::into) } else { refused(errno, got) }
        }));
    }
    list.push(Check::new("aead/gcm/shorter-than-its-tag", |port| {
        let device = Handle::open(port)?;
        let (ses, text, mut result) = (device.cipher(CRYPTO_AES_GCM, &[0; 16])?, [0; 15], [0; 16]);
        let iv = [0; 12];
        let op =
            CryptAuthOp { ses, op: COP_DECRYPT, len: 15, src: at(&text), dst: out(&mut result), iv: at(&iv), ..CryptAuthOp::default() };
        refused(libc::EINVAL, device.auth(op))
    }));
    let reuse = Check::new("aead/gcm/no-nonce", |port| {
        let device = Handle::open(port)?;
        let (ses, mut tag) = (device.cipher(CRYPTO_AES_GCM, &[0; 16])?, [0; 16]);
        refused(libc::EINVAL, device.auth(CryptAuthOp { ses, dst: out(&mut tag), ..CryptAuthOp::default() }))
    });
    list.push(reuse.deviating("the module goes on with the last nonce, which gives the key away"));
    for tag_len in [17, 64, u32::MAX] {
        list.push(Check::new(format!("aead/gcm/tag-of-{tag_len}"), move |port| {
            let device = Handle::open(port)?;
            let (ses, mut tag) = (device.cipher(CRYPTO_AES_GCM, &[0; 16])?, [0; 64]);
            let iv = [0; 12];
            refused(libc::EINVAL, device.auth(CryptAuthOp { ses, tag_len, iv: at(&iv), dst: out(&mut tag), ..CryptAuthOp::default() }))
        }));
    }
}

/// The nonce as each cipher takes it: CCM with the length of its counter before it.
fn iv(cipher: u32) -> Vec<u8> {
    let nonce = bytes(12, 5);
    if cipher == CRYPTO_AES_CCM { [&[2], &nonce[..], &[0; 3]].concat() } else { nonce }
}
