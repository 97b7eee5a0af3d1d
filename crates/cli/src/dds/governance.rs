//! Governance (DDS Security 1.1 s9.4.1.2): what it costs, what it leaves open, and whether participants take it.

use super::config::{Kind, Part, Security};
use super::documents::{signed, some, strangers, words};
use super::xml;
use crate::doctor::Finding;
use std::path::Path;

/// What is to be said of one.
pub(super) fn judge(path: &Path, document: &roxmltree::Document<'_>, security: &Security) -> Vec<Finding> {
    let is_known = |name: &str| [&IN_GOVERNANCE[..], &DOMAIN_WORDS, &TOPIC_WORDS].iter().any(|known| known.contains(&name));
    let mut findings = strangers("governance", path, document, is_known);
    findings.extend(wrong_words(path, document));
    if security.kind != Kind::Cyclone {
        findings.extend(wrong_order(path, document));
    }
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
    findings.extend(uncovered(document, security.domain));
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
    if words(document, "allow_unauthenticated_participants").iter().any(|word| switch(word) == Some(true)) {
        findings.push(Finding::note(
            "governance",
            "lets participants in that cannot say who they are",
            "allow_unauthenticated_participants false",
        ));
    }
    findings
}

/// What a participant's governance asks for: for each rule for domains and each for topics in them, its words by their names. None if it cannot be read.
pub(super) fn rules(security: &Security) -> Option<Vec<Rule>> {
    let path = security.part(Part::Governance)?;
    let text = signed(path, &xml::read(path).ok()?, security).ok()?;
    let document = xml::parse(path, &text).ok()?;
    let rule = |node: roxmltree::Node<'_, '_>, names: &[&'static str], of: String| {
        let word = |name: &&'static str| {
            let word = xml::text(xml::find(node, name)?);
            Some((*name, switch(&word).map_or(word, |is_on| is_on.to_string())))
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

/// The words of a rule for domains, and of one for topics, that both sides must have alike to meet (DDS Security 1.1 s7.3.22, s9.4.2.4). Those of topics in the order in which Fast DDS reads them.
const DOMAIN_WORDS: [&str; 3] = ["rtps_protection_kind", "discovery_protection_kind", "liveliness_protection_kind"];
const TOPIC_WORDS: [&str; 6] = [
    "enable_discovery_protection",
    "enable_liveliness_protection",
    "enable_read_access_control",
    "enable_write_access_control",
    "metadata_protection_kind",
    "data_protection_kind",
];

/// The words of a rule for domains that each side has for itself.
const DOMAIN_SWITCHES: [&str; 2] = ["allow_unauthenticated_participants", "enable_join_access_control"];

/// The elements of a rule for domains as Fast DDS reads them one after the other.
const DOMAIN_ORDER: [&str; 7] = [
    "domains",
    "allow_unauthenticated_participants",
    "enable_join_access_control",
    "discovery_protection_kind",
    "liveliness_protection_kind",
    "rtps_protection_kind",
    "topic_access_rules",
];

/// Whether a word turns something on, or off.
fn switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// What a governance asks for in some domains, or for some of their topics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub(super) of: String,
    pub(super) words: Vec<(&'static str, String)>,
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

/// The elements of a governance document (DDS Security 1.1 s9.4.1.2), beside the words of its rules.
const IN_GOVERNANCE: [&str; 13] = [
    "dds",
    "domain_access_rules",
    "domain_rule",
    "domains",
    "id",
    "id_range",
    "min",
    "max",
    "allow_unauthenticated_participants",
    "enable_join_access_control",
    "topic_access_rules",
    "topic_rule",
    "topic_expression",
];

/// What the rules of a governance lack, or say that means nothing.
fn wrong_words(path: &Path, document: &roxmltree::Document<'_>) -> Vec<Finding> {
    const KINDS: [&str; 5] = ["NONE", "SIGN", "ENCRYPT", "SIGN_WITH_ORIGIN_AUTHENTICATION", "ENCRYPT_WITH_ORIGIN_AUTHENTICATION"];
    let mut wrong = Vec::new();
    for rule in document.descendants().filter(|node| xml::is_named(*node, "domain_rule") || xml::is_named(*node, "topic_rule")) {
        let is_domains = xml::is_named(rule, "domain_rule");
        let (switches, words): (&[&str], &[&str]) = if is_domains { (&DOMAIN_SWITCHES, &DOMAIN_WORDS) } else { (&[], &TOPIC_WORDS) };
        for name in switches.iter().chain(words) {
            let kinds = if *name == "data_protection_kind" { &KINDS[..3] } else { &KINDS[..] };
            match xml::find(rule, name).map(xml::text) {
                None => wrong.push(format!("no <{name}> in a <{}>", rule.tag_name().name())),
                Some(word) if name.ends_with("_kind") && !kinds.contains(&word.as_str()) => {
                    wrong.push(format!("<{name}> is '{word}', none of {}", kinds.join(", ")));
                }
                Some(word) if !name.ends_with("_kind") && switch(&word).is_none() => {
                    wrong.push(format!("<{name}> is '{word}', neither true nor false"));
                }
                Some(_) => {}
            }
        }
        if is_domains && xml::find(rule, "topic_access_rules").and_then(|rules| xml::find(rules, "topic_rule")).is_none() {
            wrong.push("no <topic_access_rules> with a <topic_rule> in a <domain_rule>".into());
        }
    }
    let found =
        |wrong| Finding::broken("governance", format!("{}: {wrong}: participants refuse it", path.display()), "mend it and sign it anew");
    wrong.into_iter().take(3).map(found).collect()
}

/// The first two elements that do not stand as Fast DDS reads them; Cyclone takes them in whatever order.
fn wrong_order(path: &Path, document: &roxmltree::Document<'_>) -> Option<Finding> {
    document.descendants().find_map(|rule| {
        let order = match rule.tag_name().name() {
            "domain_rule" => DOMAIN_ORDER.to_vec(),
            "topic_rule" => [&["topic_expression"][..], &TOPIC_WORDS].concat(),
            _ => return None,
        };
        let names = rule.children().filter_map(|child| order.iter().position(|name| xml::is_named(child, name)));
        let names: Vec<usize> = names.collect();
        let pair = names.windows(2).find(|pair| pair[0] >= pair[1])?;
        let [first, second] = [order[pair[0]], order[pair[1]]];
        let found = format!("{}: <{first}> stands before <{second}>: Fast DDS refuses it", path.display());
        Some(Finding::broken("governance", found, format!("write them in this order, once each, and sign it anew: {}", order.join(", "))))
    })
}

/// Whether the rules are for the domain that the configuration is for, or else for domain 0, where most are.
fn uncovered(document: &roxmltree::Document<'_>, domain: Option<u32>) -> Option<Finding> {
    let number = |node: roxmltree::Node<'_, '_>, name| xml::find(node, name).and_then(|node| xml::text(node).parse::<u32>().ok());
    let is_in = |domains: roxmltree::Node<'_, '_>, domain: u32| {
        domains.children().filter(roxmltree::Node::is_element).any(|child| {
            let (least, most) = (number(child, "min"), number(child, "max"));
            match child.tag_name().name() {
                "id" => xml::text(child).parse() == Ok(domain),
                _ => (least.is_some() || most.is_some()) && (least.unwrap_or(0)..=most.unwrap_or(u32::MAX)).contains(&domain),
            }
        })
    };
    let wanted = domain.unwrap_or(0);
    let rules = document.descendants().filter(|node| xml::is_named(*node, "domain_rule"));
    if rules.filter_map(|rule| xml::find(rule, "domains")).any(|domains| is_in(domains, wanted)) {
        return None;
    }
    let found = format!("has no rule for domain {wanted}: no participant starts there");
    let mend = "<domains><id_range><min>0</min><max>230</max></id_range></domains>, or those it is for";
    Some(if domain.is_some() { Finding::broken("governance", found, mend) } else { Finding::note("governance", found, mend) })
}
