//! The measurement: two classes of secrets, their times, and whether they differ. The timing benches of other kernels use it too.

#[path = "controls.rs"]
mod controls;
#[path = "statistics.rs"]
mod statistics;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Above: the classes differ, beyond doubt.
const CERTAIN: f64 = 10.0;
/// Below: no difference was found.
const NOTHING: f64 = 4.5;
/// Seconds for which one subject is measured, unless said otherwise.
const SECONDS: u64 = 10;

/// What is measured.
pub(crate) trait Subject {
    /// Makes secrets ready, the same bytes at the same addresses whatever the class. Does the same work for both.
    fn prepare(&mut self, fixed: bool, random: &mut Random);
    /// Uses them: the measured part.
    fn run(&mut self);
}

/// A subject's name, whether it leaks on purpose, and what makes it.
pub(crate) struct Planned {
    pub(crate) name: &'static str,
    pub(crate) leaks: bool,
    pub(crate) make: fn() -> Box<dyn Subject>,
}

/// Numbers that are the same in every run.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// `secret` becomes `bytes` where `fixed` is set, else random. The same instructions and the same numbers drawn either way: a branch here would
    /// leave the predictor in two states, and the measured part, which starts with it, some cycles apart.
    pub(crate) fn fill(&mut self, secret: &mut [u8], fixed: bool, bytes: &[u8]) {
        assert_eq!(secret.len(), bytes.len());
        let mask = black_box(0u8.wrapping_sub(u8::from(fixed)));
        for (secret, byte) in secret.iter_mut().zip(bytes) {
            *secret = (self.0.u8(..) & !mask) | (byte & mask);
        }
    }
}

/// Cycles of the reference clock that the work takes.
fn cycles(work: impl FnOnce()) -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions.
    let now = || unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    };
    let start = now();
    work();
    now() - start
}

/// The times of both classes, until the time is up.
fn measure(subject: &mut dyn Subject, time: Duration) -> [Vec<u64>; 2] {
    let mut random = Random::new(1);
    let mut times = [vec![], vec![]];
    let end = Instant::now() + time;
    while Instant::now() < end {
        let class = (random.word() & 1) as usize;
        subject.prepare(class == 0, &mut random);
        times[class].push(cycles(|| subject.run()));
    }
    times
}

/// Measures the controls and those subjects whose names contain one of the arguments; says for each what was found.
pub(crate) fn run(subjects: impl IntoIterator<Item = Planned>) -> ExitCode {
    // cargo itself passes --bench.
    let (options, names): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let seconds = options.iter().find_map(|option| option.strip_prefix("--seconds="));
    let time = Duration::from_secs(seconds.map_or(SECONDS, |seconds| seconds.parse().expect("--seconds= takes a whole number")));
    println!("operation                runs      |t|  verdict");
    let mut good = true;
    for Planned { name, leaks, make } in controls::subjects().into_iter().chain(subjects) {
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        let times = measure(&mut *make(), time);
        let t = statistics::largest_t(&times);
        let verdict = match t {
            t if t >= CERTAIN => "depends on the secret",
            t if t >= NOTHING => "perhaps: measure longer",
            _ => "no dependence found",
        };
        let as_wanted = leaks == (t >= CERTAIN);
        good &= as_wanted;
        let remark = if as_wanted { "" } else { "  <-- NOT AS IT SHOULD BE" };
        println!("{name:<22} {:>6} {t:>8.1}  {verdict}{remark}", times[0].len() + times[1].len());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
