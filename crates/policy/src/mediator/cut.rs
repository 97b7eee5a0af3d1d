//! Where a large request is cut, so that several engines are done with their parts at the same time.
//!
//! Near the sizes in question each engine takes a line, base plus so much a byte, from when it is available. All end at one time T when the bytes that fit in until then are all of the
//! request's: `T = (bytes + sum of (available + base) / slope) / sum of 1 / slope`. An engine that would get too little is left out, and T worked out again; and so with the lines at
//! the sizes that came out.
//!
//! Parts write where the whole is, so putting them together costs nothing. What costs is that more threads have to be woken ([`woken_ns`]).

use crate::EngineId;

/// What takes less than this, in nanoseconds, is not worth cutting: waking a thread and handing a part over to it costs a good share of it.
pub(super) const WORTH_NS: f64 = 200_000.0;
/// A cut must save a seventh, or what is not quite known of the engines would eat it up.
const GAIN: f64 = 0.86;
/// Of what fits into an engine's time only so much is given to another engine than the first: its load may rise, and the first's not.
const CAUTION: f64 = 0.9;
/// How often the lines are looked at anew.
const ROUNDS: usize = 3;
/// No part is smaller, in bytes.
const PART_MIN: f64 = 16_384.0;

/// In what time a thread that sleeps is at work, in nanoseconds: 20 to 80 us.
const WAKE_NS: f64 = 50_000.0;

/// How much later than the first of some threads that sleep one of them is at work, in nanoseconds: each that is woken wakes another.
pub(super) fn woken_ns(others: usize) -> f64 {
    WAKE_NS * f64::from(usize::BITS - others.leading_zeros())
}

/// A line: nanoseconds besides the bytes, and of each byte.
pub(super) type Line = (f64, f64);

/// A worker of an engine that could have a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) engine: EngineId,
    /// Nanoseconds from now until it can begin.
    pub(super) begin_ns: f64,
    line: Line,
}

impl Share {
    pub(super) fn new(engine: EngineId, begin_ns: f64) -> Self {
        Self { engine, begin_ns, line: (0.0, 1.0) }
    }

    fn at(self, bytes: f64, line: &dyn Fn(EngineId, u64) -> Line) -> Self {
        Self { line: line(self.engine, bytes as u64), ..self }
    }

    fn base(&self) -> f64 {
        self.begin_ns + self.line.0
    }

    fn takes(&self, bytes: f64) -> f64 {
        self.base() + self.line.1 * bytes
    }

    fn fits(&self, end: f64) -> f64 {
        (end - self.base()) / self.line.1
    }
}

/// The parts for these workers, the largest first; empty if the request is better left whole. Cuts are at multiples of `grain`. `line` says what an engine takes for bytes about so many.
pub(super) fn parts(shares: &[Share], line: &dyn Fn(EngineId, u64) -> Line, bytes: u64, grain: u64, parts: &mut Vec<(EngineId, u64)>) {
    let all = bytes as f64;
    let mut shares: Vec<Share> = shares.iter().map(|share| share.at(all, line)).collect();
    let alone = shares.iter().map(|share| share.takes(all)).fold(f64::INFINITY, f64::min);
    if alone < WORTH_NS {
        return;
    }
    let mut end = 0.0;
    for _ in 0..ROUNDS {
        let Some(level) = level(&mut shares, all) else { return };
        end = level;
        shares = shares.iter().map(|share| share.at(share.fits(end), line)).collect();
    }
    shares.sort_by(|a, b| b.fits(end).total_cmp(&a.fits(end)));
    let grain = grain.max(1);
    let floor = |bytes: f64| bytes.max(0.0) as u64 / grain * grain;
    let caution = |share: &Share| if share.engine == shares[0].engine { 1.0 } else { CAUTION };
    let others: Vec<(EngineId, u64)> = shares.iter().skip(1).map(|share| (share.engine, floor(caution(share) * share.fits(end)))).collect();
    let joined: u64 = others.iter().map(|(_, bytes)| bytes).sum();
    if joined >= bytes || others.iter().any(|(_, bytes)| *bytes == 0) {
        return;
    }
    // The first takes what the others leave, to a grain; what is left of the last grain goes to the last part.
    let first = floor((bytes - joined) as f64);
    let done = shares[0].takes((bytes - joined) as f64).max(end);
    if first == 0 || done > GAIN * alone {
        return;
    }
    parts.push((shares[0].engine, first));
    parts.extend(others);
    if let Some((_, last)) = parts.last_mut() {
        *last += bytes - joined - first;
    }
}

