//! What goes together in one launch, and whether more is waited for.

use super::belief::Shape;
use super::engine::Running;
use super::{Kind, Mediator, Offer, Prefer, lag};
use crate::waiting::Entry;
use crate::{Decision, EngineId, Reason, RequestId};
use bywash_core::{Algorithm, Time};

/// Beside a queue of at least so many hand-overs, every launch is filled up to as many: what launches cost is then a twentieth at most.
const FULL: f64 = 20.0;
/// No launch is made longer than so many hand-overs for the sake of those that come, as far as is known what one takes: there is nothing to save.
const LONG: f64 = 200.0;
/// No engine is reckoned to be busier than that with what comes; more would have no end.
const LOAD_MAX: f64 = 0.98;
/// A launch is put off only if hand-over is at least this share of it.
const MOSTLY_HANDOVER: f64 = 0.2;
/// Of what the processor could do while a launch runs it is left so much: its load may rise.
const CAUTION: f64 = 0.9;
/// What is left is left to it as well if the launch would be this part of its length late at most: a launch takes as much of the processor, of caches or of memory as that, and a software device more.
const TOLL: f64 = 0.05;
/// After so many waits without company, one in a thousand is tried.
const LOST_MAX: u32 = 10;

/// Whether putting a launch off has paid lately: after n times without company, it is tried again once 2^n launches were not put off.
#[derive(Default)]
pub(super) struct Wager {
    lost: u32,
    skip: u32,
    /// Until when, and how many there were, while a launch is put off.
    open: Option<(Algorithm, usize)>,
}

impl Wager {
    /// Whether to put off a launch of so many; asked again and again until it goes.
    fn take(&mut self, algorithm: Algorithm, waiting: usize) -> bool {
        if self.open.is_some_and(|(open, _)| open == algorithm) {
            return true;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.open = Some((algorithm, waiting));
        true
    }

    /// Whether the next launch may be put off, or one is.
    fn is_on(&self) -> bool {
        self.skip == 0
    }

    /// A launch of so many goes.
    fn settle(&mut self, algorithm: Algorithm, count: usize) {
        let Some((open, before)) = self.open else { return };
        if open == algorithm {
            self.open = None;
            self.lost = if count > before { 0 } else { (self.lost + 1).min(LOST_MAX) };
            self.skip = (1 << self.lost) - 1;
        }
    }
}

impl Mediator {
    /// The kinds that could go in one launch with this one on an engine, smallest first.
    fn kin(&self, engine: EngineId, kind: u16) -> impl Iterator<Item = (u16, &Kind)> {
        let own = &self.kinds[usize::from(kind)];
        let alike =
            move |other: &&Kind| (other.algorithm, other.direction) == (own.algorithm, own.direction) && other.allowed().contains(engine);
        self.busy.iter().map(|&kind| (kind, &self.kinds[usize::from(kind)])).filter(move |(_, other)| alike(other))
    }

    /// How many wait that could go in a launch with a kind's head, at most `lanes`, and their mean size: all of no larger class.
    pub(super) fn waits_with(&self, engine: EngineId, kind: u16, lanes: usize) -> (usize, u64) {
        let own = self.kinds[usize::from(kind)].class;
        let (mut count, mut bytes) = (0, 0);
        for (kin, other) in self.kin(engine, kind).filter(|(_, other)| other.class <= own) {
            count += self.waiting.len(usize::from(kin));
            bytes += other.bytes;
        }
        (count.clamp(1, lanes), bytes / count.max(1) as u64)
    }

    /// Nanoseconds in which an engine would do all that waits of a kind and of what goes before it in launches.
    pub(super) fn all_ns(&self, now: Time, kind: u16, engine: EngineId, lanes: usize) -> f64 {
        let own = self.kinds[usize::from(kind)].class;
        let (mut count, mut handover, mut length) = (0, 0.0, 0.0);
        for (kin, other) in self.kin(engine, kind).filter(|(_, other)| other.class <= own) {
            let crowd = self.crowd(now, engine, kin, other);
            count += crowd.count;
            handover = f64::max(handover, crowd.handover);
            length += crowd.count as f64 * crowd.each;
        }
        let launches = f64::max(count.div_ceil(lanes) as f64, length / (FULL * handover.max(1.0)));
        launches * handover + length
    }

