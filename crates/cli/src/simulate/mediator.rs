//! A GPU, or any other engine that has a cost sheet, beside a processor: the mediator, placement, and each engine alone.

use super::Args;
use super::recorded;
use super::text::{seconds, short};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use bywash_core::sheets::{GPUS, Gpu};
use bywash_core::{Algorithm, CostSheet, Direction, Time};
use bywash_policy::mediator::{Mediator, Setting};
use bywash_policy::{EngineInfo, EngineSet, Fifo, Lanes, Placement, Policy};
use bywash_sim::replay::{Arrival, Outcome, Pace, run_at_pace};
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

/// Says what comes of it.
pub(super) fn run(args: &Args, name: &str) -> Result<ExitCode, Failure> {
    let (processor, sheet) = sheets(args, name)?;
    let engines = engines(processor, sheet);
    let setting = Setting { prefer: args.prefer.unwrap_or_default(), ..Setting::default() };
    let modelled = if engines[0].costs.modelled { " (modelled)" } else { "" };
    let workers = engines[0].workers;
    let beside = format!("{name} (modelled) and {workers} workers of a processor{modelled}; {} preferred", setting.prefer);
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
            MIXES.iter().flat_map(of_mix).collect()
        }
    };
    for (what, arrivals) in traffic {
        let _ = writeln!(text, "{what}:");
        let mut ways = Vec::new();
        let rows: [(&str, Box<dyn Policy>, u64); 4] = [
            ("processor", Box::new(Placement::new(&engines)), 0b01),
            (if args.trace.is_some() { "engine" } else { "GPU" }, Box::new(Fifo::new(&engines)), 0b10),
            ("placement", Box::new(Placement::new(&engines)), 0b11),
            ("mediator", Box::new(Mediator::new(&engines, setting)), 0b11),
        ];
        for (way, mut policy, set) in rows {
            let arrivals: Vec<Arrival> = arrivals.iter().map(|arrival| Arrival { engines: EngineSet(set), ..*arrival }).collect();
            let outcome = run_at_pace(policy.as_mut(), &engines, Pace::LISTED, &arrivals);
            let (line, figures) = match args.trace {
                Some(_) => recorded::row(way, &outcome, &arrivals),
                None => row(way, &outcome, &arrivals, &engines),
            };
            text += &line;
            ways.push(figures);
        }
        results.push(json!({ "traffic": what, "requests": arrivals.len(), "ways": ways }));
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
    if let (true, Some(processor)) = (path.is_file(), &named) {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        return Ok((processor.clone(), CostSheet::from_toml(&text, name)?));
    }
    let names = || GPUS.iter().map(|gpu| gpu.name).collect::<Vec<_>>().join(", ");
    let unknown = || match path.is_file() {
        true => format!("{name}: the file of a cost sheet needs --cpu beside it: a sheet's file, or here"),
        false => format!("no GPU '{name}' comes along, nor is there such a file; there are {}", names()),
    };
    let (processor, sheet) = Gpu::shipped(name).ok_or_else(|| Failure::new(Exit::Usage, unknown()))?.sheets()?;
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

/// What came of one way, in words and as figures.
fn row(way: &str, outcome: &Outcome, arrivals: &[Arrival], engines: &[EngineInfo]) -> (String, Value) {
    let served = || outcome.served.iter().flatten().zip(arrivals);
    let end = served().map(|(served, _)| served.done.0).max().unwrap_or_default() as f64 / 1e9;
    let mean = served().map(|(served, arrival)| served.done.since_ns(arrival.at) as f64).sum::<f64>() / arrivals.len() as f64 / 1e9;
    let busy = |place: usize| outcome.work[place].busy_ns as f64 / 1e9;
    let processor = busy(0) + outcome.work[1].host_ns / 1e9;
    let watts = |place: usize| engines[place].costs.watts.unwrap_or(f64::NAN);
    let joules = processor * watts(0) + busy(1) * watts(1);
    let work = outcome.work[1];
    let text = format!(
        "  {way:<10} done in {:>8}, mean {:>8}; processor {:>8}, {:>6} J; GPU {} requests in {} launches; {} cut\n",
        seconds(end),
        seconds(mean),
        seconds(processor),
        short(joules),
        work.requests,
        work.batches,
        outcome.cuts
    );
    let figures = json!({
        "way": way,
        "done_s": end,
        "mean_s": mean,
        "cpu_s": processor,
        "joules": joules.is_finite().then_some(joules),
        "gpu_requests": work.requests,
        "gpu_launches": work.batches,
        "cuts": outcome.cuts,
    });
    (text, figures)
}