/// When all are done if all help; workers that would not help enough are taken out. `None` with fewer than two.
fn level(shares: &mut Vec<Share>, bytes: f64) -> Option<f64> {
    while shares.len() > 1 {
        let slopes: f64 = shares.iter().map(|share| 1.0 / share.line.1).sum();
        let bases: f64 = shares.iter().map(|share| share.base() / share.line.1).sum();
        let end = (bytes + bases) / slopes;
        let least = shares.iter().enumerate().map(|(place, share)| (share.fits(end), place));
        match least.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((fits, place)) if fits < PART_MIN => drop(shares.swap_remove(place)),
            _ => return Some(end),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Engines by when they can begin and what they take of a byte.
    fn cut(engines: &[(f64, f64)], bytes: u64) -> Vec<(EngineId, u64)> {
        let mut made = Vec::new();
        let shares: Vec<Share> = (0..).zip(engines).map(|(engine, &(begin, _))| Share::new(EngineId(engine), begin)).collect();
        parts(&shares, &|engine, _| (0.0, engines[usize::from(engine.0)].1), bytes, 16, &mut made);
        assert!(made.is_empty() || made.iter().map(|(_, bytes)| bytes).sum::<u64>() == bytes, "{made:?}");
        let (_, whole) = made.split_last().map_or((&(EngineId(0), 0), &[][..]), |(last, rest)| (last, rest));
        assert!(whole.iter().all(|(_, bytes)| *bytes > 0 && bytes % 16 == 0), "{made:?}");
        made
    }

    #[test]
    fn engines_of_one_speed_share_alike() {
        let made = cut(&[(0.0, 10.0), (0.0, 10.0)], 1 << 20);
        assert_eq!(made.len(), 2);
        assert!((0.43..0.5).contains(&(made[1].1 as f64 / f64::from(1 << 20))), "{made:?}");
    }

    #[test]
    fn who_is_late_gets_less_and_who_is_too_late_nothing() {
        let late = |ns: f64| cut(&[(0.0, 10.0), (ns, 10.0)], 1 << 20);
        let (some, more) = (late(4e6), late(0.0));
        assert!(some[1].1 < more[1].1, "{some:?} {more:?}");
        assert!(late(10.4e6).is_empty());
    }

    #[test]
    fn nothing_is_cut_that_is_short() {
        assert!(cut(&[(0.0, 10.0), (0.0, 10.0)], 8192).is_empty());
        assert!(cut(&[(0.0, 0.01), (0.0, 0.01)], 1 << 20).is_empty(), "10 us");
        assert_eq!(cut(&[(0.0, 0.05), (0.0, 0.06)], 16 << 20).len(), 2, "20 GB/s");
    }

    #[test]
    fn threads_wake_each_other_in_a_logarithm_of_their_number() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8].map(|others| woken_ns(others) / WAKE_NS), [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
    }

    #[test]
    fn the_last_bytes_are_not_lost() {
        for bytes in [(1 << 20) - 1, (1 << 20) + 1, (1 << 20) + 15, 999_999] {
            let made = cut(&[(0.0, 10.0), (0.0, 20.0), (0.0, 20.0)], bytes);
            assert_eq!(made.len(), 3);
        }
    }
}
