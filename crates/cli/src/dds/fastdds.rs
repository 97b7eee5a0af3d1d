//! Profiles of Fast DDS.

use super::config::{Kind, Part, Security, Value, bytes, names_file, unnamed, unsecured};
use super::xml;
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;

/// Its plug-ins, what names each, and what it does without.
const PLUG_INS: [(&str, &str, &str); 3] = [
    ("dds.sec.auth.plugin", "builtin.PKI-DH", "security is off, and all goes in the clear"),
    ("dds.sec.access.plugin", "builtin.Access-Permissions", "governance and permissions are not read"),
    ("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC", "participants that must encrypt never meet"),
];

/// The property that names a file.
fn property(part: Part) -> &'static str {
    match part {
        Part::IdentityCa => "dds.sec.auth.builtin.PKI-DH.identity_ca",
        Part::Identity => "dds.sec.auth.builtin.PKI-DH.identity_certificate",
        Part::PrivateKey => "dds.sec.auth.builtin.PKI-DH.private_key",
        Part::PermissionsCa => "dds.sec.access.builtin.Access-Permissions.permissions_ca",
        Part::Governance => "dds.sec.access.builtin.Access-Permissions.governance",
        Part::Permissions => "dds.sec.access.builtin.Access-Permissions.permissions",
    }
}

type Pairs = Vec<(String, Value)>;

/// The properties below a node.
fn properties(node: roxmltree::Node<'_, '_>) -> Pairs {
    let found = node.descendants().filter(|node| xml::is_named(*node, "property"));
    found.filter_map(|node| Some((xml::text(xml::find(node, "name")?), Value::new(xml::text(xml::find(node, "value")?))))).collect()
}

/// Where a participant's properties stand; Fast DDS drops a file in which something else stands there.
const PATH: [&str; 5] = ["properties", "propertiesPolicy", "rtps", "participant", "profiles"];

/// What in a document is not where Fast DDS looks for it.
fn misplaced(root: roxmltree::Node<'_, '_>) -> Option<Finding> {
    let named = |node: roxmltree::Node<'_, '_>| xml::find(node, "name").is_some_and(|name| xml::text(name).starts_with("dds.sec."));
    let properties = root.descendants().filter(|node| xml::is_named(*node, "property") && named(*node));
    let strange = properties.flat_map(|property| {
        let above = property.ancestors().skip(1).filter(roxmltree::Node::is_element);
        let pairs = PATH.iter().zip(above.map(|node| node.tag_name().name()).collect::<Vec<_>>());
        pairs.filter(|(expected, found)| *expected != found).map(|(expected, found)| (*expected, found.to_owned())).next()
    });
    let (expected, found) = strange.into_iter().next()?;
    let said = format!("<{found}> where Fast DDS looks for <{expected}>: it drops the file, and all goes in the clear");
    Some(Finding::broken("configuration", said, "<profiles><participant><rtps><propertiesPolicy><properties><property>"))
}

fn is_secured(pairs: &Pairs) -> bool {
    pairs.iter().any(|(name, _)| name.starts_with("dds.sec."))
}

/// What a document says of the first participant that it secures.
pub(super) fn read(place: &Path, document: &roxmltree::Document<'_>) -> Result<Security, Failure> {
    let root = document.root_element();
    if !is_secured(&properties(root)) {
        return Err(unsecured(place, "has no property whose name begins with dds.sec."));
    }
    let participants: Vec<_> =
        root.descendants().filter(|node| xml::is_named(*node, "participant") && is_secured(&properties(*node))).collect();
    // A profile may be a part of one that is included elsewhere.
    let participant = participants.first().copied();
    let pairs = properties(participant.unwrap_or(root));
    let mut findings: Vec<_> = misplaced(root).into_iter().chain(plug_ins(&pairs)).collect();
    let values = Part::ALL.map(|part| {
        let (about, name) = (part.name(), property(part));
        let Some((_, value)) = pairs.iter().find(|(found, _)| found == name) else {
            let last = name.rsplit('.').next().unwrap_or(name);
            let nearly = pairs.iter().find(|(found, _)| found.rsplit('.').next() == Some(last));
            let has = nearly.map(|(found, _)| format!("; it has {found}, which Fast DDS does not look at")).unwrap_or_default();
            let found = format!("no property {name}{has}");
            findings.push(Finding::broken(about, found, "name its file; no participant starts without"));
            return None;
        };
        let is_in_token = part == Part::PrivateKey && value.starts_with("pkcs11:");
        if !names_file(value, "file://") && !is_in_token {
            let or = if part == Part::PrivateKey { " or 'pkcs11:'" } else { "" };
            findings.push(unnamed(part, name, value, "file://", or));
        }
        if value.contains("${") {
            let said = format!("{name} has a variable, which Fast DDS takes as it stands");
            findings.push(Finding::broken(about, said, "write its value"));
        }
        Some(value.clone())
    });
    findings.extend(participant.and_then(default_profile));
    if let Some((_, size)) = pairs.iter().find(|(name, size)| name == "dds.sec.crypto.keysize" && !["128", "256"].contains(&size.as_str()))
    {
        let found = format!("dds.sec.crypto.keysize is '{}', which Fast DDS takes as 256", size.as_str());
        findings.push(Finding::note("configuration", found, "128 or 256"));
    }
    let sizes = ["listenSocketBufferSize", "receiveBufferSize", "receive_buffer_size"];
    let receive_buffer = sizes.into_iter().find_map(|name| xml::find(root, name)).and_then(|node| bytes(&xml::text(node)));
    Ok(Security { count: participants.len(), receive_buffer, findings, ..Security::new(Kind::FastDds, place, &values) })
}

/// What is the matter with the three plug-ins.
fn plug_ins(pairs: &Pairs) -> Vec<Finding> {
    let judge = |(name, expected, otherwise): (&str, &str, &str)| {
        let found = match pairs.iter().find(|(found, _)| found == name) {
            None => format!("no property {name}: {otherwise}"),
            Some((_, value)) if value.as_str() != expected => {
                format!("{name} is '{}', which Fast DDS does not have: {otherwise}", value.as_str())
            }
            Some(_) => return None,
        };
        Some(Finding::broken("plug-in", found, format!("<property><name>{name}</name><value>{expected}</value></property>")))
    };
    PLUG_INS.into_iter().filter_map(judge).collect()
}

/// What is to be said of a profile that participants do not take by themselves.
fn default_profile(participant: roxmltree::Node<'_, '_>) -> Option<Finding> {
    let attribute = |name| participant.attribute(name).unwrap_or_default();
    let found = format!(
        "its profile '{}' is not the default one: a participant that is not made by that name does not take it, and goes in the clear",
        attribute("profile_name")
    );
    (attribute("is_default_profile") != "true")
        .then(|| Finding::note("configuration", found, "<participant ... is_default_profile=\"true\">"))
}
