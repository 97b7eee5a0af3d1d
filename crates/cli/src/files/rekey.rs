//! `bywash rekey`: other ways to open files and volumes that are there.

use super::keys::{KeyArgs, NewKeyArgs};
use super::tree::{Plan, Way, check_paths, led_to};
use super::work::{Job, Outcome, Ready, WorkArgs, WriteArgs};
use super::{client, failure, io_failure, volume};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::terminal::say;
use bywash_client::Client;
use bywash_files::container::recover;
use bywash_files::disk::FolderJournals;
use bywash_files::place::{Draft, complete, open_regular_rw};
use bywash_files::rekey::{exchange_header, is_exchanged};
use bywash_files::{Error, FileKeys, Header, Keyring, Lock};
use bywash_mount::VOLUME_FILE;
use bywash_mount::volume::is_volume;
use serde_json::json;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `bywash rekey`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash rekey ~/vault                       another passphrase: asks for the old, then the new
  bywash rekey -R -k old.key --new-key-file new.key /mnt/backup
  bywash rekey -p --add --new-recipient bywash-x25519-... thesis.pdf.bywash
  bywash info thesis.pdf.bywash              lists its slots: the ways to open it
  bywash rekey -p --remove 2 thesis.pdf.bywash

The slot that the key given opens is exchanged for the new ones, and the others stay. Volumes of
`bywash mount` and files have as many slots as are asked for; volumes of gocryptfs have one
passphrase.

What the texts are sealed with stays: who has an older copy of the file, or of a volume's
bywash.volume, and a key for that, goes on reading what is in it, and of a volume also what is
written from now on. Against such a reader, encrypt anew. Each file is written anew beside itself
and compared before it takes the name; its times stay, so programs that go by times and lengths
(rsync) have to be told to look inside (rsync -c).")]
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
    /// Keep the slot that the key given opens as well
    #[arg(long, conflicts_with_all = ["remove", "only"])]
    add: bool,
    /// Remove the slot of this number, as `bywash info` gives them, instead of the one that the key
    /// given opens; again for more
    #[arg(long, value_name = "SLOT", value_parser = clap::value_parser!(u8).range(1..), conflicts_with = "only")]
    remove: Vec<u8>,
    /// Remove all other slots: the new ones are left, or if none are given the one that was opened
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    work: WorkArgs,
}

struct Run<'a> {
    args: &'a Args,
    keyring: Keyring,
    locks: Vec<Lock>,
    /// Opens what has the new locks already, from an earlier run.
    new_keyring: Keyring,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    check_paths(&args.paths)?;
    let client = client()?;
    if let [path] = args.paths.as_slice()
        && volume::is_gocryptfs(path)
    {
        return gocryptfs(path, &client, args);
    }
    let paths: Vec<_> = args.paths.iter().map(|path| meant(path)).collect();
    let keyring = args.keys.keyring(&client)?;
    if let [path] = paths.as_slice()
        && args.new.is_typed()
        && path.is_file()
    {
        // Who has typed a wrong passphrase is told so before a new one is asked for.
        let opened = File::open(path).map_err(Error::from).and_then(|file| keyring.open(&Header::read(file)?));
        opened.map_err(|error| failure(path, &error))?;
    }
    let needs_none = args.new.is_empty() && (args.only || !args.remove.is_empty());
    let (locks, new_keyring) = if needs_none { (Vec::new(), Keyring::new()) } else { args.new.locks(&client)? };
    let run = Run { args, keyring, locks, new_keyring };
    let plan = Plan::new(&paths, Way::Check, args.recursive, None)?;
    let exit = args.work.run(&plan, Some(WriteArgs::default()), |job| run.file(job))?;
    if let [item] = plan.items.as_slice()
        && exit == ExitCode::SUCCESS
        && !args.work.json()
    {
        tell(&item.source)?;
    }
    Ok(exit)
}

/// The file that a path means: a volume's is in it.
fn meant(path: &Path) -> PathBuf {
    if is_volume(path) { path.join(VOLUME_FILE) } else { led_to(path) }
}

/// Says how a file is opened from now on.
fn tell(path: &Path) -> Result<(), Failure> {
    let header = File::open(path).map_err(Error::from).and_then(Header::read).map_err(|error| failure(path, &error))?;
    say!("{}: it can be opened with {}", path.display(), header.describe_slots());
    Ok(())
}

