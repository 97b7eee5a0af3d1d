//! `/dev/crypto` as a character device in user space (CUSE), for every program of a machine whose kernel has `/dev/cuse`.
//!
//! The kernel turns opens, requests and polls of the device into messages ([`wire`]) that this crate answers with a [`bywash_cryptodev::Device`] for each
//! open file description. Nothing is loaded into programs, and nothing watches them.
//!
//! # The program's memory
//!
//! A message carries only the argument's address. What lies there is fetched by asking the kernel to send the request again with it: first the argument
//! itself, then what it points to, then the request is computed, then the kernel is asked to send it a last time with room for what is to
//! be written. A request is computed once, whatever the number of messages.
//!
//! # Deviations, beside those of the dispatcher
//!
//! - What a request reads, its argument included, is at most 124 KiB: the kernel carries 128 KiB in a message, and the answer must have room too. More is E2BIG.
//! - CRIOGET is EOPNOTSUPP: nothing can put a descriptor into a program here. The device can be opened again, or its descriptor dup'ed.
//! - Every request of a program in a pid namespace that the server's does not contain (another container's) is EOPNOTSUPP: the kernel does not say which of its threads asks, so results
//!   of two of its processes could be mixed up. Serve it from the outermost namespace.
//! - A session that only hashes, told to decipher, hashes what `dst` points to; here that is not fetched: EFAULT, where it is not also `src`.
//! - Deciphering SRTP with tag_len 0, 64 bytes are read at the tag's address, however long the session's tag is.
//! - 16 bytes are read at an IV's address, also of ciphers whose IV is shorter: 8 readable bytes at the very end of a mapping are EFAULT.
//! - Requests of 32-bit programs are ENOTTY. FreeBSD's dialect is EINVAL.
//! - One user has at most 1,024 opens (then ENFILE), 65,536 sessions, and 1,024 requests that wait for their turn or for the kernel to fetch their result (then ENOMEM), root too; all users have four
//!   times as many. Requests of one user are computed in at most half of the threads that others leave, of 32.
//! - A signal does not break a request off; a killed program's request is computed to its end.
#![forbid(unsafe_code)]

mod fetched;
mod reads;
mod server;
mod turns;
pub mod wire;

pub use server::{Error, serve, serve_device};

/// Where the kernel offers to make character devices.
pub const CUSE: &str = "/dev/cuse";
