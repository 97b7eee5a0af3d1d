//! `bywash run --files --files-by hook`: a volume that is served by answering the program's system calls, without a mount.

use super::keys::KeyArgs;
use super::{clear, daemon, volume};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_mount::direct::Direct;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// How the files of a volume are shown to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FilesBy {
    /// A file system mounted over the volume's folder, which only the program sees; needs FUSE, and of who is not root a user namespace
    #[default]
    Mount,
    /// Its system calls are answered: needs neither, and refuses memory maps, locks and some more
    Hook,
}

/// A volume that is open, for [`bywash_hook::Hook::begin`].
pub(crate) struct Opened {
    pub(crate) volume: Arc<Direct>,
    /// Where the program sees it.
    pub(crate) folder: PathBuf,
}

impl Opened {
    /// Refuses a command whose program lies in the volume.
    ///
    /// # Errors
    /// That it does.
    pub(crate) fn refuse(&self, command: &Command) -> Result<(), Failure> {
        bywash_hook::file_of(command).map_or(Ok(()), |program| clear::refuse_program(&self.folder, &program))
    }
}

/// Opens it. `own` are paths at which this process writes itself, each with what the user names it by.
pub(crate) fn open(folder: &Path, keys: &KeyArgs, own: &[(&str, PathBuf)]) -> Result<Opened, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::RunFailed, format!("--files {}: {error}", folder.shown()));
    bywash_hook::support().map_err(|error| Failure::new(Exit::RunFailed, format!("--files-by hook: {error}")))?;
    let folder = volume::find(folder)?;
    clear::refuse_opened(&folder)?;
    own.iter().try_for_each(|(what, path)| clear::refuse(&folder, what, path))?;
    let root = volume::root(&folder)?;
    bywash_protocol::harden_process();
    daemon::log_to_stderr();
    let secret = volume::secret(&folder, keys)?;
    let format = volume::format(&root, &folder, secret, false)?;
    let volume = Arc::new(Direct::new(root, format).map_err(failed)?);
    Ok(Opened { volume, folder })
}
