//! **Legacy ciphers**, for reading old data and for the tables of old papers: DES, 3DES, Serpent, Twofish, Camellia, RC6. Many blocks side by side in
//! AVX-512 registers.
//!
//! None of them should protect anything new: keys of DES, 56 bits, are found by trying; 3DES is withdrawn (SP 800-131A), and blocks of eight bytes repeat within what a
//! link carries in minutes ([Sweet32](https://sweet32.info)); the others are unbroken, but hardly anybody speaks them any more. Nothing in
//! Bywash uses them unless it is asked for them by name.
//!
//! # Constant time
//! | cipher | with AVX-512 | portable |
//! |---|---|---|
//! | DES, 3DES | bit-sliced, 256 or 512 blocks, and a few by look-ups in registers: no branch or address depends on key or data | the same code, 64 blocks, and a few by look-ups in registers where there is AVX2 |
//! | Serpent | bit-sliced, 80 blocks | the same code, one block |
//! | Twofish | S-boxes in registers, 64 blocks or one | **not constant time**: S-boxes are read at places that depend on key and data |
//! | Camellia | S-boxes by GFNI, 64 blocks or one | **not constant time**: the S-box is read at places that depend on key and data |
//! | RC6 | multiplications and rotations whose time does not depend on what they work on, 80 blocks | the same code, one block |
//!
//! `cargo bench -p bywash-legacy --bench timing` asks with a statistical test whether the vector forms' times, of key schedules too, depend on key or data.
//!
//! # How many blocks it takes
//! A kernel takes as long for one block as for a group: 256 blocks of DES, 16 of Serpent and RC6, 64 of Twofish and Camellia. Up to 24
//! blocks of DES and 3DES, and a few of Twofish, Camellia, Serpent and RC6, go another way. Still short messages gain little or lose, and so does the
//! encryption of one stream in CBC mode, whose blocks wait for each other: DES and 3DES are 0.54 to 0.7 times as fast as the fastest library (0.7 to 0.9 of
//! OpenSSL), Serpent 0.8, Camellia 0.48 to 0.75 and Twofish 0.4. Those read tables at secret places. `cargo bench -p bywash-legacy --bench against_libraries` shows from which
//! size on a kernel pays. Many streams of DES and 3DES go side by side: [`des::encrypt_cbc_streams`].
#![cfg(target_arch = "x86_64")]
#![deny(unsafe_op_in_unsafe_fn)]

mod bytes;
mod camellia;
mod cipher;
pub mod des;
#[cfg(test)]
mod leftovers;
pub mod modes;
mod rc6;
mod serpent;
mod twofish;
mod word;
mod words;

pub use camellia::Camellia;
pub use cipher::{BadKey, BlockCipher, Form};
pub use rc6::Rc6;
pub use serpent::Serpent;
pub use twofish::Twofish;
