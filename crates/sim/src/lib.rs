//! The policies on a virtual clock: a trace in, latency and load out.
//!
//! What is simulated here is a machine with one processor and one reconfigurable engine; [`replay`] alone has more engines, and no bound is known there. As niwa2005 has it (s2, s5.4),
//! requests are served one after the other, each in software or on its circuit, or [side by side](parallel); an engine of several lanes serves as many at a time.
//! The [`Reload`](bywash_policy::reload::Reload) objects that decide are the very ones that run live.
//!
//! | module | what it is |
//! |---|---|
//! | [`trace`] | requests: when, which circuit, how many bytes |
//! | [`generate`] | the paper's generator of them |
//! | [`log`] | requests of real machines |
//! | [`lines`] | their lines, whatever the file is |
//! | [`asked`] | requests at a time or after the result of another, and which a recording's are |
//! | [`machine`] | what requests cost in software and on circuits, and what loading costs |
//! | [`serial`] | the run itself |
//! | [`watch`] | what is seen of a run while it lasts |
//! | [`parallel`] | the run of a machine whose software and engine work side by side |
//! | [`replay`] | a whole machine: any policy over any engines, to hold a recording of a live run against |
//! | [`shared`] | one module that many programs want at once: any policy, and what becomes of each program |
//! | [`module`] | one module and recorded requests, or such as a recording might have: any policy, and what each tenant has of it |
//! | [`study`] | the policies by name, what is tried, and what came of it |
//! | [`oracle`] | the paper's predictor that sees the future |
//! | [`mod@optimum`] | the least time in which a trace can be served, whoever decides; side by side a bound of it |
//! | [`niwa2005`] | that paper's machine, its seven models, its published figures |
//!
//! A run depends on its inputs and seeds alone: no clock, no order of hashing, no function of the platform's mathematical library.
#![forbid(unsafe_code)]

pub mod asked;
pub mod generate;
mod keys;
mod lanes;
pub mod lines;
pub mod log;
pub mod machine;
pub mod module;
pub mod niwa2005;
pub mod optimum;
pub mod oracle;
pub mod parallel;
mod presence;
pub mod replay;
pub mod serial;
pub mod shared;
pub mod study;
pub mod trace;
pub mod watch;

pub use machine::Machine;
pub use serial::{Report, run};
pub use trace::Trace;
