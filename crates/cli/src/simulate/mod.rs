//! `bywash simulate`: what engines that hold a few circuits at a time would make of some traffic, and who should decide what they hold; or what one module that many share would, and who should
//! decide whose turn it is ([`module`]).

mod advice;
mod cards;
mod export;
mod lessons;
mod mediator;
mod module;
mod outcome;
mod plots;
mod policies;
mod recorded;
#[cfg(test)]
mod tests;
mod text;
mod traffic;

use crate::args::prefer;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::shell::print;
use crate::terminal::{Style, bar_style, counted, say, thousands};
use bywash_core::sheets::DEVICES;
use bywash_policy::mediator::Prefer;
use bywash_sim::niwa2005::{RATES, five_smallest};
use bywash_sim::study::{self, Key, Point, Sweep};
use cards::Card;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use outcome::Plan;
use policies::Policy;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use traffic::Source;

/// Requests per second where nothing says it: in the midst of the paper's table 6.
const RATE: f64 = 750.0;

/// Options that mean nothing beside a GPU.
const BESIDE_NO_GPU: [&str; 15] = [
    "engine",
    "preset",
    "train",
    "requests",
    "rate",
    "policy",
    "sweep",
    "seeds",
    "side_by_side",
    "csv",
    "svg",
    "module",
    "scheduler",
    "tenants",
    "load",
];
/// Options of engines with circuits: of those requests come when they came, but for `--rate`.
const OF_CIRCUITS: [&str; 9] = ["engine", "preset", "train", "requests", "rate", "policy", "sweep", "seeds", "side_by_side"];
/// Where those that stand alone come in `--help`.
const CIRCUITS: &str = "Engines that hold a few circuits at a time (unless --gpu or --module is given)";
const GPU: &str = "A GPU beside the processor";

/// `bywash simulate`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("beside").args(["gpu", "module"]))]
#[command(after_help = "\
Examples:
  bywash simulate --preset niwa2005 --seeds 24
                                        the paper's device, traffic and seven models
  bywash simulate --trace access.log    a web server's log: every policy, beside the best possible
  zcat access.log.2.gz | bywash simulate --trace -
  bywash simulate --trace access.log --engine a.toml --engine b.toml --svg plots
                                        two cards side by side: which is worth its price?
  bywash simulate --trace trace.csv --engine a.toml --cpu here
                                        a recording, with software as fast as this machine
  bywash simulate --trace tls.csv --engine munetoh --side-by-side
                                        RSA-1024 on a card of 32 lanes, and on the processor
  bywash simulate --sweep rate=100,1000,10000 --sweep slots=1,2,4 --policy tuned,software --csv
  bywash simulate --gpu raspberry-pi-4 --prefer cpu-free
                                        a GPU beside the processor: what the mediator makes of both
  bywash simulate --gpu nvidia-h200 --trace trace.csv
                                        the same of a recording; a web server's log is taken as well
  bywash simulate --gpu fpga.toml --cpu here --trace dds.csv
                                        a program's calls: where would that engine pay?
  bywash simulate --sheet niwa2005 > card.toml
                                        a sheet to start from
  bywash simulate --module ixp425 --trace trace.csv --tenants /etc/bywash/broker.toml
                                        a module that many share: which scheduler for this traffic?
  bywash simulate --module ixp425-switch --load mixed --scheduler fifo --scheduler default:share=60%

Engines are modelled: nothing is measured on them, their sheets say what they take. tuned, saved,
predict, nopredict and hardware are the very objects that decide live, where hardware is called lru.
Requests are served one after the other, in software or on a circuit (with --side-by-side on both at
once), and each policy is shown as a distance from the optimum: the least time in which what fits
could serve the same requests, by dynamic programming. Where that is not known, as with
--side-by-side, it is over a time below which no schedule comes, and marked <=.

A trace is a log in the Common Log Format (a virtual host with its port may stand before the
client), tab-separated with columns host, time and bytes, or a recording. Web logs name no ciphers,
so the n-th new client uses circuit n modulo their number, of the first engine. The first half of a
trace is learnt from (predict, static), the second served. With --gpu an answer of a web server is
AES-128-GCM, in a call for each record of TLS.

