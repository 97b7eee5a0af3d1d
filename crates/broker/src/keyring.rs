//! The vault at work: sessions opened by reference, what each use must pass, the owner's commands.

use crate::audit::{Audit, Counts, Line};
use crate::broker::Shared;
use crate::client::Client;
use crate::connection::{commands, group_among, is_owner, short};
use crate::throttle::{Bucket, Throttle};
use bywash_core::{Algorithm, Error, Key, KeyReference, Kind, Result, SessionParams};
use bywash_protocol::Peer;
use bywash_protocol::descriptor::Verdict;
use bywash_protocol::keys::{KeyCommand, KeyInfo, KeyPolicy, KeyUse, key_error};
use bywash_vault::{Found, Vault, padding};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// A vault whose keys clients use.
pub(crate) struct Keyring {
    vault: Arc<Vault>,
    audit: Arc<Audit>,
    gates: Mutex<HashMap<String, Arc<Gate>>>,
    /// Held while a command is obeyed: vault and gates change together, in the same order.
    obeying: Mutex<()>,
    failing: Throttle,
}

/// What all sessions of one name have in common, for as long as the broker runs.
struct Gate {
    used: AtomicU64,
    rule: RwLock<KeyPolicy>,
    bucket: Mutex<Option<Bucket>>,
}

/// A session that a client opened by reference.
pub(crate) struct KeySession {
    name: String,
    fingerprint: String,
    algorithm: Algorithm,
    peer: Peer,
    /// Where the key's policy names not the user but a group.
    group: Option<u32>,
    comm: String,
    gate: Arc<Gate>,
    audit: Arc<Audit>,
    counts: [AtomicU64; 4],
}

/// Answers to the owner's commands.
pub(crate) enum Answer {
    /// A key's public half.
    Key(Vec<u8>),
    /// All keys.
    Keys(Vec<KeyInfo>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    fn new(policy: KeyPolicy) -> Self {
        let bucket = Mutex::new(policy.rate.map(Bucket::new));
        Self { used: AtomicU64::new(0), rule: RwLock::new(policy), bucket }
    }

    fn set(&self, policy: KeyPolicy) {
        *lock(&self.bucket) = policy.rate.map(Bucket::new);
        *self.rule.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    fn allows(&self, one: KeyUse) -> bool {
        self.rule.read().unwrap_or_else(PoisonError::into_inner).allows(one)
    }
}

impl KeySession {
    /// Whether this use may be, judged by what is to be computed on.
    pub(crate) fn admit(&self, input: &[u8]) -> std::result::Result<(), Verdict> {
        let allowed = match self.algorithm.kind() {
            // A key that may decrypt may do anything, so only where it may not is the block looked at.
            Kind::RsaPrivate { .. } => self.gate.allows(KeyUse::Decrypt) || self.gate.allows(KeyUse::Sign) && padding::is_signature(input),
            _ => self.gate.allows(KeyUse::of(self.algorithm)),
        };
        if !allowed {
            self.counts[3].fetch_add(1, Relaxed);
            return Err(Verdict::KeyUse);
        }
        if !lock(&self.gate.bucket).as_mut().is_none_or(|bucket| bucket.take(1.0)) {
            self.counts[2].fetch_add(1, Relaxed);
            return Err(Verdict::KeyRate);
        }
        Ok(())
    }

    /// How a use ended.
    pub(crate) fn note(&self, done: bool) {
        self.gate.used.fetch_add(1, Relaxed);
        self.counts[usize::from(!done)].fetch_add(1, Relaxed);
    }

    /// The name of the key.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn line<'a>(&'a self, event: &'a str) -> Line<'a> {
        let line = Line::new(event, &self.name, self.peer, &self.comm);
        Line {
            fingerprint: &self.fingerprint[..16.min(self.fingerprint.len())],
            group: self.group,
            algorithm: Some(self.algorithm.name()),
            ..line
        }
    }

    /// Writes what was counted to the audit log, and counts anew, or on where it cannot be written.
    pub(crate) fn tell(&self) {
        if let Some(counts) = self.counted()
            && !self.audit.write(&Line { counts: Some(counts), ..self.line("use") })
        {
            let Counts { done, failed, over_rate, not_allowed } = counts;
            self.counts.iter().zip([done, failed, over_rate, not_allowed]).for_each(|(count, more)| _ = count.fetch_add(more, Relaxed));
        }
    }

    /// What was counted since the last time, if anything.
    fn counted(&self) -> Option<Counts> {
        let [done, failed, over_rate, not_allowed] = self.counts.each_ref().map(|count| count.swap(0, Relaxed));
        Some(Counts { done, failed, over_rate, not_allowed }).filter(|counts| *counts != Counts::default())
    }
}

impl Drop for KeySession {
    fn drop(&mut self) {
        if let Some(counts) = self.counted() {
            self.audit.end(self.line("use"), counts);
        }
    }
}

impl Keyring {
    /// Opens the audit log.
    pub(crate) fn new(vault: Arc<Vault>, audit: Option<&Path>) -> Result<Self> {
        let audit = audit.map_or_else(|| vault.path().join("audit.log"), Path::to_owned);
        Ok(Self {
            vault,
            audit: Arc::new(Audit::open(&audit)?),
            gates: Mutex::default(),
            obeying: Mutex::default(),
            failing: Throttle::default(),
        })
    }

