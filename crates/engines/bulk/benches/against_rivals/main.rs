//! The kernels against others, on one core.
//!
//! `cargo bench -p bywash-bulk -- [NAME...] [BYTES...]` prints a table for each mode whose name contains one of the names: GB/s of one message after another in
//! place, by size. The contenders of a size take turns within each round, so that whatever else the machine does hits them alike; the time is the
//! thread's CPU time. A figure is the fastest round; `to best` is the least of the medians over the rounds of each rival's time to ours; `limit` is
//! the share of the rate at which the processor enciphers if it does nothing else, measured at the start of each size.

mod ipsec;
mod ours;
mod rivals;

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const SIZES: [usize; 8] = [16, 64, 256, 1024, 4096, 16_384, 65_536, 1 << 20];
/// Messages side by side.
pub(crate) const STREAMS: usize = 16;
const ROUNDS: usize = 60;
/// Time of one contender in one round.
const TURN_NS: f64 = 400_000.0;

/// What enciphers a message in place, again and again.
pub(crate) type Work = Box<dyn FnMut(&mut [u8])>;

/// A mode of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Gcm,
    GcmSiv,
    Ccm,
    Ctr,
    Xts,
    Ecb,
    /// Decryption; encryption is a chain, and as fast everywhere.
    CbcDecrypt,
    /// Encryption of sixteen messages: by us side by side.
    CbcStreams,
    ChaCha20Poly1305,
    Aegis128L,
    Aegis128X4,
    Aegis256,
}

impl Mode {
    /// Messages of one run.
    fn messages(self) -> usize {
        if self == Self::CbcStreams { STREAMS } else { 1 }
    }

    /// Rounds of AES that 16 bytes take, with a key of so many bytes.
    fn rounds(self, key: usize) -> Option<usize> {
        match self {
            Self::ChaCha20Poly1305 => None,
            Self::Aegis128L | Self::Aegis128X4 => Some(4),
            Self::Aegis256 => Some(6),
            _ => Some(key / 4 + 6),
        }
    }

    /// Whether it makes a tag.
    fn is_aead(self) -> bool {
        matches!(self, Self::Gcm | Self::GcmSiv | Self::Ccm | Self::ChaCha20Poly1305 | Self::Aegis128L | Self::Aegis128X4 | Self::Aegis256)
    }

    /// With a key of so many bits.
    fn name(self, bits: usize) -> String {
        match self {
            Self::ChaCha20Poly1305 => "chacha20-poly1305".into(),
            Self::Aegis128L | Self::Aegis128X4 | Self::Aegis256 => format!("{self:?}").to_lowercase(),
            _ => format!("aes-{bits}-{self:?}").to_lowercase(),
        }
    }
}

/// CPU time of this thread in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of one run, over a turn. Reading the clock is a system call: many runs between two readings.
fn turn(runs: u64, buffer: &mut [u8], work: &mut Work) -> f64 {
    let start = now();
    for _ in 0..runs {
        work(buffer);
    }
    (now() - start) as f64 / runs as f64
}

/// Asserts that all contenders make the same of a message. Sixteen messages side by side are each contender's own.
fn compare(mode: Mode, contenders: &mut [(&'static str, Work)]) {
    if mode.messages() > 1 {
        return;
    }
    let mut results = contenders.iter_mut().map(|(name, work)| {
        let mut buffer: Vec<u8> = (0..5008).map(|i| i as u8).collect();
        work(&mut buffer);
        (*name, buffer)
    });
    let (_, ours) = results.next().expect("ours");
    results.for_each(|(name, theirs)| assert!(ours == theirs, "{mode:?}: {name} computes something else"));
}

/// Times of each contender by round.
fn rounds(size: usize, contenders: &mut [(&'static str, Work)]) -> Vec<Vec<f64>> {
    let mut buffer = vec![0x5A; size];
    let runs: Vec<u64> = contenders.iter_mut().map(|(_, work)| (TURN_NS / turn(100, &mut buffer, work)) as u64 + 1).collect();
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for ((times, runs), (_, work)) in times.iter_mut().zip(&runs).zip(contenders.iter_mut()) {
            times.push(turn(*runs, &mut buffer, work));
        }
    }
    times
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The medians over the rounds of each other's time to the first's; the smallest of them.
fn to_best(times: &[Vec<f64>]) -> f64 {
    let median = |theirs: &Vec<f64>| {
        let mut ratios: Vec<f64> = theirs.iter().zip(&times[0]).map(|(theirs, ours)| theirs / ours).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ROUNDS / 2]
    };
    times[1..].iter().map(median).fold(f64::INFINITY, f64::min)
}

fn table(mode: Mode, key: &[u8], sizes: &[usize]) {
    let whole: Vec<u8> = if mode == Mode::Xts { (0..2 * key.len() as u8).collect() } else { key.to_vec() };
    let (bits, rounds_of_aes, key) = (8 * key.len(), mode.rounds(key.len()), &whole[..]);
    let mut contenders = vec![("ours", ours::of(mode, key))];
    contenders.extend(rivals::of(mode, key));
    compare(mode, &mut contenders);
    println!("\n{}: a key is ready in {:.0} ns", mode.name(bits), ours::key_ns(mode, key));
    print!("{:>8}", "bytes");
    contenders.iter().for_each(|(name, _)| print!("{name:>12}"));
    println!("{:>10}{:>8}", "to best", "limit");
    for &size in sizes {
        let limit = bywash_bulk::limit::round_bytes_per_ns(|| Duration::from_nanos(now())).unwrap_or(f64::NAN);
        let times = rounds(size, &mut contenders);
        let bytes = (size * mode.messages()) as f64;
        print!("{size:>8}");
        times.iter().for_each(|times| print!("{:>12.2}", bytes / fastest(times)));
        print!("{:>10.2}", to_best(&times));
        match rounds_of_aes {
            None => println!("{:>8}", "-"),
            Some(rounds) => println!("{:>6.0} %", 100.0 * bytes / fastest(&times[0]) / limit * rounds as f64),
        }
    }
}

fn main() {
    if !bywash_bulk::is_supported() {
        return println!("skipped: this processor has no VAES with AVX-512");
    }
    // cargo itself passes --bench.
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (sizes, names): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument.parse::<usize>().is_ok());
    let sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    println!("{}", rivals::versions());
    let of_aes = [Mode::Gcm, Mode::GcmSiv, Mode::Ccm, Mode::Ctr, Mode::Xts, Mode::Ecb, Mode::CbcDecrypt, Mode::CbcStreams];
    let all = of_aes.into_iter().flat_map(|mode| [(mode, 16), (mode, 32)]).chain([
        (Mode::ChaCha20Poly1305, 32),
        (Mode::Aegis128L, 16),
        (Mode::Aegis128X4, 16),
        (Mode::Aegis256, 32),
    ]);
    for (mode, len) in all {
        let name = mode.name(8 * len);
        if names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str())) {
            table(mode, &vec![0x42; len], &sizes);
        }
    }
}
