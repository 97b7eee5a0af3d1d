//! Which scheduler to set, and why.

use super::report::Report;
use crate::simulate::text::{percent, seconds};

/// Deadlines missed that count as none more than the least: half a percent of them.
const MISSED_NEAR: f64 = 0.005;
/// How far below the best Jain's index may be.
const FAIR_NEAR: f64 = 0.02;
/// How much longer than the shortest a run may take.
const TIME_NEAR: f64 = 1.03;

/// Of those that miss the fewest deadlines those that share best by weight, of those the ones that are done soonest, and of those the one with the shortest longest wait; where two are
/// as good, the one named first.
pub(super) fn best(reports: &[Report]) -> Option<&Report> {
    let mut left: Vec<&Report> = reports.iter().collect();
    let least = |left: &[&Report], figure: fn(&Report) -> f64| left.iter().map(|report| figure(report)).fold(f64::INFINITY, f64::min);
    let missed = |report: &Report| report.missed().unwrap_or(0.0);
    let fewest = least(&left, missed);
    left.retain(|report| missed(report) <= fewest + MISSED_NEAR);
    let unfair = |report: &Report| -report.jain.unwrap_or(1.0);
    let fairest = least(&left, unfair);
    left.retain(|report| unfair(report) <= fairest + FAIR_NEAR);
    let soonest = least(&left, |report| report.makespan_s);
    left.retain(|report| report.makespan_s <= soonest * TIME_NEAR);
    left.into_iter().reduce(|best, other| if other.wait_max_us() < best.wait_max_us() { other } else { best })
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
            report("slow", 2, 1.0, 1.5, 1.0),
            report("good", 4, 0.99, 1.2, 9.0),
        ];
        assert_eq!(best(&reports).unwrap().scheduler, "good");
        let why = why(&reports[3], &reports);
        assert!(why.contains("misses 0.400 % of the deadlines (late 90.0 %)") && why.contains("1.20 s (late 1.00 s)"), "{why}");
    }

    #[test]
    fn of_equals_the_first_is_named() {
        let reports = [report("fifo", 0, 1.0, 1.0, 5.0), report("wfq", 0, 1.0, 1.0, 5.0)];
        assert_eq!(best(&reports).unwrap().scheduler, "fifo");
        assert!(best(&[]).is_none());
    }
}
