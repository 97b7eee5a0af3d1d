//! Requests to a device, from a program whose memory is made up. What programs see is checked by the probe (`tests/probe.rs`); here is what only
//! the dispatcher's own side shows.

mod ciphers;
mod explained;
mod lives;
mod moves;
mod numbers;
mod reads;
