//! `bywash decrypt`

use super::engines::EngineArgs;
use super::fsck::how_much;
use super::keys::KeyArgs;
use super::removal::Source;
use super::stream::Origin;
use super::tree::{Plan, Way, check_paths, refuse_to_replace};
use super::work::{Job, Journal, Outcome, Ready, WorkArgs, WriteArgs};
use super::{SUFFIX, client, failure, failure_between, io_failure, is_no_file, is_other, left_a_journal, lock_and_look, stream};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use crate::terminal::{bytes, say};
use bywash_client::Client;
use bywash_files::disk::{Access, Disk};
use bywash_files::place::{Draft, Replaces, Spot, complete, copy_metadata, open_regular, sync_folder_of};
use bywash_files::{Container, Error, Header, Keyring, NonceSource, Sealer, Whole, armor, fsck};
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zeroize::Zeroizing;

/// Bytes of text copied at a time from a file with a journal.
const PIECE_BYTES: usize = 1 << 20;

/// `bywash decrypt`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash decrypt thesis.pdf.bywash               thesis.pdf; the passphrase is asked for
  bywash decrypt -i me.identity -o - report.ods.bywash | less
  bywash decrypt -R -k backup.key -o ~/restored /mnt/backup
  bywash decrypt -i me.identity < src.tar.bywash | tar x
  bywash decrypt -i me.identity mail.txt         text (encrypt --armor): to stdout
  bywash decrypt --salvage film.mkv.bywash       film.mkv, or of a damaged file film.mkv.salvaged

A result is there whole and authentic, or not at all. To stdout goes only text that proved
authentic, but of a file that is damaged or truncated what comes before the damage has gone out
already: look at the exit code (8), or decrypt to a file.")]
pub(crate) struct Args {
    /// Files and folders; none, or `-`: stdin to stdout
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to: a file for one file, otherwise a folder; `-` for stdout. If not given, beside the
    /// source, without .bywash; to stdout if the source is text
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Go through folders; files that do not end in .bywash are passed over
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    writes: WriteArgs,
    /// Of a damaged file, write what is good: to a file with .salvaged added to its name, with zeros
    /// where something is lost
    #[arg(long, conflicts_with_all = ["verify", "remove_source"])]
    salvage: bool,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    work: WorkArgs,
}

struct Run<'a> {
    args: &'a Args,
    client: Client,
    keyring: Keyring,
    nonces: Arc<NonceSource>,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    let is_stdin = stream::is_stdin(&args.paths);
    check_paths(&args.paths)?;
    let client = client()?;
    let keyring = args.keys.keyring(&client)?;
    args.engines.with(client, |client| Run { args, client, keyring, nonces: Arc::new(NonceSource::new()) }.all(is_stdin))
}

