//! Permissions (DDS Security 1.1 s9.4.1.3): whom they are for, and until when.

use super::config::{Kind, Part, Security};
use super::documents::{some, strangers, words};
use super::{trust, xml};
use crate::doctor::Finding;
use std::path::Path;
use x509_cert::der::DateTime;

/// The elements of such a document.
const IN_PERMISSIONS: [&str; 25] = [
    "dds",
    "permissions",
    "grant",
    "subject_name",
    "validity",
    "not_before",
    "not_after",
    "allow_rule",
    "deny_rule",
    "default",
    "domains",
    "id",
    "id_range",
    "min",
    "max",
    "publish",
    "subscribe",
    "relay",
    "topics",
    "topic",
    "partitions",
    "partition",
    "data_tags",
    "tag",
    "name",
];

/// What is to be said of one.
pub(super) fn judge(path: &Path, document: &roxmltree::Document<'_>, security: &Security) -> Vec<Finding> {
    let subjects = words(document, "subject_name");
    if subjects.is_empty() {
        let mend = "is this a permissions document? see DDS Security 1.1 s9.4.1.3";
        return vec![Finding::broken("permissions", format!("{}: no <grant> with a <subject_name>", path.display()), mend)];
    }
    let now = now();
    let subject = security.part(Part::Identity).and_then(trust::subject);
    let is_ours = |granted: &str| subject.as_deref().is_none_or(|subject| is_same_name(security.kind, subject, granted));
    let grants = document.descendants().filter(|node| xml::is_named(*node, "grant"));
    let mut findings = strangers("permissions", path, document, |name| IN_PERMISSIONS.contains(&name));
    let (mut holding, mut over) = (Vec::new(), Vec::new());
    for grant in grants {
        let said = |name| xml::find(grant, name).map(xml::text).unwrap_or_default();
        let bound = |name| xml::find(grant, name).map(|bound| moment(&xml::text(bound)));
        let granted = said("subject_name");
        let why = match (bound("not_before"), bound("not_after")) {
            _ if !is_ours(&granted) => continue,
            (Some(None), _) => format!("begins at no time: {}", said("not_before")),
            (_, Some(None)) => format!("ends at no time: {}", said("not_after")),
            (Some(Some(begin)), _) if now.is_some_and(|now| now < begin) => format!("does not hold before {}", said("not_before")),
            (_, Some(Some(end))) if now.is_some_and(|now| end <= now) => format!("expired on {}", said("not_after")),
            _ => {
                holding.push(granted);
                continue;
            }
        };
        over.push(format!("{}: what is granted to {granted} {why}", path.display()));
    }
    // A grant that is over, beside one that holds, is still the one that Cyclone takes if it comes first.
    let judge = |found| match holding.is_empty() {
        true => Finding::broken("permissions", found, "sign new ones"),
        false => Finding::note("permissions", found, "sign new ones without it"),
    };
    let is_over = !over.is_empty();
    findings.extend(over.into_iter().map(judge));
    if is_over && holding.is_empty() {
        return findings;
    }
    findings.push(match (holding.is_empty(), subject) {
        (false, _) => Finding::ok("permissions", format!("{}: for {}", path.display(), some(&holding))),
        (true, Some(subject)) => {
            let found = format!(
                "{}: no grant in it holds today for {subject}, whose certificate it is; it has {}",
                path.display(),
                some(&subjects)
            );
            Finding::broken("permissions", found, "grant it to the certificate's subject and sign it")
        }
        (true, None) => Finding::broken("permissions", format!("{}: no grant in it holds today", path.display()), "sign new ones"),
    });
    findings
}

/// Whether a grant's name is the certificate's. Cyclone takes its parts in whatever order, also as `/O=robots/CN=alice`; Fast DDS as the certificate has them: `CN=alice,O=robots`.
fn is_same_name(kind: Kind, subject: &str, granted: &str) -> bool {
    let (ours, theirs) = (parts(kind, subject), parts(kind, granted));
    !ours.is_empty() && ours == theirs
}

fn parts(kind: Kind, name: &str) -> Vec<String> {
    let is_any_order = kind == Kind::Cyclone;
    let separator = if is_any_order && name.trim().starts_with('/') { '/' } else { ',' };
    let mut parts: Vec<_> = name.split(separator).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    if is_any_order {
        parts.sort();
    }
    parts
}

/// A date as the documents have it, `2030-12-31T00:00:00`, with or without a zone, which is left out of account; none if it is none.
fn moment(text: &str) -> Option<DateTime> {
    let text = text.trim();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
    let small = |from: usize, to: usize| u8::try_from(number(from, to)?).ok();
    let time = match text.as_bytes().get(10) {
        None => (0, 0, 0),
        Some(b'T') => (small(11, 13)?, small(14, 16)?, small(17, 19)?),
        Some(_) => return None,
    };
    DateTime::new(number(0, 4)?, small(5, 7)?, small(8, 10)?, time.0, time.1, time.2).ok()
}

fn now() -> Option<DateTime> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    DateTime::from_unix_duration(now).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_each_implementation_does() {
        let ours = "CN=alice,O=robots";
        for (granted, cyclone, fast) in [
            ("CN=alice,O=robots", true, true),
            (" CN=alice , O=robots", true, true),
            ("O=robots,CN=alice", true, false),
            ("/O=robots/CN=alice", true, false),
            ("CN=alice", false, false),
            ("CN=Alice,O=robots", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_same_name(Kind::Cyclone, ours, granted), is_same_name(Kind::FastDds, ours, granted)),
                (cyclone, fast),
                "{granted}"
            );
        }
    }

    #[test]
    fn moments_are_compared_to_the_second() {
        let at = |text| moment(text).unwrap();
        assert!(at("2030-12-31T00:00:01") > at("2030-12-31T00:00:00") && at("2030-12-31") == at("2030-12-31T00:00:00Z"));
        for wrong in ["", "soon", "2030-13-01T00:00:00", "2030-12-31 00:00:00", "2030-12-31T0", "äöäöäöäöäö"] {
            assert!(moment(wrong).is_none(), "{wrong}");
        }
    }
}
