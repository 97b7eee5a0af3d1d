//! `bywash fsck`

use super::keys::KeyArgs;
use super::tree::{Plan, Way, check_paths};
use super::work::{Job, Outcome, WorkArgs};
use super::{client, failure, io_failure, lock_and_look, volume};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::shown::Shown;
use crate::terminal::{bytes, counted, say, thousands};
use bywash_client::Client;
use bywash_files::container::recover;
use bywash_files::disk::{Access, Disk};
use bywash_files::place::{open_locked, open_regular};
use bywash_files::{Error, Header, Keyring, fsck};
use bywash_mount::Native;
use bywash_mount::format::{Format, Interrupted};
use bywash_mount::fsck::Finding;
use indicatif::ProgressBar;
use serde_json::json;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `bywash fsck`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash fsck -k backup.key thesis.pdf.bywash
  bywash fsck -R -i me.identity /mnt/backup
  bywash fsck -p ~/vault                     a volume of `bywash mount`, or of gocryptfs

Every damaged chunk is named with its file, the offset in it, and the offset in the text. The exit
code is 0 if all is well, 8 if something is damaged, 7 if a file cannot be opened with the keys
given. A file whose writer was interrupted has a journal beside it: --recover finishes what was
begun, or undoes it. Whether a whole file is an older copy of itself cannot be seen.")]
pub(crate) struct Args {
    /// Files and folders
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Go through folders; files that do not end in .bywash are passed over
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    keys: KeyArgs,
    /// Recover files whose writer was interrupted
    #[arg(long)]
    recover: bool,
    #[command(flatten)]
    work: WorkArgs,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    check_paths(&args.paths)?;
    let client = client()?;
    if let [path] = args.paths.as_slice()
        && volume::is_meant(path, args.recursive)
    {
        return check_volume(path, &client, args);
    }
    let keyring = args.keys.keyring(&client)?;
    let plan = Plan::new(&args.paths, Way::Check, args.recursive, None)?;
    args.work.run(&plan, None, |job| check(args, &client, &keyring, job))
}

/// What a volume's files are sealed with, and its folder.
fn open_volume(path: &Path, client: &Client, keys: &KeyArgs, recovers: bool) -> Result<(Box<dyn Format>, OwnedFd), Failure> {
    if volume::is_gocryptfs(path) {
        let root = volume::root(path)?;
        // It says when the volume is mounted by us; gocryptfs itself keeps nobody away.
        Disk::lock(&File::from(root.try_clone().map_err(|error| io_failure(path, &error))?), Access::Read)
            .map_err(|error| io_failure(path, &error))?;
        return Ok((Box::new(volume::unlock(path, &keys.passphrase()?, client)?), root));
    }
    let opened = volume::open(path, &keys.keyring(client)?)?;
    let root = volume::root(path)?;
    let native = Native::new(client, &opened, root.as_fd(), !recovers).map_err(|error| volume::damaged_or_refused(path, &error))?;
    if recovers {
        native.recover(root.as_fd()).map_err(|error| volume::damaged_or_refused(path, &error))?;
        if let Some(why) = native.why_unrecovered() {
            say!("{}: not all can be recovered: {why}", path.shown());
        }
    }
    Ok((Box::new(native), root))
}

/// What is said of a place in a volume: a word for programs, and what people read.
fn describe(finding: &Finding<'_>, recovers: bool) -> (&'static str, PathBuf, String) {
    let newborn = "it was new and never synced when the machine or the mount went down, and";
    match finding {
        Finding::Damaged(at, what) => ("damaged", at.into(), what.clone()),
        Finding::Unsettled(at, _) if recovers => {
            ("interrupted", at.into(), "its writer was interrupted, and it cannot be recovered now".into())
        }
        Finding::Unsettled(at, Interrupted::Change) => {
            ("interrupted", at.into(), "its writer was interrupted; give --recover, or mount the volume".into())
        }
        Finding::Unsettled(at, Interrupted::Birth) => {
            ("interrupted", at.into(), format!("{newborn} is not whole; --recover, or a mount, makes it empty"))
        }
        Finding::Unsettled(at, Interrupted::Name) => {
            ("interrupted", at.into(), format!("{newborn} a name is not whole; --recover, or a mount, gives another"))
        }
        Finding::Foreign(at) => ("foreign", at.into(), "nothing of this volume's; it is not shown, and left alone".into()),
    }
}

