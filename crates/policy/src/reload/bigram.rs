//! niwa2005's predictor: which two circuits follow an interval in which two others led (s5.2, s5.3, tables 3 and 4).
//!
//! An interval is 5 Mbyte of requests, some 200. Its *state* is the two circuits used most and the decile of the requests that each took:
//! 45 pairs x 10 x 10 deciles, and 10 for one circuit alone, 4,510 for ten circuits. [`Training`] walks a trace and counts, at every request, which state
//! the interval before it had and which two circuits led in the interval from it on. The [`Matrix`] keeps for every state the pair that
//! followed most often; for a state never seen, the two circuits used most over all (the paper's zero-order prediction).

use super::overlap::Predictor;
use super::window::{INTERVAL_BYTES, Leaders, Window, leaders};
use super::{Asked, CIRCUITS_MAX, Circuit, Circuits};
use std::collections::BTreeMap;

/// Tenths of an interval in which a circuit's share is told: 0-9 %, 10-19 %, ... 90-99 %.
const DECILES: usize = 10;

/// How many states there are for so many circuits.
pub const fn states(circuits: usize) -> usize {
    circuits * (circuits - 1) / 2 * DECILES * DECILES + circuits
}

/// The number of a state, `0..states(circuits)`.
fn state(circuits: usize, leaders: &Leaders) -> usize {
    let decile = |count: u32| (count as usize * DECILES / leaders.requests as usize).min(DECILES - 1);
    let (first, of_first) = (usize::from(leaders.first.0.0), decile(leaders.first.1));
    let Some((second, count)) = leaders.second else { return states(circuits) - circuits + first };
    let (second, of_second) = (usize::from(second.0), decile(count));
    let (low, high, of_low, of_high) =
        if first < second { (first, second, of_first, of_second) } else { (second, first, of_second, of_first) };
    let pair = high * (high - 1) / 2 + low;
    (pair * DECILES + of_low) * DECILES + of_high
}

/// Counts what follows what. See the [module](self).
#[derive(Clone, Debug)]
pub struct Training {
    circuits: usize,
    /// Requests whose following interval is not full yet, with the state before each; the window over them.
    waiting: std::collections::VecDeque<Option<usize>>,
    after: Window,
    before: Window,
    /// How often each set led after a state.
    follows: BTreeMap<(usize, Circuits), u32>,
    used: [u32; CIRCUITS_MAX],
}

impl Training {
    /// For so many circuits, 2 to [`CIRCUITS_MAX`].
    pub fn new(circuits: usize) -> Self {
        Self {
            circuits: circuits.clamp(2, CIRCUITS_MAX),
            waiting: std::collections::VecDeque::new(),
            after: Window::new(u64::MAX),
            before: Window::new(INTERVAL_BYTES),
            follows: BTreeMap::new(),
            used: [0; CIRCUITS_MAX],
        }
    }

    /// The next request of the trace.
    pub fn see(&mut self, asked: &Asked) {
        let full = self.before.is_full();
        let state = self.before.leaders().filter(|_| full).map(|leaders| state(self.circuits, &leaders));
        self.before.push(asked);
        self.used[usize::from(asked.circuit.0)] += 1;
        self.waiting.push_back(state);
        self.after.push(asked);
        while self.after.bytes() >= INTERVAL_BYTES {
            self.settle();
        }
    }

    /// What follows the oldest waiting request is known: it is counted.
    fn settle(&mut self) {
        if let Some((state, led)) = self.waiting.pop_front().flatten().zip(self.after.leaders()) {
            *self.follows.entry((state, led.circuits())).or_default() += 1;
        }
        self.after.pop();
    }

    /// Ends one trace: what comes next does not follow from it.
    pub fn end(&mut self) {
        self.waiting.clear();
        self.after = Window::new(u64::MAX);
        self.before = Window::new(INTERVAL_BYTES);
    }

