//! Passphrases, key files, recipients and identities as the command line names them.

use super::asked::{Asked, FIRST, NEW, OLD, ask};
use super::descriptor::Descriptor;
use crate::failure::{Exit, Failure};
use crate::key::first_line;
use crate::shown::Shown;
use bywash_client::Client;
use bywash_core::{KeyReference, SecretBytes};
use bywash_files::place::{Spot, open_regular};
use bywash_files::ssh::{self, SshKey};
use bywash_files::{Argon2Cost, Identity, KEY_BYTES, Keyring, Lock, Recipient};
use bywash_protocol::key_file;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Longest file of recipients or identities that is read, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Room for one that does not tell its length, as a pipe.
const TEXT_BYTES_USUAL: u64 = 1 << 16;
/// Longest file among sources that is looked at for identities, in bytes.
const IDENTITY_TEXT_BYTES_MAX: u64 = 1 << 16;
/// What the text of an identity begins with.
const IDENTITY: &str = "BYWASH-IDENTITY-";
/// What is to be given instead of an identity itself.
const FILE_OF_IT: &str = "give the file that it is in";

/// What files are made with, or opened with.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SecretArgs {
    /// A passphrase, asked for on the terminal
    #[arg(short, long)]
    passphrase: bool,
    /// A passphrase: the first line of this file
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// A passphrase: the next line of what this descriptor gives
    #[arg(long, value_name = "N", value_parser = Descriptor::named)]
    passphrase_fd: Option<Descriptor>,
    /// A key file: 32 random bytes, as `bywash keygen --key-file` makes; again for more
    #[arg(short, long, value_name = "FILE")]
    key_file: Vec<PathBuf>,
}

/// Who may open files.
#[derive(Debug, clap::Args)]
pub(super) struct LockArgs {
    #[command(flatten)]
    secrets: SecretArgs,
    /// A recipient (bywash-x25519-..., bywash-hybrid-..., bywash-p256-..., 'ssh-ed25519 ...'), a file
    /// with one a line, such as ~/.ssh/id_ed25519.pub, or bywash:NAME, a p256 key in the broker's
    /// vault (which is asked), or its key file; again for more
    #[arg(short, long, value_name = "RECIPIENT|FILE")]
    recipient: Vec<String>,
}

/// What files are opened with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    secrets: SecretArgs,
    /// A file with identities, as `bywash keygen` writes, an SSH key such as ~/.ssh/id_ed25519, or
    /// bywash:NAME, a p256 key in the broker's vault that may be used to derive, or its key file, also
    /// one from before the key was rotated; again for more
    #[arg(short, long, value_name = "FILE")]
    identity: Vec<PathBuf>,
}

impl KeyArgs {
    /// Whether none was given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { secrets: SecretArgs { passphrase, passphrase_file, passphrase_fd, key_file }, identity } = self;
        !passphrase && passphrase_file.is_none() && passphrase_fd.is_none() && key_file.is_empty() && identity.is_empty()
    }
}

/// Who may open files that are there, from now on.
#[derive(Debug, clap::Args)]
pub(super) struct NewKeyArgs {
    /// A new passphrase, asked for on the terminal; it is if nothing else is given
    #[arg(long)]
    new_passphrase: bool,
    /// A new passphrase: the first line of this file
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
    /// A new passphrase: the next line of what this descriptor gives
    #[arg(long, value_name = "N", value_parser = Descriptor::named)]
    new_passphrase_fd: Option<Descriptor>,
    /// A new key file; again for more
    #[arg(long, value_name = "FILE")]
    new_key_file: Vec<PathBuf>,
    /// A new recipient, as for `bywash encrypt -r`; again for more
    #[arg(long, value_name = "RECIPIENT|FILE")]
    new_recipient: Vec<String>,
}

impl NewKeyArgs {
    /// Whether none was given.
    pub(super) fn is_empty(&self) -> bool {
        self.is_passphrase_alone() && !self.has_passphrase()
    }

