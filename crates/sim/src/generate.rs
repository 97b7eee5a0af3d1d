//! niwa2005's generator of requests (s4, formulas 1 to 3).
//!
//! The paper fitted three distributions to a month of a university's web log and gives their inverses; a uniform number in, a figure out:
//!
//! 1. how many requests come from one client in succession, `-0.72549 / (u - 0.976927)`;
//! 2. the gap between two requests, `-0.475263 / (u - 0.995667)`;
//! 3. after what time a client comes back, `-0.444219 / (u - 0.995429)`.
//!
//! What it leaves open is decided as matches its table 6 best. The unit is the second, though times are stretched to the wanted rate afterwards. Above its pole a
//! formula gives a negative figure. Runs and gaps are drawn again then; a client's return is not, that client is gone for good, and so new ones come: without
//! that, seven or eight clients make a whole trace. Formula 1 is a length of a run, rounded down, at least 1. When a run ends, its client
//! draws by formula 3 when it comes back; the next run is of the client that is due longest, or of a new one if none is due. A new
//! client gets one of the circuits at random and keeps it. Sizes are exponential. Run lengths have no mean: two seeds differ wildly, so look at
//! medians over many.

use crate::trace::{Request, Trace};
use bywash_policy::reload::Circuit;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A formula of the paper: `-a / (u - b)` for a uniform `u`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formula {
    /// The numerator.
    pub a: f64,
    /// The pole: draws above it would be negative.
    pub b: f64,
}

/// Formula 1: requests of one client in succession.
pub const RUN: Formula = Formula { a: 0.72549, b: 0.976_927 };
/// Formula 2: seconds between two requests.
pub const GAP: Formula = Formula { a: 0.475_263, b: 0.995_667 };
/// Formula 3: seconds until a client comes back.
pub const RETURN: Formula = Formula { a: 0.444_219, b: 0.995_429 };

/// How the paper is read where it leaves things open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Requests to make.
    pub requests: usize,
    /// Circuits that clients use.
    pub circuits: u8,
    /// The longest gap in seconds; longer ones are cut.
    pub longest_gap: f64,
    /// Whether gaps are rounded to whole seconds, as a web server's log has them; some requests then come at the same time.
    pub whole_seconds: bool,
    /// Mean size in bytes, of an exponential distribution.
    pub mean_bytes: f64,
}

impl Default for Reading {
    /// The best match: 610,000 requests (table 5), ten ciphers, gaps up to a day, 24,000 bytes.
    fn default() -> Self {
        Self { requests: 610_000, circuits: 10, longest_gap: 86_400.0, whole_seconds: false, mean_bytes: 24_000.0 }
    }
}

/// A trace by the generator; the same seed makes the same trace, on every machine.
pub fn generate(reading: &Reading, seed: u64) -> Trace {
    let mut generator = Generator { reading: *reading, random: fastrand::Rng::with_seed(seed), back: BinaryHeap::new() };
    let mut trace = Trace::with_capacity(reading.requests);
    let mut now = 0.0;
    let (mut circuit, mut left) = (0, 0.0);
    while trace.len() < reading.requests {
        now += generator.gap();
        if left < 1.0 {
            (circuit, left) = (generator.client(now), generator.draw(RUN).floor().max(1.0));
        }
        left -= 1.0;
        trace.push(Request { arrival: now, circuit: Circuit(circuit), bytes: generator.size() });
        if left < 1.0
            && let Some(away) = generator.draw_once(RETURN)
        {
            generator.back.push(Reverse((Seconds(now + away), circuit)));
        }
    }
    trace
}

struct Generator {
    reading: Reading,
    random: fastrand::Rng,
    /// When clients come back, and the circuit each uses.
    back: BinaryHeap<Reverse<(Seconds, u8)>>,
}

impl Generator {
    /// A figure by a formula; draws beyond the pole are made again.
    fn draw(&mut self, formula: Formula) -> f64 {
        loop {
            if let Some(value) = self.draw_once(formula) {
                return value;
            }
        }
    }

    /// A figure by a formula; `None` beyond the pole.
    fn draw_once(&mut self, formula: Formula) -> Option<f64> {
        let value = -formula.a / (self.random.f64() - formula.b);
        (value >= 0.0).then_some(value)
    }

    fn gap(&mut self) -> f64 {
        let gap = self.draw(GAP).min(self.reading.longest_gap);
        if self.reading.whole_seconds { gap.round() } else { gap }
    }

    /// The client of the next run: its circuit.
    fn client(&mut self, now: f64) -> u8 {
        match self.back.peek() {
            Some(Reverse((due, _))) if due.0 <= now => self.back.pop().map_or(0, |Reverse((_, circuit))| circuit),
            _ => self.random.u8(..self.reading.circuits),
        }
    }

    fn size(&mut self) -> u32 {
        // 1 - u is never 0; libm's logarithm is the same everywhere.
        let bytes = -self.reading.mean_bytes * libm::log(1.0 - self.random.f64());
        bytes.round().max(1.0) as u32
    }
}

/// Seconds, in order.
#[derive(Clone, Copy, PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_trace() {
        let reading = Reading { requests: 5000, ..Reading::default() };
        assert_eq!(generate(&reading, 1), generate(&reading, 1));
        assert_ne!(generate(&reading, 1), generate(&reading, 2));
    }

    #[test]
    fn draws_follow_the_formulas() {
        let mut generator = Generator { reading: Reading::default(), random: fastrand::Rng::with_seed(3), back: BinaryHeap::new() };
        for formula in [RUN, GAP, RETURN] {
            let mut draws: Vec<f64> = (0..100_000).map(|_| generator.draw(formula)).collect();
            draws.sort_by(f64::total_cmp);
            // Redrawing leaves u uniform below the pole: the q-quantile is a / (b (1 - q)).
            for q in [0.1, 0.5, 0.9, 0.99] {
                let (seen, expected) = (draws[(q * 1e5) as usize], formula.a / (formula.b * (1.0 - q)));
                assert!((seen / expected - 1.0).abs() < 0.1, "{formula:?} {q}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn sizes_are_exponential_of_the_mean_asked_for() {
        let trace = generate(&Reading { requests: 50_000, ..Reading::default() }, 9);
        let mean = trace.iter().map(|request| f64::from(request.bytes)).sum::<f64>() / 50_000.0;
        assert!((mean / 24_000.0 - 1.0).abs() < 0.02, "{mean}");
        let small = trace.iter().filter(|request| request.bytes < 24_000).count() as f64 / 50_000.0;
        assert!((small - 0.632).abs() < 0.01, "{small}");
    }
}
