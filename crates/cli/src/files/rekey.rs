//! `bywash rekey`: other ways to open files and volumes that are there.

use super::keys::{KeyArgs, NewKeyArgs};
use super::removal::Source;
use super::tree::{Item, Plan, Way, check_paths, led_to};
use super::work::{Job, Outcome, Ready, WorkArgs, WriteArgs};
use super::{client, failure, io_failure, volume};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::shown::Shown;
use crate::terminal::{say, thousands};
use bywash_client::Client;
use bywash_files::disk::FolderJournals;
use bywash_files::place::{Draft, complete, open_locked, open_regular};
use bywash_files::rekey::{exchange_header, is_exchanged};
use bywash_files::slot::SlotKind;
use bywash_files::{Container, Error, FileKeys, Header, Keyring, Lock};
use bywash_mount::VOLUME_FILE;
use bywash_mount::volume::is_volume;
use serde_json::json;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Files of which one must open before a new passphrase is asked for.
const TRIED_FILES: usize = 8;

/// `bywash rekey`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash rekey ~/vault                       another passphrase: asks for the old, then the new
  bywash rekey -R -k old.key --new-key-file new.key /mnt/backup
  bywash rekey -p --add --new-recipient bywash-x25519-... thesis.pdf.bywash
  bywash info thesis.pdf.bywash              lists its slots: the ways to open it
  bywash rekey -p --remove 2 thesis.pdf.bywash

The slots that the keys given open are exchanged for the new ones, and the others stay. To shut
somebody out of many files, name all who stay: --only and --new-... for each. Volumes of
`bywash mount` and files have as many slots as are asked for; volumes of gocryptfs have one
passphrase. Volumes of `bywash mount` in folders (-R) are rekeyed with the files.

What the texts are sealed with stays: who has an older copy of the file, or of a volume's
bywash.volume, and a key for that, goes on reading what is in it, and of a volume also what is
written from now on. Against such a reader, encrypt anew. Each file is written anew beside itself
and compared before it takes the name; its times stay, so programs that go by times and lengths
(rsync) have to be told to look inside (rsync -c). A file of which the end is missing is refused.
A run that was interrupted is run again: with a new passphrase or key file it finds what it did. Not
so with --remove: once a slot is gone its number is another's, so look at `bywash info` first.")]
pub(crate) struct Args {
    /// Files, folders, and volumes of `bywash mount` or of gocryptfs
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Go through folders; files that do not end in .bywash are passed over
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    new: NewKeyArgs,
    /// Keep the slots that the keys given open as well
    #[arg(long, conflicts_with_all = ["remove", "only"])]
    add: bool,
    /// Of one file, remove the slot of this number, as `bywash info` gives them, instead of what the
    /// keys given open; again for more
    #[arg(long, value_name = "SLOT", value_parser = clap::value_parser!(u8).range(1..), conflicts_with = "only")]
    remove: Vec<u8>,
    /// Remove all other slots: the new ones are left, or if none are given those that were opened
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    work: WorkArgs,
}

struct Run<'a> {
    args: &'a Args,
    client: Client,
    keyring: Keyring,
    /// Each with what opens it, if that is here.
    new: Vec<(Lock, Option<Keyring>)>,
    /// Files that the keys given do not open, and the new ones do.
    taken_for_done: AtomicU64,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    check_paths(&args.paths)?;
    let client = client()?;
    if let [path] = args.paths.as_slice()
        && volume::is_gocryptfs(path)
        && volume::is_meant(path, args.recursive)
    {
        return gocryptfs(path, &client, args);
    }
    let is_own_volume = |path: &Path| is_volume(path) && volume::is_meant(path, args.recursive);
    let file = |path: &PathBuf| led_to(&if is_own_volume(path) { path.join(VOLUME_FILE) } else { path.clone() });
    let paths: Vec<_> = args.paths.iter().map(file).collect();
    let mut plan = Plan::new(&paths, Way::Check, args.recursive, None)?;
    plan.take_volume_files();
    if !args.remove.is_empty() && plan.items.len() > 1 {
        let way_out =
            "--remove goes by the numbers of one file's slots; name one file, or with --only and --new-... all who are to open them";
        return Err(Failure::new(Exit::Usage, way_out));
    }
    let keyring = args.keys.keyring(&client)?;
    if args.new.is_typed() {
        // Who has typed a wrong passphrase is told so before a new one is asked for.
        opens_one(&plan, &keyring)?;
    }
    let needs_none = args.new.is_empty() && (args.only || !args.remove.is_empty());
    let new = if needs_none { Vec::new() } else { args.new.locks(&client)? };
    let run = Run { args, client, keyring, new, taken_for_done: AtomicU64::new(0) };
    let exit = args.work.run(&plan, Some(WriteArgs::default()), |job| run.file(job))?;
    if let done @ 1.. = run.taken_for_done.into_inner() {
        let what = "opened by what is new already, and not by the keys given: taken for done before; what else opens them stays";
        say!("{} of the files: {what}", thousands(done));
    }
    if let [item] = plan.items.as_slice()
        && exit == ExitCode::SUCCESS
        && !args.work.json()
    {
        tell(&item.source)?;
    }
    Ok(exit)
}