    /// Whether nothing but a passphrase was given.
    pub(super) fn is_passphrase_alone(&self) -> bool {
        self.new_key_file.is_empty() && self.new_recipient.is_empty()
    }

    /// Whether a passphrase is going to be asked for.
    pub(super) fn is_typed(&self) -> bool {
        self.new_passphrase && self.new_passphrase_file.is_none() && self.new_passphrase_fd.is_none() || self.is_empty()
    }

    fn has_passphrase(&self) -> bool {
        self.new_passphrase || self.new_passphrase_file.is_some() || self.new_passphrase_fd.is_some()
    }

    fn secrets(&self) -> SecretArgs {
        SecretArgs {
            passphrase: self.new_passphrase,
            passphrase_file: self.new_passphrase_file.clone(),
            passphrase_fd: self.new_passphrase_fd.clone(),
            key_file: self.new_key_file.clone(),
        }
    }

    /// The new passphrase alone, for what opens with nothing else; asked for if none was given.
    pub(super) fn passphrase(&self) -> Result<SecretBytes, Failure> {
        self.secrets().passphrase(NEW)?.map_or_else(|| ask(NEW), Ok)
    }

    /// The locks, each with what opens it, if that was given. A passphrase is asked for if nothing was.
    pub(super) fn locks(&self, client: &Client) -> Result<Vec<(Lock, Option<Keyring>)>, Failure> {
        let secrets = SecretArgs { passphrase: self.new_passphrase || self.is_empty(), ..self.secrets() };
        locks_of(&secrets, &self.new_recipient, NEW, client).map(|(locks, _)| locks)
    }
}

/// What a volume is opened with, or made with.
#[derive(Debug, clap::Args)]
pub(super) struct VolumeArgs {
    #[command(flatten)]
    keys: KeyArgs,
    /// With --init: a recipient (bywash-x25519-..., bywash-hybrid-..., 'ssh-ed25519 ...'), or a file
    /// with one a line, such as ~/.ssh/id_ed25519.pub; again for more
    #[arg(short, long, value_name = "RECIPIENT|FILE", requires = "init")]
    recipient: Vec<String>,
}

impl VolumeArgs {
    /// Who may open a new volume.
    pub(super) fn locks(&self, client: &Client) -> Result<Vec<Lock>, Failure> {
        let args = LockArgs { secrets: self.keys.secrets.clone(), recipient: self.recipient.clone() };
        args.locks(client).map(|found| found.locks)
    }

    /// What was given to open it with.
    pub(super) fn keys(&self) -> &KeyArgs {
        &self.keys
    }
}

impl SecretArgs {
    /// The files that they are read from.
    fn files(&self) -> Vec<PathBuf> {
        let by_descriptor = self.passphrase_fd.as_ref().map(Descriptor::path);
        self.key_file.iter().chain(&self.passphrase_file).cloned().chain(by_descriptor).collect()
    }

