//! What `/dev/crypto` does with a request, whoever carries it.
//!
//! A transport (a preload library, a supervisor, a character device in user space) catches the program's `open` and `ioctl`, makes a [`Device`] for each open
//! file, and hands it every request together with the [`Memory`] of the program, which may be its own or another process's.
//! The device knows sessions and what each request means; where an operation is computed is for the client to say, piece by piece.
#![forbid(unsafe_code)]

mod aead;
mod auth;
mod bounce;
mod cipher;
mod copy;
mod crypt;
mod device;
mod errno;
mod freebsd;
mod freebsd_crypt;
mod hash;
mod info;
mod key;
mod kinds;
mod memory;
mod open;
mod refusal;
mod ring;
mod session;
mod srtp;
mod table;
mod tls;

pub use device::{Answer, Device, Readiness, is_request};
pub use errno::Errno;
pub use memory::Memory;
pub use refusal::Refusal;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