/// Whether a key that was given opens one of the first files. If there are more it is only said: an earlier run may have done the first.
fn opens_one(plan: &Plan, keyring: &Keyring) -> Result<(), Failure> {
    let open = |item: &Item| {
        let opened = open_regular(item.source_spot(), item.is_named()).map_err(Error::from).and_then(|(file, _)| Header::read(&file));
        opened.and_then(|header| keyring.open(&header)).map(drop).map_err(|error| failure(&item.source, &error))
    };
    let mut outcomes = plan.items.iter().take(TRIED_FILES).map(open);
    match outcomes.next() {
        Some(Err(first)) if outcomes.all(|outcome| outcome.is_err()) => match plan.items.len() {
            0..=TRIED_FILES => Err(first),
            _ => {
                say!("{first}; nor do they open the next {} files; going on", TRIED_FILES - 1);
                Ok(())
            }
        },
        _ => Ok(()),
    }
}

/// Says how a file is opened from now on.
fn tell(path: &Path) -> Result<(), Failure> {
    let header = File::open(path).map_err(Error::from).and_then(Header::read).map_err(|error| failure(path, &error))?;
    let slots: Vec<_> = header.slots().iter().map(|slot| slot.kind().map_or("something of a later version", SlotKind::describe)).collect();
    say!("{}: it can be opened with {}", path.shown(), slots.join(" or "));
    Ok(())
}

