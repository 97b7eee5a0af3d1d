//! Cost sheets kept from one start to the next, one file per machine and engine.

use super::{launches, measure, measure_onto};
use bywash_core::{Algorithm, CostSheet, Engine, Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where cost sheets are kept: `$XDG_CACHE_HOME/bywash`, else `~/.cache/bywash`; `None` without either.
pub fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(folder.join("bywash"))
}

/// The engine's cost sheet: its own if it has one, else the one kept in the folder, else measured and kept. Beside it, lines for the log. A
/// folder that cannot be read or written is worth a line, never a failure.
pub fn load_or_measure(folder: Option<&Path>, engine: &dyn Engine, budget: Duration) -> (CostSheet, Vec<String>) {
    load_or_measure_with(&[], folder, engine, budget)
}

/// The same, and these algorithms are on the sheet too if the engine can do them: legacy ones are on none unless somebody asks.
pub fn load_or_measure_with(
    asked_for: &[Algorithm],
    folder: Option<&Path>,
    engine: &dyn Engine,
    budget: Duration,
) -> (CostSheet, Vec<String>) {
    if let Some(sheet) = engine.cost_sheet() {
        return (sheet, Vec::new());
    }
    let mut notes = Vec::new();
    let algorithms = wanted(engine, asked_for);
    let head = header(engine);
    let path = folder.map(|folder| sheet_path(folder, engine));
    match path.as_deref().map(|path| load(path, &head, engine)) {
        Some(Ok(Some(mut sheet))) => {
            if let Some(line) = complete(engine, &algorithms, &mut sheet, budget) {
                let kept = path.as_deref().map_or(Ok(()), |path| store(path, &head, &sheet));
                notes.push(line + &kept.map_or_else(|error| format!(", and not kept: {error}"), |()| String::new()));
            }
            return (sheet, notes);
        }
        Some(Err(error)) => notes.push(format!("{error}; measured anew")),
        Some(Ok(None)) | None => {}
    }
    let sheet = measure(engine, &algorithms, budget);
    for algorithm in algorithms.iter().filter(|&&algorithm| sheet.curve(algorithm).is_none()) {
        notes.push(format!("engine '{}' failed to do {algorithm}; it is left off its cost sheet", engine.name()));
    }
    if let Some(path) = path {
        match store(&path, &head, &sheet) {
            Ok(()) => notes.push(format!("measured engine '{}'; cost sheet kept in {}", engine.name(), path.display())),
            Err(error) => notes.push(format!("cost sheet not kept in {}: {error}", path.display())),
        }
    }
    (sheet, notes)
}

/// What belongs on an engine's sheet. Legacy algorithms are for whoever asks for them by name: nothing else decides by their cost.
fn wanted(engine: &dyn Engine, asked_for: &[Algorithm]) -> Vec<Algorithm> {
    let wanted = |algorithm: &Algorithm| !algorithm.is_legacy() || asked_for.contains(algorithm);
    engine.capabilities().iter().copied().filter(wanted).collect()
}

/// Measures what the sheet lacks because nobody asked for it, or an earlier version did not know it; a line about it if there was any.
fn complete(engine: &dyn Engine, algorithms: &[Algorithm], sheet: &mut CostSheet, budget: Duration) -> Option<String> {
    let missing: Vec<_> = algorithms.iter().copied().filter(|&algorithm| sheet.curve(algorithm).is_none()).collect();
    let share = budget * u32::try_from(missing.len()).ok()? / u32::try_from(algorithms.len()).ok()?.max(1);
    measure_onto(sheet, engine, &missing, share);
    let names: Vec<&str> =
        missing.iter().filter(|&&algorithm| sheet.curve(algorithm).is_some()).map(|algorithm| algorithm.name()).collect();
    (!names.is_empty()).then(|| format!("measured on engine '{}' what its cost sheet lacked: {}", engine.name(), names.join(", ")))
}

/// The sheet that the folder keeps of this engine, measured on this machine: none, if it cannot be read or understood either.
pub fn kept(folder: &Path, engine: &dyn Engine) -> Option<CostSheet> {
    load(&sheet_path(folder, engine), &header(engine), engine).ok().flatten()
}

/// Keeps a sheet that was measured on this machine where [`load_or_measure`] finds it; the file's path.
///
/// # Errors
/// [`Error::Config`], naming the file.
pub fn keep(folder: &Path, engine: &dyn Engine, sheet: &CostSheet) -> Result<PathBuf> {
    let path = sheet_path(folder, engine);
    let failed = |error: io::Error| Error::Config { place: path.display().to_string(), reason: format!("cost sheet not kept: {error}") };
    store(&path, &header(engine), sheet).map_err(failed)?;
    Ok(path)
}

/// The file in which the folder keeps this engine's cost sheet, measured on this machine. It need not be there.
pub fn sheet_path(folder: &Path, engine: &dyn Engine) -> PathBuf {
    folder.join(file_name(engine.name(), &header(engine)))
}

/// What the sheet must have been measured on to be of use, as the comment that heads the file.
fn header(engine: &dyn Engine) -> String {
    let line = |text: &str| text.replace(['\n', '\r'], " ");
    // Sheets from before that was told apart are not found again.
    let launches = engine.capabilities().iter().any(|&algorithm| launches(engine, algorithm));
    format!(
        "# Measured by Bywash; delete this file to have it measured again.\n# engine: {}, {}\n# processor: {}\n{}",
        line(engine.name()),
        line(&engine.describe()),
        line(&processor()),
        if launches { "# in launches: what one takes, also of this processor, and what each operation takes beside\n" } else { "" }
    )
}

/// The processor as the kernel names it.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| format!("unknown {}", std::env::consts::ARCH), |(_, name)| name.trim().to_owned())
}

/// The engine's name for people, a hash of the header for machines that share a home folder (FNV-1a, 64 bits).
fn file_name(engine: &str, header: &str) -> String {
    let hash = header.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let plain: String = engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{plain}-{hash:016x}.toml")
}

fn load(path: &Path, header: &str, engine: &dyn Engine) -> Result<Option<CostSheet>> {
    let place = path.display().to_string();
    let bad = |reason: String| Error::Config { place: place.clone(), reason };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(format!("cannot be read: {error}"))),
    };
    if !text.starts_with(header) {
        return Err(bad("measured on another machine or engine".into()));
    }
    let sheet = CostSheet::from_toml(&text, &place)?;
    let covers = engine.capabilities().iter().any(|&algorithm| sheet.curve(algorithm).is_some());
    if sheet.engine != engine.name() || !covers {
        return Err(bad("it is not this engine's sheet".into()));
    }
    Ok(Some(sheet))
}

/// Written beside its place and then moved there: a reader sees a whole sheet or none. The file beside is made anew, for in a folder that
/// another user may write (root under that user's `HOME`) a link of its name could lead anywhere.
fn store(path: &Path, header: &str, sheet: &CostSheet) -> io::Result<()> {
    let text = sheet.to_toml().map_err(io::Error::other)?;
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let draft = path.with_extension(format!("{}.part", std::process::id()));
    // Left behind by a process of this number that was killed, if it is there.
    let _ = std::fs::remove_file(&draft);
    let written = std::fs::File::create_new(&draft)
        .and_then(|mut file| file.write_all(format!("{header}{text}").as_bytes()))
        .and_then(|()| std::fs::rename(&draft, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&draft)))
}
