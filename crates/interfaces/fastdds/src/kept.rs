//! What a thread keeps ready: ciphers with their keys expanded, and the values of derivations.
//!
//! Not `bywash_client::Kept`, which has a clock read and up to 64 tags compared for each message, and waits for a key's second use: here it is known that a session's key comes again, and four
//! places are looked at.
//!
//! Each thread has its own, so there is no lock that a fork could find held, and what one thread sees of another's timing is nothing. Found by a keyed hash and
//! compared in constant time; wiped when it goes.

use crate::counts::{From, Of, count};
use crate::table::{Hashed, Table};
use bywash_client::{Began, Extent, Looks};
use bywash_core::secret::{constant_time_eq, wipe};
use bywash_core::{Algorithm, Direction, Solo};
use bywash_dds::{client, hmac_sha256};
use core::cell::RefCell;
use once_cell::race::OnceBox;
use std::hash::{BuildHasher, RandomState};

/// Values of derivations that a thread keeps for each cipher that it may keep (`BYWASH_KEEP`; each of some 3 KiB): of a message with tags for single receivers two come.
const VALUES: usize = 2;
/// Values that have not proved themselves: one of a message's key and one of its receiver's. Anybody can have some derived, by naming a session that does not exist.
const TRIALS: usize = 2;
/// The longest key that HMAC-SHA-256 does not hash first.
pub(crate) const KEY_MAX: usize = 64;
/// The longest message that a derivation of DDS Security has: `SessionReceiverKey`, a salt of 32 bytes, a session's number.
pub(crate) const MESSAGE_MAX: usize = 96;
/// What the derivations of sessions' keys begin with.
const SESSIONS: [&[u8]; 2] = [b"SessionKey", b"SessionReceiverKey"];
/// Bytes of HMAC-SHA-256.
pub(crate) const DIGEST: usize = 32;
/// Messages after which a thread tells how many there were: each by itself would cost as much as finding its cipher.
const TELL_EVERY: u64 = 64;

/// A cipher with its key expanded, and the hash by which it is found.
pub(crate) struct Cipher {
    hash: u64,
    algorithm: Algorithm,
    pub(crate) solo: Box<dyn Solo>,
    /// Whether a message under its key was made here, or proved authentic. Keys of others' messages come from numbers that anybody can send.
    pub(crate) is_proved: bool,
    /// What its key is called in a broker's trace.
    number: u32,
    /// When the message began, if a broker records.
    began: Option<Began>,
}

impl Cipher {
    /// The message has ended: it is in the trace of a broker that records.
    #[inline]
    pub(crate) fn trace(&mut self, direction: Direction, extent: Extent) {
        if let Some(began) = self.began.take()
            && extent.bytes() > 0
        {
            client().trace(began, self.number, self.algorithm, direction, extent);
        }
    }
}

impl Hashed for Cipher {
    fn hash(&self) -> u64 {
        self.hash
    }
}

struct Kept {
    ciphers: Table<Cipher>,
    /// Those under which a message has proved authentic, or was made here.
    values: Table<Box<Value>>,
    /// Those that came last, the latest first.
    trials: [Option<Box<Value>>; TRIALS],
    /// Messages and bytes that nobody was told of yet. In a forked child they are counted twice.
    untold: [(Algorithm, u64, u64); 2],
    looks: Looks,
}

impl Kept {
    const NOTHING: Self = Self {
        ciphers: Table::new(),
        values: Table::new(),
        trials: [const { None }; TRIALS],
        untold: [(Algorithm::Aes128Gcm, 0, 0), (Algorithm::Aes256Gcm, 0, 0)],
        looks: Looks::new(),
    };

    /// The value of that hash that is the one.
    fn value(&mut self, hash: u64, is_it: impl Fn(&Value) -> bool) -> Option<&Value> {
        if let Some(at) = self.trials.iter().position(|place| place.as_ref().is_some_and(|value| value.hash == hash && is_it(value))) {
            self.trials[..=at].rotate_right(1);
            return self.trials[0].as_deref();
        }
        self.values.get(hash, |value| is_it(value)).map(|value| &**value)
    }

    fn count(&mut self, algorithm: Algorithm, bytes: u64) {
        for (of, messages, sum) in &mut self.untold {
            if *of == algorithm {
                (*messages, *sum) = (*messages + 1, *sum + bytes);
                if *messages >= TELL_EVERY {
                    client().count(algorithm, core::mem::take(messages), core::mem::take(sum));
                }
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (algorithm, messages, bytes) in self.untold {
            if messages > 0 {
                client().count(algorithm, messages, bytes);
            }
        }
    }
}

/// A value of a derivation, with the key and behind it the message that it is of. Wiped when dropped; in a place of its own from the beginning, for one that is moved leaves its bytes behind.
struct Value {
    hash: u64,
    key_len: u32,
    name_len: u32,
    name: [u8; KEY_MAX + MESSAGE_MAX],
    value: [u8; DIGEST],
}

impl Hashed for Box<Value> {
    fn hash(&self) -> u64 {
        self.hash
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        wipe(&mut self.name);
        wipe(&mut self.value);
    }
}

/// A value that has yet to prove itself, by its hash: in the thread that derived it, and as long as it is there.
pub(crate) struct Trial(u64);

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::NOTHING) };
}

