//! The proxy library: one interface to engines in this process and to a broker's.
//!
//! ```
//! use bywash_client::{Client, Config};
//! use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
//!
//! let client = Client::new(Config::default()); // no broker; Config::from_env() asks the environment
//! let session = client.session(SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[7; 16]).into()))?)?;
//! let mut text = *b"to be hidden";
//! let (data, tag) = (Data::InPlace(&mut text), &mut [][..]);
//! assert_eq!(session.run(&mut Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag })?, 12);
//! # Ok::<(), bywash_core::Error>(())
//! ```
//!
//! # Where an operation runs
//!
//! [`Client::place`] answers: *here*, in the calling thread on this process's CPU engine, or *queue*. With a broker the table is the broker's, on a
//! page that all clients share for reading; without one everything is *here*, unless [`Route::Queue`] says otherwise: then a manager of
//! this process's own takes the queue's part. [`Session::stream`] always works here.
//!
//! An event-driven thread need not compute each operation when it comes: it puts operations that gain from company in a [`Gather`] and has them
//! computed side by side when a batch is full or when it is about to block.
//!
//! # What is made when
//!
//! Making a client starts no thread, opens no file and cannot fail. The connection is made when the first session is opened, or by work in place
//! that finds none (a look every 64 operations of a thread), at most one attempt at a time and with waits from 100 ms to 2 s between
//! them (to 32 s for a broker that accepts but does not answer, since each attempt then costs its caller half a second). A session is opened at the
//! broker when its first operation goes there, so keys that are only used here never leave the process. The one thread of this crate watches
//! asynchronous operations at a broker; it starts with the first of them and ends with the connection. What is to go to the queue ([`Route::Queue`]) while another
//! thread makes the first connection waits for that, half a second at most: it would run here otherwise, and be past before there is a queue.
//!
//! Who computes for other processes ([`Clients`]) has a client for each, which the broker knows as that process.
//!
//! # When the broker dies, hangs, refuses or is full
//!
//! The operation is run here, exactly once, from the caller's own input: a queued operation works on a copy in the ring, and the caller's buffers are
//! written only when there is a result. A waiter looks every 50 ms whether the broker lives. One that lives but does not answer within
//! 3 s loses the operation, and the connection too if it has completed nothing at all for as long. No room in the ring or its arena is
//! no reason to wait: the operation runs here at once. [`Client::stats`] counts each of these; [`Client::status`] says in words how things stand.
//!
//! # Keys of a vault
//!
//! [`Client::vault_key`] looks a key up that only the broker holds; a session with [`Key::Vault`](bywash_core::Key::Vault) runs every operation there and
//! never here. A broker that restarts is waited for up to 2 s, if it was there a moment before; else the operation fails at once, naming the key and
//! what stands in the way. A session that the broker has ended (its key was rotated, its policy changed) is opened again.
//!
//! # Forks
//!
//! A child never touches its parent's ring: the first use of the client in the child drops the connection (the child's copy of the socket is closed, the
//! parent's lives on) and a new one is made on demand. Sessions go on working in both. Nothing on the way of an operation in place
//! is ever locked, and what is locked belongs to a connection or a manager that the child replaces as a whole without looking into it, so a fork in the midst of
//! other threads' work cannot leave the child waiting. A [`Pending`] belongs to the process that submitted it.
//!
//! # Accounts
//!
//! Work in place is counted in the connection's shared counters, or kept until there is a connection. While the broker records, each operation in place
//! and each message of a stream leaves a line in the connection's trace ring.
#![forbid(unsafe_code)]

mod attempts;
mod behalf;
mod by_user;
mod client;
mod config;
mod counted;
mod crowd;
mod embedded;
mod extent;
mod gather;
mod kept;
mod life;
mod link;
mod many;
mod pending;
mod readiness;
mod reaper;
mod remote;
mod session;
mod traced;
mod upstream;
mod usage;
mod watch;

pub use behalf::{Behalf, Clients, Watched};
pub use by_user::{Counted, Counts};
pub use client::{Began, Client, Stats};
pub use config::{Config, Route, parse_keep};
pub use extent::Extent;
pub use gather::{Gather, Moment, Ticket};
pub use kept::{AGE_MS, KEPT_MAX, Kept, Seen, Tag};
pub use many::run_many;
pub use pending::Pending;
pub use readiness::Readiness;
pub use session::Session;
pub use traced::Looks;
pub use watch::Watch;

/// Settings in the environment, for interfaces.
pub use bywash_protocol::environment::variable;
/// Files that name keys of a vault, the public halves in them, and how forks are noticed, for interfaces.
pub use bywash_protocol::{ForkGuard, Generation, KeyAlgorithm, PublicKey, key_file};
