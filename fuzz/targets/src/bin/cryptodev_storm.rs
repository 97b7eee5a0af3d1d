//! Random requests to the dispatcher of `/dev/crypto`, as many as one likes:
//! `cargo run --release -p bywash-fuzz-targets --bin cryptodev_storm -- --calls 10000000 --threads 2 --seed 1`.
//!
//! It fails on a panic, on a session that is left, on a request that works for more than two seconds or is not done after a minute, and if the memory in use grows on and on.
//! It may run beside other work, `nice`d: what it computes for is told from what it waits for.
#![forbid(unsafe_code)]

use bywash_fuzz_targets::cryptodev::{Arena, World};
use bywash_fuzz_targets::runner::Random;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// More than any request works: the dearest is a power of 8192 bits.
const WORK: Duration = Duration::from_secs(2);
/// Longer than any request waits for the processor on a machine that does other things too.
const HANG: Duration = Duration::from_secs(60);
/// By how much the memory in use may grow from the first tenth to the end: what the allocator keeps.
const GROWTH_BYTES: u64 = 32 << 20;
const TENTHS: u64 = 10;

struct Options {
    calls: u64,
    threads: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let mut options = Options { calls: 100_000, threads: 2, seed: 1 };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        let value = pair.get(1).and_then(|text| text.parse().ok());
        match (pair[0].as_str(), value) {
            ("--calls", Some(value)) => options.calls = value,
            ("--threads", Some(value @ 1..)) => options.threads = value,
            ("--seed", Some(value)) => options.seed = value,
            (name, _) => {
                eprintln!("cryptodev_storm: '{name}': it takes --calls N, --threads N and --seed N");
                return ExitCode::from(2);
            }
        }
    }
    storm(&options)
}

fn storm(options: &Options) -> ExitCode {
    let Options { calls, threads, seed } = *options;
    let world = World::new();
    let (start, mut first, mut last, mut longest) = (Instant::now(), 0, 0, Longest::default());
    for tenth in 0..TENTHS {
        longest = longest.or(part(&world, calls / TENTHS / threads, threads, seed * 1000 + tenth * threads + 1));
        world.close();
        last = resident_bytes();
        if tenth == 0 {
            first = last;
        }
        println!("{} calls, {:.0} s, {} KiB in use", calls / TENTHS * (tenth + 1), start.elapsed().as_secs_f64(), last >> 10);
    }
    println!(
        "--seed {seed}: {calls} calls by {threads} threads, no panic, no session left, longest work {:?} ({}), longest wait {:?}, memory {} -> {} KiB",
        longest.work.0,
        longest.work.1,
        longest.wait,
        first >> 10,
        last >> 10
    );
    if longest.work.0 > WORK || longest.wait > HANG || last > first + GROWTH_BYTES {
        eprintln!("cryptodev_storm: a request took too long, or the memory in use grows");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The longest of some requests.
#[derive(Default)]
struct Longest {
    /// On the thread's own clock, and what it was.
    work: (Duration, &'static str),
    /// From beginning to end.
    wait: Duration,
}

impl Longest {
    fn or(self, other: Self) -> Self {
        Self { work: self.work.max(other.work), wait: self.wait.max(other.wait) }
    }
}

/// How long this thread has computed.
fn worked() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// So many calls by each thread.
fn part(world: &World, calls: u64, threads: u64, seed: u64) -> Longest {
    std::thread::scope(|scope| {
        let work = |thread| {
            move || {
                let (arena, mut random, mut longest) = (Arena::default(), Random::new(seed + thread), Longest::default());
                for _ in 0..calls {
                    let (start, began) = (Instant::now(), worked());
                    let name = world.step(&arena, &mut random).unwrap_or_default();
                    longest = longest.or(Longest { work: (worked() - began, name), wait: start.elapsed() });
                }
                longest
            }
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        threads.into_iter().map(join).fold(Longest::default(), Longest::or)
    })
}

/// What the system says that this process has in memory.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
