//! Both experiments on this machine: files of one size, and files of 16 MiB with and without load on all cores, by the processor's engine, by the GPU's if there is one, and by the mediator over both.

use super::{LARGEST, SECONDS};
use crate::process::cpu_of_this;
use crate::{Error, Options, Progress, Result, Tell};
use bywash_core::{
    Algorithm, Data, Direction, Engine, HostMemory, Key, Keyed, Operation, OwnedOperation, SecretBytes, SessionParams, Task,
};
use bywash_manager::{Manager, ManagerConfig};
use bywash_measure::statistics::median;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Files of 16 MiB in 3 s, measured.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) way: String,
    /// What it ran on, in words.
    pub(super) on: String,
    pub(super) idle: f64,
    pub(super) loaded: f64,
    /// The part that is lost by the load: the median of rounds.
    pub(super) lost: f64,
    /// Processor seconds for each GB, of this process, without load.
    pub(super) processor: f64,
}

/// Who computes: three ways as in the simulation, and each by a manager, as programs have them.
pub(super) const WAYS: [&str; 6] =
    ["processor, one core", "GPU, a launch for each", "GPU, packed", "manager, processor", "manager, GPU", "manager, mediator"];

/// Files in 3 s that are all there at once, measured, in the order of [`WAYS`].
#[derive(Serialize)]
pub(super) struct Point {
    pub(super) bytes: usize,
    pub(super) files: [f64; WAYS.len()],
    /// The mediator's over those of the better of both engines by a manager: the median of rounds.
    pub(super) mediator: f64,
}

/// What both experiments run on.
pub(super) struct Engines {
    cpu: Arc<dyn Engine>,
    gpu: Option<Arc<dyn Engine>>,
}

impl Engines {
    /// Those that are here; a GPU that is missing is told of.
    pub(super) fn find(progress: &mut Tell<'_>) -> Result<Self> {
        let name = "gpu".parse().map_err(|error: bywash_core::Error| Error(error.to_string()))?;
        let gpu = match bywash_manager::find(&[name]) {
            Ok(found) => Some(found.present[0].clone()),
            Err(error) => {
                progress(Progress::Note(format!("takeda: the GPU's rows are left out: {error}")))?;
                None
            }
        };
        Ok(Self { cpu: bywash_manager::here(), gpu })
    }

    /// The GPU in words.
    pub(super) fn gpu(&self) -> Option<String> {
        self.gpu.as_ref().map(|gpu| gpu.describe())
    }
}

fn params() -> Result<SessionParams> {
    Ok(SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[7; 16]).into()))?)
}

/// What encrypts files each time that it is called, and says how many.
type Way<'a> = Box<dyn FnMut() -> Result<usize> + Send + 'a>;

/// Rounds in which ways take turns, if the user has no other number; each is this part of 3 s long.
const ROUNDS: usize = 5;

/// What was counted in a round: files at the rate of 3 s, and the processor seconds of a file.
struct Counted {
    files: f64,
    processor: f64,
}

/// Files of 16 MiB that are there at once for the GPU and for the mediator: as many of a batch for each of the engine's workers.
const BATCH: usize = 8;

/// A round of what several do side by side, each in a thread of its own; each once before it. All of these threads take short turns, as a broker's do; those of the load do not.
fn round(options: &Options, all: &mut [Way<'_>]) -> Result<Counted> {
    std::thread::scope(|scope| {
        let in_short_turns = scope.spawn(|| {
            bywash_protocol::turns::take_short_turns();
            side_by_side(options, all)
        });
        in_short_turns.join().map_err(panicked)?
    })
}

fn side_by_side(options: &Options, all: &mut [Way<'_>]) -> Result<Counted> {
    for files in &mut *all {
        files()?;
    }
    let (begin, before) = (Instant::now(), cpu_of_this());
    let long = Duration::from_secs_f64(if options.quick { 0.1 } else { SECONDS / ROUNDS as f64 });
    let run = |files: &mut Way<'_>| -> Result<usize> {
        let mut counted = 0;
        while begin.elapsed() < long {
            counted += files()?;
        }
        Ok(counted)
    };
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = all.iter_mut().map(|files| scope.spawn(move || run(files))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(panicked)?).sum::<Result<usize>>()
    })? as f64;
    let took = begin.elapsed().as_secs_f64();
    Ok(Counted { files: counted * SECONDS / took, processor: (cpu_of_this() - before).as_secs_f64() / counted })
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Error {
    Error("a thread panicked".into())
}

