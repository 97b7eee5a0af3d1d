//! A batch on its way: parts of its texts fill streams, several of which are under way at a time, so that copying in, computing and copying out overlap.

use crate::device::{Device, Launch, Lies, Stream, Waited, Window};
use crate::launch::{Filling, Place};
use crate::message::Message;
use crate::owner::Owner;
use crate::session::Session;
use bywash_core::memory::{self, Importing};
use bywash_core::{AAD_USUAL, Algorithm, Engine, Error, Keyed, Result, SessionParams, Task};
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use zeroize::Zeroize;

/// Operations that gain from one launch.
const BATCH: usize = 1024;

/// Of a text at most such a part may be gone over beside it as associated data.
const AAD_SHARE: usize = 64;

const CAPABILITIES: &[Algorithm] = &[
    Algorithm::Aes128Ctr,
    Algorithm::Aes192Ctr,
    Algorithm::Aes256Ctr,
    Algorithm::Aes128Gcm,
    Algorithm::Aes192Gcm,
    Algorithm::Aes256Gcm,
    Algorithm::Aes128Xts,
    Algorithm::Aes256Xts,
    Algorithm::ChaCha20Poly1305,
];

/// Texts, or parts of them, from this size on are copied by the device itself, or computed where they are, where it can: asking it takes as long as copying this.
const IMPORTED_BYTES: usize = 64 << 10;

/// A launch has at least so much text, if there is so much: shorter ones cost the processor more than the device gains by copying one while it computes another.
const LAUNCH_BYTES: usize = 4 << 20;

/// Of an engine whose device failed.
const LOST: &str = "the device was lost; restart to look for it again";

/// Of one whose device has a launch that is [late](Waited::Late).
const LATE: &str = "the device does not answer; what it was given before is waited for";

/// Of one that another process opened.
const INHERITED: &str = "it was opened before a fork, by another process, whose device it is; open it anew in this one";

/// A device with its streams, shared by the engine and its sessions.
pub(crate) struct Inner {
    pub(crate) name: String,
    owner: Owner,
    /// Dropped by its owner alone.
    pub(crate) device: ManuallyDrop<Box<dyn Device>>,
    idle: Mutex<Pool>,
    returned: Condvar,
    /// Its number among those that import memory, if it does.
    importer: Option<u64>,
    /// As long as its device is there.
    importing: Mutex<Option<Importing>>,
    /// After a launch that failed or did not end nothing more is tried: the manager has other engines.
    lost: AtomicBool,
    /// Launches under way that are late: until they have ended, nothing more is tried.
    late: AtomicUsize,
}

/// Why a batch was not computed.
enum Failure {
    /// Of the device nothing more is to be expected.
    Device(String),
    /// It may answer yet.
    Late,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Device(reason)
    }
}

/// A launch that is late, until it has ended.
struct Late<'a>(&'a Inner);

impl<'a> Late<'a> {
    fn begin(engine: &'a Inner) -> Self {
        let pool = engine.idle.lock().unwrap_or_else(PoisonError::into_inner);
        engine.late.fetch_add(1, Ordering::Relaxed);
        engine.returned.notify_all();
        drop(pool);
        Self(engine)
    }
}

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Pool {
    streams: Vec<Box<dyn Stream>>,
    /// Made so far.
    made: usize,
    /// How many there may be.
    most: usize,
}

/// A GPU as an engine. Cheap to clone: clones share the device.
#[derive(Clone)]
pub struct GpuEngine(pub(crate) Arc<Inner>);

/// A launch under way, and the parts in it.
struct Flight {
    stream: Box<dyn Stream>,
    parts: Vec<Part>,
}

/// Bytes of a task's text, and where they lie in a stream.
struct Part {
    task: usize,
    bytes: Range<usize>,
    place: Place,
    /// Where its output goes.
    to: Lies,
}

impl GpuEngine {
    pub(crate) fn new(name: &str, device: Box<dyn Device>) -> Self {
        let idle = Mutex::new(Pool { streams: Vec::new(), made: 0, most: device.streams() });
        let importer = device.imports().then(memory::importer);
        let importing = Mutex::new(importer.map(|_| Importing::begin()));
        Self(Arc::new(Inner {
            name: name.to_owned(),
            owner: Owner::this_process(),
            device: ManuallyDrop::new(device),
            idle,
            returned: Condvar::new(),
            importer,
            importing,
            lost: AtomicBool::new(false),
            late: AtomicUsize::new(0),
        }))
    }
}

