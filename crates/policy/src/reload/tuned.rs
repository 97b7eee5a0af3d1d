//! Saved seconds, tuned by copies that run beside it.
//!
//! What memory and threshold are best depends on the traffic: how long runs of one circuit are, how dear loading is beside a request. So
//! every setting of a small grid is played through beside the live one, each on an engine of its own that is only reckoned: a *shadow*. A shadow knows what
//! it would hold, when that would be loaded, and what each request would have cost it. The live policy follows the shadow that was cheapest of
//! late, and changes over only to one that is cheaper by 0.3 %.

use super::saved::Scores;
use super::{Asked, Circuits, Fit, Holds, Reload, Step};

/// The memories tried, in requests.
const MEMORIES: [f64; 4] = [30.0, 100.0, 300.0, 1000.0];
/// The thresholds tried, as fractions of the loading time.
const THRESHOLDS: [f64; 4] = [0.1, 0.33, 1.0, 3.0];
/// Requests between two choices of the shadow to follow.
const TERM: u32 = 512;
/// What a term counts for one term later.
const FADE: f64 = 0.995;
/// How much cheaper another shadow must be to be followed instead: 0.3 %.
const MARGIN: f64 = 0.003;

/// An engine that is only reckoned. Its clock runs by its own requests, one after the other.
#[derive(Clone, Debug)]
struct Shadow {
    threshold_ns: f64,
    loaded: Circuits,
    /// What is being loaded, and how long that takes yet.
    loading: Option<(Circuits, u64)>,
    /// What the requests of this term cost.
    term_ns: u64,
    /// What those of earlier terms did, fading.
    cost: f64,
}

impl Shadow {
    fn begin(&mut self, asked: &Asked, scores: &Scores, fit: &Fit, load_ns: u64) {
        let hardware = self.loading.is_none() && self.loaded.contains(asked.circuit) && asked.saved_ns() > 0;
        let takes = if hardware { asked.hardware_ns } else { asked.software_ns };
        if self.loading.is_none()
            && !hardware
            && let Some(best) = scores.wanted(fit, self.loaded, self.threshold_ns)
        {
            self.loading = Some((best, load_ns));
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
    load_ns: u64,
    scores: [Scores; MEMORIES.len()],
    shadows: [[Shadow; THRESHOLDS.len()]; MEMORIES.len()],
    /// Which memory and threshold the live engine follows.
    followed: (usize, usize),
    left: u32,
}

impl Tuned {
    /// For an engine that holds so much and takes `load_ns` to load others.
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
            load_ns,
            scores: MEMORIES.map(Scores::new),
            shadows: MEMORIES.map(|_| THRESHOLDS.map(shadow)),
            followed: (1, 1),
            left: TERM,
        }
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
        for (scores, shadows) in self.scores.iter_mut().zip(&mut self.shadows) {
            scores.add(asked);
            shadows.iter_mut().for_each(|shadow| shadow.begin(asked, scores, &self.fit, self.load_ns));
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = TERM;
            self.choose();
        }
        let (memory, threshold) = self.followed;
        self.scores[memory].step(asked, holds, &self.fit, THRESHOLDS[threshold] * self.load_ns as f64)
    }
}