    /// What another has learnt from other traces, added to this. Traces that have not [ended](Self::end) teach no more than they have.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (&what, count) in &other.follows {
            *self.follows.entry(what).or_default() += count;
        }
        self.used.iter_mut().zip(&other.used).for_each(|(used, more)| *used += more);
        self
    }

    /// The matrix.
    pub fn matrix(&self) -> Matrix {
        let most_used = leaders(&self.used, 1).map_or(Circuits::NONE, |leaders| leaders.circuits());
        let mut next = vec![(most_used, 0); states(self.circuits)];
        for (&(state, set), &count) in &self.follows {
            if count > next[state].1 {
                next[state] = (set, count);
            }
        }
        Matrix { circuits: self.circuits, next: next.into_iter().map(|(set, _)| set).collect(), most_used }
    }
}

/// For every state the circuits that followed it most often. See the [module](self).
#[derive(Clone, Debug)]
pub struct Matrix {
    circuits: usize,
    next: Box<[Circuits]>,
    most_used: Circuits,
}

/// Looks the interval before each request up in a [`Matrix`].
#[derive(Clone, Debug)]
pub struct Bigram {
    matrix: Matrix,
    window: Window,
}

impl Bigram {
    /// With what was learnt.
    pub fn new(matrix: Matrix) -> Self {
        Self { matrix, window: Window::new(INTERVAL_BYTES) }
    }
}

impl Predictor for Bigram {
    fn name(&self) -> &'static str {
        "predict"
    }

    fn wanted(&mut self, _: Circuit) -> Circuits {
        match self.window.leaders() {
            Some(leaders) => self.matrix.next[state(self.matrix.circuits, &leaders)],
            None => self.matrix.most_used,
        }
    }

    #[inline]
    fn see(&mut self, asked: &Asked) {
        self.window.push(asked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(circuit: u8) -> Asked {
        Asked { circuit: Circuit(circuit), bytes: 25_000, software_ns: 2, hardware_ns: 1 }
    }

    #[test]
    fn ten_circuits_have_the_papers_4510_states_each_with_its_own_number() {
        assert_eq!(states(10), 4510);
        let mut seen = std::collections::BTreeSet::new();
        for first in 0..10 {
            seen.insert(state(10, &Leaders { first: (Circuit(first), 5), second: None, requests: 5 }));
            for second in (0..10).filter(|&second| second != first) {
                let state = state(10, &Leaders { first: (Circuit(first), 50), second: Some((Circuit(second), 20)), requests: 100 });
                assert!(state < 4500 && seen.insert(state), "{first} {second}");
            }
        }
        let swapped = |a, b| state(10, &Leaders { first: (Circuit(a), 30), second: Some((Circuit(b), 30)), requests: 100 });
        assert_eq!(swapped(3, 8), swapped(8, 3), "a pair has no order");
    }

    #[test]
    fn what_always_follows_is_predicted() {
        // 400 requests of circuits 1 and 2, then 400 of 3 and 4, over and over: the intervals are 200 long.
        let trace: Vec<u8> = (0..8000).map(|n| if n / 400 % 2 == 0 { 1 + n as u8 % 2 } else { 3 + n as u8 % 2 }).collect();
        let mut training = Training::new(10);
        trace.iter().for_each(|&circuit| training.see(&asked(circuit)));
        let mut predictor = Bigram::new(training.matrix());
        for &circuit in &trace[..399] {
            predictor.see(&asked(circuit));
        }
        let pair = |a, b| Circuits::NONE.with(Circuit(a)).with(Circuit(b));
        assert_eq!(predictor.wanted(Circuit(1)), pair(1, 2), "half of what follows a full interval of 1 and 2");
        let unseen = Bigram::new(training.matrix()).wanted(Circuit(9));
        assert_eq!(unseen.len(), 2, "without an interval before: those used most over all");
    }

    #[test]
    fn a_state_never_seen_falls_back_on_the_most_used() {
        let mut training = Training::new(4);
        for n in 0..1000u32 {
            training.see(&asked(if n % 3 == 0 { 2 } else { 1 }));
        }
        let mut predictor = Bigram::new(training.matrix());
        for _ in 0..250 {
            predictor.see(&asked(3));
        }
        assert_eq!(predictor.wanted(Circuit(3)), Circuits::NONE.with(Circuit(1)).with(Circuit(2)));
    }
}
