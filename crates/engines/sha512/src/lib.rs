//! SHA-384 and SHA-512 (FIPS 180-4), and HMAC over them (RFC 2104), for processors whose library has only scalar code for them: AWS-LC's vector code runs on Intel's
//! alone.
//!
//! # Constant time
//! No branch and no memory address depends on what is hashed; its length is not secret. What a state holds is wiped when it is dropped, and the schedule's last words
//! when it is not needed any more; what the compiler keeps of both on the stack is not.
//!
//! # Who calls it
//! `engines/cpu` for digests and HMAC, and the key derivation of the OpenSSL provider, where [`is_supported`] and [`is_faster`] say yes. This crate knows nothing of
//! sessions, policies or OpenSSL.
#![cfg(target_arch = "x86_64")]
#![deny(unsafe_code)]

mod compress;
mod hmac;

use compress::{BLOCK, compress_avx2, compress_avx512};
pub use hmac::Hmac;

/// Bytes of SHA-512's value.
pub const SIZE_MAX: usize = 64;

/// The first state (FIPS 180-4 s5.3.5).
const SHA512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];
/// The first state of SHA-384 (FIPS 180-4 s5.3.4).
const SHA384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];

/// Whether this processor has what the code needs: AVX2, BMI1 and BMI2.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2")
}

/// Whether it is also faster than AWS-LC, which takes its scalar code on AMD's processors; SSE4A tells those. On Intel's it was not measured.
pub fn is_faster() -> bool {
    is_supported() && is_x86_feature_detected!("sse4a")
}

/// Which function of the two, with AVX-512VL or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Avx512,
    Avx2,
}

/// The hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Kind {
    /// Bytes of its values.
    pub const fn size(self) -> usize {
        match self {
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    const fn first_state(self) -> [u64; 8] {
        match self {
            Self::Sha384 => SHA384,
            Self::Sha512 => SHA512,
        }
    }
}

/// A message being hashed; wiped when dropped.
///
/// No `Clone`: a copy that is moved would leave another behind. See [`copy_from`](Self::copy_from).
pub struct Hash {
    state: [u64; 8],
    /// The message so far is whole blocks and the front of this one.
    rest: [u8; BLOCK],
    /// Bytes of the message so far. That it may have 2^125 is beyond what anybody can hash.
    length: u64,
    kind: Kind,
    path: Path,
}

impl Hash {
    /// Before the first byte of a message.
    ///
    /// # Panics
    /// Where [`is_supported`] says no.
    pub fn new(kind: Kind) -> Self {
        assert!(is_supported(), "this processor has no AVX2 and BMI2: ask is_supported");
        let path = if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") { Path::Avx512 } else { Path::Avx2 };
        Self::by(path, kind)
    }

    fn by(path: Path, kind: Kind) -> Self {
        Self { state: kind.first_state(), rest: [0; BLOCK], length: 0, kind, path }
    }

    /// Which hash function this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Forgets the message.
    pub fn reset(&mut self) {
        self.state = self.kind.first_state();
        wipe(&mut self.rest);
        self.length = 0;
    }

    /// Becomes a copy of another, in its own place.
    pub fn copy_from(&mut self, other: &Self) {
        self.state = other.state;
        let filled = other.filled();
        self.rest[..filled].copy_from_slice(&other.rest[..filled]);
        (self.length, self.kind, self.path) = (other.length, other.kind, other.path);
    }

    /// Bytes in the block that is not whole.
    fn filled(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }

    /// Takes more of the message.
    pub fn update(&mut self, mut data: &[u8]) {
        let filled = self.filled();
        self.length = self.length.wrapping_add(data.len() as u64);
        if filled > 0 {
            let (now, later) = data.split_at(data.len().min(BLOCK - filled));
            self.rest[filled..filled + now.len()].copy_from_slice(now);
            if filled + now.len() < BLOCK {
                return;
            }
            compress(self.path, &mut self.state, core::slice::from_ref(&self.rest));
            data = later;
        }
        let (blocks, rest) = data.as_chunks();
        compress(self.path, &mut self.state, blocks);
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    /// Ends the message and writes its value to the front of `out`. Only [`reset`](Self::reset) and [`copy_from`](Self::copy_from) are of use then.
    ///
    /// # Panics
    /// If `out` is shorter than a value.
    pub fn finish(&mut self, out: &mut [u8]) {
        /// Bytes of the message's length in its last block.
        const LENGTH: usize = 16;
        let filled = self.filled();
        self.rest[filled] = 0x80;
        self.rest[filled + 1..].fill(0);
        if filled + 1 + LENGTH > BLOCK {
            compress(self.path, &mut self.state, core::slice::from_ref(&self.rest));
            self.rest.fill(0);
        }
        self.rest[BLOCK - LENGTH..].copy_from_slice(&(8 * u128::from(self.length)).to_be_bytes());
        compress(self.path, &mut self.state, core::slice::from_ref(&self.rest));
        for (place, word) in out[..self.kind.size()].chunks_exact_mut(8).zip(self.state) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.rest);
    }
}

/// Overwrites in a way that the compiler does not leave out, a register's width at a time.
#[allow(unsafe_code)] // No instruction at all.
fn wipe<T: Copy + Default>(places: &mut [T]) {
    places.fill(T::default());
    // SAFETY: no instruction; but the compiler has to assume that it reads what lies there.
    unsafe { core::arch::asm!("/* {} */", in(reg) places.as_ptr(), options(nostack, preserves_flags, readonly)) };
}

#[allow(unsafe_code)] // Functions with target features.
fn compress(path: Path, state: &mut [u64; 8], blocks: &[[u8; BLOCK]]) {
    // SAFETY: `Hash::new` has found the features.
    unsafe {
        match path {
            Path::Avx512 => compress_avx512(state, blocks),
            Path::Avx2 => compress_avx2(state, blocks),
        }
    }
}

#[cfg(test)]
mod tests;
