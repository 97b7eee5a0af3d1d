//! Requests of a recording that an engine has no circuit for, or no cost.

use bywash_core::sheets::DEVICES;
use bywash_core::trace::Record;
use bywash_core::{Algorithm, DeviceSheet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// How many there are of each algorithm.
#[derive(Clone, Debug, Default)]
pub struct Foreign(BTreeMap<Algorithm, u64>);

impl Foreign {
    /// Those of these requests whose algorithm is so.
    pub fn of(records: &[Record], is_foreign: impl Fn(Algorithm) -> bool) -> Self {
        let mut foreign = Self::default();
        records.iter().filter(|record| is_foreign(record.algorithm)).for_each(|record| foreign.add(record.algorithm));
        foreign
    }

    /// Their algorithms.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.0.keys().copied()
    }

    /// One more.
    pub(super) fn add(&mut self, algorithm: Algorithm) {
        *self.0.entry(algorithm).or_default() += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// What to say where there are no others: what was asked for, what the sheet has, and which sheets that come along have something of it.
    pub(super) fn none_for(&self, sheet: &DeviceSheet) -> String {
        let has: Vec<&str> =
            sheet.circuits.iter().map(|mode| mode.algorithm.map_or(mode.name.as_str(), |algorithm| algorithm.name())).collect();
        let shipped = DEVICES.iter().filter_map(|(name, _)| Some((*name, DeviceSheet::shipped(name)?.ok()?)));
        let others: Vec<&str> = shipped.filter(|(_, sheet)| self.is_partly_of(sheet)).map(|(name, _)| name).collect();
        let way_out = match others[..] {
            [] => format!(
                "no sheet that comes along has one; write your own, starting with `bywash simulate --sheet {}`, or see them beside a GPU: --gpu",
                DEVICES[0].0
            ),
            _ => format!(
                "of the sheets that come along {} has some of them; `bywash simulate --sheet {}` prints one to start from",
                others.join(", "),
                others[0]
            ),
        };
        let (all, name) = (self.total(), &sheet.name);
        format!(
            "none of its {all} requests is one that '{name}' has a circuit for: they ask for {self}, and it has {}; {way_out}",
            has.join(", ")
        )
    }

    fn is_partly_of(&self, sheet: &DeviceSheet) -> bool {
        sheet.circuits.iter().filter_map(|mode| mode.algorithm).any(|algorithm| self.0.contains_key(&algorithm))
    }
}

/// The most frequent first.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: Vec<_> = self.0.iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(**count));
        for (place, (algorithm, count)) in counts.into_iter().enumerate() {
            write!(f, "{}{algorithm} ({count})", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_that_would_do_are_named() {
        let niwa2005 = DeviceSheet::shipped("niwa2005").unwrap().unwrap();
        let said = |algorithm| Foreign(BTreeMap::from([(algorithm, 7)])).none_for(&niwa2005);
        assert!(
            said(Algorithm::Aes256Ctr).contains("of the sheets that come along gpu-h200 has some of them"),
            "{}",
            said(Algorithm::Aes256Ctr)
        );
        assert!(said(Algorithm::Aes256Gcm).contains("no sheet that comes along has one"), "{}", said(Algorithm::Aes256Gcm));
    }
}
