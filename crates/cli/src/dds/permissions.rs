//! Permissions (DDS Security 1.1 s9.4.1.3): whom they are for, and until when.

use super::config::{Kind, Part, Security};
use super::documents::{some, strangers};
use super::{trust, xml};
use crate::doctor::Finding;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
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
    let nodes: Vec<_> = document.descendants().filter(|node| xml::is_named(*node, "grant")).collect();
    if !nodes.iter().any(|node| xml::find(*node, "subject_name").is_some()) {
        let mend = "is this a permissions document? see DDS Security 1.1 s9.4.1.3";
        return vec![Finding::broken("permissions", format!("{}: no <grant> with a <subject_name>", path.display()), mend)];
    }
    let mut findings = strangers("permissions", path, document, |name| IN_PERMISSIONS.contains(&name));
    let needed = ["subject_name", "validity", "not_before", "not_after"];
    if let Some(name) = needed.iter().find(|name| nodes.iter().any(|node| xml::find(*node, name).is_none())) {
        let found = format!("{}: no <{name}> in a <grant>: participants refuse it", path.display());
        findings.push(Finding::broken("permissions", found, "mend it and sign it anew"));
        return findings;
    }
    let grants: Vec<Grant> = nodes.into_iter().map(Grant::read).collect();
    let subject = |is_ascii| security.part(Part::Identity).and_then(|certificate| trust::subject(certificate, is_ascii));
    let subjects = Subjects { to_cyclone: subject(true), to_fast_dds: subject(false) };
    findings.extend(of_grants(path, security.kind, &grants, &subjects, now()));
    findings
}

/// A certificate's subject, as each implementation writes it; none if it cannot be told.
struct Subjects {
    to_cyclone: Option<String>,
    to_fast_dds: Option<String>,
}

