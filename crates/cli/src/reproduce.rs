//! `bywash reproduce`: the papers' experiments, run again on this machine.

use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::shell::print;
use crate::terminal::{Told, say};
use bywash_experiments::{EXPERIMENTS, Experiment, Options, Progress};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `bywash reproduce`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash reproduce --list
  bywash reproduce munetoh --quick
  bywash reproduce munetoh --part async --part cgi --out /tmp/some
  bywash reproduce niwa2005 --part table2
  bywash reproduce niwa2005 --part models --rounds 48
  bywash reproduce niwa2005-live --part bursts
  bywash reproduce ohgama2008 --part mixed
  bywash reproduce takeda --part cpu
  bywash reproduce kido --part latency
  bywash reproduce kido --list

Beside the tables, run.json says of each part when and on what it was run, and what else the
machine did. Servers are started on free ports of 127.0.0.1 and ended afterwards. Without --quick
munetoh and kido take some twenty minutes, the others one to three; all want a machine that does
nothing else. Ctrl-C ends it with the parts that are done; a second one at once, and servers may be
left.")]
pub(crate) struct Args {
    /// The experiment, by its paper's key
    #[arg(value_name = "NAME", required_unless_present = "list", value_parser = experiment())]
    experiment: Option<&'static Experiment>,
    /// List the experiments there are and their parts, or those of one
    #[arg(long)]
    list: bool,
    /// Only see whether all works: a minute or two instead of twenty, and figures that mean nothing
    #[arg(long)]
    quick: bool,
    /// Rounds of each measurement, seeds of each simulation; figures are their medians [default: 3 or 5, of ciphers 7, seeds 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: Option<u16>,
    /// Run this part alone; again for more
    #[arg(long, value_name = "PART")]
    part: Vec<String>,
    /// Where tables and plots go [default: bywash-NAME; in a checkout experiments/NAME; with --quick a temporary folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The load generator [default: tls-load beside this executable]
    #[arg(long, value_name = "FILE")]
    tls_load: Option<PathBuf>,
    /// Print the tables as JSON
    #[arg(long)]
    json: bool,
}

/// Runs an experiment, and says what came out.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let experiment = match args.experiment {
        Some(experiment) if args.list => return list(std::slice::from_ref(experiment)),
        Some(experiment) => experiment,
        None => return list(EXPERIMENTS),
    };
    let bywash = std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find this executable: {error}")))?;
    let options = Options {
        quick: args.quick,
        rounds: args.rounds.map(usize::from),
        parts: args.part.clone(),
        tls_load: args.tls_load.clone().unwrap_or_else(|| bywash.with_file_name("tls-load")),
        bywash,
        out: args.out.clone().unwrap_or_else(|| out(experiment.name, args.quick)),
    };
    experiment.check(&options).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let interrupt = Interrupt::catch()?;
    let mut told = Told::new();
    let outcome = experiment.run(&options, &mut |progress| {
        if interrupt.came() {
            return Err(bywash_experiments::Error("interrupted".into()));
        }
        show(&mut told, progress);
        Ok(())
    });
    told.end();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(_) if interrupt.came() => {
            say!("bywash: interrupted before a part was done");
            return Ok(Interrupt::exit_code());
        }
        Err(error) => return Err(Failure::failed(error.to_string())),
    };
    let text = if args.json { format!("{:#}\n", outcome.tables) } else { outcome.text };
    print(text.as_bytes())?;
    say!("bywash: tables and plots are in {}", options.out.display());
    if interrupt.came() {
        let parts: Vec<_> = outcome.failed.iter().map(|(part, _)| *part).collect();
        say!("bywash: interrupted; what is above is of the parts before; run the others with --part: {}", parts.join(", "));
        return Ok(Interrupt::exit_code());
    }
    if outcome.failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let failed: Vec<String> = outcome.failed.iter().map(|(part, error)| format!("part '{part}' failed: {error}")).collect();
    Err(Failure::failed(format!(
        "{}\nwhat is above is of the others; `bywash reproduce {} --part NAME` runs one again",
        failed.join("\n"),
        experiment.name
    )))
}

/// The published ones in a checkout; elsewhere a folder that says whose it is. Figures that mean nothing take no others' place.
fn out(experiment: &str, quick: bool) -> PathBuf {
    let published = Path::new("experiments").join(experiment);
    match (quick, published.is_dir()) {
        (true, _) => std::env::temp_dir().join(format!("bywash-{experiment}-quick-{}", std::process::id())),
        (false, true) => published,
        (false, false) => format!("bywash-{experiment}").into(),
    }
}

fn show(told: &mut Told, progress: Progress) {
    match progress {
        Progress::Begin => {}
        Progress::Part(what, steps) => told.begin(what, steps),
        Progress::Step => told.step(),
        Progress::Note(what) => told.note(&what),
    }
}

fn experiment() -> impl TypedValueParser<Value = &'static Experiment> {
    let names = EXPERIMENTS.iter().map(|experiment| experiment.name);
    PossibleValuesParser::new(names)
        .try_map(|name| EXPERIMENTS.iter().find(|experiment| experiment.name == name).ok_or("no such experiment"))
}

fn list(experiments: &[Experiment]) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    for Experiment { name, title, parts, .. } in experiments {
        let _ = writeln!(text, "{name:<14} {title}\n{:<14} parts: {}", "", parts.join(", "));
    }
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
