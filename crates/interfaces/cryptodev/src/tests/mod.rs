//! Requests to a device, from a program whose memory is made up.

mod ciphers;
mod numbers;
