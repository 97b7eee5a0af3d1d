//! Keys by name.

use crate::folder::{About, AboutVersion, Encoded, Folder, Private, Record};
use crate::material::{Material, fingerprint};
use crate::seal::Seal;
use bywash_core::{Error, KeyReference, Result};
use bywash_protocol::keys::{KeyAlgorithm, KeyInfo, KeyPolicy, KeyUse, key_error};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder of keys, open.
pub struct Vault {
    folder: Folder,
    seal: Option<Seal>,
    keys: Mutex<BTreeMap<String, Held>>,
}

#[derive(Clone)]
struct Held {
    created: u64,
    policy: KeyPolicy,
    /// The present key first, then those that were rotated away and may still be used for a while.
    versions: Vec<Version>,
    /// Whether its file has keys whose time is over still.
    is_stale: bool,
}

#[derive(Clone)]
struct Version {
    made: u64,
    expires: Option<u64>,
    material: Arc<Material>,
}

/// A key that was looked for.
#[derive(Clone, Debug)]
pub struct Found {
    /// The key itself.
    pub material: Arc<Material>,
    /// Who may do what with it.
    pub policy: KeyPolicy,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Version {
    fn new(material: Material) -> Self {
        Self { made: now(), expires: None, material: Arc::new(material) }
    }

    fn is_current(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

impl Vault {
    /// Opens a folder, made where there is none. Keys that were stored in plain are encrypted if a passphrase is given now; once all were, none in plain is taken any more.
    ///
    /// # Errors
    /// [`Error::Config`], naming the file: not this user's, readable by others, damaged, in use by a broker, another passphrase, none; [`Error::VaultKey`] for a key in plain
    /// among encrypted ones.
    pub fn open(path: &Path, passphrase: Option<&[u8]>) -> Result<Self> {
        let folder = Folder::take(path)?;
        if passphrase.is_some() && !Seal::is_in(path) && folder.has_sealed()? {
            let reason =
                "its keys are encrypted and seal.json is not there, without which no passphrase opens them; put it back from a copy".into();
            return Err(Error::Config { place: path.display().to_string(), reason });
        }
        let seal = passphrase.map(|passphrase| Seal::of(path, passphrase)).transpose()?;
        if seal.is_none() && Seal::is_in(path) {
            let reason = "its keys are encrypted; give the passphrase with --keys-passphrase FILE".into();
            return Err(Error::Config { place: path.display().to_string(), reason });
        }
        let mut vault = Self { folder, seal, keys: Mutex::default() };
        for record in vault.folder.records()? {
            let plain = record.private.iter().any(|private| matches!(private, Private::Plain(_)));
            let (name, held) = vault.load(record)?;
            if plain && vault.seal.is_some() {
                vault.save(&name, &held)?;
            }
            vault.keys().insert(name, held);
        }
        if let Some(seal) = &mut vault.seal {
            seal.set_of_all(path)?;
        }
        vault.sweep().1?;
        Ok(vault)
    }

    /// Whether keys are encrypted in their files.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the system keeps all keys out of swap.
    pub fn is_locked(&self) -> bool {
        self.keys().values().all(|held| held.versions.iter().all(|version| version.material.is_locked()))
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a seal binds of a version: everything but the secrets.
    fn context(about: &About, version: usize) -> Result<Vec<u8>> {
        serde_json::to_vec(&(about, version)).map_err(|error| key_error(&about.name, error.to_string()))
    }

    fn load(&self, record: Record) -> Result<(String, Held)> {
        let Record { about, private, .. } = record;
        let mut versions = Vec::new();
        for (index, (version, private)) in about.versions.iter().zip(&private).enumerate() {
            let damaged = |reason: &str| key_error(&about.name, format!("its file in {}: {reason}", self.folder.path().display()));
            let opened = match (private, &self.seal) {
                (Private::Plain(_), Some(seal)) if seal.is_of_all() => {
                    return Err(damaged(
                        "is in plain, and no key here is any more: it was put there by someone without the passphrase. Move it away; if it is your own, `bywash key import NAME --from FILE` takes its present key over from there; keep it as long as older keys in it are needed",
                    ));
                }
                (Private::Plain(text), _) => text.0.as_slice().into(),
                (Private::Sealed(sealed), Some(seal)) => {
                    let opened = seal.open(sealed, &Self::context(&about, index)?);
                    opened.ok_or_else(|| damaged("was changed by someone without the passphrase"))?
                }
                (Private::Sealed(_), None) => return Err(damaged("is encrypted under a seal that is not there (seal.json)")),
            };
            let material = Material::from_pkcs8(&opened).map_err(|why| damaged(&why))?;
            if material.public() != &version.public.0[..] {
                return Err(damaged("private and public half do not belong together"));
            }
            versions.push(Version { made: version.made, expires: version.expires, material: Arc::new(material) });
        }
        Ok((about.name, Held { created: about.created, policy: about.policy.into(), versions, is_stale: false }))
    }

    fn save(&self, name: &str, held: &Held) -> Result<()> {
        let version = |version: &Version| AboutVersion {
            made: version.made,
            expires: version.expires,
            public: Encoded(version.material.public().to_vec().into()),
        };
        let versions = held.versions.iter().map(version).collect();
        let about = About { name: name.to_owned(), created: held.created, policy: held.policy.clone().into(), versions };
        let private = held.versions.iter().enumerate().map(|(index, version)| {
            let plain = version.material.pkcs8();
            match &self.seal {
                None => Ok(Private::Plain(Encoded(plain.to_vec().into()))),
                Some(seal) => {
                    let sealed = seal.seal(&plain, &Self::context(&about, index)?);
                    sealed.map(Private::Sealed).ok_or_else(|| key_error(name, "cannot be encrypted"))
                }
            }
        });
        let private = private.collect::<Result<Vec<_>>>()?;
        self.folder.write(&Record { format: 1, about, private })
    }

    fn insert(&self, name: &str, policy: KeyPolicy, material: Material) -> Result<Arc<Material>> {
        let mut keys = self.keys();
        if keys.contains_key(name) {
            return Err(taken(name));
        }
        check_uses(name, material.algorithm(), &policy)?;
        let version = Version::new(material);
        let material = version.material.clone();
        let held = Held { created: version.made, policy, versions: vec![version], is_stale: false };
        self.save(name, &held)?;
        keys.insert(name.to_owned(), held);
        Ok(material)
    }

    /// Refuses a name before the work of making a key for it.
    fn is_free(&self, name: &str) -> Result<()> {
        KeyReference::check_name(name)?;
        if self.keys().contains_key(name) { Err(taken(name)) } else { Ok(()) }
    }

    /// Takes a key over, from PKCS#8 in DER.
    ///
    /// # Errors
    /// [`Error::VaultKey`] for a bad name, one that is taken, a key that is no good; [`Error::Config`] if it cannot be written.
    pub fn import(&self, name: &str, pkcs8: &[u8], policy: KeyPolicy) -> Result<Arc<Material>> {
        self.is_free(name)?;
        self.insert(name, policy, Material::from_pkcs8(pkcs8).map_err(|why| key_error(name, why))?)
    }

    /// Makes a key.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn generate(&self, name: &str, algorithm: KeyAlgorithm, policy: KeyPolicy) -> Result<Arc<Material>> {
        self.is_free(name)?;
        self.insert(name, policy, Material::generate(algorithm).map_err(|why| key_error(name, why))?)
    }

    /// Puts another key under a name: the one given, or a new one of the same kind. The old one can still be used for `grace`, by who
    /// knows its public half.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn rotate(&self, name: &str, pkcs8: Option<&[u8]>, grace: Duration) -> Result<Arc<Material>> {
        let algorithm = self.find(name, None)?.material.algorithm();
        let made = pkcs8.map_or_else(|| Material::generate(algorithm), Material::from_pkcs8);
        let version = Version::new(made.map_err(|why| key_error(name, why))?);
        let (mut keys, now) = (self.keys(), now());
        let held = keys.get_mut(name).ok_or_else(|| unknown(name))?;
        if held.versions.iter().any(|old| old.material.public() == version.material.public()) {
            return Err(key_error(name, "that is the key it has, or has had: give another one"));
        }
        if version.material.algorithm() != held.versions[0].material.algorithm() {
            // Else the policy stays as good as it was: to replace a key is never refused for what another release let it promise.
            check_uses(name, version.material.algorithm(), &held.policy)?;
        }
        let mut next = held.clone();
        let until = now.saturating_add(grace.as_secs());
        next.versions.iter_mut().for_each(|old| old.expires = Some(old.expires.map_or(until, |before| before.min(until))));
        next.versions.retain(|old| old.is_current(now));
        next.versions.insert(0, version);
        self.save(name, &next)?;
        *held = next;
        Ok(held.versions[0].material.clone())
    }

    /// Gives a key another policy.
    ///
    /// # Errors
    /// [`Error::VaultKey`] if there is none; [`Error::Config`] if it cannot be written.
    pub fn set_policy(&self, name: &str, policy: KeyPolicy) -> Result<Arc<Material>> {
        let mut keys = self.keys();
        let held = keys.get_mut(name).ok_or_else(|| unknown(name))?;
        check_uses(name, held.versions[0].material.algorithm(), &policy)?;
        let next = Held { policy, ..held.clone() };
        self.save(name, &next)?;
        *held = next;
        Ok(held.versions[0].material.clone())
    }

    /// Forgets a key and deletes its file.
    ///
    /// # Errors
    /// As [`set_policy`](Self::set_policy).
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut keys = self.keys();
        if !keys.contains_key(name) {
            return Err(unknown(name));
        }
        self.folder.remove(name)?;
        // Gone for whoever asks here, also where it is not certain that a power cut does not bring the file back.
        keys.remove(name);
        self.folder.sync()
    }

    /// The key of this name; with a public half, the one that it belongs to, even if it was rotated away and its time is not over.
    ///
    /// # Errors
    /// [`Error::VaultKey`]: there is none of this name, or none that the public half belongs to.
    pub fn find(&self, name: &str, public: Option<&[u8]>) -> Result<Found> {
        KeyReference::check_name(name)?;
        let (keys, now) = (self.keys(), now());
        let held = keys.get(name).ok_or_else(|| unknown(name))?;
        let mut versions = held.versions.iter().filter(|version| version.is_current(now));
        let version = match public {
            None => versions.next(),
            Some(public) => versions.find(|version| version.material.public() == public),
        };
        let version = version.ok_or_else(|| {
            key_error(name, format!("it was rotated and the old key is gone: write the key file again with `bywash key uri {name}` and get a certificate for the new key"))
        })?;
        Ok(Found { material: version.material.clone(), policy: held.policy.clone() })
    }

    /// What there is.
    pub fn list(&self) -> Vec<KeyInfo> {
        let info = |(name, held): (&String, &Held)| {
            let current = &held.versions[0];
            KeyInfo {
                name: name.clone(),
                uri: format!("{}{name}", KeyReference::SCHEME),
                algorithm: current.material.algorithm(),
                fingerprint: fingerprint(current.material.public()),
                created: held.created,
                rotated: (current.made != held.created || held.versions.len() > 1).then_some(current.made),
                old_until: held.versions[1..].iter().filter_map(|old| old.expires).max(),
                policy: held.policy.clone(),
                used: None,
            }
        };
        self.keys().iter().map(info).collect()
    }

    /// Deletes old keys whose time is over; gives the names that lost one, whatever came of their files. A file that cannot be written is tried again by the next sweep.
    ///
    /// # Errors
    /// Second of the two: [`Error::Config`] if a file cannot be written.
    pub fn sweep(&self) -> (Vec<String>, Result<()>) {
        let (mut keys, now) = (self.keys(), now());
        let (mut swept, mut stored) = (Vec::new(), Ok(()));
        for (name, held) in keys.iter_mut() {
            let before = held.versions.len();
            held.versions.retain(|version| version.is_current(now));
            if held.versions.len() < before {
                swept.push(name.clone());
                held.is_stale = true;
            }
            // What one file failed for is mostly the disk: the others would wait for it as long, and so would who looks for a key.
            if held.is_stale && stored.is_ok() {
                match self.save(name, held) {
                    Ok(()) => held.is_stale = false,
                    Err(error) => stored = Err(error),
                }
            }
        }
        (swept, stored)
    }
}

/// Refuses a policy that allows what a key of this kind can never do.
fn check_uses(name: &str, algorithm: KeyAlgorithm, policy: &KeyPolicy) -> Result<()> {
    let Some(never) = policy.uses.iter().find(|&&one| !algorithm.can(one)) else { return Ok(()) };
    let can: Vec<_> = KeyUse::ALL.into_iter().filter(|&one| algorithm.can(one)).map(KeyUse::name).collect();
    Err(key_error(name, format!("a key of kind {algorithm} cannot {}; it can be allowed to {}", never.name(), can.join(", "))))
}

fn unknown(name: &str) -> Error {
    key_error(name, "there is no such key; `bywash key list` shows those there are")
}

fn taken(name: &str) -> Error {
    key_error(name, format!("there is a key of this name; rotate it with `bywash key rotate {name}`, or remove it first"))
}

impl core::fmt::Debug for Vault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Vault in {}", self.folder.path().display())
    }
}
