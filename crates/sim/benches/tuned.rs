//! Whether the self-tuned policy comes near the best fixed setting, which nobody knows beforehand.
//!
//! `cargo bench -p bywash-sim --bench tuned [-- SEEDS [LOG]]`, 24 seeds unless told. For each kind of long trace: the total time of service of the self-tuned policy over that of
//! the best of all settings that it chooses from, each of them held to the end; the same for the worst setting, and for the default one. A web server's
//! log is served twenty times over, and seeds deal the ciphers to its clients anew.

use bywash_core::DeviceSheet;
use bywash_measure::statistics::quantile;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::{Tuned, settings};
use bywash_policy::reload::{Circuit, Circuits, Reload};
use bywash_sim::generate::{Reading, Rounding, Sizes, generate};
use bywash_sim::niwa2005::machine;
use bywash_sim::trace::Request;
use bywash_sim::{Machine, Trace, log, run};

/// How often a log is served over, to make a long trace of it.
const DAYS: usize = 20;
/// The bar: within 2 %.
const BAR: f64 = 1.02;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let seeds: u64 = arguments.next().map_or(24, |seeds| seeds.parse().unwrap_or_else(|_| panic!("'{seeds}' is no number of seeds")));
    let machine = machine();
    println!(
        "time of service over that of the best fixed setting, median of {seeds} seeds (10-90 %)\n{:<44} {:>22} {:>22} {:>22} {:>14}",
        "trace", "self-tuned", "default", "worst", "seeds <= 1.02"
    );
    for (kind, stretch_to, make) in kinds() {
        let ratios = (0..seeds).map(|seed| {
            let trace = make(seed);
            let stretch = stretch_to.map_or(0.0, |rate| trace.stretch_to(rate));
            ratios(&machine, &trace, stretch)
        });
        print(kind, ratios);
    }
    if let Some(path) = arguments.next() {
        let trace = read(&path);
        print("web log, 20 times, back to back", (0..seeds).map(|seed| ratios(&machine, &dealt(&trace, seed), 0.0)));
        print("web log, 20 times, at its own times", (0..seeds).map(|seed| ratios(&machine, &dealt(&trace, seed), 1.0)));
    }
}

type Kind = (&'static str, Option<f64>, fn(u64) -> Trace);

fn kinds() -> [Kind; 7] {
    [
        ("generator, back to back", None, |seed| generate(&Reading::default(), seed)),
        ("generator, 2000 requests/s", Some(2000.0), |seed| generate(&Reading::default(), seed)),
        ("generator, 500 requests/s", Some(500.0), |seed| generate(&Reading::default(), seed)),
        ("generator, 100 requests/s", Some(100.0), |seed| generate(&Reading::default(), seed)),
        ("every request another client's", None, one_by_one),
        ("phases of 50,000 requests, back to back", None, phases),
        ("phases of 50,000 requests, 500 requests/s", Some(500.0), phases),
    ]
}

/// Clients come one request at a time, some ciphers often and some seldom.
fn one_by_one(seed: u64) -> Trace {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trace = Trace::with_capacity(610_000);
    let order = shuffled(&mut random);
    for n in 0..610_000u32 {
        let circuit = Circuit(order[usize::from(random.u8(0..10).min(random.u8(0..10)))]);
        trace.push(Request { arrival: f64::from(n), circuit, bytes: random.u32(1..48_000) });
    }
    trace
}

/// What traffic is like changes twelve times: how long runs of a client are, how large requests.
fn phases(seed: u64) -> Trace {
    let best = Reading { requests: 50_000, ..Reading::default() };
    let like = [
        best,
        Reading { runs: Rounding::Up, sizes: Sizes::Exponential, ..best },
        Reading { mean_bytes: 4_000.0, ..best },
        Reading { mean_bytes: 100_000.0, ..best },
    ];
    let mut trace = Trace::with_capacity(600_000);
    let (mut begun, mut last) = (0.0, 0.0);
    for phase in 0..12 {
        let part = if phase % 3 == 2 {
            one_by_one(seed * 100 + phase).part(0..50_000)
        } else {
            generate(&like[phase as usize % 4], seed * 100 + phase)
        };
        for request in part.iter() {
            last = begun + request.arrival;
            trace.push(Request { arrival: last, ..request });
        }
        begun = last;
    }
    trace
}

fn shuffled(random: &mut fastrand::Rng) -> [u8; 10] {
    let mut order: [u8; 10] = std::array::from_fn(|n| n as u8);
    random.shuffle(&mut order);
    order
}

fn read(path: &str) -> Trace {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let sheet = DeviceSheet::shipped("niwa2005").expect("it comes along").expect("it is read");
    log::read(std::io::BufReader::new(file), path, &sheet).unwrap_or_else(|error| panic!("{error}")).trace
}

fn dealt(trace: &Trace, seed: u64) -> Trace {
    let order = shuffled(&mut fastrand::Rng::with_seed(seed));
    let mut dealt = Trace::with_capacity(trace.len() * DAYS);
    for day in 0..DAYS {
        let begun = day as f64 * trace.iter().last().map_or(0.0, |last| last.arrival);
        let again = |request: Request| Request {
            arrival: begun + request.arrival,
            circuit: Circuit(order[usize::from(request.circuit.0)]),
            ..request
        };
        trace.iter().map(again).for_each(|request| dealt.push(request));
    }
    dealt
}

/// The self-tuned policy's time, the default setting's and the worst one's over the best one's.
fn ratios(machine: &Machine, trace: &Trace, stretch: f64) -> [f64; 3] {
    let busy = |policy: &mut dyn Reload| run(machine, trace.iter(), stretch, Circuits::NONE, policy).busy_ns() as f64;
    let fixed = |setting| busy(&mut Saved::new(&machine.fit, machine.load_ns, setting));
    let all: Vec<f64> = settings().map(fixed).collect();
    let (best, worst) = all.iter().fold((f64::INFINITY, 0.0), |(best, worst), &time| (time.min(best), time.max(worst)));
    [busy(&mut Tuned::new(&machine.fit, machine.load_ns)), fixed(Setting::default()), worst].map(|time| time / best)
}

fn print(kind: &str, ratios: impl Iterator<Item = [f64; 3]>) {
    let ratios: Vec<[f64; 3]> = ratios.collect();
    print!("{kind:<44}");
    for column in 0..3 {
        let column: Vec<f64> = ratios.iter().map(|ratios| ratios[column]).collect();
        let [low, median, high] = [0.1, 0.5, 0.9].map(|q| quantile(&column, q));
        print!(" {:>22}", format!("{median:.4} ({low:.4}-{high:.4})"));
    }
    println!(" {:>14}", format!("{} of {}", ratios.iter().filter(|ratios| ratios[0] <= BAR).count(), ratios.len()));
}
