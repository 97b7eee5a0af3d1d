//! A GPU, or any other engine that has a cost sheet, beside a processor: the mediator, placement, and each engine alone.

use super::Args;
use super::recorded;
use super::text::{aligned, seconds, short};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::terminal::thousands;
use crate::texts;
use bywash_core::sheets::{GPUS, Gpu};
use bywash_core::{Algorithm, CostSheet, Direction, Time};
use bywash_policy::mediator::{Mediator, Prefer, Setting};
use bywash_policy::{EngineInfo, EngineSet, Fifo, Lanes, Placement, Policy};
use bywash_sim::replay::{Arrival, Outcome, Pace, Work, run_at_pace};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

const ALGORITHM: Algorithm = Algorithm::Aes128Ctr;
/// Sizes of files, each as often, and how many.
const MIXES: [(&str, &[u64], usize); 4] = [
    ("files of 4 KiB", &[4 << 10], 3000),
    ("files of 1 MiB", &[1 << 20], 600),
    ("files of 16 MiB", &[16 << 20], 200),
    ("all sizes, 256 B to 4 MiB", &[256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20], 1000),
];

/// Above the table of a mix.
const HEAD: [&str; 9] = ["", "done in", "GB/s", "mean wait", "processor", "joules", "on the GPU", "launches", "cut"];

/// Says what comes of it.
pub(super) fn run(args: &Args, name: &str) -> Result<ExitCode, Failure> {
    let (processor, sheet) = sheets(args, name)?;
    let engines = engines(processor, sheet);
    let setting = Setting { prefer: args.prefer.unwrap_or_default(), ..Setting::default() };
    if setting.prefer == Prefer::Energy
        && let Some(without) = engines.iter().find(|engine| engine.costs.watts.is_none())
    {
        let why = "to prefer energy, both have to say what they take: its cost sheet has no `watts`";
        return Err(Failure::config(format!("{}: {why}", without.costs.engine)));
    }
    let modelled = if engines[0].costs.modelled { " (modelled)" } else { "" };
    let workers = engines[0].workers;
    let beside = format!(
        "{name} (modelled) and {workers} workers of a processor{modelled}; {} preferred: {}",
        setting.prefer,
        setting.prefer.meaning()
    );
    let (mut text, mut results) = (String::new(), Vec::new());
    let traffic = match &args.trace {
        Some(path) => {
            let (told, arrivals) = recorded::calls(path, &engines)?;
            text += &format!("{beside}\n");
            vec![(told, arrivals)]
        }
        None => {
            let of_mix = |&(mix, sizes, count): &(&str, &[u64], usize)| {
                let paces = [(0.3, "at a third of what the better engine can do"), (0.0, "all at once")];
                paces.map(|(rate, pace)| (format!("{mix}, {pace}"), arrivals(&engines, sizes, rate, count)))
            };
            if let Some(without) = engines.iter().find(|engine| engine.costs.curve(ALGORITHM).is_none()) {
                let name = &without.costs.engine;
                return Err(Failure::config(format!(
                    "{ALGORITHM} is not on the cost sheet of '{name}'; --trace FILE has requests of its own"
                )));
            }
            text += &format!("{ALGORITHM} on {beside}\n");
            text += "processor: seconds of it, of all workers together, with what the GPU's launches take of it; placement: each whole, where it is done sooner\n";
            MIXES.iter().flat_map(of_mix).collect()
        }
    };
    for (what, arrivals) in traffic {
        let _ = writeln!(text, "\n{what}:");
        let (mut ways, mut rows, mut listed) = (Vec::new(), vec![HEAD.map(str::to_owned).to_vec()], Vec::new());
        let policies: [(&str, Box<dyn Policy>, u64); 4] = [
            ("processor", Box::new(Placement::new(&engines)), 0b01),
            (if args.trace.is_some() { "engine" } else { "GPU" }, Box::new(Fifo::new(&engines)), 0b10),
            ("placement", Box::new(Placement::new(&engines)), 0b11),
            ("mediator", Box::new(Mediator::new(&engines, setting)), 0b11),
        ];
        for (name, mut policy, set) in policies {
            let arrivals: Vec<Arrival> = arrivals.iter().map(|arrival| Arrival { engines: EngineSet(set), ..*arrival }).collect();
            let outcome = run_at_pace(policy.as_mut(), &engines, Pace::LISTED, &arrivals);
            if args.trace.is_some() {
                let (line, figures) = recorded::row(name, &outcome, &arrivals);
                text += &line;
                listed.push(figures);
            } else {
                let way = Way::of(name, &outcome, &arrivals, &engines);
                rows.push(way.row());
                listed.push(way.to_json());
                ways.push(way);
            }
        }
        if let [processor, gpu, _, mediator] = &ways[..] {
            text += &aligned(&rows, 1);
            text += &mediator.beside(processor, gpu, setting.prefer);
        }
        results.push(json!({ "traffic": what, "requests": arrivals.len(), "ways": listed }));
    }
    if args.json {
        let cpu = json!({ "name": engines[0].costs.engine, "modelled": engines[0].costs.modelled, "workers": workers });
        text = format!("{:#}\n", json!({ "engine": { "name": name, "modelled": true }, "cpu": cpu, "results": results }));
    }
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The processor's sheet and the engine's: of a GPU that comes along, or of a file and of `--cpu`.
fn sheets(args: &Args, name: &str) -> Result<(CostSheet, CostSheet), Failure> {
    let named = args.cpu.as_deref().map(|file| super::cards::processor(file, &[])).transpose()?;
    let path = Path::new(name);
    if let (true, Some(processor)) = (path.exists(), &named) {
        return Ok((processor.clone(), CostSheet::from_toml(&texts::whole(path)?, name)?));
    }
    let names = || GPUS.iter().map(|gpu| gpu.name).collect::<Vec<_>>().join(", ");
    let unknown = || match path.exists() {
        true => Failure::new(Exit::Usage, format!("{name}: the file of a cost sheet needs --cpu beside it: a sheet's file, or here")),
        false => Failure::config(format!("no GPU '{name}' comes along, nor is there such a file; there are {}", names())),
    };
    let (processor, sheet) = Gpu::shipped(name).ok_or_else(unknown)?.sheets()?;
    Ok((named.unwrap_or(processor), sheet))
}

fn engines(processor: CostSheet, sheet: CostSheet) -> Vec<EngineInfo> {
    let lanes = Lanes::same(sheet.batch_max);
    vec![EngineInfo { workers: processor.lanes, lanes: Lanes::same(1), costs: processor }, EngineInfo { workers: 1, lanes, costs: sheet }]
}

fn arrivals(engines: &[EngineInfo], sizes: &[u64], rate: f64, count: usize) -> Vec<Arrival> {
    let each = |engine: &EngineInfo| {
        let all: f64 = sizes.iter().filter_map(|&bytes| engine.costs.estimate_ns(ALGORITHM, bytes)).sum();
        all / sizes.len() as f64 / engine.workers as f64
    };
    let gap = if rate > 0.0 { each(&engines[0]).min(each(&engines[1])) / rate } else { 0.0 };
    // Numbers that are the same everywhere (xorshift64*).
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    };
    let mut at = 0.0;
    let one = |number: usize| {
        at += -gap * ((draw() + 1) as f64 / (1u64 << 53) as f64).ln();
        let (direction, bytes) = (Direction::Encrypt, sizes[draw() as usize % sizes.len()]);
        Arrival {
            at: Time(at as u64),
            algorithm: ALGORITHM,
            direction,
            bytes,
            engines: EngineSet(0),
            client: 0,
            session: number as u32 % 32,
        }
    };
    (0..count).map(one).collect()
}