    fn passphrase(&self, asked: Asked<'_>) -> Result<Option<SecretBytes>, Failure> {
        match (&self.passphrase_file, &self.passphrase_fd) {
            (Some(_), Some(_)) => Err(Failure::new(Exit::Usage, "a passphrase from a file and one from a descriptor: give one of them")),
            (Some(_), None) | (None, Some(_)) if self.passphrase => {
                Err(Failure::new(Exit::Usage, "a passphrase that is given and one to be asked for: give one of them"))
            }
            (Some(file), None) => first_line("a passphrase", file).map(Some),
            (None, Some(descriptor)) => descriptor.passphrase().map(Some),
            (None, None) if self.passphrase => ask(asked).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn key_files(&self) -> Result<Vec<Zeroizing<[u8; KEY_BYTES]>>, Failure> {
        self.key_file.iter().map(|path| read_key_file(path)).collect()
    }
}

/// Who may open what is made.
pub(super) struct Locks {
    pub(super) locks: Vec<Lock>,
    /// With which files of an earlier run are known again.
    pub(super) keyring: Keyring,
    /// The recipients among them.
    pub(super) recipients: Vec<Recipient>,
}

impl LockArgs {
    /// The files that open what is made.
    pub(super) fn secret_files(&self) -> Vec<PathBuf> {
        self.secrets.files()
    }

    /// The locks that are asked for.
    pub(super) fn locks(&self, client: &Client) -> Result<Locks, Failure> {
        let (found, recipients) = locks_of(&self.secrets, &self.recipient, FIRST, client)?;
        if found.is_empty() {
            return Err(Failure::new(Exit::Usage, "nobody could open it: give -p (a passphrase), -k (a key file) or -r (a recipient)"));
        }
        let (locks, keyrings): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok(Locks { locks, keyring: keyrings.into_iter().flatten().collect(), recipients })
    }
}

/// Locks, each with what opens it, if that is here.
type Opened = Vec<(Lock, Option<Keyring>)>;

/// Each lock that is asked for, once; the recipients among them.
fn locks_of(secrets: &SecretArgs, given: &[String], asked: Asked<'_>, client: &Client) -> Result<(Opened, Vec<Recipient>), Failure> {
    let refused = |error: bywash_files::Error| Failure::failed(error.to_string());
    let mut locks = Vec::new();
    if let Some(passphrase) = secrets.passphrase(asked)? {
        let lock = Lock::passphrase(&passphrase, Argon2Cost::default()).map_err(refused)?;
        let mut keyring = Keyring::new();
        keyring.add_passphrase(passphrase);
        locks.push((lock, Some(keyring)));
    }
    let key_files = secrets.key_files()?;
    let is_first = |(at, key): &(usize, &Zeroizing<[u8; KEY_BYTES]>)| !key_files[..*at].contains(key);
    for (_, key) in key_files.iter().enumerate().filter(is_first) {
        let mut keyring = Keyring::new();
        keyring.add_key_file(key);
        locks.push((Lock::key_file(key), Some(keyring)));
    }
    let mut known: Vec<Recipient> = Vec::new();
    for given in given {
        for recipient in recipients(client, given)? {
            if !known.contains(&recipient) {
                locks.push((Lock::recipient(&recipient).map_err(refused)?, None));
                known.push(recipient);
            }
        }
    }
    Ok((locks, known))
}

impl KeyArgs {
    /// The files that open what is there.
    pub(super) fn secret_files(&self) -> Vec<PathBuf> {
        let mut files = self.secrets.files();
        files.extend(self.identity.iter().filter(|identity| in_vault(identity).is_none()).cloned());
        files
    }

    /// The passphrase alone, for what opens with nothing else; asked for if none was given.
    pub(super) fn passphrase(&self) -> Result<SecretBytes, Failure> {
        if !self.secrets.key_file.is_empty() || !self.identity.is_empty() {
            return Err(Failure::new(Exit::Usage, "a volume of gocryptfs is opened by its passphrase alone; leave -k and -i away"));
        }
        self.secrets.passphrase(OLD)?.map_or_else(|| ask(OLD), Ok)
    }

    /// What was given to open files with; a passphrase is asked for if nothing was.
    pub(crate) fn keyring(&self, client: &Client) -> Result<Keyring, Failure> {
        self.keyring_and_passphrase(client).map(|(keyring, _)| keyring)
    }

    /// The same, and the passphrase in it.
    pub(super) fn keyring_and_passphrase(&self, client: &Client) -> Result<(Keyring, Option<SecretBytes>), Failure> {
        let mut keyring = Keyring::new();
        let key_files = self.secrets.key_files()?;
        let is_bare = key_files.is_empty() && self.identity.is_empty();
        let passphrase = match self.secrets.passphrase(OLD)? {
            None if is_bare => Some(ask(OLD)?),
            given => given,
        };
        passphrase.iter().for_each(|passphrase| keyring.add_passphrase(passphrase.clone()));
        key_files.iter().for_each(|key| keyring.add_key_file(key));
        for path in &self.identity {
            identities(client, path)?.into_iter().for_each(|identity| keyring.add_identity(identity));
        }
        Ok((keyring, passphrase))
    }
}

fn read_key_file(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES + 1));
    let opened = File::open(path).and_then(|file| file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes));
    opened.map_err(|error| Failure::file("read", path, &error))?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        // As `keygen` writes them.
        let are_identities = bytes.starts_with(b"# ") || bytes.starts_with(IDENTITY.as_bytes());
        let why = match are_identities {
            true => "it has identities in it, it seems; give it with -i".to_owned(),
            false => format!("it has not {KEY_BYTES} bytes; make one with `bywash keygen --key-file FILE`"),
        };
        return Err(Failure::failed(format!("{} is no key file: {why}", path.shown())));
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = File::open(path).and_then(|file| {
        // All the room at once: a text that grows leaves copies behind. (One more byte tells the reader that it is the end.)
        text.reserve_exact(file.metadata()?.len().clamp(TEXT_BYTES_USUAL, TEXT_BYTES_MAX) as usize + 1);
        file.take(TEXT_BYTES_MAX).read_to_string(&mut text)
    });
    read.map_err(|error| Failure::file("read", path, &error))?;
    Ok(text)
}

