//! What attackers cost an honest client: its round trip (AES-256-CTR of 64 bytes) with and without each of them beside it.
//!
//! `cargo bench -p bywash-broker --bench hostile [-- ROW]`. The bar: p99 at most doubled by sharing the broker with the attacker.
//!
//! Broker, honest client and attacker are processes of their own, all held to the same two processors; as root, the attacker is another
//! user. An attacker also takes processor time, as any program may, and no broker can give that back. So each attack is measured twice in
//! each round: on the honest client's own broker, and, as *elsewhere*, the same attack on another broker on the same processors; the bar holds for the
//! ratio of the two. Rows are measured in turn, several rounds of all; a figure is the median of the rounds. A row counts only if the attack was
//! seen to do what it says.

#[path = "../tests/support/mod.rs"]
mod support;

mod attacks;

use bywash_broker::{Broker, BrokerConfig, Stats};
use bywash_protocol::{Role, StatsFormat, VERSION};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use support::{LONG, Raw, SPIN, ctr, ctr_operation};

const VARIABLE: &str = "BYWASH_BENCH_PROCESS";
const ROUNDS: usize = 5;
const REQUESTS: usize = 20_000;
/// The attack's head start, so that quotas are used up and rings full when the measurement begins.
const HEAD_START: Duration = Duration::from_millis(500);
/// `nobody`, as whom attackers run if this is root.
const STRANGER: u32 = 65534;

/// One row: its name, how many processes, and what must be seen at the broker to believe it, as a difference of two pictures.
struct Row {
    name: &'static str,
    processes: usize,
    seen: fn(&Stats, &Stats) -> (bool, String),
}

const ROWS: [Row; 9] = [
    Row { name: "nobody", processes: 0, seen: |_, _| (true, String::new()) },
    Row { name: "session flood", processes: 1, seen: |a, b| quota(a, b, "sessions_per_client_max") },
    Row { name: "message flood", processes: 1, seen: |a, b| quota(a, b, "control_rate_max") },
    Row { name: "slots full, unread", processes: 1, seen: full_slots },
    Row { name: "slots kept full", processes: 1, seen: served },
    Row { name: "heavy requests", processes: 1, seen: heavy },
    Row { name: "ring corruption", processes: 1, seen: corruption },
    Row { name: "connection flood", processes: 1, seen: |a, b| quota(a, b, "connect_rate_max") },
    Row { name: "never says Hello", processes: 1, seen: |a, b| quota(a, b, "clients_per_uid_max") },
];

fn quota(before: &Stats, after: &Stats, setting: &str) -> (bool, String) {
    let hits = after.quotas_hit[setting] - before.quotas_hit[setting];
    (hits > 0, format!("{setting} refused {hits} times"))
}

fn full_slots(_: &Stats, after: &Stats) -> (bool, String) {
    let done: u64 = strangers(after).map(|client| client.work.iter().map(|work| work.operations).sum::<u64>()).sum();
    (done == 256, format!("{done} answers left unread in 256 slots"))
}

fn served(_: &Stats, after: &Stats) -> (bool, String) {
    let done: u64 = strangers(after).map(|client| client.work.iter().map(|work| work.operations).sum::<u64>()).sum();
    (done > 10_000, format!("{done} requests of the attacker served"))
}

fn heavy(_: &Stats, after: &Stats) -> (bool, String) {
    let bytes: u64 = strangers(after).map(|client| client.work.iter().map(|work| work.bytes).sum::<u64>()).sum();
    (bytes > 10 << 20, format!("{} MiB of the attacker digested", bytes >> 20))
}

fn corruption(before: &Stats, after: &Stats) -> (bool, String) {
    let (thrown, turned) = (after.corrupt - before.corrupt, after.denied - before.denied);
    (thrown > 0, format!("thrown out {thrown} times, turned away {turned}"))
}

/// Clients other than the honest one and the observer.
fn strangers(stats: &Stats) -> impl Iterator<Item = &bywash_broker::ClientStats> {
    stats.clients.iter().filter(|client| client.run.as_deref() == Some("attack"))
}

/// Holds this process and all that it starts to two processors.
fn pin() -> usize {
    let allowed = sched_getaffinity(None).expect("the processors allowed");
    let mut chosen = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).take(2).for_each(|cpu| chosen.set(cpu));
    sched_setaffinity(None, &chosen).expect("fewer processors");
    chosen.count() as usize
}

fn start(role: &str, path: &Path, stranger: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(VARIABLE, format!("{role}:{}", path.display())).stdin(Stdio::piped()).stdout(Stdio::piped());
    if stranger && rustix::process::geteuid().is_root() {
        command.uid(STRANGER).gid(STRANGER);
    }
    let mut child = command.spawn().expect("another process");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n", "{role} did not start");
    child
}

/// Ends with its standard input.
fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().expect("its end");
}

/// The broker's process.
fn broker(path: &Path) {
    let mut config = BrokerConfig::new(path.into(), support::manager());
    config.allowed_uids = vec![STRANGER];
    let broker = Broker::bind(config).expect("a broker");
    let handle = broker.handle();
    ready();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().count();
        handle.shutdown();
    });
    broker.run().expect("a clean end");
}

fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("an open output");
}

/// Median and 99th percentile in microseconds.
fn honest(client: &Raw, session: u32) -> (f64, f64) {
    let round = || {
        let begun = Instant::now();
        let mut text = [0; 64];
        let ticket = client.begin(session, &ctr_operation(&mut text));
        let outcome = ticket.wait(SPIN, LONG).expect("an answer");
        ticket.finish(outcome, &mut ctr_operation(&mut text));
        begun.elapsed().as_nanos() as f64 / 1e3
    };
    for _ in 0..REQUESTS / 10 {
        round();
    }
    let mut times: Vec<f64> = (0..REQUESTS).map(|_| round()).collect();
    times.sort_unstable_by(f64::total_cmp);
    (times[REQUESTS / 2], times[REQUESTS * 99 / 100])
}

fn picture(observer: &mut Raw) -> Stats {
    serde_json::from_str(&observer.stats(StatsFormat::Json)).expect("statistics")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    if let Some(value) = std::env::var_os(VARIABLE) {
        let value = value.into_string().expect("text");
        let (role, path) = value.split_once(':').expect("role:path");
        match role {
            "broker" => broker(Path::new(path)),
            attack => attacks::run(attack, Path::new(path), ready),
        }
        return ExitCode::SUCCESS;
    }
    let processors = pin();
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a folder for all");
    // The first row is what all others are held against.
    let wanted = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).unwrap_or_default();
    let is_wanted = |index: usize| index == 0 || ROWS[index].name.contains(&wanted);
    let mut figures: Vec<Vec<Round>> = ROWS.iter().map(|_| Vec::new()).collect();
    let mut seen: Vec<(bool, String)> = ROWS.iter().map(|_| (true, String::new())).collect();
    println!("{ROUNDS} rounds of {REQUESTS} requests; brokers, honest client and attacker share {processors} processors");
    for _ in 0..ROUNDS {
        for (index, row) in ROWS.iter().enumerate().filter(|(index, _)| is_wanted(*index)) {
            let (here, did, what) = beside(row, directory.path(), false);
            let (elsewhere, did_there, _) = beside(row, directory.path(), true);
            figures[index].push(Round { p50: here.0, p99: here.1, elsewhere_p99: elsewhere.1 });
            seen[index] = (seen[index].0 && did && did_there, what);
        }
    }
    report(&figures, &seen)
}

/// One row in one round, in microseconds.
struct Round {
    p50: f64,
    p99: f64,
    elsewhere_p99: f64,
}

/// The honest client's median and 99th percentile beside an attack on its own broker, or on another; and what the attacked broker saw.
fn beside(row: &Row, directory: &Path, elsewhere: bool) -> ((f64, f64), bool, String) {
    // Brokers of its own for each row, so that no attack's quotas or back-off reach into the next.
    let [own, other] = ["own.sock", "other.sock"].map(|name| directory.join(name));
    let brokers = [&own, &other].map(|path| start("broker", path, false));
    let attacked = if elsewhere { &other } else { &own };
    let mut observer = Raw::connect_as(attacked, VERSION, Role::Observe, None).expect("a connection");
    let client = Raw::connect(&own).map(|mut client| (client.open(&ctr()).expect("a session"), client)).expect("a connection");
    let before = picture(&mut observer);
    let attackers: Vec<Child> = (0..row.processes).map(|_| start(row.name, attacked, true)).collect();
    std::thread::sleep(HEAD_START);
    let figures = honest(&client.1, client.0);
    let (did, what) = (row.seen)(&before, &picture(&mut observer));
    attackers.into_iter().for_each(end);
    drop((client, observer));
    brokers.into_iter().for_each(end);
    (figures, did, what)
}

fn report(figures: &[Vec<Round>], seen: &[(bool, String)]) -> ExitCode {
    let of = |index: usize, part: fn(&Round) -> f64| median(figures[index].iter().map(part).collect());
    let alone = of(0, |round| round.p99);
    println!(
        "{:<20} {:>9} {:>9} {:>17} {:>11} {:>9}  what the broker saw in the last round",
        "beside", "p50 us", "p99 us", "elsewhere: p99 us", "x elsewhere", "x nobody"
    );
    for (index, row) in ROWS.iter().enumerate().filter(|(index, _)| !figures[*index].is_empty()) {
        let (p50, p99, elsewhere) = (of(index, |round| round.p50), of(index, |round| round.p99), of(index, |round| round.elsewhere_p99));
        let (against, over) = (p99 / elsewhere, p99 / alone);
        println!("{:<20} {p50:>9.2} {p99:>9.2} {elsewhere:>17.2} {against:>11.2} {over:>9.2}  {}", row.name, seen[index].1);
    }
    let idle: Vec<_> = ROWS.iter().zip(seen).filter(|(_, seen)| !seen.0).map(|(row, _)| row.name).collect();
    if idle.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("these attacks did not do what their rows say: {}", idle.join(", "));
    ExitCode::FAILURE
}