/// What is granted to the one whose certificate it is. Of several grants for him Cyclone takes the first, whether it holds or not; Fast DDS the first that holds.
fn of_grants(path: &Path, kind: Kind, grants: &[Grant], subjects: &Subjects, now: i64) -> Vec<Finding> {
    let shown = path.display();
    let is_to_cyclone = |grant: &&Grant| subjects.to_cyclone.as_ref().is_none_or(|subject| is_name_for_cyclone(subject, &grant.name));
    let is_to_fast_dds = |grant: &&Grant| subjects.to_fast_dds.as_ref().is_none_or(|subject| is_name_for_fast_dds(subject, &grant.name));
    let is_cyclone = kind == Kind::Cyclone;
    let ours: Vec<&Grant> = grants.iter().filter(|grant| if is_cyclone { is_to_cyclone(grant) } else { is_to_fast_dds(grant) }).collect();
    let why = |grant: &Grant| if is_cyclone { grant.over_for_cyclone(now) } else { grant.over_for_fast_dds(now) };
    let holding: Vec<String> = ours.iter().filter(|grant| why(grant).is_none()).map(|grant| grant.name.clone()).collect();
    let mut findings: Vec<Finding> = Vec::new();
    // Without a subject it cannot be told which is the first.
    let first = grants.iter().find(is_to_cyclone).filter(|_| subjects.to_cyclone.is_some());
    let first_is_over = first.and_then(|grant| Some((grant, grant.over_for_cyclone(now)?)));
    let mend = "sign new ones, with one grant for each subject";
    match first_is_over {
        Some((grant, why)) if is_cyclone => {
            let counts = if holding.is_empty() { "" } else { "; of several grants for a subject the first counts" };
            let found = format!("{shown}: what is granted to {} {why}{counts}", grant.name);
            return vec![Finding::broken("permissions", found, mend)];
        }
        Some((grant, why)) if kind == Kind::Enclave && !holding.is_empty() => {
            let found = format!(
                "{shown}: broken under rmw_cyclonedds_cpp, for which the first grant counts: what is granted to {} {why}",
                grant.name
            );
            findings.push(Finding::broken("permissions", found, mend));
        }
        None if kind == Kind::Enclave && !holding.is_empty() && first.is_none() => {
            let subject = subjects.to_cyclone.iter().map(|subject| {
                let found = format!("{shown}: broken under rmw_cyclonedds_cpp: no grant in it is for {subject}");
                Finding::broken("permissions", found, "grant it to that name too, in a grant of its own, and sign it")
            });
            findings.extend(subject);
        }
        _ => {}
    }
    for grant in &ours {
        match why(grant) {
            // One that is over, beside one that holds, is nobody's but who reads it.
            Some(_) if is_cyclone && first.is_some() => {}
            Some(why) => {
                let found = format!("{shown}: what is granted to {} {why}", grant.name);
                findings.push(if holding.is_empty() {
                    Finding::broken("permissions", found, "sign new ones")
                } else {
                    Finding::note("permissions", found, "sign new ones without it")
                });
            }
            None if !is_cyclone && grant.is_near(now) => {
                let found = format!(
                    "{shown}: what is granted to {} begins or ends within hours: Fast DDS takes {} and {} for the time of the place where a participant runs, whatever zone they name",
                    grant.name, grant.begin.text, grant.end.text
                );
                findings.push(Finding::note("permissions", found, "let it begin a day earlier, and sign new ones a day before it ends"));
            }
            None => {}
        }
    }
    let subject = if is_cyclone { &subjects.to_cyclone } else { &subjects.to_fast_dds };
    match subject {
        _ if !holding.is_empty() => findings.push(Finding::ok("permissions", format!("{shown}: for {}", some(&holding)))),
        _ if !ours.is_empty() => {}
        Some(subject) => {
            let names: Vec<String> = grants.iter().map(|grant| grant.name.clone()).collect();
            let found = format!("{shown}: no grant in it holds today for {subject}, whose certificate it is; it has {}", some(&names));
            findings.push(Finding::broken("permissions", found, "grant it to the certificate's subject and sign it"));
        }
        None => findings.push(Finding::broken("permissions", format!("{shown}: no grant in it holds today"), "sign new ones")),
    }
    findings
}

/// What somebody is granted, and from when to when.
struct Grant {
    name: String,
    begin: Bound,
    end: Bound,
}

/// A date as it stands there, and what it says; nothing if it says none.
struct Bound {
    text: String,
    moment: Option<Moment>,
}

/// How far a place's time may be from that of others: what Fast DDS makes of a date is as uncertain.
const ZONES: i64 = 14 * 3600;

impl Grant {
    fn read(node: roxmltree::Node<'_, '_>) -> Self {
        let said = |name| xml::find(node, name).map(xml::text).unwrap_or_default();
        let bound = |name| {
            let text = said(name);
            Bound { moment: moment(&text), text }
        };
        Self { name: said("subject_name"), begin: bound("not_before"), end: bound("not_after") }
    }

    /// Why it does not hold for Cyclone, which knows zones.
    fn over_for_cyclone(&self, now: i64) -> Option<String> {
        self.over(now, 0, Moment::at)
    }

    /// Why it does not hold for Fast DDS, wherever that runs.
    fn over_for_fast_dds(&self, now: i64) -> Option<String> {
        self.over(now, ZONES, |moment| Some(moment.written))
    }

    fn over(&self, now: i64, uncertain: i64, at: impl Fn(&Moment) -> Option<i64>) -> Option<String> {
        let [begin, end] = [&self.begin, &self.end].map(|bound| bound.moment.as_ref().and_then(&at));
        match (begin, end) {
            (None, _) => Some(format!("begins at no time: {}", self.begin.text)),
            (_, None) => Some(format!("ends at no time: {}", self.end.text)),
            (Some(begin), _) if now + uncertain <= begin => Some(format!("does not hold before {}", self.begin.text)),
            (_, Some(end)) if end + uncertain <= now => Some(format!("expired on {}", self.end.text)),
            _ => None,
        }
    }

