//! Tenants: whom the machine's owner has promised what, and how a client is known to be one of theirs.

use bywash_core::trace::Whose;
use bywash_core::{Error, Result};
use bywash_manager::Tenant;
use core::fmt;
use core::str::FromStr;

/// Clients that are promised something: those of a user, of a group, or of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRule {
    /// Which.
    pub matches: Match,
    /// What each process of theirs is promised.
    pub tenant: Tenant,
}

/// How a client is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// `uid:1000`: by its user, by the kernel's word.
    User(u32),
    /// `gid:48`: by one of its groups, by the kernel's word.
    Group(u32),
    /// `program:nginx`: by its command, by its own word. Whoever may connect can call itself so: for machines whose programs are trusted.
    Program(String),
}

impl FromStr for Match {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| digits.parse::<u32>().ok();
        let found = match text.split_once(':') {
            Some(("uid", uid)) => number(uid).map(Self::User),
            Some(("gid", gid)) => number(gid).map(Self::Group),
            Some(("program", name)) if !name.is_empty() => Some(Self::Program(name.to_owned())),
            _ => None,
        };
        let reason = || format!("'{text}' names nobody; write uid:NUMBER, gid:NUMBER (`id` tells) or program:NAME");
        found.ok_or_else(|| Error::Config { place: "tenant, match".into(), reason: reason() })
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "uid:{uid}"),
            Self::Group(gid) => write!(f, "gid:{gid}"),
            Self::Program(name) => write!(f, "program:{name}"),
        }
    }
}

impl Match {
    /// Whether it means this process.
    pub fn means(&self, whose: &Whose) -> bool {
        match self {
            Self::User(uid) => *uid == whose.uid,
            Self::Group(gid) => whose.gids.contains(gid),
            Self::Program(name) => *name == whose.program,
        }
    }
}

impl TenantRule {
    /// The first of the rules that a process meets.
    pub fn of<'a>(rules: &'a [Self], whose: &Whose) -> Option<&'a Self> {
        rules.iter().find(|rule| rule.matches.means(whose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rule = |text: &str, weight| TenantRule { matches: text.parse().unwrap(), tenant: Tenant { weight, goal_ns: None } };
        let rules = [rule("program:nginx", 5), rule("uid:33", 3), rule("gid:48", 2)];
        let weight = |uid, program: &str, gid| {
            TenantRule::of(&rules, &Whose { pid: 1, uid, gids: vec![gid], program: program.to_owned() }).map(|rule| rule.tenant.weight)
        };
        assert_eq!(weight(33, "nginx", 0), Some(5));
        assert_eq!(weight(33, "curl", 48), Some(3));
        assert_eq!(weight(7, "curl", 48), Some(2));
        assert_eq!(weight(7, "curl", 0), None);
    }

    #[test]
    fn names_round_trip_and_others_are_refused_with_the_way_out() {
        for text in ["uid:0", "gid:4294967295", "program:a:b"] {
            assert_eq!(text.parse::<Match>().unwrap().to_string(), text);
        }
        for text in ["", "uid:", "uid:www-data", "program:", "user:7", "gid:-1"] {
            assert!(text.parse::<Match>().unwrap_err().to_string().contains("uid:NUMBER"), "{text}");
        }
    }
}
