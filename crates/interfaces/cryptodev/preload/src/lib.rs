//! Preload library: `/dev/crypto` for unmodified programs that are linked dynamically.
//!
//! A program that speaks the OCF or cryptodev interface opens `/dev/crypto` and asks by `ioctl`. With this library in front of libc (`LD_PRELOAD`; `bywash run --devcrypto` sets it)
//! an open that the kernel has answered with "no such file" gives a descriptor, and what is asked of it is answered by `bywash-cryptodev` in the calling thread. `README.md` of
//! this folder says how known clients are run and what differs from a device of the kernel's.
//!
//! This is the thin half, which every process of such a run loads: it allocates nothing, starts nothing, and costs other programs one
//! look at a table in each of the calls that it stands in front of. The half with the engines is loaded at the first open (`bywash-cryptodev-loaded`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`open`], [`exists`] | opening the device; looking whether it is there |
//! | [`ioctl`] | asking it |
//! | [`descriptors`] | closing, copying, reading and writing descriptors |
//! | [`signals`], `memory` | pointers of the program's that may be bad |
//! | `table` | which descriptors are ours |
//! | `socket` | what stands for the device: poll(2) and its relatives see when something is ready |
//! | `gate`, `word` | forks, which wait until no thread is in a request |
//! | `loader` | the other half |
//! | `path`, `tell`, `real` | is this path the device; lines on standard error; the functions that this library stands in front of |

pub mod descriptors;
pub mod exists;
mod gate;
pub mod ioctl;
mod loader;
mod memory;
pub mod open;
mod path;
mod real;
pub mod signals;
mod socket;
mod table;
mod tell;
mod word;
