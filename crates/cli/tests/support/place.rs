//! A folder with files and what opens them.

use super::{bywash, refused, succeed};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with a key file and a passphrase file.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("key")));
        fs::write(place.at("passphrase"), "correct horse\n").unwrap();
        fs::set_permissions(place.at("passphrase"), fs::Permissions::from_mode(0o600)).unwrap();
        place
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    /// The command in this folder, with its key file.
    pub(crate) fn bywash(&self, arguments: &[&str]) -> Command {
        let mut command = bywash();
        command.current_dir(self.folder.path()).args(arguments).args(["-k", "key"]);
        command
    }

    pub(crate) fn refused(&self, arguments: &[&str], exit: i32, says: &str) -> Output {
        refused(&mut self.bywash(arguments), exit, says)
    }
}

pub(crate) fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 3) as u8).collect()
}

pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}
