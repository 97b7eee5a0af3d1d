//! When to compute what has gathered: the policy of an event-driven server's thread, whose operations wait for each other.
//!
//! A batch costs nearly the same with one lane used as with all, so it should be full; but nobody knows what arrives next, and a server's clients wait.
//! The rule needs no clock to be woken by:
//!
//! - a kind (one algorithm) of which a full batch waits is computed at once;
//! - while the server finds events, more may come: nothing is computed, except a kind that has waited for four times the time of its batch;
//! - when the server is **about to block**, nothing more comes before something is done. Then the kind with the *shortest* expected time is computed, and the
//!   server looks for events again. So cheap key agreements go first, and the handshakes behind them reach their signatures, which gather meanwhile:
//!   firing whatever waits, whenever the server has nothing else to do, breaks RSA batches up in front of a trickle of X25519;
//! - too few operations for a batch to pay are computed one by one, looking for company after each.
//!
//! *Work-conserving*: the server never blocks while an operation waits. *Bound*: an operation waits, beyond the server's own work between two looks for events,
//! for at most eight times its batch's time, or 4 ms; then its kind goes before any other, full or cheap, but those that have waited longer. So nobody's flood of
//! cheap operations keeps others' dear ones waiting.
//!
//! # What is put off
//!
//! An operation is put off if somebody else is there at all and operations of its kind have lately gained more by it than it costs. How many connections seem to be busy
//! says little about what will come together: a server that accepts one connection in each turn of its loop never shows more than two
//! at a time, with sixty behind them. What did come together says it. For RSA nearly any hope is worth the few microseconds; for P-256 it must come true. Threads that
//! sleep until another has computed pay more, and then neither P-256 nor X25519 gains enough.
//!
//! # Times
//!
//! What an operation takes alone and what a batch takes are running means of what they took, begun with a rough guess by kind of algorithm.

use bywash_core::{Algorithm, Kind, Time};
use std::collections::VecDeque;

/// What suspending a handshake, one more event and the way back cost: switching stacks twice, a look for events, libssl's and the
/// server's handling of one event. Measured in nginx as 2 to 4 us, in haproxy as 6, whose loop makes five system calls for it.
pub const SUSPENSION_NS: f64 = 6_000.0;
/// What a thread pays for sleeping until another has computed for it: a futex wait, a wake-up and two context switches. Measured in Apache's event MPM at
/// 64 connections on one busy core as 20 to 30 us of the kernel's time.
pub const SLEEP_NS: f64 = 25_000.0;
/// Of the operations that are not put off, one in so many is to be timed and told to [`Firing::observe_alone`].
pub const TIMED_EVERY: u32 = 16;
/// Of a kind's shots the first so many are timed, and then one in [`SHOTS_TIMED_EVERY`]: each time is two system calls, for few operations.
const SHOTS_TIMED: u32 = 32;
const SHOTS_TIMED_EVERY: u32 = 4;
/// While events come, a kind waits for so many times the time of its batch, and at least so long: a turn of the server's loop takes longer than a cheap batch. (haproxy does
/// one handshake in a turn: with three quarters of this and half of that, one batch in ten was not full, and it did 2 % less.)
const PATIENCE: f64 = 4.0;
const PATIENCE_MIN_NS: f64 = 2e6;
/// After so many times its patience a kind goes before those that are full or cheaper.
const STARVED: f64 = 2.0;
/// A batch in units of one operation, until it is known: what eight lanes of a 512-bit register take.
const ROUND_GUESS: f64 = 2.2;
/// The weight of a new observation.
const WEIGHT: f64 = 1.0 / 8.0;
/// One observation counts for at most so many times what is believed: a thread may lose the processor in the midst of a batch.
const LEAP_MAX: f64 = 4.0;
/// What one operation's gain weighs in the running mean; a full batch of eight weighs a quarter.
const GAIN_WEIGHT: f64 = 1.0 / 32.0;
/// After so many operations that were not put off because it has not paid lately, it is tried again.
const RETRY_AFTER: u32 = 256;

