//! OpenSSL 3 provider: any program built on OpenSSL reaches Bywash by configuration alone.
//!
//! ```ini
//! openssl_conf = init
//! [init]
//! providers = providers
//! [providers]
//! bywash = bywash
//! default = default_sect
//! [bywash]
//! module = /usr/lib/bywash/libbywash_openssl.so
//! activate = 1
//! # optional, overriding the environment: socket = PATH, route = auto|here|queue, run = NAME
//! [default_sect]
//! activate = 1
//! ```
//!
//! Bywash must come first: libcrypto takes the first provider that offers an algorithm.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ffi`] | the provider ABI, parameters, libcrypto's public functions: written by hand, no private structures |
//! | [`provider`] | entry point, configuration, the table of what is offered |
//! | [`ciphers`] | ciphers and AEADs, behaving as the default provider's |
//! | [`kdf`] | key derivation of TLS 1.2 and 1.3 |
//! | [`pkey`] | key management, signatures, decryption, key exchange |
//! | [`keys`] | keys of a broker's vault: the files and URIs that name them |
//! | `ahead` | whether a thread makes ahead what it gives away once |
//! | `stack` | what functions that have returned leave there |
//! | `random` | random bytes of libcrypto's generator |
//! | [`delegate`] | the default provider in a private library context, for all that Bywash does not do itself |
//! | [`errors`] | errors in the program's own queue, with the default provider's reasons |
//!
//! # Rules
//!
//! - Loading never fails, prints nothing and starts no thread. Without a client nothing is offered, and libcrypto goes to the next provider.
//! - No panic crosses into C: every function runs under [`guard`](ffi::guard()).
//! - Once loaded the module stays in memory (`-z nodelete`).

mod ahead;
pub mod ciphers;
pub mod delegate;
pub mod errors;
pub mod ffi;
pub mod kdf;
pub mod keys;
pub mod pkey;
pub mod provider;
mod random;
mod stack;
