//! What else the machine did while something was measured.

use crate::frequency::core_ghz;
use crate::statistics::quantile;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread::available_parallelism;
use std::time::Instant;

/// Spread of the calibration chain that is worth a warning: its slowest tenth against its fastest.
const SPREAD_MAX: f64 = 0.05;
/// Share of all processors' time that others may take.
const FOREIGN_MAX: f64 = 0.10;
/// Share of the time that the hypervisor may give to other guests.
const STEAL_MAX: f64 = 0.01;
/// Processes that want to run, beside ours, for each processor.
const LOAD_MAX: f64 = 0.5;

/// Looks at the machine from its making to [`Watch::end`].
#[derive(Debug)]
pub struct Watch {
    begun: Instant,
    /// Processes beside this one whose work is measured.
    workers: Vec<u32>,
    ours_s: Option<f64>,
    ticks: Option<Ticks>,
    load: Option<f64>,
    ghz: Vec<f64>,
    /// What else was running at each probe.
    running: Vec<f64>,
}

/// What a [`Watch`] saw. Shares are of the time of all processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Processors that this process may use.
    pub processors: usize,
    /// Processes that wanted to run in the minute before, as the kernel counts them.
    pub load: Option<f64>,
    /// Others that ran or wanted to, on average, between measurements.
    #[serde(default)]
    pub running: Option<f64>,
    /// Taken by other processes.
    pub foreign: Option<f64>,
    /// Given by the hypervisor to other guests.
    pub steal: Option<f64>,
    /// The core's frequency in GHz: lowest, middle, highest of what the calibration chain showed between measurements.
    pub core_ghz: Option<[f64; 3]>,
    /// How much slower the chain's slowest tenth was than its fastest.
    pub spread: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Ticks {
    all: f64,
    busy: f64,
    steal: f64,
}

impl Watch {
    /// Begins to look. What this process does disturbs nothing, nor do children that it waits for.
    pub fn begin() -> Self {
        Self::beside(Vec::new())
    }

    /// The same, and these processes disturb nothing either: a broker works for what is measured. Of one whose time cannot be read
    /// nobody can tell what others took.
    pub fn beside(workers: Vec<u32>) -> Self {
        let ours_s = ours_s(&workers);
        Self { begun: Instant::now(), workers, ours_s, ticks: ticks(), load: load(), ghz: Vec::new(), running: Vec::new() }
    }

    /// Runs the calibration chain once, between two measurements, and gives the cycles in a nanosecond that it shows.
    pub fn probe(&mut self) -> Option<f64> {
        self.running.extend(running());
        let ghz = core_ghz();
        self.ghz.extend(ghz);
        ghz
    }

    /// What was seen so far.
    pub fn end(&self) -> Noise {
        let processors = available_parallelism().map_or(1, usize::from);
        let whole_s = self.begun.elapsed().as_secs_f64().max(1e-3) * online(processors);
        let ours = self.ours_s.zip(ours_s(&self.workers)).map(|(before, after)| (after - before) / whole_s);
        let during = self.ticks.zip(ticks()).filter(|(before, after)| after.all - before.all >= 10.0);
        let share = |part: fn(&Ticks) -> f64| during.map(|(before, after)| (part(&after) - part(&before)) / (after.all - before.all));
        let at = |q| quantile(&self.ghz, q);
        Noise {
            processors,
            load: self.load,
            running: (!self.running.is_empty()).then(|| self.running.iter().sum::<f64>() / self.running.len() as f64),
            foreign: share(|ticks| ticks.busy).zip(ours).map(|(busy, ours)| (busy - ours).max(0.0)),
            steal: share(|ticks| ticks.steal),
            core_ghz: (!self.ghz.is_empty()).then(|| [at(0.0), at(0.5), at(1.0)]),
            spread: (!self.ghz.is_empty()).then(|| at(0.9) / at(0.1) - 1.0),
        }
    }
}

impl Noise {
    /// What makes the figures doubtful, a line each; nothing on a quiet machine.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines = self.disturbances();
        lines.extend(
            self.load
                .filter(|load| *load > LOAD_MAX * self.processors as f64)
                .map(|load| format!("{load:.1} processes wanted to run in the minute before, on {} processors", self.processors)),
        );
        lines
    }

    /// Whether anything was seen that made times longer while they were measured; what ran before does not.
    pub fn is_disturbed(&self) -> bool {
        !self.disturbances().is_empty()
    }

    fn disturbances(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut warn = |value: Option<f64>, most: f64, text: &dyn Fn(f64) -> String| {
            lines.extend(value.filter(|value| *value > most).map(text));
        };
        warn(self.spread, SPREAD_MAX, &|spread| {
            let [low, _, high] = self.core_ghz.unwrap_or_default();
            format!(
                "a loop of known length took {:.0} % longer in its slowest tenth than in its fastest ({low:.2} to {high:.2} GHz)",
                100.0 * spread
            )
        });
        warn(self.foreign, FOREIGN_MAX, &|share| format!("other processes took {:.0} % of the processors' time meanwhile", 100.0 * share));
        warn(self.steal, STEAL_MAX, &|share| format!("the hypervisor gave {:.1} % of the time to other guests", 100.0 * share));
        warn(self.running, LOAD_MAX * self.processors as f64, &|running| {
            format!("{running:.1} other processes ran or wanted to meanwhile, on {} processors", self.processors)
        });
        lines
    }
}