/// So many rounds as an experiment has.
fn rounds<T>(options: &Options, round: impl FnMut(usize) -> Result<T>) -> Result<Vec<T>> {
    (0..options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS })).map(round).collect()
}

/// The median of what is taken from each of them.
fn median_of<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    median(&all.iter().map(value).collect::<Vec<_>>())
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

/// Files side by side, read from one memory and written to another, both of which a GPU reaches by itself.
struct Files {
    bytes: usize,
    input: HostMemory,
    output: HostMemory,
}

impl Files {
    fn new(bytes: usize, count: usize) -> Self {
        let mut input = HostMemory::zeroed(bytes * count);
        input.fill(5);
        Self { bytes, input, output: HostMemory::zeroed(bytes * count) }
    }

    /// All of them, so many in each batch.
    fn run(&mut self, engine: &dyn Engine, keyed: &dyn Keyed, at_once: usize) -> Result<usize> {
        let texts = self.input.chunks(self.bytes).zip(self.output.chunks_mut(self.bytes));
        let mut tasks: Vec<Task<'_>> = texts
            .map(|(input, output)| {
                let data = Data::Copy { input, output };
                Task::new(keyed, Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag: &mut [] })
            })
            .collect();
        tasks.chunks_mut(at_once).for_each(|batch| engine.run(batch));
        let count = tasks.len();
        tasks.into_iter().try_for_each(|task| task.outcome.map(|_| ()))?;
        Ok(count)
    }
}

/// A manager with so many files of one size in its hands.
struct Managed {
    manager: Arc<Manager>,
    session: bywash_manager::SessionId,
    waiting: Vec<OwnedOperation>,
}

impl Managed {
    fn new(engines: &[&Arc<dyn Engine>], bytes: usize, count: usize) -> Result<Self> {
        let mut config = ManagerConfig::new(engines.iter().map(|engine| (*engine).clone()).collect());
        config.policy = "mediator".parse()?;
        let manager = Manager::new(config)?;
        let session = manager.open(1, params()?)?;
        let file = || OwnedOperation {
            direction: Direction::Encrypt,
            iv: vec![1; 16],
            aad: Vec::new(),
            input: SecretBytes::from(&vec![5; bytes][..]),
            output: SecretBytes::zeroed(bytes),
            tag: Vec::new(),
        };
        Ok(Self { manager, session, waiting: (0..count).map(|_| file()).collect() })
    }

    /// All of them once.
    fn run(&mut self) -> Result<usize> {
        let (send, receive) = mpsc::channel();
        for operation in self.waiting.drain(..) {
            let send = send.clone();
            self.manager.submit(self.session, operation, Box::new(move |completion| _ = send.send(completion)));
        }
        drop(send);
        for completion in receive {
            completion.outcome?;
            self.waiting.push(completion.operation);
        }
        Ok(self.waiting.len())
    }
}

