//! Records of TLS with a MAC and a CBC cipher through `CIOCAUTHCRYPT` (RFC 5246 s6.2.3): MAC, then pad, then encipher.
//!
//! Whether padding or MAC was wrong, and where the padding began, must not show (Lucky Thirteen, CVE-2013-0169). So the padding is looked at and the MAC
//! taken out in a time that depends on the record's length alone, a record with wrong padding is hashed as one without any, and the hash compresses as many
//! blocks whatever the text's length is: those that the text did not need follow for nothing. Nor is the text's length counted, or traced: a record counts
//! as if it had no padding.

use crate::auth::{Work, check_auth_len, check_dst, check_tag_len, unmapped};
use crate::bounce::{Wiped, wipe, with_all};
use crate::cipher::Cipher;
use crate::errno::Errno;
use crate::hash::{Digest, Hash};
use crate::refusal::Refusal;
use bywash_core::Direction;
use bywash_core::secret::constant_time_eq;
use bywash_cryptodev_abi::linux::CryptAuthOp;

/// Longest text of a record: four times that of TLS.
const RECORD_MAX: usize = 1 << 16;
/// Longest padding with its length.
const PADDING_MAX: usize = 256;
/// What is hashed for nothing: at most as many whole blocks as padding can fill.
static NOTHING: [u8; 512] = [0; 512];

/// Makes a record in place, or opens one.
///
/// # Errors
/// In this order: what is authenticated only is too long, cannot be read (`EFAULT`); data out of reach (`EINVAL`); lengths that do not fit; `EBADMSG`.
pub(crate) fn run(work: &mut Work<'_>, cipher: &Cipher, asked: &mut CryptAuthOp) -> Result<(), Refusal> {
    let mut auth = Wiped::zeroed(check_auth_len(asked)?)?;
    work.program.read("auth_src", asked.auth_src, &mut auth)?;
    check_dst(asked)?;
    let length = asked.len as usize;
    if length > RECORD_MAX {
        return Err(Refusal::invalid(format!("len is {length}; a record has at most {RECORD_MAX} bytes")));
    }
    let longest = work.session.hash.as_ref().map_or(0, Hash::length);
    let tag_len = check_tag_len(asked, longest)?;
    if length == 0 && (tag_len == 0 || work.way == Direction::Decrypt) {
        return Err(Refusal::invalid("len is 0; there is no record"));
    }
    let padded = cipher.kind.block > 1;
    let written = match work.way {
        Direction::Decrypt => open(work, cipher, asked, &auth, tag_len, padded)?,
        _ => seal(work, cipher, asked, &auth, tag_len, padded)?,
    };
    asked.len = written as u32;
    Ok(())
}

fn seal(work: &mut Work<'_>, cipher: &Cipher, asked: &CryptAuthOp, auth: &[u8], tag_len: usize, padded: bool) -> Result<usize, Refusal> {
    let length = asked.len as usize;
    let unpadded = length + tag_len;
    let padding = if padded { cipher.kind.block - unpadded % cipher.kind.block } else { 0 };
    with_all(unpadded + padding, |record| {
        work.program.read("src", asked.src, &mut record[..length]).map_err(unmapped)?;
        if let Some(hash) = &work.session.hash {
            let tag = mac(work, hash, auth, &record[..length], length)?;
            record[length..unpadded].copy_from_slice(&tag.bytes()[..tag_len]);
        }
        record[unpadded..].fill(padding.wrapping_sub(1) as u8);
        cipher.run(Direction::Encrypt, &mut work.state.iv, record)?;
        work.program.write("dst", asked.dst, record).map_err(unmapped)?;
        Ok(record.len())
    })
}

fn open(work: &mut Work<'_>, cipher: &Cipher, asked: &CryptAuthOp, auth: &[u8], tag_len: usize, padded: bool) -> Result<usize, Refusal> {
    let (length, block) = (asked.len as usize, cipher.kind.block);
    if !length.is_multiple_of(block) {
        return Err(Refusal::invalid(format!("len is {length}: a record of {} has a multiple of {block} bytes", cipher.kind.name)));
    }
    if tag_len + usize::from(padded) > length {
        return Err(Refusal::invalid(format!("len is {length}, too short for a tag of {tag_len} bytes and padding")));
    }
    with_all(length, |record| {
        work.program.read("src", asked.src, record).map_err(unmapped)?;
        cipher.run(Direction::Decrypt, &mut work.state.iv, record)?;
        let (padding, mut wrong) = if padded { look_at_padding(record, tag_len) } else { (0, 0) };
        let text_len = length - tag_len - padding;
        if let Some(hash) = &work.session.hash {
            let mut given = [0; 64];
            take_tag(record, text_len, &mut given[..tag_len]);
            let right = mac(work, hash, auth, &record[..text_len], length - tag_len)?;
            wrong |= usize::from(!constant_time_eq(&given[..tag_len], &right.bytes()[..tag_len]));
            wipe(&mut given);
        }
        if wrong != 0 {
            return Err(Refusal::new(Errno::EBADMSG, "the record is not one that was made under these keys"));
        }
        work.program.write("dst", asked.dst, &record[..text_len]).map_err(unmapped)?;
        Ok(text_len)
    })
}

