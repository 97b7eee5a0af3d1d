//! Many files at once: threads, batches of finished files that are synced together, progress, the report.

use super::io_failure;
use super::removal::{Placed, Source};
use super::tree::{Item, Plan};
use crate::failure::{Exit, Failure};
use crate::interrupt::say_at_interrupt;
use crate::shell::print;
use crate::shown::Shown;
use crate::terminal::{Style, bytes, counted, say, thousands};
use bywash_files::disk::{FolderJournals, Journals};
use bywash_files::fsck::DamagedRun;
use bywash_files::leftover::Leftover;
use bywash_files::place::{Draft, folder_of, sync_folder_of};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Finished files that are synced and named together.
const BATCH_FILES: usize = 64;
/// The same in bytes: what is not named yet is lost when the run is interrupted.
const BATCH_BYTES: u64 = 256 << 20;
/// How often the bar is drawn.
const SHOWN_EVERY: Duration = Duration::from_millis(50);
/// Files that no key opens are named up to so many: with a wrong passphrase that is each file of a folder.
const UNOPENED_NAMED: usize = 8;
/// From this length on a file is worth all threads.
const LARGE_BYTES: u64 = 32 << 20;

/// How files are worked on.
#[derive(Debug, clap::Args)]
pub(super) struct WorkArgs {
    /// Threads; by default one for each processor
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Say as JSON on stdout what became of each file
    #[arg(long)]
    json: bool,
    /// Name all that is passed over, and why; all files that no key given opens, not the first few
    #[arg(short, long)]
    verbose: bool,
}

/// How files that are written come to be there.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct WriteArgs {
    /// Replace files that are there
    #[arg(short, long)]
    force: bool,
    /// Read each result back from the disk and compare it with its source
    #[arg(long)]
    verify: bool,
    /// Remove each source when its result is verified and on the disk
    #[arg(long)]
    remove_source: bool,
}

impl WriteArgs {
    /// Whether results are compared with their sources.
    pub(super) fn verifies(self) -> bool {
        self.verify || self.remove_source
    }

    /// Whether sources go.
    pub(super) fn removes(self) -> bool {
        self.remove_source
    }

    /// Whether a target may be replaced.
    pub(super) fn replaces(self) -> bool {
        self.force
    }
}

/// What became of a file.
pub(super) enum Outcome {
    /// Written, or found and compared with its source; `journal` is what goes when that goes.
    Ready { result: Ready, bytes: u64, source: Source, journal: Option<Journal> },
    /// It was there already, from an earlier run.
    WasDone { bytes: u64 },
    /// Looked at, all of it.
    Checked { bytes: u64 },
    /// Damaged in these places; `saved` is where what is good has gone.
    Damaged { failure: Failure, bytes: u64, places: Vec<DamagedRun>, saved: Option<PathBuf> },
}

/// The journal of a source.
pub(super) struct Journal {
    pub(super) journals: FolderJournals,
    pub(super) salt: [u8; 32],
}

/// A result on its way to the disk.
pub(super) enum Ready {
    /// Without its name.
    New(Draft),
    /// There already, from an earlier run, and was so when it was opened.
    Kept(File, Box<Metadata>),
    /// Without its name, which another file has: that is open and locked until then, and was so when it was looked at.
    Instead { draft: Draft, replaced: Arc<File>, read: Box<Metadata> },
}

/// What a thread knows while it works on a file.
pub(super) struct Job<'a> {
    pub(super) item: &'a Item,
    /// Bytes done, of all files.
    pub(super) progress: &'a AtomicU64,
    all_threads: usize,
    is_alone: bool,
}

impl Job<'_> {
    /// Whether there is no other file in this run.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Threads that a file of that length is worth.
    pub(super) fn threads(&self, len: u64) -> usize {
        if self.is_alone || len >= LARGE_BYTES { self.all_threads } else { 1 }
    }
}

