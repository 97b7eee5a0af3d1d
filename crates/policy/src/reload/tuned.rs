//! Saved seconds, tuned by copies that run beside it.
//!
//! What memory and threshold are best depends on the traffic: how long runs of one circuit are, how dear loading is beside a request. So
//! every setting of a small grid is played through beside the live one, each on an engine of its own that is only reckoned: a *shadow*. A shadow knows what
//! it would hold, when that would be loaded, and what each request would have cost it. How long a load takes in time of service is seen of the live engine: where requests are rare, it is done
//! before the next one. The live policy follows the shadow that was cheapest of
//! late, and changes over only to one that is cheaper by 0.3 %.

use super::saved::{Scores, Setting};
use super::{Asked, Circuits, Fit, Holds, Reload, Step};
use bywash_core::device::Scope;

/// The memories tried, in requests.
const MEMORIES: [f64; 4] = [30.0, 100.0, 300.0, 1000.0];
/// The thresholds tried, as fractions of the loading time.
const THRESHOLDS: [f64; 4] = [0.1, 0.33, 1.0, 3.0];
/// Requests between two choices of the shadow to follow.
const TERM: u32 = 64;
/// What a term counts for one term later.
const FADE: f64 = 0.9994;
/// What the newest load counts for in their mean.
const NEWEST_LOAD: f64 = 1.0 / 16.0;
/// How much cheaper another shadow must be to be followed instead: 0.3 %.
const MARGIN: f64 = 0.003;

/// All settings that are tried.
pub fn settings() -> impl Iterator<Item = Setting> {
    MEMORIES.into_iter().flat_map(|memory| THRESHOLDS.map(|threshold| Setting { memory, threshold }))
}

/// An engine that is only reckoned. Its clock runs by its own requests, one after the other.
#[derive(Clone, Debug)]
struct Shadow {
    threshold_ns: f64,
    /// What can compute, also while others are being loaded.
    loaded: Circuits,
    /// What is being loaded, and how long that takes yet.
    loading: Option<(Circuits, u64)>,
    /// What the requests of this term cost.
    term_ns: u64,
    /// What those of earlier terms did, fading.
    cost: f64,
}

/// Nanoseconds of a request where these circuits can compute.
fn takes_ns(asked: &Asked, loaded: Circuits) -> u64 {
    if loaded.contains(asked.circuit) { asked.hardware_ns.min(asked.software_ns) } else { asked.software_ns }
}

impl Shadow {
    /// A request begins; loading the device, or one slot, takes so long.
    fn begin(&mut self, asked: &Asked, scores: &Scores, fit: &Fit, scope: Scope, load_ns: u64) {
        let takes = takes_ns(asked, self.loaded);
        if self.loading.is_none()
            && (!self.loaded.contains(asked.circuit) || asked.saved_ns() <= 0)
            && let Some(best) = scores.wanted(fit, self.loaded, self.threshold_ns)
        {
            self.loading = Some((best, scope.loading_ns(load_ns, best.without_all(self.loaded).len())));
            self.loaded = self.loaded.kept(best, scope);
        }
        self.term_ns += takes;
        self.loading = match self.loading {
            Some((set, left)) if left <= takes => {
                self.loaded = set;
                None
            }
            Some((set, left)) => Some((set, left - takes)),
            None => None,
        };
    }
}

/// Follows the best shadow. See the [module](self).
#[derive(Clone, Debug)]
pub struct Tuned {
    fit: Fit,
    scope: Scope,
    scores: [Scores; MEMORIES.len()],
    shadows: [[Shadow; THRESHOLDS.len()]; MEMORIES.len()],
    /// Which memory and threshold the live engine follows.
    followed: (usize, usize),
    left: u32,
    loading: Loading,
}

/// How long the loads of the live engine take, in time of service: as long as they do where one request follows the other, nothing where requests are so rare that a
/// load is done before the next.
#[derive(Clone, Debug)]
struct Loading {
    /// What the sheet says of the device, or of one slot: no load takes longer.
    load_ns: u64,
    /// The mean of those seen of late.
    seen_ns: f64,
    under_way: Option<UnderWay>,
}

/// A load.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// Nanoseconds served since it began.
    served_ns: u64,
    /// Slots that are loaded one after the other; 1 for a device.
    slots: u64,
}

impl Loading {
    /// A request begins.
    fn see(&mut self, asked: &Asked, holds: Holds) {
        match (&mut self.under_way, holds.loading) {
            (Some(load), true) => load.served_ns += takes_ns(asked, holds.loaded),
            (Some(load), false) => {
                let took = (load.served_ns / load.slots).min(self.load_ns) as f64;
                self.seen_ns += (took - self.seen_ns) * NEWEST_LOAD;
                self.under_way = None;
            }
            (None, _) => {}
        }
    }
}

