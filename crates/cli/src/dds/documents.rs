//! Governance and permissions: what they cost, and whether they hold. Their signatures are the participants' to verify.

use super::config::{Kind, Part, Security};
use super::{not_named, trust, xml};
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;
use x509_cert::der::DateTime;

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

/// Names in a finding: the first few.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// What a governance asks for: for each rule for domains and each for topics in them, its words by their names. None if it cannot be read.
pub(super) fn rules(path: &Path) -> Option<Vec<Rule>> {
    let text = xml::read(path).ok()?;
    let document = xml::parse(path, signed(path, &text).ok()?).ok()?;
    let rule = |node: roxmltree::Node<'_, '_>, names: &[&'static str], of: String| {
        let word = |name: &&'static str| {
            let word = xml::text(xml::find(node, name)?);
            let word = match word.to_ascii_lowercase().as_str() {
                "true" | "1" => "true".into(),
                "false" | "0" => "false".into(),
                _ => word,
            };
            Some((*name, word))
        };
        Rule { of, words: names.iter().filter_map(word).collect() }
    };
    let mut found = Vec::new();
    for domain in document.descendants().filter(|node| xml::is_named(*node, "domain_rule")) {
        let ids = xml::find(domain, "domains").into_iter().flat_map(|domains| domains.descendants()).filter(roxmltree::Node::is_text);
        let ids: Vec<_> = ids.filter_map(|text| text.text()).map(str::trim).filter(|text| !text.is_empty()).collect();
        let of = format!("domains {}", ids.join("-"));
        found.push(rule(domain, &DOMAIN_WORDS, of.clone()));
        for topic in domain.descendants().filter(|node| xml::is_named(*node, "topic_rule")) {
            let topics = xml::find(topic, "topic_expression").map(xml::text).unwrap_or_default();
            found.push(rule(topic, &TOPIC_WORDS, format!("{of}, topic {topics}")));
        }
    }
    Some(found)
}

/// The words of a rule for domains, and of one for topics, that both sides must have alike to meet (DDS Security 1.1 s7.3.22, s9.4.2.4).
const DOMAIN_WORDS: [&str; 3] = ["rtps_protection_kind", "discovery_protection_kind", "liveliness_protection_kind"];
const TOPIC_WORDS: [&str; 6] = [
    "enable_discovery_protection",
    "enable_liveliness_protection",
    "enable_read_access_control",
    "enable_write_access_control",
    "metadata_protection_kind",
    "data_protection_kind",
];

/// What a governance asks for in some domains, or for some of their topics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub(super) of: String,
    pub(super) words: Vec<(&'static str, String)>,
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
            format!("neither signs nor encrypts messages of {}: anybody on the network can read and forge them", some(&bare)),
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
    let now = now();
    let subject = security.part(Part::Identity).and_then(trust::subject);
    let is_ours = |granted: &str| subject.as_deref().is_none_or(|subject| is_same_name(security.kind, subject, granted));
    let grants = document.descendants().filter(|node| xml::is_named(*node, "grant"));
    let mut findings = Vec::new();
    let mut holding = Vec::new();
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
        findings.push(Finding::note("permissions", format!("{}: what is granted to {granted} {why}", path.display()), "sign new ones"));
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
