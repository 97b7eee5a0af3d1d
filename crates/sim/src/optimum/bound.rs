//! Below which no time can be where software and circuits work side by side.
//!
//! The time is that in which all requests are done if they all wait from the start. The processor serves one request at a time, the engine as many as it has lanes, each in the order of
//! arrival; one load is under way at a time, and no circuit computes while it is replaced. Whoever decides what runs where, and what is loaded when:
//!
//! * the processor is not busy for longer than that, nor is the engine, whose computing is counted by its lanes. Nor is any mean of the two, `w` parts of the one and `1 - w` of the other;
//! * where the whole device is loaded, its loads come to its computing. Where slots are, circuits work on meanwhile, and any mean of loading and computing is counted, `m` parts of
//!   the one and `1 - m` of the other.
//!
//! The least such mean over all ways to serve the requests is found exactly (`weighted`), and the `w` for which it is largest by cutting planes: the sums of the way found at one `w`
//! are a line that the least mean lies below at all others. What is lost is less than a request and a load for each side in long traces on a device that is loaded as a whole, for there ways can be mixed.
//! With several lanes it is not known when a circuit that is loaded by slots works on, so all computing is counted as if it did.

use super::weighted::{Cost, Sets, Weights};
use crate::machine::{Machine, Scope};
use crate::trace::Request;
use bywash_policy::reload::Asked;

/// The most steps of one look at all requests, a second or two.
const STEPS_MAX: u64 = 1_000_000_000;
/// The most looks for one share of loading; six or seven find the best.
const LOOKS_MAX: usize = 16;
/// How near the largest mean is enough, as a part of it.
const NEAR: f64 = 1e-4;
/// The shares of loading that are tried where circuits work on meanwhile, in eighths.
const EIGHTHS: std::ops::RangeInclusive<u32> = 0..=8;
/// They are tried on so many requests, or a sixteenth of all; any share gives a bound.
const TRIED_ON: usize = 50_000;

/// See the module. Nanoseconds, for an engine that holds nothing at first.
pub(super) fn side_by_side<I: ExactSizeIterator<Item = Request> + Clone>(machine: &Machine, requests: &I) -> u64 {
    let few = |sets: &Sets| (sets.steps() as u64).saturating_mul(requests.len() as u64) <= STEPS_MAX;
    let (sets, by_slots) = match Sets::of(machine).filter(few) {
        Some(sets) => (sets, machine.scope == Scope::Slot),
        None => (Sets::as_if_all_fitted(&machine.fit), false),
    };
    let asked = requests.clone().map(|request| with_overhead(machine, &request));
    let mean = |count: usize, m: f64| {
        let asked = asked.clone().take(count);
        let software = asked.clone().map(|asked| asked.software_ns as f64).sum();
        largest(software, |w| sets.least(weights(machine, by_slots, w, m), asked.clone()))
    };
    let part = TRIED_ON.max(requests.len() / 16);
    let best_of = |best: (f64, f64), m: f64| {
        let mean = mean(part, m);
        if mean > best.1 { (m, mean) } else { best }
    };
    let m = if by_slots { EIGHTHS.map(|eighths| f64::from(eighths) / 8.0).fold((1.0, 0.0), best_of).0 } else { 1.0 };
    // Twice as many additions as requests, each off by half a unit in the last place.
    let surely = mean(requests.len(), m) * (1.0 - f64::EPSILON * (2 * requests.len() + 64) as f64);
    asked.map(|asked| longest_at_least(machine, &asked)).fold(surely.ceil() as u64, u64::max)
}

fn with_overhead(machine: &Machine, request: &Request) -> Asked {
    let asked = machine.asked(request);
    let (software_ns, hardware_ns) = (asked.software_ns + machine.overhead_ns, asked.hardware_ns + machine.overhead_ns);
    Asked { software_ns, hardware_ns, ..asked }
}

/// No sooner can all be done than this request.
fn longest_at_least(machine: &Machine, asked: &Asked) -> u64 {
    asked.software_ns.min(asked.hardware_ns.saturating_add(machine.load_ns))
}

fn weights(machine: &Machine, by_slots: bool, w: f64, m: f64) -> Weights {
    let (engine, lanes) = (1.0 - w, machine.lanes as f64);
    let meanwhile = engine * (1.0 - m) / lanes;
    let circuit = if by_slots && machine.lanes > 1 { meanwhile } else { engine / lanes };
    Weights { software: w, circuit, meanwhile, loading: engine * m * machine.load_ns as f64 }
}

/// The largest of the least means that are looked at; `software` is how long all takes in software.
fn largest(software: f64, least: impl Fn(f64) -> Cost) -> f64 {
    if software == 0.0 {
        return 0.0;
    }
    let line = |processor: f64, engine: f64| Line { processor, engine };
    // Everything in software is one way; on the other side there may be none that leaves the processor alone for little.
    let (mut rising, mut falling): (Line, Option<Line>) = (line(software, 0.0), None);
    let (mut w, mut largest, mut from) = (0.5, 0.0f64, 0.0);
    for _ in 0..LOOKS_MAX {
        let Cost { weighted, software_ns } = least(w);
        largest = largest.max(weighted);
        let here = line(software_ns, (weighted - w * software_ns) / (1.0 - w));
        if here.processor > here.engine {
            (rising, from) = (here, w);
        } else {
            falling = Some(here);
        }
        match &falling {
            Some(falling) => {
                w = rising.crosses(falling);
                if rising.at(w) <= largest * (1.0 + NEAR) {
                    break;
                }
            }
            None => w = f64::midpoint(from, 1.0),
        }
    }
    largest
}

/// How long one way to serve all requests keeps each side busy.
struct Line {
    processor: f64,
    engine: f64,
}

impl Line {
    fn at(&self, w: f64) -> f64 {
        w * self.processor + (1.0 - w) * self.engine
    }

    /// Where this one, which rises, meets one that does not.
    fn crosses(&self, falling: &Self) -> f64 {
        let (rises, falls) = (self.processor - self.engine, falling.engine - falling.processor);
        (falling.engine - self.engine) / (rises + falls)
    }
}
