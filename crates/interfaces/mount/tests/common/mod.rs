//! A volume mounted for a test. Where that cannot be, the test says so and is skipped.

use bywash_client::{Client, Config};
use bywash_files::{Keyring, Lock};
use bywash_mount::{MountOptions, Native, Options, Unmounter, Volume, mount, open_root};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The key file of the tests' volumes.
pub(crate) const KEY: [u8; 32] = [7; 32];

/// A client without a broker.
pub(crate) fn client() -> Client {
    Client::new(Config { socket: Some("none".into()), ..Config::default() })
}

/// A volume's folder, and where it is mounted.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    served: Option<(Unmounter, JoinHandle<std::io::Result<()>>)>,
}

impl Fixture {
    /// A new volume, mounted; none where nothing can be mounted.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lower", "upper"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Volume::init(&client(), &folder.path().join("lower"), &[Lock::key_file(&KEY)], options).unwrap();
        let mut fixture = Self { folder, served: None };
        fixture.mount(false).then_some(fixture)
    }

    /// Where the ciphertext is.
    pub(crate) fn lower(&self) -> PathBuf {
        self.folder.path().join("lower")
    }

    /// Where the plaintext is.
    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.path().join("upper")
    }

    /// Mounts it; `false`, and the reason said, where that cannot be.
    pub(crate) fn mount(&mut self, is_read_only: bool) -> bool {
        match start(&self.lower(), &self.upper(), is_read_only) {
            Ok(served) => self.served = Some(served),
            Err(error) => eprintln!("skipped: nothing can be mounted here: {error}"),
        }
        self.served.is_some()
    }

    /// Unmounts it; then everything is on the disk.
    pub(crate) fn unmount(&mut self) {
        if let Some((mut unmounter, thread)) = self.served.take() {
            unmounter.unmount().unwrap();
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some((mut unmounter, thread)) = self.served.take() {
            // A test that fails has files open.
            let _ = unmounter.unmount();
            if !std::thread::panicking() {
                let _ = thread.join();
            }
        }
    }
}

fn start(lower: &Path, upper: &Path, is_read_only: bool) -> std::io::Result<(Unmounter, JoinHandle<std::io::Result<()>>)> {
    let mut keyring = Keyring::new();
    keyring.add_key_file(&KEY);
    let volume = Volume::open(&client(), lower, &keyring).unwrap();
    let root = open_root(lower)?;
    let native = Native::new(&client(), &volume, std::os::fd::AsFd::as_fd(&root), is_read_only)?;
    let options = MountOptions { is_read_only, source: lower.display().to_string(), ..MountOptions::default() };
    let mut mounted = mount(root, Arc::new(native), upper, &options)?;
    let unmounter = mounted.unmounter();
    Ok((unmounter, std::thread::spawn(move || mounted.serve())))
}
