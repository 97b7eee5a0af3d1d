//! Devices that fail: what becomes of the texts, the streams and those who wait.

use super::*;
use crate::device::Layout;
use bywash_core::memory::{Imported, Region};
use bywash_core::{Data, Direction, HostMemory, Key, Operation};
use core::time::Duration;
use std::sync::{Barrier, OnceLock};
use std::time::Instant;

/// A device whose launches compute nothing, and fail after a few.
struct Broken {
    layout: Layout,
    /// Streams that can be made, of the two it promises.
    streams: AtomicUsize,
    known: Arc<Known>,
}

/// What a device and its streams know.
#[derive(Default)]
struct Known {
    engine: OnceLock<GpuEngine>,
    /// Launches that end.
    good: AtomicUsize,
    /// What was asked of the device or of a stream.
    calls: AtomicUsize,
    /// Streams that are there.
    alive: AtomicUsize,
    /// Whether launches are late until they are let go on.
    late: AtomicBool,
}

struct BrokenStream {
    control: Vec<u32>,
    input: Vec<u8>,
    output: Vec<u8>,
    known: Arc<Known>,
}

/// One less, if there is any.
fn take(number: &AtomicUsize) -> bool {
    number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

fn broken(good: usize, streams: usize) -> Broken {
    let known = Arc::new(Known { good: AtomicUsize::new(good), ..Known::default() });
    Broken { layout: Layout::new(8 << 10), streams: AtomicUsize::new(streams), known }
}

/// The same with longer streams.
fn with_streams_of(text: usize, mut device: Broken) -> Broken {
    device.layout = Layout::new(text);
    device
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
        self.known.alive.fetch_sub(1, Ordering::Relaxed);
        assert!(self.known.engine.get().is_none_or(|engine| engine.0.lost.load(Ordering::Relaxed) && engine.0.idle.try_lock().is_ok()));
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        self.known.calls.fetch_add(1, Ordering::Relaxed);
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
        self.known.calls.fetch_add(1, Ordering::Relaxed);
        Some(Window { handle: 0, computes: false, hold: Box::new(Nothing) })
    }

    fn stream(&self) -> core::result::Result<Box<dyn Stream>, String> {
        let (layout, known) = (self.layout, self.known.clone());
        known.calls.fetch_add(1, Ordering::Relaxed);
        if !take(&self.streams) {
            return Err("no memory".into());
        }
        known.alive.fetch_add(1, Ordering::Relaxed);
        let (control, input, output) = (vec![0; layout.control], vec![0; layout.text], vec![7; layout.output()]);
        Ok(Box::new(BrokenStream { control, input, output, known }))
    }
}

impl Stream for BrokenStream {
    fn control(&mut self) -> &mut [u32] {
        &mut self.control
    }

    fn input(&mut self) -> &mut [u8] {
        &mut self.input
    }

    fn output(&mut self) -> &mut [u8] {
        &mut self.output
    }

    fn start(&mut self, _: &Launch) -> core::result::Result<(), String> {
        self.known.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn wait(&mut self) -> core::result::Result<Waited, String> {
        self.known.calls.fetch_add(1, Ordering::Relaxed);
        if self.known.late.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            return Ok(Waited::Late);
        }
        if take(&self.known.good) { Ok(Waited::Ended) } else { Err("the device did not answer".into()) }
    }

    fn resident(&mut self, _: &Launch, _: u32, _: &Barrier) -> core::result::Result<Range<Instant>, String> {
        self.wait().map(|_| Instant::now()..Instant::now())
    }

    fn start_copies(&mut self, _: bool, _: u32) -> core::result::Result<(), String> {
        Ok(())
    }

    fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
        (Vec::new(), Vec::new())
    }
}

fn open(engine: &GpuEngine) -> Box<dyn Keyed> {
    engine.open(&SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[1; 16]).into())).unwrap()).unwrap()
}

fn encrypt(keyed: &dyn Keyed, text: &mut [u8]) -> Result<usize> {
    keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &[0; 16], aad: &[], data: Data::InPlace(text), tag: &mut [] })
}

fn is_failure(outcome: &Result<usize>, reason: &str) -> bool {
    outcome.as_ref().is_err_and(|error| matches!(error, Error::EngineFailed { .. }) && error.to_string().contains(reason))
}

/// What the manager needs to run them elsewhere: each says that the engine failed, now and later, and the text that was to be replaced is still there.
#[test]
fn a_device_that_is_lost_loses_no_text() {
    let device = broken(0, 2);
    let known = device.known.clone();
    let engine = GpuEngine::new("gpu-broken", Box::new(device));
    known.engine.get_or_init(|| engine.clone());
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
    let engine = GpuEngine::new("gpu-broken", Box::new(with_streams_of(STREAM, broken(1, 2))));
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
    assert_eq!(encrypt(&*open(&engine), &mut [9; 30_000]), Ok(30_000));
}