What can be swept: rate (requests per second), slots, area, lanes, reconfiguration (ms), overhead
(ns).")]
pub(crate) struct Args {
    /// Requests of a log or a recording; - for stdin [default: the generator of niwa2005]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// With --gpu or --module: recorded requests come when they came; without it a program that waited for a result
    /// waits here
    #[arg(long, requires_all = ["trace", "beside"], conflicts_with_all = OF_CIRCUITS)]
    as_recorded: bool,
    /// Software times from the cost sheet of a CPU, as `bywash calibrate` writes it; `here` for this machine's
    #[arg(long, value_name = "SHEET|here")]
    cpu: Option<String>,
    /// Print results as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a line for each run as CSV
    #[arg(long)]
    csv: bool,
    /// Draw latency.svg, load.svg and timeline-ENGINE.svg there; waits.svg of a module
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Print a sheet that comes along, and nothing else
    #[arg(long, value_name = "NAME", exclusive = true, value_parser = shipped())]
    sheet: Option<&'static str>,
    /// An engine's sheet: one that comes along or a file; again for more, side by side [default: niwa2005]
    #[arg(long, value_name = "SHEET", help_heading = CIRCUITS)]
    engine: Vec<String>,
    /// An experiment as a whole: engine, policies and rates, where they are not given
    #[arg(long, value_name = "NAME", value_enum, conflicts_with = "trace", help_heading = CIRCUITS)]
    preset: Option<Preset>,
    /// The share of a trace that is learnt from and not served
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, allow_negative_numbers = true, value_parser = share, help_heading = CIRCUITS)]
    #[arg(requires = "trace", conflicts_with_all = ["preset", "requests"])]
    train: f64,
    /// Requests to generate
    #[arg(long, value_name = "N", default_value_t = 610_000, conflicts_with = "trace", help_heading = CIRCUITS)]
    #[arg(allow_negative_numbers = true, value_parser = at_least_one)]
    requests: usize,
    /// Requests per second: a trace is stretched to it [default: as a trace says; 750 if generated]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = above_zero, help_heading = CIRCUITS)]
    rate: Option<f64>,
    /// Who decides what is loaded; several with commas between [default: all]
    #[arg(long, value_name = "POLICY", value_enum, value_delimiter = ',', help_heading = CIRCUITS)]
    policy: Vec<Policy>,
    /// Try several values: KEY=VALUE,VALUE; again for more keys, each value with each
    #[arg(long, value_name = "KEY=VALUES", help_heading = CIRCUITS)]
    sweep: Vec<Sweep>,
    /// Runs with different seeds; medians are shown, and 10 and 90 % quantiles
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000), help_heading = CIRCUITS)]
    seeds: u64,
    /// Software and circuits work at the same time; requests go where they are done first
    #[arg(long, help_heading = CIRCUITS)]
    side_by_side: bool,
    /// A GPU beside a processor instead: the mediator, and each engine alone. intel-iris-655, raspberry-pi-4, nvidia-h200, nvidia-h100 (as measured), or
    /// with --cpu the file of any engine's cost sheet; with --trace the requests of a log or a recording
    #[arg(long, value_name = "NAME", conflicts_with_all = BESIDE_NO_GPU, help_heading = GPU)]
    gpu: Option<String>,
    // Where what is required conflicts with what is given, clap asks for it no more: hence the same conflicts.
    /// What the mediator prefers: cpu-free and energy have it done by whoever takes the least of the processor's time or of
    /// energy, at most 20 ms and 4 times its own time later [default: latency]
    #[arg(long, value_name = "WHAT", requires = "gpu", conflicts_with_all = BESIDE_NO_GPU, value_parser = prefer(), help_heading = GPU)]
    prefer: Option<Prefer>,
    #[command(flatten)]
    shared: module::Args,
}

/// An experiment as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Table 6 of the paper: two circuits at a time, seven models, ten rates
    Niwa2005,
    /// The same device by area: as many circuits as there is room for, every policy
    Niwa2005Area,
    /// And with modes that share a core
    Niwa2005Cores,
}

impl Preset {
    const fn engine(self) -> &'static str {
        match self {
            Self::Niwa2005 => "niwa2005",
            Self::Niwa2005Area => "niwa2005-area",
            Self::Niwa2005Cores => "niwa2005-cores",
        }
    }
}

/// The sheets that come along, by their names.
fn shipped() -> impl TypedValueParser<Value = &'static str> {
    let text = |name: String| DEVICES.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| *text);
    PossibleValuesParser::new(DEVICES.iter().map(|(name, _)| *name)).map(text)
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is no share; write a number of at least 0 and below 1"))
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("'{text}' is not a number above 0"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("'{text}' is not a number of requests; there must be at least 1"))
}

impl Args {
    /// Whether requests are to come at a rate that was asked for.
    fn gives_a_rate(&self) -> bool {
        self.rate.is_some() || self.sweep.iter().any(|sweep| sweep.key == Key::Rate)
    }
}

