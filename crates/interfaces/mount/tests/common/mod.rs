//! A volume mounted for a test. Where that cannot be, the test says so and is skipped.

use bywash_client::{Client, Config};
use bywash_files::{Keyring, Lock};
use bywash_mount::format::Format;
use bywash_mount::fsck::{Checked, Finding};
use bywash_mount::gocryptfs::{Config as GocryptfsConfig, Gocryptfs};
use bywash_mount::{MountOptions, Native, Options, Unmounter, Volume, mount, open_root};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The key file of the tests' volumes.
pub(crate) const KEY: [u8; 32] = [7; 32];

const PASSPHRASE: &str = "correct horse";

/// A client without a broker.
pub(crate) fn client() -> Client {
    Client::new(Config { socket: Some("none".into()), ..Config::default() })
}

/// A volume's folder, and where it is mounted.
pub(crate) struct Fixture {
    lower: PathBuf,
    upper: PathBuf,
    /// Where both are, if it is the fixture's own.
    _folder: Option<tempfile::TempDir>,
    turn: Option<Duration>,
    served: Option<(Unmounter, JoinHandle<std::io::Result<()>>)>,
}

impl Fixture {
    #[allow(dead_code, reason = "not every test needs it")]
    /// A new volume, mounted; none where nothing can be mounted.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        let mut fixture = Self::empty();
        Volume::init(&client(), &fixture.lower, &[Lock::key_file(&KEY)], options).unwrap();
        fixture.mount(false).then_some(fixture)
    }

    /// Two empty folders.
    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [lower, upper] = ["lower", "upper"].map(|name| folder.path().join(name));
        for folder in [&lower, &upper] {
            std::fs::create_dir(folder).unwrap();
        }
        Self { lower, upper, _folder: Some(folder), turn: None, served: None }
    }

    /// A new volume in that empty folder, mounted over the other.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn over(lower: &Path, upper: &Path, options: &Options, turn: Duration) -> Self {
        Volume::init(&client(), lower, &[Lock::key_file(&KEY)], options).unwrap();
        let mut fixture = Self { lower: lower.into(), upper: upper.into(), _folder: None, turn: Some(turn), served: None };
        assert!(fixture.mount(false));
        fixture
    }

    /// A volume that is there, mounted.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn of(lower: &Path, upper: &Path, is_read_only: bool) -> std::io::Result<Self> {
        let served = Some(start(lower, upper, is_read_only, None)?);
        Ok(Self { lower: lower.into(), upper: upper.into(), _folder: None, turn: None, served })
    }

    /// One in gocryptfs' format, which gocryptfs makes; none where it is not there, or nothing can be mounted.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn gocryptfs() -> Option<Self> {
        let mut fixture = Self::empty();
        let passphrase = fixture.upper.with_file_name("passphrase");
        std::fs::write(&passphrase, PASSPHRASE).unwrap();
        let mut init = std::process::Command::new("gocryptfs");
        init.args(["-q", "-init", "-scryptn", "10", "-passfile"]).arg(passphrase).arg(&fixture.lower);
        if !init.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: gocryptfs is not installed (apt-get install gocryptfs)");
            return None;
        }
        fixture.mount(false).then_some(fixture)
    }

    /// Nothing in it is damaged, or left to recover.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn assert_clean(&self) {
        assert_eq!(look(&self.lower, "it is unmounted").unsettled, 0);
    }

    /// Where the plaintext is.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn upper(&self) -> PathBuf {
        self.upper.clone()
    }

    /// Where the ciphertext is.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn lower(&self) -> &Path {
        &self.lower
    }

    /// Mounts it; `false`, and the reason said, where that cannot be.
    pub(crate) fn mount(&mut self, is_read_only: bool) -> bool {
        match patiently(|| start(&self.lower, &self.upper, is_read_only, self.turn)) {
            Ok(served) => self.served = Some(served),
            Err(error) => eprintln!("skipped: nothing can be mounted here: {error}"),
        }
        self.served.is_some()
    }

    /// Tries once.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn try_to_unmount(&self) -> std::io::Result<()> {
        self.served.as_ref().map_or(Ok(()), |(unmounter, _)| unmounter.unmount())
    }

    /// Waits for the end of one that somebody unmounts.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn join(&mut self) {
        if let Some((_, thread)) = self.served.take() {
            thread.join().unwrap().unwrap();
        }
    }

    /// Mounts it where another was, from the next time on.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn move_to(&mut self, other: &Self) {
        self.upper = other.upper();
    }

    /// Removes what was written to the bare folder while nothing was mounted over it.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn empty_upper(&self) {
        assert!(self.served.is_none());
        for entry in std::fs::read_dir(&self.upper).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    /// Unmounts it; then everything is on the disk.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn unmount(&mut self) {
        if let Some((unmounter, thread)) = self.served.take() {
            patiently(|| unmounter.unmount()).unwrap();
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some((unmounter, thread)) = self.served.take() {
            // A test that fails has files open.
            if std::thread::panicking() {
                let _ = unmounter.unmount();
            } else if patiently(|| unmounter.unmount()).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

/// Takes away what is mounted there, as `umount` does, or for users its helper.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn unmount(target: &Path) {
    let attempt = || {
        let outcome = rustix::mount::unmount(target, rustix::mount::UnmountFlags::empty());
        if outcome != Err(rustix::io::Errno::PERM) {
            return Ok(outcome?);
        }
        let status = std::process::Command::new("fusermount3").arg("-u").arg(target).status()?;
        if status.success() { Ok(()) } else { Err(std::io::ErrorKind::ResourceBusy.into()) }
    };
    patiently(attempt).unwrap_or_else(|error| panic!("{}: {error}", target.display()));
}

/// Looks at all of a volume that is not mounted, in which nothing may be damaged.
pub(crate) fn look(lower: &Path, what: &str) -> Checked {
    let root = open_root(lower).unwrap();
    let format = patiently(|| format(lower, &root, true)).unwrap();
    let report = &mut |finding: Finding<'_>| match finding {
        Finding::Damaged(path, why) => panic!("{what}: {}: {why}", path.display()),
        Finding::Foreign(path) => panic!("{what}: {}: foreign", path.display()),
        Finding::Unsettled(..) => {}
    };
    bywash_mount::fsck::check(&*format, root, report, &mut |_| ()).unwrap()
}