impl Run<'_> {
    fn all(&self, is_stdin: bool) -> Result<ExitCode, Failure> {
        let args = self.args;
        let output = args.output.as_deref();
        if is_stdin || stream::is_stream(output) || self.are_texts()? {
            return self.stream(is_stdin);
        }
        let mut plan = Plan::new(&args.paths, Way::Decrypt, args.recursive, output)?;
        if args.writes.replaces() {
            let targets = plan.items.iter().filter(|_| args.salvage).map(|item| salvaged(&item.target));
            let targets = targets.chain(plan.targets().map(Path::to_owned));
            refuse_to_replace(targets, &args.keys.secret_files())?;
        }
        if args.salvage {
            let targets: HashSet<_> = plan.items.iter().map(|item| &item.target).collect();
            if let Some(item) = plan.items.iter().find(|item| targets.contains(&salvaged(&item.target))) {
                let (source, saved) = (item.source.shown(), salvaged(&item.target));
                let why = "where what is saved of it would go, the text of another file goes; give them one after the other";
                return Err(Failure::new(Exit::Usage, format!("{source}: {}: {why}", saved.shown())));
            }
        }
        if let Err(why) = plan.make_folders_and_links(if args.writes.replaces() { Replaces::All } else { Replaces::Nothing }) {
            return args.work.nothing_begun(&plan, why);
        }
        args.work.run(&plan, Some(args.writes), |job| self.file(job))
    }

    /// Whether what is to be decrypted is text: one file, or several that go to stdout, one behind the other.
    fn are_texts(&self) -> Result<bool, Failure> {
        let Args { paths, output, .. } = self.args;
        let is_first = paths.first().is_some_and(|path| is_text(path));
        if is_first && (paths.len() == 1 || (output.is_none() && paths.iter().all(|path| is_text(path)))) {
            return Ok(true);
        }
        // Of many that are named as files the few that are not say so themselves.
        let is_no_file = |path: &&PathBuf| path.extension().is_none_or(|extension| extension != SUFFIX);
        let Some(text) = paths.iter().filter(is_no_file).find(|path| is_text(path)) else { return Ok(false) };
        let why = "it is text (encrypt --armor), of which one is decrypted at a time, or several to stdout; give it alone";
        Err(Failure::new(Exit::Usage, format!("{}: {why}", text.shown())))
    }

    fn stream(&self, is_stdin: bool) -> Result<ExitCode, Failure> {
        stream::refuse_options_of_files(&self.args.work, self.args.writes)?;
        if self.args.salvage {
            return Err(Failure::new(Exit::Usage, "--salvage needs a file, not a stream; name it, and one to write to"));
        }
        let stdin = [PathBuf::from("stdin")];
        let sink = stream::Sink::new(self.args.output.as_deref(), self.args.writes.replaces(), &self.args.keys.secret_files())?;
        for place in if is_stdin { &stdin[..] } else { &self.args.paths } {
            let opened = if is_stdin { stream::stdin() } else { File::open(place) };
            let source = opened.map_err(|error| io_failure(place, &error))?;
            let origin = Origin::new(place, &source, !is_stdin)?;
            let mut reader = armor::reader(&source).map_err(|error| io_failure(place, &error))?;
            let opened = Header::read(&mut reader).and_then(|header| Ok((self.keyring.open(&header)?, header)));
            let (keys, header) = opened.map_err(|error| failure(place, &error))?;
            if !is_stdin && lock_and_look(&source, Access::Read, place.into(), &header).map_err(|error| failure(place, &error))?.is_some() {
                let why = "its writer was interrupted and left a journal; run `bywash fsck --recover`, or decrypt it to a file";
                return Err(Failure::new(Exit::Damaged, format!("{}: {why}", place.shown())));
            }
            let sealer = Sealer::new(&self.client, header.aead(), keys, self.nonces.clone());
            let progress = AtomicU64::new(0);
            let whole = Whole::new(&sealer, &header, 1, &progress);
            sink.write(origin, |target| whole.open_stream(reader, target))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self, job: &Job<'_>) -> Result<Outcome, Failure> {
        let item = job.item;
        let (source, metadata) = open_regular(item.source_spot(), item.is_named()).map_err(|error| io_failure(&item.source, &error))?;
        let header = Header::read(&source).map_err(|error| failure(&item.source, &error))?;
        if let Some(there) = item.there()
            && !self.args.writes.replaces()
        {
            return self.earlier(job, source, metadata, &header, &there);
        }
        let failed = |error: std::io::Error| io_failure(&item.target, &error);
        let replaced = self.args.writes.replaced(item.target_spot()).map_err(failed)?;
        let draft = Draft::new(item.target_spot()).map_err(failed)?;
        let opened = self.open(job, source, &metadata, &header, &draft);
        let (bytes, held, journal) = match opened {
            Err(error) if self.args.salvage && is_of_source(&error) => return self.salvage(job, error),
            opened => opened.map_err(|error| failure_between(&item.source, &item.target, &error))?,
        };
        Ok(Outcome::Ready { result: Ready::New(draft), bytes, source: held.with(replaced), journal })
    }

    /// Writes what is good of a damaged file, under a name that does not pass for the whole.
    fn salvage(&self, job: &Job<'_>, why: Error) -> Result<Outcome, Failure> {
        let (item, path) = (job.item, &job.item.source);
        let saved = salvaged(&item.target);
        let failed = |error: Error| failure_between(path, &saved, &error);
        let (source, metadata) = open_regular(item.source_spot(), item.is_named()).map_err(|error| io_failure(path, &error))?;
        let header = Header::read(&source).map_err(failed)?;
        if lock_and_look(&source, Access::Read, item.source_spot(), &header).map_err(failed)?.is_some() {
            return Err(left_a_journal(path));
        }
        let keys = self.keyring.open(&header).map_err(failed)?;
        let spot = Spot { path: &saved, ..item.target_spot() };
        let draft = Draft::new(spot).map_err(|error| io_failure(&saved, &error))?;
        let (checked, places) = fsck::salvage(&self.client, &header, keys, &source, &draft.file, job.progress).map_err(failed)?;
        if checked.damaged == 0 {
            // The disk, or whoever was writing, has thought better of it.
            tracing::debug!("{}: {why}", path.shown());
            copy_metadata(&source, &metadata, &draft.file).map_err(|error| io_failure(&item.target, &error))?;
            let bytes = checked.good_bytes;
            return Ok(Outcome::Ready { result: Ready::New(draft), bytes, source: Source::stays(metadata), journal: None });
        }
        let publish = || {
            copy_metadata(&source, &metadata, &draft.file)?;
            draft.file.sync_all()?;
            draft.publish(&saved, self.args.writes.replaces())?;
            sync_folder_of(spot)
        };
        let published = publish();
        places.iter().for_each(|place| say!("{}: {place}", path.shown()));
        let (how_much, good, at) = (how_much(&checked, &places), bytes(checked.good_bytes), saved.shown());
        let is_saved = published.is_ok();
        let what_of_it = match published {
            Ok(()) => format!("{good} of text saved in {at}"),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                format!("{at} is there already and is kept (--force saves the {good} of text anew)")
            }
            Err(error) => return Err(io_failure(&saved, &error)),
        };
        let why = format!("{}: {how_much}; {what_of_it}", path.shown());
        Ok(Outcome::Damaged {
            failure: Failure::new(Exit::Damaged, why),
            bytes: checked.good_bytes,
            places,
            saved: is_saved.then_some(saved),
        })
    }

    /// What is there under the result's name: kept if it is from an earlier run, for a source's time and length are its result's.
    fn earlier(&self, job: &Job<'_>, source: File, read: Metadata, header: &Header, there: &Metadata) -> Result<Outcome, Failure> {
        let (item, bytes) = (job.item, there.len());
        let failed = |error: &Error| failure(&item.source, error);
        // Who has no key for it is told so, whatever is there.
        let keys = self.keyring.open(header).map_err(|error| failed(&error))?;
        if !there.is_file() {
            return Err(is_no_file(&item.target));
        }
        if !is_of(header, &read, there) {
            return Err(is_other(&item.target));
        }
        if !self.args.writes.verifies() {
            return Ok(Outcome::WasDone { bytes });
        }
        let refused = |error: std::io::Error| io_failure(&item.target, &error);
        let (file, found) = open_regular(item.target_spot(), false).map_err(refused)?;
        if self.args.writes.removes() {
            // The text first, as who encrypts it does: of two that meet there one goes on.
            Disk::lock(&file, Access::Read).map_err(refused)?;
        }
        if lock_and_look(&source, self.args.writes.access(&read), item.source_spot(), header).map_err(|error| failed(&error))?.is_some() {
            // What that holds counts, and lengths say nothing.
            return Err(is_other(&item.target));
        }
        let held = Source::of(&source, read.clone(), self.args.writes).map_err(|error| io_failure(&item.source, &error))?;
        let sealer = Sealer::new(&self.client, header.aead(), keys, self.nonces.clone());
        let is_same = Whole::new(&sealer, header, job.threads(read.len()), job.progress).is_text_of(&source, &file);
        match is_same.map_err(|error| failed(&error))? {
            true => Ok(Outcome::Ready { result: Ready::Kept(file, Box::new(found)), bytes, source: held, journal: None }),
            false => Err(Failure::failed(format!(
                "{} is there already, and is not its source's text; --force does it anew",
                item.target.shown()
            ))),
        }
    }

    /// Writes a file's text; its length, and the file as it goes, with its journal if it has one.
    fn open(
        &self,
        job: &Job<'_>,
        source: File,
        metadata: &Metadata,
        header: &Header,
        draft: &Draft,
    ) -> Result<(u64, Source, Option<Journal>), Error> {
        let keys = self.keyring.open(header)?;
        let journals = lock_and_look(&source, self.args.writes.access(metadata), job.item.source_spot(), header)?;
        let held = Source::of(&source, metadata.clone(), self.args.writes)?;
        let source = Arc::new(source);
        let (threads, ignored) = (job.threads(metadata.len()), AtomicU64::new(0));
        let verifies = self.args.writes.verifies();
        // Of a file whose last writer did not come to an end, what its journal holds counts.
        if let Some(journals) = journals {
            let container = Container::open(&self.client, header, keys, source.clone(), &journals)?;
            let len = copy_text(&container, &draft.file, job.progress)?;
            complete(&source, metadata, &draft.file, verifies, || is_text_of(&container, &draft.file))?;
            return Ok((len, held, Some(Journal { journals, salt: *header.salt() })));
        }
        let sealer = Sealer::new(&self.client, header.aead(), keys, self.nonces.clone());
        let len = Whole::new(&sealer, header, threads, job.progress).open(&source, &draft.file)?;
        let is_same = || Whole::new(&sealer, header, threads, &ignored).is_text_of(&source, &draft.file);
        complete(&source, metadata, &draft.file, verifies, is_same)?;
        Ok((len, held, None))
    }
}

