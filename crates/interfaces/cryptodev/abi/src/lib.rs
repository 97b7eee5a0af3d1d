//! What programs and `/dev/crypto` say to each other, byte by byte: request numbers, structures, flags and identifiers.
//!
//! There are two dialects. [`linux`] is that of the cryptodev module which Linux systems were given from outside the kernel; [`freebsd`] is that of
//! opencrypto. Both are for 64-bit processes: pointers are `u64`, of whoever's memory it is, so that a structure can be read
//! out of another process. Names are those that C programs know; every size and offset is checked when this crate is compiled, and
//! `tests/c.rs` compares the Linux dialect with what a C compiler makes of `include/crypto/cryptodev.h`.
#![forbid(unsafe_code)]

mod layout;

pub mod freebsd;
pub mod linux;

pub use layout::{Field, Layout};

/// The letter of every request of both dialects.
pub const LETTER: u8 = b'c';

/// Numbers of big-integer parameters that one [`linux::CryptKop`] has room for.
pub const CRK_MAXPARAM: usize = 8;
