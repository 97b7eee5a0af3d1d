//! Governance and permissions: what they cost, and whether they hold. Their signatures are the participants' to verify.

use super::config::Security;
use super::not_named;
use super::xml;
use crate::doctor::Finding;
use crate::failure::Failure;
use std::path::Path;

/// What is to be said of a document in a file.
type Judge = fn(&Path, &roxmltree::Document<'_>) -> Vec<Finding>;

/// Looks at both documents.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    let mut findings = Vec::new();
    let documents: [(&'static str, _, Judge); 2] =
        [("governance", &security.governance, governance), ("permissions", &security.permissions, permissions)];
    for (about, path, judge) in documents {
        let Some(path) = path else {
            findings.push(not_named(about));
            continue;
        };
        let judged = (|| {
            let text = xml::read(path)?;
            let inner = signed(path, &text)?;
            Ok::<_, Failure>(judge(path, &xml::parse(path, inner)?))
        })();
        match judged {
            Ok(found) => findings.extend(found),
            Err(failure) => findings.push(Finding::broken(
                about,
                failure.message,
                "sign it anew: openssl smime -sign -text -in ... -signer CA -inkey KEY",
            )),
        }
    }
    findings
}

/// The document within its S/MIME envelope (RFC 8551 s3.5.3): the clear text is in it as it is.
fn signed<'a>(path: &Path, text: &'a str) -> Result<&'a str, Failure> {
    let lacks = |what: &str| Failure::config(format!("{}: {what}", path.display()));
    if !text.contains("pkcs7-signature") {
        return Err(lacks("not signed (S/MIME, clear text): participants refuse it"));
    }
    let start = text.find("<?xml").or_else(|| text.find("<dds")).ok_or_else(|| lacks("no <dds> document in it"))?;
    let end = text[start..].find("</dds>").ok_or_else(|| lacks("its <dds> document has no end"))?;
    Ok(&text[start..start + end + "</dds>".len()])
}

/// The words that a rule has for a kind of protection.
fn words(document: &roxmltree::Document<'_>, name: &str) -> Vec<String> {
    document.descendants().filter(|node| node.is_element() && node.tag_name().name() == name).map(xml::text).collect()
}

fn governance(path: &Path, document: &roxmltree::Document<'_>) -> Vec<Finding> {
    let encrypts = |name: &str| words(document, name).iter().any(|word| word.starts_with("ENCRYPT"));
    let levels =
        [("whole messages", "rtps_protection_kind"), ("submessages", "metadata_protection_kind"), ("payloads", "data_protection_kind")];
    let encrypted: Vec<&str> = levels.iter().filter(|(_, name)| encrypts(name)).map(|(what, _)| *what).collect();
    let mut findings = Vec::new();
    if words(document, "rtps_protection_kind").is_empty() {
        let mend = "is this a governance document? see DDS Security 1.1 s9.4.1.2";
        findings.push(Finding::broken("governance", format!("{}: no <domain_rule> with an <rtps_protection_kind>", path.display()), mend));
        return findings;
    }
    findings.push(match encrypted.as_slice() {
        [_, _, _] => Finding::note(
            "governance",
            "encrypts every byte three times: whole messages, submessages and payloads",
            "one level hides the payload from strangers: rtps_protection_kind ENCRYPT alone, or data_protection_kind ENCRYPT alone where\n\
             relays must not read it either",
        ),
        [one, other] => Finding::note(
            "governance",
            format!("encrypts every byte twice: {one} and {other}"),
            "see whether one of them is enough; `bywash reproduce kido` shows what each costs on this machine",
        ),
        [one] => Finding::ok("governance", format!("encrypts {one}")),
        _ => Finding::ok("governance", "encrypts nothing"),
    });
    let per_receiver = levels.iter().any(|(_, name)| words(document, name).iter().any(|word| word.ends_with("WITH_ORIGIN_AUTHENTICATION")));
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

fn permissions(path: &Path, document: &roxmltree::Document<'_>) -> Vec<Finding> {
    let subjects = words(document, "subject_name");
    if subjects.is_empty() {
        let mend = "is this a permissions document? see DDS Security 1.1 s9.4.1.3";
        return vec![Finding::broken("permissions", format!("{}: no <grant> with a <subject_name>", path.display()), mend)];
    }
    let today = today();
    let ends = words(document, "not_after");
    match ends.iter().filter_map(|end| date(end)).min() {
        Some(end) if end < today => {
            vec![Finding::broken(
                "permissions",
                format!("{}: expired on {}-{:02}-{:02}", path.display(), end.0, end.1, end.2),
                "sign new ones",
            )]
        }
        _ => vec![Finding::ok("permissions", format!("{}: for {}", path.display(), subjects.join(", ")))],
    }
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
