//! Both experiments on this machine: files of one size, and files of 16 MiB with and without load on all cores, by the processor's engine, by the GPU's if there is one, and by the mediator over both.

use super::{LARGEST, SECONDS};
use crate::process::cpu_of_this;
use crate::{Error, Options, Progress, Result};
use bywash_core::{
    Algorithm, Data, Direction, Engine, HostMemory, Key, Keyed, Operation, OwnedOperation, SecretBytes, SessionParams, Task,
};
use bywash_manager::{Manager, ManagerConfig};
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
}

/// What both experiments run on.
pub(super) struct Engines {
    cpu: Arc<dyn Engine>,
    gpu: Option<Arc<dyn Engine>>,
}

impl Engines {
    /// Those that are here; a GPU that is missing is told of.
    pub(super) fn find(progress: &mut dyn FnMut(Progress)) -> Result<Self> {
        let name = "gpu".parse().map_err(|error: bywash_core::Error| Error(error.to_string()))?;
        let gpu = match bywash_manager::find(&[name]) {
            Ok(found) => Some(found.present[0].clone()),
            Err(error) => {
                progress(Progress::Note(format!("takeda: the GPU's rows are left out: {error}")));
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

/// What was counted in 3 s, at the rate of some shorter time, and the processor seconds of a file.
struct Counted {
    files: f64,
    processor: f64,
}

/// Files of 16 MiB that are there at once for the GPU and for the mediator: as many of a batch for each of the engine's workers.
const BATCH: usize = 4;

/// Counts what `files` computes each time that it is called; once before, and once at least.
fn count(options: &Options, files: impl FnMut() -> Result<usize> + Send) -> Result<Counted> {
    count_all(options, &mut [files])
}

/// Counts what several compute side by side, each in a thread of its own.
fn count_all<F: FnMut() -> Result<usize> + Send>(options: &Options, all: &mut [F]) -> Result<Counted> {
    for files in &mut *all {
        files()?;
    }
    let (begin, before) = (Instant::now(), cpu_of_this());
    let long = Duration::from_secs_f64(if options.quick { 0.2 } else { SECONDS });
    let run = |files: &mut F| -> Result<usize> {
        let mut counted = 0;
        while begin.elapsed() < long {
            counted += files()?;
        }
        Ok(counted)
    };
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = all.iter_mut().map(|files| scope.spawn(move || run(files))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| Error("a thread panicked".into()))?).sum::<Result<usize>>()
    })? as f64;
    let took = begin.elapsed().as_secs_f64();
    Ok(Counted { files: counted * SECONDS / took, processor: (cpu_of_this() - before).as_secs_f64() / counted })
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
pub(super) fn figure2(options: &Options, engines: &Engines, sizes: &[usize], progress: &mut dyn FnMut(Progress)) -> Result<Vec<Point>> {
    let Some(gpu) = &engines.gpu else { return Ok(Vec::new()) };
    let mut points = Vec::new();
    for &bytes in sizes {
        let at_once = ((64 << 20) / bytes).clamp(2, gpu.batch_max());
        let mut files = Files::new(bytes, at_once);
        let (here, there) = (engines.cpu.open(&params()?)?, gpu.open(&params()?)?);
        let managed = |engines: &[&Arc<dyn Engine>]| {
            let mut managed = Managed::new(engines, bytes, at_once)?;
            count(options, || managed.run())
        };
        let files = [
            count(options, || files.run(&*engines.cpu, &*here, 1))?,
            count(options, || files.run(&**gpu, &*there, 1))?,
            count(options, || files.run(&**gpu, &*there, at_once))?,
            managed(&[&engines.cpu])?,
            managed(&[gpu])?,
            managed(&[&engines.cpu, gpu])?,
        ];
        points.push(Point { bytes, files: files.map(|counted| counted.files) });
        progress(Progress::Step);
    }
    Ok(points)
}

/// Experiment 2.
pub(super) fn table1(options: &Options, engines: &Engines) -> Result<Vec<Row>> {
    let row = |way: String, on: String, mut counts: Box<dyn FnMut() -> Result<Counted> + '_>| -> Result<Row> {
        let (idle, loaded) = (counts()?, under_load(counts)?);
        let processor = idle.processor * 1e9 / LARGEST as f64;
        Ok(Row { way, on, idle: idle.files, loaded: loaded.files, processor })
    };
    let alone = |engine: &Arc<dyn Engine>, threads: usize, at_once: usize| -> Result<Box<dyn FnMut() -> Result<Counted> + '_>> {
        let keyed = (0..threads).map(|_| Ok((engine.open(&params()?)?, Files::new(LARGEST, at_once)))).collect::<Result<Vec<_>>>()?;
        let engine = engine.clone();
        let run = move |(keyed, files): &mut (Box<dyn Keyed>, Files)| files.run(&*engine, &**keyed, at_once);
        let mut all: Vec<_> = keyed
            .into_iter()
            .map(|mut own| {
                let run = run.clone();
                move || run(&mut own)
            })
            .collect();
        Ok(Box::new(move || count_all(options, &mut all)))
    };
    let mut rows = vec![row("processor, one thread".into(), engines.cpu.describe(), alone(&engines.cpu, 1, 1)?)?];
    if let Some(gpu) = &engines.gpu {
        let at_once = gpu.workers() * BATCH;
        rows.push(row(format!("GPU, {at_once} at once"), gpu.describe(), alone(gpu, gpu.workers(), BATCH)?)?);
        let mut managed = Managed::new(&[&engines.cpu, gpu], LARGEST, at_once)?;
        let counts = Box::new(move || count(options, || managed.run()));
        rows.push(row(format!("mediator, {at_once} at once"), format!("both; {}", gpu.describe()), counts)?);
    }
    Ok(rows)
}