/// One hash for all threads: a context may end in another than it began in.
fn hash(name: &[u8]) -> u64 {
    // No lock: the child of a fork would wait for it for ever.
    static HASHER: OnceBox<RandomState> = OnceBox::new();
    HASHER.get_or_init(|| Box::new(RandomState::new())).hash_one(name)
}

/// Makes what all threads share, and says what is wrong with the settings.
pub(crate) fn prepare() {
    hash(&[]);
    client();
    bywash_dds::random::process();
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
    let is_it = |kept: &Cipher| kept.solo.key().is_some_and(|kept| constant_time_eq(kept, key));
    let found = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        Some((kept.looks.begin(client()), kept.ciphers.take(hash, is_it)))
    });
    let (began, kept) = found.ok().flatten().unwrap_or((None, None));
    if let Some(cipher) = kept {
        count(Of::Contexts, From::Ready);
        return Some(Cipher { began, ..cipher });
    }
    if !client().keeps_or_traces(algorithm) {
        return None;
    }
    let mut solo = client().solo(algorithm)?;
    solo.set_key(key).ok()?;
    count(Of::Contexts, From::Anew);
    Some(Cipher { hash, algorithm, solo, is_proved: false, number: client().number(), began: began.or_else(|| client().begin()) })
}

/// Keeps a cipher for the next message under its key, if it has proved itself; what is longest unused goes.
pub(crate) fn keep(mut cipher: Cipher, direction: Direction, extent: Extent) {
    cipher.trace(direction, extent);
    // A thread that is ending keeps nothing.
    let _ = KEPT.try_with(|kept| {
        if let Ok(mut kept) = kept.try_borrow_mut() {
            kept.count(cipher.algorithm, extent.bytes());
            if cipher.is_proved {
                kept.ciphers.put(cipher, client().keeps_most());
            }
        }
    });
}

/// HMAC-SHA-256 of a message under a key, which come one after the other in `name`, of at most [`KEY_MAX`] and [`MESSAGE_MAX`] bytes. Found again are the keys of sessions
/// (DDS Security 1.1 s9.5.3.3.3); what else Fast DDS derives, from the secret of a handshake, it needs once.
pub(crate) fn derive(name: &[u8], key_len: usize, out: &mut [u8; DIGEST]) {
    let (key, message) = name.split_at(key_len);
    if !SESSIONS.iter().any(|label| message.starts_with(label)) {
        count(Of::Keys, From::Anew);
        out.copy_from_slice(&*hmac_sha256(key, &[message]));
        return;
    }
    let hash = hash(name);
    let is_it = |kept: &Value| kept.key_len as usize == key_len && constant_time_eq(&kept.name[..kept.name_len as usize], name);
    let found = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        *out = kept.value(hash, is_it)?.value;
        Some(())
    });
    if let Ok(Some(())) = found {
        return count(Of::Keys, From::Ready);
    }
    count(Of::Keys, From::Anew);
    out.copy_from_slice(&*hmac_sha256(key, &[message]));
    let (name_len, empty) = (name.len(), [0; KEY_MAX + MESSAGE_MAX]);
    let mut new = Box::new(Value { hash, key_len: key_len as u32, name_len: name_len as u32, name: empty, value: [0; DIGEST] });
    new.name[..name_len].copy_from_slice(name);
    new.value.copy_from_slice(out);
    let _ = KEPT.try_with(|kept| {
        if let Ok(mut kept) = kept.try_borrow_mut() {
            // Whether the message with that session's number is authentic is found out later.
            kept.trials.rotate_right(1);
            kept.trials[0] = (client().keeps_most() > 0).then_some(new);
        }
    });
}

/// Whether a value is kept that has proved itself.
#[cfg(test)]
pub(crate) fn is_kept(name: &[u8]) -> bool {
    KEPT.with_borrow_mut(|kept| kept.values.get(hash(name), |value| value.name[..value.name_len as usize] == *name).is_some())
}

/// Which value that has yet to prove itself is this key, if one is.
pub(crate) fn on_trial(key: &[u8]) -> Option<Trial> {
    let found = KEPT.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        kept.trials.iter().flatten().find(|value| constant_time_eq(&value.value[..key.len()], key)).map(|value| Trial(value.hash))
    });
    found.ok().flatten()
}

/// A message under this value has proved authentic, or was made here: it is kept from now on.
pub(crate) fn prove(trial: Trial) {
    let _ = KEPT.try_with(|kept| {
        if let Ok(mut kept) = kept.try_borrow_mut()
            && let Some(place) = kept.trials.iter_mut().find(|place| place.as_ref().is_some_and(|value| value.hash == trial.0))
            && let Some(value) = place.take()
        {
            kept.values.put(value, VALUES * client().keeps_most());
        }
    });
}
