//! What attackers cost an honest client: its round trip (AES-256-CTR of 64 bytes) with and without each of them beside it.
//!
//! `cargo bench -p bywash-broker --bench hostile`. The bar: p99 at most doubled. Broker, honest client and attacker are threads of
//! one process here, so on few processors the attacker also takes the honest client's own time; read it with that in mind.

#[path = "../tests/support/mod.rs"]
mod support;

use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_protocol::{ClientMessage, StatsFormat, WireParams};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::{LONG, Raw, SPIN, Served, ctr, ctr_operation, serve};

const ROUNDS: usize = 20_000;

/// Median and 99th percentile in microseconds.
fn honest(served: &Served) -> (f64, f64) {
    let mut client = Raw::connect(&served.path).expect("a connection");
    let session = client.open(&ctr()).expect("a session");
    let round = || {
        let begun = Instant::now();
        let mut text = [0; 64];
        let ticket = client.begin(session, &ctr_operation(&mut text));
        ticket.wait(SPIN, LONG).expect("an answer");
        ticket.finish(&mut ctr_operation(&mut text));
        begun.elapsed().as_nanos() as f64 / 1e3
    };
    for _ in 0..ROUNDS / 10 {
        round();
    }
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_unstable_by(f64::total_cmp);
    (times[ROUNDS / 2], times[ROUNDS * 99 / 100])
}

/// Opens sessions without end; every answer after the quota is a refusal.
fn sessions(served: &Served, stop: &AtomicBool) {
    let mut client = Raw::connect(&served.path).expect("a connection");
    while !stop.load(Relaxed) {
        let _ = client.open(&ctr());
    }
}

/// Floods the socket and never reads; connects again when it is thrown out.
fn messages(served: &Served, stop: &AtomicBool) {
    let params = ctr();
    while !stop.load(Relaxed) {
        let client = Raw::connect(&served.path).expect("a connection");
        let message = ClientMessage::Open { request: 1, params: WireParams::new(&params).expect("a key that travels") };
        while !stop.load(Relaxed) && client.socket.send(&message, &[], Duration::from_millis(100)).is_ok() {}
    }
}

/// Keeps all its slots full and never reads an answer for longer than it must.
fn ring(served: &Served, stop: &AtomicBool) {
    let mut client = Raw::connect(&served.path).expect("a connection");
    let session = client.open(&ctr()).expect("a session");
    let ring = client.ring.as_ref().expect("a ring");
    while !stop.load(Relaxed) {
        if ring.begin(session, &ctr_operation(&mut [0; 64])).is_none() {
            std::thread::yield_now();
        }
    }
}

/// Keeps its arena full of requests that take a thousand times as long as the honest one's.
fn heavy(served: &Served, stop: &AtomicBool) {
    let mut client = Raw::connect(&served.path).expect("a connection");
    let params = SessionParams::new(Algorithm::Sha256, Key::None).expect("a digest has no key");
    let session = client.open(&params).expect("a session");
    let ring = client.ring.as_ref().expect("a ring");
    let (input, mut output) = (vec![0; 1 << 20], [0; 32]);
    while !stop.load(Relaxed) {
        let data = Data::Copy { input: &input, output: &mut output };
        let digest = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] };
        if ring.begin(session, &digest).is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Breaks the rules, is thrown out, comes back.
fn corruption(served: &Served, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let mut client = Raw::connect(&served.path).expect("a connection");
        let session = client.open(&ctr()).expect("a session");
        let file = std::fs::File::from(client.region.as_ref().expect("a region").try_clone().expect("a descriptor"));
        std::os::unix::fs::FileExt::write_all_at(&file, &u32::MAX.to_ne_bytes(), 12292).expect("a write");
        let _ = client.begin(session, &ctr_operation(&mut [0; 64]));
        while !client.socket.is_hung_up() && !stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

type Attack = fn(&Served, &AtomicBool);

fn main() {
    let served = serve(|_| {});
    let alone = honest(&served);
    println!("{:<22} {:>9} {:>9} {:>7}", "beside", "p50 us", "p99 us", "p99 x");
    println!("{:<22} {:>9.2} {:>9.2} {:>7.2}", "nobody", alone.0, alone.1, 1.0);
    let attacks: [(&str, Attack); 5] = [
        ("100,000 sessions", sessions),
        ("message flood", messages),
        ("slots never read", ring),
        ("heavy requests", heavy),
        ("ring corruption", corruption),
    ];
    for (name, attack) in attacks {
        let stop = AtomicBool::new(false);
        let (p50, p99) = std::thread::scope(|scope| {
            scope.spawn(|| attack(&served, &stop));
            let times = honest(&served);
            stop.store(true, Relaxed);
            times
        });
        println!("{name:<22} {p50:>9.2} {p99:>9.2} {:>7.2}", p99 / alone.1);
    }
    let mut observer = Raw::connect(&served.path).expect("a connection");
    let stats: bywash_broker::Stats = serde_json::from_str(&observer.stats(StatsFormat::Json)).expect("statistics");
    println!("broker up; refusals {:?}, thrown out {}", stats.quotas_hit, stats.corrupt);
}
