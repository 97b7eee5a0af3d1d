//! `bywash calibrate`: what operations cost on this machine's engines.

mod reach;
mod show;

use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::{Style, say};
use bywash_core::{Algorithm, CostSheet, Engine};
use bywash_manager::calibrate::{BUDGET, default_cache, keep, load_or_measure_with, measure_full, sheet_path};
use bywash_measure::noise::Watch;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// `bywash calibrate`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash calibrate                         show what is known, measure what is not
  bywash calibrate --force                 measure again, on a quiet machine
  bywash calibrate --full --svg fit.svg    measure thoroughly, and draw what came out
  bywash calibrate --legacy                DES, Camellia and others, MD5, SHA-1 and RIPEMD-160 too
  bywash calibrate --json

A broker, and every program with its own manager, reads the cost sheets that are written here. The
quick calibration takes a fifth of a second and five sizes; the thorough one some minutes, two
sizes for each octave from 16 bytes to 64 MiB, batches of every number, and the way to a broker. It
fits straight lines and says how well they fit; where one ends, a cache often does. Routing then
goes by the lines.")]
pub(crate) struct Args {
    /// Measure even if there is a cost sheet
    #[arg(long)]
    force: bool,
    /// Measure thoroughly, whatever cost sheet there is
    #[arg(long)]
    full: bool,
    /// Measure legacy ciphers and hashes too: DES, 3DES, Camellia, Serpent, Twofish, RC6, MD5, SHA-1, RIPEMD-160
    #[arg(long)]
    legacy: bool,
    /// Milliseconds of each figure of the thorough calibration
    #[arg(long, value_name = "MS", default_value_t = 8, requires = "full", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    time: u64,
    /// Draw points and fitted lines
    #[arg(long, value_name = "FILE")]
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
    let folder = args.cache.clone().or_else(default_cache);
    let progress = ProgressBar::new_spinner().with_message("measuring");
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut sheets = Vec::new();
    for engine in bywash_manager::probe().present {
        let sheet = match args.full && engine.cost_sheet().is_none() {
            true => thorough(args, folder.as_deref(), &*engine, &progress)?,
            false => quick(args, folder.as_deref(), &*engine, &progress)?,
        };
        sheets.push((sheet, folder.as_deref().map(|folder| sheet_path(folder, &*engine))));
    }
    progress.finish_and_clear();
    let text = if args.json {
        as_json(&sheets)?
    } else {
        sheets.iter().map(|(sheet, path)| show::as_text(sheet, path.as_deref(), Style::of_stdout())).collect()
    };
    print(text.as_bytes())?;
    if let Some(path) = &args.svg {
        show::as_svg(path, &sheets.iter().map(|(sheet, _)| sheet).collect::<Vec<_>>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The legacy algorithms that are to be measured.
fn legacy(args: &Args, engine: &dyn Engine) -> Vec<Algorithm> {
    engine.capabilities().iter().copied().filter(|algorithm| args.legacy && algorithm.is_legacy()).collect()
}

fn quick(args: &Args, folder: Option<&Path>, engine: &dyn Engine, progress: &ProgressBar) -> Result<CostSheet, Failure> {
    if args.force {
        forget(folder, engine)?;
    }
    let (sheet, notes) = load_or_measure_with(&legacy(args, engine), folder, engine, BUDGET);
    notes.iter().for_each(|note| progress.suspend(|| say!("bywash: {note}")));
    Ok(sheet)
}

/// Interrupted, it keeps nothing: the sheet that was there stays.
fn thorough(args: &Args, folder: Option<&Path>, engine: &dyn Engine, progress: &ProgressBar) -> Result<CostSheet, Failure> {
    let mut watch = Watch::begin();
    let algorithms: Vec<_> = engine.capabilities().iter().copied().filter(|algorithm| args.legacy || !algorithm.is_legacy()).collect();
    let mut number = 0;
    let mut sheet = measure_full(engine, &algorithms, Duration::from_millis(args.time), &mut |algorithm| {
        number += 1;
        progress.set_message(format!("{algorithm} ({number} of {})", algorithms.len()));
        watch.probe();
    });
    progress.set_message("the way to a broker");
    let mut notes = Vec::new();
    match reach::broker_ns() {
        Ok(ns) => sheet.reach_broker_ns = Some(ns),
        Err(failure) => notes.push(failure.to_string()),
    }
    let failed = algorithms.iter().filter(|&&algorithm| sheet.curve(algorithm).is_none());
    notes.extend(failed.map(|algorithm| format!("engine '{}' failed to do {algorithm}; it is left off its cost sheet", engine.name())));
    notes.extend(watch.end().warnings().into_iter().map(|warning| format!("this machine is noisy: {warning}")));
    if let Some(folder) = folder {
        keep(folder, engine, &sheet)?;
    }
    notes.iter().for_each(|note| progress.suspend(|| say!("bywash: {note}")));
    Ok(sheet)
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
