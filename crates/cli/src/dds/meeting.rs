//! Whether two participants meet: each verifies the other's certificate and permissions by its own authorities, and both must protect alike.

use super::config::{Part, Security};
use super::governance::{self, Rule};
use super::trust;
use crate::doctor::Finding;

const ABOUT: &str = "meeting";

/// Looks at two configurations.
pub(super) fn look(one: &Security, other: &Security) -> Vec<Finding> {
    let mut findings = Vec::new();
    let both = format!("{} and {}", one.place.display(), other.place.display());
    if let (Some(ours), Some(theirs)) = (one.domain, other.domain)
        && ours != theirs
    {
        let found = format!("{both}: the one is for domain {ours}, the other for domain {theirs}: they never meet");
        findings.push(Finding::broken(ABOUT, found, "have both in one domain"));
    }
    let mut unknown = Vec::new();
    for (verifying, verified) in [(one, other), (other, one)] {
        for (part, authority) in [(Part::Identity, Part::IdentityCa), (Part::Permissions, Part::PermissionsCa)] {
            let files = verified.part(part).zip(verifying.part(authority));
            match files.map(|(what, by)| (what, by, trust::is_signed_by(part, what, by))) {
                Some((_, _, Some(true))) => {}
                Some((what, by, Some(false))) => {
                    let found = format!("{}: not signed by {}: whose that is refuses it", what.display(), by.display());
                    findings.push(Finding::broken(ABOUT, found, format!("have both signed by one {}", authority.name())));
                }
                _ => unknown.push(format!("{} of {}", part.name(), verified.place.display())),
            }
        }
    }
    if !unknown.is_empty() {
        let found = format!("{both}: it was not verified whether the other takes these: {}", unknown.join(", "));
        findings.push(Finding::note(ABOUT, found, "see above what was not read, is no file, or what is missing here"));
    }
    match [one, other].map(governance::rules) {
        [Some(ours), Some(theirs)] => {
            findings.extend(compare(&both, ours, theirs));
            if findings.is_empty() {
                findings.push(Finding::ok(ABOUT, format!("{both}: each verifies the other, and they protect alike")));
            }
        }
        _ => findings.push(Finding::note(ABOUT, format!("{both}: their governance was not compared"), "see above what was not read")),
    }
    findings
}

/// What two governance documents ask for.
fn compare(both: &str, mut ours: Vec<Rule>, mut theirs: Vec<Rule>) -> Option<Finding> {
    if ours == theirs {
        return None;
    }
    ours.sort();
    theirs.sort();
    if ours == theirs {
        let found = format!("{both}: their governance documents have the same rules in another order, and the first that fits counts");
        return Some(Finding::note(ABOUT, found, "give both the same governance"));
    }
    let mend = "give both the same governance: what one protects and the other does not is refused";
    let found = format!("{both}: their governance documents differ: {}", first_difference(&ours, &theirs));
    Some(Finding::broken(ABOUT, found, mend))
}

fn first_difference(ours: &[Rule], theirs: &[Rule]) -> String {
    for rule in ours {
        let Some(their) = theirs.iter().find(|their| their.of == rule.of) else { return format!("one has no rule for {}", rule.of) };
        let words = rule.words.iter().find(|word| !their.words.contains(word));
        if let Some((name, word)) = words {
            let there = their.words.iter().find(|(their, _)| their == name).map_or("nothing", |(_, word)| word);
            return format!("{name} is {word} here and {there} there ({})", rule.of);
        }
    }
    "one has more rules".into()
}