    fn gate(&self, name: &str, policy: KeyPolicy) -> Arc<Gate> {
        lock(&self.gates).entry(name.to_owned()).or_insert_with(|| Arc::new(Gate::new(policy))).clone()
    }

    /// Puts a policy into force. There may be a gate already, also of a removed key of that name: a session that was being opened has left it.
    fn enforce(&self, name: &str, policy: &KeyPolicy) {
        self.gate(name, policy.clone()).set(policy.clone());
    }

    fn refuse(&self, name: &str, client: &Client, error: &Error) {
        let (peer, reason) = (client.peer, error.to_string());
        if self.audit.few(Line { outcome: Some(&reason), ..Line::new("refused", &short(name), peer, &client.speaker()) }) {
            tracing::warn!(pid = peer.pid, uid = peer.uid, "{reason}");
        }
    }

    /// The key that a client asks for, if its user may use it, and the group by which it may.
    fn permitted(&self, name: &str, public: Option<&[u8]>, client: &Client) -> Result<(Found, Option<u32>)> {
        let found = self.vault.find(name, public).and_then(|found| {
            let uid = client.peer.uid;
            if is_owner(uid) || found.policy.uids.contains(&uid) {
                return Ok((found, None));
            }
            let group = group_among(&client.socket, &found.policy.gids);
            let reason = || {
                format!("uid {uid} may not use it; the vault's owner can allow it with `bywash key policy {name} --allow-uid {uid}` or --allow-gid")
            };
            group.map(|group| (found, Some(group))).ok_or_else(|| key_error(name, reason()))
        });
        found.inspect_err(|error| self.refuse(name, client, error))
    }

    /// The public half of a key, for whoever may use it.
    pub(crate) fn describe(&self, name: &str, public: Option<&[u8]>, client: &Client) -> Result<Vec<u8>> {
        Ok(self.permitted(name, public, client)?.0.material.public().to_vec())
    }

    /// What a session by reference is opened with.
    pub(crate) fn open(&self, reference: &KeyReference, algorithm: Algorithm, client: &Client) -> Result<(SessionParams, Arc<KeySession>)> {
        let name = &reference.name;
        let (found, group) = self.permitted(name, Some(&reference.public), client)?;
        let opened = found.material.key(name, algorithm).and_then(|key| {
            check_use(name, algorithm, &found.policy)?;
            SessionParams::new(algorithm, key)
        });
        let params = opened.inspect_err(|error| self.refuse(name, client, error))?;
        let session = Arc::new(KeySession {
            name: name.clone(),
            fingerprint: found.material.fingerprint(),
            algorithm,
            peer: client.peer,
            group,
            comm: client.speaker(),
            gate: self.gate(name, found.policy),
            audit: self.audit.clone(),
            counts: Default::default(),
        });
        self.audit.few(session.line("open"));
        self.audit.watch(Arc::downgrade(&session));
        Ok((params, session))
    }

    /// Whether a reference is still good: between finding a key and having a session with it, its owner may have removed it or changed its policy.
    pub(crate) fn still_permits(&self, reference: &KeyReference, algorithm: Algorithm, client: &Client) -> Result<()> {
        let (found, _) = self.permitted(&reference.name, Some(&reference.public), client)?;
        check_use(&reference.name, algorithm, &found.policy).inspect_err(|error| self.refuse(&reference.name, client, error))
    }

    /// Does what the vault's owner says.
    pub(crate) fn command(&self, shared: &Shared, client: &Client, sender: Option<Peer>, command: &KeyCommand<'_>) -> Result<Answer> {
        let name = &short(command.name().unwrap_or_default());
        if !commands(client.peer, sender) {
            let reason = format!("only root and uid {} may {} keys here", rustix::process::geteuid().as_raw(), command.verb());
            let error = key_error(name, reason);
            self.refuse(name, client, &error);
            return Err(error);
        }
        let done = self.obey(shared, command);
        if !matches!(command, KeyCommand::List) {
            let outcome = done.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
            self.audit.write(&Line { outcome: Some(&outcome), ..Line::new(command.verb(), name, client.peer, &client.speaker()) });
        }
        done
    }