/// What came of one way to do it.
struct Way {
    name: &'static str,
    bytes: u64,
    done_s: f64,
    mean_s: f64,
    /// Seconds of the processor, with the host's part of launches.
    cpu_s: f64,
    /// Not a number where a sheet has no watts.
    joules: f64,
    /// Of the GPU.
    work: Work,
    cuts: u64,
}

impl Way {
    fn of(name: &'static str, outcome: &Outcome, arrivals: &[Arrival], engines: &[EngineInfo]) -> Self {
        let served = || outcome.served.iter().flatten().zip(arrivals);
        let busy = |place: usize| outcome.work[place].busy_ns as f64 / 1e9;
        let watts = |place: usize| engines[place].costs.watts.unwrap_or(f64::NAN);
        let cpu_s = busy(0) + outcome.work[1].host_ns / 1e9;
        Self {
            name,
            bytes: arrivals.iter().map(|arrival| arrival.bytes).sum(),
            done_s: served().map(|(served, _)| served.done.0).max().unwrap_or_default() as f64 / 1e9,
            mean_s: served().map(|(served, arrival)| served.done.since_ns(arrival.at) as f64).sum::<f64>() / arrivals.len() as f64 / 1e9,
            cpu_s,
            joules: cpu_s * watts(0) + busy(1) * watts(1),
            work: outcome.work[1],
            cuts: outcome.cuts,
        }
    }

    fn row(&self) -> Vec<String> {
        let joules = if self.joules.is_finite() { short(self.joules) } else { "-".into() };
        let [on_gpu, launches, cuts] = [self.work.requests, self.work.batches, self.cuts].map(thousands);
        let rate = short(self.bytes as f64 / self.done_s / 1e9);
        vec![
            format!("  {}", self.name),
            seconds(self.done_s),
            rate,
            seconds(self.mean_s),
            seconds(self.cpu_s),
            joules,
            on_gpu,
            launches,
            cuts,
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "way": self.name,
            "done_s": self.done_s,
            "mean_s": self.mean_s,
            "cpu_s": self.cpu_s,
            "joules": self.joules.is_finite().then_some(self.joules),
            "gpu_requests": self.work.requests,
            "gpu_launches": self.work.batches,
            "cuts": self.cuts,
        })
    }

    /// How it compares with each engine alone, in what is preferred as well.
    fn beside(&self, processor: &Self, gpu: &Self, prefer: Prefer) -> String {
        let over_better = |figure: fn(&Self) -> f64| figure(self) / figure(processor).min(figure(gpu));
        let preferred = match prefer {
            Prefer::Latency | Prefer::Throughput => String::new(),
            Prefer::CpuFree => {
                format!("; it takes {:.2} of the processor's time that the processor alone does", self.cpu_s / processor.cpu_s)
            }
            Prefer::Energy => format!("; it takes {:.2} of the better one's joules", over_better(|way| way.joules)),
        };
        let (done, mean) = (over_better(|way| way.done_s), over_better(|way| way.mean_s));
        format!("  the mediator is done in {done:.2} of the better engine's time, and who asks waits {mean:.2} times as long{preferred}\n")
    }
}
