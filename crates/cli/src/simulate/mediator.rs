//! A GPU, or any other engine that has a cost sheet, beside a processor: the mediator, placement, and each engine alone.

use super::recorded;
use super::text::{aligned, seconds, short};
use super::{Args, cards};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::terminal::{bytes, thousands};
use crate::texts;
use bywash_core::sheets::{GPUS, Gpu};
use bywash_core::{Algorithm, CostSheet, Direction, Time};
use bywash_policy::mediator::{Mediator, Prefer, Setting};
use bywash_policy::{EngineInfo, EngineSet, Fifo, Placement, Policy};
use bywash_sim::asked::{Asked, When};
use bywash_sim::replay::{Arrival, Outcome, Pace, Work, run_at_pace};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// What the processor alone is called.
const PROCESSOR: &str = "processor";
const ALGORITHM: Algorithm = Algorithm::Aes128Ctr;
/// Sizes of files, each as often, and how many.
const MIXES: [(&str, &[u64], usize); 4] = [
    ("files of 4 KiB", &[4 << 10], 3000),
    ("files of 1 MiB", &[1 << 20], 600),
    ("files of 16 MiB", &[16 << 20], 200),
    ("all sizes, 256 B to 4 MiB", &[256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20], 1000),
];

/// Requests, and what is said of them: first what they are.
pub(super) struct Traffic {
    pub(super) told: Vec<String>,
    /// How many they are, those that come in several calls counted once.
    pub(super) requests: usize,
    /// Their calls, each with the engines that can do it.
    pub(super) arrivals: Vec<Arrival>,
}

