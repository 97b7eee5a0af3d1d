//! The policies against niwa2005's and against the best that can be done, and how fast requests are simulated.
//!
//! `cargo bench -p bywash-sim --bench niwa2005 [-- SEEDS [LOG]]`, 24 seeds unless told; with a web server's log, policies on that too. Table 6 itself is printed by
//! `bywash reproduce niwa2005`; here it is only timed.

use bywash_core::DeviceSheet;
use bywash_measure::statistics::quantile;
use bywash_measure::turns::Clock;
use bywash_policy::reload::bigram::Matrix;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Circuits, Fit, Reload};
use bywash_sim::generate::{Reading, generate};
use bywash_sim::niwa2005::{Model, RATES, learn, learn_lessons, machine};
use bywash_sim::optimum::optimum;
use bywash_sim::{Machine, Report, Trace, log, parallel, run};
use std::time::Instant;

fn main() {
    let seeds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(24);
    let (machine, reading) = (machine(), Reading::default());
    let matrix = learn_lessons(&machine, &reading);
    let mut totals: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut tables = Vec::new();
    for seed in 0..seeds {
        let trace = generate(&reading, seed);
        tables.push(seconds_of_table_6(&machine, &trace, &matrix, seed));
        for (place, (what, ratio)) in busy_ratios(&machine, &trace, &matrix, seed).into_iter().enumerate() {
            if totals.len() == place {
                totals.push((what, Vec::new()));
            }
            totals[place].1.push(ratio);
        }
    }
    println!("total time of service, median over the seeds (10-90 %)");
    for (what, ratios) in &totals {
        let [low, median, high] = [0.1, 0.5, 0.9].map(|q| quantile(ratios, q));
        println!("{what:<44} {median:>6.3} ({low:.3}-{high:.3})");
    }
    if let Some(path) = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).nth(1) {
        on_a_log(&machine, &path);
    }
    let [least, median] = [0.0, 0.5].map(|q| quantile(&tables, q));
    let requests = (reading.requests * Model::ALL.len() * RATES.len()) as f64;
    println!(
        "\ntable 6: {median:.2} s of one processor, at the quietest {least:.2} s, which are {:.1} million requests a second",
        requests / least / 1e6
    );
}

/// Seconds of processor time for all models at all rates.
fn seconds_of_table_6(machine: &Machine, trace: &Trace, matrix: &Matrix, seed: u64) -> f64 {
    let begun = Clock::Cpu.now();
    for rate in RATES {
        for model in Model::ALL {
            std::hint::black_box(model.run(machine, trace, trace.stretch_to(rate), matrix, seed));
        }
    }
    (Clock::Cpu.now() - begun).as_secs_f64()
}

fn busy_ratios(machine: &Machine, trace: &Trace, matrix: &Matrix, seed: u64) -> Vec<(&'static str, f64)> {
    let model = |model: Model| model.run(machine, trace, 0.0, matrix, seed).busy_ns() as f64;
    let policy = |machine: &Machine, policy: &mut dyn Reload| run(machine, trace.iter(), 0.0, Circuits::NONE, policy).busy_ns() as f64;
    let (software, all, oracle) = (model(Model::Software), model(Model::FixAll), model(Model::Oracle));
    let load_ns = machine.load_ns;
    let four = Machine { fit: Fit::slots(10, 4), ..machine.clone() };
    let begun = Instant::now();
    let least = optimum(machine, trace.iter()).expect("few enough sets") as f64;
    let took = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let bound = bywash_sim::optimum::least(machine, trace.iter(), true).ns as f64;
    let bound_took = begun.elapsed().as_secs_f64();
    let tuned = || Tuned::new(&machine.fit, load_ns);
    let together = parallel::run(machine, trace.iter(), 0.0, Circuits::NONE, &mut tuned()).elapsed_ns as f64;
    let one_by_one = capacity(trace, |stretch| run(machine, trace.iter(), stretch, Circuits::NONE, &mut tuned()));
    let side_by_side = capacity(trace, |stretch| parallel::run(machine, trace.iter(), stretch, Circuits::NONE, &mut tuned()));
    vec![
        ("Software / Fix-All", software / all),
        ("Oracle / Fix-All", oracle / all),
        ("Nopredict / Oracle", model(Model::Nopredict) / oracle),
        ("Predict / Oracle", model(Model::Predict) / oracle),
        ("saved seconds / Oracle", policy(machine, &mut Saved::new(&machine.fit, load_ns, Setting::default())) / oracle),
        ("saved seconds, tuned / Oracle", policy(machine, &mut Tuned::new(&machine.fit, load_ns)) / oracle),
        ("the least possible / Oracle", least / oracle),
        ("saved seconds, tuned, 4 slots / Fix-All", policy(&four, &mut Tuned::new(&four.fit, load_ns)) / all),
        ("capacity side by side / serial (p90 < 50 ms)", side_by_side / one_by_one),
        ("seconds to find the least possible", took),
        ("side by side, saved seconds, tuned / the bound", together / bound),
        ("seconds to find the bound", bound_took),
    ]
}

/// The highest rate, in requests a second, at which nine requests of ten take less than 50 ms; to one part in 64.
fn capacity(trace: &Trace, mut serve: impl FnMut(f64) -> Report) -> f64 {
    let (mut rate, mut step) = (50.0, 64.0);
    for _ in 0..12 {
        if serve(trace.stretch_to(rate * step)).latency_ns(0.9) < 50_000_000 {
            rate *= step;
        } else {
            step = f64::sqrt(step);
        }
    }
    rate
}

/// The second half of a log, after Predict has learnt from the first; clients' ciphers as in the paper.
fn on_a_log(machine: &Machine, path: &str) {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let sheet = DeviceSheet::shipped("niwa2005").expect("it comes along").expect("it is read");
    let log = log::read(std::io::BufReader::new(file), path, &sheet).unwrap_or_else(|error| panic!("{error}"));
    let half = log.trace.len() / 2;
    let (first, second) = (log.trace.part(0..half), log.trace.part(half..log.trace.len()));
    let matrix = learn(machine, [&first]);
    println!(
        "\n{path}: {} requests of {} clients, {} lines unreadable; time of service of the second half / Fix-All",
        log.trace.len(),
        log.clients,
        log.missing.unreadable
    );
    let all = Model::FixAll.run(machine, &second, 0.0, &matrix, 0).busy_ns() as f64;
    for model in Model::ALL {
        println!("{:<44} {:>6.3}", model.name(), model.run(machine, &second, 0.0, &matrix, 0).busy_ns() as f64 / all);
    }
    let policy = |policy: &mut dyn Reload| run(machine, second.iter(), 0.0, Circuits::NONE, policy).busy_ns() as f64 / all;
    let load_ns = machine.load_ns;
    println!("{:<44} {:>6.3}", "saved seconds", policy(&mut Saved::new(&machine.fit, load_ns, Setting::default())));
    println!("{:<44} {:>6.3}", "saved seconds, tuned", policy(&mut Tuned::new(&machine.fit, load_ns)));
    let least = optimum(machine, second.iter()).expect("few enough sets") as f64 / all;
    println!("{:<44} {least:>6.3}", "the least possible");
}
