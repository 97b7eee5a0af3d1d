//! A configuration of Cyclone DDS.

use super::config::{Kind, Part, Security, Value, bytes, names_file, unnamed, unsecured};
use super::plugin::{BUILT_IN, BuiltIn, PlugIn};
use super::variables::Expander;
use super::xml;
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;

/// The element that names a file.
fn element(part: Part) -> &'static str {
    match part {
        Part::IdentityCa => "IdentityCA",
        Part::Identity => "IdentityCertificate",
        Part::PrivateKey => "PrivateKey",
        Part::PermissionsCa => "PermissionsCA",
        Part::Governance => "Governance",
        Part::Permissions => "Permissions",
    }
}

/// Whether it is an element of this name: Cyclone takes capital letters for small ones.
fn is_named(node: roxmltree::Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name().eq_ignore_ascii_case(name)
}

fn find<'a, 'b>(node: roxmltree::Node<'a, 'b>, name: &str) -> Option<roxmltree::Node<'a, 'b>> {
    node.descendants().skip(1).find(|node| is_named(*node, name))
}

fn attribute<'a>(node: roxmltree::Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.name().eq_ignore_ascii_case(name)).map(|attribute| attribute.value())
}

/// The sections of a configuration, in a `<Domain>` or, as they once were, beside it.
const SECTIONS: [&str; 14] = [
    "General",
    "DDSSecurity",
    "Partitioning",
    "Channels",
    "Threads",
    "Sizing",
    "Compatibility",
    "Discovery",
    "Tracing",
    "Internal",
    "Unsupported",
    "TCP",
    "SSL",
    "SharedMemory",
];
/// What Cyclone DDS 0.10 has below an element of these (`ddsi_cfgelems.h`): it starts nobody with another. Below others it is not looked at here.
const KNOWN: [(&str, &[&[&str]]); 6] = [
    ("CycloneDDS", &[&SECTIONS, &["Domain", "DDSI2E", "DDSI2"]]),
    ("Domain", &[&SECTIONS, &["Security"]]),
    ("Security", &[&["Authentication", "AccessControl", "Cryptographic"]]),
    ("Authentication", &[&OF_AUTHENTICATION]),
    ("AccessControl", &[&["Library", "PermissionsCA", "Governance", "Permissions"]]),
    ("Cryptographic", &[&["Library"]]),
];
const OF_AUTHENTICATION: [&str; 8] =
    ["Library", "IdentityCertificate", "IdentityCA", "PrivateKey", "Password", "TrustedCADirectory", "CRL", "IncludeOptionalFields"];
/// The attributes of a `<Library>`.
const OF_LIBRARY: [&str; 3] = ["path", "initFunction", "finalizeFunction"];

/// What is in a document that Cyclone does not know.
fn strangers(document: &roxmltree::Document<'_>) -> Vec<Finding> {
    let is_of = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut found = Vec::new();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = if is_named(node, "DDSSecurity") { "Security" } else { node.tag_name().name() };
        let known = KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let children = node.children().filter(roxmltree::Node::is_element).map(|child| child.tag_name().name());
        found.extend(
            children
                .filter(|child| known.is_some_and(|(_, known)| !known.iter().any(|names| is_of(names, child))))
                .map(|child| format!("element <{child}> in <{name}>")),
        );
        let known: &[&str] = match name {
            name if name.eq_ignore_ascii_case("Library") => &OF_LIBRARY,
            name if name.eq_ignore_ascii_case("Domain") => &["Id"],
            _ => continue,
        };
        let attributes = node.attributes().map(|attribute| attribute.name()).filter(|attribute| !is_of(known, attribute));
        found.extend(attributes.map(|attribute| format!("attribute {attribute} of <{name}>")));
    }
    let shown = found.into_iter().take(STRANGERS_SHOWN);
    shown
        .map(|what| Finding::broken("configuration", format!("unknown {what}: no participant starts"), "mend the name, or drop it"))
        .collect()
}

