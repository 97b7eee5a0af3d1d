//! Where a participant's configuration says that its files are: in the words of Cyclone DDS, of Fast DDS, or by the names in a ROS 2 enclave.

use super::xml;
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

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

/// What a configuration says of security. Files that it does not name are absent.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) kind: Kind,
    /// The file or folder itself.
    pub(super) place: PathBuf,
    pub(super) identity_ca: Option<PathBuf>,
    pub(super) identity: Option<PathBuf>,
    pub(super) private_key: Option<PathBuf>,
    pub(super) permissions_ca: Option<PathBuf>,
    pub(super) governance: Option<PathBuf>,
    pub(super) permissions: Option<PathBuf>,
    /// The cryptographic plug-in, where one can be named.
    pub(super) plug_in: Option<PlugIn>,
    /// What is named by a path that a participant looks for in the folder it is started in.
    pub(super) relative: Vec<String>,
    /// Domains or participants that it secures, of which the first is looked at.
    pub(super) count: usize,
    /// Bytes of socket buffers that it asks for to receive; none if it leaves that to the system.
    pub(super) receive_buffer: Option<u64>,
    /// What is the matter with the configuration itself.
    pub(super) faults: Vec<Finding>,
}

/// The six files: what they are called here, Cyclone DDS's element, and the end of Fast DDS's property.
const FILES: [(&str, &str, &str); 6] = [
    ("identity CA", "IdentityCA", ".identity_ca"),
    ("identity", "IdentityCertificate", ".identity_certificate"),
    ("private key", "PrivateKey", ".private_key"),
    ("permissions CA", "PermissionsCA", ".permissions_ca"),
    ("governance", "Governance", ".governance"),
    ("permissions", "Permissions", ".permissions"),
];
/// Fast DDS's plug-ins, what names each, and what it does without.
const PLUG_INS: [(&str, &str, &str); 3] = [
    ("dds.sec.auth.plugin", "builtin.PKI-DH", "security is off, and all goes in the clear"),
    ("dds.sec.access.plugin", "builtin.Access-Permissions", "governance and permissions are not read"),
    ("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC", "participants that must encrypt never meet"),
];

/// A plug-in of Cyclone DDS: a shared object, by its path or by a name that the dynamic linker finds, and two functions in it.
#[derive(Debug)]
pub(super) struct PlugIn {
    pub(super) path: String,
    pub(super) initialise: String,
    pub(super) finalise: String,
}

/// Reads a configuration.
pub(super) fn read(place: &Path) -> Result<Security, Failure> {
    // As CYCLONEDDS_URI has it.
    let place = place.to_str().and_then(|text| text.strip_prefix("file://")).map_or(place, Path::new);
    if place.is_dir() {
        if !["cert.pem", "key.pem", "governance.p7s", "permissions.p7s"].iter().any(|name| place.join(name).exists()) {
            return Err(Failure::config(format!(
                "{}: no enclave of ROS 2: it has neither cert.pem nor governance.p7s; name a folder within a keystore's enclaves/",
                place.display()
            )));
        }
        return Ok(enclave(place));
    }
    let text = xml::read(place)?;
    let document = xml::parse(place, &text)?;
    let root = document.root_element().tag_name().name();
    match root {
        "CycloneDDS" => cyclone(place, &document),
        "dds" | "profiles" => fastdds(place, &document),
        other => Err(Failure::config(format!(
            "{}: its root is <{other}>, neither <CycloneDDS> nor <dds> or <profiles>; name a configuration of Cyclone DDS, profiles of \
             Fast DDS, or the folder of an enclave",
            place.display()
        ))),
    }
}

