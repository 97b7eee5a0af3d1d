//! A process's access to engines.

use crate::config::Config;
use crate::crowd::{self, Crowd};
use crate::extent::Extent;
use crate::session::Session;
use crate::upstream::Upstream;
use bywash_core::{
    Algorithm, CrtExp, Direction, DsaSign, DsaVerify, Engine, Error, Key, KeyReference, ModExp, Place, Result, SessionParams, Solo,
};
use bywash_protocol::keys::key_error;
use bywash_protocol::{TraceEntry, monotonic_ns};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A process's access to engines. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    engine: Arc<dyn Engine>,
    upstream: Upstream,
    crowd: Crowd,
    sessions: AtomicU32,
    queued: AtomicU64,
    reruns: AtomicU64,
    overflows: AtomicU64,
    batches: AtomicU64,
    batched: AtomicU64,
}

/// When a message began that is to be in a broker's trace.
#[derive(Clone, Copy, Debug)]
pub struct Began(u64);

/// What a client has done so far; [`Client::counted`] has the work in place by algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Operations that a queue completed.
    pub queued: u64,
    /// Operations that were given to a queue and had to be run here after all: the broker died, hung or refused.
    pub reruns: u64,
    /// Operations meant for the queue and run here at once: no room in the ring, or no broker just then.
    pub overflows: u64,
    /// Connections to brokers made.
    pub connections: u64,
    /// Times that gathered operations were computed side by side here.
    pub batches: u64,
    /// Operations in them.
    pub batched: u64,
}

/// What became of an operation that was meant for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Queued,
    Rerun,
    Overflow,
}

impl Client {
    /// A client. Never fails for want of a broker: it then works in this process alone and looks for the broker again later.
    pub fn new(config: Config) -> Self {
        Self::with_engine(config, bywash_manager::here())
    }

    /// A client whose work in place is done by this engine.
    pub fn with_engine(config: Config, engine: Arc<dyn Engine>) -> Self {
        let zero = AtomicU64::default;
        let upstream = Upstream::new(config);
        let (queued, reruns, overflows, batches, batched) = (zero(), zero(), zero(), zero(), zero());
        let (crowd, sessions) = (Crowd::default(), AtomicU32::new(1));
        Self(Arc::new(Inner { engine, upstream, crowd, sessions, queued, reruns, overflows, batches, batched }))
    }

    /// Where an operation of this size would run. No lock, no allocation, no system call; a few nanoseconds.
    #[inline]
    pub fn place(&self, algorithm: Algorithm, bytes: usize) -> Place {
        self.0.upstream.place(algorithm, bytes)
    }

    /// Whether operations of this algorithm are this process's own affair: they would run in place whatever their size, and nobody records them. Whoever
    /// has a cheaper way to do them than a session may take it.
    pub fn keeps(&self, algorithm: Algorithm) -> bool {
        self.keeps_or_traces(algorithm) && !self.0.upstream.is_recording()
    }

    /// As [`keeps`](Self::keeps), for who [traces](Self::trace) its messages itself while somebody records.
    pub fn keeps_or_traces(&self, algorithm: Algorithm) -> bool {
        self.0.upstream.keeps(algorithm)
    }

    /// The beginning of a message that is to be in a broker's trace; none while nobody records.
    #[inline]
    pub fn begin(&self) -> Option<Began> {
        self.0.upstream.is_recording().then(|| Began(monotonic_ns()))
    }

    /// Leaves a message in the trace that was done in place without a session and ends now. `number` is its key's, from [`Client::number`]; its bytes are those of
    /// [`Operation::work_len`](bywash_core::Operation::work_len).
    pub fn trace(&self, began: Began, number: u32, algorithm: Algorithm, direction: Direction, extent: Extent) {
        let (Began(arrival_ns), done_ns) = (began, monotonic_ns());
        let (bytes, calls) = (extent.bytes(), extent.calls());
        self.0.upstream.trace(TraceEntry {
            arrival_ns,
            start_ns: arrival_ns,
            done_ns,
            bytes,
            session: number,
            algorithm,
            direction,
            calls,
        });
    }

    /// A number for a key without a session, that no session of this client has.
    pub fn number(&self) -> u32 {
        self.0.sessions.fetch_add(1, Relaxed)
    }

    /// How many keyed ciphers an interface may keep in each thread ([`Config::keep`]).
    #[inline]
    pub fn keeps_most(&self) -> usize {
        self.0.upstream.config().keep
    }

    /// Whether a client of this machine's engine has a [cipher for one caller](Self::solo).
    pub fn has_solo(algorithm: Algorithm) -> bool {
        bywash_manager::here().solo(algorithm).is_some()
    }

    /// A cipher for one caller in its own place, where the engine here has one: for an algorithm that this process [keeps](Self::keeps) it is the cheapest
    /// way. Its work is counted by [`Client::count`].
    pub fn solo(&self, algorithm: Algorithm) -> Option<Box<dyn Solo>> {
        self.0.engine.solo(algorithm)
    }

