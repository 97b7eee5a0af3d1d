//! A configuration of Cyclone DDS.

use super::config::{Kind, Part, Security, bytes, is_elsewhere, unsecured};
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

/// What a document says.
pub(super) fn read(place: &Path, document: &roxmltree::Document<'_>) -> Result<Security, Failure> {
    let is_security = |node: &roxmltree::Node<'_, '_>| ["Security", "DDSSecurity"].iter().any(|name| xml::is_named(*node, name));
    let mut found = document.descendants().filter(is_security);
    let security = found.next().ok_or_else(|| unsecured(place, "has no <Security> in a <Domain>"))?;
    let count = 1 + found.count();
    let mut expander = Expander::new(|name| std::env::var(name).ok());
    let mut findings = Vec::new();
    let values = Part::ALL.map(|part| {
        let (about, name) = (part.name(), element(part));
        let value = xml::find(security, name).map(|node| expander.expand(&xml::text(node)));
        match value.as_deref().unwrap_or_default() {
            "" => findings.push(Finding::broken(about, format!("no <{name}>"), "name its file; no participant starts without")),
            value if !value.starts_with("file:") && !is_elsewhere(value) => findings.push(Finding::broken(
                about,
                format!("<{name}> begins with neither 'file:' nor 'data:,': {value}"),
                format!("<{name}>file:{value}</{name}>"),
            )),
            _ => {}
        }
        value
    });
    for BuiltIn { element: name, .. } in &BUILT_IN {
        if security.descendants().filter(|node| xml::is_named(*node, name)).count() > 1 {
            let mend = format!("leave one <{name}>: another <Library> goes in the place of the one there");
            findings.push(Finding::broken("configuration", format!("more than one <{name}>: no participant starts"), mend));
        }
    }
    let plug_ins = BUILT_IN.iter().map(|built_in| {
        let library = xml::find(security, built_in.element).and_then(|node| xml::find(node, "Library"));
        let mut attribute = |name: &str, otherwise: &str| {
            library.and_then(|node| node.attribute(name)).map_or_else(|| otherwise.to_owned(), |value| expander.expand(value))
        };
        PlugIn {
            built_in,
            path: attribute("path", built_in.library),
            initialise: attribute("initFunction", built_in.initialise),
            finalise: attribute("finalizeFunction", built_in.finalise),
        }
    });
    let plug_ins = plug_ins.collect();
    let buffer = xml::find(document.root_element(), "SocketReceiveBufferSize");
    let size = buffer.map(|node| node.attribute("max").or(node.attribute("min")).map_or_else(|| xml::text(node), ToOwned::to_owned));
    let receive_buffer = size.and_then(|size| bytes(&expander.expand(&size)));
    findings.extend(expander.findings());
    Ok(Security { count, plug_ins, receive_buffer, findings, ..Security::new(Kind::Cyclone, place, values) })
}
