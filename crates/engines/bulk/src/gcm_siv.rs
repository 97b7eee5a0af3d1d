//! AES-GCM-SIV (RFC 8452): a nonce that is used twice tells whether two messages are the same, and no more. Whole messages only, since the tag, which
//! the text is enciphered with, depends on all of it.
//!
//! ```
//! use bywash_bulk::{Text, gcm_siv, is_supported};
//! if is_supported() {
//!     let key = gcm_siv::Key::new(&[7; 32])?;
//!     let (mut text, mut tag) = (*b"attack at dawn", [0; 16]);
//!     key.seal(&[1; 12], b"header", Text::in_place(&mut text), &mut tag)?;
//!     key.open(&[1; 12], b"header", Text::in_place(&mut text), &tag)?;
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # Where the time goes
//! Each nonce has keys of its own (s4): 4 or 6 blocks, a key schedule and 16 powers of the hash key, or 48 for a long message, before the first byte. Then
//! two passes over the text, POLYVAL's and counter mode's. POLYVAL is GHASH without reversed bytes and without the factor x (appendix A).

use crate::Error;
use crate::aes::{Schedule, rounds, with_rounds};
use crate::ctr::{self, LITTLE};
use crate::ghash::Powers;
use crate::memory::{self, BLOCK, Text, WIDE};
use core::arch::x86_64::*;

/// Text, and associated data (s6).
const LENGTH_MAX: u64 = 1 << 36;
/// Bytes of a nonce.
const NONCE: usize = 12;
/// Up to how many blocks of text or of associated data the lowest sixteen powers do.
const FEW: usize = 32;
/// Powers of the hash key for more.
const MANY: usize = 48;

/// A key from which those of each nonce are derived. Wiped when dropped.
pub struct Key(Box<Generating>);

struct Generating {
    schedule: Schedule,
    key_len: usize,
}

/// The keys of one nonce. Filled in place, since what moves leaves a copy.
struct Derived {
    schedule: Schedule,
    powers: Powers,
    /// How many powers there are.
    count: usize,
}

impl Key {
    /// Expands a key of 16 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        if !matches!(key.len(), 16 | 32) {
            return Err(Error::KeyLength(key.len()));
        }
        let mut generating = Box::new(Generating { schedule: Schedule::empty(), key_len: key.len() });
        generating.schedule.expand(key)?;
        Ok(Self(generating))
    }

    /// Encrypts and writes the tag, which has 16 bytes.
    pub fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        check(aad, &text)?;
        let len = tag.len();
        let tag = tag.try_into().map_err(|_| Error::TagLength(len))?;
        let (mut derived, generating) = (Derived::empty(), &*self.0);
        with_rounds!(generating.schedule, derive::<R>(generating, nonce, aad.len().max(text.len()), &mut derived))?;
        with_rounds!(derived.schedule, seal::<R>(&derived, nonce, aad, &mut text, tag));
        Ok(())
    }

    /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
    pub fn open(&self, nonce: &[u8; NONCE], aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        check(aad, &text)?;
        let tag = tag.try_into().map_err(|_| Error::TagLength(tag.len()))?;
        let (mut derived, generating) = (Derived::empty(), &*self.0);
        with_rounds!(generating.schedule, derive::<R>(generating, nonce, aad.len().max(text.len()), &mut derived))?;
        let mut expected = with_rounds!(derived.schedule, open::<R>(&derived, nonce, aad, &mut text, tag));
        if memory::is_tag(&mut expected, tag) {
            return Ok(());
        }
        text.wipe();
        Err(Error::Authentication)
    }
}

fn check(aad: &[u8], text: &Text<'_>) -> Result<(), Error> {
    if text.len() as u64 > LENGTH_MAX {
        return Err(Error::TextLength(text.len() as u64));
    }
    if aad.len() as u64 > LENGTH_MAX { Err(Error::AadLength(aad.len() as u64)) } else { Ok(()) }
}

