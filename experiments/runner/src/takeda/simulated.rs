//! Both experiments on the sheets of GPUs that are not here: the processor beside them, the GPU with a launch for each file and with files packed, and the mediator.

use super::{LARGEST, SECONDS};
use crate::Result;
use bywash_core::sheets::{GPUS, Gpu};
use bywash_core::{Algorithm, Direction, Time};
use bywash_policy::mediator::{Mediator, Setting};
use bywash_policy::{EngineId, EngineInfo, EngineSet, Fifo, Lanes, Policy};
use bywash_sim::asked::{Asked, When};
use bywash_sim::replay::{Arrival, Pace, run_at_pace};
use serde::Serialize;

const ALGORITHM: Algorithm = Algorithm::Aes128Ctr;
/// How many times as long the processor takes under load: table 1, 815 files without and 464 with it.
const LOAD: f64 = 815.0 / 464.0;
/// Who computes.
pub(super) const WAYS: [&str; 4] = ["processor, one core", "GPU, a launch for each", "GPU, packed", "mediator"];

/// Files in 3 s, simulated.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) gpu: &'static str,
    pub(super) bytes: usize,
    /// In the order of [`WAYS`].
    pub(super) files: [f64; WAYS.len()],
}

/// Files of 16 MiB in 3 s, one after the other, simulated.
#[derive(Serialize)]
pub(super) struct Loaded {
    pub(super) gpu: &'static str,
    pub(super) way: &'static str,
    pub(super) idle: f64,
    pub(super) loaded: f64,
}

fn engines(gpu: &Gpu) -> Result<Vec<EngineInfo>> {
    let (processor, sheet) = gpu.sheets()?;
    let lanes = Lanes::same(sheet.batch_max);
    Ok(vec![
        EngineInfo { workers: processor.lanes, lanes: Lanes::same(1), costs: processor },
        EngineInfo { workers: 1, lanes, costs: sheet },
    ])
}

fn arrival(at: u64, bytes: usize, engines: u64) -> Arrival {
    let (when, direction, bytes) = (When::At(Time(at)), Direction::Encrypt, bytes as u64);
    Arrival { asked: Asked { when, algorithm: ALGORITHM, direction, bytes, client: 0, session: 0 }, engines: EngineSet(engines) }
}

/// Files in 3 s if all are there at once.
fn rate(policy: &mut dyn Policy, engines: &[EngineInfo], set: u64, bytes: usize) -> f64 {
    let count = ((64 << 20) / bytes).clamp(64, 8192);
    let arrivals = vec![arrival(0, bytes, set); count];
    let outcome = run_at_pace(policy, engines, Pace::LISTED, &arrivals);
    let end = outcome.served.iter().flatten().map(|served| served.done.0).max().unwrap_or(1);
    SECONDS * 1e9 * count as f64 / end as f64
}

/// Experiment 1.
pub(super) fn figure2(sizes: &[usize]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for gpu in GPUS {
        let engines = engines(gpu)?;
        let mut singly = engines.clone();
        singly[0].workers = 1;
        singly[1].lanes = Lanes::same(1);
        for &bytes in sizes {
            let files = [
                rate(&mut Fifo::new(&singly), &singly, 0b01, bytes),
                rate(&mut Fifo::new(&singly), &singly, 0b10, bytes),
                rate(&mut Fifo::new(&engines), &engines, 0b10, bytes),
                rate(&mut Mediator::new(&engines, Setting::default()), &engines, 0b11, bytes),
            ];
            rows.push(Row { gpu: gpu.name, bytes, files });
        }
    }
    Ok(rows)
}

/// Files in 3 s, one after the other; the last of many, when the policy has learnt.
fn one_by_one(policy: &mut dyn Policy, engines: &[EngineInfo], set: u64, load: f64) -> f64 {
    let arrivals: Vec<Arrival> = (0..100).map(|n| arrival(n * 2_000_000_000, LARGEST, set)).collect();
    let times = |engine: EngineId, _: Time| if engine == EngineId(0) { load } else { 1.0 };
    let outcome = run_at_pace(policy, engines, Pace::times(&times), &arrivals);
    let last = outcome.served.last().copied().flatten();
    last.map_or(0.0, |served| SECONDS * 1e9 / served.done.since_ns(served.arrived).max(1) as f64)
}

/// Experiment 2.
pub(super) fn under_load() -> Result<Vec<Loaded>> {
    let mut rows = Vec::new();
    for gpu in GPUS {
        let engines = engines(gpu)?;
        let both = |set: u64, mediates: bool| {
            [1.0, LOAD].map(|load| match mediates {
                true => one_by_one(&mut Mediator::new(&engines, Setting::default()), &engines, set, load),
                false => one_by_one(&mut Fifo::new(&engines), &engines, set, load),
            })
        };
        for (way, [idle, loaded]) in [(WAYS[0], both(0b01, false)), ("GPU", both(0b10, false)), (WAYS[3], both(0b11, true))] {
            rows.push(Loaded { gpu: gpu.name, way, idle, loaded });
        }
    }
    Ok(rows)
}
