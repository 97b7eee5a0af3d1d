//! System calls of other programs, stopped in the kernel and answered by this process (`seccomp_unotify(2)`), whatever they are stopped for.
//!
//! [`attach`] starts a program under a filter ([`bpf`]); [`listener`] is told of its stopped calls; [`pool`] has the threads that answer them; [`thread`] reaches into
//! the stopped program, where [`reach`] says that it may, and keeps it a descendant ([`orphans`]); [`pairs`] are descriptors of ours that it holds. What is stopped and what is answered is for those who use this: `/dev/crypto` of
//! `bywash-cryptodev-supervisor`, encrypted files of `bywash-hook`.
#![warn(rustdoc::broken_intra_doc_links)]

pub mod attach;
pub mod bpf;
mod error;
pub mod listener;
pub mod orphans;
pub mod pairs;
pub mod pool;
pub mod reach;
mod same;
mod setuid;
pub mod thread;

pub use error::Error;
pub use libc::sock_filter;
pub use same::{Same, is_open};
pub use setuid::file_of;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each descriptor that a program has of us costs two here. After the program has been started, which should have the limit that it would have had.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without it fewer can be open: an open then says ENFILE.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
