//! The vocabulary of Bywash, and nothing else: no I/O, no threads, no clock, no `unsafe`.
//!
//! Every other crate speaks in these words:
//!
//! | word | type | meaning |
//! |---|---|---|
//! | algorithm | [`Algorithm`] | a named primitive and mode, e.g. `AES-256-GCM`, `RSA-2048 private` |
//! | session | [`SessionParams`] | an algorithm bound to a key; validated here, once, for every engine |
//! | operation | [`Operation`], [`OwnedOperation`] | one computation on one session: input, output place, IV, tag |
//! | engine | [`Engine`] | what computes operations; declares [capabilities](Engine::capabilities), decides nothing |
//! | keyed | [`Keyed`] | a session as one engine holds it: key schedule done, ready to run |
//! | cost sheet | [`CostSheet`] | what an operation costs on an engine; measured, or written from a data sheet |
//! | device sheet | [`DeviceSheet`] | what an engine holds, what loading costs it, and what its circuits do |
//! | place | [`Place`] | where an operation is to run: *here*, in the caller, or in the *queue* of a manager |
//! | host memory | [`HostMemory`] | texts that engines beyond the processor reach by themselves |
//! | trace | [`trace::Record`] | what is remembered of a request: never a key, never data |
//!
//! # How to read this crate
//!
//! Start with [`algorithm`], whose table is the one place an algorithm is added; then [`session`] and [`operation`],
//! where all validation lives (an engine may trust every length it is given); then [`engine`], the trait that CPU
//! kernels, GPUs and modelled boards implement alike.
//!
//! # Secrets
//!
//! Keys live in [`SecretBytes`]: zeroised when dropped, never printed by `Debug`, compared in constant time.
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod cost;
pub mod device;
pub mod divide;
pub mod dsa;
pub mod engine;
pub mod error;
pub mod key;
pub mod memory;
pub mod number;
pub mod operation;
pub mod route;
pub mod secret;
pub mod session;
pub mod sheets;
pub mod solo;
pub mod time;
pub mod trace;

pub use algorithm::{Algorithm, Kind};
pub use cost::{CostCurve, CostSheet};
pub use device::DeviceSheet;
pub use dsa::{DsaGroup, DsaSign, DsaVerify};
pub use engine::{AAD_USUAL, Absent, Engine, Hashing, Keyed, Probe, Stream, Task};
pub use error::{Error, Result};
pub use key::{Key, KeyReference, RsaPrivateKey, RsaPublicKey};
pub use memory::HostMemory;
pub use number::{CrtExp, ModExp};
pub use operation::{Data, Direction, Operation, OwnedOperation};
pub use route::{Place, SizeClass};
pub use secret::{SecretBytes, SecretVec, wipe};
pub use session::SessionParams;
pub use solo::Solo;
pub use time::Time;