/// The keys of a nonce (s4), for at most so many bytes of text or of associated data.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn derive<const R: usize>(key: &Generating, nonce: &[u8; NONCE], longest: usize, derived: &mut Derived) -> Result<(), Error> {
    // The nonce behind the numbers 0 to 7; of each block enciphered the first half counts.
    let first = _mm512_broadcast_i32x4(_mm_bslli_si128::<4>(memory::short(nonce)));
    let first = _mm512_add_epi32(first, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
    let mut low = _mm512_xor_si512(first, key.schedule.wide(0));
    let mut high = _mm512_xor_si512(_mm512_add_epi32(first, _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4)), key.schedule.wide(0));
    rounds!(R, round, {
        let wide = key.schedule.wide(round);
        low = _mm512_aesenc_epi128(low, wide);
        high = _mm512_aesenc_epi128(high, wide);
    });
    let (low, high) = (_mm512_aesenclast_epi128(low, key.schedule.wide(R)), _mm512_aesenclast_epi128(high, key.schedule.wide(R)));
    let halves = _mm512_permutex2var_epi64(low, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), high);
    derived.count = match longest.div_ceil(BLOCK) {
        0..=1 => 1,
        2..=4 => 4,
        5..=FEW => 16,
        _ => MANY,
    };
    derived.powers.fill_lowest(_mm512_castsi512_si128(halves), derived.count);
    let mut keys = [0; WIDE];
    memory::set_register(&mut keys, halves);
    let expanded = derived.schedule.expand_here(&keys[BLOCK..BLOCK + key.key_len]);
    memory::wipe(&mut keys);
    expanded
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn seal<const R: usize>(key: &Derived, nonce: &[u8; NONCE], aad: &[u8], text: &mut Text<'_>, tag: &mut [u8; BLOCK]) {
    memory::set_block(tag, key.tag(nonce, aad, text.given(0..text.len())));
    key.apply::<R>(tag, text);
}

/// The tag that the text should have.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn open<const R: usize>(key: &Derived, nonce: &[u8; NONCE], aad: &[u8], text: &mut Text<'_>, tag: &[u8; BLOCK]) -> [u8; BLOCK] {
    key.apply::<R>(tag, text);
    let mut expected = [0; BLOCK];
    memory::set_block(&mut expected, key.tag(nonce, aad, text.done(0..text.len())));
    expected
}

impl Derived {
    const fn empty() -> Self {
        Self { schedule: Schedule::empty(), powers: Powers::empty(), count: 0 }
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn tag(&self, nonce: &[u8; NONCE], aad: &[u8], text: &[u8]) -> __m128i {
        let mut y = _mm_setzero_si128();
        for bytes in [aad, text] {
            if self.count > 1 {
                y = self.powers.absorb_with::<false>(y, bytes, self.count);
            } else if !bytes.is_empty() {
                y = self.powers.absorb_block(_mm_xor_si128(y, memory::short(bytes)));
            }
        }
        let lengths = _mm_set_epi64x(text.len() as i64 * 8, aad.len() as i64 * 8);
        y = self.powers.absorb_block(_mm_xor_si128(y, lengths));
        let sum = _mm_and_si128(_mm_xor_si128(y, memory::short(nonce)), _mm_set_epi64x(i64::MAX, -1));
        self.schedule.encrypt_block(sum)
    }

    /// Counter mode from the tag on (s4).
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn apply<const R: usize>(&self, tag: &[u8; BLOCK], text: &mut Text<'_>) {
        let mut next = u128::from_le_bytes(*tag) | 1 << 127;
        let range = 0..text.len();
        ctr::crypt::<R, LITTLE>(&self.schedule, &mut next, text, range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counter's 32 bits wrap alone, wherever in a step that is.
    #[test]
    fn the_counter_wraps_alone() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let (key, mut derived) = (Key::new(&[7; 32]).unwrap(), Derived::empty());
        #[allow(unsafe_code)]
        // SAFETY: the key exists, so the processor has the features; a key of 32 bytes has 14 rounds.
        unsafe {
            derive::<14>(&key.0, &[1; NONCE], 1000, &mut derived).unwrap();
        }
        for before in 1..60u32 {
            for (len, tag) in [(1000, [0xFF; BLOCK]), (1000, [0; BLOCK]), (16, [0x80; BLOCK]), (256, [0x7F; BLOCK])] {
                let mut tag = tag;
                tag[..4].copy_from_slice(&before.wrapping_neg().to_le_bytes());
                let mut expected = Vec::new();
                for i in 0..len / BLOCK + 1 {
                    let mut block = tag;
                    block[..4].copy_from_slice(&(before.wrapping_neg().wrapping_add(i as u32)).to_le_bytes());
                    block[15] |= 0x80;
                    #[allow(unsafe_code)]
                    // SAFETY: the key exists, so the processor has the features.
                    unsafe {
                        let enciphered = derived.schedule.encrypt_block(memory::block(&block));
                        memory::set_block(&mut block, enciphered);
                    }
                    expected.extend(block);
                }
                let mut text = vec![0; len];
                #[allow(unsafe_code)]
                // SAFETY: as above; a key of 32 bytes has 14 rounds.
                unsafe {
                    derived.apply::<14>(&tag, &mut Text::in_place(&mut text));
                }
                assert!(text == expected[..len], "{len} bytes, {before} blocks before the wrap");
            }
        }
    }
}