    /// Until when a launch is put off for company; `None` to let it go.
    pub(super) fn company(&mut self, now: Time, offer: Offer, kind: u16, head: &Entry) -> Option<Time> {
        let (algorithm, direction) = (head.request.algorithm, head.request.direction);
        let lanes = self.engine(offer.engine).lanes.of(algorithm, direction);
        if self.setting.prefer == Prefer::Latency
            || !self.launches(offer.engine, algorithm, direction)
            || self.kinds[usize::from(kind)].meant.is_some()
        {
            return None;
        }
        let (count, mean) = self.waits_with(offer.engine, kind, lanes);
        let Shape { handover, .. } = self.shape(now, offer.engine, algorithm, mean);
        let bound_ns = if self.setting.prefer == Prefer::Throughput {
            self.setting.wait_ns.min(handover.max(0.0) as u64)
        } else {
            self.setting.wait_ns
        };
        let until = head.arrived + bound_ns;
        let gap = self.gaps[usize::from(algorithm.number())].ns(now);
        let comes = until.since_ns(now) as f64 > gap;
        let worth = count < lanes && handover > MOSTLY_HANDOVER * offer.service;
        (until > now && comes && worth && self.wager.take(algorithm, count)).then_some(until)
    }

    /// How many are expected to come while a launch is put off for them, as far as that has paid lately: what it costs is shared with them.
    pub(super) fn hoped_for(&self, now: Time, algorithm: Algorithm) -> usize {
        let comes = self.setting.wait_ns as f64 / self.gaps[usize::from(algorithm.number())].ns(now);
        if self.wager.is_on() { comes as usize } else { 0 }
    }

    /// Gives a batch to an engine: the head of a kind alone, or in company.
    pub(super) fn dispatch(&mut self, now: Time, kind: u16, engine: EngineId, reason: Reason, batch: &mut Vec<RequestId>) -> Decision {
        let Kind { algorithm, direction, .. } = self.kinds[usize::from(kind)];
        let lanes = self.engine(engine).lanes.of(algorithm, direction);
        let start = batch.len();
        let mut bytes = 0u64;
        let is_launch = self.launches(engine, algorithm, direction);
        if !is_launch {
            bytes = self.take(kind, lanes.max(self.run(now, kind, engine)), batch);
            self.pass_elsewhere(engine, kind, batch.len() - start);
        } else {
            for (kin, count) in self.plan(now, kind, engine, lanes).of {
                bytes += self.take(kin, count, batch);
                self.pass_elsewhere(engine, kin, count);
            }
        }
        self.settle();
        let count = batch.len() - start;
        self.wager.settle(algorithm, count);
        self.reason = if count > 1 && is_launch { Reason::Packed } else { reason };
        self.workers.take(engine);
        for other in self.kinds[usize::from(kind)].engines.without(engine).iter() {
            self.engines[usize::from(other.0)].pass(count);
        }
        let mean = bytes / count.max(1) as u64;
        let launched = self.engine(engine).running.iter().filter(|running| running.is_launch && is_launch);
        let (beside, begin) = launched.fold((0, now), |(beside, begin), running| (beside + 1, begin.max(running.expected_end)));
        let expected_end = begin + self.batch_ns(now, engine, algorithm, mean, count) as u64;
        self.engines[usize::from(engine.0)].running.push(Running {
            first: batch[start],
            start: now,
            begin,
            beside,
            algorithm,
            count,
            bytes: mean,
            expected_end,
            is_launch,
            is_crowded: count > 1 || !self.waiting.is_empty(),
        });
        Decision::Dispatch(engine)
    }

    /// So many of a kind go to this engine: no other sees what it takes for their size.
    fn pass_elsewhere(&mut self, engine: EngineId, kind: u16, count: usize) {
        let Kind { engines, route, .. } = self.kinds[usize::from(kind)];
        for other in engines.without(engine).iter() {
            self.engines[usize::from(other.0)].belief.pass_size(route, count);
        }
    }