/// The lines of a text that are neither empty nor comments, with their numbers.
fn meant(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// All that a file names, which is one at least.
fn some_of<T>(found: impl Iterator<Item = Result<T, Failure>>, none: impl FnOnce() -> String) -> Result<Vec<T>, Failure> {
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    if found.is_empty() { Err(Failure::config(none())) } else { Ok(found) }
}

/// The name of a key in the broker's vault, if that is what is meant.
fn in_vault(given: &Path) -> Option<&str> {
    given.to_str()?.strip_prefix(KeyReference::SCHEME)
}

/// The key in the broker's vault that a file names, if it is such a file (`bywash key uri`).
fn key_file_in(path: &Path, text: &str) -> Result<Option<KeyReference>, Failure> {
    match text.trim_start().strip_prefix("-----BEGIN ").is_some_and(|rest| rest.starts_with(key_file::LABEL)) {
        true => key_file::read(text.trim()).map(Some).map_err(|error| Failure::config(format!("{}: {error}", path.shown()))),
        false => Ok(None),
    }
}

fn vault_failure(name: &str, error: &bywash_files::Error) -> Failure {
    let exit = if matches!(error, bywash_files::Error::Engine(_)) { Exit::NoKey } else { Exit::Usage };
    Failure::new(exit, format!("{}{name}: {error}", KeyReference::SCHEME))
}

/// Refuses an identity itself where a path is looked for, which an error would show.
fn refuse_secret(given: &Path, instead: &str) -> Result<(), Failure> {
    match given.to_str().is_some_and(|text| text.trim().starts_with(IDENTITY)) {
        true => {
            Err(Failure::new(Exit::Usage, format!("an identity itself was given, which is secret, and other programs see it; {instead}")))
        }
        false => Ok(()),
    }
}

fn recipients(client: &Client, given: &str) -> Result<Vec<Recipient>, Failure> {
    refuse_secret(Path::new(given), "give its public half (bywash-x25519-...)")?;
    if given.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "-r: it is empty; is a variable of the shell not set?".to_owned()));
    }
    if let Some(name) = in_vault(Path::new(given)) {
        return Recipient::in_vault(client, name).map(|recipient| vec![recipient]).map_err(|error| vault_failure(name, &error));
    }
    // A recipient is meant as such, even if somebody has put a file of that name here.
    match given.parse() {
        Ok(recipient) => return Ok(vec![recipient]),
        Err(error) if (given.starts_with("bywash-") || ssh::is_public(given)) && !Path::new(given).exists() => {
            return Err(Failure::new(Exit::Usage, format!("{error}")));
        }
        Err(_) if is_of_others(given) && !Path::new(given).exists() => {
            let why =
                "it is a recipient of another program; bywash encrypts to what `bywash keygen` prints (bywash-x25519-...), and to SSH keys";
            return Err(Failure::new(Exit::Usage, format!("{given}: {why}")));
        }
        Err(_) => {}
    }
    let text = read_text(Path::new(given))?;
    if ssh::is_private(&text) {
        let why = "that is an SSH private key; give its public half, which ends in .pub";
        return Err(Failure::config(format!("{given}: {why}")));
    }
    if let Some(file) = key_file_in(Path::new(given), &text)? {
        let recipient = Recipient::by_key_file(client, &file).map_err(|error| vault_failure(&file.name, &error))?;
        return Ok(vec![recipient]);
    }
    let parse = |(number, line): (usize, &str)| match line.trim() {
        line if line.starts_with(IDENTITY) => {
            let why = format!(
                "that is an identity, which is secret; `bywash keygen --recipient {given}` prints the recipient that belongs to it"
            );
            Err(Failure::config(format!("{given}:{number}: {why}")))
        }
        line => line.parse().map_err(|error| Failure::config(format!("{given}:{number}: {error}"))),
    };
    some_of(meant(&text).map(parse), || format!("{given}: there is no recipient in it; `bywash keygen` prints one"))
}