/// One line of the report.
struct Line {
    source: PathBuf,
    target: Option<PathBuf>,
    status: &'static str,
    bytes: u64,
    places: Vec<DamagedRun>,
    error: Option<Failure>,
}

#[derive(Default)]
struct Report {
    lines: Mutex<Vec<Line>>,
    /// How many no key has opened, and whether each is named.
    unopened: AtomicUsize,
    names_all: bool,
    /// Whether files are given their names, or have been.
    is_naming: AtomicBool,
}

impl Report {
    fn add(&self, line: Line) {
        if let Some(failure) = &line.error
            && (failure.exit != Exit::NoKey || self.unopened.fetch_add(1, Relaxed) < UNOPENED_NAMED || self.names_all)
        {
            // Where the bar is, or will be, drawn again.
            let clears = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
            say!("{clears}{} {failure}", Style::of_stderr().bad("bywash:"));
        }
        self.lines().push(line);
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many files no key has opened that were not named.
    fn unopened_unnamed(&self) -> usize {
        if self.names_all { 0 } else { self.unopened.load(Relaxed).saturating_sub(UNOPENED_NAMED) }
    }

    /// Files with which all is well.
    fn done(&self) -> u64 {
        self.lines().iter().filter(|line| line.error.is_none()).count() as u64
    }
}

/// A file that waits for its name, and for its source to be removed.
struct Finished<'a> {
    item: &'a Item,
    result: Ready,
    bytes: u64,
    source: Source,
    journal: Option<Journal>,
}

