//! The trait that everything able to compute implements, from a CPU kernel to a modelled board.

use crate::algorithm::Algorithm;
use crate::cost::CostSheet;
use crate::device::DeviceSheet;
use crate::dsa::{DsaSign, DsaVerify};
use crate::error::{Error, Result};
use crate::number::{CrtExp, ModExp};
use crate::operation::{Data, Direction, Operation};
use crate::session::SessionParams;
use crate::solo::Solo;
use core::any::Any;
use std::sync::Arc;

/// Bytes of associated data that every engine takes beside any text.
pub const AAD_USUAL: usize = 4096;

/// What computes. An engine declares what it can do and does it; it never decides anything.
///
/// The methods with a default are doors for engines that need them: batches across lanes, circuits that must be loaded.
/// Every engine passes the one suite in `crates/conformance`.
pub trait Engine: Send + Sync {
    /// Short, lower-case and unique on a machine: `cpu`, `gpu0`, `fpga`.
    fn name(&self) -> &str;

    /// One line for people: what it is and which of its faces was chosen (`AWS-LC, VAES-512`).
    fn describe(&self) -> String;

    /// Whether its *times* come from a model instead of from the thing itself (its output bytes are always real).
    /// Whatever shows its figures must say so.
    fn is_modelled(&self) -> bool {
        false
    }

    /// Of a modelled engine: operations since it was made whose bytes were ready only after the model's time. They really took longer than the model says, which is
    /// what managers and policies see and go by. `None`, the default, where nothing of the kind is counted.
    fn late(&self) -> Option<u64> {
        None
    }

    /// Of an engine that computes for one session at a time: how often it changed from one to another since it was made, the first counted. Each change may cost what
    /// its sheet says ([`CostSheet::switch_ns`]). `None`, the default, where sessions are not told apart.
    fn switches(&self) -> Option<u64> {
        None
    }

    /// Whether it computes on the processor of the thread that calls it, with nothing beyond that thread which could fail to answer. A
    /// manager lets blocked callers work on such an engine themselves; any other is given threads of its own and watched.
    fn is_local(&self) -> bool {
        false
    }

    /// What it can do.
    fn capabilities(&self) -> &[Algorithm];

    /// How many batches it can run at the same time; the manager gives it that many workers.
    fn workers(&self) -> usize;

    /// The most operations it gains from in one batch; 1 for an engine without lanes.
    fn batch_max(&self) -> usize {
        1
    }

    /// How many operations of this algorithm gain from going together, at most [`batch_max`](Engine::batch_max). An engine whose
    /// lanes are for some of its algorithms only says 1 for the others, so that nobody waits for company that brings nothing.
    fn lanes(&self, algorithm: Algorithm) -> usize {
        let _ = algorithm;
        self.batch_max()
    }

    /// How many operations of this algorithm, in this direction, take less time together than one after the other; [`lanes`](Engine::lanes), which is the
    /// default, or more. A batch of what waits already may have so many. Nobody waits for company for this alone: it is for operations that take less time than a wait.
    fn together(&self, algorithm: Algorithm, direction: Direction) -> usize {
        let _ = direction;
        self.lanes(algorithm)
    }

    /// Whether an operation with so many bytes of text and of associated data is of those that its costs are of, which are counted by the text. One with more associated data than
    /// [`AAD_USUAL`] that does not suit is computed by others, if some engine can.
    fn suits(&self, text: usize, aad: usize) -> bool {
        let _ = (text, aad);
        true
    }

    /// What it costs, if it knows (a modelled engine does); `None` asks the manager to measure.
    fn cost_sheet(&self) -> Option<CostSheet> {
        None
    }

    /// What it can hold and what loading costs, for an engine whose circuits must be loaded before they compute.
    fn device_sheet(&self) -> Option<&DeviceSheet> {
        None
    }

    /// Takes a session over: expands the key, checks what needs arithmetic.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::BadKey`], [`Error::EngineFailed`].
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>>;

    /// A cipher or AEAD for one caller in its own place, without a key yet; `None`, which is the default, where that is no faster than the libraries that
    /// programs have anyway.
    fn solo(&self, algorithm: Algorithm) -> Option<Box<dyn Solo>> {
        let _ = algorithm;
        None
    }