fn enclave(place: &Path) -> Security {
    let file = |name: &str| Some(place.join(name));
    Security {
        kind: Kind::Enclave,
        place: place.to_owned(),
        identity_ca: file("identity_ca.cert.pem"),
        identity: file("cert.pem"),
        private_key: file("key.pem"),
        permissions_ca: file("permissions_ca.cert.pem"),
        governance: file("governance.p7s"),
        permissions: file("permissions.p7s"),
        plug_in: None,
        relative: Vec::new(),
        count: 1,
        receive_buffer: None,
        faults: Vec::new(),
    }
}

/// A file as configurations name it: `file:PATH`, `file://PATH`, or `data:,` with the text itself, which is not a file. One that is named without its folder is taken from beside
/// the configuration.
fn path(place: &Path, value: &str) -> Option<PathBuf> {
    let value = value.trim();
    if value.is_empty() || is_elsewhere(value) {
        return None;
    }
    let path = value.strip_prefix("file://").or_else(|| value.strip_prefix("file:")).unwrap_or(value);
    Some(place.parent().unwrap_or(Path::new("")).join(path))
}

fn cyclone(place: &Path, document: &roxmltree::Document<'_>) -> Result<Security, Failure> {
    let Some(security) = xml::find(document.root_element(), "Security").or_else(|| xml::find(document.root_element(), "DDSSecurity"))
    else {
        return Err(unsecured(place, "has no <Security> in a <Domain>"));
    };
    let value = |name: &str| xml::find(security, name).map(xml::text);
    let file = |name: &str| value(name).and_then(|value| path(place, &value));
    let mut faults = Vec::new();
    for (about, name, _) in FILES {
        match value(name).filter(|value| !value.is_empty()) {
            None => faults.push(Finding::broken(about, format!("no <{name}>"), "name its file; no participant starts without")),
            Some(value) if !value.starts_with("file:") && !is_elsewhere(&value) => faults.push(Finding::broken(
                about,
                format!("<{name}> begins with neither 'file:' nor 'data:,': {value}"),
                format!("<{name}>file:{value}</{name}>"),
            )),
            Some(_) => {}
        }
    }
    for name in ["Authentication", "AccessControl", "Cryptographic"] {
        if security.descendants().filter(|node| node.has_tag_name_local(name)).count() > 1 {
            let found = format!("more than one <{name}>: no participant starts");
            faults.push(Finding::broken(
                "configuration",
                found,
                format!("leave one <{name}>: another <Library> goes in the place of the one there"),
            ));
        }
    }
    let library = xml::find(security, "Cryptographic").and_then(|node| xml::find(node, "Library"));
    let plug_in = library.map(|node| {
        let attribute = |name: &str, default: &str| node.attribute(name).unwrap_or(default).to_owned();
        PlugIn {
            path: attribute("path", "dds_security_crypto"),
            initialise: attribute("initFunction", "init_crypto"),
            finalise: attribute("finalizeFunction", "finalize_crypto"),
        }
    });
    let secured = |node: &roxmltree::Node<'_, '_>| ["Security", "DDSSecurity"].iter().any(|name| node.has_tag_name_local(name));
    let buffer = xml::find(document.root_element(), "SocketReceiveBufferSize");
    let size =
        buffer.and_then(|node| node.attribute("max").or(node.attribute("min")).map(ToOwned::to_owned).or_else(|| Some(xml::text(node))));
    Ok(Security {
        kind: Kind::Cyclone,
        place: place.to_owned(),
        identity_ca: file("IdentityCA"),
        identity: file("IdentityCertificate"),
        private_key: file("PrivateKey"),
        permissions_ca: file("PermissionsCA"),
        governance: file("Governance"),
        permissions: file("Permissions"),
        plug_in,
        relative: FILES.into_iter().filter_map(|(_, name, _)| value(name)).filter(|value| is_relative(value)).collect(),
        count: document.descendants().filter(secured).count(),
        receive_buffer: size.as_deref().and_then(bytes),
        faults,
    })
}

