//! Governance and permissions as files: signed text, and elements that belong in it. Their signatures are verified in `trust`.

use super::config::{Part, Security};
use super::{governance, not_named, permissions, trust, xml};
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
        let judged = signed(path, &text, security).and_then(|inner| Ok(judge(path, &xml::parse(path, &inner)?, security)));
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

/// The document within its S/MIME envelope (RFC 8551 s3.5.3): what participants get of it; where that cannot be verified, what stands in its place.
pub(super) fn signed(path: &Path, text: &str, security: &Security) -> Result<String, Failure> {
    let lacks = |what: &str| Failure::config(format!("{}: {what}", path.display()));
    if !has_signature(text) {
        return Err(lacks("not signed (S/MIME, clear text): participants refuse it"));
    }
    let verified = security.part(Part::PermissionsCa).and_then(|authority| trust::text(text, authority));
    let document = verified.as_deref().or_else(|| first_part(text)).ok_or_else(|| lacks("no document in the first of its parts"))?;
    Ok(document.trim().to_owned())
}

/// What stands in the first part of a message (RFC 2046 s5.1.1), behind the part's own headers. What stands before that part, or behind it, nobody has signed.
fn first_part(message: &str) -> Option<&str> {
    let end = blank_line(message)?;
    // The first part may begin at once: the blank line's end is its line's beginning.
    let (headers, body) = message.split_at(end - 1);
    let named = headers.to_ascii_lowercase().find("boundary=").map(|at| &headers[at + "boundary=".len()..])?;
    let boundary = match named.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => named.split(|letter: char| letter == ';' || letter.is_ascii_whitespace()).next()?,
    };
    let line = format!("\n--{boundary}");
    let part = body[body.find(&line)? + line.len()..].split_once('\n')?.1;
    let part = &part[..part.find(&line)?];
    if part.trim_start().starts_with('<') { Some(part) } else { Some(&part[blank_line(part)?..]) }
}

/// Where the first blank line ends.
fn blank_line(text: &str) -> Option<usize> {
    let ends = ["\n\n", "\n\r\n"].map(|blank| text.find(blank).map(|at| at + blank.len()));
    ends.into_iter().flatten().min()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_is_found_and_nothing_around_it() {
        let message = |part: &str| {
            format!(
                "MIME-Version: 1.0\nContent-Type: multipart/signed; boundary=\"=B\"; micalg=x\n\n<dds>before</dds>\n--=B\n{part}\n--=B\nContent-Type: x\n\nMII\n--=B--\n\n<dds/>"
            )
        };
        for part in
            ["Content-Type: text/plain\r\n\r\n<dds><!-- </dds> --></dds>\r\n", "Content-Type: a\nX: b\n\n<dds><!-- </dds> --></dds>"]
        {
            assert_eq!(first_part(&message(part)).map(str::trim), Some("<dds><!-- </dds> --></dds>"), "{part}");
        }
        assert_eq!(first_part(&message("<dds/>")), Some("<dds/>"), "signed without -text");
        let at_once = "Content-Type: multipart/signed; boundary=B; x=y\r\n\r\n--B\r\n\r\n<dds/>\r\n--B--\r\n";
        assert_eq!(first_part(at_once).map(str::trim), Some("<dds/>"));
        for none in ["", "boundary=", "boundary=B\n\n", "boundary=B\n\n--B", "boundary=B\n\n--B\n<dds/>", "boundary=\"B\n\n--B\nX: y\n--B"]
        {
            assert_eq!(first_part(none), None, "{none}");
        }
    }
}