/// Says what comes of it.
pub(super) fn run(args: &Args, name: &str) -> Result<ExitCode, Failure> {
    let Beside { processor, sheet, kind } = sheets(args, name)?;
    let mut engines = engines(processor, sheet);
    let setting = Setting { prefer: args.prefer.unwrap_or_default(), ..Setting::default() };
    if setting.prefer == Prefer::Energy
        && let Some(without) = engines.iter().find(|engine| engine.costs.watts.is_none())
    {
        let why = "to prefer energy, both have to say what they take: its cost sheet has no `watts`; a copy of it with a line `watts = 10.0`, or what it takes, at its top does";
        return Err(Failure::config(format!("{}: {why}", without.costs.engine)));
    }
    let traffic = match &args.trace {
        Some(path) => vec![recorded::traffic(path, &mut engines, args.as_recorded)?],
        None => generated(&engines)?,
    };
    let results: Vec<(&Traffic, Vec<Way>)> =
        traffic.iter().map(|traffic| (traffic, ways(&traffic.arrivals, &engines, setting, kind))).collect();
    let text = if args.json {
        let cpu = json!({ "name": engines[0].costs.engine, "modelled": engines[0].costs.modelled, "workers": engines[0].workers });
        let of = |(traffic, ways): &(&Traffic, Vec<Way>)| {
            let ways: Vec<Value> = ways.iter().map(Way::to_json).collect();
            json!({ "traffic": traffic.told, "requests": traffic.requests, "calls": traffic.arrivals.len(), "ways": ways })
        };
        let results: Vec<Value> = results.iter().map(of).collect();
        format!(
            "{:#}\n",
            json!({ "engine": { "name": name, "modelled": true }, "cpu": cpu, "prefer": setting.prefer.name(), "results": results })
        )
    } else {
        let what = if args.trace.is_some() { String::new() } else { format!("{ALGORITHM} on ") };
        let modelled = if engines[0].costs.modelled { " (modelled)" } else { "" };
        let (workers, prefer) = (engines[0].workers, setting.prefer);
        let mut text =
            format!("{what}{name} (modelled) and {workers} workers of a processor{modelled}; {prefer} preferred: {}\n", prefer.meaning());
        let _ = writeln!(
            text,
            "processor: seconds of it, of all workers together, with what the {kind}'s launches take of it; placement: each whole, where it is done sooner"
        );
        results.iter().for_each(|(traffic, ways)| text += &table(&traffic.told, ways, kind, prefer));
        text
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Each mix, few at a time and all at once.
fn generated(engines: &[EngineInfo]) -> Result<Vec<Traffic>, Failure> {
    if let Some(without) = engines.iter().find(|engine| engine.costs.curve(ALGORITHM).is_none()) {
        let name = &without.costs.engine;
        return Err(Failure::config(format!("{ALGORITHM} is not on the cost sheet of '{name}'; --trace FILE has requests of its own")));
    }
    let of_mix = |&(mix, sizes, count): &(&str, &[u64], usize)| {
        let paces = [(0.3, "at a third of what the better engine can do"), (0.0, "all at once")];
        paces.map(|(rate, pace)| Traffic {
            told: vec![format!("{mix}, {pace}")],
            requests: count,
            arrivals: arrivals(engines, sizes, rate, count),
        })
    };
    Ok(MIXES.iter().flat_map(of_mix).collect())
}

/// The requests as each way serves them: each engine alone, where it can do all of them, and both together.
fn ways(arrivals: &[Arrival], engines: &[EngineInfo], setting: Setting, kind: &'static str) -> Vec<Way> {
    let policies: [(&str, Box<dyn Policy>, u64); 4] = [
        (PROCESSOR, Box::new(Placement::new(engines)), 0b01),
        (kind, Box::new(Fifo::new(engines)), 0b10),
        ("placement", Box::new(Placement::new(engines)), 0b11),
        ("mediator", Box::new(Mediator::new(engines, setting)), 0b11),
    ];
    let serve = |(name, mut policy, set): (&'static str, Box<dyn Policy>, u64)| {
        let within = |arrival: &Arrival| Arrival { engines: EngineSet(arrival.engines.0 & set), ..*arrival };
        let arrivals: Vec<Arrival> = arrivals.iter().map(within).collect();
        let can = arrivals.iter().all(|arrival| arrival.engines != EngineSet(0));
        can.then(|| Way::of(name, &run_at_pace(policy.as_mut(), engines, Pace::LISTED, &arrivals), &arrivals, engines))
    };
    policies.into_iter().filter_map(serve).collect()
}

/// What was said of the requests, and a row for each way.
fn table(told: &[String], ways: &[Way], kind: &str, prefer: Prefer) -> String {
    let head = ["", "done in", "GB/s", "mean wait", "processor", "joules"].map(str::to_owned).into_iter();
    let head = head.chain([format!("on the {kind}"), "launches".to_owned(), "cut".to_owned()]).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(ways.iter().map(Way::row)).collect();
    let mut text = format!("\n{}:\n", told[0]);
    told[1..].iter().for_each(|line| text += &format!("  {line}\n"));
    text += &aligned(&rows, 1);
    for name in [PROCESSOR, kind].into_iter().filter(|name| ways.iter().all(|way| way.name != *name)) {
        text += &format!("  the {name} alone is not shown, for it cannot do all of them\n");
    }
    let (alone, both) = ways.split_at(ways.len() - 2);
    text + &both[1].beside(alone, prefer)
}

/// What is simulated.
struct Beside {
    processor: CostSheet,
    sheet: CostSheet,
    /// What the one beside the processor is called.
    kind: &'static str,
}

/// The processor's sheet and the engine's: of a GPU that comes along, or of a file and of `--cpu`.
fn sheets(args: &Args, name: &str) -> Result<Beside, Failure> {
    let named = args.cpu.as_deref().map(|file| cards::processor(file, &[])).transpose()?;
    let path = Path::new(name);
    if let (true, Some(processor)) = (path.exists(), &named) {
        let sheet = CostSheet::from_toml(&texts::whole(path)?, name)?;
        return Ok(Beside { processor: processor.clone(), sheet, kind: "engine" });
    }
    let names = || GPUS.iter().map(|gpu| gpu.name).collect::<Vec<_>>().join(", ");
    let unknown = || match path.exists() {
        true => Failure::new(Exit::Usage, format!("{name}: the file of a cost sheet needs --cpu beside it: a sheet's file, or here")),
        false => Failure::config(format!("no GPU '{name}' comes along, nor is there such a file; there are {}", names())),
    };
    let (processor, sheet) = Gpu::shipped(name).ok_or_else(unknown)?.sheets()?;
    Ok(Beside { processor: named.unwrap_or(processor), sheet, kind: "GPU" })
}

/// As a manager has them. The lanes of a card that work independently are its workers, and those that fill up together one: a GPU is one, whatever its launches hold.
fn engines(processor: CostSheet, sheet: CostSheet) -> Vec<EngineInfo> {
    let of = |workers: usize, otherwise: usize, costs: CostSheet| EngineInfo { workers, lanes: cards::together(&costs, otherwise), costs };
    let (independent, most) = (sheet.lanes / sheet.batch_max, sheet.batch_max);
    vec![of(processor.lanes, 1, processor), of(independent.max(1), most, sheet)]
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
        let (when, session) = (When::At(Time(at as u64)), number as u32 % 32);
        Arrival { asked: Asked { when, algorithm: ALGORITHM, direction, bytes, client: 0, session }, engines: EngineSet(0b11) }
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
        let served = || outcome.served.iter().flatten();
        let busy = |place: usize| outcome.work[place].busy_ns as f64 / 1e9;
        let watts = |place: usize| engines[place].costs.watts.unwrap_or(f64::NAN);
        let cpu_s = busy(0) + outcome.work[1].host_ns / 1e9;
        Self {
            name,
            bytes: arrivals.iter().map(|arrival| arrival.asked.bytes).fold(0, u64::saturating_add),
            done_s: served().map(|served| served.done.0).max().unwrap_or_default() as f64 / 1e9,
            mean_s: served().map(|served| served.done.since_ns(served.arrived) as f64).sum::<f64>() / arrivals.len() as f64 / 1e9,
            cpu_s,
            joules: cpu_s * watts(0) + busy(1) * watts(1),
            work: outcome.work[1],
            cuts: outcome.cuts,
        }
    }

    fn row(&self) -> Vec<String> {
        let joules = if self.joules.is_finite() { short(self.joules) } else { "-".into() };
        let [launches, cuts] = [self.work.batches, self.cuts].map(thousands);
        let there = format!("{} ({})", thousands(self.work.requests), bytes(self.work.bytes));
        let rate = short(self.bytes as f64 / self.done_s / 1e9);
        vec![
            format!("  {}", self.name),
            seconds(self.done_s),
            rate,
            seconds(self.mean_s),
            seconds(self.cpu_s),
            joules,
            there,
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
            "gpu_bytes": self.work.bytes,
            "gpu_launches": self.work.batches,
            "cuts": self.cuts,
        })
    }

    /// How it compares with each engine that can do it alone, in what is preferred as well.
    fn beside(&self, alone: &[Self], prefer: Prefer) -> String {
        let least = |figure: fn(&Self) -> f64| alone.iter().map(figure).fold(f64::INFINITY, f64::min);
        let over_better = |figure: fn(&Self) -> f64| figure(self) / least(figure);
        let whose = match alone {
            [] => return String::new(),
            [one] => one.name,
            _ => "better engine",
        };
        let processor = alone.iter().find(|way| way.name == PROCESSOR);
        let preferred = match (prefer, processor) {
            (Prefer::CpuFree, Some(processor)) => {
                format!("; it takes {:.2} of the processor's time that the processor alone does", self.cpu_s / processor.cpu_s)
            }
            (Prefer::Energy, _) => format!("; it takes {:.2} of the {whose}'s joules", over_better(|way| way.joules)),
            _ => String::new(),
        };
        let (done, mean) = (over_better(|way| way.done_s), over_better(|way| way.mean_s));
        format!("  the mediator is done in {done:.2} of the {whose}'s time, and who asks waits {mean:.2} times as long{preferred}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each way takes for so many signatures that are asked for at once, in the order of the table.
    fn done_s(processor: &str, card: &str) -> [f64; 4] {
        let curve = "[algorithms.\"RSA-2048 private\"]\npoints = [[0, 1000000.0]]\n";
        let sheet = |head: &str, more: &str| CostSheet::from_toml(&format!("{head}\n{curve}{more}"), "test").unwrap();
        let engines = engines(sheet("engine = \"cpu\"\nlanes = 2\nbatch_max = 8", processor), sheet(card, ""));
        let asked = |client: u32| Asked {
            when: When::At(Time::ZERO),
            client,
            session: 0,
            algorithm: Algorithm::Rsa2048Private,
            direction: Direction::Compute,
            bytes: 256,
        };
        let arrivals: Vec<Arrival> = (0..320).map(|client| Arrival { asked: asked(client), engines: EngineSet(0b11) }).collect();
        let ways = ways(&arrivals, &engines, Setting::default(), "engine");
        std::array::from_fn(|way| ways[way].done_s)
    }

    #[test]
    fn lanes_that_work_independently_do_so() {
        let card = |lanes: &str| done_s("", &format!("engine = \"card\"\n{lanes}"))[1];
        assert_eq!(["", "lanes = 32", "lanes = 32\nbatch_max = 32"].map(card), [0.32, 0.01, 0.011], "of a launch the first alone");
        assert_eq!(card("lanes = 1\nbatch_max = 32"), 0.32, "a launch of one lane gains nothing but its hand-over");
    }

    #[test]
    fn a_processor_computes_in_its_lanes_as_its_sheet_says() {
        let processor = |batch: &str| done_s(batch, "engine = \"card\"\nlanes = 2");
        assert_eq!(processor("")[0], 0.16);
        let [alone, card, placement, mediator] = processor("batch = [[8, 1000000.0]]\n");
        assert_eq!((alone, card), (0.021, 0.16), "a first one of each worker alone");
        assert!(placement <= alone && mediator <= alone, "{placement} {mediator}");
    }
}
