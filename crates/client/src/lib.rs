//! The proxy library: one interface to engines in this process and to a broker's.
#![forbid(unsafe_code)]

mod attempts;
mod client;
mod config;
mod embedded;
mod life;
mod link;
mod pending;
mod readiness;
mod reaper;
mod remote;
mod session;
mod traced;
mod upstream;
mod usage;

pub use client::{Client, Stats};
pub use config::{Config, Route};
pub use pending::Pending;
pub use readiness::Readiness;
pub use session::Session;
