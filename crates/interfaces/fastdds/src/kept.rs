//! What a thread keeps ready: ciphers with their keys expanded, and the values of derivations.
//!
//! Each thread has its own, so there is no lock that a fork could find held, and what one thread sees of another's timing is nothing. Found by a keyed hash and
//! compared in constant time; wiped when it goes.

use bywash_client::{Client, Config};
use bywash_core::secret::constant_time_eq;
use bywash_core::{Algorithm, Solo};
use bywash_dds::{KeyBytes, hmac_sha256};
use core::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Ciphers a thread keeps. Each takes some 3 KiB.
const CIPHERS: usize = 64;
/// Values of derivations a thread keeps.
const VALUES: usize = 128;
/// The longest message that a derivation of DDS Security has: `SessionReceiverKey`, a salt of 32 bytes, a session's number.
pub(crate) const MESSAGE_MAX: usize = 96;

/// A key and a message, one after the other.
pub(crate) type Name = Zeroizing<Vec<u8>>;

/// A cipher with its key expanded, and the hash by which it is found.
pub(crate) struct Cipher {
    hash: u64,
    algorithm: Algorithm,
    pub(crate) solo: Box<dyn Solo>,
}

struct Kept {
    ciphers: VecDeque<Cipher>,
    values: VecDeque<Value>,
}

struct Value {
    hash: u64,
    key_len: usize,
    name: Name,
    value: KeyBytes,
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { ciphers: VecDeque::new(), values: VecDeque::new() }) };
}

/// One hash for all threads: a context may end in another than it began in.
fn hash(name: &[u8]) -> u64 {
    static HASHER: OnceLock<RandomState> = OnceLock::new();
    HASHER.get_or_init(RandomState::new).hash_one(name)
}

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| Client::new(Config::from_env().unwrap_or_default()))
}

fn algorithm(key: &[u8]) -> Option<Algorithm> {
    match key.len() {
        16 => Some(Algorithm::Aes128Gcm),
        32 => Some(Algorithm::Aes256Gcm),
        _ => None,
    }
}

/// A cipher with this key; none where there is no kernel that is faster than libcrypto, or the user wants the work at the broker.
pub(crate) fn cipher(key: &[u8]) -> Option<Cipher> {
    let algorithm = algorithm(key)?;
    let hash = hash(key);
    let found = KEPT.try_with(|kept| {
        let ciphers = &mut kept.try_borrow_mut().ok()?.ciphers;
        let is_it = |kept: &Cipher| kept.hash == hash && kept.solo.key().is_some_and(|kept| constant_time_eq(kept, key));
        let index = ciphers.iter().position(is_it)?;
        ciphers.remove(index)
    });
    if let Ok(Some(cipher)) = found {
        return Some(cipher);
    }
    if !client().keeps(algorithm) {
        return None;
    }
    let mut solo = client().solo(algorithm)?;
    solo.set_key(key).ok().map(|()| Cipher { hash, algorithm, solo })
}

/// Keeps a cipher for the next message under its key; what is longest unused goes.
pub(crate) fn keep(cipher: Cipher, bytes: u64) {
    client().count(cipher.algorithm, 1, bytes);
    // A thread that is ending keeps nothing.
    let _ = KEPT.try_with(|kept| {
        let Ok(mut kept) = kept.try_borrow_mut() else { return };
        if kept.ciphers.len() == CIPHERS {
            kept.ciphers.pop_back();
        }
        kept.ciphers.push_front(cipher);
    });
}

/// HMAC-SHA-256 of a message under a key, which come one after the other in `name`.
pub(crate) fn derive(name: &[u8], key_len: usize) -> KeyBytes {
    let made = || {
        let (key, message) = name.split_at(key_len);
        hmac_sha256(key, &[message])
    };
    let found = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        let hash = hash(name);
        let is_it = |kept: &Value| kept.hash == hash && kept.key_len == key_len && constant_time_eq(&kept.name, name);
        if let Some(mut index) = kept.values.iter().position(is_it) {
            // The last go first: what is in use does not stay among them.
            if index > VALUES / 2 {
                kept.values.swap(index, 0);
                index = 0;
            }
            return Some(kept.values[index].value.clone());
        }
        let value = made();
        if kept.values.len() == VALUES {
            kept.values.pop_back();
        }
        kept.values.push_front(Value { hash, key_len, name: Zeroizing::new(name.to_vec()), value: value.clone() });
        Some(value)
    });
    found.ok().flatten().unwrap_or_else(made)
}
