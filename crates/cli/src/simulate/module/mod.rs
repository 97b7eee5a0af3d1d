//! `bywash simulate --module`: which scheduler should a module that all share have, for recorded traffic or described programs?

mod advice;
mod load;
mod plots;
mod recorded;
mod report;
mod text;

use super::cards::together;
use super::text::seconds;
use crate::failure::{Exit, Failure};
use crate::serve;
use crate::shell::print;
use crate::terminal::{Style, say};
use crate::texts;
use bywash_broker::TenantRule;
use bywash_core::{Algorithm, CostSheet};
use bywash_manager::{EngineName, PolicyKind};
use bywash_policy::{EngineInfo, by_name};
use bywash_sim::module::{Traffic, run as simulate};
use report::{Report, Tenants};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is tried if nothing is said: all that decide about one module.
const ALL: [&str; 9] = ["fifo", "exclusive", "rr", "drr", "wfq", "sjf", "edf", "anticipatory", "default"];

/// Options that mean nothing of such a module.
const OF_NO_MODULE: [&str; 12] =
    ["engine", "preset", "train", "requests", "rate", "policy", "sweep", "seeds", "side_by_side", "cpu", "gpu", "prefer"];

/// The options of a module that all share. Where what is required conflicts with what is given, clap asks for it no more: hence the same conflicts of all.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "One module that many share")]
#[group(skip)]
pub(crate) struct Args {
    /// A module that all share, instead of engines with circuits: a card that comes along (such as
    /// ixp425) or the file of a cost sheet
    #[arg(long, value_name = "SHEET", conflicts_with_all = OF_NO_MODULE)]
    pub(crate) module: Option<String>,
    /// Who says whose turn it is, with its parameters after a colon; again for more, side by side
    /// [default: all that decide about one module]; an unknown name lists them
    #[arg(long, value_name = "SCHEDULER", requires = "module", conflicts_with_all = OF_NO_MODULE)]
    scheduler: Vec<String>,
    /// Who is promised what: the file that `bywash serve --config` reads
    #[arg(long, value_name = "FILE", requires = "module", conflicts_with_all = OF_NO_MODULE)]
    tenants: Option<PathBuf>,
    /// Programs to make traffic of, instead of a recording: mixed, processes, or a file
    #[arg(long, value_name = "LOAD", requires = "module", conflicts_with = "trace", conflicts_with_all = OF_NO_MODULE)]
    load: Option<String>,
}

/// What was recorded, and whether who waited for a result waits for it.
pub(super) struct Recording<'a> {
    pub(super) path: &'a Path,
    pub(super) waits: bool,
}

/// Where results go, as `bywash simulate` was asked.
pub(super) struct Form<'a> {
    pub(super) json: bool,
    pub(super) csv: bool,
    pub(super) svg: Option<&'a Path>,
}

/// The module.
struct Module {
    name: String,
    info: EngineInfo,
}

/// What is to be served.
struct Source {
    traffic: Traffic,
    tenants: Tenants,
    told: Vec<String>,
    /// What the recording says of the same module.
    live: Option<Report>,
}

/// Simulates.
pub(super) fn run(args: &Args, sheet: &str, trace: Option<&Recording<'_>>, form: &Form<'_>) -> Result<ExitCode, Failure> {
    let module = module(sheet)?;
    let schedulers = schedulers(args, &module)?;
    let rules = args.tenants.as_deref().map(serve::tenant_rules).transpose()?;
    let source = source(args, trace, &module, rules.as_deref())?;
    let report = |name: &String| {
        let mut policy = by_name(name, std::slice::from_ref(&module.info)).expect("a name that was looked at");
        Report::of(name, &simulate(&mut *policy, &module.info, &source.traffic), &source.traffic, &source.tenants)
    };
    let reports: Vec<Report> = schedulers.iter().map(report).collect();
    let printed = if form.json {
        format!("{:#}\n", report::as_json(&module, &source, &reports))
    } else if form.csv {
        report::as_csv(&module, &reports)
    } else {
        text::all(&module, &source, &reports, Style::of_stdout())
    };
    print(printed.as_bytes())?;
    if let Some(folder) = form.svg {
        for file in plots::draw_all(folder, &module, &reports)? {
            say!("bywash: {} drawn", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A card that comes along, or the file of a cost sheet.
fn module(name: &str) -> Result<Module, Failure> {
    let path = Path::new(name);
    let costs = if path.exists() {
        CostSheet::from_toml(&texts::whole(path)?, name)?
    } else {
        let card = EngineName::Board(name.to_owned());
        let found = bywash_manager::find(std::slice::from_ref(&card))?.present;
        let sheet = found.iter().find_map(|engine| engine.cost_sheet());
        sheet.ok_or_else(|| Failure::config(format!("--module {name}: no cost sheet; write one as `bywash engines` shows them")))?
    };
    let (workers, lanes) = (costs.lanes.max(1), together(&costs, costs.batch_max));
    Ok(Module { name: costs.engine.clone(), info: EngineInfo { workers, lanes, costs } })
}

impl Module {
    fn computes(&self, algorithm: Algorithm) -> bool {
        self.info.costs.algorithms.contains_key(algorithm.name())
    }

    /// In a line.
    fn describe(&self) -> String {
        let costs = &self.info.costs;
        let at_a_time = if self.info.workers == 1 { "one request".to_owned() } else { format!("{} requests", self.info.workers) };
        let switch = if costs.switch_ns > 0.0 { seconds(costs.switch_ns / 1e9) } else { "nothing".to_owned() };
        format!("{}: {at_a_time} at a time, {switch} to change to another session", self.name)
    }
}

fn schedulers(args: &Args, module: &Module) -> Result<Vec<String>, Failure> {
    if args.scheduler.is_empty() {
        return Ok(ALL.map(str::to_owned).to_vec());
    }
    let usage = |reason: String| Failure::new(Exit::Usage, format!("--scheduler: {reason}"));
    for (place, name) in args.scheduler.iter().enumerate() {
        name.parse::<PolicyKind>().map_err(|error| usage(error.to_string()))?;
        if by_name(name, std::slice::from_ref(&module.info)).is_none() {
            return Err(usage(format!("'{name}' cannot be simulated")));
        }
        if args.scheduler[..place].contains(name) {
            return Err(usage(format!("'{name}' is given twice")));
        }
    }
    Ok(args.scheduler.clone())
}

fn source(args: &Args, trace: Option<&Recording<'_>>, module: &Module, rules: Option<&[TenantRule]>) -> Result<Source, Failure> {
    match (trace, &args.load) {
        (Some(recording), _) => recorded::source(recording, module, rules),
        (None, Some(name)) => load::source(name, module, rules),
        (None, None) => {
            let reason = "--module needs requests: --trace FILE for what `bywash record` has recorded, or --load mixed|processes|FILE";
            Err(Failure::new(Exit::Usage, reason))
        }
    }
}
