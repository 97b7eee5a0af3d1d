//! niwa2005's generator of requests (s4, formulas 1 to 3).
//!
//! The paper fitted three distributions to a month of a university's web log and gives their inverses; a uniform number in, a figure out:
//!
//! 1. how many requests come from one client in succession, `-0.72549 / (u - 0.976927)`;
//! 2. the gap between two requests, `-0.475263 / (u - 0.995667)`;
//! 3. after what time a client comes back, `-0.444219 / (u - 0.995429)`.
//!
//! What it leaves open is a field of [`Reading`]; the default matches its table 6 best, and `cargo bench -p bywash-sim --bench readings` prints how well others do.
//! In every reading times are stretched to the wanted rate afterwards, and formula 1 is a length of a run, at least 1. When a run ends, its client draws by
//! formula 3 when it comes back; the next run is of the client that is due longest, or of a new one if none is due. A new client
//! gets one of the circuits at random and keeps it. Above its pole a formula gives a negative figure, which needs a meaning too. Run lengths have no mean:
//! two seeds differ wildly, so look at medians over many.

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
    /// How gaps become whole seconds, as a web server's log has them; some requests then come at the same time.
    pub gaps: Rounding,
    /// How the length of a run becomes a whole number; less than 1 is 1.
    pub runs: Rounding,
    /// What a negative gap means.
    pub gap_below_0: Negative,
    /// What a negative length of a run means.
    pub run_below_0: Negative,
    /// What a negative time until a client comes back means.
    pub return_below_0: Negative,
    /// How sizes are distributed.
    pub sizes: Sizes,
    /// Mean size in bytes.
    pub mean_bytes: f64,
}

impl Reading {
    /// The best match: 610,000 requests (table 5), ten ciphers, 24,000 bytes; gaps in whole seconds up to an hour; clients that never come back for negative times, or
    /// else seven or eight clients would make a whole trace; sizes by a power law up to 1 MB. The paper says that sizes are exponential. Its own table 6 says otherwise: under a
    /// light load nine of ten requests take Fix-All no longer than 0.4 ms, and their mean, from the heaviest loads, is 0.36 ms; exponential sizes would need 1.0 ms for that mean.
    pub const BEST: Self = Self {
        requests: 610_000,
        circuits: 10,
        longest_gap: 3600.0,
        gaps: Rounding::Nearest,
        runs: Rounding::Down,
        gap_below_0: Negative::Redrawn,
        run_below_0: Negative::Redrawn,
        return_below_0: Negative::Most,
        sizes: Sizes::PowerLaw(1e6),
        mean_bytes: 24_000.0,
    };
}

impl Default for Reading {
    fn default() -> Self {
        Self::BEST
    }
}

/// How a figure becomes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// It does not.
    None,
    /// To the nearest one.
    Nearest,
    /// To the one below.
    Down,
    /// To the one above.
    Up,
}

impl Rounding {
    fn of(self, figure: f64) -> f64 {
        match self {
            Self::None => figure,
            Self::Nearest => figure.round(),
            Self::Down => figure.floor(),
            Self::Up => figure.ceil(),
        }
    }
}

/// What a negative draw means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negative {
    /// It is drawn again.
    Redrawn,
    /// It is as little as can be: no gap, a run of one request, a client that is back at once.
    Least,
    /// It is as much as can be: the longest gap, a run to the end of the trace, a client that is gone for good.
    Most,
}

/// How sizes are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Exponentially, as the paper says (s4).
    Exponential,
    /// By a power law, `least / u` for a uniform `u`, as the paper's three formulas are: `least` follows from the mean, and this is the size in bytes at which larger
    /// ones are cut.
    PowerLaw(f64),
}

/// A trace by the generator; the same seed makes the same trace, on every machine.
pub fn generate(reading: &Reading, seed: u64) -> Trace {
    let mut trace = Trace::with_capacity(reading.requests);
    requests(reading, seed).for_each(|(request, _)| trace.push(request));
    trace
}

