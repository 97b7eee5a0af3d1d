//! Programs that each compute alone come together at the broker, and part again when their company is gone.

#[path = "common/toy.rs"]
#[allow(dead_code, reason = "shared with the tests of a broker, which use all of it")]
mod toy;

use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, CostSheet, Engine, Keyed, Operation, Place, Result, SessionParams, Task};
use bywash_manager::calibrate::sample;
use bywash_manager::{Costs, Manager, ManagerConfig};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use toy::Xor;

const ALGORITHM: Algorithm = Algorithm::Rsa4096Private;
const TAKES: Duration = Duration::from_millis(2);

/// Eight lanes: a batch takes as long as an operation by itself.
struct Slow;

/// An operation by itself.
struct SlowXor(Xor);

impl Keyed for SlowXor {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        std::thread::sleep(TAKES);
        self.0.run(operation)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Engine for Slow {
    fn name(&self) -> &str {
        "slow"
    }
    fn describe(&self) -> String {
        "XOR in eight lanes, for tests".into()
    }
    fn is_local(&self) -> bool {
        true
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
        Ok(Box::new(SlowXor(Xor(0x20))))
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        std::thread::sleep(TAKES);
        for task in batch {
            task.outcome = Xor(0x20).run(&mut task.operation);
        }
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends the threads however the test ends.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn run(session: &bywash_client::Session) {
    let (_, mut operation) = sample(ALGORITHM, 0).unwrap();
    operation.input[9] = 0x77;
    session.run(&mut operation.borrow()).unwrap();
    assert_eq!(operation.output[9], 0x57);
}

#[test]
fn those_who_compute_alone_come_together_and_part_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let sheet = "engine = \"slow\"\nlanes = 8\nbatch_max = 8\n[algorithms.\"RSA-4096 private\"]\npoints = [[0, 2e6]]\nbatch = [[8, 2e6]]\n";
    let costs = Costs::Given(vec![CostSheet::from_toml(sheet, "test").unwrap()]);
    let manager = Manager::new(ManagerConfig { costs, ..ManagerConfig::new(vec![Arc::new(Slow)]) }).unwrap();
    let broker = Broker::bind(BrokerConfig::new(path.clone(), manager)).unwrap();
    let handle = broker.handle();
    let serving = broker.spawn().unwrap();
    let client = || Client::with_engine(Config { socket: Some(path.clone()), route: Route::Auto, run: None }, Arc::new(Slow));
    let params = || sample(ALGORITHM, 0).unwrap().0;

    // Each client is a process to the broker, and has one thread.
    let clients: Vec<_> = (0..8).map(|_| client()).collect();
    let threaded = &client();
    let stop = AtomicBool::new(false);
    let busy = |client: &Client| {
        let session = client.session(params()).unwrap();
        while !stop.load(SeqCst) {
            run(&session);
        }
    };
    let busy = &busy;
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        clients.iter().for_each(|client| _ = scope.spawn(move || busy(client)));
        for _ in 0..2 {
            scope.spawn(move || busy(threaded));
        }
        let is_together = || clients[0].place(ALGORITHM, 0) == Place::Together;
        until("they never came together", || is_together() && clients.iter().all(|client| client.stats().queued > 0));
        std::thread::sleep(Duration::from_secs(3));
        assert!(is_together(), "the lanes are filled: it lasts");
    });
    assert!(threaded.stats().queued < 100, "its threads are company for each other: {:?}", threaded.stats());
    until("they never parted", || clients[0].place(ALGORITHM, 0) == Place::Here);
    handle.shutdown();
    serving.join().unwrap().unwrap();
}
