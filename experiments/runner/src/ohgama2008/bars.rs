//! What was to be reached, and whether it was.

use std::fmt;

/// Several.
pub(super) type Bars = Vec<Bar>;

/// One figure beside what it must be.
pub(super) struct Bar {
    what: String,
    found: f64,
    bound: f64,
    at_most: bool,
}

impl Bar {
    pub(super) fn at_most(what: &str, found: f64, bound: f64) -> Self {
        Self { what: what.to_owned(), found, bound, at_most: true }
    }

    pub(super) fn at_least(what: &str, found: f64, bound: f64) -> Self {
        Self { what: what.to_owned(), found, bound, at_most: false }
    }

    fn is_met(&self) -> bool {
        if self.at_most { self.found <= self.bound } else { self.found >= self.bound }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (met, relation) = (if self.is_met() { "met   " } else { "MISSED" }, if self.at_most { "at most" } else { "at least" });
        write!(f, "  {met} {:<62}{:>9.3} ({relation} {})", self.what, self.found, self.bound)
    }
}
