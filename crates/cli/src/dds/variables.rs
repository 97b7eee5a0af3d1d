//! Variables of the environment in the values of a Cyclone DDS configuration, read as Cyclone DDS 0.10 reads them: `$X`, `${X}`, `${X:-otherwise}`, `${X:+instead}`,
//! `${X:?complaint}`, with `\` before a letter that means itself.

use crate::doctor::Finding;
use std::collections::BTreeSet;

/// How deep one may stand in another, as in Cyclone.
const DEPTH_MAX: usize = 20;
/// The longest value: no path is longer, and what stands in itself often grows quickly.
const LENGTH_MAX: usize = 1 << 20;

/// Expands values and keeps what was the matter.
pub(super) struct Expander<F> {
    lookup: F,
    unset: BTreeSet<String>,
    wrong: BTreeSet<String>,
}

impl<F: Fn(&str) -> Option<String>> Expander<F> {
    pub(super) fn new(lookup: F) -> Self {
        Self { lookup, unset: BTreeSet::new(), wrong: BTreeSet::new() }
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
        while let Some(at) = rest.find(['\\', '$']).filter(|_| depth < DEPTH_MAX && expanded.len() < LENGTH_MAX) {
            expanded.push_str(&rest[..at]);
            let is_escape = rest[at..].starts_with('\\');
            rest = &rest[at + 1..];
            let next = rest.chars().next()?;
            if is_escape {
                expanded.push(next);
                rest = &rest[next.len_utf8()..];
            } else if next == '{' {
                let end = closing(rest)?;
                expanded.push_str(&self.braced(&rest[1..end], depth)?);
                rest = &rest[end + 1..];
            } else {
                let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()).max(next.len_utf8());
                expanded.push_str(&self.value(&rest[..length]));
                rest = &rest[length..];
            }
        }
        expanded.push_str(rest);
        (depth < DEPTH_MAX && expanded.len() < LENGTH_MAX).then_some(expanded)
    }

    /// What stands between `${` and `}`.
    fn braced(&mut self, text: &str, depth: usize) -> Option<String> {
        let Some((name, rest)) = text.split_once(':') else { return Some(self.value(text)) };
        let set = (self.lookup)(name).filter(|value| !value.is_empty());
        match (rest.chars().next()?, set) {
            ('-' | '?', Some(value)) => Some(value),
            ('-', None) | ('+', Some(_)) => self.expand_at(&rest[1..], depth + 1),
            ('+', None) => Some(String::new()),
            _ => None,
        }
    }

    fn value(&mut self, name: &str) -> String {
        (self.lookup)(name).unwrap_or_else(|| {
            self.unset.insert(name.to_owned());
            String::new()
        })
    }

    /// What is to be said.
    pub(super) fn findings(self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .wrong
            .into_iter()
            .map(|value| {
                Finding::broken(
                    "configuration",
                    format!("{value}: no participant starts"),
                    "${NAME} or ${NAME:-otherwise}; \\$ for a dollar sign",
                )
            })
            .collect();
        if !self.unset.is_empty() {
            let names: Vec<_> = self.unset.into_iter().map(|name| format!("${{{name}}}")).collect();
            let mend = "set it here as it is where the program starts, and for the program";
            findings.push(Finding::note("configuration", format!("{}: not set here, taken as nothing", names.join(", ")), mend));
        }
        findings
    }
}

/// Where the brace that `text` begins with is closed.
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
            ("file:$HOME/k.pem", "file:/home/u/k.pem"),
            ("file:${HOME}/k.pem", "file:/home/u/k.pem"),
            ("${NOT:-/etc/${NOT:-x}}/k", "/etc/x/k"),
            ("${EMPTY:-$HOME}", "/home/u"),
            ("${HOME:+set}${EMPTY:+not}", "set"),
            ("${NOT:-a\\}b}", "a}b"),
            ("\\$HOME", "$HOME"),
            ("a$NOT", "a"),
            ("ä$HOME ö", "ä/home/u ö"),
        ] {
            assert_eq!(Expander::new(lookup).expand(value), expected, "{value}");
        }
        for wrong in ["${HOME", "a$", "a\\", "${HOME:=x}", "${NOT:?why}", "${HOME:"] {
            let mut expander = Expander::new(lookup);
            assert_eq!(expander.expand(wrong), wrong);
            assert!(expander.findings().iter().any(|finding| finding.found.starts_with(wrong)), "{wrong}");
        }
        let deep = format!("{}x{}", "${NOT:-".repeat(30), "}".repeat(30));
        assert_eq!(Expander::new(lookup).expand(&deep), deep);
        let mut expander = Expander::new(lookup);
        expander.expand("$NOT ${NEVER}");
        assert_eq!(expander.findings()[0].found, "${NEVER}, ${NOT}: not set here, taken as nothing");
    }
}
