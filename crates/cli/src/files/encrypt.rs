//! `bywash encrypt`

use super::engines::EngineArgs;
use super::keys::{LockArgs, Locks};
use super::removal::Source;
use super::stream::Origin;
use super::tree::{Plan, Way, check_paths, refuse_to_replace};
use super::work::{Job, Outcome, Ready, WorkArgs, WriteArgs};
use super::{client, failure, failure_between, io_failure, is_no_file, is_other, left_a_journal, lock_and_look, stream};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_client::Client;
use bywash_files::armor::Armor;
use bywash_files::disk::Access;
use bywash_files::place::{Draft, Replaces, complete, open_regular};
use bywash_files::slot::{Slot, SlotKind};
use bywash_files::{Aead, Error, FileKeys, Header, NonceSource, Sealer, Whole, geometry, new_file};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fs::{File, Metadata};
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// `bywash encrypt`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash encrypt -p thesis.pdf                      thesis.pdf.bywash; the passphrase is asked for
  bywash encrypt -r bywash-x25519-... -o out.bywash report.ods
  bywash encrypt -R -k backup.key -o /mnt/backup ~/photos
  bywash encrypt -R --update -k backup.key -o /mnt/backup ~/photos   what is new or changed
  bywash encrypt -R -p --remove-source ~/taxes      each file is replaced by a verified result
  tar c src | bywash encrypt -r team.recipients > src.tar.bywash
  bywash encrypt -a -r ~/.ssh/id_ed25519.pub note.txt   as text on stdout, to be pasted into a mail
  bywash encrypt -R -p --prefer cpu-free ~/photos   by the GPU, as far as that keeps up

Several ways to open a file may be given; each alone opens it. Folders (-R): regular files, however
deep; links in them are not followed (under -o they are made again as links), devices, pipes and
sockets are passed over, and so are files that end in .bywash (under -o, if they are encrypted). A
run that was interrupted goes on where it was: a result that its source's length and time belong to
is passed over. Mode, times, extended attributes and, where permitted, owner are kept. A result is
there whole, or not at all.")]
pub(crate) struct Args {
    /// Files and folders; none, or `-`: stdin to stdout
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to: a file for one file, otherwise a folder; `-` for stdout. Beside the source, with
    /// .bywash added, if not given
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Go through folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Make text, which goes to stdout unless -o says otherwise: base64, a third longer
    #[arg(short, long)]
    armor: bool,
    #[command(flatten)]
    locks: LockArgs,
    /// What the contents are sealed with
    #[arg(long, default_value_t = Aead::default(), value_parser = aead())]
    aead: Aead,
    /// Bytes sealed together: a power of two from 4K to 1M
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = chunk_size)]
    chunk_size: usize,
    #[command(flatten)]
    writes: WriteArgs,
    /// Do anew what is there of an earlier state of its source: what is older, or has another length
    #[arg(short, long, conflicts_with = "force")]
    update: bool,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    work: WorkArgs,
}

pub(super) fn aead() -> impl TypedValueParser<Value = Aead> {
    PossibleValuesParser::new(Aead::ALL.map(Aead::name)).try_map(|name| name.parse())
}

pub(super) fn chunk_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.to_ascii_uppercase() {
        text if text.ends_with('K') => (text[..text.len() - 1].to_owned(), 1 << 10),
        text if text.ends_with('M') => (text[..text.len() - 1].to_owned(), 1 << 20),
        text => (text, 1),
    };
    let size = digits.parse::<usize>().ok().and_then(|size| size.checked_mul(unit));
    size.filter(|size| size.is_power_of_two() && (geometry::CHUNK_BYTES_MIN..=geometry::CHUNK_BYTES_MAX).contains(size))
        .ok_or_else(|| "it is a power of two from 4K to 1M".into())
}

/// What all files of a run have in common.
struct Run<'a> {
    args: &'a Args,
    client: Client,
    made_for: Locks,
    nonces: Arc<NonceSource>,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    let is_stdin = stream::is_stdin(&args.paths);
    check_paths(&args.paths)?;
    let client = client()?;
    let made_for = args.locks.locks(&client)?;
    args.engines.with(client, |client| Run { args, client, made_for, nonces: Arc::new(NonceSource::new()) }.all(is_stdin))
}

