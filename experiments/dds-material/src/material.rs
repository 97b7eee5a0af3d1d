//! The folder, and the `openssl` command that fills it.

use crate::documents;
use crate::governance::Governance;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Days for which certificates hold: of measurements that take an hour, and of trying it out for some weeks.
const DAYS: &str = "90";
/// Days for which authorities hold, and seconds for which one must hold yet to sign for a participant: longer than that one's own certificate.
const AUTHORITY_DAYS: &str = "365";
const AUTHORITY_LEFT: &str = "8000000";

/// Why there is no material.
#[derive(Debug)]
pub enum Error {
    /// A file could not be written or read.
    File(PathBuf, std::io::Error),
    /// `openssl` could not be started, or said no; its own words are the rest.
    Openssl(String),
    /// A participant's name that would not be one in a subject or a file name.
    Name(String),
    /// An authority in the folder cannot go on, and participants are there that are of it.
    Authority(PathBuf),
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(to, "cannot write {}: {error}", path.display()),
            Self::Openssl(said) => write!(to, "the openssl command (Debian: openssl) did not make DDS material: {said}"),
            Self::Authority(path) => write!(
                to,
                "{}: its key is missing or not its own, or it ends within three months; make a new folder, for this one's participants are of it",
                path.display()
            ),
            Self::Name(name) => write!(to, "'{name}' is no name for a participant: letters, digits and dashes only, please"),
        }
    }
}

impl std::error::Error for Error {}

/// Two certificate authorities and a governance, in a folder.
#[derive(Clone, Debug)]
pub struct Material {
    folder: PathBuf,
    governance: Governance,
}

/// One who may take part: a folder with the file names of a ROS 2 enclave.
#[derive(Clone, Debug)]
pub struct Participant {
    folder: PathBuf,
    governance: Governance,
}

impl Material {
    /// Makes the authorities, if they are not there, and signs the governance, which participants that are there get too. The folder is made if it is not there, for its
    /// owner alone.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Openssl`], [`Error::Authority`].
    pub fn make(folder: &Path, governance: Governance) -> Result<Self, Error> {
        make_folder(folder)?;
        let folder = folder.canonicalize().map_err(|error| Error::File(folder.to_owned(), error))?;
        let made = Self { folder, governance };
        // Not the system's or the user's: what they add to a certificate is not what is asked for here.
        write(&made.path("openssl.cnf"), CONFIGURATION)?;
        for (name, file) in [("Bywash identity CA", "identity_ca"), ("Bywash permissions CA", "permissions_ca")] {
            let (key, certificate) = (format!("{file}.key.pem"), format!("{file}.cert.pem"));
            if made.can_sign(&key, &certificate) {
                continue;
            }
            if made.path(&certificate).exists() && made.participants()?.next().is_some() {
                return Err(Error::Authority(made.path(&certificate)));
            }
            made.openssl(&[
                &["req", "-x509", "-extensions", "authority", "-subj", &format!("/CN={name}")],
                NEW_KEY,
                &["-days", AUTHORITY_DAYS],
                &["-keyout", &key, "-out", &certificate],
            ])?;
        }
        made.sign(&documents::governance(&governance), "governance")?;
        for participant in made.participants()? {
            made.copy("governance.p7s", &participant.join("governance.p7s"))?;
        }
        Ok(made)
    }

