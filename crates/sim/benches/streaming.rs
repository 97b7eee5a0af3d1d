//! How fast and in how much memory long traces are simulated.
//!
//! `cargo bench -p bywash-sim --bench streaming [-- MILLIONS [HELD]]`: so many millions of requests, 200 unless told, made and served one by one; then HELD millions, 50 unless told,
//! held in memory and served. Traces of niwa2005's generator follow each other, of one seed after the other. Peak memory is the process's own as Linux counts it (`VmHWM`); time is the
//! thread's processor time.

use bywash_measure::turns::Clock;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Circuits, Reload};
use bywash_sim::generate::{Reading, endless, requests};
use bywash_sim::niwa2005::{Model, machine};
use bywash_sim::trace::Request;
use bywash_sim::{Machine, Report, Trace, run};
use std::fs::read_to_string;

/// Requests per second: some wait in software, few on circuits.
const RATE: f64 = 500.0;

fn main() {
    let mut millions = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let [streamed, held] = [millions.next().unwrap_or(200), millions.next().unwrap_or(50)].map(|millions| millions * 1_000_000);
    let (machine, reading) = (machine(), Reading::default());
    let seconds = requests(&reading, 0).last().expect("requests").0.arrival;
    let stretch = reading.requests as f64 / seconds / RATE;
    println!(
        "{:<10} {:>12} {:>8} {:>12} {:>10} {:>10} {:>10} {:>12}",
        "policy", "requests", "seconds", "million/s", "p50 ms", "p90 ms", "p99 ms", "peak MiB"
    );
    let started = peak();
    for (name, mut policy) in policies(&machine) {
        report(name, || run(&machine, endless(reading, 0).take(streamed), stretch, loaded(name), policy.as_mut()));
    }
    let streaming = peak();
    println!("streamed: {} MiB more than before, whatever the number of requests", mib(streaming - started));
    let mut trace = Trace::with_capacity(held);
    endless(reading, 0).take(held).for_each(|request: Request| trace.push(request));
    println!("\n{} million requests held in memory", held / 1_000_000);
    for (name, mut policy) in policies(&machine) {
        report(name, || run(&machine, trace.iter(), stretch, loaded(name), policy.as_mut()));
    }
    println!("held: {:.1} bytes a request", (peak() - streaming) as f64 / held as f64);
}

fn policies(machine: &Machine) -> [(&'static str, Box<dyn Reload>); 4] {
    let (fit, load_ns) = (&machine.fit, machine.load_ns);
    let fixed = || Box::new(bywash_policy::reload::fixed::Fixed);
    [
        (Model::Software.name(), fixed()),
        (Model::FixAll.name(), fixed()),
        ("saved", Box::new(Saved::new(fit, load_ns, Setting::default()))),
        ("tuned", Box::new(Tuned::new(fit, load_ns))),
    ]
}

fn loaded(name: &str) -> Circuits {
    if name == Model::FixAll.name() { Circuits::first(10) } else { Circuits::NONE }
}

fn report(name: &str, run: impl FnOnce() -> Report) {
    let begun = Clock::Cpu.now();
    let report = run();
    let seconds = (Clock::Cpu.now() - begun).as_secs_f64();
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| report.latency_ns(q) as f64 / 1e6);
    let speed = report.requests as f64 / seconds / 1e6;
    println!("{name:<10} {:>12} {seconds:>8.1} {speed:>12.1} {p50:>10.3} {p90:>10.3} {p99:>10.1} {:>12}", report.requests, mib(peak()));
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// The most memory that this process has had so far, in bytes.
fn peak() -> u64 {
    let status = read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