fn check_volume(path: &Path, client: &Client, args: &Args) -> Result<ExitCode, Failure> {
    let (format, root) = open_volume(path, client, &args.keys, args.recover)?;
    let mut findings = Vec::new();
    // Hidden where there is no terminal.
    let bar = ProgressBar::new_spinner();
    let mut report = |finding: Finding<'_>| {
        let (status, at, what) = describe(&finding, args.recover);
        bar.suspend(|| say!("{}: {what}", at.shown()));
        if args.work.json() {
            findings.push(json!({ "path": at.to_string_lossy(), "status": status, "what": what }));
        }
    };
    let mut progress = |looked: &bywash_mount::fsck::Checked| {
        bar.set_message(format!("{}, {}", counted(looked.files, "file"), bytes(looked.bytes)));
        bar.tick();
    };
    let found = bywash_mount::fsck::check(&*format, root, &mut report, &mut progress);
    bar.finish_and_clear();
    let found = found.map_err(|error| volume::damaged_or_refused(path, &error))?;
    if args.work.json() {
        let whole = json!({
            "volume": path.to_string_lossy(),
            "files": found.files,
            "folders": found.folders,
            "bytes": found.bytes,
            "damaged": found.damaged,
            "interrupted": found.unsettled,
            "foreign": found.foreign,
            "findings": findings,
        });
        print(format!("{whole:#}\n").as_bytes())?;
    } else {
        let (files, folders) = (counted(found.files, "file"), counted(found.folders, "folder"));
        say!("{files} and {folders} looked at, {} of text", bytes(found.bytes));
    }
    let why = match (found.damaged, found.unsettled) {
        (0, 0) => return Ok(ExitCode::SUCCESS),
        (0, interrupted) if args.recover => format!("{interrupted} interrupted, which cannot be recovered now; nothing else is wrong"),
        (0, interrupted) => format!("{interrupted} interrupted, nothing else is wrong; give --recover, or mount the volume"),
        (damaged, interrupted) => {
            format!("{} damaged, {} interrupted; restore what is damaged from a copy", counted(damaged, "place"), thousands(interrupted))
        }
    };
    Err(Failure::new(Exit::Damaged, format!("{}: {why}", path.shown())))
}

fn check(args: &Args, client: &Client, keyring: &Keyring, job: &Job<'_>) -> Result<Outcome, Failure> {
    let (path, is_named) = (&job.item.source, job.item.is_named());
    let failed = |error: Error| failure(path, &error);
    let opened = |file: File| {
        let header = Header::read(&file)?;
        let keys = keyring.open(&header)?;
        Ok((file, header, keys))
    };
    let open = || open_regular(job.item.source_spot(), is_named).map_err(Error::from).and_then(|(file, _)| opened(file));
    let (mut file, mut header, mut keys) = open().map_err(failed)?;
    if let Some(journals) = lock_and_look(&file, Access::Read, job.item.source_spot(), &header).map_err(failed)? {
        if !args.recover {
            let why = "its writer was interrupted and left a journal; give --recover, or open it for writing";
            return Err(Failure::new(Exit::Damaged, format!("{}: {why}", path.shown())));
        }
        drop(file);
        let locked = open_locked(job.item.source_spot(), is_named, true).map_err(|error| io_failure(path, &error))?;
        // What was opened before may have been replaced since.
        let (locked, of_locked, its_keys) = opened(locked.0).map_err(failed)?;
        recover(&of_locked, &its_keys, &locked, &journals).map_err(failed)?;
        drop(locked);
        (file, header, keys) = open().map_err(failed)?;
    }
    let (checked, places) = fsck::damaged_runs(client, &header, keys, &file, u64::MAX, job.progress).map_err(failed)?;
    places.iter().for_each(|place| say!("{}: {place}", path.shown()));
    if checked.damaged == 0 {
        return Ok(Outcome::Checked { bytes: checked.good_bytes });
    }
    let way_out = "restore the file from a copy, or save what is good with `bywash decrypt --salvage`";
    let why = format!("{}: {}; {way_out}", path.shown(), how_much(&checked, &places));
    Ok(Outcome::Damaged { failure: Failure::new(Exit::Damaged, why), bytes: checked.good_bytes, places, saved: None })
}

/// How much of a file is damaged, as far as that is known.
pub(super) fn how_much(checked: &fsck::Checked, places: &[fsck::DamagedRun]) -> String {
    let (damaged, chunks) = (thousands(checked.damaged), thousands(checked.chunks));
    match places.iter().any(|place| place.first.kind.is_of_end()) {
        true => format!("{damaged} of the {chunks} chunks that are there damaged, and where the text ended is not known"),
        false => format!("{damaged} of {chunks} chunks damaged"),
    }
}
