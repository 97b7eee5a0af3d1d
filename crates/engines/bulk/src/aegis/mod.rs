//! AEGIS (draft-irtf-cfrg-aegis-aead): ciphers with a tag made of AES rounds alone, several times as fast as GCM.
//!
//! | module | state | bytes a step |
//! |---|---|---|
//! | [`aegis128l`] | 8 blocks | 32 |
//! | [`aegis128x4`] | 4 states of AEGIS-128L side by side | 128 |
//! | [`aegis256`] | 6 blocks | 16 |
//!
//! A nonce must not be used twice with one key: who sees two messages under it can recover the state.
//!
//! ```
//! use bywash_bulk::{Text, aegis::aegis128l};
//! let key = aegis128l::Key::new(&[7; 16]);
//! let (mut text, mut tag) = (*b"attack at dawn", [0; 16]);
//! key.seal(&[1; 16], b"header", Text::in_place(&mut text), &mut tag)?;
//! key.open(&[1; 16], b"header", Text::in_place(&mut text), &tag)?;
//! assert_eq!(&text, b"attack at dawn");
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # On which processor
//! On every one, for what is enciphered on one is deciphered on another. The ciphers are written once, for lanes that a [`Path`] brings: registers of AES
//! instructions where there are some, else eight blocks at a time in bits, a fiftieth as fast.
//!
//! # Where the time goes
//! A step of AEGIS-128L is 8 rounds of one block, which start two a cycle, but the next step waits for the 4 cycles of a round and an xor: 32 bytes in
//! 5 cycles at best. A step of AEGIS-128X4 is 8 rounds of four blocks, one a cycle: 128 bytes in 8 cycles, which hide the wait. AEGIS-256 takes 16 bytes in
//! the same 5 cycles.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // Single instructions; see its docs.
mod avx512;
mod kinds;
mod lanes;
mod message;
mod path;
mod soft;
mod state;
#[cfg(test)]
mod tests;

pub use kinds::Kind;
pub use message::{Key, Message};
pub use path::Path;

/// AEGIS-128L (s3): key and nonce of 16 bytes.
pub mod aegis128l {
    use super::kinds::Aegis128L;

    /// A key of 16 bytes.
    pub type Key = super::Key<Aegis128L>;
    /// A message in pieces.
    pub type Message = super::Message<Aegis128L>;
}

/// AEGIS-128X4 (s5.3, D = 4): key and nonce of 16 bytes.
pub mod aegis128x4 {
    use super::kinds::Aegis128X4;

    /// A key of 16 bytes.
    pub type Key = super::Key<Aegis128X4>;
    /// A message in pieces.
    pub type Message = super::Message<Aegis128X4>;
}

/// AEGIS-256 (s4): key and nonce of 32 bytes.
pub mod aegis256 {
    use super::kinds::Aegis256;

    /// A key of 32 bytes.
    pub type Key = super::Key<Aegis256>;
    /// A message in pieces.
    pub type Message = super::Message<Aegis256>;
}
