//! OpenSSL's configuration file: found, read, and written anew with our provider first.
//!
//! OpenSSL reads one file, named by `OPENSSL_CONF` or built into the library, and in it one section, named by the entry `openssl_conf`
//! of the default section (`config(5)`). `bywash run` hands programs a file of its own that
//!
//! 1. includes the user's file, so that every other setting in it (TLS versions, `req` defaults, object names) stays in force;
//! 2. reopens the user's initialisation section, where a later entry replaces an earlier one, and puts another list of providers there:
//!    ours first, then the user's in their order.
//!
//! [`parse`] reads a file as OpenSSL does, [`generate()`] is a pure function from what was read to the text to write, [`find`] says which file
//! OpenSSL would take.

pub(crate) mod find;
pub(crate) mod generate;
pub(crate) mod parse;

pub(crate) use find::user_conf;
pub(crate) use generate::{ProviderEntry, generate};
