//! Encrypted volumes as a file system: `bywash mount` and `bywash run --files`. `VOLUME.md` beside this crate specifies the volume.
//!
//! # The way of a request
//!
//! | module | what it knows |
//! |---|---|
//! | [`mount`](mod@mount), `point` | the kernel's connection: made, served by several threads, ended; its place in the tree of files |
//! | `serve` | the kernel's requests, one by one |
//! | [`direct`] | the same without a mount, for who answers system calls himself |
//! | `tree`, `entries`, `change`, `rights` | what they mean: files, names, attributes; what a write takes from a mode |
//! | `node`, `open`, `settle` | what the kernel knows; what is open; what is closed and not yet on the disk |
//! | `told` | what the log was told, so that it is not told again |
//! | [`fsck`] | all of a volume looked at |
//! | `lower`, `xattr` | the lower folders and attributes, by descriptor |
//! | [`private`] | mounts that only one program sees |
//! | [`format`](mod@format) | what a volume format has to say |
//! | [`native`], [`volume`], `names` | Bywash's own |
//! | [`gocryptfs`] | gocryptfs's, read and written |
//!
//! # What is promised
//! A program sees a file system of its own: everything that the lower one does for files, folders, links, pipes, modes, owners, times, `user.*` attributes,
//! memory maps, locks. After `fsync` what was written survives a power cut; a file closed without it is on the disk a few seconds later. The volume has one
//! writer at a time, this process.
#![forbid(unsafe_code)]

mod attr;
mod change;
#[cfg(test)]
mod cut;
pub mod direct;
mod entries;
pub mod format;
pub mod fsck;
pub mod gocryptfs;
#[cfg(test)]
mod left_behind;
mod lower;
pub mod mount;
mod names;
pub mod native;
mod node;
mod open;
mod point;
pub mod private;
mod refusal;
mod rights;
mod serve;
mod server;
mod settle;
mod told;
mod tree;
#[cfg(test)]
mod vectors;
pub mod volume;
mod xattr;

pub use bywash_files::leftover::VOLUME_FILE;
pub use lower::open_root;
pub use mount::{MountOptions, Mounted, Unmounter, mount, store, wait_until_settled};
pub use native::Native;
pub use server::Server;
pub use volume::{Options, Volume};
