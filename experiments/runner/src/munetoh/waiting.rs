//! How the host waits for a card (section 3): the paper's fixed-time sleep, compared with polling, futex and eventfd.
//!
//! A modelled card of 32 lanes, in this process, loaded by one thread and by as many as it has lanes. The fixed sleep has the paper's reserve, a quarter of the
//! lane's time: 40 ms for 32. The shorter lanes are there because a card of today is faster, and what waiting costs does not shrink with it.

use super::Bench;
use crate::process::cpu_of_this;
use crate::{Error, Result};
use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Key, Keyed, Operation, SecretBytes, SessionParams};
use bywash_engine_board::{Board, Waiting};
use bywash_measure::statistics::median;
use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, Instant};

const LANES: usize = 32;
/// A lane's time, and how many operations each thread has computed in a round.
const CARDS: [(Duration, usize); 3] =
    [(Duration::from_millis(32), 20), (Duration::from_millis(1), 300), (Duration::from_micros(100), 2000)];
/// The fixed sleep's reserve, as a share of the lane's time.
const RESERVE: f64 = 0.25;

#[derive(Serialize)]
struct Row {
    waiting: String,
    lane_us: f64,
    threads: usize,
    operations_per_s: f64,
    /// From submission to answer, less the lane's own time.
    p50_longer_us: f64,
    p99_longer_us: f64,
    /// Of the whole process, waiting threads and interrupts' thread, less what the true bytes cost.
    cpu_us: f64,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    let cards = if bench.effort.quick { &CARDS[1..2] } else { &CARDS[..] };
    bench.begin("waiting for the card", cards.len() * 2 * bench.effort.rounds)?;
    let (mut csv, mut rows) = ("waiting,lane_us,threads,operations_per_s,p50_longer_us,p99_longer_us,cpu_us\n".to_owned(), Vec::new());
    for &(lane, operations) in cards {
        let operations = if bench.effort.quick { operations / 10 } else { operations };
        for threads in [1, LANES] {
            let mut rounds = Vec::new();
            for _ in 0..bench.effort.rounds {
                rounds
                    .push(Waiting::ALL.map(|waiting| measure(waiting, lane, threads, operations)).into_iter().collect::<Result<Vec<_>>>()?);
                bench.step()?;
            }
            rows.extend((0..Waiting::ALL.len()).map(|at| middle(&rounds, at)));
        }
    }
    let mut text = "How the host waits for a card of 32 lanes\n".to_owned();
    for Row { waiting, lane_us, threads, operations_per_s, p50_longer_us, p99_longer_us, cpu_us } in &rows {
        let _ = writeln!(csv, "{waiting},{lane_us},{threads},{operations_per_s:.0},{p50_longer_us:.1},{p99_longer_us:.1},{cpu_us:.1}");
        let _ = writeln!(
            text,
            "  {waiting:<11} lane {lane_us:>6} us, {threads:>2} threads: {operations_per_s:>7.0}/s, longer by {p50_longer_us:>8.1} us (p99 {p99_longer_us:>8.1}), CPU {cpu_us:>8.1} us each"
        );
    }
    bench.table("waiting", &csv, &rows)?;
    Ok(text)
}

/// The medians of one way to wait.
fn middle(rounds: &[Vec<Row>], at: usize) -> Row {
    let of = |figure: fn(&Row) -> f64| median(&rounds.iter().map(|round| figure(&round[at])).collect::<Vec<_>>());
    let first = &rounds[0][at];
    Row {
        waiting: first.waiting.clone(),
        lane_us: first.lane_us,
        threads: first.threads,
        operations_per_s: of(|row| row.operations_per_s),
        p50_longer_us: of(|row| row.p50_longer_us),
        p99_longer_us: of(|row| row.p99_longer_us),
        cpu_us: of(|row| row.cpu_us),
    }
}

fn card(waiting: Waiting, lane: Duration) -> bywash_core::Result<Board> {
    let lane_ns = lane.as_nanos() as f64;
    let (reserve_ns, algorithm) = (RESERVE * lane_ns, Algorithm::X25519Public.name());
    let sheet = format!(
        "engine = \"card\"\nmodelled = true\nlanes = {LANES}\nhandover_ns = {reserve_ns:.1}\n[algorithms.\"{algorithm}\"]\npoints = [[0, {lane_ns:.1}]]"
    );
    Board::new(CostSheet::from_toml(&sheet, "the waiting table")?, waiting)
}

fn measure(waiting: Waiting, lane: Duration, threads: usize, operations: usize) -> Result<Row> {
    let failed = |error: bywash_core::Error| Error(format!("the modelled card, {waiting}: {error}"));
    let card = card(waiting, lane).map_err(failed)?;
    let params = SessionParams::new(Algorithm::X25519Public, Key::EcPrivate(SecretBytes::from(&[7; 32][..]))).map_err(failed)?;
    let session = card.open(&params).map_err(failed)?;
    let once = || longer(&*session, lane);
    once().map_err(failed)?;
    let (cpu, computed, begun) = (cpu_of_this(), card.computed(), Instant::now());
    let took: bywash_core::Result<Vec<Vec<f64>>> = std::thread::scope(|scope| {
        let many = || scope.spawn(|| (0..operations).map(|_| once()).collect());
        let threads: Vec<_> = (0..threads).map(|_| many()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let (elapsed, cpu, bytes) = (begun.elapsed(), cpu_of_this() - cpu, card.computed().time - computed.time);
    let mut longer_us = took.map_err(failed)?.concat();
    longer_us.sort_by(f64::total_cmp);
    let count = longer_us.len();
    Ok(Row {
        waiting: waiting.to_string(),
        lane_us: lane.as_secs_f64() * 1e6,
        threads,
        operations_per_s: count as f64 / elapsed.as_secs_f64(),
        p50_longer_us: longer_us[count / 2],
        p99_longer_us: longer_us[count * 99 / 100],
        cpu_us: cpu.saturating_sub(bytes).as_secs_f64() * 1e6 / count as f64,
    })
}

/// One operation; how much longer it took than the lane, in microseconds.
fn longer(session: &dyn Keyed, lane: Duration) -> bywash_core::Result<f64> {
    let mut output = [0; 32];
    let data = Data::Copy { input: &[], output: &mut output };
    let begun = Instant::now();
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })?;
    Ok(begun.elapsed().saturating_sub(lane).as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_wait_gives_the_answer_and_none_before_its_time() {
        for waiting in Waiting::ALL {
            let row = measure(waiting, Duration::from_millis(1), 2, 5).unwrap();
            assert_eq!((row.waiting, row.lane_us, row.threads), (waiting.to_string(), 1000.0, 2));
            assert!(row.operations_per_s <= 2.0 * 1000.0, "two threads, a millisecond each: {}", row.operations_per_s);
            assert!(row.p50_longer_us <= row.p99_longer_us);
            assert!(waiting != Waiting::FixedSleep || row.p50_longer_us >= 250.0, "the sleep has a reserve: {}", row.p50_longer_us);
        }
    }

    #[test]
    fn a_figure_is_the_median_of_its_rounds() {
        let row = |figure: f64| Row {
            waiting: "futex".into(),
            lane_us: 100.0,
            threads: 1,
            operations_per_s: figure,
            p50_longer_us: figure,
            p99_longer_us: figure,
            cpu_us: figure,
        };
        let middle = middle(&[vec![row(9.0)], vec![row(1.0)], vec![row(2.0)]], 0);
        assert_eq!((middle.lane_us, middle.operations_per_s, middle.cpu_us), (100.0, 2.0, 2.0));
    }
}
