//! A batch on its way: parts of its texts fill streams, several of which are under way at a time, so that copying in, computing and copying out overlap.

use crate::device::{Device, Launch, Stream};
use crate::launch::{Filling, Place};
use crate::message::{Message, output};
use crate::session::Session;
use bywash_core::{Algorithm, Engine, Error, Keyed, Result, SessionParams, Task};
use core::sync::atomic::{AtomicBool, Ordering};
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

/// A device with its streams, shared by the engine and its sessions.
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) device: Box<dyn Device>,
    idle: Mutex<Pool>,
    returned: Condvar,
    /// After a launch that failed or did not end nothing more is tried: the manager has other engines.
    lost: AtomicBool,
}

struct Pool {
    streams: Vec<Box<dyn Stream>>,
    /// Made so far.
    made: usize,
}

/// A GPU as an engine. Cheap to clone: clones share the device.
#[derive(Clone)]
pub struct GpuEngine(pub(crate) Arc<Inner>);

/// A launch under way, and the parts in it: task, bytes from and to, place.
struct Flight {
    stream: Box<dyn Stream>,
    parts: Vec<(usize, usize, usize, Place)>,
}

impl GpuEngine {
    pub(crate) fn new(name: &str, device: Box<dyn Device>) -> Self {
        let idle = Mutex::new(Pool { streams: Vec::new(), made: 0 });
        Self(Arc::new(Inner { name: name.to_owned(), device, idle, returned: Condvar::new(), lost: AtomicBool::new(false) }))
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
                return Err("the device was lost; restart to look for it again".into());
            }
            if let Some(stream) = pool.streams.pop() {
                return Ok(Some(stream));
            }
            if pool.made < self.device.streams() {
                let stream = self.device.stream()?;
                pool.made += 1;
                return Ok(Some(stream));
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

    /// The streams that are idle, for tests to look into.
    #[cfg(test)]
    pub(crate) fn take_idle(&self) -> Vec<Box<dyn Stream>> {
        core::mem::take(&mut self.idle.lock().unwrap().streams)
    }

    fn lose(&self) {
        let _pool = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.store(true, Ordering::Relaxed);
        self.returned.notify_all();
    }

    pub(crate) fn run(&self, batch: &mut [Task<'_>]) {
        let mut messages: Vec<Option<Message<'_>>> = batch.iter().map(|task| self.message(task)).collect();
        let mut flights = VecDeque::new();
        if let Err(reason) = self.compute(&mut flights, batch, &mut messages) {
            // First of all, so that nobody starts more; flights that are dropped may have to wait for the device.
            self.lose();
            drop(flights);
            for (task, message) in batch.iter_mut().zip(&messages) {
                // What was already enciphered or deciphered of a failed operation must not be taken for the whole.
                if message.as_ref().is_some_and(|message| message.on_device > 0) {
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
            let (launch, parts) = self.fill(&mut *stream, batch, messages, next);
            let started = stream.start(&launch);
            flights.push_back(Flight { stream, parts });
            started?;
        }
        while !flights.is_empty() {
            self.land(flights, batch, messages)?;
        }
        Ok(())
    }

    /// Fills a stream with parts of the messages from `next` on.
    fn fill(
        &self,
        stream: &mut dyn Stream,
        batch: &[Task<'_>],
        messages: &mut [Option<Message<'_>>],
        next: usize,
    ) -> (Launch, Vec<(usize, usize, usize, Place)>) {
        let mut filling = Filling::new(self.device.layout());
        let mut parts = Vec::new();
        for index in next..batch.len() {
            let Some(message) = &mut messages[index] else { continue };
            let wanted = message.on_device - message.given;
            let bytes = if wanted == 0 { continue } else { filling.room(wanted, message.words()) };
            if bytes == 0 {
                break;
            }
            let from = message.given;
            let place = message.give(&batch[index].operation, bytes, &mut filling, stream);
            parts.push((index, from, from + bytes, place));
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
        for (index, from, to, place) in parts {
            let text = &stream.output()[place.text..place.text + to - from];
            output(&mut batch[index].operation.data)[from..to].copy_from_slice(text);
            let sum = &mut stream.output()[place.sum..place.sum + 32];
            if let Some(message) = &mut messages[index] {
                message.take(to - from, sum);
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
    use bywash_core::{Data, Direction, Key, Operation};
    use core::time::Duration;
    use std::sync::OnceLock;

    /// A device whose launches all fail, the first at its end and any later one at its start.
    struct Broken(Layout, Arc<OnceLock<GpuEngine>>);

    struct BrokenStream(Vec<u32>, Vec<u8>, Vec<u8>, Arc<OnceLock<GpuEngine>>);

    /// Real streams wait here for what is under way: by then nobody else may be waiting for one that comes back, or start another.
    impl Drop for BrokenStream {
        fn drop(&mut self) {
            assert!(self.3.get().unwrap().0.lost.load(Ordering::Relaxed));
        }
    }

    impl Device for Broken {
        fn describe(&self) -> String {
            "broken".into()
        }

        fn layout(&self) -> Layout {
            self.0
        }

        fn streams(&self) -> usize {
            2
        }

        fn stream(&self) -> core::result::Result<Box<dyn Stream>, String> {
            Ok(Box::new(BrokenStream(vec![0; self.0.control], vec![0; self.0.text], vec![0; self.0.output()], self.1.clone())))
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
            Err("the device did not answer".into())
        }

        fn resident(&mut self, _: &Launch, _: u32) -> core::result::Result<Duration, String> {
            self.wait().map(|()| Duration::ZERO)
        }

        fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
            (Vec::new(), Vec::new())
        }
    }

    /// What the manager needs to run them elsewhere: each says that the engine failed, now and later, and the text that was to be replaced is still there.
    #[test]
    fn a_device_that_is_lost_loses_no_text() {
        let itself = Arc::new(OnceLock::new());
        let engine = GpuEngine::new("gpu-broken", Box::new(Broken(Layout::new(8 << 10), itself.clone())));
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
            assert_eq!(short.outcome, Ok(0), "the host alone computes this one");
            assert!(text.iter().all(|byte| *byte == 9));
        }
    }
}
