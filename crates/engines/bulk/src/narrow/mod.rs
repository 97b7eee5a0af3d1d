//! AES on processors without VAES on 512-bit registers: GCM ([`gcm`]) and the modes without a tag, written once for registers of any width.
//!
//! | path | blocks in a register | needs |
//! |---|---|---|
//! | [`Path::Vaes256`] | two | VAES, VPCLMULQDQ, AVX2 |
//! | [`Path::AesNi`] | one | AES-NI, PCLMULQDQ, AVX |
//! | [`Path::Armv8`] | one | the cryptographic extensions of Armv8 |
//!
//! From 4 KiB up VAES-256 does 1.5 to 2.7 times what OpenSSL 3.0's code for AES-NI does, and AES-NI 0.8 to 1.2 times; XTS gains least, whose tweaks go
//! through the same pipes (Zen 4, 2 busy cores, in place, 2026-11-22). CBC encryption is a chain, which wider registers do not shorten, and so not here.
//!
//! `engines/cpu` calls both for GCM, VAES-256 for the other modes, and AES-NI besides for AES-128-XTS, for which AWS-LC has no code; in the others AES-NI is 0.7 to 1.1
//! times as fast as AWS-LC from 1 KiB up, and there to test this text with. Armv8 is called for AEGIS alone: qemu tests it, and no such processor was there to measure.
//!
//! Eight registers go through the cipher at a time, in CTR twelve, which hides the latency of a round, and what is left at the end goes through in fewer. Where the
//! 512-bit kernels run, they are faster; these are for the others. Constant time and wiping are as the crate says.

#[cfg(target_arch = "aarch64")]
mod armv8;
pub mod gcm;
mod ghash;
mod modes;
pub(crate) mod registers;
mod schedule;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;
mod xts;

use crate::clone::clone_in_place;
pub use crate::message::{CounterMode, Message};
use crate::text::{BLOCK, Text};
use crate::{Error, text};
use core::ops::Range;
use modes::{CBC, ECB};
use registers::Work;
use schedule::Schedule;
pub use xts::Key as XtsKey;

/// What computes a cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// x86-64 with VAES on 256-bit registers.
    Vaes256,
    /// x86-64 with AES-NI.
    AesNi,
    /// AArch64 with the cryptographic extensions.
    Armv8,
}

impl Path {
    /// The fastest first.
    pub const ALL: [Self; 3] = [Self::Vaes256, Self::AesNi, Self::Armv8];

    /// The fastest that this processor has.
    pub fn best() -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.is_supported())
    }

    /// Whether this processor has what the path needs.
    #[cfg(target_arch = "x86_64")]
    pub fn is_supported(self) -> bool {
        let basic = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("avx");
        match self {
            Self::Vaes256 => {
                basic && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("vaes") && is_x86_feature_detected!("vpclmulqdq")
            }
            Self::AesNi => basic,
            Self::Armv8 => false,
        }
    }

    /// Whether this processor has what the path needs: no other has any.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_supported(self) -> bool {
        false
    }

    /// Whether this processor has what the path needs.
    #[cfg(target_arch = "aarch64")]
    pub fn is_supported(self) -> bool {
        self == Self::Armv8 && std::arch::is_aarch64_feature_detected!("aes")
    }

    /// Does the work in the path's registers. All work needs a key, which exists only where the processor has them.
    pub(crate) fn run<T: Work>(self, work: T) {
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as `schedule::expand` and `aegis::Key::on` have asserted.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Vaes256 => x86::run_256(work),
                #[cfg(target_arch = "x86_64")]
                Self::AesNi => x86::run_128(work),
                #[cfg(target_arch = "aarch64")]
                Self::Armv8 => armv8::run(work),
                _ => unreachable!("no processor has the paths of two architectures"),
            }
        }
    }
}

/// A key for ECB, CBC and CTR. Wiped when dropped.
pub struct Key {
    path: Path,
    schedules: Box<[Schedule; 2]>,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Panics
    /// If the processor does not have what the path needs.
    pub fn new(path: Path, key: &[u8]) -> Result<Self, Error> {
        Ok(Self { path, schedules: schedule::both(path, key)? })
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        let [encrypt, decrypt] = &mut *self.schedules;
        schedule::expand(self.path, key, encrypt, Some(decrypt))
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.schedules.iter_mut().for_each(Schedule::wipe);
    }

    /// Encrypts or decrypts a whole message in CTR, whose first counter block is given.
    pub fn ctr(&self, first: &[u8; BLOCK], mut text: Text<'_>) {
        let range = 0..text.len();
        self.run(&mut u128::from_be_bytes(*first), &mut text, range);
    }

    /// Encrypts whole blocks in ECB.
    pub fn ecb_encrypt(&self, text: Text<'_>) -> Result<(), Error> {
        self.blocks::<ECB, false>(&mut [0; BLOCK], text)
    }

    /// Decrypts whole blocks in ECB.
    pub fn ecb_decrypt(&self, text: Text<'_>) -> Result<(), Error> {
        self.blocks::<ECB, true>(&mut [0; BLOCK], text)
    }

    /// Decrypts whole blocks in CBC. `chain` is the IV, and becomes that of what follows.
    pub fn cbc_decrypt(&self, chain: &mut [u8; BLOCK], text: Text<'_>) -> Result<(), Error> {
        self.blocks::<CBC, true>(chain, text)
    }

    fn blocks<const MODE: u8, const DECRYPT: bool>(&self, carry: &mut [u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        text::check_whole(&text)?;
        let range = 0..text.len();
        let schedule = &self.schedules[usize::from(DECRYPT)];
        self.path.run(modes::Blocks::<MODE, DECRYPT> { schedule, carry, text: &mut text, range });
        Ok(())
    }
}

clone_in_place!(Key, |to, of| Self { path: of.path, schedules: schedule::no_keys() }, {
    to.path = of.path;
    for (to, of) in to.schedules.iter_mut().zip(&*of.schedules) {
        to.copy(of);
    }
});

impl CounterMode for Key {
    fn run(&self, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
        self.path.run(modes::Ctr { schedule: &self.schedules[0], next, text, range });
    }
}
