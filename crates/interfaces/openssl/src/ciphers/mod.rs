//! Ciphers and AEADs, behaving as the default provider's do: same names, same parameters, same order of calls, same errors.
//!
//! | module | what it holds |
//! |---|---|
//! | `dispatch` | the `extern "C"` functions, one set for all, over the trait `Cipher` |
//! | `io` | the program's buffers: everything that touches a raw pointer |
//! | `work` | cipher and accounts of one context |
//! | `accounts` | what a context has not told the client yet |
//! | `block`, `ctr`, `xts`, `gcm`, `chacha` | one mode each |
//! | `delegated` | the default provider's cipher, for what is left to it |
//! | `spare` | ciphers between two contexts, without a key |
//! | `recurring` | GCM's with their keys, where a program gives the same ones again and again |
//! | `leftovers` | the stack, wiped when a context is freed |
//! | `passed` | whole contexts left to the default provider: those in place for which the engine has nothing better |
//!
//! # Where work runs
//!
//! What comes in one piece (an update of ECB, CBC or CTR, an XTS data unit, a TLS record of GCM or ChaCha20-Poly1305) is one operation,
//! and the routing table says where it runs. An AEAD message in pieces runs in the caller's place: it is over only when the tag is asked for.
//! A context made where everything stays in place has a cipher to itself, from its first byte on, which costs no more to make than the default provider's.
//!
//! # What is left to the default provider
//!
//! - CBC as TLS 1.0 to 1.2 use it with a separate MAC (`tls-version`): removing padding and MAC in constant time is its business.
//! - In place, all contexts where the engine has no cipher for one caller ([`Solo`](bywash_core::Solo)): its library is no faster there, and a session costs more
//!   than the few bytes most contexts are made for. In place is where the routing table keeps operations of every size and nobody records them, when the context is made.
//! - ChaCha20-Poly1305 altogether where the engine has no such cipher and nothing can leave the process: no route to a queue, and no broker's socket when libcrypto asks.
//! - Decryption with an XTS key of two equal halves, which it allows and [`SessionParams`](bywash_core::SessionParams) does not.

//!
//! # Where the behaviour of our contexts differs on purpose
//!
//! - ChaCha20-Poly1305 without a key, or with associated data after text, is an error here; there it makes bytes that nobody else would.
//! - Buffers that overlap, or in-place updates while a partial block waits, give the right bytes here.
//! - A new direction without a new key is honoured by ECB and CBC. In the midst of a message of ChaCha20-Poly1305 it ends that, and there must be an IV or a key before the next.
//! - A new key without an IV in the midst of a GCM encryption ends that, and there must be an IV before the next; there the message goes on under the other key.
//! - `EVP_Cipher` takes whole blocks of CBC; there the last one is filled up, and written as a whole behind the end of the output.
//! - ChaCha20-Poly1305 has at most (2^32 - 1) 64 bytes of text in a message (RFC 8439 s2.8); there the counter wraps. `EVP_CTRL_AEAD_SET_IV_FIXED` is taken with the next message, and after
//!   `EVP_CTRL_AEAD_TLS1_AAD` there is a record.

mod accounts;
mod block;
mod chacha;
mod ctr;
mod delegated;
mod dispatch;
mod gcm;
mod gcm_params;
mod io;
mod leftovers;
mod params;
mod passed;
mod recurring;
mod spare;
mod spec;
mod work;
mod xts;

use crate::ffi::{AlgorithmEntry, DispatchEntry, Table};
use bywash_core::Algorithm;
use dispatch::{Offered, functions};
pub(crate) use recurring::unload;
use spec::{Mode, Spec};

/// What a provider offers, with or without ChaCha20-Poly1305. Where nothing can leave the process and the engine has no cipher for one caller, that is left to the default provider
/// altogether: every context would be passed on to it, and not even a jump is lost to a program that never finds it here.
pub fn offered(with_chacha: bool) -> &'static [AlgorithmEntry] {
    if with_chacha { ALGORITHMS.0 } else { &ALGORITHMS.0[1..] }
}

macro_rules! offer {
    ($($name:literal $marker:ident: $context:ty, $mode:ident, $algorithm:ident;)*) => {
        $(
            struct $marker;
            impl Offered for $marker {
                type Context = $context;
                const SPEC: &'static Spec = &Spec::new(Algorithm::$algorithm, Mode::$mode);
            }
        )*
        /// What can be offered, the one first that is left out in place; under the default provider's names (`providers/implementations/include/prov/names.h`).
        static ALGORITHMS: Table<&[AlgorithmEntry]> = Table(&[
            $({
                const FUNCTIONS: &[DispatchEntry] = &functions::<$marker>();
                const NAMES: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(names) => names,
                    Err(_) => panic!("a name with a NUL in it"),
                };
                AlgorithmEntry::new(NAMES, FUNCTIONS)
            },)*
            AlgorithmEntry::END,
        ]);
    };
}

offer! {
    "ChaCha20-Poly1305" ChaCha: chacha::ChaCha, Stream, ChaCha20Poly1305;
    "AES-256-ECB:2.16.840.1.101.3.4.1.41" Ecb256: block::Block, Ecb, Aes256Ecb;
    "AES-192-ECB:2.16.840.1.101.3.4.1.21" Ecb192: block::Block, Ecb, Aes192Ecb;
    "AES-128-ECB:2.16.840.1.101.3.4.1.1" Ecb128: block::Block, Ecb, Aes128Ecb;
    "AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42" Cbc256: block::Block, Cbc, Aes256Cbc;
    "AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22" Cbc192: block::Block, Cbc, Aes192Cbc;
    "AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2" Cbc128: block::Block, Cbc, Aes128Cbc;
    "AES-256-CTR" Ctr256: ctr::Ctr, Ctr, Aes256Ctr;
    "AES-192-CTR" Ctr192: ctr::Ctr, Ctr, Aes192Ctr;
    "AES-128-CTR" Ctr128: ctr::Ctr, Ctr, Aes128Ctr;
    "AES-256-XTS:1.3.111.2.1619.0.1.2" Xts256: xts::Xts, Xts, Aes256Xts;
    "AES-128-XTS:1.3.111.2.1619.0.1.1" Xts128: xts::Xts, Xts, Aes128Xts;
    "AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46" Gcm256: gcm::Gcm, Gcm, Aes256Gcm;
    "AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26" Gcm192: gcm::Gcm, Gcm, Aes192Gcm;
    "AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6" Gcm128: gcm::Gcm, Gcm, Aes128Gcm;
}
