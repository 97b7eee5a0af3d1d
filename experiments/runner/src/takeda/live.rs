//! Experiment 2 on this machine: files of 16 MiB with and without load on all cores, by the processor's engine, by the GPU's if there is one, and by the mediator over both.

use super::{LARGEST, SECONDS};
use crate::{Error, Options, Progress, Result};
use bywash_core::{Algorithm, Data, Direction, Engine, Key, Operation, SessionParams};
use bywash_manager::{Manager, ManagerConfig};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Files in 3 s, measured.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) way: String,
    /// What it ran on, in words.
    pub(super) on: String,
    pub(super) idle: f64,
    pub(super) loaded: f64,
}

fn params() -> Result<SessionParams> {
    Ok(SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[7; 16]).into()))?)
}

/// Files in 3 s at the rate of some shorter time; at least one.
fn count(options: &Options, mut file: impl FnMut() -> Result<()>) -> Result<f64> {
    file()?;
    let (begin, mut files) = (Instant::now(), 0.0);
    let long = Duration::from_secs_f64(if options.quick { 0.2 } else { SECONDS });
    while begin.elapsed() < long {
        file()?;
        files += 1.0;
    }
    Ok(files * SECONDS / begin.elapsed().as_secs_f64())
}

/// Runs something while a thread for each core does nothing but turn.
fn under_load<T>(body: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let value = body();
        stop.store(true, Ordering::Relaxed);
        value
    })
}

fn both(mut counts: impl FnMut() -> Result<f64>) -> Result<(f64, f64)> {
    Ok((counts()?, under_load(counts)?))
}

/// One engine alone, from the calling thread.
fn engine(options: &Options, engine: &dyn Engine) -> Result<(f64, f64)> {
    let keyed = engine.open(&params()?)?;
    let (input, mut output) = (vec![5; LARGEST], vec![0; LARGEST]);
    both(|| {
        count(options, || {
            let data = Data::Copy { input: &input, output: &mut output };
            keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag: &mut [] })?;
            Ok(())
        })
    })
}

/// The mediator over several, by a manager.
fn mediator(options: &Options, engines: Vec<Arc<dyn Engine>>) -> Result<(f64, f64)> {
    let mut config = ManagerConfig::new(engines);
    config.policy = "mediator".parse()?;
    let manager = Manager::new(config)?;
    let session = manager.open(1, params()?)?;
    let (input, mut output) = (vec![5; LARGEST], vec![0; LARGEST]);
    both(|| {
        count(options, || {
            let data = Data::Copy { input: &input, output: &mut output };
            manager.run(session, &mut Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag: &mut [] })?;
            Ok(())
        })
    })
}

pub(super) fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Row>> {
    let cpu = bywash_manager::here();
    let row = |way: &str, on: String, (idle, loaded): (f64, f64)| Row { way: way.to_owned(), on, idle, loaded };
    let mut rows = vec![row("processor, one thread", cpu.describe(), engine(options, &*cpu)?)];
    let name = "gpu".parse().map_err(|error: bywash_core::Error| Error(error.to_string()))?;
    match bywash_manager::find(&[name]) {
        Ok(found) => {
            let gpu = found.present[0].clone();
            rows.push(row("GPU", gpu.describe(), engine(options, &*gpu)?));
            rows.push(row("mediator", format!("both; {}", gpu.describe()), mediator(options, vec![cpu, gpu])?));
        }
        Err(error) => progress(Progress::Note(format!("takeda: the GPU's rows are left out: {error}"))),
    }
    Ok(rows)
}
