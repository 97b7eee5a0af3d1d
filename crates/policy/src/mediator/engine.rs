//! What the mediator knows of an engine: what it is believed to take, and what it is at.

use super::belief::Belief;
use super::lag::Lag;
use super::sight::Sight;
use crate::{EngineInfo, Lanes, RequestId};
use bywash_core::{Algorithm, Time};

pub(super) struct EngineState {
    pub(super) belief: Belief,
    pub(super) lanes: Lanes,
    pub(super) workers: usize,
    pub(super) running: Vec<Running>,
    pub(super) is_processor: bool,
    pub(super) watts: f64,
    pub(super) host_ns: f64,
    pub(super) host_ns_per_byte: f64,
    /// Of a processor while others wait; of a device that nothing else keeps busy.
    pub(super) lag: Lag,
    /// When the launch that ended last was given to it, and when it ended.
    pub(super) last_launch: Option<(Time, Time)>,
    pub(super) pace: Pace,
}

/// A batch that an engine works on.
pub(super) struct Running {
    pub(super) first: RequestId,
    pub(super) start: Time,
    /// When its engine begins it, as far as is known: a launch waits for those before it.
    pub(super) begin: Time,
    /// How many launches of its engine were under way when it was given to it.
    pub(super) beside: usize,
    pub(super) algorithm: Algorithm,
    pub(super) count: usize,
    /// Mean size of its operations.
    pub(super) bytes: u64,
    pub(super) expected_end: Time,
    pub(super) is_launch: bool,
    /// Whether others came with it, or were left to wait.
    pub(super) is_crowded: bool,
}

/// Whether a device that computes in launches keeps up with those who hand over: how much of its time in a crowd it would have computed lately, had it done all of that.
#[derive(Clone, Copy, Default)]
pub(super) struct Pace {
    work_ns: f64,
    span_ns: f64,
    /// Requests that went elsewhere since the last launch.
    elsewhere: usize,
    sight: Sight,
}

impl Pace {
    /// What a launch counts for in the means.
    const GAIN: f64 = 1.0 / 16.0;
    /// A launch that ended later after the one before it than so many times what it took is another crowd's.
    const APART: u64 = 2;
    /// A device that computes so much of its time is busy: the rest are hand-overs.
    const BUSY: f64 = 0.75;

    /// A launch of so many has ended that took so long, so long after the one before it.
    fn observe(&mut self, now: Time, count: usize, each_ns: f64, took_ns: u64, after_ns: u64) {
        let elsewhere = std::mem::take(&mut self.elsewhere);
        if after_ns > Self::APART * took_ns {
            return;
        }
        let work_ns = (count + elsewhere) as f64 * each_ns;
        self.work_ns += Self::GAIN * (work_ns - self.work_ns);
        self.span_ns += Self::GAIN * (after_ns as f64 - self.span_ns);
        self.sight.see(now);
    }

    /// So many requests went elsewhere.
    fn pass(&mut self, requests: usize) {
        self.elsewhere = self.elsewhere.saturating_add(requests);
        self.sight.pass(requests);
    }

    /// From 0, for one that is busy or of which nothing is known, to 1, for one that has hardly anything to do.
    pub(super) fn spare(self, now: Time) -> f64 {
        let load = if self.span_ns > 0.0 { self.work_ns / self.span_ns } else { 1.0 };
        self.sight.trust(now, 0.0) * (1.0 - load / Self::BUSY).max(0.0)
    }
}

/// In how many nanoseconds something ends that is expected to at this time; what overruns, by as much again.
pub(super) fn left_ns(now: Time, expected_end: Time) -> f64 {
    expected_end.since_ns(now).max(now.since_ns(expected_end)) as f64
}

impl EngineState {
    pub(super) fn new(info: &EngineInfo) -> Self {
        Self {
            belief: Belief::of(info, !info.costs.is_processor()),
            lanes: info.lanes.clone(),
            workers: info.workers,
            running: Vec::with_capacity(info.workers),
            is_processor: info.costs.is_processor(),
            watts: info.costs.watts.unwrap_or(1.0),
            host_ns: info.costs.host_ns,
            host_ns_per_byte: info.costs.host_ns_per_byte,
            lag: Lag::default(),
            last_launch: None,
            pace: Pace::default(),
        }
    }

    /// When it is expected to have a worker free, or, where it computes in launches, to have done all of them: they go one after the other, whichever worker waits for them. `None` if it
    /// is at nothing.
    pub(super) fn end(&self) -> Option<Time> {
        let ends = |launches: bool| {
            let running = self.running.iter();
            running.filter(move |running| running.is_launch == launches).map(|running| running.expected_end)
        };
        ends(true).max().or_else(|| ends(false).min())
    }

    /// So many requests that it could have done went elsewhere.
    pub(super) fn pass(&mut self, requests: usize) {
        self.belief.pass(requests);
        self.lag.pass(requests);
        self.pace.pass(requests);
    }

    /// A batch has ended; `host` as for [`Belief::observe`].
    pub(super) fn finished(&mut self, now: Time, host: f64, batch: &[RequestId], service_ns: Option<u64>) {
        if let Some(place) = self.running.iter().position(|running| Some(&running.first) == batch.first()) {
            let done = self.running.swap_remove(place);
            let last_launch = if done.is_launch { self.last_launch.replace((done.start, now)) } else { None };
            if let Some(service_ns) = service_ns {
                let tells_of_lag = if done.is_launch { done.beside == 0 } else { done.is_crowded && self.is_processor };
                if tells_of_lag {
                    self.lag.observe(now, now.since_ns(done.start).saturating_sub(service_ns));
                }
                // Of launches under way together a later one waits for the device: that is not what it takes. A device that overlaps them ends several at nearly one time; none of them took less
                // than its share of the time that it was under way.
                let before = last_launch.filter(|&(start, _)| start <= done.start);
                let after_ns = |launch: Option<(Time, Time)>| launch.map_or(u64::MAX, |(_, ended)| now.since_ns(ended));
                let alone_ns = after_ns(before);
                let takes_ns = service_ns.min(alone_ns.max(service_ns / (1 + done.beside as u64)));
                self.belief.observe(now, host, done.algorithm, done.bytes, done.count, takes_ns);
                if done.is_launch && done.is_crowded {
                    let each = self.belief.shape(now, host, done.algorithm, done.bytes).each;
                    self.pace.observe(now, done.count, each, service_ns, after_ns(last_launch));
                }
            }
            if done.is_launch {
                self.launch_ended(now, done.begin);
            }
        }
    }

    /// A launch that had begun at this time has ended: those behind it begin now.
    fn launch_ended(&mut self, now: Time, begin: Time) {
        let mut behind: Vec<&mut Running> = self.running.iter_mut().filter(|running| running.is_launch && running.begin >= begin).collect();
        behind.sort_by_key(|running| running.expected_end);
        let mut free = now;
        for running in behind {
            let takes = running.expected_end.since_ns(running.begin);
            running.begin = free;
            running.expected_end = free + takes;
            free = running.expected_end;
        }
    }
}
