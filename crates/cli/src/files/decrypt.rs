//! `bywash decrypt`

use super::keys::KeyArgs;
use super::place::{Draft, copy_metadata, is_unchanged, open_regular};
use super::tree::{Plan, Way};
use super::work::{Job, Outcome, WorkArgs, WriteArgs};
use super::{client, failure, io_failure};
use crate::failure::{Exit, Failure};
use bywash_client::Client;
use bywash_files::disk::{Access, Disk, FolderJournals, Journals};
use bywash_files::{Container, Error, FileKeys, Header, Keyring, NonceSource, Sealer, Whole};
use rustix::fs::{Advice, fadvise};
use std::fs::{File, Metadata};
use std::os::fd::AsFd;
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

A result is there whole and authentic, or not at all. To stdout goes only text that proved
authentic, but of a file that is damaged or truncated what comes before the damage has gone out
already: look at the exit code (8), or decrypt to a file.")]
pub(crate) struct Args {
    /// Files and folders; none, or `-`: stdin to stdout
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to: a file for one file, otherwise a folder; `-` for stdout. Beside the source, without
    /// .bywash, if not given
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Go through folders; files that do not end in .bywash are passed over
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    writes: WriteArgs,
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
    let is_stdin = args.paths.is_empty() || args.paths == [PathBuf::from("-")];
    let run = Run { args, client: client()?, keyring: args.keys.keyring()?, nonces: Arc::new(NonceSource::new()) };
    if is_stdin || args.output.as_deref() == Some(Path::new("-")) {
        return run.stream(is_stdin);
    }
    let plan = Plan::new(&args.paths, Way::Decrypt, args.recursive, args.output.as_deref())?;
    args.work.run(&plan, Some(args.writes), |job| run.file(job))
}

