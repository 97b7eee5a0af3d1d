//! A volume, and programs run on it under the hook. Where that cannot be, the test says so and is skipped.
#![allow(dead_code, reason = "not every test uses all of it")]

use bywash_client::{Client, Config};
use bywash_files::{Keyring, Lock};
use bywash_hook::{Hook, Hooked, support};
use bywash_mount::direct::Direct;
use bywash_mount::{MountOptions, Native, Options, Volume, mount, open_root};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: [u8; 32] = [7; 32];

fn client() -> Client {
    Client::new(Config { socket: Some("none".into()), ..Config::default() })
}

/// A volume's folder.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) output: Output,
    /// What was refused, line by line.
    pub(crate) told: Vec<String>,
}

impl Ran {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The program succeeded, and nothing was refused; gives what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(self.output.status.success(), "{}: {}{}", self.output.status, self.stderr(), self.told.join("\n"));
        assert_eq!(self.told, Vec::<String>::new());
        self.stdout()
    }
}

impl Fixture {
    /// A new volume; none where calls cannot be answered.
    pub(crate) fn new() -> Option<Self> {
        Self::new_in(tempfile::tempdir().unwrap())
    }

    /// The same, in that folder.
    pub(crate) fn new_in(folder: tempfile::TempDir) -> Option<Self> {
        Self::made(folder, &Options::default())
    }

    /// One whose names are in the clear.
    pub(crate) fn with_plain_names() -> Option<Self> {
        Self::made(tempfile::tempdir().unwrap(), &Options { has_plain_names: true, ..Options::default() })
    }

    fn made(folder: tempfile::TempDir, options: &Options) -> Option<Self> {
        if let Err(reason) = support() {
            eprintln!("skipped: {reason}");
            return None;
        }
        for name in ["lower", "outside"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let fixture = Self { folder };
        Volume::init(&client(), &fixture.lower(), &[Lock::key_file(&KEY)], options).unwrap();
        Some(fixture)
    }

    /// The volume's folder, where programs under the hook see plaintext.
    pub(crate) fn lower(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("lower")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn format(&self) -> (std::os::fd::OwnedFd, Arc<Native>) {
        let mut keyring = Keyring::new();
        keyring.add_key_file(&KEY);
        let root = open_root(&self.lower()).unwrap();
        let open = || {
            let volume = Volume::open(&client(), &self.lower(), &keyring)?;
            Ok::<_, bywash_files::Error>(Native::new(&client(), &volume, root.as_fd(), false)?)
        };
        // The threads of a hook that is over let the volume go a moment later, and so does what another test has forked and not started yet.
        for _ in 0..1000 {
            match open() {
                Ok(native) => return (root, Arc::new(native)),
                Err(bywash_files::Error::Io(error)) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the volume stays in use")
    }

    fn direct(&self) -> Direct {
        loop {
            let (root, native) = self.format();
            match Direct::new(root, native) {
                Ok(volume) => return volume,
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Runs a command under the hook to its end; `started` may do something with it meanwhile. `DIR` and `OUT` are the volume's folder and one outside.
    pub(crate) fn run_with(&self, command: &mut Command, started: impl FnOnce(&mut Child)) -> Ran {
        let told = Arc::new(Mutex::new(Vec::new()));
        let (mut child, hooked) = self.start(command, &told);
        started(&mut child);
        let output = child.wait_with_output().unwrap();
        assert!(hooked.wait_for(Duration::from_secs(60)), "processes are left");
        hooked.finish().unwrap();
        let told = told.lock().unwrap().clone();
        Ran { output, told }
    }

    /// Starts one; lines are added to `told`.
    pub(crate) fn start(&self, command: &mut Command, told: &Arc<Mutex<Vec<String>>>) -> (Child, Hooked) {
        let volume = Arc::new(self.direct());
        command.env("DIR", self.lower()).env("OUT", self.outside()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let hook = Hook::prepare(command).unwrap();
        let child = command.spawn().unwrap();
        let teller = told.clone();
        let tell = Box::new(move |line: &str| teller.lock().unwrap().push(line.to_owned()));
        (child, hook.begin(volume, &self.lower(), tell).unwrap())
    }

    pub(crate) fn run(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Ran {
        self.run_with(Command::new(program).args(arguments).stdin(Stdio::null()), |_| {})
    }

    pub(crate) fn shell(&self, script: &str) -> Ran {
        self.run("sh", &["-c", script])
    }

    /// Does something with the volume mounted; `false`, and the reason said, where nothing can be.
    pub(crate) fn mounted(&self, work: impl FnOnce(&Path)) -> bool {
        let upper = self.folder.path().join("upper");
        std::fs::create_dir_all(&upper).unwrap();
        // Nobody else serves it any more.
        self.check();
        let (root, native) = self.format();
        let mounted = match mount(root, native, &upper, &MountOptions { source: "test".into(), ..MountOptions::default() }) {
            Ok(mounted) => mounted,
            Err(error) => {
                eprintln!("skipped: nothing can be mounted here: {error}");
                return false;
            }
        };
        let unmounter = mounted.unmounter();
        let thread = std::thread::spawn(move || mounted.serve());
        work(&upper);
        unmounter.unmount().unwrap();
        thread.join().unwrap().unwrap();
        true
    }

    /// Nothing is damaged.
    pub(crate) fn check(&self) {
        // What recovering finds is put right as at any mount.
        self.direct().end().unwrap();
    }

    /// How many bytes of files the disk holds in the volume's own folder.
    pub(crate) fn size(&self) -> u64 {
        self.lower()
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap())
            .filter(|file| file.is_file())
            .map(|file| file.len())
            .sum()
    }

    /// Whether these bytes are anywhere in the volume's files or their names, as they lie on the disk.
    pub(crate) fn holds(&self, needle: &str) -> bool {
        let mut folders = vec![self.lower()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                let name_has = path.file_name().unwrap().to_string_lossy().contains(needle);
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if name_has || (!path.is_symlink() && contains(&std::fs::read(&path).unwrap(), needle)) {
                    return true;
                }
            }
        }
        false
    }
}

/// Waits until it is so.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come to be");
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// A C program, compiled; none, and the reason said, where it cannot be.
pub(crate) fn compiled(source: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    match Command::new("cc").args(["-O2", "-pthread"]).args(options).arg(source).arg("-o").arg(&program).output() {
        Err(error) => eprintln!("skipped: no C compiler: {error}"),
        Ok(output) if !output.status.success() => eprintln!("skipped: cc {options:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Ok(_) => return Some(program),
    }
    None
}
