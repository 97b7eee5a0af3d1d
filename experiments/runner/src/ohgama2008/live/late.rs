//! Why answers were late: where the time went from the moment at which a program wanted one to that at which it had it.

use super::super::loads::{GOAL_NS, SERVICE_NS};
use super::board::Seen;
use super::programs::Report;
use super::stalls::Stalls;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The stages of an answer, and what each may take: who waits for the module waits for the operation that it is at.
const STAGES: [(&str, u64); 6] = [
    ("the program woke late to ask", 0),
    ("on the way to the broker", 0),
    ("waited for the module", SERVICE_NS),
    ("the module's thread woke late", 0),
    ("the module's thread was held up", SERVICE_NS),
    ("on the way back", 0),
];

/// Answers that took longer than the goal, by the stage that took the most beyond what it may.
#[derive(Clone, Copy, Default)]
pub(super) struct Late {
    /// Of so many.
    asked: usize,
    /// Late by no more than a processor was away.
    excused: usize,
    by: [usize; STAGES.len()],
    /// How much of all that was beyond, by stage, in nanoseconds.
    beyond_ns: [u64; STAGES.len()],
}

impl Late {
    /// Of these programs' answers. A program's requests are in order at the broker too, so its number there is that of whoever's first request came in the course of its own.
    pub(super) fn of(reports: &[Report], seen: &[Seen], origin_ns: u64, stalls: &Stalls) -> Self {
        let mut by_client: BTreeMap<u32, Vec<&Seen>> = BTreeMap::new();
        for one in seen.iter().filter(|seen| seen.deadline.is_some()) {
            by_client.entry(one.client).or_default().push(one);
        }
        let mut late = Self::default();
        for report in reports {
            let spans: Vec<[u64; 3]> = spans(report).collect();
            let is_its = |requests: &&Vec<&Seen>| {
                requests.len() == spans.len()
                    && requests
                        .iter()
                        .zip(&spans)
                        .all(|(seen, [_, called, done])| (*called..=*done).contains(&(origin_ns + seen.arrival.0)))
            };
            let Some(requests) = by_client.values().find(is_its) else { continue };
            for (seen, [asked, called, done]) in requests.iter().zip(spans) {
                let [arrival, dispatched, start, end] =
                    [seen.arrival, seen.dispatched, seen.start, seen.done].map(|time| origin_ns + time.0);
                late.add([asked, called, arrival, dispatched, start, end, done], stalls);
            }
        }
        late
    }

    fn add(&mut self, moments: [u64; STAGES.len() + 1], stalls: &Stalls) {
        self.asked += 1;
        let (begin, end) = (moments[0], moments[STAGES.len()]);
        let Some(late_ns) = (end - begin).checked_sub(GOAL_NS).filter(|&late| late > 0) else { return };
        self.excused += usize::from(stalls.excuse(begin, end, late_ns));
        let beyond: Vec<u64> =
            (0..STAGES.len()).map(|stage| moments[stage + 1].saturating_sub(moments[stage]).saturating_sub(STAGES[stage].1)).collect();
        let worst = (0..STAGES.len()).max_by_key(|&stage| beyond[stage]).unwrap_or_default();
        self.by[worst] += 1;
        self.beyond_ns[worst] += beyond[worst];
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        let some = STAGES.iter().zip(self.by).zip(self.beyond_ns).filter(|((_, count), _)| *count > 0);
        let list: Vec<String> =
            some.map(|(((stage, _), count), ns)| format!("{count} {stage} ({:.1} ms each)", ns as f64 / 1e6 / count as f64)).collect();
        let late: usize = self.by.iter().sum();
        format!(
            "{late} of {} answers took longer than the goal, {} of them by no more than a processor was away{}{}",
            self.asked,
            self.excused,
            if late > 0 { ": " } else { "" },
            list.join(", ")
        )
    }
}

impl AddAssign for Late {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.excused += other.excused;
        self.by.iter_mut().zip(other.by).for_each(|(sum, count)| *sum += count);
        self.beyond_ns.iter_mut().zip(other.beyond_ns).for_each(|(sum, ns)| *sum += ns);
    }
}

/// When each operation was wanted, asked for and there, on the monotonic clock.
fn spans(report: &Report) -> impl Iterator<Item = [u64; 3]> {
    let at = |us: f64| report.begin_ns + (us * 1e3) as u64;
    let asked = report.asked_us.iter().zip(&report.called_us).zip(&report.took_us);
    asked.map(move |((&asked, &called), &took)| [at(asked), at(called), at(asked + took) + 1000])
}

/// The monotonic clock, in nanoseconds.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::Time;

    #[test]
    fn the_stage_that_took_too_long_is_named() {
        let report = |asked_us: &[f64], took_us: f64| -> Report {
            let called_us: Vec<f64> = asked_us.iter().map(|us| us + 10.0).collect();
            let took_us = vec![took_us; asked_us.len()];
            let report = serde_json::json!({
                "operations": asked_us.len(), "wrong": 0, "elsewhere": 0, "first_us": null, "end_us": 0.0,
                "took_us": took_us, "asked_us": asked_us, "called_us": called_us,
            });
            serde_json::from_value(report).unwrap()
        };
        let seen = |client, us: [u64; 4]| {
            let [arrival, dispatched, start, done] = us.map(|us| Time(us * 1000));
            Seen { client, arrival, dispatched, start, done, deadline: Some(Time(0)) }
        };
        // Of two programs; the second's second answer came back late.
        let reports = [report(&[0.0, 5000.0], 300.0), report(&[100.0, 7000.0], 2000.0)];
        let requests = [
            seen(4, [20, 30, 40, 200]),
            seen(9, [120, 130, 1800, 1950]),
            seen(4, [5020, 5030, 5040, 5200]),
            seen(9, [7020, 7030, 7040, 7170]),
        ];
        let late = Late::of(&reports, &requests, 0, &Stalls::default());
        assert_eq!((late.asked, late.by), (4, [0, 0, 0, 1, 0, 1]));
        assert!(
            late.text()
                .starts_with("2 of 4 answers took longer than the goal, 0 of them by no more than a processor was away: 1 the module's thread woke late (1.7 ms each), 1 on the way back"),
            "{}",
            late.text()
        );
    }
}
