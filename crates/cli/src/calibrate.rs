//! `bywash calibrate`: what operations cost on this machine's engines.

use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::Style;
use bywash_core::{Algorithm, CostSheet, Engine};
use bywash_manager::calibrate::{BUDGET, SIZES, default_cache, load_or_measure, sheet_path};
use indicatif::ProgressBar;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// `bywash calibrate`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash calibrate             show what is known, measure what is not
  bywash calibrate --force     measure again, on a quiet machine
  bywash calibrate --json

A broker, and every program with its own manager, reads the cost sheets that are written here.")]
pub(crate) struct Args {
    /// Measure even if there is a cost sheet
    #[arg(long)]
    force: bool,
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
        if args.force {
            forget(folder.as_deref(), &*engine)?;
        }
        let (sheet, notes) = load_or_measure(folder.as_deref(), &*engine, BUDGET);
        notes.iter().for_each(|note| progress.suspend(|| eprintln!("bywash: {note}")));
        sheets.push((sheet, folder.as_deref().map(|folder| sheet_path(folder, &*engine))));
    }
    progress.finish_and_clear();
    print(if args.json { as_json(&sheets)? } else { as_text(&sheets, Style::of_stdout()) }.as_bytes())?;
    Ok(ExitCode::SUCCESS)
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

fn as_text(sheets: &[(CostSheet, Option<PathBuf>)], style: Style) -> String {
    let mut text = String::new();
    for (sheet, path) in sheets {
        let kind = if sheet.modelled { "modelled, not measured" } else { "measured" };
        let _ = writeln!(text, "{} ({kind}, nanoseconds of one operation)", style.bold(&sheet.engine));
        let _ = write!(text, "{:<20} {:>9}", "bytes", "setup");
        text += &SIZES.map(|size| format!(" {size:>9}")).concat();
        text.push('\n');
        for (name, curve) in &sheet.algorithms {
            let _ = write!(text, "{name:<20} {:>9.0}", curve.setup_ns);
            let public_key = name.parse().is_ok_and(Algorithm::is_public_key);
            let sizes = if public_key { &SIZES[..1] } else { &SIZES[..] };
            text.extend(sizes.iter().map(|&size| format!(" {:>9.0}", curve.estimate_ns(size as u64))));
            for (operations, ns) in &curve.batch {
                let _ = write!(text, "   {operations} together {ns:>9.0}");
            }
            text.push('\n');
        }
        if let Some(path) = path.as_deref().filter(|path| path.exists()) {
            let _ = writeln!(text, "kept in {}", path.display());
        }
    }
    text
}