/// Whether a path leads to a file that is encrypted as text.
fn is_text(path: &Path) -> bool {
    open_regular(path, true).is_ok_and(|(file, _)| armor::is_armored(&file))
}

/// Whether an error is the source's, so that other parts of it may be good.
fn is_of_source(error: &Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ResourceBusy, StorageFull};
    match error {
        Error::Damaged(_) | Error::Truncated { .. } => true,
        Error::Io(error) => !matches!(error.kind(), FileTooLarge | QuotaExceeded | ResourceBusy | StorageFull),
        _ => false,
    }
}

/// What a part of a file is called instead of its name.
fn salvaged(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".salvaged");
    name.into()
}

/// Writes a container's text into an empty file; its length.
fn copy_text(container: &Container, file: &File, progress: &AtomicU64) -> Result<u64, Error> {
    let mut piece = Zeroizing::new(vec![0; PIECE_BYTES]);
    let mut done = 0;
    while done < container.len() {
        let count = container.read_at(&mut piece, done)?;
        file.write_all_at(&piece[..count], done)?;
        done += count as u64;
        progress.fetch_add(count as u64, Relaxed);
    }
    Ok(done)
}

/// Whether a file holds a container's text, and no more.
fn is_text_of(container: &Container, file: &File) -> Result<bool, Error> {
    let [mut sealed, mut open] = [(); 2].map(|()| Zeroizing::new(vec![0; PIECE_BYTES]));
    let mut done = 0;
    while done < container.len() {
        let count = container.read_at(&mut sealed, done)?;
        match file.read_exact_at(&mut open[..count], done) {
            Ok(()) if open[..count] == sealed[..count] => done += count as u64,
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(file.metadata()?.len() == done)
}

fn is_of(header: &Header, source: &Metadata, target: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: &Metadata| (metadata.mtime(), metadata.mtime_nsec());
    of(source) == of(target) && source.len() == header.geometry().file_len(target.len())
}
