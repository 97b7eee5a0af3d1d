//! Key management and public-key operations, behaving as the default provider's.
//!
//! | operation | done by an engine | done by the twin |
//! |---|---|---|
//! | keys `RSA`, `EC`, `X25519`, `ED25519` | generating P-256, P-384 and X25519 pairs, TLS key shares, comparing and copying plain keys | everything else |
//! | signatures `RSA`, `ECDSA`, `ED25519` | RSA-1024/2048/3072/4096 signing (PKCS#1 v1.5, PSS, none), ECDSA P-256 and P-384, Ed25519 signing | verification with RSA and Ed25519, X9.31, other keys and digests |
//! | asymmetric cipher `RSA` | decryption (PKCS#1 v1.5, OAEP, none, TLS premaster secrets) | encryption, X9.31, other keys |
//! | key exchange `ECDH`, `X25519` | P-256, P-384 and X25519 without a KDF | other curves, KDFs |
//!
//! A key of a broker's vault has a twin of its public half; what an engine does above is done by that broker, and nothing private by the twin.
//!
//! The `twin` is the default provider itself, in a private library context. Every key and context of ours wraps one of its own (or makes it on
//! demand), and whatever an engine does not do is handed on as it came. So a program sees no operation fail that works without
//! Bywash, and errors are the ones it knows. In detail:
//!
//! - settings go to the twin, which checks and keeps them, and is asked for them before an engine is used: nothing is mirrored, so nothing can
//!   get out of step;
//! - an engine that fails, for whatever reason, is no failure: the twin does the operation;
//! - after an RSA block is decrypted nothing branches on it: removing its padding is left to the constant-time functions of libcrypto or done in
//!   constant time here (`tls`, `rejection`), and the twin is not asked again.

mod asynchronous;
mod begun;
mod cipher;
mod context;
mod der;
mod emsa;
mod evp;
mod exchange;
mod gather;
mod generate;
mod groups;
mod held;
mod key;
mod keymgmt;
mod native;
mod nist;
mod pairs;
mod parts;
mod rejection;
mod signature;
mod tls;
mod twin;
pub(crate) mod vault;

use crate::ffi::{AlgorithmEntry, Table};
pub(crate) use gather::attach;
pub(crate) use groups::offer as offer_groups;

/// An entry of a dispatch table; the function is checked to have the type that goes with its id.
macro_rules! entry {
    ($id:expr, $function:expr, $type:ty) => {
        $crate::ffi::DispatchEntry {
            id: $id,
            // SAFETY: a function is stored under the id whose type it has; libcrypto casts it back to that type.
            function: Some(unsafe { core::mem::transmute::<$type, $crate::ffi::Function>($function) }),
        }
    };
}
use entry;

/// Key managers.
pub static KEYMGMT: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", keymgmt::RSA.0),
    AlgorithmEntry::new(c"EC:id-ecPublicKey:1.2.840.10045.2.1", keymgmt::EC.0),
    AlgorithmEntry::new(c"X25519:1.3.101.110", keymgmt::X25519_MANAGER.0),
    AlgorithmEntry::new(c"ED25519:1.3.101.112", keymgmt::ED25519_MANAGER.0),
    AlgorithmEntry::END,
]);

/// Signatures.
pub static SIGNATURE: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", signature::RSA.0),
    AlgorithmEntry::new(c"ECDSA", signature::ECDSA.0),
    AlgorithmEntry::new(c"ED25519:1.3.101.112", signature::ED25519.0),
    AlgorithmEntry::END,
]);

/// Asymmetric ciphers.
pub static ASYM_CIPHER: Table<&[AlgorithmEntry]> =
    Table(&[AlgorithmEntry::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", cipher::RSA.0), AlgorithmEntry::END]);

/// Key exchanges.
pub static KEYEXCH: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::new(c"ECDH", exchange::ECDH.0),
    AlgorithmEntry::new(c"X25519:1.3.101.110", exchange::X25519_EXCHANGE.0),
    AlgorithmEntry::END,
]);

/// Bytes from hexadecimal digits, between which there may be white space.
#[cfg(test)]
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