/// When the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An operation was added.
    Arrived,
    /// The server has found events.
    Busy,
    /// The server is about to block.
    Blocking,
    /// Somebody insists on an operation of this kind.
    Demanded(Algorithm),
}

/// What to compute: the oldest `count` operations of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shot {
    /// The kind.
    pub algorithm: Algorithm,
    /// How many, at least one.
    pub count: usize,
    /// Side by side, in lanes; else one after the other.
    pub side_by_side: bool,
}

/// The policy. See the [module](self).
#[derive(Clone, Debug)]
pub struct Firing {
    lanes: usize,
    /// What putting an operation off costs.
    suspension_ns: f64,
    kinds: Vec<Gathered>,
    /// Kinds of which something waits.
    waiting: Vec<Algorithm>,
}

/// One kind.
#[derive(Clone, Debug)]
struct Gathered {
    arrivals: VecDeque<Time>,
    /// Expected times of one operation by itself, and of a batch.
    one_ns: f64,
    round_ns: f64,
    /// What an operation has gained by being put off, lately; none if it is to be found out.
    gain_ns: Option<f64>,
    refused: u32,
    shots: u32,
}

impl Gathered {
    fn new(algorithm: Algorithm) -> Self {
        let one_ns = guess_ns(algorithm);
        Self { arrivals: VecDeque::new(), one_ns, round_ns: ROUND_GUESS * one_ns, gain_ns: None, refused: 0, shots: 0 }
    }

    /// What an operation gains in a full batch.
    fn hope_ns(&self, lanes: usize) -> f64 {
        self.one_ns - self.round_ns / lanes as f64
    }

    /// What computing these now would take, and how.
    fn plan(&self, algorithm: Algorithm, lanes: usize) -> (f64, Shot) {
        let count = self.arrivals.len().min(lanes);
        let side_by_side = count > 1 && self.round_ns < self.one_ns * count as f64;
        if side_by_side {
            (self.round_ns, Shot { algorithm, count, side_by_side })
        } else {
            (self.one_ns, Shot { algorithm, count: 1, side_by_side })
        }
    }
}

/// A rough guess of what an operation takes in nanoseconds, until one has been seen.
fn guess_ns(algorithm: Algorithm) -> f64 {
    let cube = |times: f64| times * times * times;
    match algorithm.kind() {
        Kind::RsaPrivate { bits } => 250e3 * libm::pow(bits as f64 / 2048.0, 2.6),
        Kind::EcdsaSign { scalar } => 15e3 * cube(scalar as f64 / 32.0),
        Kind::Agreement { private, .. } => 25e3 * cube(private as f64 / 32.0),
        Kind::PublicValue { private, .. } => 12e3 * cube(private as f64 / 32.0),
        _ => 20e3,
    }
}

impl Firing {
    /// For the handshakes of one thread, on an engine that gains from so many operations in one batch.
    pub fn new(lanes: usize) -> Self {
        let kinds = Algorithm::ALL.iter().map(|&algorithm| Gathered::new(algorithm)).collect();
        Self { lanes: lanes.max(1), suspension_ns: SUSPENSION_NS, kinds, waiting: Vec::new() }
    }

    /// For threads that sleep while another computes.
    pub fn among_threads(lanes: usize) -> Self {
        Self { suspension_ns: SLEEP_NS, ..Self::new(lanes) }
    }

    fn kind(&mut self, algorithm: Algorithm) -> &mut Gathered {
        &mut self.kinds[usize::from(algorithm.number())]
    }