impl WorkArgs {
    fn threads(&self) -> usize {
        self.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// Whether the report is to be JSON.
    pub(super) fn json(&self) -> bool {
        self.json
    }

    /// Nothing of a plan was begun, since a folder for its results cannot be made: whoever reads JSON finds that there, too.
    pub(super) fn nothing_begun(&self, plan: &Plan, (folder, failure): (PathBuf, Failure)) -> Result<ExitCode, Failure> {
        if !self.json {
            return Err(failure);
        }
        let report = Report::default();
        for (source, failure) in plan.troubles().chain([(folder, failure)]) {
            report.add(Line::of_place(source, failure));
        }
        let lines = std::mem::take(&mut *report.lines());
        self.conclude(plan, lines, plan.items.len(), false, Duration::ZERO)
    }

    /// Works on all files of a plan, and says how it went.
    pub(super) fn run(
        &self,
        plan: &Plan,
        writes: Option<WriteArgs>,
        work: impl Fn(&Job<'_>) -> Result<Outcome, Failure> + Sync,
    ) -> Result<ExitCode, Failure> {
        let (began, all_threads) = (Instant::now(), self.threads());
        let (report, progress, next) =
            (Arc::new(Report { names_all: self.verbose, ..Report::default() }), AtomicU64::new(0), AtomicUsize::new(0));
        let is_alone = plan.items.len() == 1;
        let left = if writes.is_some() { told(plan.remove_leftovers()) } else { Vec::new() };
        let batch_files = batch_files(all_threads);
        let one_thread = || {
            let mut batch = Vec::new();
            while let Some(item) = plan.items.get(next.fetch_add(1, Relaxed)) {
                match work(&Job { item, progress: &progress, all_threads, is_alone }) {
                    Ok(Outcome::Ready { result, bytes, source, journal }) => {
                        batch.push(Finished { item, result, bytes, source, journal });
                    }
                    Ok(Outcome::WasDone { bytes }) => report.add(Line::good(item, true, "done before", bytes)),
                    Ok(Outcome::Checked { bytes }) => report.add(Line::good(item, false, "good", bytes)),
                    Ok(Outcome::Damaged { failure, bytes, places, saved }) => {
                        report.add(Line { target: saved, bytes, places, ..Line::bad(item, false, failure) });
                    }
                    Err(failure) => {
                        if failure.is_for_all {
                            next.store(plan.items.len(), Relaxed);
                        }
                        report.add(Line::bad(item, writes.is_some(), failure));
                    }
                }
                // Threads keep their files open until they have names, and a process may not have many.
                let bytes: u64 = batch.iter().map(|finished| finished.bytes).sum();
                if batch.len() >= batch_files || bytes >= BATCH_BYTES {
                    finish(&mut batch, writes, &report);
                }
            }
            finish(&mut batch, writes, &report);
        };
        let is_over = Arc::new(AtomicBool::new(false));
        say_at_interrupt({
            let (report, is_over, of) = (report.clone(), is_over.clone(), plan.items.len());
            let go_on = if writes.is_some() { "; the same command does the others" } else { "" };
            move || {
                is_over.store(true, Relaxed);
                // So that the bar is gone.
                std::thread::sleep(2 * SHOWN_EVERY);
                match of {
                    1 if report.is_naming.load(Relaxed) => {
                        say!("interrupted just as the file was given its name; look whether it is there")
                    }
                    1 => say!("interrupted before the file was done"),
                    of => say!("interrupted: {} of {} files done{go_on}", thousands(report.done()), thousands(of as u64)),
                }
            }
        })?;
        let total = || plan.items.iter().filter_map(|item| std::fs::metadata(&item.source).ok()).map(|metadata| metadata.len()).sum();
        std::thread::scope(|scope| {
            if std::io::stderr().is_terminal() {
                scope.spawn(|| show(&progress, total(), &is_over));
            }
            let threads: Vec<_> = (0..all_threads.min(plan.items.len())).map(|_| scope.spawn(one_thread)).collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
            is_over.store(true, Relaxed);
        });
        let not_begun = plan.items.len().saturating_sub(report.lines().len());
        let at_the_end = plan.finish_folders().into_iter().map(|(path, error)| {
            let failure = io_failure(&path, &error);
            (path, failure)
        });
        for (source, failure) in plan.troubles().chain(at_the_end).chain(left) {
            report.add(Line::of_place(source, failure));
        }
        match report.unopened_unnamed() {
            0 => {}
            others => say!("bywash: and {} more that no key given opens; -v names them", counted(others as u64, "file")),
        }
        let lines = std::mem::take(&mut *report.lines());
        self.conclude(plan, lines, not_begun, writes.is_some_and(WriteArgs::verifies), began.elapsed())
    }

    fn conclude(&self, plan: &Plan, mut lines: Vec<Line>, not_begun: usize, verifies: bool, took: Duration) -> Result<ExitCode, Failure> {
        lines.sort_by(|one, other| one.source.cmp(&other.source));
        let failed = lines.iter().filter(|line| line.error.is_some()).count();
        let passed_over = plan.still_passed_over();
        if self.verbose {
            passed_over.iter().for_each(|(path, why)| say!("{}: passed over: {why}", path.shown()));
        }
        if self.json {
            let files: Vec<_> = lines.iter().map(Line::to_json).collect();
            let whole = json!({
                "files": files,
                "links": plan.links_made(),
                "passed_over": passed_over.len(),
                "passed_over_files": passed_over.iter().map(|(path, why)| json!({ "path": path.to_string_lossy(), "why": why })).collect::<Vec<_>>(),
                "failed": failed,
                "not_begun": not_begun,
                "seconds": took.as_secs_f64(),
            });
            print(format!("{whole:#}\n").as_bytes())?;
        } else if let [Line { status: "done before", source, target: Some(target), .. }] = &lines[..]
            && source != target
        {
            let verified = if verifies { ", is verified" } else { "" };
            let kept =
                format!("{} was there already{verified} and is kept (--force does it anew, with the keys given now)", target.shown());
            say!("{kept}");
        } else if lines.len() > 1 || not_begun > 0 || !passed_over.is_empty() || plan.links_made() > 0 {
            let done: u64 = lines.iter().map(|line| line.bytes).sum();
            let before = lines.iter().filter(|line| line.status == "done before").count();
            let mut parts = vec![format!("{}, {}", counted((lines.len() - failed) as u64, "file"), bytes(done))];
            let verified = if verifies { ", and verified" } else { "" };
            let counts = |number: usize, what: &str| (number > 0).then(|| format!("{} {what}", thousands(number as u64)));
            parts.extend(counts(before, &format!("of them done before{verified}")));
            let links = plan.links_made();
            parts.extend((links > 0).then(|| format!("{} kept as such", counted(links as u64, "link"))));
            let names = if self.verbose { "" } else { "; -v names them" };
            parts.extend(counts(passed_over.len(), &format!("passed over (links, devices, other names{names})")));
            parts.extend(counts(failed, "failed"));
            parts.extend(counts(not_begun, "not begun"));
            say!("{}", parts.join("; "));
        }
        let worst = lines.iter().filter_map(|line| line.error.as_ref()).map(|failure| failure.exit).max_by_key(|exit| *exit as u8);
        Ok(worst.or((not_begun > 0).then_some(Exit::Failed)).map_or(ExitCode::SUCCESS, |exit| ExitCode::from(exit as u8)))
    }
}

impl Line {
    fn good(item: &Item, writes: bool, status: &'static str, bytes: u64) -> Self {
        Self { source: item.source.clone(), target: writes.then(|| item.target.clone()), status, bytes, places: Vec::new(), error: None }
    }

    fn bad(item: &Item, writes: bool, failure: Failure) -> Self {
        Self { error: Some(failure), ..Self::good(item, writes, "failed", 0) }
    }

    /// What is none of the files.
    fn of_place(source: PathBuf, failure: Failure) -> Self {
        Self { source, target: None, status: "failed", bytes: 0, places: Vec::new(), error: Some(failure) }
    }

    fn to_json(&self) -> serde_json::Value {
        let Self { source, target, status, bytes, places, error } = self;
        let place = |run: &DamagedRun| {
            json!({
                "chunk": run.first.chunk,
                "chunks": run.chunks,
                "offset": run.first.offset,
                "text_offset": run.first.text_offset,
                "what": run.first.kind.name(),
            })
        };
        json!({
            "source": source.to_string_lossy(),
            "target": target.as_ref().map(|target| target.to_string_lossy()),
            "status": status,
            "bytes": bytes,
            "damaged": places.iter().map(place).collect::<Vec<_>>(),
            "error": error.as_ref().map(ToString::to_string),
            "exit": error.as_ref().map(|failure| failure.exit as u8),
        })
    }
}

/// Says what was removed of what runs that were killed have left; what could not be.
pub(super) fn told(leftovers: Vec<Leftover>) -> Vec<(PathBuf, Failure)> {
    let mut stay = Vec::new();
    for Leftover { path, removed } in leftovers {
        let at = path.shown();
        match removed {
            Ok(()) => say!("{at}: left by a run that was killed; removed"),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let way_out = "if that was killed, remove it: it may hold text in the clear, or what other keys open";
                say!("{at}: another run's, and it may be at work elsewhere; {way_out}");
            }
            Err(error) => {
                let why = "another run has left it, and it cannot be removed";
                let way_out = "see to it: it may hold text in the clear, or what other keys open";
                let failure = Failure::failed(format!("{at}: {why} ({error}); {way_out}"));
                stay.push((path, failure));
            }
        }
    }
    stay
}

/// Files whose names are given together: each is up to five descriptors until then, and processes may not have many.
fn batch_files(threads: usize) -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.map_or(usize::MAX, |most| most as usize);
    (descriptors / 8 / threads).clamp(1, BATCH_FILES)
}

