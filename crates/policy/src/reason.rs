//! Why a batch was the next: what a policy says of its last dispatch, for people who ask.

use core::fmt;

/// Why a batch was dispatched before what else waited. Displayed as the end of a sentence: "it was chosen because ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing else waited that could have run there.
    Only,
    /// No other engine that is up computes it.
    Alone,
    /// It had come first.
    Oldest,
    /// It was expected to be done soonest there.
    Cheapest,
    /// Its session, or its process, holds the module.
    Holder,
    /// It was its session's turn.
    Turn,
    /// The session before it goes on, so nothing had to be switched.
    Continued,
    /// It had the earliest deadline that can still be met.
    Deadline,
    /// Its tenant had had the least time for its weight.
    Share,
    /// It was the shortest.
    Shortest,
    /// It had waited so long that it went before shorter ones.
    Aged,
    /// It was on this side of the size at which the other engine gains.
    Size,
    /// The engine that should have had it is down, or failed it.
    FailOver,
    /// It was small, and others like it waited: they go in one launch.
    Packed,
    /// It is a part of a request that was cut, so that engines compute it side by side.
    Part,
    /// The processor is to be left free, and of its time it takes the least there.
    Spared,
    /// It takes the least energy there.
    Frugal,
    /// The engine that is preferred has so much waiting that this one helps out.
    Relief,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Only,
        Self::Alone,
        Self::Oldest,
        Self::Cheapest,
        Self::Holder,
        Self::Turn,
        Self::Continued,
        Self::Deadline,
        Self::Share,
        Self::Shortest,
        Self::Aged,
        Self::Size,
        Self::FailOver,
        Self::Packed,
        Self::Part,
        Self::Spared,
        Self::Frugal,
        Self::Relief,
    ];

    /// In a word, as recordings have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Only => "only",
            Self::Alone => "alone",
            Self::Oldest => "oldest",
            Self::Cheapest => "cheapest",
            Self::Holder => "holder",
            Self::Turn => "turn",
            Self::Continued => "continued",
            Self::Deadline => "deadline",
            Self::Share => "share",
            Self::Shortest => "shortest",
            Self::Aged => "aged",
            Self::Size => "size",
            Self::FailOver => "failover",
            Self::Packed => "packed",
            Self::Part => "part",
            Self::Spared => "spared",
            Self::Frugal => "frugal",
            Self::Relief => "relief",
        }
    }

    /// The reason of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Only => "nothing else waited that could have run there",
            Self::Alone => "no other engine that is up computes it",
            Self::Oldest => "it had come first",
            Self::Cheapest => "it was expected to be done soonest there",
            Self::Holder => "its session holds the module",
            Self::Turn => "it was its session's turn",
            Self::Continued => "the session before it goes on, so nothing had to be switched",
            Self::Deadline => "it had the earliest deadline",
            Self::Share => "its tenant had had the least time for its weight",
            Self::Shortest => "it was the shortest",
            Self::Aged => "it had waited so long that it went before shorter ones",
            Self::Size => "it was on that engine's side of the size at which the other gains",
            Self::FailOver => "the engine that should have had it is down or failed it",
            Self::Packed => "it is small, and goes in one launch with others that waited",
            Self::Part => "it is a part of a request that engines compute side by side, which is done sooner",
            Self::Spared => "the processor is to be left free, and of its time it takes the least there",
            Self::Frugal => "it takes the least energy there",
            Self::Relief => "the engine that is preferred has too much waiting",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_one_reason_each() {
        assert!(Reason::ALL.into_iter().all(|reason| Reason::of_word(reason.word()) == Some(reason)));
        assert_eq!(Reason::of_word("luck"), None);
    }
}
