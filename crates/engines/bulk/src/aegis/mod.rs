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
//! use bywash_bulk::{Text, aegis::aegis128l, is_supported};
//! if is_supported() {
//!     let key = aegis128l::Key::new(&[7; 16]);
//!     let (mut text, mut tag) = (*b"attack at dawn", [0; 16]);
//!     key.seal(&[1; 16], b"header", Text::in_place(&mut text), &mut tag)?;
//!     key.open(&[1; 16], b"header", Text::in_place(&mut text), &tag)?;
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # Where the time goes
//! A step of AEGIS-128L is 8 rounds of one block, which start two a cycle, but the next step waits for the 4 cycles of a round and an xor: 32 bytes in
//! 5 cycles at best. A step of AEGIS-128X4 is 8 rounds of four blocks, one a cycle: 128 bytes in 8 cycles, which hide the wait. AEGIS-256 takes 16 bytes in
//! the same 5 cycles.

#[macro_use]
mod cipher;
mod narrow;
mod state;
mod state256;
mod wide;

use crate::Error;
use crate::memory::Text;

/// Text under one nonce, and associated data (s3.1).
const LENGTH_MAX: u64 = (1 << 61) - 1;

/// AEGIS-128L (s3): key and nonce of 16 bytes.
pub mod aegis128l {
    mod state {
        crate::aegis::state::state128!(narrow);
    }
    cipher!(state);
}

/// AEGIS-128X4 (s5.3, D = 4): key and nonce of 16 bytes.
pub mod aegis128x4 {
    mod state {
        crate::aegis::state::state128!(wide);
    }
    cipher!(state);
}

/// AEGIS-256 (s4): key and nonce of 32 bytes.
pub mod aegis256 {
    use super::state256 as state;
    cipher!(state);
}

fn check(text: &Text<'_>, tag: &[u8]) -> Result<(), Error> {
    if !matches!(tag.len(), 16 | 32) {
        return Err(Error::TagLength(tag.len()));
    }
    if text.len() as u64 > LENGTH_MAX { Err(Error::TextLength(text.len() as u64)) } else { Ok(()) }
}
