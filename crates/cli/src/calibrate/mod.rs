//! `bywash calibrate`: what operations cost on this machine's engines.

mod reach;
mod show;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::shell::print;
use crate::svg_file::svg_file;
use crate::terminal::{Style, Told};
use bywash_core::{Algorithm, CostSheet, Engine};
use bywash_manager::calibrate::{BUDGET, Thorough, default_cache, keep, kept, load_or_measure_with, measure_full, sheet_path};
use bywash_measure::noise::Watch;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Looks at the clock's frequency before and after a quick calibration.
const PROBES: usize = 8;

/// `bywash calibrate`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash calibrate                         show what is known, measure what is not
  bywash calibrate --force                 measure again, on a quiet machine
  bywash calibrate --full --svg fit.svg    measure thoroughly, and draw what came out
  bywash calibrate --legacy                DES, Camellia, MD5 and others too
  bywash calibrate --json

A broker, and every program with its own manager, reads the cost sheets that are written here. The
quick calibration takes a fifth of a second and five sizes; the thorough one some minutes, two
sizes for each octave from 16 bytes to 64 MiB, batches of every number, and the way to a broker. It
fits straight lines and says how well they fit; where one ends, a cache often does. Routing then
goes by the lines. Ctrl-C ends it with what was measured until then; the rest stays as it was.")]
pub(crate) struct Args {
    /// Measure even if there is a cost sheet
    #[arg(long)]
    force: bool,
    /// Measure thoroughly, whatever cost sheet there is
    #[arg(long)]
    full: bool,
    /// Measure legacy ciphers and hashes too: DES, 3DES, Blowfish, Camellia, Serpent, Twofish, RC6, MD5, SHA-1, RIPEMD-160
    #[arg(long)]
    legacy: bool,
    /// Milliseconds of each figure of the thorough calibration
    #[arg(long, value_name = "MS", default_value_t = 8, requires = "full", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    time: u64,
    /// Draw points and fitted lines
    #[arg(long, value_name = "FILE", value_parser = svg_file())]
    svg: Option<PathBuf>,
    /// Folder for the cost sheets [default: $XDG_CACHE_HOME/bywash, else ~/.cache/bywash]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Print the cost sheets as JSON
    #[arg(long)]
    json: bool,
}

