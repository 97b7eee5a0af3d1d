//! Locks, with which files are made, and keyrings, with which they are opened.
//!
//! What costs time (Argon2id, a key agreement) is done once for all files of a run: a lock's key-encryption key is the same for all of them, and each
//! file's salt makes what wraps its file key its own. A keyring remembers likewise.

use crate::error::{Error, Result};
use crate::header::Header;
use crate::kdf::{FileKeys, KEY_BYTES};
use crate::nonce::random;
use crate::passphrase::{self, Argon2Cost, Budget};
use crate::recipient::{Identity, Recipient};
use crate::slot::{Slot, SlotKind, describe};
use bywash_core::SecretBytes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Most results that a keyring remembers; then it begins anew.
const REMEMBERED_MAX: usize = 1024;

/// One way to open the files of a run.
pub struct Lock {
    kind: SlotKind,
    body: Vec<u8>,
    kek: SecretBytes,
}

impl Lock {
    /// A passphrase. This takes the time of Argon2id, once for all files.
    ///
    /// # Errors
    /// [`Error::BadKey`] for a cost beyond the bounds.
    pub fn passphrase(passphrase: &[u8], cost: Argon2Cost) -> Result<Self> {
        let mut salt = [0; 16];
        random(&mut salt)?;
        let body = passphrase::body(&salt, cost);
        Ok(Self { kind: SlotKind::Passphrase, kek: passphrase::derive(passphrase, &body)?, body })
    }

    /// A key file's 32 bytes.
    pub fn key_file(key: &[u8; KEY_BYTES]) -> Self {
        Self { kind: SlotKind::KeyFile, body: Vec::new(), kek: key.into() }
    }

    /// A recipient.
    ///
    /// # Errors
    /// [`Error::BadKey`] for a public key that cannot be used.
    pub fn recipient(recipient: &Recipient) -> Result<Self> {
        let (kek, body) = recipient.encapsulate()?;
        Ok(Self { kind: recipient.kind(), body, kek })
    }

    /// What opens it.
    pub fn kind(&self) -> SlotKind {
        self.kind
    }

    /// The slot of one file.
    ///
    /// # Errors
    /// [`Error::BadKey`] if the file key cannot be wrapped.
    pub fn slot(&self, keys: &FileKeys) -> Result<Slot> {
        Slot::wrap(self.kind, self.body.clone(), &self.kek, &keys.salt, keys.file_key())
    }
}

/// Keys for a new file, drawn from the kernel, and its slots.
///
/// # Errors
/// Those of [`Lock::slot`]; [`Error::BadKey`] if the passphrases together cost more than a reader computes; the kernel's, if it has no randomness.
pub fn new_file(locks: &[Lock]) -> Result<(FileKeys, Vec<Slot>)> {
    new_file_with(locks, |_| ())
}

/// The same; `mark` may change half of the salt, the rest of which still makes it unique.
pub(crate) fn new_file_with(locks: &[Lock], mark: impl FnOnce(&mut [u8; KEY_BYTES])) -> Result<(FileKeys, Vec<Slot>)> {
    let mut drawn = SecretBytes::zeroed(2 * KEY_BYTES);
    random(&mut drawn)?;
    let mut salt = [0; KEY_BYTES];
    salt.copy_from_slice(&drawn[KEY_BYTES..]);
    mark(&mut salt);
    let keys = FileKeys::new(drawn[..KEY_BYTES].into(), salt)?;
    let slots: Vec<_> = locks.iter().map(|lock| lock.slot(&keys)).collect::<Result<_>>()?;
    check_costs(&slots)?;
    Ok((keys, slots))
}

/// Whether a reader would compute all passphrases of these slots.
pub(crate) fn check_costs(slots: &[Slot]) -> Result<()> {
    let mut budget = Budget::default();
    slots.iter().filter(|slot| slot.kind() == Some(SlotKind::Passphrase)).try_for_each(|slot| budget.spend(&slot.body))
}

type Found = HashMap<(SlotKind, usize, Vec<u8>), Option<SecretBytes>>;

/// Everything that one has to open files with. Shared by threads.
#[derive(Default)]
pub struct Keyring {
    passphrases: Vec<SecretBytes>,
    key_files: Vec<SecretBytes>,
    identities: Vec<Identity>,
    /// Key-encryption keys by the slot's body and who tried. The lock is held while one is computed, so that no two threads compute the same.
    found: Mutex<Found>,
}