/// Experiment 1, if there is a GPU. How many files are there at once is as in the simulation, but no more than fill 64 MiB.
pub(super) fn figure2(options: &Options, engines: &Engines, sizes: &[usize], progress: &mut Tell<'_>) -> Result<Vec<Point>> {
    let Some(gpu) = &engines.gpu else { return Ok(Vec::new()) };
    let mut points = Vec::new();
    for &bytes in sizes {
        let at_once = ((64 << 20) / bytes).clamp(2, gpu.batch_max());
        let alone = |engine: &Arc<dyn Engine>, at_once| alone(engine, bytes, at_once, at_once);
        let mut ways: [Way<'_>; WAYS.len()] = [
            alone(&engines.cpu, 1)?,
            alone(gpu, 1)?,
            alone(gpu, at_once)?,
            managed(&[&engines.cpu], bytes, at_once)?,
            managed(&[gpu], bytes, at_once)?,
            managed(&[&engines.cpu, gpu], bytes, at_once)?,
        ];
        let rounds = rounds(options, |first| {
            let mut files = [0.0; WAYS.len()];
            // Each round begins with another way: what comes after a GPU that was busy, or idle, is not always the same.
            for way in (0..WAYS.len()).map(|place| (first + place) % WAYS.len()) {
                files[way] = round(options, &mut ways[way..=way])?.files;
            }
            Ok(files)
        })?;
        let files = std::array::from_fn(|way| median_of(&rounds, |files| files[way]));
        let mediator = median_of(&rounds, |[.., processor, gpu, mediator]| mediator / processor.max(*gpu));
        points.push(Point { bytes, files, mediator });
        progress(Progress::Step)?;
    }
    Ok(points)
}

/// Files by an engine that is called with so many in each batch.
fn alone<'a>(engine: &Arc<dyn Engine>, bytes: usize, count: usize, at_once: usize) -> Result<Way<'a>> {
    let (engine, keyed, mut files) = (engine.clone(), engine.open(&params()?)?, Files::new(bytes, count));
    Ok(Box::new(move || files.run(&*engine, &*keyed, at_once)))
}

/// Files by a manager with these engines.
fn managed<'a>(engines: &[&Arc<dyn Engine>], bytes: usize, count: usize) -> Result<Way<'a>> {
    let mut managed = Managed::new(engines, bytes, count)?;
    Ok(Box::new(move || managed.run()))
}

/// Experiment 2. Without and with load take turns as well.
pub(super) fn table1(options: &Options, engines: &Engines) -> Result<Vec<Row>> {
    let row = |way: String, on: String, mut ways: Vec<Way<'_>>| -> Result<Row> {
        let rounds = rounds(options, |number| {
            if number % 2 == 0 {
                return Ok((round(options, &mut ways)?, under_load(|| round(options, &mut ways))?));
            }
            let loaded = under_load(|| round(options, &mut ways))?;
            Ok((round(options, &mut ways)?, loaded))
        })?;
        Ok(Row {
            way,
            on,
            idle: median_of(&rounds, |(idle, _)| idle.files),
            loaded: median_of(&rounds, |(_, loaded)| loaded.files),
            lost: median_of(&rounds, |(idle, loaded)| 1.0 - loaded.files / idle.files),
            processor: median_of(&rounds, |(idle, _)| idle.processor) * 1e9 / LARGEST as f64,
        })
    };
    let mut rows = vec![row("processor, one thread".into(), engines.cpu.describe(), vec![alone(&engines.cpu, LARGEST, 1, 1)?])?];
    if let Some(gpu) = &engines.gpu {
        let at_once = gpu.workers() * BATCH;
        let each = (0..gpu.workers()).map(|_| alone(gpu, LARGEST, BATCH, BATCH)).collect::<Result<_>>()?;
        rows.push(row(format!("GPU, {at_once} at once"), gpu.describe(), each)?);
        let by_manager = managed(&[&engines.cpu], LARGEST, at_once)?;
        rows.push(row(format!("manager, processor, {at_once} at once"), engines.cpu.describe(), vec![by_manager])?);
        let mediator = managed(&[&engines.cpu, gpu], LARGEST, at_once)?;
        rows.push(row(format!("mediator, {at_once} at once"), format!("both; {}", gpu.describe()), vec![mediator])?);
    }
    Ok(rows)
}