/// The same, request by request as they are asked for, each with the number of its client. What is kept of clients grows with their number.
pub fn requests(reading: &Reading, seed: u64) -> impl Iterator<Item = (Request, u32)> + use<> {
    let mut generator = Generator::new(reading, seed);
    let mut now = 0.0;
    let (mut client, mut left) = (0, 0.0);
    (0..reading.requests).map(move |_| {
        now += generator.gap();
        if left < 1.0 {
            (client, left) = (generator.client(now), generator.run());
        }
        left -= 1.0;
        let circuit = Circuit(generator.circuits[client as usize]);
        let request = Request { arrival: now, circuit, bytes: generator.size() };
        if left < 1.0 {
            generator.leave(now, client);
        }
        (request, client)
    })
}

/// Requests without end in little memory: trace after trace, of one seed after the other, each beginning where the one before ended.
pub fn endless(reading: Reading, first_seed: u64) -> impl Iterator<Item = Request> {
    let (mut begun, mut last) = (0.0, 0.0);
    (first_seed..).flat_map(move |seed| requests(&reading, seed).enumerate()).map(move |(place, (request, _))| {
        if place == 0 {
            begun = last;
        }
        last = begun + request.arrival;
        Request { arrival: last, ..request }
    })
}

struct Generator {
    reading: Reading,
    random: fastrand::Rng,
    /// The circuit of each client.
    circuits: Vec<u8>,
    /// When clients come back.
    back: BinaryHeap<Reverse<(Seconds, u32)>>,
    /// The smallest size under a power law.
    least_bytes: f64,
}

impl Generator {
    fn new(reading: &Reading, seed: u64) -> Self {
        let least_bytes = match reading.sizes {
            Sizes::Exponential => 0.0,
            Sizes::PowerLaw(largest) => least_of_power_law(reading.mean_bytes, largest),
        };
        Self { reading: *reading, random: fastrand::Rng::with_seed(seed), circuits: Vec::new(), back: BinaryHeap::new(), least_bytes }
    }

    /// A figure by a formula, with these for as little and as much as can be.
    fn draw(&mut self, formula: Formula, below_0: Negative, least: f64, most: f64) -> f64 {
        loop {
            let value = -formula.a / (self.random.f64() - formula.b);
            match below_0 {
                _ if value >= 0.0 => return value,
                Negative::Redrawn => {}
                Negative::Least => return least,
                Negative::Most => return most,
            }
        }
    }

    fn gap(&mut self) -> f64 {
        let Reading { gaps, gap_below_0, longest_gap, .. } = self.reading;
        gaps.of(self.draw(GAP, gap_below_0, 0.0, longest_gap).min(longest_gap))
    }

    fn run(&mut self) -> f64 {
        let Reading { runs, run_below_0, .. } = self.reading;
        runs.of(self.draw(RUN, run_below_0, 1.0, f64::INFINITY)).max(1.0)
    }

    /// The client's run is over.
    fn leave(&mut self, now: f64, client: u32) {
        let away = self.draw(RETURN, self.reading.return_below_0, 0.0, f64::INFINITY);
        if away.is_finite() {
            self.back.push(Reverse((Seconds(now + away), client)));
        }
    }

    /// The client of the next run.
    fn client(&mut self, now: f64) -> u32 {
        if let Some(&Reverse((due, client))) = self.back.peek()
            && due.0 <= now
        {
            self.back.pop();
            return client;
        }
        self.circuits.push(self.random.u8(..self.reading.circuits));
        self.circuits.len() as u32 - 1
    }

    fn size(&mut self) -> u32 {
        // Never 0.
        let u = 1.0 - self.random.f64();
        let bytes = match self.reading.sizes {
            // libm's logarithm is the same everywhere.
            Sizes::Exponential => -self.reading.mean_bytes * libm::log(u),
            Sizes::PowerLaw(largest) => (self.least_bytes / u).min(largest),
        };
        bytes.round().max(1.0) as u32
    }
}