/// Measures where needed, shows the sheets and where they are kept.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.cache {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    let folder = args.cache.clone().or_else(default_cache);
    let mut calibration = Calibration {
        args,
        folder: folder.as_deref(),
        interrupt: Interrupt::catch()?,
        told: Told::new(),
        watch: Watch::begin(),
        measured: false,
    };
    let mut sheets = Vec::new();
    for engine in bywash_manager::probe().present {
        let sheet = match args.full && engine.cost_sheet().is_none() {
            true => calibration.thorough(&*engine)?,
            false => calibration.quick(&*engine)?,
        };
        sheets.push((sheet, folder.as_deref().map(|folder| sheet_path(folder, &*engine))));
        if calibration.interrupt.came() {
            break;
        }
    }
    let interrupted = calibration.end();
    let text = if args.json {
        as_json(&sheets)?
    } else {
        sheets.iter().map(|(sheet, path)| show::as_text(sheet, path.as_deref(), Style::of_stdout())).collect()
    };
    print(text.as_bytes())?;
    if let Some(path) = &args.svg {
        show::as_svg(path, &sheets.iter().map(|(sheet, _)| sheet).collect::<Vec<_>>())?;
    }
    Ok(if interrupted { Interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// All engines, one after the other.
struct Calibration<'a> {
    args: &'a Args,
    folder: Option<&'a Path>,
    interrupt: Interrupt,
    told: Told,
    watch: Watch,
    measured: bool,
}

impl Calibration<'_> {
    fn quick(&mut self, engine: &dyn Engine) -> Result<CostSheet, Failure> {
        if self.args.force {
            forget(self.folder, engine)?;
        }
        let probe = |watch: &mut Watch| (0..PROBES).for_each(|_| _ = watch.probe());
        probe(&mut self.watch);
        let (sheet, notes) = load_or_measure_with(&legacy(self.args, engine), self.folder, engine, BUDGET);
        probe(&mut self.watch);
        self.measured |= !notes.is_empty();
        notes.iter().for_each(|note| self.told.note(note));
        Ok(sheet)
    }

    /// Interrupted, it keeps what it has measured, and the rest as it was.
    fn thorough(&mut self, engine: &dyn Engine) -> Result<CostSheet, Failure> {
        let algorithms: Vec<_> =
            engine.capabilities().iter().copied().filter(|algorithm| self.args.legacy || !algorithm.is_legacy()).collect();
        let (name, count) = (engine.name(), algorithms.len());
        self.told.begin(format!("engine '{name}'"), count as u64);
        self.measured = true;
        let (told, watch, interrupt) = (&mut self.told, &mut self.watch, &self.interrupt);
        let mut begun = 0_usize;
        let begin = &mut |algorithm| {
            if begun > 0 {
                told.step();
            }
            begun += 1;
            told.rename(format!("engine '{name}', {algorithm}"));
            watch.probe();
        };
        let earlier = self.folder.and_then(|folder| kept(folder, engine));
        let thorough = Thorough { time: Duration::from_millis(self.args.time), begin, go_on: &|| !interrupt.came() };
        let mut sheet = measure_full(engine, &algorithms, earlier, thorough);
        let mut notes = Vec::new();
        if self.interrupt.came() {
            // The last one was under way.
            let measured = begun.saturating_sub(1);
            notes.push(format!("interrupted; {measured} of {count} algorithms of engine '{name}' were measured, the rest is as it was"));
        } else {
            self.told.rename("the way to a broker".into());
            match reach::broker_ns() {
                Ok(ns) => sheet.reach_broker_ns = Some(ns),
                Err(failure) => notes.push(failure.to_string()),
            }
            let failed = algorithms.iter().filter(|&&algorithm| sheet.curve(algorithm).is_none());
            notes.extend(failed.map(|algorithm| format!("engine '{name}' failed to do {algorithm}; it is left off its cost sheet")));
        }
        if let Some(folder) = self.folder.filter(|_| !sheet.algorithms.is_empty()) {
            keep(folder, engine, &sheet)?;
        }
        notes.iter().for_each(|note| self.told.note(note));
        Ok(sheet)
    }

    /// Says what makes the figures doubtful; whether the user had enough.
    fn end(self) -> bool {
        let doubts = if self.measured { self.watch.end().warnings() } else { Vec::new() };
        doubts.iter().for_each(|doubt| self.told.note(&format!("this machine is noisy: {doubt}")));
        if self.folder.is_some() && !doubts.is_empty() {
            let again = if self.args.full { "--full" } else { "--force" };
            self.told.note(&format!("what was measured is kept all the same; on a quiet machine `bywash calibrate {again}` puts it right"));
        }
        self.told.end();
        self.interrupt.came()
    }
}

/// The legacy algorithms that are to be measured.
fn legacy(args: &Args, engine: &dyn Engine) -> Vec<Algorithm> {
    engine.capabilities().iter().copied().filter(|algorithm| args.legacy && algorithm.is_legacy()).collect()
}

fn forget(folder: Option<&Path>, engine: &dyn Engine) -> Result<(), Failure> {
    let Some(path) = folder.map(|folder| sheet_path(folder, engine)) else { return Ok(()) };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::file("remove", &path, &error)),
        _ => Ok(()),
    }
}

fn as_json(sheets: &[(CostSheet, Option<PathBuf>)]) -> Result<String, Failure> {
    let sheets: Vec<_> = sheets.iter().map(|(sheet, path)| serde_json::json!({ "path": path, "sheet": sheet })).collect();
    Ok(serde_json::to_string_pretty(&sheets).map_err(|error| Failure::failed(error.to_string()))? + "\n")
}
