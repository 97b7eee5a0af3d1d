//! What would be clear text among the ciphertext of a volume that one program sees: files that are not opened by that program.

use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use std::path::{Path, PathBuf};

/// Refuses standard descriptors that are files in the volume's folder, a path without links: whoever opened them before the run opened what lies there in truth.
pub(super) fn refuse_opened(folder: &Path) -> Result<(), Failure> {
    let names = ["stdin", "stdout", "stderr"].into_iter().enumerate();
    let files = names.filter_map(|(number, name)| {
        let link = PathBuf::from(format!("/proc/self/fd/{number}"));
        link.metadata().is_ok_and(|file| file.is_file()).then(|| Some((name, link.read_link().ok()?))).flatten()
    });
    match files.into_iter().find(|(_, path)| path.starts_with(folder)) {
        None => Ok(()),
        Some((name, path)) => {
            let path = path.shown();
            let why = format!("{name} is {path}, opened before the run and so not in the volume but among its ciphertext");
            Err(Failure::new(Exit::RunFailed, format!("{why}; let the run open it: bywash run --files ... -- sh -c 'CMD > FILE'")))
        }
    }
}

/// Refuses a path that leads into the folder, at which this process writes itself.
pub(super) fn refuse(folder: &Path, what: &str, path: &Path) -> Result<(), Failure> {
    if leads_into(folder, path) {
        let path = path.shown();
        let why = format!("{what}: {path} is in the volume, where --files-by hook would leave clear text among the ciphertext");
        return Err(Failure::new(Exit::RunFailed, format!("{why}; choose a place outside of it")));
    }
    Ok(())
}

/// Refuses to start a file in the folder: the kernel would execute its ciphertext, and who starts it take that for a script without a first line and hand it to a shell.
pub(super) fn refuse_program(folder: &Path, program: &Path) -> Result<(), Failure> {
    if program.canonicalize().is_ok_and(|program| program.starts_with(folder)) {
        let why = format!("{}: it lies in the volume, of which --files-by hook can start no programs", program.shown());
        return Err(Failure::new(Exit::NotExecutable, format!("{why}; run its interpreter with it, or leave --files-by hook out")));
    }
    Ok(())
}

fn leads_into(folder: &Path, path: &Path) -> bool {
    let parent = || path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let place = path.canonicalize().or_else(|error| parent().ok_or(error)?.canonicalize());
    place.is_ok_and(|place| place.starts_with(folder))
}
