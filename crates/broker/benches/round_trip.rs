//! The round trip of an empty request (AES-256-CTR of no bytes) between two processes, for each way in which the broker can wait.
//!
//! `cargo bench -p bywash-broker --bench round_trip`. The bar: p50 at most 15 us with the adaptive wait, which is the default.

#[path = "../tests/support/mod.rs"]
mod support;

use bywash_broker::{Broker, BrokerConfig, Waiting};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{LONG, Raw, ctr, ctr_operation};

const VARIABLE: &str = "BYWASH_BENCH_BROKER";
const SPIN: Duration = Duration::from_micros(50);
const ROUNDS: usize = 20_000;

/// How both sides wait.
const VARIANTS: [(&str, Waiting, Duration); 3] = [
    ("adaptive", Waiting::Adaptive(SPIN), SPIN),
    ("spin", Waiting::Spin(Duration::from_millis(10)), Duration::from_millis(10)),
    ("block", Waiting::Block, Duration::ZERO),
];

/// The other process: a broker until its standard input ends.
fn broker(variant: &str, path: &str) {
    let waiting = VARIANTS.iter().find(|(name, ..)| *name == variant).expect("a variant").1;
    let mut config = BrokerConfig::new(path.into(), support::manager());
    config.waiting = waiting;
    let broker = Broker::bind(config).expect("a broker");
    let handle = broker.handle();
    println!("ready");
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().count();
        handle.shutdown();
    });
    broker.run().expect("a clean end");
}

fn start(variant: &str, path: &std::path::Path) -> Child {
    let program = std::env::current_exe().expect("this program");
    let value = format!("{variant}:{}", path.display());
    let mut child =
        Command::new(program).env(VARIABLE, value).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a second process");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    child
}

/// Nanoseconds of each round trip, ascending.
fn measure(client: &Raw, session: u32, spin: Duration) -> Vec<u64> {
    let round = || {
        let begun = Instant::now();
        let mut operation = ctr_operation(&mut []);
        let ticket = client.begin(session, &operation);
        let outcome = ticket.wait(spin, LONG).expect("an answer");
        ticket.finish(outcome, &mut operation);
        begun.elapsed().as_nanos() as u64
    };
    for _ in 0..ROUNDS / 10 {
        round();
    }
    let mut times: Vec<u64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_unstable();
    times
}

fn main() {
    if let Some(value) = std::env::var_os(VARIABLE) {
        let value = value.into_string().expect("text");
        let (variant, path) = value.split_once(':').expect("variant:path");
        return broker(variant, path);
    }
    let directory = tempfile::tempdir().expect("a folder");
    println!("round trip of an empty request, two processes, {ROUNDS} rounds");
    println!("{:<10} {:>9} {:>9} {:>9}", "wait", "p50 us", "p99 us", "max us");
    for (name, _, spin) in VARIANTS {
        let path = directory.path().join(name);
        let mut child = start(name, &path);
        let mut client = Raw::connect(&path).expect("a connection");
        let session = client.open(&ctr()).expect("a session");
        let times = measure(&client, session, spin);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize] as f64 / 1e3;
        println!("{name:<10} {:>9.2} {:>9.2} {:>9.2}", at(0.5), at(0.99), at(1.0));
        drop((client, child.stdin.take()));
        child.wait().expect("the broker's end");
    }
}
