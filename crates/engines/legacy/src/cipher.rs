//! What all ciphers of this crate have in common.

use crate::modes;
use std::fmt;

/// The longest block of all ciphers.
pub const BLOCK_MAX: usize = 16;

/// A keyed block cipher that computes many blocks at once.
pub trait BlockCipher: Sized {
    /// Its name, as in `bywash bench`.
    const NAME: &'static str;
    /// Bytes in a block.
    const BLOCK: usize;
    /// Allowed key lengths in bytes.
    const KEYS: &'static [usize];

    /// The key schedule, for the fastest form that this processor has.
    fn new(key: &[u8]) -> Result<Self, BadKey> {
        Self::with_form(key, Form::best())
    }

    /// The key schedule, for a form.
    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey>;
    /// Encrypts each block by itself (ECB), in place. Panics unless the length is a multiple of the block.
    fn encrypt_blocks(&self, blocks: &mut [u8]);
    /// Decrypts each block by itself (ECB), in place. Panics unless the length is a multiple of the block.
    fn decrypt_blocks(&self, blocks: &mut [u8]);

    /// Counter mode: xors the key stream of the blocks from `counter` on into `data`. If that ends within a block, what the block has
    /// left goes to its places in `open`.
    fn xor_stream(&self, counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
        modes::xor_stream(self, counter, data, open);
    }
}

/// How a cipher is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(Registers);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registers {
    General,
    Avx2,
    Avx512,
}

impl Form {
    /// Without vector instructions, on every processor.
    pub const PORTABLE: Self = Self(Registers::General);

    /// The fastest that this processor has: AVX-512 registers; else AVX2's, which DES and 3DES have a use for; else [`Self::PORTABLE`].
    pub fn best() -> Self {
        Self::vector().or_else(Self::narrow).unwrap_or(Self::PORTABLE)
    }

    /// AVX-512 registers, where the processor has F, BW, DQ, VL, VBMI, BITALG and GFNI.
    pub fn vector() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512bitalg")
            && is_x86_feature_detected!("gfni");
        has_all.then_some(Self(Registers::Avx512))
    }

    /// AVX2 registers, where the processor has them.
    pub fn narrow() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(Registers::Avx2))
    }

    /// Whether code for AVX-512 may be entered: only [`Self::vector`], which has asked the processor, makes such a form.
    pub fn is_vector(self) -> bool {
        self.0 == Registers::Avx512
    }

    /// Whether code for AVX2 is to be entered: only [`Self::narrow`], which has asked the processor, makes such a form.
    pub fn is_narrow(self) -> bool {
        self.0 == Registers::Avx2
    }
}

/// The key has a length that the cipher does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKey {
    cipher: &'static str,
    given: usize,
    allowed: &'static [usize],
}

impl BadKey {
    /// Unless the key is as long as one of the cipher's.
    pub(crate) fn check<C: BlockCipher>(key: &[u8]) -> Result<(), BadKey> {
        match C::KEYS.contains(&key.len()) {
            true => Ok(()),
            false => Err(BadKey { cipher: C::NAME, given: key.len(), allowed: C::KEYS }),
        }
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cipher, given, allowed } = self;
        let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
        write!(f, "a key of {cipher} has {} bytes, not {given}", allowed.join(" or "))
    }
}

impl std::error::Error for BadKey {}

/// Runs a kernel that takes whole groups over any number of bytes: the last ones go through a group of their own, filled with zeros, of which
/// `$after` sees what became of those zeros. A macro: a closure would be compiled without the target features.
macro_rules! in_groups {
    ($size:expr, $blocks:expr, |$group:ident| $kernel:expr) => {
        in_groups!($size, $blocks, |$group| $kernel, |_behind| ())
    };
    ($size:expr, $blocks:expr, |$group:ident| $kernel:expr, |$behind:ident| $after:expr) => {{
        let (groups, rest) = $blocks.as_chunks_mut::<{ $size }>();
        for $group in groups {
            $kernel;
        }
        if !rest.is_empty() {
            let mut last = [0; $size];
            last[..rest.len()].copy_from_slice(rest);
            let $group = &mut last;
            $kernel;
            let ($group, $behind) = last.split_at(rest.len());
            rest.copy_from_slice($group);
            $after;
            last.fill(0);
            core::hint::black_box(&mut last); // so that the compiler does not leave that out
        }
    }};
}
pub(crate) use in_groups;

/// Keeps what a message that ends within a block has left of it, from the key stream behind the message.
#[inline(always)]
pub(crate) fn keep(open: &mut [u8; BLOCK_MAX], len: usize, behind: &[u8]) {
    let used = len % BLOCK_MAX;
    if used > 0 {
        open[used..].copy_from_slice(&behind[..BLOCK_MAX - used]);
    }
}

/// What [`BlockCipher::encrypt_blocks`] asks of its caller.
#[track_caller]
pub(crate) fn assert_whole(blocks: &[u8], block: usize) {
    assert!(blocks.len().is_multiple_of(block), "{} bytes are no whole number of blocks of {block}", blocks.len());
}