impl Run<'_> {
    fn all(&self, is_stdin: bool) -> Result<ExitCode, Failure> {
        let args = self.args;
        if is_stdin || args.armor || stream::is_stream(args.output.as_deref()) {
            return self.stream(is_stdin);
        }
        let mut plan = Plan::new(&args.paths, Way::Encrypt, args.recursive, args.output.as_deref())?;
        let keys = args.locks.secret_files();
        if args.writes.removes() {
            plan.spare(&keys, &self.made_for.recipients)?;
        }
        let replaces = match args.writes.replaces() {
            true => Replaces::All,
            false if args.update => Replaces::Older,
            false => Replaces::Nothing,
        };
        if replaces != Replaces::Nothing {
            refuse_to_replace(plan.targets(), &keys)?;
        }
        if let Err(why) = plan.make_folders_and_links(replaces) {
            return args.work.nothing_begun(&plan, why);
        }
        args.work.run(&plan, Some(args.writes), |job| self.file(job))
    }

    fn new_header(&self) -> Result<(Header, Sealer), Error> {
        let (keys, slots) = new_file(&self.made_for.locks)?;
        let header = Header::new(self.args.aead, self.args.chunk_size, slots, &keys)?;
        Ok((header, self.sealer(self.args.aead, keys)))
    }

    fn sealer(&self, aead: Aead, keys: FileKeys) -> Sealer {
        Sealer::new(&self.client, aead, keys, self.nonces.clone())
    }

    fn stream(&self, is_stdin: bool) -> Result<ExitCode, Failure> {
        let place = if is_stdin { Path::new("stdin") } else { self.args.paths.first().map_or(Path::new("stdin"), PathBuf::as_path) };
        stream::refuse_options_of_files(&self.args.work, self.args.writes)?;
        if self.args.update {
            return Err(Failure::new(Exit::Usage, "--update needs files on both sides; leave it away, or name them"));
        }
        let output = self.args.output.as_deref();
        if !self.args.armor && (output.is_none() || stream::is_stdout(output)) && std::io::stdout().is_terminal() {
            let way_out = "say where to with -o or `>`, or make text with --armor";
            return Err(Failure::new(Exit::Usage, format!("ciphertext does not belong on a terminal; {way_out}")));
        }
        let (header, sealer) = self.new_header().map_err(|error| failure(place, &error))?;
        let progress = AtomicU64::new(0);
        let whole = Whole::new(&sealer, &header, 1, &progress);
        let source = match self.args.paths.as_slice() {
            _ if is_stdin => stream::stdin(),
            [path] => File::open(path),
            _ => {
                let why = "several files do not go into one stream; use tar, or give one after the other";
                return Err(Failure::new(Exit::Usage, why));
            }
        };
        let source = source.map_err(|error| io_failure(place, &error))?;
        let origin = Origin::new(place, &source, !is_stdin)?;
        let sink = stream::Sink::new(output, self.args.writes.replaces(), &self.args.locks.secret_files())?;
        sink.write(origin, |target| {
            if !self.args.armor {
                return whole.seal_stream(&source, target);
            }
            let mut armor = Armor::new(target);
            let bytes = whole.seal_stream(&source, &mut armor)?;
            armor.finish()?;
            Ok(bytes)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self, job: &Job<'_>) -> Result<Outcome, Failure> {
        let item = job.item;
        let (source, metadata) = open_regular(item.source_spot(), item.is_named()).map_err(|error| io_failure(&item.source, &error))?;
        let held = Source::locked(&source, metadata.clone(), self.args.writes).map_err(|error| io_failure(&item.source, &error))?;
        if let Some(there) = item.there()
            && !self.args.writes.replaces()
        {
            return self.earlier(job, source, (metadata, held), &there);
        }
        let failed = |error: std::io::Error| io_failure(&item.target, &error);
        let held = held.with(self.args.writes.replaced(item.target_spot()).map_err(failed)?);
        let draft = Draft::new(item.target_spot()).map_err(failed)?;
        self.seal(job, &source, &metadata, &draft).map_err(|error| failure_between(&item.source, &item.target, &error))?;
        Ok(Outcome::Ready { result: Ready::New(draft), bytes: metadata.len(), source: held, journal: None })
    }

    fn seal(&self, job: &Job<'_>, source: &File, metadata: &Metadata, draft: &Draft) -> Result<(), Error> {
        let (header, sealer) = self.new_header()?;
        let (threads, ignored) = (job.threads(metadata.len()), AtomicU64::new(0));
        Whole::new(&sealer, &header, threads, job.progress).seal(source, metadata.len(), &draft.file)?;
        let is_same = || Whole::new(&sealer, &header, threads, &ignored).is_text_of(&draft.file, source);
        complete(source, metadata, &draft.file, self.args.writes.verifies(), is_same)
    }

    /// What is there under the result's name: kept if it is this source's from an earlier run, whose length and time it has, and has as many locks of the kinds that are asked for now; a key
    /// that is here must open it. One of an earlier state of the source is replaced where that is asked for.
    fn earlier(&self, job: &Job<'_>, source: File, (read, held): (Metadata, Source), there: &Metadata) -> Result<Outcome, Failure> {
        let (target, updates) = (&job.item.target, self.args.update);
        let refused = |why: &str| Err(Failure::failed(format!("{} is there already, {why}; --force does it anew", target.shown())));
        let has_time = (there.mtime(), there.mtime_nsec()) == (read.mtime(), read.mtime_nsec());
        if !there.is_file() {
            return Err(is_no_file(target));
        }
        if !has_time && !updates {
            return Err(is_other(target));
        }
        let (file, found) = open_regular(job.item.target_spot(), false).map_err(|error| io_failure(target, &error))?;
        let header = Header::read(&file).map_err(|_| is_other(target))?;
        let is_of_now = has_time && there.len() == header.geometry().file_len(read.len());
        if !is_of_now && !updates {
            return Err(is_other(target));
        }
        if !is_of_now && there.modified().ok() > read.modified().ok() {
            return refused("and was written to after its source");
        }
        if sorted(header.slots().iter().map(Slot::kind)) != sorted(self.made_for.locks.iter().map(|lock| Some(lock.kind()))) {
            return refused("for others, or opens in other ways");
        }
        let bytes = read.len();
        let keys = match self.made_for.keyring.open(&header) {
            Ok(keys) if is_of_now => keys,
            Ok(_) => return self.anew(job, &source, (read, held), (file, found), &header),
            Err(Error::NoKeyFits { .. }) if !self.made_for.keyring.is_empty() => return refused("and what is given now does not open it"),
            Err(Error::NoKeyFits { .. }) if !is_of_now => return self.anew(job, &source, (read, held), (file, found), &header),
            Err(Error::NoKeyFits { .. }) if self.args.writes.verifies() => {
                return refused("and cannot be verified without a key that opens it");
            }
            Err(Error::NoKeyFits { .. }) if job.is_alone() => return refused("and for whom cannot be told"),
            Err(Error::NoKeyFits { .. }) => return Ok(Outcome::WasDone { bytes }),
            Err(error) => return Err(failure(target, &error)),
        };
        if !self.args.writes.verifies() {
            return Ok(Outcome::WasDone { bytes });
        }
        if lock_and_look(&file, Access::Read, job.item.target_spot(), &header).map_err(|error| failure(target, &error))?.is_some() {
            return Err(left_a_journal(target));
        }
        let sealer = self.sealer(header.aead(), keys);
        let is_same = Whole::new(&sealer, &header, job.threads(bytes), job.progress).is_text_of(&file, &source);
        match is_same.map_err(|error| failure(target, &error))? {
            true => Ok(Outcome::Ready { result: Ready::Kept(file, Box::new(found)), bytes, source: held, journal: None }),
            false => refused("and is not its source's text, or damaged"),
        }
    }

    /// Seals what takes the name of a result of before, to which nobody writes meanwhile.
    fn anew(
        &self,
        job: &Job<'_>,
        source: &File,
        (read, held): (Metadata, Source),
        (replaced, found): (File, Metadata),
        header: &Header,
    ) -> Result<Outcome, Failure> {
        let (item, failed) = (job.item, |error: std::io::Error| io_failure(&job.item.target, &error));
        if lock_and_look(&replaced, Access::Write, item.target_spot(), header).map_err(|error| failure(&item.target, &error))?.is_some() {
            return Err(left_a_journal(&item.target));
        }
        let draft = Draft::new(item.target_spot()).map_err(failed)?;
        self.seal(job, source, &read, &draft).map_err(|error| failure_between(&item.source, &item.target, &error))?;
        let result = Ready::Instead { draft, replaced: Arc::new(replaced), read: Box::new(found) };
        Ok(Outcome::Ready { result, bytes: read.len(), source: held, journal: None })
    }
}

/// Numbers of kinds, to be compared; `None` is a later version's.
fn sorted(kinds: impl Iterator<Item = Option<SlotKind>>) -> Vec<Option<u8>> {
    let mut numbers: Vec<_> = kinds.map(|kind| kind.map(|kind| kind as u8)).collect();
    numbers.sort_unstable();
    numbers
}