    /// Makes a participant's key, certificate and permissions.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::File`], [`Error::Openssl`].
    pub fn participant(&self, name: &str) -> Result<Participant, Error> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Error::Name(name.to_owned()));
        }
        let folder = self.path(name);
        make_folder(&folder)?;
        let at = |file: &str| format!("{name}/{file}");
        let (request, key, certificate) = (at("request.pem"), at("key.pem"), at("cert.pem"));
        self.openssl(&[&["req", "-new", "-subj", &format!("/CN={name}"), "-keyout", &key, "-out", &request], NEW_KEY])?;
        self.openssl(&[
            &["x509", "-req", "-in", &request, "-CA", "identity_ca.cert.pem", "-CAkey", "identity_ca.key.pem", "-CAcreateserial"],
            &["-extfile", "openssl.cnf", "-extensions", "participant", "-days", DAYS, "-out", &certificate],
        ])?;
        self.sign(&documents::permissions(name), &at("permissions"))?;
        for file in ["identity_ca.cert.pem", "permissions_ca.cert.pem", "governance.p7s"] {
            self.copy(file, &folder.join(file))?;
        }
        Ok(Participant { folder, governance: self.governance })
    }

    /// What is protected.
    pub fn governance(&self) -> Governance {
        self.governance
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// The folders of participants.
    fn participants(&self) -> Result<impl Iterator<Item = PathBuf>, Error> {
        let entries = std::fs::read_dir(&self.folder).map_err(|error| Error::File(self.folder.clone(), error))?;
        Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.join("cert.pem").exists()))
    }

    /// Whether an authority is there, with its own key, and holds for long enough.
    fn can_sign(&self, key: &str, certificate: &str) -> bool {
        let of_key = self.output(&[&["pkey", "-pubout", "-passin", "pass:", "-in", key]]);
        let of_certificate = self.output(&[&["x509", "-noout", "-pubkey", "-in", certificate]]);
        let is_own = matches!((of_key, of_certificate), (Ok(key), Ok(certificate)) if key == certificate);
        is_own && self.openssl(&[&["x509", "-noout", "-checkend", AUTHORITY_LEFT, "-in", certificate]]).is_ok()
    }

    /// Copies a file of the folder to a participant; a link that leads to it, as in a keystore of ROS 2, stays one.
    fn copy(&self, file: &str, to: &Path) -> Result<(), Error> {
        let from = self.path(file);
        if to.is_symlink() && to.canonicalize().ok() == from.canonicalize().ok() {
            return Ok(());
        }
        std::fs::copy(from, to).map(drop).map_err(|error| Error::File(to.to_owned(), error))
    }

    /// Writes a document and its signed form beside it, `.xml` and `.p7s`.
    fn sign(&self, document: &str, stem: &str) -> Result<(), Error> {
        let (plain, signed) = (format!("{stem}.xml"), format!("{stem}.p7s"));
        write(&self.path(&plain), document)?;
        self.openssl(&[
            &["smime", "-sign", "-text", "-in", &plain, "-out", &signed],
            &["-signer", "permissions_ca.cert.pem", "-inkey", "permissions_ca.key.pem"],
        ])
    }

    /// Runs `openssl` in the folder.
    fn openssl(&self, arguments: &[&[&str]]) -> Result<(), Error> {
        self.output(arguments).map(drop)
    }

    /// Runs `openssl` in the folder; what it prints.
    fn output(&self, arguments: &[&[&str]]) -> Result<Vec<u8>, Error> {
        let mut command = Command::new("openssl");
        command.current_dir(&self.folder).env("OPENSSL_CONF", "openssl.cnf").args(arguments.iter().copied().flatten());
        let output = command.output().map_err(|error| Error::Openssl(format!("it cannot be started: {error}")))?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(Error::Openssl(said())) }
    }
}

impl Participant {
    /// The folder: a ROS 2 enclave.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is protected in its domain.
    pub fn governance(&self) -> Governance {
        self.governance
    }

    /// A file of it as DDS implementations want it named.
    pub(crate) fn uri(&self, file: &str) -> String {
        format!("file:{}", self.folder.join(file).display())
    }
}

/// A new key on P-256, not encrypted.
const NEW_KEY: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"];

/// An authority signs documents as well as certificates; with `keyCertSign` alone Fast DDS refuses the documents.
const CONFIGURATION: &str = "\
[req]
distinguished_name = subject
prompt = no
[subject]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[participant]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyAgreement
";

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| Error::File(path.to_owned(), error))
}

fn make_folder(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| Error::File(path.to_owned(), error))
}