impl Run<'_> {
    fn stream(&self, is_stdin: bool) -> Result<ExitCode, Failure> {
        if self.args.work.json() || self.args.writes.verifies() {
            return Err(Failure::new(Exit::Usage, "--json, --verify and --remove-source need files, not a stream; name them"));
        }
        let stdin = [PathBuf::from("stdin")];
        for place in if is_stdin { &stdin[..] } else { &self.args.paths } {
            let opened = if is_stdin { self::stdin() } else { File::open(place) };
            let mut source = opened.map_err(|error| io_failure(place, &error))?;
            let opened = Header::read(&mut source).and_then(|header| Ok((self.keyring.open(&header)?, header)));
            let (keys, header) = opened.map_err(|error| failure(place, &error))?;
            if !is_stdin {
                Disk::lock(&source, Access::Read).map_err(|error| io_failure(place, &error))?;
                let journals = FolderJournals::beside(place);
                if journals.find(header.salt()).map_err(|error| io_failure(place, &error))?.is_some() {
                    let why = "its writer was interrupted and left a journal; run `bywash fsck --recover`, or decrypt it to a file";
                    return Err(Failure::new(Exit::Damaged, format!("{}: {why}", place.display())));
                }
            }
            let sealer = Sealer::new(&self.client, header.aead(), keys, self.nonces.clone());
            let progress = AtomicU64::new(0);
            let whole = Whole::new(&sealer, &header, 1, &progress);
            match self.args.output.as_deref().filter(|output| *output != Path::new("-")) {
                None => whole.open_stream(source, stdout(place)?).map_err(|error| failure(place, &error))?,
                Some(output) => to_file(output, self.args.writes.replaces(), |target| whole.open_stream(source, target))?,
            };
        }
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self, job: &Job<'_>) -> Result<Outcome, Failure> {
        let item = job.item;
        let (source, metadata) = open_regular(&item.source, item.is_named).map_err(|error| io_failure(&item.source, &error))?;
        let header = Header::read(&source).map_err(|error| failure(&item.source, &error))?;
        if let Ok(there) = std::fs::symlink_metadata(&item.target)
            && !self.args.writes.replaces()
        {
            // A source's time and length are its result's: so is a result of an earlier run known.
            let is_done = there.is_file() && is_of(&header, &metadata, &there);
            return match is_done {
                true => Ok(Outcome::WasDone { bytes: there.len() }),
                false => Err(io_failure(&item.target, &std::io::ErrorKind::AlreadyExists.into())),
            };
        }
        let draft = Draft::new(&item.target).map_err(|error| io_failure(&item.target, &error))?;
        let bytes = self.open(job, source, &metadata, &header, &draft).map_err(|error| failure(&item.source, &error))?;
        Ok(Outcome::Drafted { draft, bytes, read: Box::new(metadata) })
    }

    fn open(&self, job: &Job<'_>, source: File, metadata: &Metadata, header: &Header, draft: &Draft) -> Result<u64, Error> {
        let keys = self.keyring.open(header)?;
        // Before the journal is looked for, so that no writer makes one in between.
        Disk::lock(&source, Access::Read)?;
        let journals = FolderJournals::beside(&job.item.source);
        if journals.find(header.salt())?.is_some() {
            return self.open_with_journal(job, source, metadata, header, draft, keys, &journals);
        }
        let sealer = Sealer::new(&self.client, header.aead(), keys, self.nonces.clone());
        let len = Whole::new(&sealer, header, job.threads(metadata.len()), job.progress).open(&source, &draft.file)?;
        if !is_unchanged(&source, metadata)? {
            return Err(changed_meanwhile());
        }
        if self.args.writes.verifies() {
            read_back(&draft.file)?;
            let ignored = AtomicU64::new(0);
            if !Whole::new(&sealer, header, job.threads(metadata.len()), &ignored).is_text_of(&source, &draft.file)? {
                return Err(not_the_same());
            }
        }
        copy_metadata(&source, metadata, &draft.file)?;
        Ok(len)
    }

    /// A file whose last writer did not come to an end: what its journal holds counts.
    #[expect(clippy::too_many_arguments, reason = "they are the file")]
    fn open_with_journal(
        &self,
        job: &Job<'_>,
        source: File,
        metadata: &Metadata,
        header: &Header,
        draft: &Draft,
        keys: FileKeys,
        journals: &FolderJournals,
    ) -> Result<u64, Error> {
        let source = Arc::new(source);
        let container = Container::open(&self.client, header, keys, source.clone(), journals)?;
        let mut piece = Zeroizing::new(vec![0; PIECE_BYTES]);
        let mut done = 0;
        while done < container.len() {
            let count = container.read_at(&mut piece, done)?;
            draft.file.write_all_at(&piece[..count], done)?;
            done += count as u64;
            job.progress.fetch_add(count as u64, Relaxed);
        }
        if !is_unchanged(&source, metadata)? {
            return Err(changed_meanwhile());
        }
        if self.args.writes.verifies() {
            read_back(&draft.file)?;
            if !is_text_of(&container, &draft.file)? {
                return Err(not_the_same());
            }
        }
        copy_metadata(&source, metadata, &draft.file)?;
        Ok(done)
    }
}

/// This process's stdin; a name such as /dev/stdin would open a socket or another user's terminal anew, which may not be permitted.
pub(super) fn stdin() -> std::io::Result<File> {
    std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
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

fn changed_meanwhile() -> Error {
    std::io::Error::other("somebody wrote to it while it was read; try again").into()
}

fn not_the_same() -> Error {
    std::io::Error::other("its result was read back and is not the same; is the disk failing?").into()
}

fn is_of(header: &Header, source: &Metadata, target: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: &Metadata| (metadata.mtime(), metadata.mtime_nsec());
    of(source) == of(target) && source.len() == header.geometry().file_len(target.len())
}

/// What was written reaches the disk and leaves the cache, as far as the kernel lets it, so that reading it back reads the disk.
pub(super) fn read_back(file: &File) -> std::io::Result<()> {
    file.sync_all()?;
    // A kernel that keeps it compares what it keeps: nothing is lost by that.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Standard output without the line buffer, which would copy and cut.
pub(super) fn stdout(source: &Path) -> Result<File, Failure> {
    std::io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(|error| io_failure(source, &error))
}

/// A stream's result under its name, once all of it is there.
pub(super) fn to_file(output: &Path, replaces: bool, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
    let failed = |error: &std::io::Error| io_failure(output, error);
    let draft = Draft::new(output).map_err(|error| failed(&error))?;
    let bytes = write(&draft.file).map_err(|error| failure(output, &error))?;
    draft.file.sync_all().map_err(|error| failed(&error))?;
    draft.publish(output, replaces).map_err(|error| failed(&error))?;
    File::open(super::tree::folder(output)).and_then(|folder| folder.sync_all()).map_err(|error| failed(&error))?;
    Ok(bytes)
}
