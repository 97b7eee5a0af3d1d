//! Oldest first: what the others are laid over where nothing better is asked for. One engine's [`Fifo`](crate::Fifo).
//!
//! *Work-conserving*; *starvation bound*: nobody is overtaken.

use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;

/// Oldest first.
pub struct Oldest;

impl Discipline for Oldest {
    fn reason(&self, _chosen: Owner, _module: &Module) -> Reason {
        Reason::Oldest
    }

    fn tell(&mut self, _now: Time, _news: News<'_>, _module: &Module) {}

    fn choose(&mut self, _now: Time, module: &Module) -> Choice {
        module.oldest().into()
    }
}
