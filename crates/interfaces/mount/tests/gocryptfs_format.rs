//! gocryptfs itself as the second implementation: what it wrote is read here, and what is written here it reads, for every kind of volume it makes.

use bywash_client::{Client, Config as ClientConfig};
use bywash_files::disk::Access;
use bywash_mount::format::{Entry, FolderId, Format};
use bywash_mount::gocryptfs::{Config, Error, Gocryptfs};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Everything in a tree, by path: contents, or targets of links after an arrow.
type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

struct Volume {
    folder: tempfile::TempDir,
}

impl Volume {
    /// Made by gocryptfs; none where it cannot run.
    fn new(options: &[&str]) -> Option<Self> {
        let volume = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["lower", "upper"] {
            fs::create_dir(volume.at(name)).unwrap();
        }
        fs::write(volume.at("passphrase"), "correct horse\n").unwrap();
        let mut init = Command::new("gocryptfs");
        init.args(["-q", "-init", "-scryptn", "10", "-passfile"]).arg(volume.at("passphrase")).args(options).arg(volume.at("lower"));
        match init.status() {
            Err(_) => eprintln!("skipped: gocryptfs is not installed (apt-get install gocryptfs)"),
            Ok(_) if !Path::new("/dev/fuse").exists() => eprintln!("skipped: there is no /dev/fuse"),
            Ok(status) if !status.success() => eprintln!("skipped: this gocryptfs does not know {options:?}"),
            Ok(_) => return Some(volume),
        }
        None
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs something on what gocryptfs shows.
    fn mounted<T>(&self, run: impl FnOnce(&Path) -> T) -> T {
        let mut mount = Command::new("gocryptfs");
        mount.args(["-q", "-passfile"]).arg(self.at("passphrase")).args([self.at("lower"), self.at("upper")]);
        assert!(mount.stderr(Stdio::inherit()).status().unwrap().success());
        let outcome = run(&self.at("upper"));
        // The last file that was closed may be busy for a moment.
        let unmount = || Command::new("fusermount3").arg("-u").arg(self.at("upper")).stderr(Stdio::null()).status().unwrap().success();
        assert!(
            (0..500).any(|_| unmount() || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }),
            "it cannot be unmounted"
        );
        outcome
    }

    fn open(&self, passphrase: &[u8]) -> Result<Gocryptfs, Error> {
        let config = Config::parse(&fs::read(self.at("lower/gocryptfs.conf")).unwrap())?;
        Gocryptfs::unlock(&config, passphrase, &Client::new(ClientConfig::default()))
    }
}

fn folder_id(format: &Gocryptfs, folder: &Path) -> FolderId {
    let name = format.folder_file().map(|name| OsStr::from_bytes(name.to_bytes()));
    name.map_or(FolderId::default(), |name| fs::read(folder.join(name)).unwrap().try_into().unwrap())
}

/// A tree through the format.
fn read_lower(format: &Gocryptfs, folder: &Path, prefix: &[u8], is_root: bool, tree: &mut Tree) {
    let id = folder_id(format, folder);
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let lower = CString::new(entry.file_name().as_bytes()).unwrap();
        let sealed = match format.classify(&lower, is_root) {
            Entry::Hidden => continue,
            Entry::Named => lower.to_bytes().to_vec(),
            Entry::Long(side) => fs::read(folder.join(OsStr::from_bytes(side.to_bytes()))).unwrap(),
            Entry::Foreign => panic!("{lower:?} is foreign"),
        };
        let name = format.open_name(&id, &sealed).unwrap();
        // Sealing it again leads to the same place.
        let again = format.seal_name(&id, &name).unwrap();
        assert_eq!((&again.name, again.long.is_some_and(|long| long.sealed != sealed)), (&lower, false));
        let path = [prefix, b"/", &name].concat();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            read_lower(format, &entry.path(), &path, false, tree);
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            tree.insert(path, [b"-> ", &format.open_target(target.as_os_str().as_bytes()).unwrap()[..]].concat());
        } else {
            let content = format.open(Arc::new(File::open(entry.path()).unwrap()), Access::Read).unwrap();
            let mut text = vec![0; content.len() as usize + 1];
            let len = content.read_at(&mut text, 0).unwrap();
            text.truncate(len);
            assert_eq!(format.text_len(entry.metadata().unwrap().len()).unwrap(), len as u64);
            tree.insert(path, text);
        }
    }
}

