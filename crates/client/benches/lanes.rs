//! Sixteen processes that sign with RSA-2048 through one broker: what of the bare kernel's rate arrives.
//!
//! `cargo bench -p bywash-client --bench lanes`, with `-- 64` for 64 processes alone. The bar: at least 85 % of the rate at which the CPU engine computes full batches, per second of
//! processor time of the broker's process, both measured in one run. Where the machine has two processors the broker is on the first and the clients on the
//! second; then all on one. A third part shows threads of one process that go together in place.
//! A lone operation is compared with the engine's own, unmediated.

use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Config, Route, Session};
use bywash_core::{Algorithm, Engine, OwnedOperation, Result, Task};
use bywash_manager::calibrate::sample;
use bywash_manager::{Costs, Manager, ManagerConfig, Observation, here, probe};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROLE: &str = "BYWASH_BENCH_ROLE";
const CLIENTS: usize = 16;
const ALGORITHM: Algorithm = Algorithm::Rsa2048Private;
const LANES: usize = 8;
const SPAN: Duration = Duration::from_secs(3);

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor.min(std::thread::available_parallelism().map_or(1, usize::from) - 1));
    // Where it may not be pinned, the figures say so by being worse.
    let _ = sched_setaffinity(None, &set);
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// The rate of full batches straight on the engine, before something is done and after it: the machine's moods are longer than that.
fn around<T>(engine: &dyn Engine, done: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let before = bare(engine, LANES, SPAN / 6)?;
    let result = done()?;
    Ok((result, f64::midpoint(before, bare(engine, LANES, SPAN / 6)?)))
}

/// Operations per second of this thread's processor time, `count` at a time straight on the engine.
fn bare(engine: &dyn Engine, count: usize, span: Duration) -> Result<f64> {
    let (params, operation) = sample(ALGORITHM, 0)?;
    let keyed = engine.open(&params)?;
    let mut operations: Vec<OwnedOperation> = vec![operation; count];
    let (wall, begun, mut done) = (Instant::now(), seconds(ClockId::ThreadCPUTime), 0);
    while wall.elapsed() < span {
        let mut tasks: Vec<_> = operations.iter_mut().map(|operation| Task::new(&*keyed, operation.borrow())).collect();
        engine.run(&mut tasks);
        done += count;
        for task in tasks {
            task.outcome?;
        }
    }
    Ok(done as f64 / (seconds(ClockId::ThreadCPUTime) - begun))
}

fn open(socket: Option<&str>, route: Route) -> Result<(Session, OwnedOperation)> {
    let (params, operation) = sample(ALGORITHM, 0)?;
    Ok((Client::new(Config { socket: socket.map(Into::into), route, run: None, ..Config::default() }).session(params)?, operation))
}

/// Runs one operation after the other; nanoseconds of each.
fn sign(session: &Session, mut operation: OwnedOperation, until: Instant) -> Vec<u64> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        session.run(&mut operation.borrow()).expect("a signature");
        times.push(begun.elapsed().as_nanos() as u64);
    }
    times
}

/// A broker until its standard input ends; then it says how many operations and batches it had, and what processor time.
fn broker(path: &str) -> Result<()> {
    let manager = Manager::new(ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) })?;
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    manager.observe({
        let counts = counts.clone();
        Arc::new(move |seen: &Observation<'_>| {
            // All of one batch begin at one time.
            let [operations, batches, last] = &*counts;
            operations.fetch_add(1, Relaxed);
            batches.fetch_add(u64::from(last.swap(seen.start.0, Relaxed) != seen.start.0), Relaxed);
        })
    });
    let broker = Broker::bind(BrokerConfig::new(path.into(), manager))?;
    let handle = broker.handle();
    std::thread::spawn(move || {
        println!("ready");
        for line in std::io::stdin().lock().lines().map_while(core::result::Result::ok) {
            let [operations, batches, _] = &*counts;
            println!("{line} {} {} {}", operations.load(Relaxed), batches.load(Relaxed), seconds(ClockId::ProcessCPUTime));
        }
        handle.shutdown();
    });
    broker.run()
}

