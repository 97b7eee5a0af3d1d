//! The Python package's native half: `bywash._native`. What users see is in `python/bywash`, which is thin; README.md shows it.
//!
//! | module | what |
//! |---|---|
//! | `keys` | passphrases, key files, recipients and identities, kept on this side and wiped when they are dropped |
//! | `whole` | `encrypt` and `decrypt`: bytes, files, file objects |
//! | `memory` | containers that lie in memory |
//! | `objects` | Python's file objects as streams |
//! | `watch` | Ctrl-C, looked for meanwhile |
//! | `file` | containers read and written in place |
//! | `session` | an algorithm with a key |
//! | `numbers` | numbers within their ranges |
//! | `bytes` | bytes that are filled while Python is let go of |
//! | `engines` | which engines there are, and a client for one of them |
//! | `simulate` | one policy on one modelled engine |
//! | `error` | exceptions |
//!
//! Python is let go of while anything is computed. No panic goes through: it becomes a `bywash.InternalError`. There is no `unsafe` here but in `bytes` and
//! what PyO3's macros write.
#![deny(unsafe_code)]

mod bytes;
mod engines;
mod error;
mod file;
mod keys;
mod memory;
mod numbers;
mod objects;
mod session;
mod simulate;
mod watch;
mod whole;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::engines::engines;
    #[pymodule_export]
    use super::file::File;
    #[pymodule_export]
    use super::keys::{Keys, generate_identity, generate_key_file};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::whole::{decrypt, encrypt};
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "so Python calls it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