/// The tag of a text that may be as long as `longest`, in a time that depends on that and not on its length.
fn mac(work: &mut Work<'_>, hash: &Hash, auth: &[u8], text: &[u8], longest: usize) -> Result<Digest, Refusal> {
    let hashing = match &mut work.state.record {
        Some(hashing) => hashing,
        none => none.insert(hash.uncounted()?),
    };
    hashing.reset()?;
    hashing.update(auth)?;
    hashing.update(text)?;
    let tag = Digest::of(&mut **hashing)?;
    let (needed, most) = (blocks(hash, auth.len() + text.len()), blocks(hash, auth.len() + longest));
    hashing.update(&NOTHING[..(most - needed) << hash.kind.block().0])?;
    hashing.reset()?;
    work.client.count(hash.kind.algorithm, 1, (auth.len() + longest) as u64);
    Ok(tag)
}

/// How many blocks a hash compresses for a message of this length: behind it come a byte and its length. No division, whose time would tell of the length.
fn blocks(hash: &Hash, length: usize) -> usize {
    let (shift, behind) = hash.kind.block();
    (length + behind + (1 << shift) - 1) >> shift
}

/// All ones if `a` is at least `b`, else 0; both far below the top bit.
fn at_least(a: usize, b: usize) -> usize {
    (a.wrapping_sub(b) >> (usize::BITS - 1)).wrapping_sub(1)
}

/// The length of the padding with its length byte, which is 0 if anything is wrong with it, and then all ones.
fn look_at_padding(record: &[u8], tag_len: usize) -> (usize, usize) {
    let claimed = usize::from(record[record.len() - 1]);
    let mut wrong = !at_least(record.len(), claimed + 1 + tag_len);
    for (index, byte) in record.iter().rev().take(PADDING_MAX).enumerate() {
        let differs = usize::from(*byte) ^ claimed;
        wrong |= at_least(claimed, index) & at_least(differs, 1);
    }
    let wrong = core::hint::black_box(wrong);
    ((claimed + 1) & !wrong, wrong)
}

/// Takes the tag out of where it begins, without an address that depends on it: every byte in which it could lie is looked at.
fn take_tag(record: &[u8], begins: usize, tag: &mut [u8]) {
    let first = record.len().saturating_sub(tag.len() + PADDING_MAX);
    for (index, taken) in tag.iter_mut().enumerate() {
        for (at, byte) in record.iter().enumerate().skip(first) {
            let here = at_least(at, begins + index) & at_least(begins + index, at);
            *taken |= byte & here as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::linux_hash;
    use bywash_cryptodev_abi::linux::{CRYPTO_SHA1_HMAC, CRYPTO_SHA2_384_HMAC};

    #[test]
    fn padding_of_every_length_is_seen() {
        for padding in 1..=PADDING_MAX {
            let mut record = vec![0xee; 300];
            record[300 - padding..].fill((padding - 1) as u8);
            assert_eq!(look_at_padding(&record, 20), (padding, 0));
            if padding > 1 {
                record[300 - padding] ^= 1;
                assert_eq!(look_at_padding(&record, 20), (0, usize::MAX), "{padding}");
            }
        }
        assert_eq!(look_at_padding(&[31; 32], 0), (32, 0));
        assert_eq!(look_at_padding(&[31; 32], 1), (0, usize::MAX), "no room for the tag");
    }

    #[test]
    fn as_many_blocks_are_compressed_whatever_the_padding() {
        let client = bywash_client::Client::new(bywash_client::Config::default());
        for (mac, boundaries) in
            [(CRYPTO_SHA1_HMAC, [(55, 1), (56, 2), (119, 2), (120, 3)]), (CRYPTO_SHA2_384_HMAC, [(111, 1), (112, 2), (239, 2), (240, 3)])]
        {
            let hash = Hash::open(&client, linux_hash(mac).unwrap(), &[1; 20]).unwrap();
            // FIPS 180-4 s5.1.
            for (length, expected) in boundaries {
                assert_eq!(blocks(&hash, length), expected, "{length}");
            }
            for length in [64, 256, 300, 1000] {
                let most = blocks(&hash, 13 + length);
                for padding in 0..=PADDING_MAX.min(length) {
                    let nothing = (most - blocks(&hash, 13 + length - padding)) << hash.kind.block().0;
                    assert!(nothing <= NOTHING.len(), "{length} {padding}");
                }
            }
        }
    }

    #[test]
    fn the_tag_is_found_wherever_it_is() {
        for begins in 0..=280 {
            let mut record = vec![0x55; 300];
            record[begins..begins + 20].copy_from_slice(&[9; 20]);
            let mut tag = [0; 20];
            take_tag(&record, begins, &mut tag);
            assert!(begins < 24 || tag == [9; 20], "{begins}");
        }
    }
}
