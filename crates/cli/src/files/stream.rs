//! stdin and stdout instead of files, on one side or both.

use super::tree::{identity, led_to, refuse_to_replace, would_replace_its_source};
use super::work::{WorkArgs, WriteArgs};
use super::{failure_between, io_failure};
use crate::failure::{Exit, Failure};
use crate::interrupt::{end_unread, say_at_interrupt};
use crate::shown::Shown;
use crate::terminal::say;
use bywash_files::Error;
use bywash_files::place::{Draft, complete, sync_folder_of};
use bywash_protocol::{Standard, was_closed};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Whether these paths mean stdin.
pub(super) fn is_stdin(paths: &[PathBuf]) -> bool {
    paths.is_empty() || paths == [PathBuf::from("-")]
}

/// Whether this output was named, and means stdout.
pub(super) fn is_stdout(output: Option<&Path>) -> bool {
    output.is_some_and(|output| output == Path::new("-") || output == Path::new("/dev/stdout"))
}

/// Whether an output takes what comes as it comes: stdout, a pipe, a device. It is written to, and not replaced.
pub(super) fn is_stream(output: Option<&Path>) -> bool {
    let is_no_file = |output: &Path| std::fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir());
    is_stdout(output) || output.is_some_and(is_no_file)
}

/// Refuses what makes sense for files alone.
pub(super) fn refuse_options_of_files(work: &WorkArgs, writes: WriteArgs) -> Result<(), Failure> {
    let why =
        "--json, --verify and --remove-source need files on both sides; stdin, stdout and text (--armor) are streams: leave them away";
    if work.json() || writes.verifies() { Err(Failure::new(Exit::Usage, why)) } else { Ok(()) }
}

/// This process's stdin; a name such as /dev/stdin would open a socket or another user's terminal anew, which may not be permitted.
pub(super) fn stdin() -> std::io::Result<File> {
    if was_closed(Standard::Input) {
        return Err(std::io::Error::other("it is closed; give a file, or a stream with <"));
    }
    std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Where a stream comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a File,
    /// Whether the file was named, and not what stdin led to.
    pub(super) is_named: bool,
}

impl<'a> Origin<'a> {
    /// A file that was named, or what stdin is; a folder is none.
    pub(super) fn new(path: &'a Path, file: &'a File, is_named: bool) -> Result<Self, Failure> {
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let way_out = "`tar c FOLDER | bywash encrypt` makes one of it";
            return Err(Failure::new(Exit::Usage, format!("{} is a folder, and no stream; {way_out}", path.shown())));
        }
        Ok(Self { path, file, is_named })
    }
}

/// What it is called in errors.
const STDOUT: &str = "stdout";

/// Where the result of a stream goes, of several one behind the other.
pub(super) enum Sink {
    Stdout(File),
    /// To what is open; what that is called.
    Open(File, PathBuf),
    /// Under a name, once all of it is there.
    Named {
        path: PathBuf,
        replaces: bool,
    },
}

impl Sink {
    /// What an output means. What is on a disk is written over only if that is wanted, and none of the keys ever is.
    pub(super) fn new(output: Option<&Path>, replaces: bool, keys: &[PathBuf]) -> Result<Self, Failure> {
        let Some(path) = output.filter(|output| !is_stdout(Some(output))) else {
            // Without the standard library's line buffer, which would copy and cut.
            if was_closed(Standard::Output) {
                return Err(Failure::failed("stdout is closed, so the result would be nowhere; name a file with -o"));
            }
            let stdout = std::io::stdout().as_fd().try_clone_to_owned();
            return stdout.map(|stdout| Self::Stdout(stdout.into())).map_err(|error| io_failure(Path::new(STDOUT), &error));
        };
        refuse_to_replace(output.map(Path::to_owned).into_iter(), keys)?;
        if !is_stream(output) {
            return Ok(Self::Named { path: led_to(path), replaces });
        }
        let failed = |error: std::io::Error| io_failure(path, &error);
        if !replaces && std::fs::metadata(path).map_err(failed)?.file_type().is_block_device() {
            let way_out = "give --force to write over what is on it";
            return Err(Failure::new(Exit::Usage, format!("{} is a disk; {way_out}", path.shown())));
        }
        File::options().write(true).open(path).map(|file| Self::Open(file, path.into())).map_err(failed)
    }

    /// Writes one.
    pub(super) fn write(&self, origin: Origin<'_>, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
        match self {
            Self::Stdout(file) => write(file).map_err(|error| {
                if matches!(&error, Error::Io(error) if error.kind() == ErrorKind::BrokenPipe) {
                    end_unread();
                }
                failure_between(origin.path, Path::new(STDOUT), &error)
            }),
            Self::Open(file, path) => write(file).map_err(|error| failure_between(origin.path, path, &error)),
            Self::Named { path, replaces } => to_file(origin, path, *replaces, write),
        }
    }
}

fn to_file(origin: Origin<'_>, output: &Path, replaces: bool, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
    let Origin { path, file, is_named } = origin;
    let failed = |error: &std::io::Error| io_failure(output, error);
    let read = file.metadata().map_err(|error| io_failure(path, &error))?;
    if identity(output) == Some((read.dev(), read.ino())) {
        return Err(would_replace_its_source(output));
    }
    say_at_interrupt(|| say!("interrupted before the file was done"))?;
    let draft = Draft::new(output).map_err(|error| failed(&error))?;
    let bytes = write(&draft.file).map_err(|error| failure_between(path, output, &error))?;
    if is_named && read.is_file() {
        complete(file, &read, &draft.file, false, || Ok(true)).map_err(|error| failure_between(path, output, &error))?;
    }
    draft.file.sync_all().map_err(|error| failed(&error))?;
    draft.publish(output, replaces).map_err(|error| failed(&error))?;
    sync_folder_of(output).map_err(|error| failed(&error))?;
    Ok(bytes)
}