fn read_upper(folder: &Path, prefix: &[u8], tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = [prefix, b"/", entry.file_name().as_bytes()].concat();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            read_upper(&entry.path(), &path, tree);
        } else if kind.is_symlink() {
            tree.insert(path, [b"-> ", fs::read_link(entry.path()).unwrap().as_os_str().as_bytes()].concat());
        } else {
            tree.insert(path, fs::read(entry.path()).unwrap());
        }
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 3) as u8).collect()
}

/// A name whose sealed form has no room in a lower name.
fn long_name() -> String {
    "long".repeat(60)
}

const KINDS: [&[&str]; 6] = [&[], &["-plaintextnames"], &["-xchacha"], &["-aessiv"], &["-deterministic-names"], &["-longnamemax", "100"]];

#[test]
fn what_gocryptfs_wrote_is_read() {
    for options in KINDS {
        let Some(volume) = Volume::new(options) else { continue };
        let written = volume.mounted(|upper| {
            fs::create_dir_all(upper.join("a/b")).unwrap();
            for len in [0, 1, 4095, 4096, 4097, 300_000] {
                fs::write(upper.join(format!("a/{len}")), text(len)).unwrap();
            }
            fs::write(upper.join("a/b").join(long_name()), "long").unwrap();
            symlink("../somewhere else", upper.join("a/link")).unwrap();
            // A hole, and a file cut in the middle of a block.
            let holed = File::create(upper.join("holed")).unwrap();
            std::os::unix::fs::FileExt::write_at(&holed, b"end", 50_000).unwrap();
            let cut = File::create(upper.join("cut")).unwrap();
            std::os::unix::fs::FileExt::write_at(&cut, &text(10_000), 0).unwrap();
            cut.set_len(5_000).unwrap();
            let mut tree = Tree::new();
            read_upper(upper, b"", &mut tree);
            tree
        });
        let mut read = Tree::new();
        read_lower(&volume.open(b"correct horse").unwrap(), &volume.at("lower"), b"", true, &mut read);
        assert!(read == written, "{options:?}: {:?} instead of {:?}", read.keys(), written.keys());
        assert!(written.len() >= 9);
        assert!(matches!(volume.open(b"wrong"), Err(Error::WrongPassphrase)));
    }
}

#[test]
fn what_is_written_here_gocryptfs_reads() {
    for options in KINDS {
        let Some(volume) = Volume::new(options) else { continue };
        let format = volume.open(b"correct horse").unwrap();
        let lower = volume.at("lower");
        let id = folder_id(&format, &lower);
        let mut written = Tree::new();
        let mut random = fastrand::Rng::with_seed(1);
        for number in 0..20 {
            let name = if number == 0 { long_name() } else { format!("file {number}") };
            let sealed = format.seal_name(&id, name.as_bytes()).unwrap();
            if let Some(long) = &sealed.long {
                fs::write(lower.join(OsStr::from_bytes(long.side_file.to_bytes())), &long.sealed).unwrap();
            }
            let path = lower.join(OsStr::from_bytes(sealed.name.to_bytes()));
            let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
            let (content, mut model) = (format.create(Arc::new(file)).unwrap(), Vec::new());
            for _ in 0..random.usize(..6) {
                let (at, bytes) = (random.usize(..20_000), text(random.usize(1..10_000)));
                content.write_at(&bytes, at as u64).unwrap();
                model.resize(model.len().max(at + bytes.len()), 0);
                model[at..at + bytes.len()].copy_from_slice(&bytes);
                let len = random.usize(..30_000);
                content.set_len(len as u64).unwrap();
                model.resize(len, 0);
            }
            content.settle().unwrap();
            written.insert(format!("/{name}").into_bytes(), model);
        }
        let link = format.seal_name(&id, b"link").unwrap();
        let target = format.seal_target(b"where it leads").unwrap();
        symlink(OsStr::from_bytes(&target), lower.join(OsStr::from_bytes(link.name.to_bytes()))).unwrap();
        written.insert(b"/link".to_vec(), b"-> where it leads".to_vec());
        let read = volume.mounted(|upper| {
            let mut tree = Tree::new();
            read_upper(upper, b"", &mut tree);
            tree
        });
        assert!(read == written, "{options:?}: {:?} instead of {:?}", read.keys(), written.keys());
    }
}
