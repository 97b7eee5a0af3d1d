//! The checks, by what they are about.

mod aead;
mod ciphers;
mod crashes;
mod errors;
mod files;
mod freebsd;
mod hashes;
mod keys;
mod lengths;
mod ring;
mod tls;

use crate::Check;

/// Every check.
pub fn all() -> Vec<Check> {
    let mut list = Vec::new();
    ciphers::add(&mut list);
    hashes::add(&mut list);
    aead::add(&mut list);
    tls::add(&mut list);
    errors::add(&mut list);
    lengths::add(&mut list);
    files::add(&mut list);
    ring::add(&mut list);
    crashes::add(&mut list);
    freebsd::add(&mut list);
    keys::add(&mut list);
    list
}
