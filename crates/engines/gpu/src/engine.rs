//! A batch on its way: parts of its texts fill streams, several of which are under way at a time, so that copying in, computing and copying out overlap.

use crate::device::{Device, Launch, Lies, Stream, Window};
use crate::launch::{Filling, Place};
use crate::message::Message;
use crate::session::Session;
use bywash_core::memory::{self, Importing};
use bywash_core::{Algorithm, Engine, Error, Keyed, Result, SessionParams, Task};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use zeroize::Zeroize;

/// Operations that gain from one launch.
const BATCH: usize = 1024;

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

/// A device with its streams, shared by the engine and its sessions.
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) device: Box<dyn Device>,
    idle: Mutex<Pool>,
    returned: Condvar,
    /// Its number among those that import memory, if it does.
    importer: Option<u64>,
    /// As long as its device is there.
    importing: Mutex<Option<Importing>>,
    /// After a launch that failed or did not end nothing more is tried: the manager has other engines.
    lost: AtomicBool,
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
        let lost = AtomicBool::new(false);
        Self(Arc::new(Inner { name: name.to_owned(), device, idle, returned: Condvar::new(), importer, importing, lost }))
    }
}

impl Inner {
    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::EngineFailed { engine: self.name.clone(), reason }
    }

    /// An idle stream, or a new one if there may be more. With `wait`, the next that is returned: it is asked for only by who holds none.
    fn stream(&self, wait: bool) -> core::result::Result<Option<Box<dyn Stream>>, String> {
        let mut pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.lost.load(Ordering::Relaxed) {
                return Err(LOST.into());
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
                    Err(reason) if pool.made == 0 => return Err(reason),
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
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).streams.push(stream);
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
        let pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.store(true, Ordering::Relaxed);
        self.returned.notify_all();
        drop(pool);
        drop(self.importing.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(crate) fn run(&self, batch: &mut [Task<'_>]) {
        if self.lost.load(Ordering::Relaxed) {
            batch.iter_mut().for_each(|task| task.outcome = Err(self.failed(LOST.into())));
            return;
        }
        let mut messages: Vec<Option<Message<'_>>> = batch.iter().map(|task| self.message(task)).collect();
        let mut flights = VecDeque::new();
        if let Err(reason) = self.compute(&mut flights, batch, &mut messages) {
            // First of all, so that nobody starts more; flights that are dropped may have to wait for the device.
            self.lose();
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
    ) -> core::result::Result<(), String> {
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

    /// Waits for the oldest launch and takes what it computed.
    fn land(
        &self,
        flights: &mut VecDeque<Flight>,
        batch: &mut [Task<'_>],
        messages: &mut [Option<Message<'_>>],
    ) -> core::result::Result<(), String> {
        if let Some(flight) = flights.front_mut() {
            flight.stream.wait()?;
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

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(Session::open(&self.0, params)?))
    }

    fn run(&self, batch: &mut [Task<'_>]) {
        self.0.run(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Layout;
    use bywash_core::memory::{Imported, Region};
    use bywash_core::{Data, Direction, HostMemory, Key, Operation};
    use core::sync::atomic::AtomicUsize;
    use std::sync::{Barrier, OnceLock};
    use std::time::Instant;

    /// A device whose launches compute nothing, and fail after a few.
    struct Broken {
        layout: Layout,
        engine: Arc<OnceLock<GpuEngine>>,
        /// Launches that end.
        good: Arc<AtomicUsize>,
        /// Streams that can be made, of the two it promises.
        streams: AtomicUsize,
    }

    /// Control, input, output.
    struct BrokenStream(Vec<u32>, Vec<u8>, Vec<u8>, Arc<OnceLock<GpuEngine>>, Arc<AtomicUsize>);

    /// One less, if there is any.
    fn take(number: &AtomicUsize) -> bool {
        number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
    }

    fn broken(good: usize, streams: usize) -> Broken {
        let (good, streams) = (Arc::new(AtomicUsize::new(good)), AtomicUsize::new(streams));
        Broken { layout: Layout::new(8 << 10), engine: Arc::default(), good, streams }
    }

    /// On memory that nobody reaches.
    struct Nothing;

    impl Imported for Nothing {
        fn hangs(&self) -> bool {
            false
        }
    }

    /// Real streams wait here for what is under way: by then nobody else may be waiting for one that comes back, or start another.
    impl Drop for BrokenStream {
        fn drop(&mut self) {
            assert!(self.3.get().is_none_or(|engine| engine.0.lost.load(Ordering::Relaxed)));
        }
    }

    impl Device for Broken {
        fn describe(&self) -> String {
            "broken".into()
        }

        fn layout(&self) -> Layout {
            self.layout
        }

        fn streams(&self) -> usize {
            2
        }

        fn imports(&self) -> bool {
            true
        }

        fn import(&self, _: &Region) -> Option<Window> {
            Some(Window { handle: 0, computes: false, hold: Box::new(Nothing) })
        }

        fn stream(&self) -> core::result::Result<Box<dyn Stream>, String> {
            let layout = self.layout;
            let made = || {
                BrokenStream(
                    vec![0; layout.control],
                    vec![0; layout.text],
                    vec![7; layout.output()],
                    self.engine.clone(),
                    self.good.clone(),
                )
            };
            if take(&self.streams) { Ok(Box::new(made())) } else { Err("no memory".into()) }
        }
    }

    impl Stream for BrokenStream {
        fn control(&mut self) -> &mut [u32] {
            &mut self.0
        }

        fn input(&mut self) -> &mut [u8] {
            &mut self.1
        }

        fn output(&mut self) -> &mut [u8] {
            &mut self.2
        }

        fn start(&mut self, _: &Launch) -> core::result::Result<(), String> {
            Ok(())
        }

        fn wait(&mut self) -> core::result::Result<(), String> {
            if take(&self.4) { Ok(()) } else { Err("the device did not answer".into()) }
        }

        fn resident(&mut self, _: &Launch, _: u32, _: &Barrier) -> core::result::Result<Range<Instant>, String> {
            self.wait().map(|()| Instant::now()..Instant::now())
        }

        fn start_copies(&mut self, _: bool, _: u32) -> core::result::Result<(), String> {
            Ok(())
        }

        fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
            (Vec::new(), Vec::new())
        }
    }

    /// What the manager needs to run them elsewhere: each says that the engine failed, now and later, and the text that was to be replaced is still there.
    #[test]
    fn a_device_that_is_lost_loses_no_text() {
        let device = broken(0, 2);
        let itself = device.engine.clone();
        let engine = GpuEngine::new("gpu-broken", Box::new(device));
        itself.get_or_init(|| engine.clone());
        let params = SessionParams::new(Algorithm::Aes128Gcm, Key::Symmetric((&[1; 16]).into())).unwrap();
        let keyed = engine.open(&params).unwrap();
        for round in 0..2 {
            let (mut text, mut empty, mut tags) = (vec![9; 100_000], [], [[0; 16]; 2]);
            let [first, second] = &mut tags;
            let operation = |data, tag| Operation { direction: Direction::Encrypt, iv: &[0; 12], aad: &[], data, tag };
            let mut batch = [
                Task::new(&*keyed, operation(Data::InPlace(&mut text), first)),
                Task::new(&*keyed, operation(Data::InPlace(&mut empty), second)),
            ];
            engine.run(&mut batch);
            let [long, short] = batch;
            let reason = if round == 0 { "did not answer" } else { "lost" };
            assert!(long.outcome.is_err_and(|error| matches!(&error, Error::EngineFailed { .. }) && error.to_string().contains(reason)));
            let alone = short.outcome == Ok(0);
            assert_eq!(alone, round == 0, "the host alone computes this one, until the manager is to know that the engine is lost");
            assert!(text.iter().all(|byte| *byte == 9));
        }
    }

    /// What came back before the failure was never verified.
    #[test]
    fn an_aead_that_fails_midway_leaves_no_text() {
        for copies in [false, true] {
            for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
                let engine = GpuEngine::new("gpu-broken", Box::new(broken(1, 2)));
                let params = SessionParams::new(algorithm, Key::Symmetric((&[1; 32]).into())).unwrap();
                let keyed = engine.open(&params).unwrap();
                let (input, mut buffer, mut tag) = ([9; 30_000], [9; 30_000], [0; 16]);
                let data = if copies { Data::Copy { input: &input, output: &mut buffer } } else { Data::InPlace(&mut buffer) };
                let outcome = keyed.run(&mut Operation { direction: Direction::Decrypt, iv: &[0; 12], aad: &[], data, tag: &mut tag });
                assert!(matches!(outcome, Err(Error::EngineFailed { .. })), "{outcome:?}");
                let end = if copies { buffer.len() } else { 8 << 10 };
                assert!(buffer[..end].iter().all(|byte| *byte == 0), "{algorithm}, copies: {copies}");
                assert!(buffer[end..].iter().all(|byte| *byte == 9), "what did not come back is still there");
            }
        }
    }

    /// Zeros are left of a text of four launches in imported memory, in place, of which one was taken, the next failed, and the third was under way.
    fn failed_midway(algorithm: Algorithm, direction: Direction, iv: &[u8], tag: &mut [u8]) {
        const STREAM: usize = 64 << 10;
        let engine = GpuEngine::new("gpu-broken", Box::new(Broken { layout: Layout::new(STREAM), ..broken(1, 2) }));
        let key = Key::Symmetric(vec![1; algorithm.key_lengths().0][..].into());
        let keyed = engine.open(&SessionParams::new(algorithm, key).unwrap()).unwrap();
        let mut buffer = HostMemory::zeroed(4 * STREAM);
        buffer.fill(9);
        let outcome = keyed.run(&mut Operation { direction, iv, aad: &[], data: Data::InPlace(&mut buffer), tag });
        assert!(matches!(outcome, Err(Error::EngineFailed { .. })) && engine.0.knows(&buffer), "{outcome:?}");
        assert!(buffer[..3 * STREAM].iter().all(|byte| *byte == 0) && buffer[3 * STREAM..].iter().all(|byte| *byte == 9));
    }

    /// Where the device writes by itself, what it was given may have come back although nobody took it.
    #[test]
    fn an_aead_that_fails_midway_leaves_no_text_in_imported_memory() {
        failed_midway(Algorithm::Aes256Gcm, Direction::Decrypt, &[0; 12], &mut [0; 16]);
    }

    /// Where it was replaced in part, whoever tried again would decipher that part.
    #[test]
    fn a_cipher_that_fails_midway_in_imported_memory_leaves_no_mixture() {
        failed_midway(Algorithm::Aes128Ctr, Direction::Encrypt, &[0; 16], &mut []);
    }

    #[test]
    fn a_stream_fewer_than_wanted_does() {
        let engine = GpuEngine::new("gpu-small", Box::new(broken(100, 1)));
        let params = SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[1; 16]).into())).unwrap();
        let keyed = engine.open(&params).unwrap();
        let data = Data::InPlace(&mut [9; 30_000]);
        let outcome = keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &[0; 16], aad: &[], data, tag: &mut [] });
        assert_eq!(outcome, Ok(30_000));
    }

    #[test]
    fn a_device_that_computes_wrongly_is_found_out() {
        let engine = GpuEngine::new("gpu-wrong", Box::new(broken(100, 2)));
        assert!(crate::selftest::check(&engine).unwrap_err().contains("computes wrongly"));
    }
}
