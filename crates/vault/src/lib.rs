//! The vault: private keys that live in the broker alone.
//!
//! | module | what it holds |
//! |---|---|
//! | [`source`] | keys as they come from elsewhere, in every usual dress, brought to PKCS#8 |
//! | [`material`] | a key that was checked, on locked pages; made, or taken from PKCS#8 |
//! | [`seal`] | encryption at rest, under a passphrase |
//! | [`folder`] | one file a key, readable by their owner alone, written whole or not at all |
//! | [`vault`](mod@vault) | keys by name: importing, making, rotating, removing, finding |
//! | [`wrap`] | a key on its way out of a token |
//! | [`padding`] | what tells an RSA signature from a decryption |
//!
//! # At rest
//!
//! A key's file is JSON: name, policy, times, public half, and the private key in PKCS#8. With a passphrase the private key is encrypted by
//! AES-256-GCM under a key that scrypt (RFC 7914; N = 2^17, r = 8, p = 1) makes of the passphrase, and everything else in the file is
//! authenticated with it, so that a policy cannot be changed by who lacks the passphrase. Without one the private key stands there as it is, and
//! the file's mode, 0600, is all that guards it.
//!
//! # In memory
//!
//! Each key lies on pages of its own, locked where the system allows it, left out of core dumps, wiped when they are given back. An engine that is
//! handed a key keeps its own form of it; `harden_process` locks that too where the limit on locking is lifted.
#![forbid(unsafe_code)]

pub mod folder;
pub mod material;
pub mod padding;
pub mod seal;
pub mod source;
pub mod vault;
pub mod wrap;

pub use material::Material;
pub use vault::{Found, Vault};