    /// Looks a key of the broker's vault up, by its name and, if it is known, its public half: whether it is there and this process may use it.
    /// The reference makes sessions whose every operation runs at the broker.
    ///
    /// # Errors
    /// [`Error::VaultKey`](bywash_core::Error::VaultKey): no such key, no right to it, or no broker to ask.
    pub fn vault_key(&self, name: &str, public: Option<&[u8]>) -> Result<KeyReference> {
        KeyReference::check_name(name)?;
        let unasked = |why: String| key_error(name, format!("the broker that holds it cannot be asked: {why}"));
        let link = self.0.upstream.link_now().ok_or_else(|| unasked(self.0.upstream.why_alone()))?;
        let described = link.describe(name, public).map_err(|error| match error {
            Error::VaultKey { .. } => error,
            other => unasked(other.to_string()),
        });
        Ok(KeyReference { name: name.to_owned(), public: described? })
    }

    /// Opens a session in this process; at the queue it is opened when an operation first goes there.
    ///
    /// # Errors
    /// Those of [`Engine::open`].
    pub fn session(&self, params: SessionParams) -> Result<Session> {
        let keyed = match params.key() {
            Key::Vault(_) => None,
            _ => Some(self.0.engine.open(&params)?),
        };
        self.0.upstream.glance();
        Ok(Session::new(self.clone(), params, keyed, self.number()))
    }

    /// Counts work done in place through a [`Stream`](bywash_core::Stream). [`Session::run`] and [`Session::hashing`] count their own.
    #[inline]
    pub fn count(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        self.0.upstream.count(algorithm, operations, bytes);
    }

    /// `base ^ exponent mod modulus` with numbers that come without a session, in the caller's place, into all of `out`. It is not counted: no algorithm's
    /// figures are of such numbers.
    ///
    /// # Errors
    /// Those of [`Engine::mod_exp`].
    pub fn mod_exp(&self, numbers: &ModExp<'_>, out: &mut [u8]) -> Result<()> {
        numbers.check(out.len())?;
        self.0.engine.mod_exp(numbers, out)
    }

    /// The same by the Chinese remainder theorem.
    ///
    /// # Errors
    /// Those of [`Engine::crt_exp`].
    pub fn crt_exp(&self, numbers: &CrtExp<'_>, out: &mut [u8]) -> Result<()> {
        numbers.check(out.len())?;
        self.0.engine.crt_exp(numbers, out)
    }

    /// A signature of DSA, likewise; each half is as long as q and fills its place.
    ///
    /// # Errors
    /// Those of [`Engine::dsa_sign`].
    pub fn dsa_sign(&self, asked: &DsaSign<'_>, r: &mut [u8], s: &mut [u8]) -> Result<()> {
        self.0.engine.dsa_sign(asked, r, s)
    }

    /// Whether a signature of DSA is one, likewise.
    ///
    /// # Errors
    /// Those of [`Engine::dsa_verify`].
    pub fn dsa_verify(&self, asked: &DsaVerify<'_>) -> Result<bool> {
        self.0.engine.dsa_verify(asked)
    }

    /// Operations and bytes that this process ran in place. A forked child starts from 0.
    pub fn counted(&self, algorithm: Algorithm) -> (u64, u64) {
        self.0.upstream.settle_fork();
        self.0.upstream.counted(algorithm)
    }

    /// What was queued, and how it went.
    pub fn stats(&self) -> Stats {
        let Inner { queued, reruns, overflows, batches, batched, upstream, .. } = &*self.0;
        let load = |count: &AtomicU64| count.load(Relaxed);
        Stats {
            queued: load(queued),
            reruns: load(reruns),
            overflows: load(overflows),
            connections: upstream.connections(),
            batches: load(batches),
            batched: load(batched),
        }
    }

    /// How things stand with the broker, in words: connected, or why not and what would mend it.
    pub fn status(&self) -> String {
        self.0.upstream.status()
    }

    /// Looks for its broker now, and not only when work comes.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn find_broker(&self) -> core::result::Result<(), String> {
        self.0.upstream.link_now().map(drop).ok_or_else(|| self.0.upstream.why_alone())
    }

    /// What it was told when it was made.
    pub fn config(&self) -> &Config {
        self.0.upstream.config()
    }

    /// Where operations of this algorithm meet those of other threads, if any use it in place: then this process can fill lanes by itself.
    pub(crate) fn company(&self, algorithm: Algorithm) -> Option<Arc<crowd::Place>> {
        self.0.crowd.place_of_many(&self.0.engine, algorithm)
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.0.upstream
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.0.engine
    }

    pub(crate) fn note_batch(&self, algorithm: Algorithm, operations: u64) {
        self.0.upstream.count_batch(algorithm, operations);
        self.0.batches.fetch_add(1, Relaxed);
        self.0.batched.fetch_add(operations, Relaxed);
    }

    pub(crate) fn note(&self, fate: Fate) {
        let count = match fate {
            Fate::Queued => &self.0.queued,
            Fate::Rerun => &self.0.reruns,
            Fate::Overflow => &self.0.overflows,
        };
        count.fetch_add(1, Relaxed);
    }
}
