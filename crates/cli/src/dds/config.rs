//! Where a participant's configuration says that its files are: in the words of Cyclone DDS, of Fast DDS, or by the names in a ROS 2 enclave.

use super::plugin::PlugIn;
use super::variables::Hidden;
use super::{cyclone, fastdds, xml};
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a configuration says where it names a file; it may be a private key itself.
pub(super) type Value = Zeroizing<String>;

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cyclone,
    FastDds,
    Enclave,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cyclone => "Cyclone DDS",
            Self::FastDds => "Fast DDS",
            Self::Enclave => "enclave of ROS 2",
        }
    }
}

/// One of the six files that a participant has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    IdentityCa,
    Identity,
    PrivateKey,
    PermissionsCa,
    Governance,
    Permissions,
}

impl Part {
    pub(super) const ALL: [Self; 6] =
        [Self::IdentityCa, Self::Identity, Self::PrivateKey, Self::PermissionsCa, Self::Governance, Self::Permissions];

    /// What findings call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::IdentityCa => "identity CA",
            Self::Identity => "identity",
            Self::PrivateKey => "private key",
            Self::PermissionsCa => "permissions CA",
            Self::Governance => "governance",
            Self::Permissions => "permissions",
        }
    }

    fn in_enclave(self) -> &'static str {
        match self {
            Self::IdentityCa => "identity_ca.cert.pem",
            Self::Identity => "cert.pem",
            Self::PrivateKey => "key.pem",
            Self::PermissionsCa => "permissions_ca.cert.pem",
            Self::Governance => "governance.p7s",
            Self::Permissions => "permissions.p7s",
        }
    }
}

/// What a configuration says of security.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) kind: Kind,
    /// The file or folder itself.
    pub(super) place: PathBuf,
    /// In the order of [`Part::ALL`]; none for what is named no file.
    pub(super) parts: [Option<PathBuf>; 6],
    /// Those that can be named, and are not what Fast DDS has compiled in.
    pub(super) plug_ins: Vec<PlugIn>,
    /// What is named by a path that a participant looks for in the folder it is started in.
    pub(super) relative: Vec<String>,
    /// Domains or participants that it secures, of which the first is looked at.
    pub(super) count: usize,
    /// Bytes of socket buffers that it asks for to receive; none if it leaves that to the system.
    pub(super) receive_buffer: Option<u64>,
    /// The least that will do: with less, no participant starts.
    pub(super) receive_least: Option<u64>,
    /// The one domain that it is for, if it says.
    pub(super) domain: Option<u32>,
    /// What is to be said of the configuration itself.
    pub(super) findings: Vec<Finding>,
    /// What of the environment is in it.
    pub(super) hidden: Hidden,
}

impl Security {
    /// One that names these values for its files; those that are no files, and relative ones, are told apart here.
    pub(super) fn new(kind: Kind, place: &Path, values: &[Option<Value>; 6]) -> Self {
        let relative =
            values.iter().flatten().filter(|value| is_relative(value) && !is_text(value)).map(|value| value.to_string()).collect();
        let parts = values.each_ref().map(|value| path(place, value.as_ref()?));
        let (place, plug_ins, findings, hidden) = (place.to_owned(), Vec::new(), Vec::new(), Hidden::default());
        Self { kind, place, parts, plug_ins, relative, count: 1, receive_buffer: None, receive_least: None, domain: None, findings, hidden }
    }

    /// The file that is named for it.
    pub(super) fn part(&self, part: Part) -> Option<&Path> {
        self.parts[part as usize].as_deref()
    }
}

/// Reads a configuration.
pub(super) fn read(place: &Path) -> Result<Security, Failure> {
    // As CYCLONEDDS_URI has it.
    let place = place.to_str().and_then(|text| text.strip_prefix("file://")).map_or(place, Path::new);
    if place.is_dir() {
        return enclave(place);
    }
    let text = Zeroizing::new(xml::read(place)?);
    if is_text(text.lines().next().unwrap_or_default()) {
        return Err(Failure::config(format!("{}: a certificate or a key in PEM form, {WANTED}", place.display())));
    }
    let document = xml::parse(place, &text)?;
    let root = document.root_element().tag_name().name();
    match root {
        root if root.eq_ignore_ascii_case("CycloneDDS") => cyclone::read(place, &document),
        "dds" if ["permissions", "domain_access_rules"].iter().any(|name| xml::find(document.root_element(), name).is_some()) => {
            Err(Failure::config(format!("{}: a governance or permissions document, {WANTED}", place.display())))
        }
        "dds" | "profiles" => fastdds::read(place, &document),
        other => Err(Failure::config(format!(
            "{}: its root is <{other}>, neither <CycloneDDS> nor <dds> or <profiles>, {WANTED}",
            place.display()
        ))),
    }
}