    fn obey(&self, shared: &Shared, command: &KeyCommand<'_>) -> Result<Answer> {
        let _alone = lock(&self.obeying);
        let material = match command {
            KeyCommand::List => return Ok(Answer::Keys(self.list())),
            KeyCommand::Import { name, private, policy } => {
                let material = self.vault.import(name, private, policy.clone())?;
                self.enforce(name, policy);
                material
            }
            KeyCommand::Generate { name, algorithm, policy } => {
                let material = self.vault.generate(name, *algorithm, policy.clone())?;
                self.enforce(name, policy);
                material
            }
            KeyCommand::Rotate { name, private, grace_s } => {
                let material = self.vault.rotate(name, *private, Duration::from_secs(*grace_s))?;
                shared.end_sessions_of(name);
                material
            }
            KeyCommand::Policy { name, policy } => {
                let material = self.vault.set_policy(name, policy.clone())?;
                self.enforce(name, policy);
                shared.end_sessions_of(name);
                material
            }
            KeyCommand::Remove { name } => {
                let removed = self.vault.remove(name);
                if self.vault.find(name, None).is_err() {
                    lock(&self.gates).remove(*name);
                    shared.end_sessions_of(name);
                }
                removed?;
                return Ok(Answer::Key(Vec::new()));
            }
        };
        Ok(Answer::Key(material.public().to_vec()))
    }

    fn list(&self) -> Vec<KeyInfo> {
        let gates = lock(&self.gates);
        let used = |name: &str| gates.get(name).map_or(0, |gate| gate.used.load(Relaxed));
        self.vault.list().into_iter().map(|info| KeyInfo { used: Some(used(&info.name)), ..info }).collect()
    }

    /// Whether there is something to be done soon, though nobody is connected.
    pub(crate) fn is_waiting(&self) -> bool {
        self.audit.has_unwritten()
    }

    /// What is to be done at the end, when the clients have gone.
    pub(crate) fn end(&self) {
        self.audit.flush();
    }

    /// What is to be done every now and then: the audit log written, old keys deleted.
    pub(crate) fn tick(&self, shared: &Shared) {
        self.audit.flush();
        let (swept, stored) = self.vault.sweep();
        for name in &swept {
            shared.end_sessions_of(name);
            self.audit.write(&Line::new("expire", name, own_peer(), ""));
        }
        if let Err(error) = stored
            && let Some(unsaid) = self.failing.pass()
        {
            tracing::error!(unsaid, "keys whose time is over serve no more, but cannot be deleted: {error}");
        }
    }
}

/// This process: what is done at its own time is its own deed.
fn own_peer() -> Peer {
    Peer { pid: std::process::id(), uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

/// Whether a session of this algorithm could do anything that the policy allows.
fn check_use(name: &str, algorithm: Algorithm, policy: &KeyPolicy) -> Result<()> {
    let wanted = KeyUse::of(algorithm);
    let rsa = matches!(algorithm.kind(), Kind::RsaPrivate { .. });
    if policy.allows(wanted) || rsa && policy.allows(KeyUse::Decrypt) {
        return Ok(());
    }
    let uses: Vec<_> = policy.uses.iter().copied().chain([wanted]).map(KeyUse::name).collect();
    let way_out = format!("`bywash key policy {name} --allow {}`, and who else may use it (`bywash key list`)", uses.join(","));
    let reason = format!("it may be used to {} and not to {}", policy.uses_in_words(), wanted.name());
    Err(key_error(name, format!("{reason}; the vault's owner can change that with {way_out}")))
}

/// The reference in a session's parameters, if that is what they hold.
pub(crate) fn reference(params: &SessionParams) -> Option<&KeyReference> {
    match params.key() {
        Key::Vault(reference) => Some(reference),
        _ => None,
    }
}

/// The error of a broker without a vault.
pub(crate) fn no_vault(name: &str) -> Error {
    key_error(name, "this broker keeps no keys; start it with `bywash serve --keys DIR`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::tests::{all, full};

    #[test]
    fn uses_are_counted_until_they_are_told() {
        let (audit, mut reads) = full();
        let session = KeySession {
            name: "key".into(),
            fingerprint: String::new(),
            algorithm: Algorithm::EcdsaP256Sign,
            peer: own_peer(),
            group: None,
            comm: String::new(),
            gate: Arc::new(Gate::new(KeyPolicy::default())),
            audit: Arc::new(audit),
            counts: Default::default(),
        };
        for done in [true, false] {
            session.note(done);
            session.tell();
        }
        all(&mut reads);
        session.note(true);
        session.tell();
        let told = all(&mut reads);
        assert!(told.contains(r#""done":2,"failed":1"#) && told.lines().count() == 1, "{told}");
    }
}