fn fastdds(place: &Path, document: &roxmltree::Document<'_>) -> Result<Security, Failure> {
    let properties = document.descendants().filter(|node| node.has_tag_name_local("property"));
    let pairs: Vec<(String, String)> =
        properties.filter_map(|node| Some((xml::text(xml::find(node, "name")?), xml::text(xml::find(node, "value")?)))).collect();
    if !pairs.iter().any(|(name, _)| name.starts_with("dds.sec.")) {
        return Err(unsecured(place, "has no property whose name begins with dds.sec."));
    }
    let file = |name: &str| pairs.iter().find(|(found, _)| found.ends_with(name)).and_then(|(_, value)| path(place, value));
    let mut faults = Vec::new();
    for (name, expected, otherwise) in PLUG_INS {
        let mend = format!("<property><name>{name}</name><value>{expected}</value></property>");
        match pairs.iter().find(|(found, _)| found == name) {
            None => faults.push(Finding::broken("plug-in", format!("no property {name}: {otherwise}"), mend)),
            Some((_, value)) if value != expected => {
                faults.push(Finding::broken("plug-in", format!("{name} is '{value}', which Fast DDS does not have: {otherwise}"), mend));
            }
            Some(_) => {}
        }
    }
    for (about, _, name) in FILES {
        match pairs.iter().find(|(found, _)| found.ends_with(name)) {
            None => faults.push(Finding::broken(
                about,
                format!("no property that ends in {name}"),
                "name its file; no participant starts without",
            )),
            Some((found, value)) if !value.starts_with("file://") && !is_elsewhere(value) => {
                let path = value.strip_prefix("file:").unwrap_or(value);
                faults.push(Finding::broken(
                    about,
                    format!("{found} begins with neither 'file://' nor 'data:,': {value}"),
                    format!("file://{path}"),
                ));
            }
            Some(_) => {}
        }
    }
    let sizes = ["listenSocketBufferSize", "receiveBufferSize", "receive_buffer_size"];
    let size = sizes.into_iter().find_map(|name| xml::find(document.root_element(), name)).and_then(|node| bytes(&xml::text(node)));
    Ok(Security {
        kind: Kind::FastDds,
        place: place.to_owned(),
        identity_ca: file(".identity_ca"),
        identity: file(".identity_certificate"),
        private_key: file(".private_key"),
        permissions_ca: file(".permissions_ca"),
        governance: file(".governance"),
        permissions: file(".permissions"),
        plug_in: None,
        relative: pairs
            .iter()
            .filter(|(name, value)| name.starts_with("dds.sec.") && is_relative(value))
            .map(|(_, value)| value.clone())
            .collect(),
        count: pairs.iter().filter(|(name, _)| name.ends_with(".identity_certificate")).count(),
        receive_buffer: size,
        faults,
    })
}

/// Whether it is no file: the text itself, or a key in a token.
fn is_elsewhere(value: &str) -> bool {
    value.starts_with("data:") || value.starts_with("pkcs11:")
}

/// Whether it names a file without saying in which folder.
fn is_relative(value: &str) -> bool {
    let path = value.trim().strip_prefix("file:").map(|path| path.strip_prefix("//").unwrap_or(path));
    path.is_some_and(|path| !path.is_empty() && !path.starts_with('/'))
}

fn unsecured(place: &Path, what: &str) -> Failure {
    Failure::config(format!("{} {what}: security is off there, and there is nothing to look at", place.display()))
}

trait LocalName {
    fn has_tag_name_local(&self, name: &str) -> bool;
}

impl LocalName for roxmltree::Node<'_, '_> {
    /// Whatever the namespace: people leave it out.
    fn has_tag_name_local(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

/// A size in Cyclone's words: `4MB`, `4 MiB`, `65536`, `default`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        // Cyclone's own reading: MB is 2^20.
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
        for (text, size) in [("4MB", Some(4 << 20)), ("10 MiB", Some(10 << 20)), ("65536", Some(65536)), ("default", None), ("", None)] {
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
