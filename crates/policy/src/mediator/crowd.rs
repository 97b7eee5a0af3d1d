//! What many requests at a time cost beside computing them: see [`lag`](super::lag) for those that wait together, [`Burst`] for those that one thread has.

use super::belief::Shape;
use super::{Kind, Mediator};
use crate::waiting::Entry;
use crate::{EngineId, RequestId};
use bywash_core::Time;
use bywash_core::route::SizeClass;

/// A crowd counts wholly where an operation takes much less than this part of a lag, and not at all where it takes much more.
const SHORT: f64 = 0.25;
/// What it takes a thread to have a request computed by itself, beside computing it: to book it, and to tell of its end.
const OWN_NS: f64 = 500.0;
/// What takes longer no caller computes who does not wait for it.
const OWN_MAX_NS: f64 = 50e3;
/// Of those under way so many times as many as follow are taken for the same burst's.
const OWN_TIMES: usize = 4;

/// The caller of a request that has just arrived has so many more, and computes it at once if it goes to the processor and takes little: [`Event::Burst`](crate::Event::Burst).
#[derive(Clone, Copy)]
pub(super) struct Burst {
    at: Time,
    kind: u16,
    id: RequestId,
    more: usize,
}

impl Burst {
    pub(super) fn new(at: Time, kind: u16, id: RequestId, more: u32) -> Self {
        Self { at, kind, id, more: more as usize }
    }
}

impl Mediator {
    /// How many more the caller of a kind's only one has, who computes it at once if he may.
    pub(super) fn burst_of(&self, now: Time, kind: u16, head: &Entry) -> Option<usize> {
        let burst = self.burst.filter(|burst| burst.at == now && burst.id == head.request.id)?;
        let is_alone = self.waiting.len(usize::from(kind)) == 1 && !head.request.algorithm.is_public_key();
        is_alone.then_some(burst.more)
    }

    /// How many of a kind, or like it, are being computed.
    fn under_way(&self, kind: u16) -> usize {
        let Kind { algorithm, class, .. } = self.kinds[usize::from(kind)];
        let running = self.engines.iter().flat_map(|engine| &engine.running);
        let alike = running.filter(|running| running.algorithm == algorithm && SizeClass::of(algorithm, running.bytes as usize) == class);
        alike.map(|running| running.count).sum()
    }

    /// How much later than its first request a burst's last one is done where launches of so many do it: the first goes alone, the others together once it has ended.
    pub(super) fn follow_ns(&self, now: Time, engine: EngineId, head: &Entry, lanes: usize, more: usize) -> f64 {
        if more == 0 {
            return 0.0;
        }
        let Shape { handover, each } = self.shape(now, engine, head.request.algorithm, head.request.bytes);
        more.div_ceil(lanes) as f64 * handover + 2.0 * self.engine(engine).lag.ns(now) + more as f64 * each
    }

    /// The same where its caller computes it, if it takes as little as that. Those under way belong to it, so that it does not go over to the processor near its end.
    pub(super) fn own_ns(&self, kind: u16, each: f64, more: usize) -> Option<f64> {
        let follow = || if more == 0 { 0 } else { more + self.under_way(kind).min(OWN_TIMES * more) };
        (each < OWN_MAX_NS).then(|| follow() as f64 * (OWN_NS + each))
    }

    /// How much later than by its own figures a processor does one of so many that wait, of that mean size. Those under way belong to the crowd, for they came with them and will have to be
    /// told as well.
    pub(super) fn lag_ns(&self, now: Time, engine: EngineId, kind: u16, bytes: u64, waiting: usize) -> f64 {
        let state = self.engine(engine);
        let lag_ns = state.lag.ns(now);
        if lag_ns == 0.0 || !state.is_processor {
            return 0.0;
        }
        let burst = self.burst.filter(|burst| burst.at == now && burst.kind == kind);
        let crowd = waiting + self.under_way(kind) + burst.map_or(0, |burst| burst.more);
        if crowd < 2 {
            return 0.0;
        }
        let each = self.batch_ns(now, engine, self.kinds[usize::from(kind)].algorithm, bytes, 1);
        let (short, long) = (SHORT * lag_ns, each);
        let share = short * short / (short * short + long * long);
        lag_ns + share * crowd as f64 * (each + self.spare(now, kind) * lag_ns) / state.workers.max(1) as f64
    }

    /// How far some device that launches operations of a kind [keeps up](super::engine::Pace) with those who hand over.
    fn spare(&self, now: Time, kind: u16) -> f64 {
        let of = &self.kinds[usize::from(kind)];
        let up = of.allowed().and(self.workers.up());
        let devices = up.iter().filter(|&engine| self.launches(engine, of.algorithm, of.direction));
        devices.map(|engine| self.engine(engine).pace.spare(now)).fold(0.0, f64::max)
    }
}