#[test]
fn a_device_that_computes_wrongly_is_found_out() {
    let engine = GpuEngine::new("gpu-wrong", Box::new(broken(100, 2)));
    assert!(crate::selftest::check(&engine).unwrap_err().contains("computes wrongly"));
}

/// Their memory has texts of before: it goes as soon as nobody uses it any more.
#[test]
fn a_device_that_is_lost_keeps_no_streams() {
    let device = broken(4, 3);
    let known = device.known.clone();
    let engine = GpuEngine::new("gpu-broken", Box::new(device));
    known.engine.get_or_init(|| engine.clone());
    let alive = || known.alive.load(Ordering::Relaxed);
    let keyed = open(&engine);
    assert_eq!((encrypt(&*keyed, &mut [9; 30_000]), alive()), (Ok(30_000), 2));
    // Another worker has one of both.
    let mut streams = engine.0.take_idle();
    let busy = streams.pop().unwrap();
    streams.push(engine.0.device.stream().unwrap());
    streams.drain(..).for_each(|stream| engine.0.give_back(stream));
    assert!(is_failure(&encrypt(&*keyed, &mut [9; 100]), "did not answer"));
    assert_eq!(alive(), 1, "that of the launch and the idle one are closed");
    engine.0.give_back(busy);
    assert_eq!(alive(), 0, "and what comes back");
}

/// One launch in memory of others is waited for until it ends. Nobody else waits with it, be it for a stream or with a new batch; and once it has ended all is as before.
#[test]
fn a_device_that_is_late_keeps_nobody_else_waiting() {
    let device = with_streams_of(64 << 10, broken(100, 1));
    let known = device.known.clone();
    let engine = GpuEngine::new("gpu-late", Box::new(device));
    let keyed = open(&engine);
    known.late.store(true, Ordering::Relaxed);
    let is_late = || engine.0.late.load(Ordering::Relaxed) > 0;
    std::thread::scope(|scope| {
        let run = || encrypt(&*keyed, &mut HostMemory::zeroed(64 << 10));
        let first = scope.spawn(run);
        while known.alive.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // This one finds no stream, and waits for one, or comes later still.
        let second = scope.spawn(run);
        let outcome = second.join().unwrap();
        assert!(is_late() && is_failure(&outcome, "does not answer"), "{outcome:?}");
        let outcome = run();
        assert!(is_late() && is_failure(&outcome, "does not answer"), "{outcome:?}");
        known.late.store(false, Ordering::Relaxed);
        assert_eq!(first.join().unwrap(), Ok(64 << 10));
        assert!(!is_late() && run() == Ok(64 << 10));
    });
}

/// Neither the device nor a stream is asked for anything, not even to end.
#[test]
fn a_child_of_fork_is_refused_by_what_its_parent_opened() {
    let device = broken(100, 2);
    let known = device.known.clone();
    let engine = GpuEngine::new("gpu-inherited", Box::new(device));
    let keyed = open(&engine);
    assert_eq!(encrypt(&*keyed, &mut [9; 30_000]), Ok(30_000));
    let numbers = || (known.calls.load(Ordering::Relaxed), known.alive.load(Ordering::Relaxed));
    let before = numbers();
    let (mut text, mut imported) = ([9; 30_000], HostMemory::zeroed(100_000));
    let (mut engine, mut keyed) = (Some(engine), Some(keyed));
    // Another thread had it just then.
    let inner = engine.as_ref().unwrap().0.clone();
    let pool = inner.idle.lock().unwrap();
    let is_refused = crate::tests::in_a_child(|| {
        let (Some(engine), Some(keyed)) = (engine.take(), keyed.take()) else { return false };
        let refused = [encrypt(&*keyed, &mut text), encrypt(&*keyed, &mut imported), engine.copies(1).map(|_| 0)];
        let params = SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[1; 16]).into()));
        let opened = params.and_then(|params| engine.open(&params)).map(|_| 0);
        refused.iter().chain([&opened]).all(|outcome| is_failure(outcome, "before a fork")) && text == [9; 30_000]
    });
    drop(pool);
    assert!(is_refused);
    let keeps = crate::tests::in_a_child(|| {
        drop((engine.take(), keyed.take()));
        // The last one.
        Arc::into_inner(inner).is_some_and(|inner| {
            drop(inner);
            numbers() == before
        })
    });
    assert!(keeps);
}
