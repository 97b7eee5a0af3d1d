//! Governance and permissions: what they cost, and whether they hold. Their signatures are the participants' to verify.

use super::config::{Part, Security};
use super::{not_named, trust, xml};
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;

/// What is to be said of a document in a file.
type Judge = fn(&Path, &roxmltree::Document<'_>, &Security) -> Vec<Finding>;

/// Looks at both documents.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    let mut findings = Vec::new();
    let documents: [(Part, Judge); 2] = [(Part::Governance, governance), (Part::Permissions, permissions)];
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

/// What a governance asks for, a line for each rule's word, with what it is of; none if it cannot be read.
pub(super) fn rules(path: &Path) -> Option<Vec<String>> {
    let text = xml::read(path).ok()?;
    let document = xml::parse(path, signed(path, &text).ok()?).ok()?;
    let kinds = |node: roxmltree::Node<'_, '_>, names: &[&str], of: &str| -> Vec<String> {
        let word = |name: &&str| Some(format!("{of}{name} {}", xml::text(xml::find(node, name)?)));
        names.iter().filter_map(word).collect()
    };
    let mut found = Vec::new();
    for domain in document.descendants().filter(|node| xml::is_named(*node, "domain_rule")) {
        found.extend(kinds(domain, &["rtps_protection_kind", "discovery_protection_kind", "liveliness_protection_kind"], ""));
        for topic in domain.descendants().filter(|node| xml::is_named(*node, "topic_rule")) {
            let of = xml::find(topic, "topic_expression").map(|topics| format!("{} of ", xml::text(topics))).unwrap_or_default();
            let names = ["enable_discovery_protection", "enable_liveliness_protection", "metadata_protection_kind", "data_protection_kind"];
            found.extend(kinds(topic, &names, &of));
        }
    }
    Some(found)
}

/// The document within its S/MIME envelope (RFC 8551 s3.5.3): the clear text is in it as it is.
fn signed<'a>(path: &Path, text: &'a str) -> Result<&'a str, Failure> {
    let lacks = |what: &str| Failure::config(format!("{}: {what}", path.display()));
    if !has_signature(text) {
        return Err(lacks("not signed (S/MIME, clear text): participants refuse it"));
    }
    let start = text.find("<?xml").or_else(|| text.find("<dds")).ok_or_else(|| lacks("no <dds> document in it"))?;
    let end = text[start..].find("</dds>").ok_or_else(|| lacks("its <dds> document has no end"))?;
    Ok(&text[start..start + end + "</dds>".len()])
}

/// The words that a rule has for a kind of protection.
fn words(document: &roxmltree::Document<'_>, name: &str) -> Vec<String> {
    document.descendants().filter(|node| xml::is_named(*node, name)).map(xml::text).collect()
}

/// What a message is encrypted by: as a whole, as submessages, its payload.
type Levels = Vec<&'static str>;

/// The most that a document encrypts the same byte: the levels, and the topics that have them if there are rules for several.
fn most_encrypted(document: &roxmltree::Document<'_>) -> (Levels, Option<String>) {
    let encrypts = |node, name| xml::find(node, name).is_some_and(|word| xml::text(word).starts_with("ENCRYPT"));
    let mut most = (Levels::new(), None);
    let mut rules = 0;
    for domain in document.descendants().filter(|node| xml::is_named(*node, "domain_rule")) {
        let whole = encrypts(domain, "rtps_protection_kind").then_some("whole messages");
        for topic in domain.descendants().filter(|node| xml::is_named(*node, "topic_rule")) {
            rules += 1;
            let submessages = encrypts(topic, "metadata_protection_kind").then_some("submessages");
            let payloads = encrypts(topic, "data_protection_kind").then_some("payloads");
            let levels: Levels = [whole, submessages, payloads].into_iter().flatten().collect();
            if levels.len() > most.0.len() {
                most = (levels, xml::find(topic, "topic_expression").map(xml::text));
            }
        }
        if most.0.is_empty() {
            most.0.extend(whole);
        }
    }
    (most.0, most.1.filter(|_| rules > 1))
}

/// The topics whose messages nothing protects.
fn unprotected(document: &roxmltree::Document<'_>) -> Vec<String> {
    let protects = |node, name| xml::find(node, name).is_some_and(|word| xml::text(word) != "NONE");
    let domains = document.descendants().filter(|node| xml::is_named(*node, "domain_rule") && !protects(*node, "rtps_protection_kind"));
    let topics = domains.flat_map(|domain| domain.descendants().filter(|node| xml::is_named(*node, "topic_rule")).collect::<Vec<_>>());
    let bare = topics.filter(|topic| !protects(*topic, "metadata_protection_kind") && !protects(*topic, "data_protection_kind"));
    bare.map(|topic| xml::find(topic, "topic_expression").map_or_else(|| "a topic".into(), |name| format!("topic {}", xml::text(name))))
        .collect()
}