/// A process that another test is just starting holds for a moment what this one has open.
fn patiently<T>(mut attempt: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    for _ in 0..100 {
        match attempt() {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(Duration::from_millis(50)),
            outcome => return outcome,
        }
    }
    attempt()
}

/// The format of the volume in a folder.
pub(crate) fn format(lower: &Path, root: &std::os::fd::OwnedFd, is_read_only: bool) -> std::io::Result<Arc<dyn Format>> {
    if let Ok(config) = std::fs::read(lower.join("gocryptfs.conf")) {
        let config = GocryptfsConfig::parse(&config).unwrap();
        return Ok(Arc::new(Gocryptfs::unlock(&config, PASSPHRASE.as_bytes(), &client()).unwrap()));
    }
    let mut keyring = Keyring::new();
    keyring.add_key_file(&KEY);
    let volume = Volume::open(&client(), lower, &keyring).map_err(|error| match error {
        bywash_files::Error::Io(error) => error,
        error => panic!("{}: {error}", lower.display()),
    })?;
    let native = Native::new(&client(), &volume, root.as_fd(), is_read_only)?;
    // Such a name stands for a file system that does not keep the order of what is removed.
    Ok(Arc::new(if lower.ends_with("unordered") { native.without_order() } else { native }))
}

fn start(
    lower: &Path,
    upper: &Path,
    is_read_only: bool,
    turn: Option<Duration>,
) -> std::io::Result<(Unmounter, JoinHandle<std::io::Result<()>>)> {
    let root = open_root(lower)?;
    let format = format(lower, &root, is_read_only)?;
    let options = MountOptions { is_read_only, source: lower.display().to_string(), turn, ..MountOptions::default() };
    let mounted = mount(root, format, upper, &options)?;
    let unmounter = mounted.unmounter();
    Ok((unmounter, std::thread::spawn(move || mounted.serve())))
}
