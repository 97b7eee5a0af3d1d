//! The daemon: one manager shared by many processes that trust neither each other nor, from its point of view, deserve trust.
//!
//! ```no_run
//! # fn main() -> bywash_core::Result<()> {
//! use bywash_broker::{Broker, BrokerConfig};
//! let manager = bywash_manager::Manager::new(bywash_manager::ManagerConfig::new(bywash_manager::probe().present))?;
//! let broker = Broker::bind(BrokerConfig::new(bywash_protocol::socket_path(), manager))?;
//! let handle = broker.handle(); // for signals, statistics, recordings
//! broker.run()?; // until handle.shutdown()
//! # drop(handle); Ok(()) }
//! ```
//!
//! # Threads
//!
//! One thread accepts. Each connection has a *control thread* for its messages, and from its first session on a *ring thread* that takes
//! requests out of its region. A lone request is computed by the ring thread itself (the manager's `run`), so it never changes threads;
//! when more are waiting, those that are worth a hand-over are submitted, so that an engine with lanes can pack them and other
//! processors can help. All of them sleep in the kernel while nothing arrives: an idle broker uses no processor.
//! All take short turns on the processor; the thread of an engine that computes for one session at a time goes before all of other programs, where the kernel
//! grants that and [`BrokerConfig::module_first`] says so.
//! A ring thread spins for a moment only while its requests have lately arrived close together, and only
//! some ring threads at a time.
//!
//! # What one client can do to another
//!
//! Share the machine, and nothing else. Each client has its own region, threads, session numbers and quotas ([`Quotas`]); what
//! it writes into its region is copied and then checked; a client that breaks the rules is disconnected with one log line, and its
//! user is let in again only after a while that doubles each time (its other processes work in place meanwhile);
//! one with a backlog keeps it in its own ring, since only so much of it is let before the manager's threads that others find one free;
//! one that floods the socket is slowed down; one that never reads its answers loses its connection as soon as its socket is full. Keys
//! go from the wiped message buffer straight into the manager.
//!
//! A connection is its process's: a message that another sends, as a forked child can, ends it. Who commands (the vault, recordings) has to be the owner when it connects and when it speaks.
//!
//! # What is told to whom
//!
//! | | |
//! |---|---|
//! | [`Stats`] | what ran where, for whom: as JSON, or for Prometheus; over the socket, in process, or, without who they are, on `127.0.0.1` ([`BrokerConfig::metrics`]) |
//! | accounts of tenants | [`TenantStats`]: what each has had of what it was promised ([`TenantRule`]); in [`Stats`] |
//! | the latest requests | [`RequestStats`]: why each went where it went, for `bywash explain` |
//! | recording | requests as [`bywash_core::trace`] lines: the broker's own and those that clients ran in place; losses are counted |
//! | log | by `tracing`: connections, refusals, misdeeds; repeated lines are counted instead of printed |
//!
//! Who is neither root nor the broker's own user is shown the clients and runs of their own user alone, and may not record.
//!
//! Counters of in-place work are the clients' own claims and are called so wherever they are shown. Times of modelled engines are marked.
#![forbid(unsafe_code)]

mod accounts;
mod audit;
mod behalf;
mod broker;
mod client;
mod config;
mod connection;
mod http;
mod keyring;
mod latency;
mod ledger;
mod lock;
mod precedence;
mod prometheus;
mod recent;
mod recorder;
mod routes;
mod sessions;
mod share;
mod stats;
mod tally;
mod telemetry;
mod tenants;
mod throttle;
mod users;
mod work;

pub use broker::{Broker, BrokerHandle};
pub use config::{BrokerConfig, HANDOVER_NS, Quotas, Waiting};
pub use ledger::{TenantStats, jain};
pub use recent::RequestStats;
pub use recorder::RecordingEnd;
pub use stats::{ClientStats, DeviceStats, EngineStats, LatencyStats, RunStats, Stats, WorkStats};
pub use tenants::{Match, TenantRule};