impl Tuned {
    /// For an engine that holds so much and takes `load_ns` to load others, all of it being gone meanwhile.
    pub fn new(fit: &Fit, load_ns: u64) -> Self {
        let shadow = |threshold: f64| Shadow {
            threshold_ns: threshold * load_ns as f64,
            loaded: Circuits::NONE,
            loading: None,
            term_ns: 0,
            cost: 0.0,
        };
        Self {
            fit: fit.clone(),
            scope: Scope::Device,
            scores: MEMORIES.map(Scores::new),
            shadows: MEMORIES.map(|_| THRESHOLDS.map(shadow)),
            followed: (1, 1),
            left: TERM,
            loading: Loading { load_ns, seen_ns: load_ns as f64, under_way: None },
        }
    }

    /// The same where that is gone meanwhile, and takes as long to load.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    fn choose(&mut self) {
        for shadow in self.shadows.iter_mut().flatten() {
            shadow.cost = shadow.cost * FADE + shadow.term_ns as f64;
            shadow.term_ns = 0;
        }
        let cost = |&(memory, threshold): &(usize, usize)| self.shadows[memory][threshold].cost;
        let all = (0..MEMORIES.len()).flat_map(|memory| (0..THRESHOLDS.len()).map(move |threshold| (memory, threshold)));
        if let Some(best) = all.min_by(|a, b| cost(a).total_cmp(&cost(b)))
            && cost(&best) < cost(&self.followed) * (1.0 - MARGIN)
        {
            self.followed = best;
        }
    }
}

impl Reload for Tuned {
    fn name(&self) -> &'static str {
        "tuned"
    }

    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        self.loading.see(asked, holds);
        let load_ns = self.loading.seen_ns as u64;
        for (scores, shadows) in self.scores.iter_mut().zip(&mut self.shadows) {
            scores.add(asked);
            shadows.iter_mut().for_each(|shadow| shadow.begin(asked, scores, &self.fit, self.scope, load_ns));
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = TERM;
            self.choose();
        }
        let (memory, threshold) = self.followed;
        let step = self.scores[memory].step(asked, holds, &self.fit, THRESHOLDS[threshold] * self.loading.load_ns as f64);
        if let Some(set) = step.load {
            let slots = self.scope.loading_ns(1, set.without_all(holds.loaded).len()).max(1);
            self.loading.under_way = Some(UnderWay { served_ns: asked.software_ns, slots });
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::super::Circuit;
    use super::*;

    fn asked(software_ns: u64) -> Asked {
        Asked { circuit: Circuit(0), bytes: 1, software_ns, hardware_ns: 1 }
    }

    #[test]
    fn a_load_takes_what_is_served_meanwhile_and_never_more_than_it_does() {
        let (loading, idle) = (Holds { loaded: Circuits::NONE, loading: true }, Holds { loaded: Circuits::NONE, loading: false });
        let seen = |served: u64, rounds: u32| {
            let mut loads = Loading { load_ns: 1000, seen_ns: 1000.0, under_way: None };
            for _ in 0..rounds {
                loads.under_way = Some(UnderWay { served_ns: served, slots: 1 });
                loads.see(&asked(served), loading);
                loads.see(&asked(served), idle);
            }
            loads.seen_ns
        };
        assert!((seen(5, 200) - 10.0).abs() < 0.1, "the request that asked for it, and one more: {}", seen(5, 200));
        assert!((seen(700, 200) - 1000.0).abs() < f64::EPSILON);
        assert!((seen(0, 1) - 937.5).abs() < f64::EPSILON, "one load counts a sixteenth");
    }

    #[test]
    fn what_a_shadow_keeps_works_on_while_a_slot_is_loaded() {
        let (fit, mut scores) = (Fit::slots(2, 2), Scores::new(10.0));
        let other = Asked { circuit: Circuit(1), ..asked(1000) };
        for (scope, meanwhile_ns) in [(Scope::Slot, 1), (Scope::Device, 1000)] {
            let loaded = Circuits::first(1);
            let mut shadow = Shadow { threshold_ns: 0.0, loaded, loading: None, term_ns: 0, cost: 0.0 };
            [asked(1000), other].iter().for_each(|asked| scores.add(asked));
            shadow.begin(&other, &scores, &fit, scope, 5000);
            assert_eq!((shadow.loading, shadow.term_ns), (Some((Circuits::first(2), 4000)), 1000));
            shadow.begin(&asked(1000), &scores, &fit, scope, 5000);
            assert_eq!(shadow.term_ns, 1000 + meanwhile_ns);
        }
    }
}