    /// `base ^ exponent mod modulus` with numbers that come without a session, into all of `out`, big-endian with zeros in front.
    ///
    /// # Errors
    /// Those of [`ModExp::check`]; [`Error::EngineFailed`]; [`Error::Unavailable`] for an engine that does not do this, which is the default.
    fn mod_exp(&self, numbers: &ModExp<'_>, out: &mut [u8]) -> Result<()> {
        let _ = (numbers, out);
        Err(Error::Unavailable { what: format!("engine '{}' computes with keys of sessions alone", self.name()) })
    }

    /// The same by the Chinese remainder theorem.
    ///
    /// # Errors
    /// Those of [`CrtExp::check`]; [`Error::Number`] if the parts do not belong together (a wrong `dp` or `dq` is noticed if the public exponent is 3, 5, 17, 257
    /// or 65537; no numbers show it of others); [`Error::EngineFailed`]; [`Error::Unavailable`], which is the default.
    fn crt_exp(&self, numbers: &CrtExp<'_>, out: &mut [u8]) -> Result<()> {
        let _ = (numbers, out);
        Err(Error::Unavailable { what: format!("engine '{}' computes with keys of sessions alone", self.name()) })
    }

    /// A signature of DSA with numbers that come without a session; each half is as long as q and fills its place.
    ///
    /// # Errors
    /// Those of [`DsaSign::check`]; [`Error::Number`] if the numbers are no key of DSA, as far as what comes out shows; [`Error::Unavailable`] for an engine that does not do this, which is the default.
    fn dsa_sign(&self, asked: &DsaSign<'_>, r: &mut [u8], s: &mut [u8]) -> Result<()> {
        let _ = (asked, r, s);
        Err(Error::Unavailable { what: format!("engine '{}' computes with keys of sessions alone", self.name()) })
    }

    /// Whether a signature of DSA is of this digest and key.
    ///
    /// # Errors
    /// Those of [`DsaVerify::check`]; [`Error::Number`] for a key that is none; [`Error::Unavailable`], which is the default.
    fn dsa_verify(&self, asked: &DsaVerify<'_>) -> Result<bool> {
        let _ = asked;
        Err(Error::Unavailable { what: format!("engine '{}' computes with keys of sessions alone", self.name()) })
    }

    /// Runs a batch to its end, setting each task's outcome. Tasks may belong to different sessions and algorithms.
    /// An engine with lanes overrides this; the default runs one after the other.
    fn run(&self, batch: &mut [Task<'_>]) {
        for task in batch {
            task.outcome = task.keyed.run(&mut task.operation);
        }
    }

    /// Makes these circuits the loaded ones; returns when they are.
    ///
    /// # Errors
    /// [`Error::EngineFailed`] for an engine with nothing to load, which is the default.
    fn load(&self, circuits: &[Algorithm]) -> Result<()> {
        let _ = circuits;
        Err(Error::EngineFailed { engine: self.name().to_owned(), reason: "it has no circuits to load".into() })
    }

    /// Whether it does this algorithm.
    fn supports(&self, algorithm: Algorithm) -> bool {
        self.capabilities().contains(&algorithm)
    }
}

/// A session as one engine holds it. Shared by threads: [`run`](Keyed::run) takes `&self`.
pub trait Keyed: Send + Sync + Any {
    /// Runs one operation that has passed [`SessionParams::check`]; returns the bytes of output written (tag not counted).
    ///
    /// A decryption whose tag fails leaves no plaintext in the output: the engine wipes what it wrote.
    ///
    /// # Errors
    /// [`Error::Authentication`], [`Error::InputRange`], [`Error::EngineFailed`].
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize>;

    /// Starts a message that arrives in pieces. Only for engines that work in the caller's place; ciphers and AEADs only.
    ///
    /// # Errors
    /// [`Error::WrongOperation`] where there is no such thing, which is the default.
    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        let _ = (direction, iv);
        Err(Error::Unavailable { what: "this engine does not take a message in pieces".into() })
    }