/// Syncs what is finished, gives it its names, syncs the folders, and only then removes sources.
fn finish(batch: &mut Vec<Finished<'_>>, writes: Option<WriteArgs>, report: &Report) {
    let (Some(writes), Some(first)) = (writes, batch.first()) else { return };
    // One call for all; a batch may lie on several file systems, and then each file has its own.
    let is_synced = batch.len() > 1 && is_one_file_system(batch) && rustix::fs::syncfs(first.result.file()).is_ok();
    // Of each folder one of the files that got their names in it.
    let (mut folders, mut named) = (BTreeMap::new(), Vec::new());
    for Finished { item, result, bytes, source, journal } in batch.drain(..) {
        let synced = if is_synced { Ok(()) } else { result.file().sync_all() };
        report.is_naming.store(true, Relaxed);
        let status = result.status();
        match synced.and_then(|()| result.publish(&item.target, writes)) {
            Ok(placed) => {
                folders.insert(folder_of(&item.target), item.target_spot());
                named.push((item, bytes, source, placed, journal, status));
            }
            Err(error) => report.add(Line::bad(item, true, io_failure(&item.target, &error))),
        }
    }
    let unsynced: BTreeMap<_, _> = folders.into_iter().filter_map(|(folder, one)| Some((folder, sync_folder_of(one).err()?))).collect();
    for (item, bytes, source, placed, journal, status) in named {
        let folder = folder_of(&item.target);
        let removed = match (unsynced.get(folder), placed) {
            (Some(error), _) => Err(io_failure(folder, error)),
            (None, Some(placed)) => {
                let removed = source.remove(item.source_spot(), &placed, item.target_spot());
                removed.and_then(|()| remove_journal(item, journal.as_ref()))
            }
            (None, None) => Ok(()),
        };
        match removed {
            Ok(()) => report.add(Line::good(item, true, status, bytes)),
            Err(failure) => report.add(Line::bad(item, true, failure)),
        }
    }
}

