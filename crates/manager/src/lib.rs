//! The manager: sessions, queues, engines and one policy, on the real clock. Usable in any process, with no daemon.
//!
//! ```
//! use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
//! use bywash_manager::{Costs, Manager, ManagerConfig, probe};
//!
//! let mut config = ManagerConfig::new(probe().present);
//! config.costs = Costs::Given(Vec::new()); // else cost sheets are measured, and kept for this machine
//! let manager = Manager::new(config)?;
//! let session = manager.open(1, SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[7; 16]).into()))?)?;
//! let mut text = *b"to be hidden";
//! let (data, tag) = (Data::InPlace(&mut text), &mut [][..]);
//! let done = manager.run(session, &mut Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag })?;
//! assert_eq!((done.written, manager.engine_name(done.engine)), (12, "cpu"));
//! # Ok::<(), bywash_core::Error>(())
//! ```
//!
//! # Whose thread works
//!
//! - [`Manager::run`] blocks, and lends the calling thread: if the policy dispatches the request at once to a local engine
//!   ([`Engine::is_local`](bywash_core::Engine::is_local)), it runs there and then in the caller's own buffers; a lone request never changes threads, is not
//!   copied and wakes nobody. A request that has to wait is copied, so that it can join others in a batch; its caller sleeps until it is handed
//!   the batch to run, or the result.
//! - [`Manager::submit`] takes buffers over and returns at once; an engine's own threads work. They are started when first needed, at most as many as
//!   [`Engine::workers`](bywash_core::Engine::workers). What is dispatched at once to a local engine and takes less than waking a thread, some microseconds, is computed before it
//!   returns. Of threads that sleep, one is woken for what is brief, and wakes the next if there is more.
//! - Whoever's thread it is, a policy never has more batches on an engine than the engine has workers.
//! - One timer thread, started when there is first something to wait for, wakes for [`Decision::WaitUntil`](bywash_policy::Decision::WaitUntil) and for bounds. An idle
//!   manager uses no CPU.
//!
//! # When an engine fails
//!
//! An engine that answers [`EngineFailed`](bywash_core::Error::EngineFailed), panics, or holds a batch beyond [`ManagerConfig::stall_bound`] loses its requests to
//! the other engines that can do them; only when none is left does the request end with that error. Each attempt writes buffers of its own, so a late result is
//! dropped without harm, and each request ends exactly once. An engine that goes on failing is taken down, and tried again after a
//! probation that doubles each time; the last one up stays up, since an error is better than silence. A lent operation is watched by nobody: its caller is
//! inside the engine, which is why only local engines are lent callers. Requests that wait longer than [`ManagerConfig::request_bound`] end with
//! [`Timeout`](bywash_core::Error::Timeout).
//!
//! # Keys
//!
//! A session's keys live in the engines that have opened it, at first one of them. Closing wipes them as soon as the requests in flight have ended.
//! Session numbers carry a generation: a stale one is refused.
//!
//! # Inside
//!
//! | module | what |
//! |---|---|
//! | `manager` | the interface |
//! | `entrance`, `gather`, `inner`, `exit` | requests come in, some in company; the policy is asked and batches run; ends are told |
//! | `parts` | requests that the policy cuts, and what their parts computed put together |
//! | `state`, `bounds` | the bookkeeping under the one lock, with no thread and no engine in it |
//! | `threads` | workers and timer |
//! | `execute` | the boundary to engines, which no panic crosses |
//! | [`combine`] | threads that block form batches among themselves |
//! | [`calibrate`] | measures and caches cost sheets |
#![forbid(unsafe_code)]

mod bounds;
mod burst;
pub mod calibrate;
mod clock;
pub mod combine;
mod config;
mod counters;
mod engines;
mod entrance;
mod execute;
mod exit;
mod gather;
mod inner;
mod intake;
mod manager;
mod observe;
mod parts;
mod reload;
mod request;
mod session;
mod state;
mod threads;
mod wakes;

pub use bywash_engine_cpu::limit;
pub use bywash_policy::{EngineId, Held, Reason, RequestId, Tenant};
pub use clock::thread_ns;
pub use config::{Costs, ManagerConfig, PolicyKind};
pub use counters::{EngineStatus, Snapshot, Usage};
pub use engines::{EngineName, Engines, find, here, library, look_around, probe};
pub use inner::Begins;
pub use manager::Manager;
pub use observe::{Observation, Observer};
pub use reload::ReloadName;
pub use request::{Completion, Done, OnDone};
pub use session::SessionId;