/// The smallest size of a power law with this mean that is cut at `largest`: the solution of `mean = least (1 + ln(largest / least))`.
fn least_of_power_law(mean: f64, largest: f64) -> f64 {
    // The right side grows with `least` up to `largest`, where it is `largest`: halving finds the place.
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if middle * (1.0 + libm::log(largest / middle)) < mean { low = middle } else { high = middle }
    }
    high
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
    fn traces_without_end_go_on_where_one_ends() {
        let reading = Reading { requests: 100, ..Reading::default() };
        let long: Vec<Request> = endless(reading, 7).take(250).collect();
        assert!(long.is_sorted_by_key(|request| request.arrival));
        for (seed, part) in [(7, 0..100), (8, 100..200), (9, 200..250)] {
            let begun = if part.start == 0 { 0.0 } else { long[part.start - 1].arrival };
            for (request, (alone, _)) in long[part].iter().zip(requests(&reading, seed)) {
                assert_eq!(*request, Request { arrival: begun + alone.arrival, ..alone });
            }
        }
    }

    #[test]
    fn draws_follow_the_formulas() {
        let mut generator = Generator::new(&Reading::default(), 3);
        for formula in [RUN, GAP, RETURN] {
            let mut draws: Vec<f64> = (0..100_000).map(|_| generator.draw(formula, Negative::Redrawn, 0.0, 0.0)).collect();
            draws.sort_by(f64::total_cmp);
            // Redrawing leaves u uniform below the pole: the q-quantile is a / (b (1 - q)).
            for q in [0.1, 0.5, 0.9, 0.99] {
                let (seen, expected) = (draws[(q * 1e5) as usize], formula.a / (formula.b * (1.0 - q)));
                assert!((seen / expected - 1.0).abs() < 0.1, "{formula:?} {q}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn sizes_under_a_power_law_have_the_mean_asked_for() {
        let sizes = Sizes::PowerLaw(1e6);
        let trace = generate(&Reading { requests: 200_000, sizes, ..Reading::default() }, 9);
        let mean = trace.iter().map(|request| f64::from(request.bytes)).sum::<f64>() / 200_000.0;
        assert!((mean / 24_000.0 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(trace.iter().map(|request| request.bytes).max(), Some(1_000_000));
        // Half of all lie below twice the smallest.
        let least = trace.iter().map(|request| request.bytes).min().unwrap();
        let small = trace.iter().filter(|request| request.bytes < 2 * least).count() as f64 / 200_000.0;
        assert!((small - 0.5).abs() < 0.01, "{small}");
    }

    #[test]
    fn what_a_negative_draw_means() {
        let reading = |gap_below_0, run_below_0| Reading {
            requests: 2000,
            longest_gap: 500.0,
            gaps: Rounding::None,
            gap_below_0,
            run_below_0,
            ..Reading::default()
        };
        let gaps = |below_0, wanted: f64| {
            let trace = generate(&reading(below_0, Negative::Redrawn), 1);
            let arrivals: Vec<f64> = trace.iter().map(|request| request.arrival).collect();
            arrivals.windows(2).filter(|pair| (pair[1] - pair[0] - wanted).abs() < 1e-6).count()
        };
        assert_eq!((gaps(Negative::Redrawn, 0.0), gaps(Negative::Most, 0.0)), (0, 0));
        assert!(gaps(Negative::Least, 0.0) > 0 && gaps(Negative::Most, 500.0) > gaps(Negative::Redrawn, 500.0));
        let endless = generate(&reading(Negative::Redrawn, Negative::Most), 1);
        let circuits: Vec<Circuit> = endless.iter().map(|request| request.circuit).collect();
        assert!(circuits[1000..].iter().all(|&circuit| circuit == circuits[1000]), "one run in 43 goes to the end of the trace");
    }

    #[test]
    fn sizes_are_exponential_of_the_mean_asked_for() {
        let trace = generate(&Reading { requests: 50_000, sizes: Sizes::Exponential, ..Reading::default() }, 9);
        let mean = trace.iter().map(|request| f64::from(request.bytes)).sum::<f64>() / 50_000.0;
        assert!((mean / 24_000.0 - 1.0).abs() < 0.02, "{mean}");
        let small = trace.iter().filter(|request| request.bytes < 24_000).count() as f64 / 50_000.0;
        assert!((small - 0.632).abs() < 0.01, "{small}");
    }
}
