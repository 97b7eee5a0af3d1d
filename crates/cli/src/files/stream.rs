//! stdin and stdout instead of files, on one side or both.

use super::work::{WorkArgs, WriteArgs};
use super::{failure, io_failure};
use crate::failure::{Exit, Failure};
use bywash_files::Error;
use bywash_files::place::{Draft, sync_folder_of};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Whether these paths mean stdin.
pub(super) fn is_stdin(paths: &[PathBuf]) -> bool {
    paths.is_empty() || paths == [PathBuf::from("-")]
}

/// Whether this output was named, and means stdout.
pub(super) fn is_stdout(output: Option<&Path>) -> bool {
    output == Some(Path::new("-"))
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
    std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// A stream's result: to stdout, or under a name once all of it is there. `source` is named in errors of stdout.
pub(super) fn write(
    output: Option<&Path>,
    replaces: bool,
    source: &Path,
    write: impl FnOnce(&File) -> Result<u64, Error>,
) -> Result<u64, Failure> {
    match output.filter(|output| !is_stdout(Some(output))) {
        Some(output) => to_file(output, replaces, write),
        None => {
            // Without the standard library's line buffer, which would copy and cut.
            let stdout = std::io::stdout().as_fd().try_clone_to_owned().map_err(|error| io_failure(source, &error))?;
            write(&File::from(stdout)).map_err(|error| failure(source, &error))
        }
    }
}

fn to_file(output: &Path, replaces: bool, write: impl FnOnce(&File) -> Result<u64, Error>) -> Result<u64, Failure> {
    let failed = |error: &std::io::Error| io_failure(output, error);
    let draft = Draft::new(output).map_err(|error| failed(&error))?;
    let bytes = write(&draft.file).map_err(|error| failure(output, &error))?;
    draft.file.sync_all().map_err(|error| failed(&error))?;
    draft.publish(output, replaces).map_err(|error| failed(&error))?;
    sync_folder_of(output).map_err(|error| failed(&error))?;
    Ok(bytes)
}