/// A client: says that it is ready, waits for a line, signs, prints its times.
fn client(path: &str) -> Result<()> {
    let (session, mut operation) = open(Some(path), Route::Queue)?;
    session.run(&mut operation.borrow())?;
    println!("ready");
    let _ = std::io::stdin().lock().read_line(&mut String::new());
    let times = sign(&session, operation, Instant::now() + SPAN);
    println!("{}", times.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    Ok(())
}

struct Other {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(role: &str, path: &Path, processor: usize) -> Self {
        let program = std::env::current_exe().expect("this program");
        let role = format!("{role}:{processor}:{}", path.display());
        let mut child =
            Command::new(program).env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a second process");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        let mut other = Self { child, lines };
        assert_eq!(other.line(), "ready");
        other
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"go\n").expect("it listens");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Operations, batches and processor time of a broker so far.
fn figures(broker: &mut Other) -> [f64; 3] {
    broker.tell();
    let line = broker.line();
    let mut words = line.split(' ').skip(1).map(|word| word.parse().expect("a number"));
    core::array::from_fn(|_| words.next().expect("three numbers"))
}

fn report(name: &str, mut times: Vec<u64>, cpu: f64, lanes: f64, kernel: f64) {
    times.sort_unstable();
    let quantile = |q: f64| times[((times.len() - 1) as f64 * q) as usize] as f64 / 1e3;
    let (count, per_cpu) = (times.len() as f64, times.len() as f64 / cpu);
    let share = 100.0 * per_cpu / kernel;
    println!(
        "{name:<34} {:>9.0} {per_cpu:>9.0} {share:>7.0}% {lanes:>6.2} {:>9.0} {:>9.0}",
        count / SPAN.as_secs_f64(),
        quantile(0.5),
        quantile(0.99)
    );
}

fn through_broker(name: &str, clients: usize, [processor, others]: [usize; 2], engine: &dyn Engine) -> Result<()> {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("socket");
    let mut broker = Other::start("broker", &path, processor);
    let mut all: Vec<_> = (0..clients).map(|_| Other::start("client", &path, others)).collect();
    let ((times, before, after), kernel) = around(engine, || {
        let before = figures(&mut broker);
        all.iter_mut().for_each(Other::tell);
        let mut times: Vec<u64> = Vec::new();
        for other in &mut all {
            times.extend(other.line().split(' ').map(|word| word.parse::<u64>().expect("a number")));
        }
        Ok((times, before, figures(&mut broker)))
    })?;
    let [operations, batches, cpu] = core::array::from_fn(|index| after[index] - before[index]);
    report(name, times, cpu, operations / batches, kernel);
    all.into_iter().for_each(Other::end);
    broker.end();
    Ok(())
}

/// Threads of this process in place, all on one processor: their whole processor time counts.
fn in_place(threads: usize, engine: &dyn Engine) -> Result<()> {
    let (session, operation) = open(None, Route::Here)?;
    let ((times, cpu), kernel) = around(engine, || {
        let (until, begun) = (Instant::now() + SPAN, seconds(ClockId::ProcessCPUTime));
        let times = std::thread::scope(|scope| {
            let start = || scope.spawn(|| sign(&session, operation.clone(), until));
            let threads: Vec<_> = (0..threads).map(|_| start()).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        Ok((times, seconds(ClockId::ProcessCPUTime) - begun))
    })?;
    report(&format!("{threads} threads in place"), times, cpu, f64::NAN, kernel);
    Ok(())
}

fn main() -> Result<()> {
    if let Ok(role) = std::env::var(ROLE) {
        let mut parts = role.splitn(3, ':');
        let [role, processor, path] = core::array::from_fn(|_| parts.next().unwrap_or_default());
        pin(processor.parse().unwrap_or(0));
        return if role == "broker" { broker(path) } else { client(path) };
    }
    pin(0);
    let engine = here();
    println!("{}; {ALGORITHM}, {} lanes", engine.describe(), engine.lanes(ALGORITHM));
    let single = bare(&*engine, 1, SPAN / 6)?;
    println!("one by one: {single:.0}/s, {:.0} us", 1e6 / single);
    println!("{:<34} {:>9} {:>9} {:>8} {:>6} {:>9} {:>9}", "", "per s", "per CPU s", "of bare", "lanes", "p50 us", "p99 us");
    let wanted: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    for &clients in if wanted.is_empty() { &[1, 4, CLIENTS, 4 * CLIENTS][..] } else { &wanted } {
        through_broker(&format!("{clients} processes, broker apart"), clients, [0, 1], &*engine)?;
        through_broker(&format!("{clients} processes, all on one"), clients, [0, 0], &*engine)?;
    }
    for threads in [1, 2, 4, CLIENTS, 4 * CLIENTS].into_iter().filter(|_| wanted.is_empty()) {
        in_place(threads, &*engine)?;
    }
    Ok(())
}