    /// How many of a kind a worker of the processor is given in a row, although it does one after the other: see [`lag`].
    pub(super) fn run(&self, now: Time, kind: u16, engine: EngineId) -> usize {
        let Kind { algorithm, bytes, .. } = self.kinds[usize::from(kind)];
        let waiting = self.waiting.len(usize::from(kind));
        let state = self.engine(engine);
        let share = waiting / state.workers.max(1);
        if share < 2 || algorithm.is_public_key() || !state.is_processor {
            return 1;
        }
        lag::run(share, state.lag.ns(now), self.batch_ns(now, engine, algorithm, bytes / waiting as u64, 1))
    }

    /// Takes the oldest of a kind into a batch; their bytes.
    fn take(&mut self, kind: u16, count: usize, batch: &mut Vec<RequestId>) -> u64 {
        let mut bytes = 0;
        for _ in 0..count {
            let Some(entry) = self.pop(kind) else { break };
            bytes += entry.request.bytes;
            batch.push(entry.request.id);
        }
        bytes
    }

    /// What goes in one launch: at least one.
    pub(super) fn plan(&self, now: Time, kind: u16, engine: EngineId, lanes: usize) -> Plan {
        let mut kin: Vec<Crowd> = self.kin(engine, kind).map(|(kin, other)| self.crowd(now, engine, kin, other)).collect();
        kin.sort_by_key(|crowd| crowd.class);
        let is_spare = self.leave_to_others(now, kind, engine, &mut kin);
        if self.due(now, kind) <= now.0 as f64 {
            // Its turn has come: what else there is goes with it.
            kin.sort_by_key(|crowd| (crowd.kind != kind, crowd.class));
        }
        let arrivals = self.gaps[usize::from(self.kinds[usize::from(kind)].algorithm.number())];
        let gap = arrivals.ns(now);
        let backlog: f64 = kin.iter().map(|crowd| crowd.count as f64 * crowd.each).sum();
        let mut left: usize = kin.iter().map(|crowd| crowd.count).sum();
        let (mut plan, mut members) = (Plan::default(), 0usize);
        for crowd in kin.iter().filter(|crowd| crowd.count > 0) {
            let Crowd { each, handover, .. } = *crowd;
            // As long as what another member costs those that are in is less than what another launch costs those that are not, and those that come before the queue is empty.
            let load = f64::min(each / gap, LOAD_MAX);
            let pays = (left as f64 / (1.0 - load) * handover - members as f64 * each) / (each + handover) + 1.0;
            let long = if arrivals.is_about(now, each) { f64::INFINITY } else { f64::max(LONG * handover, backlog / 4.0) };
            let pays = pays.min((long - plan.length) / each + 1.0);
            let fills = self.setting.prefer != Prefer::Latency || backlog >= FULL * handover;
            let full = if fills { (f64::max(FULL * handover, backlog / 8.0) - plan.length) / each + 1.0 } else { 0.0 };
            let most = f64::max(pays, full).max(0.0) as usize;
            let taken = most.max(usize::from(members == 0)).min(crowd.count).min(lanes - members);
            members += taken;
            left -= taken;
            plan.length += taken as f64 * each;
            plan.handover = f64::max(plan.handover, handover);
            plan.of.push((crowd.kind, taken));
            if taken < crowd.count {
                break;
            }
        }
        plan.length += plan.handover;
        plan.is_spare = is_spare;
        plan
    }

    fn crowd(&self, now: Time, engine: EngineId, kind: u16, of: &Kind) -> Crowd {
        let count = self.waiting.len(usize::from(kind));
        let mean = of.bytes / count.max(1) as u64;
        let Shape { handover, each } = self.shape(now, engine, of.algorithm, mean);
        Crowd { kind, class: of.class.index(), count, mean, handover, each: each.max(1.0) }
    }

