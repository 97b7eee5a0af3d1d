//! The kernels against the system's OpenSSL, on one core.
//!
//! `cargo bench -p bywash-ifma -- [NAME...]` prints one row for each operation whose name contains one of the names. The contenders of a
//! row take turns within each round, so that whatever else the machine does hits them alike; the time is the thread's CPU time; the
//! figure is the fastest round. Columns: operations/s of full batches; of batches with one operation, which take as long; of OpenSSL's
//! own function; the ratio of the first to the last; microseconds of one batch; from how many operations a batch beats OpenSSL; and how
//! much of the time the processor's multipliers alone would need, at the rate measured at the start.

mod curve25519;
mod elliptic;
mod limit;
mod openssl;
mod rsa;

use bywash_ifma::LANES;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 80;
/// Time of one contender in one round.
const TURN_NS: u64 = 3_000_000;

/// One operation, both ways.
pub(crate) struct Row {
    /// A batch of [`LANES`].
    pub(crate) batch: Box<dyn FnMut()>,
    /// A batch of one.
    pub(crate) lone: Box<dyn FnMut()>,
    /// One operation of OpenSSL.
    pub(crate) openssl: Box<dyn FnMut()>,
    /// How many multiply-and-add instructions the batch cannot do without.
    pub(crate) products: u64,
}

/// A row's name, and what makes it: keys are made only for rows that are wanted.
pub(crate) type Planned = (String, Box<dyn FnOnce(&'static openssl::OpenSsl) -> Row>);

/// CPU time of this thread in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of one run, over a turn. Reading the clock is a system call: many runs between two readings.
pub(crate) fn turn(runs: u64, work: &mut dyn FnMut()) -> f64 {
    let start = now();
    for _ in 0..runs {
        work();
    }
    (now() - start) as f64 / runs as f64
}

/// The fastest turns of some contenders.
pub(crate) fn fastest<const N: usize>(contenders: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut contenders = contenders.map(|work| (((TURN_NS as f64 / turn(1, work)) as u64).max(1), work));
    let mut best = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for (best, (runs, work)) in best.iter_mut().zip(&mut contenders) {
            *best = best.min(turn(*runs, work));
        }
    }
    best
}

fn main() {
    if !bywash_ifma::is_supported() {
        return println!("skipped: this processor has no AVX-512 IFMA");
    }
    // cargo itself passes --bench.
    let names: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let openssl = openssl::OpenSsl::load();
    println!("{}", openssl.version());
    let processor = limit::Processor::measure();
    println!("{processor}\n");
    println!("operation                 batch/s     lone/s  OpenSSL/s  ratio   batch us   even  limit");
    let rows = rsa::rows().into_iter().chain(elliptic::rows()).chain(curve25519::rows());
    for (name, make) in rows.filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str()))) {
        let mut row = make(openssl);
        let [batch, lone, theirs] = fastest([&mut row.batch, &mut row.lone, &mut row.openssl]);
        let [batches, lones, theirs_s] = [batch / LANES as f64, lone, theirs].map(|ns| 1e9 / ns);
        let (ratio, even) = (batches / theirs_s, (batch / theirs).ceil());
        let limit = 100.0 * row.products as f64 * processor.apart / batch;
        println!("{name:<22} {batches:>10.0} {lones:>10.0} {theirs_s:>10.0} {ratio:>6.2} {:>10.1} {even:>6} {limit:>4.0} %", batch / 1e3);
    }
}