/// Of things that Cyclone does not know, it stops at the first.
const STRANGERS_SHOWN: usize = 5;

/// The domain that a node's participants are in; none for any. Or what is wrong with it.
fn domain(security: roxmltree::Node<'_, '_>) -> Result<Option<u32>, Finding> {
    let id = security.ancestors().find(|node| is_named(*node, "Domain")).and_then(|node| attribute(node, "Id")).unwrap_or("any");
    if id == "any" || id.contains("${") {
        return Ok(None);
    }
    id.parse().map(Some).map_err(|_| {
        Finding::broken("configuration", format!("<Domain Id=\"{id}\">: no participant starts"), "Id=\"any\", or a domain's number")
    })
}

/// What a document says.
pub(super) fn read(place: &Path, document: &roxmltree::Document<'_>) -> Result<Security, Failure> {
    let is_security = |node: &roxmltree::Node<'_, '_>| ["Security", "DDSSecurity"].iter().any(|name| is_named(*node, name));
    let mut found = document.descendants().filter(is_security);
    let unknown = strangers(document);
    let security = found.next().ok_or_else(|| match unknown.first() {
        Some(finding) => Failure::failed(format!("{}: {}", place.display(), finding.found)),
        None => unsecured(place, "has no <Security> in a <Domain>"),
    })?;
    let count = 1 + found.count();
    let mut expander = Expander::new(|name| std::env::var(name).ok());
    let mut findings = unknown;
    let domain = domain(security).unwrap_or_else(|finding| {
        findings.push(finding);
        None
    });
    let values = Part::ALL.map(|part| {
        let (about, name) = (part.name(), element(part));
        let value = find(security, name).map(|node| Value::new(expander.expand(&Value::new(xml::text(node)))));
        match value.as_ref().map(|value| value.as_str()).unwrap_or_default() {
            "" => findings.push(Finding::broken(about, format!("no <{name}>"), "name its file; no participant starts without")),
            value if !names_file(value, "file:") && !value.starts_with("data:,") => {
                findings.push(unnamed(part, &format!("<{name}>"), value, "file:", " or 'data:,'"));
            }
            _ => {}
        }
        value
    });
    for BuiltIn { element: name, .. } in &BUILT_IN {
        if security.descendants().filter(|node| is_named(*node, name)).count() > 1 {
            let mend = format!("leave one <{name}>: another <Library> goes in the place of the one there");
            findings.push(Finding::broken("configuration", format!("more than one <{name}>: no participant starts"), mend));
        }
    }
    let plug_ins = BUILT_IN.iter().map(|built_in| {
        let library = find(security, built_in.element).and_then(|node| find(node, "Library"));
        let mut named = |name: &str, otherwise: &str| {
            library.and_then(|node| attribute(node, name)).map_or_else(|| otherwise.to_owned(), |value| expander.expand(value))
        };
        PlugIn {
            built_in,
            path: named("path", built_in.library),
            initialise: named("initFunction", built_in.initialise),
            finalise: named("finalizeFunction", built_in.finalise),
        }
    });
    let plug_ins: Vec<_> = plug_ins.collect();
    let buffer = find(document.root_element(), "SocketReceiveBufferSize");
    let size = buffer.map(|node| attribute(node, "max").or(attribute(node, "min")).map_or_else(|| xml::text(node), ToOwned::to_owned));
    let receive_buffer = size.and_then(|size| bytes(&expander.expand(&size)));
    let receive_least = buffer.and_then(|node| bytes(&expander.expand(attribute(node, "min")?)));
    let (said, hidden) = expander.finish();
    findings.extend(said);
    let mut read = Security {
        count,
        domain,
        plug_ins,
        receive_buffer,
        receive_least,
        findings,
        hidden,
        ..Security::new(Kind::Cyclone, place, &values)
    };
    let relative = read.plug_ins.iter().map(|plug_in| &plug_in.path).filter(|path| path.contains('/') && !path.starts_with('/'));
    read.relative.extend(relative.cloned());
    Ok(read)
}