    /// Whether it depends on the place for Fast DDS if it holds.
    fn is_near(&self, now: i64) -> bool {
        [&self.begin, &self.end].iter().filter_map(|bound| bound.moment).any(|moment| (moment.written - now).abs() < ZONES)
    }
}

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    /// Seconds since 1970, as if no zone were named.
    written: i64,
    /// Seconds by which the zone's time is ahead.
    ahead: i64,
}

impl Moment {
    /// When it is, to Cyclone: seconds since 1970. None for what that takes for none: zones further than 12 hours away, and years after 2262.
    fn at(&self) -> Option<i64> {
        const YEAR_2263: i64 = 9_246_182_400;
        (self.ahead.abs() <= 12 * 3600 && self.written < YEAR_2263).then_some(self.written - self.ahead)
    }
}

/// A date as the documents have it: `2030-12-31T00:00:00`, behind it a fraction or none, and `Z`, `+01:00` or no zone. None if it is none.
fn moment(text: &str) -> Option<Moment> {
    let (date, rest) = text.trim().split_at_checked(19)?;
    let is_pattern = date.bytes().zip(*b"0000-00-00T00:00:00").all(|(found, wanted)| match wanted {
        b'0' => found.is_ascii_digit(),
        _ => found == wanted,
    });
    if !is_pattern {
        return None;
    }
    let number = |from: usize, to: usize| date.get(from..to)?.parse::<u16>().ok();
    let small = |from: usize| u8::try_from(number(from, from + 2)?).ok();
    let date = DateTime::new(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?).ok()?;
    let written = i64::try_from(date.unix_duration().as_secs()).ok()?;
    let zone = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
            if !(1..=12).contains(&(fraction.len() - zone.len())) {
                return None;
            }
            zone
        }
    };
    let ahead = match zone.as_bytes() {
        [] | [b'Z'] => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', _, _] if hours.len() == 2 => {
            let of =
                |from: usize| zone.get(from..from + 2).filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()))?.parse::<i64>().ok();
            let ahead = of(1)? * 3600 + of(4).filter(|minutes| *minutes < 60)? * 60;
            if *sign == b'-' { -ahead } else { ahead }
        }
        _ => return None,
    };
    Some(Moment { written, ahead })
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok()).unwrap_or(0)
}

/// Whether a grant's name is the certificate's to Cyclone DDS 0.10: each part of the certificate's must be in it, in whatever order and beside whatever else. `,`, `/` and `|` end a part.
fn is_name_for_cyclone(subject: &str, granted: &str) -> bool {
    const PARTS_MAX: usize = 20;
    let parts = |name: &str| -> Vec<(String, String)> {
        let parts = name.strip_suffix([',', '/', '|']).unwrap_or(name).split([',', '/', '|']);
        parts.map(|part| part.split_once('=').unwrap_or((part, ""))).map(|(name, value)| (name.into(), value.into())).collect()
    };
    let is_empty = |(name, value): &(String, String)| name.is_empty() && value.is_empty();
    let (ours, mut theirs) = (parts(subject), parts(granted));
    theirs.retain(|part| !is_empty(part));
    let has = |(name, value): &(String, String)| theirs.iter().find(|(their, _)| their == name).is_some_and(|(_, their)| their == value);
    theirs.len() <= PARTS_MAX && ours.iter().all(|part| !is_empty(part) && has(part))
}

/// Whether it is to Fast DDS: as the certificate has it, `CN=alice,O=robots`.
fn is_name_for_fast_dds(subject: &str, granted: &str) -> bool {
    let parts =
        |name: &str| -> Vec<String> { name.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect() };
    let (ours, theirs) = (parts(subject), parts(granted));
    !ours.is_empty() && ours == theirs
}

#[cfg(test)]
mod tests;
