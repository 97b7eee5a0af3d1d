//! Programs that each compute alone come together at the broker, and part again when their company is gone.

#[path = "common/toy.rs"]
#[allow(dead_code, reason = "shared with the tests of a broker, which use all of it")]
mod toy;
#[path = "common/until.rs"]
mod until;

use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Config, Route, Session};
use bywash_core::{Algorithm, CostSheet, Engine, Keyed, Operation, Place, Result, SessionParams, Task};
use bywash_manager::calibrate::sample;
use bywash_manager::{Costs, Manager, ManagerConfig};
use std::any::Any;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use toy::Xor;
use until::until;

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

fn run(session: &Session) {
    let (_, mut operation) = sample(ALGORITHM, 0).unwrap();
    operation.input[9] = 0x77;
    session.run(&mut operation.borrow()).unwrap();
    assert_eq!(operation.output[9], 0x57);
}

fn session(client: &Client) -> Session {
    client.session(sample(ALGORITHM, 0).unwrap().0).unwrap()
}

fn client(path: &Path) -> Client {
    Client::with_engine(Config { socket: Some(path.to_owned()), route: Route::Auto, run: None, ..Config::default() }, Arc::new(Slow))
}

/// A program of so many threads, busy until its input ends; then it says how many operations it sent to the broker. Run without its variables, there is nothing to do.
#[test]
fn child_of_the_test() {
    let Some(path) = std::env::var_os("BYWASH_TEST_TOGETHER") else { return };
    let threads: usize = std::env::var("BYWASH_TEST_THREADS").unwrap().parse().unwrap();
    let (client, stop) = (client(path.as_ref()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let session = session(&client);
                while !stop.load(SeqCst) {
                    run(&session);
                }
            });
        }
        let _ = std::io::stdin().lines().count();
        stop.store(true, SeqCst);
    });
    println!("queued {}", client.stats().queued);
}

fn child(path: &Path, threads: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_test", "--nocapture"])
        .env("BYWASH_TEST_TOGETHER", path)
        .env("BYWASH_TEST_THREADS", threads.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ends a child; how many operations it sent to the broker.
fn queued(child: Child) -> u64 {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("queued ")?.1.parse().ok()).unwrap()
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
    // It sees the table, and computes nothing.
    let watcher = client(&path);
    let _connected = session(&watcher);
    let is = |place| watcher.place(ALGORITHM, 0) == place;

    let (alone, threaded): (Vec<_>, _) = ((0..8).map(|_| child(&path, 1)).collect(), child(&path, 2));
    until("they come together", || is(Place::Together));
    std::thread::sleep(Duration::from_secs(5));
    assert!(is(Place::Together), "the lanes are filled: it lasts");
    assert!(queued(threaded) < 100, "its threads are company for each other");
    for child in alone {
        assert!(queued(child) > 100, "it has nobody but the broker");
    }
    until("they part", || is(Place::Here));
    handle.shutdown();
    serving.join().unwrap().unwrap();
}