    /// Whether an operation should be put off, where so many connections are busy.
    pub fn is_worth_waiting(&mut self, algorithm: Algorithm, company: usize) -> bool {
        let (lanes, suspension_ns) = (self.lanes, self.suspension_ns);
        let kind = self.kind(algorithm);
        // Optimism is corrected after a few shots; pessimism would never be.
        let hoped = kind.hope_ns(lanes).min(kind.gain_ns.unwrap_or(f64::INFINITY));
        if company < 2 || lanes < 2 {
            return false;
        }
        if hoped > suspension_ns {
            return true;
        }
        kind.refused += 1;
        if kind.refused.is_multiple_of(RETRY_AFTER) {
            kind.gain_ns = None;
            // Batches that took long, as where others had the processor, would keep it from being tried for ever.
            kind.round_ns = kind.round_ns.min(ROUND_GUESS * kind.one_ns);
        }
        false
    }

    /// An operation was put off.
    pub fn arrived(&mut self, now: Time, algorithm: Algorithm) {
        let kind = self.kind(algorithm);
        kind.arrivals.push_back(now);
        if kind.arrivals.len() == 1 {
            self.waiting.push(algorithm);
        }
    }

    /// An operation that was put off is withdrawn; `place` counts from the oldest of its kind.
    pub fn withdrawn(&mut self, algorithm: Algorithm, place: usize) {
        self.kind(algorithm).arrivals.remove(place);
        self.tidy(algorithm);
    }

    fn tidy(&mut self, algorithm: Algorithm) {
        if self.kind(algorithm).arrivals.is_empty() {
            self.waiting.retain(|&waiting| waiting != algorithm);
        }
    }

    /// What to compute now, if anything; ask again until there is nothing. What it names it counts as computed.
    pub fn decide(&mut self, now: Time, moment: Moment) -> Option<Shot> {
        let shot = self.choose(now, moment)?;
        self.kind(shot.algorithm).arrivals.drain(..shot.count);
        self.tidy(shot.algorithm);
        Some(shot)
    }

    fn choose(&self, now: Time, moment: Moment) -> Option<Shot> {
        let plan = |algorithm: Algorithm| self.known(algorithm).plan(algorithm, self.lanes);
        let full = self.waiting.iter().copied().find(|&algorithm| self.known(algorithm).arrivals.len() >= self.lanes);
        let chosen = match moment {
            Moment::Arrived if full.is_none() => None,
            Moment::Demanded(algorithm) if full.is_none() => Some(algorithm).filter(|algorithm| self.waiting.contains(algorithm)),
            _ => self.overdue(now, STARVED).or(full).or_else(|| match moment {
                Moment::Blocking => self.waiting.iter().copied().min_by(|&one, &other| plan(one).0.total_cmp(&plan(other).0)),
                _ => self.overdue(now, 1.0),
            }),
        };
        chosen.map(|algorithm| plan(algorithm).1)
    }

    /// Of the kinds whose oldest operation has waited so many times as long as its patience, the one that has waited longest.
    fn overdue(&self, now: Time, times: f64) -> Option<Algorithm> {
        let oldest = |&algorithm: &Algorithm| self.known(algorithm).arrivals.front().copied();
        let is_overdue = |algorithm: &Algorithm| {
            let patience = (PATIENCE * self.known(*algorithm).round_ns).max(PATIENCE_MIN_NS);
            oldest(algorithm).is_some_and(|oldest| now.since_ns(oldest) as f64 > times * patience)
        };
        self.waiting.iter().copied().filter(is_overdue).min_by_key(oldest)
    }

    fn known(&self, algorithm: Algorithm) -> &Gathered {
        &self.kinds[usize::from(algorithm.number())]
    }

    /// Whether what was decided is to be timed, for [`observe`](Self::observe).
    pub fn is_timed(&mut self, shot: Shot) -> bool {
        let kind = self.kind(shot.algorithm);
        kind.shots = kind.shots.saturating_add(1);
        kind.shots <= SHOTS_TIMED || kind.shots.is_multiple_of(SHOTS_TIMED_EVERY)
    }

