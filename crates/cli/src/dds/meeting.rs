//! Whether two participants meet: each verifies the other's certificate and permissions by its own authorities, and both must protect alike.

use super::config::{Part, Security};
use super::{documents, trust};
use crate::doctor::Finding;

/// Looks at two configurations.
pub(super) fn look(one: &Security, other: &Security) -> Vec<Finding> {
    let about = "meeting";
    let mut findings = Vec::new();
    for (verifying, verified) in [(one, other), (other, one)] {
        for (part, authority) in [(Part::Identity, Part::IdentityCa), (Part::Permissions, Part::PermissionsCa)] {
            let (Some(what), Some(by)) = (verified.part(part), verifying.part(authority)) else { continue };
            if trust::is_signed_by(part, what, by) == Some(false) {
                let found = format!("{}: not signed by {}: whose that is refuses it", what.display(), by.display());
                findings.push(Finding::broken(about, found, format!("have both signed by one {}", authority.name())));
            }
        }
    }
    let rules = [one, other].map(|security| security.part(Part::Governance).and_then(documents::rules));
    if let [Some(ours), Some(theirs)] = &rules
        && ours != theirs
    {
        let differ: Vec<_> = ours
            .iter()
            .zip(theirs)
            .filter(|(ours, theirs)| ours != theirs)
            .map(|(ours, theirs)| format!("{ours} here, {theirs} there"))
            .collect();
        let differ = if differ.is_empty() { "one has more rules".into() } else { differ.join("; ") };
        let found = format!("{} and {}: their governance documents differ: {differ}", one.place.display(), other.place.display());
        findings.push(Finding::broken(about, found, "give both the same governance: what one protects and the other does not is refused"));
    }
    if findings.is_empty() {
        let found = format!("{} and {}: each verifies the other, and they protect alike", one.place.display(), other.place.display());
        findings.push(match rules {
            [Some(_), Some(_)] => Finding::ok(about, found),
            _ => Finding::note(about, "not all of it was compared", "see above what was not read"),
        });
    }
    findings
}
