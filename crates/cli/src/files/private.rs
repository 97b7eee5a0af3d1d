//! `bywash run --files`: a volume that one program sees, and what it starts, in the place of its ciphertext.

use super::keys::KeyArgs;
use super::{clear, daemon, stored, volume};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use crate::terminal::say;
use bywash_mount::{MountOptions, Unmounter};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A volume mounted over its own folder, in namespaces of this process.
pub(crate) struct Private {
    unmounter: Unmounter,
    thread: JoinHandle<std::io::Result<()>>,
    folder: PathBuf,
}

/// Mounts it. This process must have no other thread yet.
pub(crate) fn enter(folder: &Path, keys: &KeyArgs) -> Result<Private, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::RunFailed, format!("--files {}: {error}", folder.shown()));
    let folder = volume::find(folder)?;
    clear::refuse_opened(&folder)?;
    let root = volume::root(&folder)?;
    bywash_mount::private::enter().map_err(failed)?;
    // Only now, for whoever is not dumpable may not say who he is in his namespace.
    bywash_protocol::harden_process();
    daemon::log_to_stderr();
    let secret = volume::secret(&folder, keys)?;
    let options = MountOptions { source: folder.display().to_string(), ..MountOptions::default() };
    let mounted = volume::mount_over_itself(root, &folder, secret, &options)?;
    // Whoever stands in the folder stood in the ciphertext.
    std::env::current_dir().and_then(std::env::set_current_dir).map_err(failed)?;
    let unmounter = mounted.unmounter();
    let thread = std::thread::Builder::new().name("bywash-files".into()).spawn(move || mounted.serve()).map_err(failed)?;
    Ok(Private { unmounter, thread, folder })
}

impl Private {
    /// Unmounts it, after the program has ended; all is then on the disk.
    ///
    /// # Errors
    /// [`Exit::Failed`] if something that was written is lost.
    pub(crate) fn leave(self) -> Result<(), Failure> {
        let lost = |error: std::io::Error| stored::lost(&self.folder, &error);
        // We stand in it too, perhaps.
        let _ = std::env::set_current_dir("/");
        stored::store(&self.folder, || self.unmounter.store());
        match self.unmounter.unmount() {
            Ok(()) => match self.thread.join() {
                Ok(served) => served.map_err(lost),
                Err(_) => Err(lost(std::io::Error::other("a thread ended early"))),
            },
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                let folder = self.folder.shown();
                say!("bywash: note: programs that the command left behind still used {folder}; they cannot any more");
                self.unmounter.detach().map_err(lost)
            }
            Err(error) => Err(lost(error)),
        }
    }
}