/// One that opens what any of several opens.
impl FromIterator<Keyring> for Keyring {
    fn from_iter<I: IntoIterator<Item = Self>>(keyrings: I) -> Self {
        keyrings.into_iter().fold(Self::new(), |mut all, one| {
            all.passphrases.extend(one.passphrases);
            all.key_files.extend(one.key_files);
            all.identities.extend(one.identities);
            all
        })
    }
}

impl Keyring {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.passphrases.is_empty() && self.key_files.is_empty() && self.identities.is_empty()
    }

    /// Adds a passphrase.
    pub fn add_passphrase(&mut self, passphrase: SecretBytes) {
        self.passphrases.push(passphrase);
    }

    /// Adds a key file's 32 bytes.
    pub fn add_key_file(&mut self, key: &[u8; KEY_BYTES]) {
        self.key_files.push(key.into());
    }

    /// Adds an identity.
    pub fn add_identity(&mut self, identity: Identity) {
        self.identities.push(identity);
    }

    /// Opens a file: its keys, once its header has proved authentic.
    ///
    /// # Errors
    /// [`Error::WrongPassphrase`], [`Error::NoKeyFits`], [`Error::DamagedHeader`], [`Error::BadKey`] for a slot that asks for too much.
    pub fn open(&self, header: &Header) -> Result<FileKeys> {
        self.open_slots(header, false).map(|(keys, _)| keys)
    }

    /// The same, and which of the header's slots the keys open, all of them: one at least.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all(&self, header: &Header) -> Result<(FileKeys, Vec<usize>)> {
        self.open_slots(header, true)
    }

    fn open_slots(&self, header: &Header, is_all: bool) -> Result<(FileKeys, Vec<usize>)> {
        let (mut refused, mut budget) = (None, Budget::default());
        let (mut found, mut opened) = (None, Vec::new());
        for (at, slot) in header.slots().iter().enumerate() {
            let is_affordable = if slot.kind() == Some(SlotKind::Passphrase) { budget.spend(&slot.body) } else { Ok(()) };
            match is_affordable.and_then(|()| self.try_slot(slot, header.salt())) {
                Ok(Some(file_key)) => {
                    let keys = FileKeys::new(file_key, *header.salt())?;
                    let what = "its MAC is another's, though a key opens it";
                    // A slot with another file's key opens nothing of this one.
                    if !header.is_authentic(&keys) {
                        refused = refused.or(Some(Error::DamagedHeader { what }));
                        continue;
                    }
                    opened.push(at);
                    found = Some(keys);
                    if !is_all {
                        break;
                    }
                }
                Ok(None) => {}
                // Another slot may do; what stood in the way of this one is said if none does.
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        found.map(|keys| (keys, opened)).ok_or_else(|| refused.unwrap_or_else(|| self.why_not(header)))
    }

    fn why_not(&self, header: &Header) -> Error {
        let passphrases_only = header.slots().iter().all(|slot| slot.kind() == Some(SlotKind::Passphrase));
        match self.passphrases.is_empty() {
            false if passphrases_only => Error::WrongPassphrase,
            _ => Error::NoKeyFits { slots: describe(header.slots()) },
        }
    }

    fn try_slot(&self, slot: &Slot, salt: &[u8; KEY_BYTES]) -> Result<Option<SecretBytes>> {
        let try_all = |count: usize, kek: &dyn Fn(usize) -> Result<Option<SecretBytes>>| {
            for at in 0..count {
                if let Some(file_key) = kek(at)?.map(|kek| slot.unwrap(&kek, salt)).transpose()?.flatten() {
                    return Ok(Some(file_key));
                }
            }
            Ok(None)
        };
        match slot.kind() {
            Some(kind @ SlotKind::Passphrase) => try_all(self.passphrases.len(), &|at| {
                self.remembered(kind, at, slot, || passphrase::derive(&self.passphrases[at], &slot.body).map(Some))
            }),
            Some(SlotKind::KeyFile) => try_all(self.key_files.len(), &|at| Ok(Some(self.key_files[at].clone()))),
            Some(kind @ (SlotKind::X25519 | SlotKind::Hybrid | SlotKind::P256 | SlotKind::Ssh)) => try_all(self.identities.len(), &|at| {
                let identity = &self.identities[at];
                let open = || if identity.kind() == kind { identity.open(&slot.body).map(Some) } else { Ok(None) };
                self.remembered(kind, at, slot, open)
            }),
            None => Ok(None),
        }
    }

    fn remembered(
        &self,
        kind: SlotKind,
        at: usize,
        slot: &Slot,
        compute: impl FnOnce() -> Result<Option<SecretBytes>>,
    ) -> Result<Option<SecretBytes>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, at, slot.body.clone());
        if let Some(kek) = found.get(&key) {
            return Ok(kek.clone());
        }
        let kek = compute()?;
        if found.len() >= REMEMBERED_MAX {
            found.clear();
        }
        found.insert(key, kek.clone());
        Ok(kek)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead::Aead;

    const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 32, passes: 1, lanes: 1 };

    fn header(locks: &[Lock]) -> (Header, FileKeys) {
        let (keys, slots) = new_file(locks).unwrap();
        (Header::new(Aead::Aes256Gcm, 1 << 16, slots, &keys).unwrap(), keys)
    }

    #[test]
    fn each_lock_is_opened_by_its_key() {
        let (own, hybrid) = (Identity::generate(false).unwrap(), Identity::generate(true).unwrap());
        let locks = [
            Lock::passphrase(b"sesame", CHEAP).unwrap(),
            Lock::key_file(&[1; 32]),
            Lock::recipient(own.recipient()).unwrap(),
            Lock::recipient(hybrid.recipient()).unwrap(),
        ];
        let (header, keys) = header(&locks);
        let mut rings = [(); 4].map(|()| Keyring::new());
        rings[0].add_passphrase(b"sesame".into());
        rings[1].add_key_file(&[1; 32]);
        rings[2].add_identity(own);
        rings[3].add_identity(hybrid);
        for ring in &rings {
            assert_eq!(ring.open(&header).unwrap().file_key(), keys.file_key());
        }
        let mut wrong = Keyring::new();
        wrong.add_key_file(&[2; 32]);
        wrong.add_identity(Identity::generate(true).unwrap());
        let error = wrong.open(&header).err().unwrap().to_string();
        assert!(error.contains("a passphrase or a key file or an X25519 identity or a hybrid"), "{error}");
    }

    #[test]
    fn passphrase_slots_together_have_a_bound_and_other_slots_still_open() {
        let costly = |cost| {
            let body = passphrase::body(&[0; 16], cost);
            Lock { kind: SlotKind::Passphrase, body, kek: (&[0; KEY_BYTES]).into() }
        };
        // Slots that no bound of their own stops; none of them is computed here.
        let large = Argon2Cost { memory_kib: 1 << 20, passes: 8, lanes: 1 };
        let locks = [costly(large), costly(CHEAP), Lock::key_file(&[1; 32])];
        assert!(matches!(new_file(&locks), Err(Error::BadKey { .. })));
        assert!(new_file(&locks[..1]).is_ok() && new_file(&locks[1..]).is_ok());
        // A stranger's header does not ask; what is beyond the bound is not computed, here or after it.
        let beyond = Argon2Cost { passes: 9, ..large };
        let (keys, _) = new_file(&[]).unwrap();
        let slots = |locks: &[Lock]| locks.iter().map(|lock| lock.slot(&keys).unwrap()).collect();
        let header = Header::new(Aead::Aes256Gcm, 1 << 16, slots(&[costly(beyond), costly(CHEAP)]), &keys).unwrap();
        let mut ring = Keyring::new();
        ring.add_passphrase(b"sesame".into());
        let error = ring.open(&header).err().unwrap().to_string();
        assert!(error.contains("together"), "{error}");
        let header = Header::new(Aead::Aes256Gcm, 1 << 16, slots(&[costly(beyond), Lock::key_file(&[1; 32])]), &keys).unwrap();
        ring.add_key_file(&[1; 32]);
        assert!(ring.open(&header).is_ok());
    }

    #[test]
    fn a_wrong_passphrase_is_called_so_and_the_right_one_is_derived_once_for_all_files() {
        let lock = [Lock::passphrase(b"sesame", CHEAP).unwrap()];
        let (mut right, mut wrong) = (Keyring::new(), Keyring::new());
        right.add_passphrase(b"sesame".into());
        wrong.add_passphrase(b"Sesame".into());
        for _ in 0..3 {
            let (header, keys) = header(&lock);
            assert_eq!(right.open(&header).unwrap().file_key(), keys.file_key());
            assert!(matches!(wrong.open(&header), Err(Error::WrongPassphrase)));
        }
        assert_eq!(right.found.lock().unwrap().len(), 1);
    }
}