    /// Whether what waits alone would be [left to others](Self::leave_to_others) by a launch of so many nanoseconds, of which it takes so many itself.
    pub(super) fn is_left(&self, now: Time, engine: EngineId, kind: u16, launch: f64, each: f64, bytes: u64) -> bool {
        let algorithm = self.kinds[usize::from(kind)].algorithm;
        self.others(engine, kind).any(|other| {
            let begin = if self.workers.ready().contains(other) { 0.0 } else { self.available(now, other) - now.0 as f64 };
            let begin = begin + self.lag_ns(now, other, kind, bytes, 1);
            CAUTION * launch - begin >= self.batch_ns(now, other, algorithm, bytes, 1) + CAUTION * each
        })
    }

    /// To whom what waits of a kind may be left instead of an engine that launches it: those that take one at a time. Nobody where it is meant for that engine, or where the processor's
    /// freedom counts, or energy.
    fn others(&self, engine: EngineId, kind: u16) -> impl Iterator<Item = EngineId> {
        let Kind { algorithm, direction, engines, meant, .. } = self.kinds[usize::from(kind)];
        let may = meant.is_none() && self.counts_time_alone();
        let singly = move |other: &EngineId| may && *other != engine && !self.launches(*other, algorithm, direction);
        engines.and(self.workers.up()).iter().filter(singly)
    }

    /// Leaves to the processor, or whatever takes one at a time, what it would have done by the end of the launch, smallest first. Whether
    /// that is all, so that there is no need of a launch; one is left for it.
    fn leave_to_others(&self, now: Time, kind: u16, engine: EngineId, kin: &mut [Crowd]) -> bool {
        let algorithm = self.kinds[usize::from(kind)].algorithm;
        let handover = kin.iter().map(|crowd| crowd.handover).fold(0.0, f64::max);
        let mut launch = handover + kin.iter().map(|crowd| crowd.count as f64 * crowd.each).sum::<f64>();
        for other in self.others(engine, kind) {
            let takes: Vec<f64> = kin.iter().map(|crowd| self.batch_ns(now, other, algorithm, crowd.mean, 1)).collect();
            let count: usize = kin.iter().map(|crowd| crowd.count).sum();
            let bytes: u64 = kin.iter().map(|crowd| crowd.count as u64 * crowd.mean).sum();
            let lag = self.lag_ns(now, other, kind, bytes / count.max(1) as u64, count);
            let mut ends = Vec::new();
            for begin in self.begins(now, other) {
                let mut spent = begin + lag;
                for (crowd, each) in kin.iter_mut().zip(&takes) {
                    let leaves = ((CAUTION * launch - spent) / (each + CAUTION * crowd.each)).max(0.0) as usize;
                    let leaves = leaves.min(crowd.count);
                    crowd.count -= leaves;
                    spent += leaves as f64 * each;
                    launch -= leaves as f64 * crowd.each;
                }
                ends.push(spent);
            }
            // Of the few that remain nothing is gained.
            let rest: usize = kin.iter().map(|crowd| crowd.count).sum();
            let longest = kin.iter().zip(&takes).filter(|(crowd, _)| crowd.count > 0).map(|(_, each)| *each).fold(1.0, f64::max);
            let fit = ends.iter().map(|end| (((1.0 - TOLL) * launch - end) / longest).max(0.0) as usize).sum::<usize>();
            if fit >= rest {
                kin.iter_mut().for_each(|crowd| crowd.count = 0);
            }
        }
        let is_spare = kin.iter().all(|crowd| crowd.count == 0);
        if is_spare && let Some(own) = kin.iter_mut().find(|crowd| crowd.kind == kind) {
            own.count = 1;
        }
        is_spare
    }
}

/// What goes in one launch.
#[derive(Default)]
pub(super) struct Plan {
    /// How many of which kinds.
    pub(super) of: Vec<(u16, usize)>,
    /// Nanoseconds that it takes, hand-over included.
    pub(super) length: f64,
    /// Whether nothing is gained by it: others would have done all by its end.
    pub(super) is_spare: bool,
    handover: f64,
}

/// What waits of one kind, as an engine that packs sees it.
struct Crowd {
    kind: u16,
    class: usize,
    count: usize,
    /// Mean size.
    mean: u64,
    /// Nanoseconds of a launch, and of one more operation in it.
    handover: f64,
    each: f64,
}
