//! Governance and permissions as files: signed text, and elements that belong in it. Their signatures are verified in `trust`.

use super::config::{Part, Security};
use super::{governance, not_named, permissions, xml};
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;

/// What is to be said of a document in a file.
type Judge = fn(&Path, &roxmltree::Document<'_>, &Security) -> Vec<Finding>;

/// Looks at both documents.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    let mut findings = Vec::new();
    let documents: [(Part, Judge); 2] = [(Part::Governance, governance::judge), (Part::Permissions, permissions::judge)];
    for (part, judge) in documents {
        let Some(path) = security.part(part) else {
            findings.extend(not_named(security, part));
            continue;
        };
        let text = match xml::read(path) {
            Ok(text) => text,
            Err(failure) => {
                findings.push(Finding::broken(part.name(), failure.message, "name the signed document; no participant starts without"));
                continue;
            }
        };
        let judged = signed(path, &text).and_then(|inner| Ok(judge(path, &xml::parse(path, inner)?, security)));
        match judged {
            Ok(found) => findings.extend(found),
            Err(failure) => findings.push(Finding::broken(part.name(), failure.message, SIGN)),
        }
    }
    findings
}

/// How a document is signed.
pub(super) const SIGN: &str = "sign it anew: openssl smime -sign -text -in ... -signer CA -inkey KEY";

/// Whether a document has a signature, be it right or wrong.
pub(super) fn has_signature(text: &str) -> bool {
    text.contains("pkcs7-signature")
}

/// Names in a finding: the first few.
pub(super) fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// The document within its S/MIME envelope (RFC 8551 s3.5.3): the clear text is in it as it is.
pub(super) fn signed<'a>(path: &Path, text: &'a str) -> Result<&'a str, Failure> {
    let lacks = |what: &str| Failure::config(format!("{}: {what}", path.display()));
    if !has_signature(text) {
        return Err(lacks("not signed (S/MIME, clear text): participants refuse it"));
    }
    let start = text.find("<?xml").or_else(|| text.find("<dds")).ok_or_else(|| lacks("no <dds> document in it"))?;
    let end = text[start..].find("</dds>").ok_or_else(|| lacks("its <dds> document has no end"))?;
    Ok(&text[start..start + end + "</dds>".len()])
}

/// The words that a rule has for a kind of protection.
pub(super) fn words(document: &roxmltree::Document<'_>, name: &str) -> Vec<String> {
    document.descendants().filter(|node| xml::is_named(*node, name)).map(xml::text).collect()
}

/// Elements that belong in no such document: both implementations refuse it.
pub(super) fn strangers(
    about: &'static str,
    path: &Path,
    document: &roxmltree::Document<'_>,
    is_known: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let names = document.descendants().filter(roxmltree::Node::is_element).map(|node| node.tag_name().name());
    let strange: Vec<String> = names.filter(|name| !is_known(&name.to_ascii_lowercase())).map(|name| format!("<{name}>")).collect();
    let found = || format!("{}: unknown {}: participants refuse the document", path.display(), some(&strange));
    let mend = "mend the names and sign it anew";
    if strange.is_empty() { Vec::new() } else { vec![Finding::broken(about, found(), mend)] }
}