impl Run<'_> {
    fn file(&self, job: &Job<'_>) -> Result<Outcome, Failure> {
        let path = &job.item.source;
        let failed = |error: Error| failure(path, &error);
        // Nobody else writes to it until it is replaced.
        let open = |writes| open_locked(job.item.source_spot(), job.item.is_named(), writes);
        // It is written to only if a crash left a journal.
        let opened = open(true).or_else(|error| if error.kind() == ErrorKind::PermissionDenied { open(false) } else { Err(error) });
        let (source, metadata) = opened.map_err(|error| io_failure(path, &error))?;
        let header = Header::read(&source).map_err(failed)?;
        let (keys, opened) = match self.keyring.open_all(&header) {
            Err(Error::WrongPassphrase | Error::NoKeyFits { .. }) if self.is_done(&header) => {
                self.taken_for_done.fetch_add(1, Relaxed);
                return Ok(Outcome::WasDone { bytes: metadata.len() });
            }
            outcome => outcome.map_err(failed)?,
        };
        let new = self.header(path, &header, &keys, &opened)?;
        let source = Arc::new(source);
        // Brings into it what a crash left beside it, and looks whether it ends where it should: one that somebody made long would take as much room, and what is cut off is not made to look
        // as if it were looked after.
        let journals = Arc::new(FolderJournals::beside(job.item.source_spot()).map_err(|error| io_failure(path, &error))?);
        Container::open_rw(&self.client, &header, keys, source.clone(), journals).map(drop).map_err(failed)?;
        if new == header {
            return Ok(Outcome::WasDone { bytes: metadata.len() });
        }
        // What is done to it from here on is seen when its name is given away.
        let metadata = source.metadata().map_err(|error| io_failure(path, &error))?;
        if metadata.nlink() > 1 {
            return Err(volume::several_names(path));
        }
        let draft = Draft::new(job.item.target_spot()).map_err(|error| io_failure(path, &error))?;
        exchange_header(&source, &header, &new, &draft.file, job.progress)
            .and_then(|()| {
                let is_same = || is_exchanged(&source, &header, &new, &draft.file, job.progress);
                complete(&source, &metadata, &draft.file, true, is_same)
            })
            .map_err(failed)?;
        let bytes = metadata.len();
        let result = Ready::Instead { draft, replaced: source, read: Box::new(metadata.clone()) };
        Ok(Outcome::Ready { result, bytes, source: Source::stays(metadata), journal: None })
    }

    /// Whether an earlier run did it, as far as that can be told: what is new opens a slot each, and nothing is left that was to go. Recipients cannot be told from each other.
    fn is_done(&self, header: &Header) -> bool {
        if !self.args.remove.is_empty() {
            return false;
        }
        let opened: Option<Vec<_>> = self.new.iter().map(|(_, keyring)| Some(keyring.as_ref()?.open_all(header).ok()?.1)).collect();
        opened.is_some_and(|opened| {
            !opened.is_empty() && (!self.args.only || opened.iter().map(Vec::len).sum::<usize>() >= header.slots().len())
        })
    }

    /// The header with the slots that are asked for; one of them is opened by what was given now.
    fn header(&self, path: &Path, header: &Header, keys: &FileKeys, opened: &[usize]) -> Result<Header, Failure> {
        let args = self.args;
        let all = 0..header.slots().len();
        let mut removed: Vec<usize> = match args.remove.as_slice() {
            [] if args.only && self.new.is_empty() => all.filter(|at| !opened.contains(at)).collect(),
            [] if args.only => all.collect(),
            [] if args.add => Vec::new(),
            [] => opened.to_vec(),
            numbers => numbers.iter().map(|number| usize::from(*number) - 1).collect(),
        };
        if self.new.is_empty() && opened.iter().all(|at| removed.contains(at)) {
            let why = "is the one that the key given opens, and nobody has shown a key for another; give one, or a new one";
            return Err(Failure::new(Exit::Usage, format!("{}: slot {} {why}", path.shown(), opened[0] + 1)));
        }
        // What opens a slot already stays there, and has no second one.
        let mut locks = Vec::new();
        for (lock, keyring) in &self.new {
            match keyring.as_ref().and_then(|keyring| keyring.open_all(header).ok()) {
                Some((_, there)) if args.remove.iter().any(|number| usize::from(*number) - 1 == there[0]) => {
                    let why = format!("slot {} is to be removed, and is what the new key opens", there[0] + 1);
                    return Err(Failure::new(Exit::Usage, format!("{}: {why}; leave one of them away", path.shown())));
                }
                Some((_, there)) => removed.retain(|at| *at != there[0]),
                None => locks.push(lock),
            }
        }
        header.with_slots(keys, &removed, &locks).map_err(|error| match error {
            Error::BadKey { .. } => Failure::new(Exit::Usage, format!("{}: {error}", path.shown())),
            error => failure(path, &error),
        })
    }
}

/// Another passphrase for a volume of gocryptfs.
fn gocryptfs(folder: &Path, client: &Client, args: &Args) -> Result<ExitCode, Failure> {
    if !args.new.is_passphrase_alone() || args.add || args.only || !args.remove.is_empty() {
        let why =
            "a volume of gocryptfs has one passphrase and nothing else; give --new-passphrase, or make a volume with `bywash mount --init`";
        return Err(Failure::new(Exit::Usage, format!("{}: {why}", folder.shown())));
    }
    let old = args.keys.passphrase()?;
    if args.new.is_typed() {
        volume::unlock(folder, &old, client)?;
    }
    let new = args.new.passphrase()?;
    let path = volume::exchange_passphrase(folder, &old, &new, client)?;
    if args.work.json() {
        let whole = json!({ "files": [{ "source": path.to_string_lossy(), "status": "done" }], "failed": 0 });
        print(format!("{whole:#}\n").as_bytes())?;
    } else {
        say!("{}: it is opened by the new passphrase", path.shown());
    }
    volume::remove_leftovers(&path)?;
    Ok(ExitCode::SUCCESS)
}