impl Run<'_> {
    fn file(&self, job: &Job<'_>) -> Result<Outcome, Failure> {
        let path = &job.item.source;
        let (source, metadata) = open_regular_rw(job.item.source_spot(), job.item.is_named()).map_err(|error| io_failure(path, &error))?;
        let failed = |error: Error| failure(path, &error);
        let header = Header::read(&source).map_err(failed)?;
        let (keys, opened) = match self.keyring.open_by(&header) {
            Err(Error::WrongPassphrase | Error::NoKeyFits { .. }) if self.new_keyring.open(&header).is_ok() => {
                return Ok(Outcome::WasDone { bytes: metadata.len() });
            }
            outcome => outcome.map_err(failed)?,
        };
        if metadata.nlink() > 1 {
            let why = "it has several names, and the file under the others would open as before; leave one of them";
            return Err(Failure::failed(format!("{}: {why}", path.display())));
        }
        let new = self.header(&header, &keys, opened).map_err(|why| why.naming(path))?;
        if new == header {
            return Ok(Outcome::WasDone { bytes: metadata.len() });
        }
        // Nobody else writes to it until it is replaced, and what a crash left is in it.
        recover(&header, &keys, &source, &FolderJournals::beside(path)).map_err(failed)?;
        let metadata = source.metadata().map_err(|error| io_failure(path, &error))?;
        let draft = Draft::new(job.item.target_spot()).map_err(|error| io_failure(path, &error))?;
        self.write(job, &source, &metadata, (&header, &new), &draft).map_err(failed)?;
        let bytes = metadata.len();
        Ok(Outcome::Ready { result: Ready::Instead { draft, source }, bytes, read: Box::new(metadata), journal: None })
    }

    fn write(&self, job: &Job<'_>, source: &File, metadata: &Metadata, (old, new): (&Header, &Header), draft: &Draft) -> Result<(), Error> {
        exchange_header(source, old, new, &draft.file, job.progress)?;
        complete(source, metadata, &draft.file, true, || is_exchanged(source, old, new, &draft.file))
    }

    /// The header with the slots that are asked for; one of them is opened by what was given now.
    fn header(&self, header: &Header, keys: &FileKeys, opened: usize) -> Result<Header, Refused> {
        let args = self.args;
        let others = || (0..header.slots().len()).filter(|at| *at != opened);
        let removed: Vec<usize> = match args.remove.as_slice() {
            [] if args.only && self.locks.is_empty() => others().collect(),
            [] if args.only => (0..header.slots().len()).collect(),
            [] if args.add => Vec::new(),
            [] => vec![opened],
            numbers => numbers.iter().map(|number| usize::from(*number) - 1).collect(),
        };
        if self.locks.is_empty() && removed.contains(&opened) {
            return Err(Refused::Last(opened));
        }
        header.with_slots(keys, &removed, &self.locks).map_err(Refused::Error)
    }
}

enum Refused {
    Last(usize),
    Error(Error),
}

impl Refused {
    fn naming(self, path: &Path) -> Failure {
        match self {
            Self::Last(at) => {
                let why = "is the one that the key given opens, and nobody has shown a key for another; give one, or a new one";
                Failure::new(Exit::Usage, format!("{}: slot {} {why}", path.display(), at + 1))
            }
            Self::Error(error) => failure(path, &error),
        }
    }
}

/// Another passphrase for a volume of gocryptfs.
fn gocryptfs(folder: &Path, client: &Client, args: &Args) -> Result<ExitCode, Failure> {
    if !args.new.is_passphrase_alone() || args.add || args.only || !args.remove.is_empty() {
        let why =
            "a volume of gocryptfs has one passphrase and nothing else; give --new-passphrase, or make a volume with `bywash mount --init`";
        return Err(Failure::new(Exit::Usage, format!("{}: {why}", folder.display())));
    }
    let old = args.keys.passphrase()?;
    volume::unlock(folder, &old, client)?;
    let new = args.new.passphrase()?;
    let path = volume::exchange_passphrase(folder, &old, &new, client)?;
    if args.work.json() {
        let whole = json!({ "files": [{ "source": path.to_string_lossy(), "status": "done" }], "failed": 0 });
        print(format!("{whole:#}\n").as_bytes())?;
    } else {
        say!("{}: it is opened by the new passphrase", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