impl Inner {
    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::EngineFailed { engine: self.name.clone(), reason }
    }

    /// Whether it may be used.
    ///
    /// # Errors
    /// [`Error::EngineFailed`] in a child of the process that opened it: there no driver is called, and no lock taken that its parent may have held.
    pub(crate) fn check_owner(&self) -> Result<()> {
        if self.owner.is_here() { Ok(()) } else { Err(self.failed(INHERITED.into())) }
    }

    /// Why nothing is tried at present.
    fn refusal(&self) -> Option<Error> {
        let known = [(self.lost.load(Ordering::Relaxed), LOST), (self.late.load(Ordering::Relaxed) > 0, LATE)];
        self.check_owner().err().or_else(|| known.iter().find(|(is_so, _)| *is_so).map(|(_, reason)| self.failed((*reason).into())))
    }

    /// An idle stream, or a new one if there may be more. With `wait`, the next that is returned: it is asked for only by who holds none.
    fn stream(&self, wait: bool) -> core::result::Result<Option<Box<dyn Stream>>, Failure> {
        let mut pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.lost.load(Ordering::Relaxed) {
                return Err(LOST.to_owned().into());
            }
            if self.late.load(Ordering::Relaxed) > 0 {
                return if wait { Err(Failure::Late) } else { Ok(None) };
            }
            if let Some(stream) = pool.streams.pop() {
                return Ok(Some(stream));
            }
            if pool.made < pool.most {
                match self.device.stream() {
                    Ok(stream) => {
                        pool.made += 1;
                        return Ok(Some(stream));
                    }
                    Err(reason) if pool.made == 0 => return Err(reason.into()),
                    // Where memory is short, fewer do the work.
                    Err(_) => pool.most = pool.made,
                }
            }
            if !wait {
                return Ok(None);
            }
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn give_back(&self, stream: Box<dyn Stream>) {
        let mut pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lost.load(Ordering::Relaxed) {
            // Nobody uses it any more. Closing it takes a driver's time: not under the lock.
            drop(pool);
            return drop(stream);
        }
        pool.streams.push(stream);
        self.returned.notify_one();
    }

    /// Whether memory was imported.
    #[cfg(test)]
    pub(crate) fn knows(&self, bytes: &[u8]) -> bool {
        let importer = self.importer.expect("a device that imports");
        memory::region(bytes).is_some_and(|region| region.import(importer, |_| None).is_some())
    }

    /// The streams that are idle, for tests to look into.
    #[cfg(test)]
    pub(crate) fn take_idle(&self) -> Vec<Box<dyn Stream>> {
        core::mem::take(&mut self.idle.lock().unwrap().streams)
    }

    fn lose(&self) {
        let mut pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.store(true, Ordering::Relaxed);
        self.returned.notify_all();
        let idle = core::mem::take(&mut pool.streams);
        drop(pool);
        // Texts of before are in their memory.
        drop(idle);
        drop(self.importing.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(crate) fn run(&self, batch: &mut [Task<'_>]) {
        if let Some(refusal) = self.refusal() {
            batch.iter_mut().for_each(|task| task.outcome = Err(refusal.clone()));
            return;
        }
        let mut messages: Vec<Option<Message<'_>>> = batch.iter().map(|task| self.message(task)).collect();
        let mut flights = VecDeque::new();
        if let Err(failure) = self.compute(&mut flights, batch, &mut messages) {
            let reason = match failure {
                Failure::Device(reason) => {
                    // First of all, so that nobody starts more; flights that are dropped may have to wait for the device.
                    self.lose();
                    reason
                }
                Failure::Late => LATE.to_owned(),
            };
            drop(flights);
            for (task, message) in batch.iter_mut().zip(&messages) {
                // What was already enciphered or deciphered of a failed operation must not be taken for the whole.
                if let Some(message) = message.as_ref().filter(|message| message.on_device > 0) {
                    message.discard(&mut task.operation);
                    task.outcome = Err(self.failed(reason.clone()));
                }
            }
            messages.iter_mut().for_each(|message| {
                message.take_if(|message| message.on_device > 0);
            });
        }
        for (task, message) in batch.iter_mut().zip(messages) {
            match message {
                Some(message) => task.outcome = message.finish(&mut task.operation),
                None if task.outcome == Err(Error::NotRun) => task.outcome = Err(self.failed("the session is another engine's".into())),
                None => {}
            }
        }
    }

    /// Where the device finds a text.
    fn lies(&self, text: &[u8]) -> Lies {
        let found = || {
            let importer = self.importer.filter(|_| text.len() >= IMPORTED_BYTES)?;
            let region = memory::region(text)?;
            let imported = region.import(importer, |region| Some(Arc::new(self.device.import(region)?)))?;
            let imported: &dyn Any = &*imported;
            let &Window { handle, computes, .. } = imported.downcast_ref()?;
            Some(Lies::Imported { handle, offset: text.as_ptr().addr() - region.address(), computes })
        };
        found().unwrap_or(Lies::Staged)
    }

    fn message<'a>(&self, task: &Task<'a>) -> Option<Message<'a>> {
        let session: &'a Session = task.keyed.as_any().downcast_ref()?;
        Some(Message::new(session, &task.operation))
    }

    /// Runs all that is for the device. An error is the device's: nothing more is to be expected of it, and what is under way is left in `flights`.
    fn compute(
        &self,
        flights: &mut VecDeque<Flight>,
        batch: &mut [Task<'_>],
        messages: &mut [Option<Message<'_>>],
    ) -> core::result::Result<(), Failure> {
        let left: usize = messages.iter().flatten().map(|message| message.on_device - message.given).sum();
        // What all streams together could take is shared out among them.
        let share = (left / self.device.streams().max(1)).next_multiple_of(4096).max(LAUNCH_BYTES);
        let mut next = 0;
        loop {
            while next < batch.len() && messages[next].as_ref().is_none_or(|message| message.given == message.on_device) {
                next += 1;
            }
            if next == batch.len() {
                break;
            }
            let Some(mut stream) = self.stream(flights.is_empty())? else {
                self.land(flights, batch, messages)?;
                continue;
            };
            let (launch, parts) = self.fill(&mut *stream, batch, messages, next, share);
            let started = stream.start(&launch);
            flights.push_back(Flight { stream, parts });
            started?;
        }
        while !flights.is_empty() {
            self.land(flights, batch, messages)?;
        }
        Ok(())
    }

    /// Fills a stream with parts of the messages from `next` on, no more than a share of text.
    fn fill(
        &self,
        stream: &mut dyn Stream,
        batch: &mut [Task<'_>],
        messages: &mut [Option<Message<'_>>],
        next: usize,
        share: usize,
    ) -> (Launch, Vec<Part>) {
        let mut filling = Filling::new(self.device.layout(), share);
        let mut parts = Vec::new();
        for task in next..batch.len() {
            let Some(message) = &mut messages[task] else { continue };
            let wanted = message.on_device - message.given;
            let bytes = if wanted == 0 { continue } else { filling.room(wanted, message.words()) };
            if bytes == 0 {
                break;
            }
            let range = message.given..message.given + bytes;
            let operation = &mut batch[task].operation;
            let from = self.lies(&operation.data.input()[range.clone()]);
            let to = self.lies(&operation.data.output()[range.clone()]);
            let place = message.give(operation, bytes, (from, to), &mut filling, stream);
            parts.push(Part { task, bytes: range, place, to });
            if bytes < wanted {
                break;
            }
        }
        debug_assert!(!filling.is_empty(), "an empty stream has room for some of any text");
        (filling.launch(stream), parts)
    }

    /// Waits for a launch. If it is late, others need not wait for it.
    fn wait(&self, stream: &mut dyn Stream) -> core::result::Result<(), String> {
        let mut late = None;
        while stream.wait()? == Waited::Late {
            late.get_or_insert_with(|| Late::begin(self));
        }
        Ok(())
    }

    /// Waits for the oldest launch and takes what it computed.
    fn land(
        &self,
        flights: &mut VecDeque<Flight>,
        batch: &mut [Task<'_>],
        messages: &mut [Option<Message<'_>>],
    ) -> core::result::Result<(), Failure> {
        if let Some(flight) = flights.front_mut() {
            self.wait(&mut *flight.stream)?;
        }
        let Some(Flight { mut stream, parts }) = flights.pop_front() else { return Ok(()) };
        for Part { task, bytes, place, to } in parts {
            let len = bytes.len();
            if to == Lies::Staged {
                batch[task].operation.data.output()[bytes].copy_from_slice(&stream.output()[place.text..][..len]);
            }
            let sum = &mut stream.output()[place.sum..][..32];
            if let Some(message) = &mut messages[task] {
                message.take(len, sum);
            }
            sum.zeroize();
        }
        self.give_back(stream);
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owner.is_here() {
            // SAFETY: it is dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.device) };
        } else {
            // The device is its owner's, with all that was made of it.
            core::mem::forget(core::mem::take(&mut self.idle.get_mut().unwrap_or_else(PoisonError::into_inner).streams));
        }
    }
}

impl Engine for GpuEngine {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn describe(&self) -> String {
        self.0.device.describe()
    }

    fn capabilities(&self) -> &[Algorithm] {
        CAPABILITIES
    }

    /// Two, so that one fills streams while the other waits.
    fn workers(&self) -> usize {
        2
    }

    fn batch_max(&self) -> usize {
        BATCH
    }

    /// Associated data is gone over by the host's processor, bit by bit: some forty times as long as by the CPU engine.
    fn suits(&self, text: usize, aad: usize) -> bool {
        aad <= AAD_USUAL.max(text / AAD_SHARE)
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(Session::open(&self.0, params)?))
    }

    fn run(&self, batch: &mut [Task<'_>]) {
        self.0.run(batch);
    }
}

#[cfg(test)]
mod tests;
