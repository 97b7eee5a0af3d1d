//! The proxy library: one interface to engines in this process and to a broker's.
//!
//! ```text
//! Client::new(Config)  ->  client.session(SessionParams)  ->  session.run(&mut Operation)      blocking
//!                                                             session.submit(OwnedOperation)   -> Pending
//!                                                             session.stream(direction, iv)    a message in pieces
//! ```
//!
//! Making a client starts no thread, opens no file and cannot fail.
#![forbid(unsafe_code)]

mod client;
mod config;
mod pending;
mod session;
mod usage;

pub use client::Client;
pub use config::{Config, Route};
pub use pending::Pending;
pub use session::Session;
