//! Ciphers and AEADs.

use crate::ffi::{AlgorithmEntry, Table};

/// What is offered.
pub static ALGORITHMS: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::END]);