/// Whether that is how age or OpenPGP name somebody.
fn is_of_others(given: &str) -> bool {
    ["age1", "0x"].iter().any(|start| given.starts_with(start)) || given.contains('@')
}

/// Whether a file of sources, of that length, has the identity of one of these recipients in it: whoever opens for them needs it.
pub(super) fn is_identity_of(recipients: &[Recipient], file: Spot<'_>, len: u64) -> bool {
    if recipients.is_empty() || len > IDENTITY_TEXT_BYTES_MAX {
        return false;
    }
    let mut text = Zeroizing::new(String::with_capacity(len as usize + 1));
    let read = open_regular(file, false).and_then(|(file, _)| file.take(len).read_to_string(&mut text));
    if ssh::is_private(&text) {
        return SshKey::parse(&text).and_then(|key| key.recipient()).is_ok_and(|recipient| recipients.contains(&recipient));
    }
    let mut identities = meant(&text).filter_map(|(_, line)| Identity::from_secret_text(line.trim()).ok());
    read.is_ok() && identities.any(|identity| recipients.contains(identity.recipient()))
}

/// The recipients of the identities in a file, or of the one in the broker's vault. SSH's key needs no passphrase for that.
pub(super) fn recipients_of(client: &Client, path: &Path) -> Result<Vec<Recipient>, Failure> {
    let recipients = |identities: Vec<Identity>| identities.iter().map(|identity| identity.recipient().clone()).collect();
    if in_vault(path).is_some() {
        return identities(client, path).map(recipients);
    }
    refuse_secret(path, FILE_OF_IT)?;
    // Once: what comes through a pipe does not come again.
    let text = read_identities(path)?;
    if ssh::is_private(&text) {
        let recipient = SshKey::parse(&text).and_then(|key| key.recipient()).map_err(|error| ssh_failure(path, &error))?;
        return Ok(vec![recipient]);
    }
    if let Some(file) = key_file_in(path, &text)? {
        return Recipient::by_key_file(client, &file).map(|recipient| vec![recipient]).map_err(|error| vault_failure(&file.name, &error));
    }
    identities_in(client, path, &text).map(recipients)
}

/// SSH's key, whose passphrase is asked for if it has one.
fn ssh_identity(path: &Path, text: &str) -> Result<Identity, Failure> {
    let failed = |error: bywash_files::Error| ssh_failure(path, &error);
    let key = SshKey::parse(text).map_err(failed)?;
    let prompt = format!("Passphrase of {}: ", path.shown());
    let asked =
        Asked { prompt: &prompt, is_new: false, instead: "a copy of the key without one (`ssh-keygen -p -f COPY`), or another key" };
    let passphrase = key.needs_passphrase().map_err(failed)?.then(|| ask(asked)).transpose()?;
    key.identity(passphrase.as_deref()).map_err(failed)
}

