//! Every cipher, at once and in pieces, both ways.

use crate::port::{at, out};
use crate::vectors::{CIPHERS, CipherVector};
use crate::{Check, Handle, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::linux::*;

const TEXT: usize = 64;

pub(crate) fn add(list: &mut Vec<Check>) {
    for vector in CIPHERS {
        for op in [COP_ENCRYPT, COP_DECRYPT] {
            for flags in [0, COP_FLAG_NO_ZC] {
                for in_place in [false, true] {
                    let way = if op == COP_ENCRYPT { "encrypt" } else { "decrypt" };
                    let place = if in_place { "in-place" } else { "apart" };
                    let copied = if flags == 0 { "" } else { "-copied" };
                    let name = format!("cipher/{}/{way}-{place}{copied}", vector.name);
                    list.push(Check::new(name, move |port| whole(&Handle::open(port)?, vector, op, flags, in_place)));
                }
            }
        }
        let xts = vector.cipher == CRYPTO_AES_XTS;
        if !xts {
            list.push(Check::new(format!("cipher/{}/pieces-go-on", vector.name), move |port| pieces(&Handle::open(port)?, vector)));
            list.push(Check::new(format!("cipher/{}/write-iv", vector.name), move |port| write_iv(&Handle::open(port)?, vector)));
        }
        list.push(Check::new(format!("cipher/{}/long", vector.name), move |port| long(&Handle::open(port)?, vector)));
        let no_length = Check::new(format!("cipher/{}/no-length", vector.name), move |port| {
            let device = Handle::open(port)?;
            let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
            device.crypt(CryptOp { ses, ..CryptOp::default() })?;
            Ok(())
        });
        list.push(no_length);
        let wrong_key = Check::new(format!("cipher/{}/key-a-byte-short", vector.name), move |port| {
            refused(libc::EINVAL, Handle::open(port)?.cipher(vector.cipher, &bytes(vector.key_len - 1, 3)))
        });
        list.push(wrong_key);
    }
    list.push(Check::new("cipher/null/copies", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_NULL, &[])?;
        let (text, mut result) = (bytes(77, 1), vec![0; 77]);
        device.crypt(CryptOp { ses, len: 77, src: at(&text), dst: out(&mut result), ..CryptOp::default() })?;
        same_bytes(&text, &result)
    }));
    list.push(Check::new("cipher/null/takes-no-key", |port| refused(libc::EINVAL, Handle::open(port)?.cipher(CRYPTO_NULL, &[0; 16]))));
    for (name, cipher) in [("aes-ctr", CRYPTO_AES_CTR), ("aes-ofb", CRYPTO_AES_OFB)] {
        list.push(Check::new(format!("cipher/{name}/part-of-a-block-ends-it"), move |port| {
            part_of_a_block(&Handle::open(port)?, cipher, 0)
        }));
        let name = format!("cipher/{name}/part-of-a-block-behind-whole-ones-ends-it");
        list.push(Check::new(name, move |port| part_of_a_block(&Handle::open(port)?, cipher, 16)));
    }
    let equal =
        Check::new("cipher/aes-xts/two-equal-halves", |port| refused(libc::EINVAL, Handle::open(port)?.cipher(CRYPTO_AES_XTS, &[7; 32])));
    list.push(equal.deviating("the module takes a key of two equal halves unless the kernel is a FIPS one; IEEE 1619 forbids it"));
}

fn whole(device: &Handle<'_>, vector: &CipherVector, op: u16, flags: u16, in_place: bool) -> crate::Outcome {
    let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
    let (iv, plain, secret) = (bytes(vector.iv_len, 5), bytes(TEXT, 1), unhex(vector.enciphered));
    let (from, to) = if op == COP_ENCRYPT { (plain, secret) } else { (secret, plain) };
    let mut result = if in_place { from.clone() } else { vec![0; TEXT] };
    let dst = out(&mut result);
    let src = if in_place { dst } else { at(&from) };
    device.crypt(CryptOp { ses, op, flags, len: TEXT as u32, src, dst, iv: at(&iv), ..CryptOp::default() })?;
    same_bytes(&to, &result)
}

/// Sixteen bytes at a time, the IV with the first alone.
fn pieces(device: &Handle<'_>, vector: &CipherVector) -> crate::Outcome {
    let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
    let (iv, plain, mut result) = (bytes(vector.iv_len, 5), bytes(TEXT, 1), vec![0; TEXT]);
    for (index, (from, to)) in plain.chunks(16).zip(result.chunks_mut(16)).enumerate() {
        let iv = if index == 0 { at(&iv) } else { 0 };
        device.crypt(CryptOp { ses, len: 16, src: at(from), dst: out(to), iv, ..CryptOp::default() })?;
    }
    same_bytes(&unhex(vector.enciphered), &result)
}

/// The IV that is written goes on where the first piece ended, in another session too.
fn write_iv(device: &Handle<'_>, vector: &CipherVector) -> crate::Outcome {
    let key = bytes(vector.key_len, 3);
    let (first, second) = (device.cipher(vector.cipher, &key)?, device.cipher(vector.cipher, &key)?);
    let (mut iv, plain, mut result) = (bytes(16, 5), bytes(TEXT, 1), vec![0; TEXT]);
    let iv = out(&mut iv);
    for (index, ses) in [first, second].into_iter().enumerate() {
        let (from, to) = (&plain[32 * index..], &mut result[32 * index..]);
        device.crypt(CryptOp { ses, flags: COP_FLAG_WRITE_IV, len: 32, src: at(from), dst: out(to), iv, ..CryptOp::default() })?;
    }
    same_bytes(&unhex(vector.enciphered), &result)
}

/// A text of many pages, back to what it was.
fn long(device: &Handle<'_>, vector: &CipherVector) -> crate::Outcome {
    let ses = device.cipher(vector.cipher, &bytes(vector.key_len, 3))?;
    let (iv, plain) = (bytes(16, 5), bytes(100_000, 1));
    let (mut secret, mut back) = (vec![0; plain.len()], vec![0; plain.len()]);
    let op = CryptOp { ses, len: plain.len() as u32, iv: at(&iv), ..CryptOp::default() };
    device.crypt(CryptOp { src: at(&plain), dst: out(&mut secret), ..op })?;
    same_bytes(&unhex(vector.enciphered), &secret[..TEXT])?;
    device.crypt(CryptOp { op: COP_DECRYPT, src: at(&secret), dst: out(&mut back), ..op })?;
    same(true, back == plain)
}

/// What the last block of a text leaves of its key stream is not used: the next text has the next block's.
fn part_of_a_block(device: &Handle<'_>, cipher: u32, whole: usize) -> crate::Outcome {
    let ses = device.cipher(cipher, &bytes(16, 3))?;
    let (iv, zeros) = (bytes(16, 5), [0; 64]);
    let (mut stream, mut parts) = ([0; 64], [0; 64]);
    let (first, second) = (whole + 5, whole + 16);
    device.crypt(CryptOp { ses, len: 64, src: at(&zeros), dst: out(&mut stream), iv: at(&iv), ..CryptOp::default() })?;
    device.crypt(CryptOp { ses, len: first as u32, src: at(&zeros), dst: out(&mut parts), iv: at(&iv), ..CryptOp::default() })?;
    device.crypt(CryptOp { ses, len: 16, src: at(&zeros), dst: out(&mut parts[second..]), ..CryptOp::default() })?;
    same_bytes(&stream[..first], &parts[..first])?;
    same_bytes(&stream[second..second + 16], &parts[second..second + 16])
}
