//! Variables of the environment in the values of a Cyclone DDS configuration, read as Cyclone DDS 0.10 reads them (`ddsrt_expand_envvars`): `${X}`, `${X:-otherwise}`,
//! `${X:+instead}`, `${X:?complaint}`. A dollar sign without a brace and a backslash are themselves there.

use super::config::is_shown;
use crate::doctor::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// How deep one may stand in another.
const DEPTH_MAX: usize = 20;
/// The longest value: no path is longer.
const LENGTH_MAX: usize = 1 << 20;
/// What Cyclone fills in by itself.
const OWN: [&str; 3] = ["$", "CYCLONEDDS_PID", "CYCLONEDDS_DOMAIN_ID"];
/// A value that is shorter is not put back into findings by its name: it could be a part of anything.
const HIDDEN_FROM: usize = 4;

/// Expands values and keeps what was the matter.
pub(super) struct Expander<F> {
    lookup: F,
    used: BTreeMap<String, String>,
    unset: BTreeSet<String>,
    wrong: BTreeSet<String>,
}

/// The values that went into a configuration, by their variables: findings have the variables, for a value may be a secret.
#[derive(Debug, Default)]
pub(super) struct Hidden(Vec<(String, String)>);

impl Hidden {
    /// The finding with variables in the place of their values.
    pub(super) fn in_finding(&self, mut finding: Finding) -> Finding {
        for (name, value) in &self.0 {
            let name = format!("${{{name}}}");
            finding.found = finding.found.replace(value, &name);
            finding.mend = finding.mend.map(|mend| mend.replace(value, &name));
        }
        finding
    }
}

impl<F: Fn(&str) -> Option<String>> Expander<F> {
    pub(super) fn new(lookup: F) -> Self {
        Self { lookup, used: BTreeMap::new(), unset: BTreeSet::new(), wrong: BTreeSet::new() }
    }

    /// The value; one that Cyclone does not understand stays as it is.
    pub(super) fn expand(&mut self, value: &str) -> String {
        self.expand_at(value, 0).unwrap_or_else(|| {
            self.wrong.insert(value.to_owned());
            value.to_owned()
        })
    }

    fn expand_at(&mut self, value: &str, depth: usize) -> Option<String> {
        let mut rest = value;
        let mut expanded = String::new();
        while let Some(at) = rest.find("${").filter(|_| depth < DEPTH_MAX && expanded.len() < LENGTH_MAX) {
            expanded.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = closing(rest)?;
            expanded.push_str(&self.braced(&rest[1..end], depth)?);
            rest = &rest[end + 1..];
        }
        expanded.push_str(rest);
        (depth < DEPTH_MAX && expanded.len() < LENGTH_MAX).then_some(expanded)
    }

    /// What stands between `${` and `}`.
    fn braced(&mut self, text: &str, depth: usize) -> Option<String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let set = (self.lookup)(name);
        if let Some(value) = set.as_ref().filter(|value| value.len() >= HIDDEN_FROM) {
            self.used.insert(name.to_owned(), value.clone());
        }
        let set = set.or_else(|| OWN.contains(&name).then(|| format!("${{{name}}}")));
        if text.len() == name.len() {
            return Some(set.unwrap_or_else(|| {
                self.unset.insert(name.to_owned());
                String::new()
            }));
        }
        match (rest.chars().next()?, set.filter(|value| !value.is_empty())) {
            ('-' | '?', Some(value)) => Some(value),
            ('-', None) | ('+', Some(_)) => self.expand_at(&rest[1..], depth + 1),
            ('+', None) => Some(String::new()),
            _ => None,
        }
    }

    /// What is to be said, and what is to be said by its name alone.
    pub(super) fn finish(self) -> (Vec<Finding>, Hidden) {
        let mend = "${NAME}, ${NAME:-otherwise} or ${NAME:+instead}";
        let wrong = self.wrong.iter().map(|value| {
            let shown = if is_shown(value) { value } else { "a text with a '${' that begins no variable" };
            Finding::broken("configuration", format!("{shown}: no participant starts"), mend)
        });
        let mut findings: Vec<Finding> = wrong.collect();
        if !self.unset.is_empty() {
            let names: Vec<_> = self.unset.into_iter().map(|name| format!("${{{name}}}")).collect();
            let mend = "set it here as it is where the program starts, and for the program";
            findings.push(Finding::note("configuration", format!("{}: not set here, taken as nothing", names.join(", ")), mend));
        }
        // What holds another's value is to be found whole.
        let mut used: Vec<_> = self.used.into_iter().collect();
        used.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        (findings, Hidden(used))
    }
}

/// Where the brace that `text` begins with is closed; what follows a backslash does not close it.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut letters) = (0_usize, text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_expanded_as_cyclone_does() {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/u".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (value, expected) in [
            ("file:/a/b.pem", "file:/a/b.pem"),
            ("file:$HOME/k.pem", "file:$HOME/k.pem"),
            ("file:/a/b$", "file:/a/b$"),
            ("a\\b\\$HOME", "a\\b\\$HOME"),
            ("file:${HOME}/k.pem", "file:/home/u/k.pem"),
            ("${NOT:-/etc/${NOT:-x}}/k", "/etc/x/k"),
            ("${EMPTY:-${HOME}}", "/home/u"),
            ("${HOME:+set}${EMPTY:+not}", "set"),
            ("a${NOT}", "a"),
            ("/tmp/${CYCLONEDDS_PID}", "/tmp/${CYCLONEDDS_PID}"),
            ("ä${HOME} ö", "ä/home/u ö"),
        ] {
            assert_eq!(Expander::new(lookup).expand(value), expected, "{value}");
        }
        for wrong in ["${HOME", "${HOME:=x}", "${NOT:?why}", "${HOME:", "${a\\}"] {
            let mut expander = Expander::new(lookup);
            assert_eq!(expander.expand(wrong), wrong);
            assert!(expander.finish().0.iter().any(|finding| finding.found.starts_with(wrong)), "{wrong}");
        }
        let deep = format!("{}x{}", "${NOT:-".repeat(30), "}".repeat(30));
        assert_eq!(Expander::new(lookup).expand(&deep), deep);
        let mut expander = Expander::new(lookup);
        expander.expand("${NOT} ${NEVER}");
        assert_eq!(expander.finish().0[0].found, "${NEVER}, ${NOT}: not set here, taken as nothing");
    }

    #[test]
    fn what_came_out_of_the_environment_is_called_by_its_name() {
        let mut expander = Expander::new(|name: &str| (name == "TOKEN").then(|| "hunter2 and more".to_owned()));
        let value = expander.expand("file:/x/${TOKEN}");
        let finding = expander.finish().1.in_finding(Finding::broken("identity", format!("{value}: no"), value));
        assert_eq!((finding.found.as_str(), finding.mend.as_deref()), ("file:/x/${TOKEN}: no", Some("file:/x/${TOKEN}")));
    }
}
