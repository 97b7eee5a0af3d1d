//! Where the keys are: at the running broker, or in a folder that no broker uses.

use super::source::first_line;
use crate::broker_link::{KeyAnswer, Link, socket_path};
use crate::failure::{Exit, Failure};
use crate::terminal::say;
use bywash_protocol::keys::{KeyCommand, KeyInfo, key_error};
use bywash_vault::{Material, Vault};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which vault.
#[derive(Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Work on this folder of keys, while no broker does
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    keys: Option<PathBuf>,
    /// A file whose first line is the passphrase under which the folder's keys are encrypted
    #[arg(long, value_name = "FILE", requires = "keys")]
    keys_passphrase: Option<PathBuf>,
}

/// A vault within reach.
pub(super) enum Place {
    /// At a broker.
    Broker(Link),
    /// In a folder.
    Folder(Vault),
}

/// Opens a folder of keys.
pub(crate) fn open_vault(folder: &Path, passphrase: Option<&Path>) -> Result<Vault, Failure> {
    let passphrase = passphrase.map(|file| first_line("a passphrase", file)).transpose()?;
    Ok(Vault::open(folder, passphrase.as_deref())?)
}

impl Place {
    /// The folder that is named, else the broker. A folder that is not there is made for who `makes` a key.
    pub(super) fn find(args: &PlaceArgs, makes: bool) -> Result<Self, Failure> {
        if let Some(folder) = &args.keys {
            if !makes && !folder.exists() {
                let way_out = "check the path; `bywash key generate` and `import` make it";
                return Err(Failure::config(format!("no folder {}: {way_out}", folder.display())));
            }
            return open_vault(folder, args.keys_passphrase.as_deref()).map(Self::Folder);
        }
        let link = Link::connect(&socket_path(args.socket.as_deref())).map_err(|failure| match failure.exit {
            Exit::NoBroker => Failure::new(Exit::NoBroker, format!("{}; or work on its folder with --keys DIR", failure.message)),
            _ => failure,
        });
        link.map(Self::Broker)
    }

    /// Changes a key; gives its public half.
    pub(super) fn change(&mut self, command: &KeyCommand<'_>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Broker(link) => match link.keys(command)? {
                KeyAnswer::Key(public) => Ok(public),
                KeyAnswer::Keys(_) => {
                    Err(Failure::failed("the broker's answer does not fit the question; use broker and command of one release"))
                }
            },
            Self::Folder(vault) => Ok(obey(vault, command)?.map_or_else(Vec::new, |material| material.public().to_vec())),
        }
    }

    /// All keys.
    pub(super) fn list(&mut self) -> Result<Vec<KeyInfo>, Failure> {
        match self {
            Self::Broker(link) => match link.keys(&KeyCommand::List)? {
                KeyAnswer::Keys(keys) => Ok(keys),
                KeyAnswer::Key(_) => {
                    Err(Failure::failed("the broker's answer does not fit the question; use broker and command of one release"))
                }
            },
            Self::Folder(vault) => Ok(vault.list()),
        }
    }

    /// One of them.
    pub(super) fn find_key(&mut self, name: &str) -> Result<KeyInfo, Failure> {
        let found = self.list()?.into_iter().find(|key| key.name == name);
        found.ok_or_else(|| key_error(name, "there is no such key; `bywash key list` shows those there are").into())
    }

    /// The public half of a key.
    pub(super) fn public(&mut self, name: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Broker(link) => link.describe_key(name),
            Self::Folder(vault) => Ok(vault.find(name, None)?.material.public().to_vec()),
        }
    }
}

/// Of these users, those who cannot connect to a broker, as its socket stands: they could use no key there. Empty where that cannot be told.
fn shut_out(socket: &Path, uids: &[u32]) -> Vec<u32> {
    const OTHERS: u32 = 0o006;
    match socket.metadata() {
        Ok(found) if found.mode() & OTHERS != OTHERS => uids.iter().copied().filter(|&uid| uid != 0 && uid != found.uid()).collect(),
        _ => Vec::new(),
    }
}

impl PlaceArgs {
    /// Says so if users who may use a key cannot connect to the broker.
    pub(super) fn warn_of_shut_out(&self, uids: &[u32]) {
        if self.keys.is_some() {
            return;
        }
        let socket = socket_path(self.socket.as_deref());
        for uid in shut_out(&socket, uids) {
            let path = socket.display();
            say!("bywash: uid {uid} may use it, but cannot connect to the broker at {path}: start that with --allow-uid {uid}, too");
        }
    }
}

fn obey(vault: &Vault, command: &KeyCommand<'_>) -> bywash_core::Result<Option<std::sync::Arc<Material>>> {
    Ok(match command {
        KeyCommand::Import { name, private, policy } => Some(vault.import(name, private, policy.clone())?),
        KeyCommand::Generate { name, algorithm, policy } => Some(vault.generate(name, *algorithm, policy.clone())?),
        KeyCommand::Rotate { name, private, grace_s } => Some(vault.rotate(name, *private, Duration::from_secs(*grace_s))?),
        KeyCommand::Policy { name, policy } => Some(vault.set_policy(name, policy.clone())?),
        KeyCommand::Remove { name } => vault.remove(name).map(|()| None)?,
        KeyCommand::List => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_cannot_connect_is_told_by_the_sockets_mode() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mode = |mode| std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(mode)).unwrap();
        let own = socket.metadata().unwrap().uid();
        mode(0o600);
        assert_eq!(shut_out(&socket, &[own, 0, own + 1, own + 2]), [own + 1, own + 2]);
        mode(0o666);
        assert!(shut_out(&socket, &[own + 1]).is_empty());
        assert!(shut_out(&folder.path().join("none"), &[own + 1]).is_empty());
    }
}