fn ssh_failure(path: &Path, error: &bywash_files::Error) -> Failure {
    let exit = if matches!(error, bywash_files::Error::WrongPassphrase) { Exit::NoKey } else { Exit::Config };
    Failure::new(exit, format!("{}: {error}", path.shown()))
}

/// The identities in a file, or the one in the broker's vault.
pub(super) fn identities(client: &Client, path: &Path) -> Result<Vec<Identity>, Failure> {
    refuse_secret(path, FILE_OF_IT)?;
    if let Some(name) = in_vault(path) {
        return Identity::in_vault(client, name).map(|identity| vec![identity]).map_err(|error| vault_failure(name, &error));
    }
    identities_in(client, path, &read_identities(path)?)
}

fn read_identities(path: &Path) -> Result<Zeroizing<String>, Failure> {
    read_text(path).map_err(|failure| match path.metadata() {
        Ok(there) if there.len() == KEY_BYTES as u64 => {
            Failure::config(format!("{}: no identity, it seems, but a key file; give it with -k", path.shown()))
        }
        _ => failure,
    })
}

fn identities_in(client: &Client, path: &Path, text: &str) -> Result<Vec<Identity>, Failure> {
    if ssh::is_private(text) {
        return ssh_identity(path, text).map(|identity| vec![identity]);
    }
    if let Some(file) = key_file_in(path, text)? {
        let identity = Identity::by_key_file(client, &file).map_err(|error| vault_failure(&file.name, &error))?;
        return Ok(vec![identity]);
    }
    let parse = |(number, line): (usize, &str)| {
        let is_recipient = line.trim().parse::<Recipient>().is_ok();
        Identity::from_secret_text(line.trim()).map_err(|error| {
            let why = if is_recipient {
                "that is a recipient; what it encrypts to its identity opens, so give the file of that".into()
            } else {
                error.to_string()
            };
            Failure::config(format!("{}:{number}: {why}", path.shown()))
        })
    };
    some_of(meant(text).map(parse), || format!("{}: there is no identity in it; make one with `bywash keygen -o FILE`", path.shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_in_the_place_of_another_is_told_where_it_belongs() {
        let (client, folder) = (crate::files::client().unwrap(), tempfile::tempdir().unwrap());
        let identity = Identity::generate(false).unwrap();
        let [secret, public] = ["me.identity", "me.recipient"].map(|name| folder.path().join(name));
        std::fs::write(&secret, [b"# of the tests\n", &identity.to_secret_text().unwrap()[..]].concat()).unwrap();
        std::fs::write(&public, format!("{}\n", identity.recipient())).unwrap();
        let said = [
            recipients(&client, secret.to_str().unwrap()).map(drop),
            identities(&client, &public).map(drop),
            read_key_file(&secret).map(drop),
            recipients(&client, "").map(drop),
        ];
        for (failure, way_out) in
            said.into_iter().zip(["keygen --recipient", "give the file of that", "give it with -i", "-r: it is empty"])
        {
            let message = failure.unwrap_err().message;
            assert!(message.contains(way_out), "{message}");
        }
    }

    #[test]
    fn an_identity_itself_is_refused_and_not_shown() {
        let client = crate::files::client().unwrap();
        for given in ["BYWASH-IDENTITY-X25519-hush", " BYWASH-IDENTITY-HYBRID-hush\n"] {
            let refused = [recipients(&client, given).map(drop), identities(&client, Path::new(given)).map(drop)];
            for failure in refused.map(Result::unwrap_err) {
                assert_eq!(failure.exit, Exit::Usage);
                assert!(failure.message.contains("which is secret") && !failure.message.contains("hush"), "{}", failure.message);
            }
        }
    }
}