    /// Starts a digest or MAC of a message that arrives in pieces. Only for engines that work in the caller's place.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where there is no such thing, which is the default; [`Error::EngineFailed`].
    fn hashing(&self) -> Result<Box<dyn Hashing>> {
        Err(Error::Unavailable { what: "this engine does not hash in pieces".into() })
    }

    /// For an engine's own [`run`](Engine::run), to find its type again.
    fn as_any(&self) -> &dyn Any;
}

/// A message in pieces: `start` (or [`Keyed::stream`]), then all associated data, then all text, then the tag.
///
/// Block modes take whole blocks in every piece; XTS takes the data unit in one piece. Buffering of partial blocks and padding belong to the
/// interface above. Decryption hands out text before the tag is known, as EVP's own interface does: the caller must not use it before
/// the tag has been compared.
pub trait Stream: Send {
    /// Begins a new message under the same key, in the same direction, without allocating.
    ///
    /// # Errors
    /// [`Error::IvLength`], [`Error::EngineFailed`].
    fn start(&mut self, iv: &[u8]) -> Result<()>;

    /// Takes associated data (AEAD only, before any text).
    ///
    /// # Errors
    /// [`Error::WrongOperation`], [`Error::EngineFailed`].
    fn aad(&mut self, aad: &[u8]) -> Result<()>;

    /// Takes text; writes exactly as many bytes as it takes.
    ///
    /// # Errors
    /// [`Error::InputLength`], [`Error::OutputTooSmall`], [`Error::EngineFailed`].
    fn update(&mut self, data: Data<'_>) -> Result<()>;

    /// Ends an AEAD message and gives its full tag, in either direction; the caller compares in constant time.
    ///
    /// # Errors
    /// [`Error::WrongOperation`], [`Error::EngineFailed`].
    fn finish(&mut self) -> Result<[u8; 16]>;

    /// The chaining value as it stands: what a continued CBC or CTR message would use as IV, which of ciphers with blocks of eight bytes is the
    /// first eight. Zero for modes without one.
    fn chaining_value(&self) -> [u8; 16];

    /// A copy in the same state.
    ///
    /// # Errors
    /// [`Error::EngineFailed`].
    fn duplicate(&self) -> Result<Box<dyn Stream>>;
}

/// A digest or MAC of a message in pieces ([`Keyed::hashing`]): message after message under the same key.
pub trait Hashing: Send {
    /// Takes more of the message.
    ///
    /// # Errors
    /// [`Error::EngineFailed`].
    fn update(&mut self, data: &[u8]) -> Result<()>;

    /// Writes the value into the front of `out` and returns its length in bytes. It is then as after [`reset`](Self::reset).
    ///
    /// # Errors
    /// [`Error::OutputTooSmall`], which leaves the message as it was; [`Error::EngineFailed`].
    fn finish(&mut self, out: &mut [u8]) -> Result<usize>;

    /// Forgets the message: the next piece begins another, under the same key.
    ///
    /// # Errors
    /// [`Error::EngineFailed`].
    fn reset(&mut self) -> Result<()>;

    /// A copy in the same state, which goes its own way.
    ///
    /// # Errors
    /// [`Error::EngineFailed`].
    fn duplicate(&self) -> Result<Box<dyn Hashing>>;
}

/// One operation of a batch.
pub struct Task<'a> {
    /// The session on this engine.
    pub keyed: &'a dyn Keyed,
    /// What to compute; already checked.
    pub operation: Operation<'a>,
    /// How it went; bytes of output on success. `Err` of "not run" until the engine sets it.
    pub outcome: Result<usize>,
}

impl<'a> Task<'a> {
    /// A task not yet run.
    pub fn new(keyed: &'a dyn Keyed, operation: Operation<'a>) -> Self {
        Self { keyed, operation, outcome: Err(Error::NotRun) }
    }
}

/// What was found when an engine was looked for.
pub enum Probe {
    /// It is here.
    Present(Arc<dyn Engine>),
    /// It is not.
    Absent(Absent),
}

/// Why an engine is missing, and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The engine's name.
    pub name: String,
    /// Why it is missing.
    pub reason: String,
    /// The command or deed that mends it, if any does.
    pub remedy: Option<String>,
}
