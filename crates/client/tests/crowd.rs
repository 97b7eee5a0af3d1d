//! Threads of one process that compute in place together, on a toy engine with lanes.

#[path = "common/toy.rs"]
mod toy;

use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, Result, SessionParams, Task};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use toy::Toy;

/// The toy with eight lanes. Keeps a record of its batches; may stand still, or panic.
#[derive(Default)]
struct Wide {
    batches: Mutex<Vec<usize>>,
    inside: AtomicUsize,
    stands: AtomicBool,
    panics: AtomicBool,
}

impl Engine for Wide {
    fn name(&self) -> &str {
        "wide"
    }
    fn describe(&self) -> String {
        "XOR in eight lanes, for tests".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        Toy.capabilities()
    }
    fn workers(&self) -> usize {
        1
    }
    fn batch_max(&self) -> usize {
        8
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Toy.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        self.batches.lock().unwrap().push(batch.len());
        self.inside.fetch_add(1, SeqCst);
        until(|| !self.stands.load(SeqCst));
        self.inside.fetch_sub(1, SeqCst);
        assert!(!self.panics.load(SeqCst), "as the test wants it");
        for task in batch {
            task.outcome = task.keyed.run(&mut task.operation);
        }
    }
}

fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wide() -> (Client, Arc<Wide>) {
    let engine = Arc::new(Wide::default());
    (Client::with_engine(Config { route: Route::Here, ..Config::default() }, engine.clone()), engine)
}

fn session(client: &Client) -> bywash_client::Session {
    client.session(SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[0x20; 16]).into())).unwrap()).unwrap()
}

fn run(session: &bywash_client::Session, byte: u8) -> Result<()> {
    let (input, mut output) = ([byte; 6], [0; 6]);
    let data = Data::Copy { input: &input, output: &mut output };
    session.run(&mut Operation { direction: Direction::Encrypt, iv: &[0; 16], aad: &[], data, tag: &mut [] })?;
    assert_eq!(output, [byte ^ 0x20; 6]);
    Ok(())
}

#[test]
fn a_single_thread_never_meets_anybody() {
    let (client, engine) = wide();
    let session = session(&client);
    (0..100).for_each(|byte| run(&session, byte).unwrap());
    assert!(engine.batches.lock().unwrap().is_empty(), "each went straight to its key");
    assert_eq!(client.counted(Algorithm::Aes128Ctr), (100, 600));
}

#[test]
fn threads_that_come_during_a_batch_share_the_next() {
    let (client, engine) = wide();
    let session = session(&client);
    run(&session, 0).unwrap();
    engine.stands.store(true, SeqCst);
    std::thread::scope(|scope| {
        let session = &session;
        scope.spawn(move || run(session, 1).unwrap());
        until(|| engine.inside.load(SeqCst) == 1);
        let threads: Vec<_> = (2..18).map(|byte| scope.spawn(move || run(session, byte).unwrap())).collect();
        // They need a moment to get there: one that is late makes a batch smaller, and a third one.
        std::thread::sleep(Duration::from_millis(200));
        assert!(threads.iter().all(|thread| !thread.is_finished()));
        engine.stands.store(false, SeqCst);
    });
    let batches = engine.batches.lock().unwrap().clone();
    assert_eq!(batches.iter().sum::<usize>(), 17, "{batches:?}");
    assert!(batches[1..].contains(&8), "{batches:?}");
    assert_eq!(client.counted(Algorithm::Aes128Ctr), (18, 108), "each is counted once");
}

#[test]
fn a_panic_of_the_engine_is_an_error_of_its_batch_and_of_nothing_else() {
    let (client, engine) = wide();
    let session = session(&client);
    run(&session, 0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(&session, 1).unwrap();
            engine.panics.store(true, SeqCst);
            assert!(matches!(run(&session, 2), Err(Error::EngineFailed { .. })));
            engine.panics.store(false, SeqCst);
            run(&session, 3).unwrap();
        });
    });
}
