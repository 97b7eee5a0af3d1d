//! Key management and public-key operations.

use crate::ffi::{AlgorithmEntry, Table};

/// Key managers.
pub static KEYMGMT: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::END]);
/// Signatures.
pub static SIGNATURE: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::END]);
/// Asymmetric ciphers.
pub static ASYM_CIPHER: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::END]);
/// Key exchanges.
pub static KEYEXCH: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::END]);
