//! How the host waits for a card: the paper's fixed-time sleep against polling, futex and eventfd (munetoh s3).
//!
//! `cargo bench -p bywash-engine-board`
//!
//! Latency is from submission to answer, as a multiple of the lane's own time and in what it is longer. Processor time is that of the whole
//! process (waiting thread and interrupt's thread), less what the true bytes cost. The fixed sleep has the paper's reserve, a quarter of
//! the lane's time: 40 ms for 32.

use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Key, Keyed, Operation, SessionParams};
use bywash_engine_board::{Board, Waiting};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

const LANES: usize = 32;

fn main() {
    println!(
        "{:<11} {:>9} {:>8} {:>11} {:>13} {:>13} {:>13}",
        "waiting", "lane", "threads", "op/s", "p50 longer", "p99 longer", "CPU per op"
    );
    for (lane, rounds) in [(Duration::from_millis(32), 20), (Duration::from_millis(1), 300), (Duration::from_micros(100), 2000)] {
        for threads in [1, LANES] {
            for waiting in Waiting::ALL {
                row(waiting, lane, threads, rounds);
            }
        }
    }
}

fn row(waiting: Waiting, lane: Duration, threads: usize, rounds: usize) {
    let (lane_ns, reserve_ns) = (lane.as_nanos() as f64, lane.as_nanos() as f64 / 4.0);
    let text = format!(
        "engine = \"card\"\nmodelled = true\nlanes = {LANES}\nhandover_ns = {reserve_ns:.1}\n[algorithms.\"X25519 public\"]\npoints = [[0, {lane_ns:.1}]]"
    );
    let card = Board::new(CostSheet::from_toml(&text, "bench").expect("a sheet"), waiting).expect("a card");
    let params = SessionParams::new(Algorithm::X25519Public, Key::EcPrivate(vec![7; 32].into())).expect("a key");
    let session = card.open(&params).expect("a session");
    once(&*session);
    let (cpu, computed, begun) = (process_cpu(), card.computed(), Instant::now());
    let mut longer: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| (0..rounds).map(|_| once(&*session)).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).map(|took| took.saturating_sub(lane)).collect()
    });
    let (cpu, elapsed) = (process_cpu() - cpu, begun.elapsed());
    let spent = cpu.saturating_sub(card.computed().time - computed.time);
    longer.sort();
    let us = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
    let operations = longer.len();
    println!(
        "{waiting:<11} {:>9} {threads:>8} {:>11.0} {:>13} {:>13} {:>13}",
        format!("{lane:?}"),
        operations as f64 / elapsed.as_secs_f64(),
        us(longer[operations / 2]),
        us(longer[operations * 99 / 100]),
        us(spent / operations as u32),
    );
}

fn once(session: &dyn Keyed) -> Duration {
    let mut output = [0; 32];
    let data = Data::Copy { input: &[], output: &mut output };
    let begun = Instant::now();
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }).expect("a public value");
    begun.elapsed()
}

fn process_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