    /// What was decided is done, and took so long, if it was timed.
    pub fn observe(&mut self, shot: Shot, measured_ns: Option<u64>) {
        let lanes = self.lanes;
        let kind = self.kind(shot.algorithm);
        if let Some(measured_ns) = measured_ns {
            let believed = if shot.side_by_side { &mut kind.round_ns } else { &mut kind.one_ns };
            let each = measured_ns.max(1) as f64 / if shot.side_by_side { 1.0 } else { shot.count as f64 };
            *believed += (each.clamp(*believed / LEAP_MAX, *believed * LEAP_MAX) - *believed) * WEIGHT;
        }
        let gained = if shot.side_by_side { kind.one_ns - kind.round_ns / shot.count as f64 } else { 0.0 };
        let mean = kind.gain_ns.get_or_insert(kind.one_ns - kind.round_ns / lanes as f64);
        *mean += (gained - *mean) * GAIN_WEIGHT * shot.count as f64;
    }

    /// An operation that was not put off took so long.
    pub fn observe_alone(&mut self, algorithm: Algorithm, measured_ns: u64) {
        let kind = self.kind(algorithm);
        let measured = (measured_ns.max(1) as f64).clamp(kind.one_ns / LEAP_MAX, kind.one_ns * LEAP_MAX);
        kind.one_ns += (measured - kind.one_ns) * WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Algorithm::{EcdsaP256Sign as Ecdsa, Rsa2048Private as Rsa, X25519};

    fn gathered(kinds: &[(Algorithm, usize)]) -> Firing {
        let mut firing = Firing::new(8);
        for &(algorithm, count) in kinds {
            (0..count).for_each(|_| firing.arrived(Time::ZERO, algorithm));
        }
        firing
    }

    fn shot(algorithm: Algorithm, count: usize) -> Option<Shot> {
        Some(Shot { algorithm, count, side_by_side: count > 1 })
    }

    #[test]
    fn a_flood_of_a_cheap_kind_starves_no_other() {
        for moment in [Moment::Arrived, Moment::Busy, Moment::Blocking] {
            let mut firing = gathered(&[(Rsa, 1)]);
            let bound_ns = (STARVED * PATIENCE * firing.kind(Rsa).round_ns) as u64;
            let (mut now, step_ns) = (0, 50_000);
            let lone = loop {
                (0..8).for_each(|_| firing.arrived(Time(now), X25519));
                let shot = firing.decide(Time(now), moment).expect("a full batch waits");
                if shot.algorithm == Rsa {
                    break shot;
                }
                now += step_ns;
                assert!(now <= bound_ns + step_ns, "RSA waits after {now} ns");
            };
            assert_eq!(Some(lone), shot(Rsa, 1));
        }
    }

    #[test]
    fn a_full_batch_goes_at_once_and_the_rest_waits() {
        let mut firing = gathered(&[(Rsa, 7)]);
        assert_eq!(firing.decide(Time::ZERO, Moment::Arrived), None);
        firing.arrived(Time::ZERO, Rsa);
        firing.arrived(Time::ZERO, Rsa);
        assert_eq!(firing.decide(Time::ZERO, Moment::Arrived), shot(Rsa, 8));
        assert_eq!(firing.decide(Time::ZERO, Moment::Arrived), None);
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), shot(Rsa, 1));
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), None);
    }

    #[test]
    fn before_blocking_the_shortest_goes_first() {
        let mut firing = gathered(&[(Rsa, 6), (X25519, 4)]);
        assert_eq!(firing.decide(Time::ZERO, Moment::Busy), None);
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), shot(X25519, 4));
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), shot(Rsa, 6));
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), None);
    }

    #[test]
    fn below_break_even_they_go_one_by_one() {
        let mut firing = gathered(&[(Rsa, 2)]);
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), shot(Rsa, 1));
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), shot(Rsa, 1));
    }

    #[test]
    fn a_busy_server_does_not_wait_for_ever() {
        let mut firing = gathered(&[(Rsa, 3)]);
        assert_eq!(firing.decide(Time(2_100_000), Moment::Busy), None);
        assert_eq!(firing.decide(Time(2_300_000), Moment::Busy), shot(Rsa, 3));
    }

    #[test]
    fn what_is_demanded_goes_with_its_kind() {
        let mut firing = gathered(&[(Rsa, 3), (X25519, 3)]);
        assert_eq!(firing.decide(Time::ZERO, Moment::Demanded(Rsa)), shot(Rsa, 3));
        assert_eq!(firing.decide(Time::ZERO, Moment::Demanded(Rsa)), None);
    }

    #[test]
    fn what_is_withdrawn_is_not_computed() {
        let mut firing = gathered(&[(Rsa, 1)]);
        firing.withdrawn(Rsa, 0);
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), None);
    }

    #[test]
    fn nobody_waits_alone_or_for_nothing() {
        let mut firing = Firing::new(8);
        assert!(!firing.is_worth_waiting(Rsa, 1), "nobody to wait for");
        assert!(firing.is_worth_waiting(Rsa, 2) && firing.is_worth_waiting(Ecdsa, 2), "hope costs little");
        assert!(!Firing::new(1).is_worth_waiting(Rsa, 64), "an engine without lanes gains nothing");
    }

    #[test]
    fn threads_sleep_for_rsa_and_not_for_what_is_soon_computed() {
        let mut firing = Firing::among_threads(8);
        assert!(firing.is_worth_waiting(Rsa, 2));
        assert!(!firing.is_worth_waiting(Ecdsa, 2) && !firing.is_worth_waiting(X25519, 2), "the sleep costs more than the lanes save");
        (0..60).for_each(|_| firing.observe_alone(X25519, 100_000));
        assert!(firing.is_worth_waiting(X25519, 2), "but for a processor on which it takes long");
    }

    #[test]
    fn company_that_never_comes_is_not_waited_for() {
        let mut firing = Firing::new(8);
        let mut put_off = |comes: usize| {
            let shot = Shot { algorithm: Ecdsa, count: comes, side_by_side: comes > 1 };
            let mut waited = 0;
            for _ in 0..6400 / comes {
                if firing.is_worth_waiting(Ecdsa, 8) {
                    firing.observe(shot, Some(if comes > 1 { 33_000 } else { 15_000 }));
                    waited += 1;
                }
            }
            waited
        };
        assert!(put_off(1) < 1000);
        assert!(put_off(8) > 500, "and is again, once it does come");
    }

    #[test]
    fn rsa_is_put_off_for_the_rare_batch() {
        let mut firing = Firing::new(8);
        for round in 0..1000 {
            assert!(firing.is_worth_waiting(Rsa, 2), "round {round}");
            let together = round % 6 == 0;
            let count = if together { 4 } else { 1 };
            firing.observe(Shot { algorithm: Rsa, count, side_by_side: together }, Some(if together { 550_000 } else { 250_000 }));
        }
    }

    #[test]
    fn a_batch_without_a_time_still_says_what_came_together() {
        let mut firing = Firing::new(8);
        let lone = Shot { algorithm: Ecdsa, count: 1, side_by_side: false };
        let timed = (0..1000).filter(|_| firing.is_timed(lone)).count();
        assert!((200..400).contains(&timed), "{timed} of 1000");
        (0..100).for_each(|_| firing.observe(lone, None));
        assert!(!firing.is_worth_waiting(Ecdsa, 8));
        assert_eq!(firing.known(Ecdsa).one_ns, guess_ns(Ecdsa));
    }

    #[test]
    fn times_are_learnt() {
        let mut firing = Firing::new(8);
        for _ in 0..60 {
            firing.observe(Shot { algorithm: Rsa, count: 8, side_by_side: true }, Some(250_000 * 5));
            firing.observe_alone(Rsa, 250_000);
        }
        (0..4).for_each(|_| firing.arrived(Time::ZERO, Rsa));
        let one = Shot { algorithm: Rsa, count: 1, side_by_side: false };
        assert_eq!(firing.decide(Time::ZERO, Moment::Blocking), Some(one), "five operations' time for a batch: four gain nothing");
    }
}
