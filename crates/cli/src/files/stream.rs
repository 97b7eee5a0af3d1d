//! stdin and stdout instead of files, on one side or both.

use super::tree::{led_to, refuse_to_replace};
use super::work::{WorkArgs, WriteArgs};
use super::{failure_between, io_failure};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_files::Error;
use bywash_files::place::{Draft, sync_folder_of};
use bywash_protocol::{Standard, was_closed};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
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
    match work.json() || writes.verifies() {
        true => Err(Failure::new(Exit::Usage, "--json, --verify and --remove-source need files, not a stream; name them")),
        false => Ok(()),
    }
}

/// This process's stdin; a name such as /dev/stdin would open a socket or another user's terminal anew, which may not be permitted.
pub(super) fn stdin() -> std::io::Result<File> {
    if was_closed(Standard::Input) {
        return Err(std::io::Error::other("it is closed; give a file, or a stream with <"));
    }
    std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Where the result of a stream goes, of several one behind the other.
pub(super) enum Sink {
    /// To what is open; what that is called.
    Open(File, PathBuf),
    /// Under a name, once all of it is there.
    Named { path: PathBuf, replaces: bool },
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
            let name = Path::new("stdout");
            return stdout.map(|stdout| Self::Open(stdout.into(), name.into())).map_err(|error| io_failure(name, &error));
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

    /// Writes one; `source` is named where it is its fault.
    pub(super) fn write(&self, source: &Path, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
        match self {
            Self::Open(file, path) => write(file).map_err(|error| failure_between(source, path, &error)),
            Self::Named { path, replaces } => to_file(source, path, *replaces, write),
        }
    }
}

fn to_file(source: &Path, output: &Path, replaces: bool, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
    let failed = |error: &std::io::Error| io_failure(output, error);
    let draft = Draft::new(output).map_err(|error| failed(&error))?;
    let bytes = write(&draft.file).map_err(|error| failure_between(source, output, &error))?;
    draft.file.sync_all().map_err(|error| failed(&error))?;
    draft.publish(output, replaces).map_err(|error| failed(&error))?;
    sync_folder_of(output).map_err(|error| failed(&error))?;
    Ok(bytes)
}
