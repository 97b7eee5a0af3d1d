//! Threads of one process that compute in place together, on a toy engine with lanes.

#[path = "common/toy.rs"]
#[allow(dead_code, reason = "shared with the tests of a broker, which use all of it")]
mod toy;
#[path = "common/until.rs"]
mod until;

use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Engine, Error, Keyed, Result, SessionParams, Task};
use bywash_manager::calibrate::sample;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toy::Xor;
use until::until;

/// What threads wait for each other for: it is known to take long.
const ALGORITHM: Algorithm = Algorithm::Rsa2048Private;
const BYTES: u64 = 256;

/// The toy with eight lanes, under the name of RSA. Keeps a record of its batches; may stand still, or panic.
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
        &[ALGORITHM]
    }
    fn workers(&self) -> usize {
        1
    }
    fn batch_max(&self) -> usize {
        8
    }
    fn open(&self, _: &SessionParams) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(Xor(0x20)))
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        self.batches.lock().unwrap().push(batch.len());
        self.inside.fetch_add(1, SeqCst);
        until("it may go on", || !self.stands.load(SeqCst));
        self.inside.fetch_sub(1, SeqCst);
        assert!(!self.panics.load(SeqCst), "as the test wants it");
        for task in batch {
            task.outcome = task.keyed.run(&mut task.operation);
        }
    }
}

fn wide() -> (Client, Arc<Wide>) {
    let engine = Arc::new(Wide::default());
    (Client::with_engine(Config { route: Route::Here, ..Config::default() }, engine.clone()), engine)
}

fn session(client: &Client) -> bywash_client::Session {
    client.session(sample(ALGORITHM, 0).unwrap().0).unwrap()
}

fn run(session: &bywash_client::Session, byte: u8) -> Result<()> {
    let (_, mut operation) = sample(ALGORITHM, 0).unwrap();
    operation.input[255] = byte;
    session.run(&mut operation.borrow())?;
    assert_eq!(operation.output[255], byte ^ 0x20);
    Ok(())
}

#[test]
fn a_single_thread_never_meets_anybody() {
    let (client, engine) = wide();
    let session = session(&client);
    (0..100).for_each(|byte| run(&session, byte).unwrap());
    assert!(engine.batches.lock().unwrap().is_empty(), "each went straight to its key");
    assert_eq!(client.counted(ALGORITHM), (100, 100 * BYTES));
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
        until("a batch is being computed", || engine.inside.load(SeqCst) == 1);
        let threads: Vec<_> = (2..18).map(|byte| scope.spawn(move || run(session, byte).unwrap())).collect();
        // They need a moment to get there: one that is late makes a batch smaller, and a third one.
        std::thread::sleep(Duration::from_millis(200));
        assert!(threads.iter().all(|thread| !thread.is_finished()));
        engine.stands.store(false, SeqCst);
    });
    let batches = engine.batches.lock().unwrap().clone();
    assert_eq!(batches.iter().sum::<usize>(), 17, "{batches:?}");
    assert!(batches[1..].contains(&8), "{batches:?}");
    assert_eq!(client.counted(ALGORITHM), (18, 18 * BYTES), "each is counted once");
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