fn governance(path: &Path, document: &roxmltree::Document<'_>, _: &Security) -> Vec<Finding> {
    let mut findings = Vec::new();
    if words(document, "rtps_protection_kind").is_empty() {
        let mend = "is this a governance document? see DDS Security 1.1 s9.4.1.2";
        findings.push(Finding::broken("governance", format!("{}: no <domain_rule> with an <rtps_protection_kind>", path.display()), mend));
        return findings;
    }
    let (encrypted, topics) = most_encrypted(document);
    let of = topics.map(|topics| format!(" of topic {topics}")).unwrap_or_default();
    findings.push(match encrypted.as_slice() {
        [_, _, _] => Finding::note(
            "governance",
            format!("encrypts every byte{of} three times: whole messages, submessages and payloads"),
            "one level hides the payload from strangers: rtps_protection_kind ENCRYPT alone, or data_protection_kind ENCRYPT alone where\n\
             relays must not read it either",
        ),
        [one, other] => Finding::note(
            "governance",
            format!("encrypts every byte{of} twice: {one} and {other}"),
            "see whether one of them is enough; `bywash reproduce kido` shows what each costs on this machine",
        ),
        [one] => Finding::ok("governance", format!("encrypts {one}")),
        _ => Finding::ok("governance", "encrypts nothing"),
    });
    let bare = unprotected(document);
    if !bare.is_empty() {
        findings.push(Finding::note(
            "governance",
            format!("neither signs nor encrypts messages of {}: anybody on the network can read and forge them", bare.join(", ")),
            "rtps_protection_kind SIGN or ENCRYPT, or at least data_protection_kind",
        ));
    }
    let kinds = ["rtps_protection_kind", "metadata_protection_kind"];
    let per_receiver = kinds.iter().any(|name| words(document, name).iter().any(|word| word.ends_with("WITH_ORIGIN_AUTHENTICATION")));
    if per_receiver {
        findings.push(Finding::note(
            "governance",
            "has a tag for each receiver (origin authentication): the cost of a message grows with their number",
            "drop it where participants trust each other",
        ));
    }
    if words(document, "allow_unauthenticated_participants").iter().any(|word| word.eq_ignore_ascii_case("true") || word == "1") {
        findings.push(Finding::note(
            "governance",
            "lets participants in that cannot say who they are",
            "allow_unauthenticated_participants false",
        ));
    }
    findings
}

fn permissions(path: &Path, document: &roxmltree::Document<'_>, security: &Security) -> Vec<Finding> {
    let subjects = words(document, "subject_name");
    if subjects.is_empty() {
        let mend = "is this a permissions document? see DDS Security 1.1 s9.4.1.3";
        return vec![Finding::broken("permissions", format!("{}: no <grant> with a <subject_name>", path.display()), mend)];
    }
    let today = today();
    let subject = security.part(Part::Identity).and_then(trust::subject);
    let is_ours = |granted: &str| subject.as_deref().is_none_or(|subject| parts(subject) == parts(granted));
    let grants = document.descendants().filter(|node| xml::is_named(*node, "grant"));
    let mut findings = Vec::new();
    let mut holding = Vec::new();
    for grant in grants {
        let said = |name| xml::find(grant, name).map(xml::text).unwrap_or_default();
        let bound = |name| xml::find(grant, name).and_then(|bound| date(&xml::text(bound)));
        let granted = said("subject_name");
        let why = match (bound("not_before"), bound("not_after")) {
            _ if !is_ours(&granted) => continue,
            (Some(begin), _) if today < begin => format!("does not hold before {}", said("not_before")),
            (_, Some(end)) if end < today => format!("expired on {}", said("not_after")),
            _ => {
                holding.push(granted);
                continue;
            }
        };
        findings.push(Finding::note("permissions", format!("{}: what is granted to {granted} {why}", path.display()), "sign new ones"));
    }
    findings.push(match (holding.is_empty(), subject) {
        (false, _) => Finding::ok("permissions", format!("{}: for {}", path.display(), holding.join(", "))),
        (true, Some(subject)) => {
            let found = format!(
                "{}: no grant in it holds today for {subject}, whose certificate it is; it has {}",
                path.display(),
                subjects.join(", ")
            );
            Finding::broken("permissions", found, "grant it to the certificate's subject and sign it")
        }
        (true, None) => Finding::broken("permissions", format!("{}: no grant in it holds today", path.display()), "sign new ones"),
    });
    findings
}

/// The parts of a name in whatever order: `CN=alice,O=robots`, or `/O=robots/CN=alice`.
fn parts(name: &str) -> Vec<(String, String)> {
    let separator = if name.trim().starts_with('/') { '/' } else { ',' };
    let pairs = name.split(separator).filter_map(|part| part.split_once('='));
    let mut parts: Vec<_> = pairs.map(|(kind, value)| (kind.trim().to_ascii_lowercase(), value.trim().to_owned())).collect();
    parts.sort();
    parts
}

/// The day that a date begins with: `2030-12-31T00:00:00`.
fn date(text: &str) -> Option<(u16, u8, u8)> {
    let mut parts = text.get(..10)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn today() -> (u16, u8, u8) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let days = x509_cert::der::DateTime::from_unix_duration(now);
    days.map_or((0, 0, 0), |day| (day.year(), day.month(), day.day()))
}