/// Simulates.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(text) = args.sheet {
        print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &args.gpu {
        return mediator::run(args, name);
    }
    if let Some(sheet) = &args.shared.module {
        let form = module::Form { json: args.json, csv: args.csv, svg: args.svg.as_deref() };
        let trace = args.trace.as_deref().map(|path| module::Recording { path, waits: !args.as_recorded });
        return module::run(&args.shared, sheet, trace.as_ref(), &form);
    }
    let default = [args.preset.map_or("niwa2005", Preset::engine).to_owned()];
    let names = if args.engine.is_empty() { &default[..] } else { &args.engine };
    let cards = cards::tell_apart(names.iter().map(|name| Card::find(name)).collect::<Result<_, _>>()?);
    let processor = args.cpu.as_deref().map(|name| cards::processor(name, &cards)).transpose()?;
    let policies = policies(args, &cards)?;
    let points = points(args)?;
    let mut plan = Plan {
        cards: &cards,
        processor: processor.as_ref(),
        points: &points,
        policies: &policies,
        seeds: args.seeds,
        side_by_side: args.side_by_side,
        plots: args.svg.is_some(),
    };
    let bar = ProgressBar::new(outcome::steps(&plan));
    bar.set_style(bar_style());
    bar.set_message("learning");
    let source = Source::new(args, &cards[0].sheet, lessons::any_learns(&policies))?;
    let benches = outcome::prepare(&plan, &source)?;
    outcome::without_room(&plan, &benches).iter().for_each(|line| bar.suspend(|| say!("bywash: note: --sweep {line}")));
    bar.set_message("simulating");
    let interrupt = Interrupt::catch()?;
    let mut step = || {
        bar.inc(1);
        if interrupt.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ran = outcome::run(&plan, &source, &benches, &mut step);
    let done = bar.position();
    bar.finish_and_clear();
    let (cells, seeds) = ran?;
    let outcome = if seeds < plan.seeds { stopped(&plan, done, seeds) } else { ExitCode::SUCCESS };
    if seeds == 0 {
        return Ok(outcome);
    }
    plan.seeds = seeds;
    let text = if args.json {
        format!("{:#}\n", export::as_json(&plan, &source.told, &cells))
    } else if args.csv {
        export::as_csv(&plan, &cells)
    } else {
        text::all(&plan, &source.told, &cells, Style::of_stdout())
    };
    print(text.as_bytes())?;
    if let Some(folder) = &args.svg {
        for file in plots::draw_all(folder, &plan, &cells)? {
            say!("bywash: {} drawn", file.display());
        }
    }
    Ok(outcome)
}

/// Says how far it came; what there is of whole seeds is shown.
fn stopped(plan: &Plan<'_>, done: u64, seeds: u64) -> ExitCode {
    let (runs, of) = (thousands(done), thousands(outcome::steps(plan)));
    let shown = match (seeds, plan.seeds) {
        (0, 1) => "nothing is shown before all are done; fewer --requests, policies or values of --sweep take less time".to_owned(),
        (0, _) => "nothing is shown before those of the first seed are done".to_owned(),
        (_, all) => format!("what is shown is of the {} of {} that were done", counted(seeds, "seed"), thousands(all)),
    };
    say!("bywash: interrupted after {runs} of {of} runs; {shown}");
    Interrupt::exit_code()
}

fn policies(args: &Args, cards: &[Card]) -> Result<Vec<Policy>, Failure> {
    let no_five = cards.iter().find(|card| five_smallest(&card.sheet).is_none());
    let refused = |policy: Policy| match (policy, no_five) {
        (Policy::Hardware, _) if args.side_by_side => Some("makes requests wait for their circuits; nothing runs beside that".to_owned()),
        (Policy::Fix5, Some(card)) => Some(format!("needs five circuits with their areas; the sheet of '{}' has not", card.sheet.name)),
        _ => None,
    };
    if args.policy.is_empty() {
        let all: &[Policy] = if args.preset == Some(Preset::Niwa2005) { &Policy::PAPER } else { Policy::value_variants() };
        return Ok(all.iter().copied().filter(|&policy| refused(policy).is_none()).collect());
    }
    match args.policy.iter().find_map(|&policy| Some((policy, refused(policy)?))) {
        Some((policy, reason)) => Err(Failure::new(Exit::Usage, format!("--policy {}: {reason}", policy.name()))),
        None => Ok(args.policy.clone()),
    }
}

/// What is swept; the rate is among it if it is not a trace's own.
fn points(args: &Args) -> Result<Vec<Point>, Failure> {
    let twice = args.sweep.iter().enumerate().find(|(place, sweep)| args.sweep[..*place].iter().any(|other| other.key == sweep.key));
    if let Some((_, sweep)) = twice {
        return Err(Failure::new(Exit::Usage, format!("--sweep {}: given twice; write the values with commas between", sweep.key)));
    }
    let mut sweeps = args.sweep.clone();
    let swept = sweeps.iter().any(|sweep| sweep.key == Key::Rate);
    let rates = match (args.rate, args.preset, &args.trace) {
        (Some(_), ..) if swept => return Err(Failure::new(Exit::Usage, "--rate: the rate is swept; leave one of both out")),
        (Some(rate), ..) => Some(vec![rate]),
        _ if swept => None,
        (None, Some(Preset::Niwa2005), _) => Some(RATES.to_vec()),
        (None, _, None) => Some(vec![RATE]),
        _ => None,
    };
    if let Some(values) = rates {
        sweeps.insert(0, Sweep { key: Key::Rate, values });
    }
    Ok(study::points(&sweeps))
}
