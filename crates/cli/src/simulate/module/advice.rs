//! Which scheduler to set, and why.

use super::report::Report;
use crate::simulate::text::{percent, seconds};
use std::cmp::Ordering;

/// How far below the best Jain's index may be.
const FAIR_NEAR: f64 = 0.02;
/// How much longer than the shortest a run may take.
const TIME_NEAR: f64 = 1.03;

/// Of those that miss the fewest deadlines (none, if that can be had) those that share best by weight, of those the ones that are done soonest, and of those the one with the shortest longest
/// wait. Sharing and time count as equal where they are near; in the end the exact figures decide, so that no other is better in one and as good in all. Of equals the one named first.
pub(super) fn best(reports: &[Report]) -> Option<&Report> {
    let mut left: Vec<&Report> = reports.iter().collect();
    let least = |left: &[&Report], figure: fn(&Report) -> f64| left.iter().map(|report| figure(report)).fold(f64::INFINITY, f64::min);
    let missed = |report: &Report| report.missed().unwrap_or(0.0);
    let fewest = least(&left, missed);
    left.retain(|report| missed(report) <= fewest);
    let unfair = |report: &Report| -report.jain.unwrap_or(1.0);
    let fairest = least(&left, unfair);
    left.retain(|report| unfair(report) <= fairest + FAIR_NEAR);
    let soonest = least(&left, |report| report.makespan_s);
    left.retain(|report| report.makespan_s <= soonest * TIME_NEAR);
    let exact = |report: &Report| [report.wait_max_us(), unfair(report), report.makespan_s];
    left.into_iter().min_by(|a, b| exact(a).partial_cmp(&exact(b)).unwrap_or(Ordering::Equal))
}

/// Whether all deadlines are met; nothing to say where there are none.
pub(super) fn meets_goals(report: &Report) -> Option<bool> {
    report.missed().map(|missed| missed == 0.0)
}

/// The reasons, as a sentence.
pub(super) fn why(best: &Report, reports: &[Report]) -> String {
    let mut said = Vec::new();
    if let Some(missed) = best.missed() {
        let worst = reports.iter().max_by(|a, b| a.missed().unwrap_or(0.0).total_cmp(&b.missed().unwrap_or(0.0)));
        let worst = worst
            .filter(|worst| worst.missed() > Some(missed))
            .map(|worst| format!(" ({} {})", worst.scheduler, percent(worst.missed().unwrap_or(0.0))));
        said.push(format!("misses {} of the deadlines{}", percent(missed), worst.unwrap_or_default()));
    }
    if let Some(jain) = best.jain {
        said.push(format!("shares by weight with Jain's index {jain:.2}"));
    }
    let shortest = reports
        .iter()
        .min_by(|a, b| a.makespan_s.total_cmp(&b.makespan_s))
        .filter(|shortest| shortest.makespan_s < best.makespan_s * 0.995);
    let beside = shortest.map_or_else(String::new, |shortest| format!(" ({} {})", shortest.scheduler, seconds(shortest.makespan_s)));
    said.push(format!("is done after {}{beside}", seconds(best.makespan_s)));
    said.push(format!("lets nobody wait longer than {}", seconds(best.wait_max_us() / 1e6)));
    format!("it {}", said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::report::Part;
    use super::*;

    fn report(scheduler: &str, missed: usize, jain: f64, makespan_s: f64, wait_max_us: f64) -> Report {
        let part = Part {
            tenant: "others".into(),
            weight: 1,
            goal_us: Some(1e3),
            clients: 1,
            requests: 1000,
            share: None,
            due: None,
            jain: None,
            wait_p50_us: 0.0,
            wait_p99_us: 0.0,
            wait_max_us,
            deadlines: 1000,
            missed,
            waits_us: Vec::new(),
        };
        Report { scheduler: scheduler.into(), makespan_s, busy: 1.0, switches: 0, jain: Some(jain), demoted: 0, tenants: vec![part] }
    }

    #[test]
    fn deadlines_go_before_fairness_and_that_before_time() {
        let reports = [
            report("late", 900, 1.0, 1.0, 1.0),
            report("unfair", 0, 0.3, 1.0, 1.0),
            report("slow", 0, 1.0, 1.5, 1.0),
            report("good", 0, 0.99, 1.2, 9.0),
            report("missing", 1, 1.0, 1.0, 1.0),
        ];
        assert_eq!(best(&reports).unwrap().scheduler, "good");
        let why = why(&reports[3], &reports);
        assert!(why.contains("misses 0 % of the deadlines (late 90.0 %)") && why.contains("1.20 s (late 1.00 s)"), "{why}");
    }

    #[test]
    fn none_is_named_that_another_beats() {
        let reports = [report("wfq", 1, 1.0, 20.0, 5.0), report("edf", 0, 1.0, 20.0, 5.0), report("default", 0, 1.0, 20.0, 5.0)];
        assert_eq!(best(&reports).unwrap().scheduler, "edf");
        let some = [(0, 1.0), (0, 0.99), (1, 1.0), (2, 0.98)]
            .map(|(missed, jain)| [1.0, 1.02, 1.04].map(|time| [5.0, 6.0].map(|wait| (missed, jain, time, wait))));
        let all: Vec<_> = some.into_iter().flatten().flatten().collect();
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            let is_better = one != other && one.0 <= other.0 && one.1 >= other.1 && one.2 <= other.2 && one.3 <= other.3;
            let [better, worse] = [("better", one), ("worse", other)].map(|(name, of)| move || report(name, of.0, of.1, of.2, of.3));
            for reports in [[better(), worse()], [worse(), better()]].iter().filter(|_| is_better) {
                assert_eq!(best(reports).unwrap().scheduler, "better", "{one:?} is better than {other:?}");
            }
        }
    }

    #[test]
    fn goals_are_met_by_those_that_miss_no_deadline() {
        assert_eq!([0, 1].map(|missed| meets_goals(&report("one", missed, 1.0, 1.0, 1.0))), [Some(true), Some(false)]);
    }

    #[test]
    fn of_equals_the_first_is_named() {
        let reports = [report("fifo", 0, 1.0, 1.0, 5.0), report("wfq", 0, 1.0, 1.0, 5.0)];
        assert_eq!(best(&reports).unwrap().scheduler, "fifo");
        assert!(best(&[]).is_none());
    }
}