/// The kernel counts the time of all processors, also of those that this process may not use.
fn online(processors: usize) -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let counted = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    counted.max(processors).max(1) as f64
}

/// Processor time of this process, of its children that have ended, and of its workers.
fn ours_s(workers: &[u32]) -> Option<f64> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let [.., children] = process_s("self")?;
    let workers: f64 = workers.iter().map(|pid| process_s(&pid.to_string()).map(|[own, children]| own + children)).sum::<Option<f64>>()?;
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9 + children + workers)
}

/// Processor time of a process, and of its children that it has waited for.
fn process_s(pid: &str) -> Option<[f64; 2]> {
    let [user, system, of_children, system_of_children] =
        process_ticks(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))?;
    Some([user + system, of_children + system_of_children].map(|ticks| ticks / clock_ticks_per_second() as f64))
}

/// `/proc/PID/stat`: utime stime cutime cstime (proc(5)). What comes before is behind a name that may hold anything.
fn process_ticks(text: &str) -> Option<[f64; 4]> {
    let times = text.rsplit_once(") ")?.1.split(' ').skip(11).take(4).map(|ticks| ticks.parse().ok());
    times.collect::<Option<Vec<f64>>>()?.try_into().ok()
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Threads of all processes that run or want to, but for the one that asks (proc(5), `/proc/loadavg`).
fn running() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let running: f64 = text.split(' ').nth(3)?.split('/').next()?.parse().ok()?;
    Some((running - 1.0).max(0.0))
}

fn ticks() -> Option<Ticks> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal, in ticks (proc(5)).
fn parse(text: &str) -> Option<Ticks> {
    let figures: Vec<f64> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = figures[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(Ticks { all: busy + idle + iowait + steal, busy, steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_is_no_matter_and_a_noisy_one_is_told_of() {
        let quiet = Noise {
            processors: 2,
            load: Some(0.3),
            running: Some(0.2),
            foreign: Some(0.01),
            steal: Some(0.0),
            core_ghz: Some([3.6, 3.7, 3.7]),
            spread: Some(0.01),
        };
        assert!(quiet.warnings().is_empty() && Noise::default().warnings().is_empty());
        assert!(!quiet.is_disturbed());
        let after_a_build = Noise { load: Some(4.0), ..quiet.clone() };
        assert!(after_a_build.warnings().len() == 1 && !after_a_build.is_disturbed(), "what ran before does not disturb");
        let noisy = Noise { load: Some(4.0), running: Some(2.5), foreign: Some(0.5), steal: Some(0.03), spread: Some(0.2), ..quiet };
        let text = noisy.warnings().join("\n");
        assert!(
            ["50 %", "3.0 %", "4.0 processes", "2.5 other processes", "20 % longer", "3.60 to 3.70 GHz"]
                .iter()
                .all(|part| text.contains(part)),
            "{text}"
        );
        assert!(noisy.warnings().len() == 5 && noisy.is_disturbed());
    }

    #[test]
    fn the_kernels_line_is_read() {
        let ticks = parse("cpu  100 5 45 800 20 3 7 20 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!((ticks.all, ticks.busy, ticks.steal), (1000.0, 160.0, 20.0));
        assert!(parse("").is_none() && parse("cpu  1 2\n").is_none() && parse("intr 1\n").is_none());
    }

    #[test]
    fn a_process_time_is_read_whatever_its_name() {
        let text = "7 (a) R 1 ) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 99 0\n";
        assert_eq!(process_ticks(text), Some([11.0, 12.0, 13.0, 14.0]));
        assert!(process_ticks("").is_none() && process_ticks("7 (a) S 1 7").is_none());
    }

    #[test]
    fn children_and_workers_are_no_others() {
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let before = ours_s(&[]).unwrap();
        let own = clock_gettime(ClockId::ProcessCPUTime);
        assert!(std::process::Command::new("sh").args(["-c", spin]).status().unwrap().success());
        let (now, after) = (clock_gettime(ClockId::ProcessCPUTime), ours_s(&[]).unwrap());
        let own = (now.tv_sec - own.tv_sec) as f64 + (now.tv_nsec - own.tv_nsec) as f64 / 1e9;
        assert!(after - before > own + 0.02, "the child's time: {before} {after} {own}");
        // This process as its own worker counts twice.
        assert!(ours_s(&[std::process::id()]).unwrap() > 1.5 * after);
        assert!(ours_s(&[u32::MAX]).is_none() && Watch::beside(vec![u32::MAX]).end().foreign.is_none());
    }

    #[test]
    fn a_watch_sees_what_its_probes_show() {
        let mut watch = Watch::begin();
        assert_eq!((watch.end().core_ghz, watch.end().running), (None, None));
        watch.ghz.extend([3.0, 4.0, 4.0, 4.0, 4.0]);
        let noise = watch.end();
        assert_eq!(noise.core_ghz, Some([3.0, 4.0, 4.0]));
        watch.running.extend([0.0, 3.0]);
        assert_eq!(watch.end().running, Some(1.5));
        watch.probe();
        assert_eq!(watch.running.len(), 3, "the kernel says what runs");
        assert!((noise.spread.unwrap() - (4.0 / 3.4 - 1.0)).abs() < 1e-9, "{noise:?}");
    }
}
