//! The scratch folder: certificates, pages, free ports.

use crate::process::output;
use crate::{Error, Result, io_error};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The name that certificates bear.
pub(crate) const HOST: &str = "bywash.test";
/// Sizes of the pages there are, in bytes; each page is called by its size.
pub(crate) const PAGES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// OpenSSL's level of security forbids RSA-1024 from 1 on, and Debian's is 2. Not every server can lower it for itself.
const OPENSSL_CONF: &str = "openssl_conf = i\n[i]\nssl_conf = s\n[s]\nsystem_default = d\n[d]\nCipherString = DEFAULT:@SECLEVEL=0\n";

/// A server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Rsa1024,
    Rsa2048,
    EcdsaP256,
}

impl Key {
    pub(crate) const ALL: [Self; 3] = [Self::Rsa1024, Self::Rsa2048, Self::EcdsaP256];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rsa1024 => "RSA-1024",
            Self::Rsa2048 => "RSA-2048",
            Self::EcdsaP256 => "ECDSA P-256",
        }
    }

    /// In file names.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Rsa1024 => "rsa-1024",
            Self::Rsa2048 => "rsa-2048",
            Self::EcdsaP256 => "p-256",
        }
    }

    fn openssl(self) -> &'static [&'static str] {
        match self {
            Self::Rsa1024 => &["-newkey", "rsa:1024"],
            Self::Rsa2048 => &["-newkey", "rsa:2048"],
            Self::EcdsaP256 => &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
        }
    }
}

/// The folder, which servers that become another user can read.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    /// With a certificate for each key, one for a client, and the pages.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bywash-reproduce-").tempdir();
        let folder = folder.map_err(|error| Error(format!("cannot make a scratch folder: {error}; set TMPDIR to a writable place")))?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(|error| io_error("open", folder.path(), &error))?;
        let stage = Self { folder };
        stage.write(&stage.openssl_conf(), OPENSSL_CONF.as_bytes())?;
        stage.authority()?;
        for key in Key::ALL {
            stage.certificate(key.file(), key.openssl(), "serverAuth")?;
        }
        stage.certificate("client", Key::Rsa2048.openssl(), "clientAuth")?;
        let pages = stage.make_folder("www")?;
        for bytes in PAGES {
            let text: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            stage.write(&pages.join(bytes.to_string()), &text)?;
        }
        Ok(stage)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of every server's OpenSSL.
    pub(crate) fn openssl_conf(&self) -> PathBuf {
        self.path("openssl.cnf")
    }

    pub(crate) fn make_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(|error| io_error("make", &path, &error))?;
        Ok(path)
    }

    pub(crate) fn write(&self, path: &Path, text: &[u8]) -> Result<()> {
        fs::write(path, text).map_err(|error| io_error("write", path, &error))
    }

    fn authority(&self) -> Result<()> {
        let subject = ["-subj", "/CN=bywash experiments", "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE"];
        let mut command = self.openssl();
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem"]).args(subject);
        output(&mut command).map(drop)
    }

    /// NAME.pem, NAME.key, and both in NAME.both.
    fn certificate(&self, name: &str, key: &[&str], usage: &str) -> Result<()> {
        let file = |suffix: &str| format!("{name}.{suffix}");
        let extensions = format!("subjectAltName=DNS:{HOST}\nbasicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n");
        self.write(&self.path(&file("ext")), extensions.as_bytes())?;
        let mut request = self.openssl();
        request.arg("req").args(key).args(["-nodes", "-keyout", &file("key"), "-out", &file("csr"), "-subj", &format!("/CN={HOST}")]);
        output(&mut request)?;
        let mut sign = self.openssl();
        sign.args(["x509", "-req", "-in", &file("csr"), "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]);
        output(sign.args(["-extfile", &file("ext"), "-out", &file("pem")]))?;
        let read = |suffix: &str| fs::read(self.path(&file(suffix))).map_err(|error| io_error("read", &self.path(&file(suffix)), &error));
        self.write(&self.path(&file("both")), &[read("pem")?, read("key")?].concat())
    }

    fn openssl(&self) -> Command {
        let mut command = Command::new("openssl");
        command.current_dir(self.folder.path());
        command
    }
}

/// A TCP port of 127.0.0.1 that is free now.
pub(crate) fn free_port() -> Result<u16> {
    free_ports::<1>().map(|[port]| port)
}

/// Several, no two the same: each is held until all are found.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let failed = |error| Error(format!("no free port on 127.0.0.1: {error}"));
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        held.push(listener);
    }
    Ok(ports)
}