/// What is to be named in the place of what was.
const WANTED: &str =
    "which says nothing of a participant; name a configuration of Cyclone DDS, profiles of Fast DDS, or the folder of an enclave";

fn enclave(place: &Path) -> Result<Security, Failure> {
    let files = Part::ALL.map(|part| place.join(part.in_enclave()));
    if !files.iter().any(|file| file.exists()) {
        return Err(Failure::config(format!(
            "{}: no enclave of ROS 2: it has neither cert.pem nor governance.p7s; name a folder within a keystore's enclaves/",
            place.display()
        )));
    }
    let mut security = Security::new(Kind::Enclave, place, &[const { None }; 6]);
    security.parts = files.map(Some);
    Ok(security)
}

/// A file as configurations name it: `file:PATH`, `file://PATH`; not `data:,` with the text itself, nor a token's key. One that is named without its folder is taken from beside
/// the configuration.
fn path(place: &Path, value: &str) -> Option<PathBuf> {
    let value = value.trim();
    if value.is_empty() || value.starts_with("data:") || value.starts_with("pkcs11:") || is_text(value) {
        return None;
    }
    let path = value.strip_prefix("file://").or_else(|| value.strip_prefix("file:")).unwrap_or(value);
    Some(place.parent().unwrap_or(Path::new("")).join(path))
}

/// Whether somebody has put the file's text where its name belongs.
pub(super) fn is_text(value: &str) -> bool {
    value.contains("-----BEGIN") || value.contains('\n')
}

/// Whether a value may be repeated to who wrote it: no text, which may be a private key, and no PIN of a token.
pub(super) fn is_shown(value: &str) -> bool {
    !is_text(value) && !value.contains("pin-value") && value.len() <= SHOWN_MAX
}

/// Whether it is a path behind `begins`, and not a file's text.
pub(super) fn names_file(value: &str, begins: &str) -> bool {
    value.starts_with(begins) && !is_text(value)
}

/// A value that does not [name a file](names_file) as it must: `begins` is how that begins. Nothing that is not to be [shown](is_shown) is repeated.
pub(super) fn unnamed(part: Part, place: &str, value: &str, begins: &str, or: &str) -> Finding {
    if value.starts_with(begins) {
        let found = format!("{place} has a text behind '{begins}', where a path belongs");
        return Finding::broken(part.name(), found, format!("{begins}/absolute/path"));
    }
    let is_shown = is_shown(value);
    let said = if is_shown { format!(": {value}") } else { String::new() };
    let path = ["file://", "file:"].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value);
    let mend = if is_shown && path.starts_with('/') { format!("{begins}{path}") } else { format!("{begins}/absolute/path") };
    Finding::broken(part.name(), format!("{place} does not begin with '{begins}'{or}{said}"), mend)
}

/// The longest value that is repeated to who wrote it.
const SHOWN_MAX: usize = 200;

/// Whether it names a file without saying in which folder.
fn is_relative(value: &str) -> bool {
    let path = value.trim().strip_prefix("file:").map(|path| path.strip_prefix("//").unwrap_or(path));
    path.is_some_and(|path| !path.is_empty() && !path.starts_with('/'))
}

/// Security is off: all goes in the clear.
pub(super) fn unsecured(place: &Path, what: &str) -> Failure {
    Failure::failed(format!("{} {what}: security is off there, and all goes in the clear", place.display()))
}

/// A size in Cyclone's words: `4MB`, `4 MiB`, `65536`, `default`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        // Cyclone's own reading: kB is 2^10, MB 2^20.
        "kB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_cyclone_does() {
        for (text, size) in [
            ("4MB", Some(4 << 20)),
            ("10 MiB", Some(10 << 20)),
            ("65536", Some(65536)),
            ("1 kB", Some(1024)),
            ("default", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
        assert_eq!(bytes("99999999999999999999"), None);
        assert_eq!(bytes("18446744073709551615 GiB"), None);
    }

    #[test]
    fn files_are_found_beside_the_configuration() {
        let place = Path::new("/etc/dds/x.xml");
        assert_eq!(path(place, "file:/a/b.pem"), Some("/a/b.pem".into()));
        assert_eq!(path(place, " file://a.pem\n"), Some("/etc/dds/a.pem".into()));
        assert_eq!(path(place, "data:,-----BEGIN"), None);
    }
}
