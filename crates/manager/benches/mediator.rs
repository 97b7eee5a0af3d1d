//! The mediator beside managers of one engine each, where a GPU is much faster than it is near. No GPU is needed: **it is modelled**, by a thread that sleeps for as long as a launch would take
//! and computes nothing. What is real is the processor's engine, and what requests cost on their way: handing over, deciding, waking threads, telling.
//!
//! `cargo bench -p bywash-manager --bench mediator [-- [gpu] BYTES[xCOUNT]...]`, with so many at once; `gpu`: beside the one that is here, if only a software Vulkan, and nothing is modelled

mod common;

use bywash_core::{Algorithm, CostCurve, CostSheet, Engine, Keyed, OwnedOperation, Result, SessionParams, Task};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Costs, Manager, ManagerConfig, SessionId, calibrate};
use common::{NoKey, hand_over_together, operation, params};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Of the modelled GPU: what a launch takes besides its bytes, and how fast those come and go. About what was measured of an H100 (bench/README.md).
const LAUNCH: Duration = Duration::from_micros(25);
const BYTES_PER_NS: f64 = 45.0;
const BATCH: usize = 4096;
/// Bytes of all requests that are there at once.
const AT_ONCE: usize = 64 << 20;
const ROUNDS: usize = 15;
/// As many at once as there may be; and few.
const SIZES: [usize; 9] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const FEW: [(usize, usize); 6] = [(1 << 10, 8), (1 << 10, 64), (1 << 10, 512), (64 << 10, 8), (64 << 10, 64), (64 << 10, 512)];

/// A GPU's times; its link does one launch after the other.
#[derive(Default)]
struct Modelled {
    free: Mutex<Option<Instant>>,
}

impl Engine for Modelled {
    fn name(&self) -> &str {
        "gpu"
    }
    fn describe(&self) -> String {
        "a modelled GPU".into()
    }
    fn is_modelled(&self) -> bool {
        true
    }
    fn capabilities(&self) -> &[Algorithm] {
        &[Algorithm::Aes128Ctr]
    }
    fn workers(&self) -> usize {
        2
    }
    fn batch_max(&self) -> usize {
        BATCH
    }
    fn cost_sheet(&self) -> Option<CostSheet> {
        let mut sheet = CostSheet::empty("gpu");
        sheet.modelled = true;
        sheet.lanes = 1;
        sheet.batch_max = BATCH;
        sheet.handover_ns = LAUNCH.as_nanos() as f64;
        let points = vec![(0, 1.0), (1 << 24, (1 << 24) as f64 / BYTES_PER_NS)];
        sheet.algorithms.insert(Algorithm::Aes128Ctr.name().into(), CostCurve { points, ..CostCurve::default() });
        Some(sheet)
    }
    fn open(&self, _params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(NoKey))
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        let bytes: usize = batch.iter().map(|task| task.operation.data.input_len()).sum();
        let now = Instant::now();
        let due = {
            let mut free = self.free.lock().expect("no thread panics");
            let begin = free.map_or(now, |free| free.max(now));
            *free.insert(begin + LAUNCH + Duration::from_nanos((bytes as f64 / BYTES_PER_NS) as u64))
        };
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for task in batch {
            task.outcome = Ok(task.operation.data.input_len());
        }
    }
}

/// A manager, and the requests that are handed over to it all at once.
struct Way {
    manager: Arc<Manager>,
    session: SessionId,
    waiting: Vec<OwnedOperation>,
}

impl Way {
    fn new(engines: Vec<Arc<dyn Engine>>, processor: Option<&CostSheet>, bytes: usize, count: usize) -> Self {
        let mut config = ManagerConfig::new(engines);
        config.policy = "mediator".parse().expect("a policy");
        if let Some(sheet) = processor {
            config.costs = Costs::Given(vec![sheet.clone()]);
        }
        let manager = Manager::new(config).expect("a manager");
        let session = manager.open(1, params()).expect("a session");
        Self { manager, session, waiting: (0..count).map(|_| operation(bytes)).collect() }
    }

    /// Requests in a second, of texts that have just been written, as a program has them. (What it takes to write them does not count. A modelled GPU reads and writes no memory; were it left to
    /// that, texts would be in no cache once it has had some.)
    fn round(&mut self) -> f64 {
        for operation in &mut self.waiting {
            let next = operation.input.first().map_or(0, |byte| byte.wrapping_add(1));
            operation.input.fill(next);
        }
        let count = self.waiting.len();
        count as f64 / hand_over_together(&self.manager, self.session, &mut self.waiting).as_secs_f64()
    }

    /// As long as a fiftieth of a second at least; the median of its rounds.
    fn turn(&mut self) -> f64 {
        let begun = Instant::now();
        let mut rates = Vec::new();
        while rates.len() < 3 || begun.elapsed() < Duration::from_millis(50) {
            rates.push(self.round());
        }
        median(&mut rates)
    }
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn at_once(bytes: usize) -> usize {
    (AT_ONCE / bytes).clamp(2, BATCH)
}

/// `BYTES` or `BYTESxCOUNT`.
fn asked(argument: &str) -> Option<(usize, usize)> {
    match argument.split_once('x') {
        Some((bytes, count)) => Some((bytes.parse().ok()?, count.parse().ok()?)),
        None => argument.parse().ok().map(|bytes| (bytes, at_once(bytes))),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<_> = arguments.iter().filter_map(|argument| asked(argument)).collect();
    let all = || SIZES.map(|bytes| (bytes, at_once(bytes))).into_iter().chain(FEW).collect();
    let asked = if asked.is_empty() { all() } else { asked };
    let processor: Arc<dyn Engine> = Arc::new(CpuEngine::new());
    let here = arguments.iter().any(|argument| argument == "gpu").then(|| match bywash_manager::find(&["gpu".parse().expect("a name")]) {
        Ok(found) => found.present[0].clone(),
        Err(error) => panic!("{error}"),
    });
    // What a GPU that is here takes is measured by the manager, and so is the processor beside it; both begin with what they know.
    let sheet = here.is_none().then(|| calibrate::measure(&CpuEngine::new(), &[Algorithm::Aes128Ctr], calibrate::BUDGET));
    let gpu = here
        .as_ref()
        .map_or_else(|| format!("the GPU is MODELLED ({} us a launch, {BYTES_PER_NS} GB/s)", LAUNCH.as_micros()), |gpu| gpu.describe());
    println!("AES-128-CTR, requests handed over together, in a second; {gpu}");
    println!("{:>9}{:>8}{:>14}{:>14}{:>14}   over the better", "bytes", "at once", "processor", "GPU", "mediator");
    for (bytes, count) in asked {
        let gpu: Arc<dyn Engine> = here.clone().unwrap_or_else(|| Arc::new(Modelled::default()));
        let both = vec![processor.clone(), gpu.clone()];
        let mut ways = [vec![processor.clone()], vec![gpu], both].map(|engines| Way::new(engines, sheet.as_ref(), bytes, count));
        let rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| ways.each_mut().map(Way::turn)).collect();
        let [cpu, gpu, mediator] = [0, 1, 2].map(|way| median(&mut rounds.iter().map(|round| round[way]).collect::<Vec<_>>()));
        let over = median(&mut rounds.iter().map(|[cpu, gpu, mediator]| mediator / cpu.max(*gpu)).collect::<Vec<_>>());
        println!("{bytes:>9}{count:>8}{cpu:>14.0}{gpu:>14.0}{mediator:>14.0}   {over:.2}");
    }
}