impl Ready {
    fn file(&self) -> &File {
        match self {
            Self::New(draft) | Self::Instead { draft, .. } => &draft.file,
            Self::Kept(file, _) => file,
        }
    }

    fn status(&self) -> &'static str {
        match self {
            Self::New(_) | Self::Instead { .. } => "done",
            Self::Kept(..) => "done before",
        }
    }

    /// Gives it its name; what it is by then, if a source is to go for it.
    fn publish(self, target: &Path, writes: WriteArgs) -> io::Result<Option<Placed>> {
        // Open until then, and so locked.
        let held = writes.removes().then(|| self.file().try_clone()).transpose()?;
        match self {
            Self::New(draft) => draft.publish(target, writes.replaces())?,
            Self::Kept(_, read) => return Ok(held.map(|file| Placed::before(file, &read))),
            Self::Instead { draft, replaced, read } => draft.replace(target, &replaced, &read)?,
        }
        held.map(Placed::now).transpose()
    }
}

/// Removes the journal of a file that is gone.
fn remove_journal(item: &Item, journal: Option<&Journal>) -> Result<(), Failure> {
    let removed = journal.map_or(Ok(()), |Journal { journals, salt }| journals.remove(salt));
    removed.map_err(|error| Failure::failed(format!("{}: its journal cannot be removed ({error}); remove it", item.source.shown())))
}

fn is_one_file_system(batch: &[Finished<'_>]) -> bool {
    let mut devices = batch.iter().map(|finished| finished.result.file().metadata().map(|metadata| metadata.dev()).ok());
    let first = devices.next().flatten();
    first.is_some() && devices.all(|device| device == first)
}

/// A bar with the rate and the time left, until it is over.
fn show(progress: &AtomicU64, total: u64, is_over: &AtomicBool) {
    let template = "{msg}{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left";
    // The template is a constant that indicatif accepts; a plain bar would do as well.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style);
    while !is_over.load(Relaxed) {
        let done = progress.load(Relaxed);
        bar.set_position(done);
        if total > 0 && done >= total {
            bar.set_message("waiting for the disk ");
        }
        std::thread::sleep(SHOWN_EVERY);
    }
    bar.finish_and_clear();
}
