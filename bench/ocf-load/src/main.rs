//! One process of ohgama2008 s5.2: opens a session, has 3DES-CBC computed by the module again and again, closes it, and says how long it waited.
//!
//! What decides between processes is at the broker, so each of them is a process of its own; `bywash reproduce ohgama2008 --part live` starts them all
//! at one moment. Every ciphertext is compared with what this process's own processor computes for it.
//!
//! It asks a broker itself, or, as the paper's programs do, `/dev/crypto` (`--device`), under `bywash run --devcrypto` or `--static`.
#![forbid(unsafe_code)]

use bywash_client::{Client, Config, Route, Session};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, Result, SessionParams};
use bywash_cryptodev_abi::linux::CRYPTO_3DES_CBC;
use bywash_cryptodev_probe::kernel::Kernel;
use bywash_cryptodev_probe::program::Cipher;
use clap::Parser;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const ALGORITHM: Algorithm = Algorithm::TripleDesCbc;
const KEY: [u8; 24] = *b"three keys of 8 bytes!!!";
const IV: [u8; 8] = [7; 8];

/// Has 3DES-CBC computed by a broker's module and says how long each operation took.
#[derive(Debug, Parser)]
#[command(
    name = "ocf-load",
    after_help = "Examples:\n  ocf-load --socket /run/bywash/broker.sock --operations 100\n  \
    bywash run --route queue --devcrypto -- ocf-load --device --operations 100"
)]
struct Args {
    /// The broker's socket
    #[arg(long, value_name = "PATH", required_unless_present = "device")]
    socket: Option<PathBuf>,
    /// Ask /dev/crypto instead
    #[arg(long, conflicts_with = "socket")]
    device: bool,
    /// How many operations; without it, until --seconds have passed
    #[arg(long, value_name = "N", required_unless_present = "seconds")]
    operations: Option<u64>,
    /// When to stop, after the beginning
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Bytes of an operation
    #[arg(long, value_name = "B", default_value_t = 1024)]
    bytes: usize,
    /// Ask at random (exponentially distributed) intervals of so many microseconds on average, instead of at once
    #[arg(long, value_name = "US")]
    every_us: Option<f64>,
    /// Begin at this time of the monotonic clock, in nanoseconds
    #[arg(long, value_name = "NS")]
    begin: Option<u64>,
    /// Of the intervals
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ocf-load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Who is asked.
enum Way {
    Broker(Client),
    Device(Kernel),
}

/// A session there.
enum Open<'a> {
    Broker(Session),
    Device(Cipher<'a>),
}

impl Way {
    fn of(args: &Args) -> Self {
        match args.device {
            true => Self::Device(Kernel::default()),
            false => Self::Broker(Client::new(Config { socket: args.socket.clone(), route: Route::Queue, ..Config::default() })),
        }
    }

    fn open(&self) -> Result<Open<'_>> {
        let refused = |what: String| Error::Unavailable { what: format!("{what}; is this `bywash run --devcrypto` or `--static`?") };
        match self {
            Self::Broker(client) => Ok(Open::Broker(client.session(params()?)?)),
            Self::Device(kernel) => Ok(Open::Device(Cipher::open(kernel, CRYPTO_3DES_CBC, &KEY).map_err(refused)?)),
        }
    }

    /// How many operations this process had to compute itself; of the device's nobody but its broker knows.
    fn elsewhere(&self) -> u64 {
        match self {
            Self::Broker(client) => {
                let stats = client.stats();
                stats.reruns + stats.overflows
            }
            Self::Device(_) => 0,
        }
    }
}

impl Open<'_> {
    fn encrypt(&self, bytes: usize) -> Result<Vec<u8>> {
        match self {
            Self::Broker(session) => encrypt(session, bytes),
            Self::Device(cipher) => cipher.encrypt(&IV, &vec![0x5a; bytes]).map_err(|what| Error::Unavailable { what }),
        }
    }
}

fn run(args: &Args) -> Result<serde_json::Value> {
    let way = Way::of(args);
    let expected = expected(args.bytes)?;
    // The connection is made before the clock runs; the session that counts comes to the broker with its first operation.
    drop(way.open()?);
    let begin = args.begin.unwrap_or_else(now);
    sleep_until(begin);
    let begun_late_us = us(begin, now());
    let session = way.open()?;
    let (mut took, mut asked_us, mut called_us) = (Vec::new(), Vec::new(), Vec::new());
    let (mut wrong, mut first_us, mut random) = (0, None, Random(args.seed.max(1)));
    let mut due = begin;
    let stop = args.seconds.map_or(u64::MAX, |seconds| begin + (seconds * 1e9) as u64);
    while (took.len() as u64) < args.operations.unwrap_or(u64::MAX) {
        let asked = match args.every_us {
            Some(mean) => {
                due += (random.exponential() * mean * 1e3) as u64;
                sleep_until(due.min(stop));
                due
            }
            None => now(),
        };
        if now() >= stop {
            break;
        }
        let called = now();
        let output = session.encrypt(args.bytes)?;
        let done = now();
        asked_us.push(us(begin, asked));
        called_us.push(us(begin, called));
        wrong += u64::from(output != expected);
        first_us.get_or_insert_with(|| us(begin, done));
        took.push(us(asked, done));
    }
    drop(session);
    let end_us = us(begin, now());
    Ok(serde_json::json!({
        "operations": took.len(), "wrong": wrong, "elsewhere": way.elsewhere(), "begun_late_us": begun_late_us,
        "first_us": first_us, "end_us": end_us, "took_us": took, "asked_us": asked_us, "called_us": called_us,
    }))
}

fn params() -> Result<SessionParams> {
    SessionParams::new(ALGORITHM, Key::Symmetric((&KEY[..]).into()))
}

/// What the ciphertext has to be, by this process's own processor.
fn expected(bytes: usize) -> Result<Vec<u8>> {
    let here = Client::new(Config { socket: None, route: Route::Here, ..Config::default() });
    encrypt(&here.session(params()?)?, bytes)
}

fn encrypt(session: &Session, bytes: usize) -> Result<Vec<u8>> {
    let (input, mut output) = (vec![0x5a; bytes], vec![0; bytes]);
    let data = Data::Copy { input: &input, output: &mut output };
    session.run(&mut Operation { direction: Direction::Encrypt, iv: &IV, aad: &[], data, tag: &mut [] })?;
    Ok(output)
}

/// The monotonic clock, in nanoseconds: the same for all processes.
fn now() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

fn us(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e3
}

fn sleep_until(time: u64) {
    // A program that wants to be on time says so; should that not be granted, it is 50 us late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    while let Some(left) = time.checked_sub(now()).filter(|&left| left > 0) {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// Xorshift (Marsaglia 2003): good enough for intervals.
struct Random(u64);

impl Random {
    fn exponential(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let unit = ((self.0 >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        -unit.ln()
    }
}
