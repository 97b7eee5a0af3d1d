//! What a call costs a statically linked program under the supervisor, beside the same operation by the engine called directly:
//! `cargo bench -p bywash-cryptodev-supervisor --bench overhead`.
//!
//! Both take turns; each figure is the median of rounds, each round the median of batches of 100 calls. Both compute AES-128-CBC with an IV. The processor time of a call is that of
//! program and supervisor together. They never work at once, so on a machine that does nothing else it is about what the call takes, and beside other programs it is what is left to compare.

use bywash_client::{Client, Clients, Config, Route};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_cryptodev_supervisor::{Supervision, support};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const ROUNDS: usize = 9;
const BATCHES: usize = 201;
const CALLS: usize = 100;
/// What a call of 16 bytes may cost above the engine, nanoseconds.
const BAR_NS: f64 = 6000.0;

fn here() -> Config {
    Config { route: Route::Here, ..Config::default() }
}

/// Nanoseconds of an operation by the engine, called directly.
fn direct(length: usize) -> f64 {
    let key = Key::Symmetric((&[7; 16]).into());
    let session =
        Client::new(here()).session(SessionParams::new(Algorithm::Aes128Cbc, key).expect("a key of 16 bytes")).expect("the engine has CBC");
    let (input, mut output) = (vec![1; length], vec![0; length]);
    let batch = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let data = Data::Copy { input: &input, output: &mut output };
            let mut operation = Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag: &mut [] };
            assert_eq!(session.run(&mut operation).expect("it encrypts"), length);
        }
        begin.elapsed().as_nanos() as f64 / CALLS as f64
    };
    median(std::iter::repeat_with(batch).take(BATCHES).collect())
}

/// Seconds of processor time that this process and its children that have ended have had.
fn processor_s() -> f64 {
    let of = |who| {
        // SAFETY: a struct of numbers, which the kernel fills.
        let usage: libc::rusage = unsafe {
            let mut usage = core::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        [usage.ru_utime, usage.ru_stime].iter().map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6).sum::<f64>()
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// Nanoseconds of a call by a program under the supervisor: as they pass, and of processor time.
fn supervised(program: &Path, length: usize) -> [f64; 2] {
    let before = processor_s();
    let mut command = Command::new(program);
    command.args(["bench", &length.to_string()]).stdout(Stdio::piped());
    let supervision = Supervision::prepare(&mut command).expect("a filter");
    let child = command.spawn().expect("the program starts");
    let supervisor = supervision.begin(Clients::new(here()).expect("descriptors"), None).expect("a supervisor");
    let output = child.wait_with_output().expect("the program ends");
    supervisor.wait();
    assert!(output.status.success());
    let processor_ns = (processor_s() - before) * 1e9 / (BATCHES * CALLS) as f64;
    [String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number of nanoseconds"), processor_ns]
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> ExitCode {
    if let Err(error) = support() {
        println!("skipped: {error}");
        return ExitCode::SUCCESS;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cryptodev-client-bench");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-static", "-pthread", "-I"]).arg(here.join("../abi/include")).arg(here.join("tests/client.c"));
    if !compiler.arg("-o").arg(&program).status().is_ok_and(|status| status.success()) {
        println!("skipped: no `cc -static`");
        return ExitCode::SUCCESS;
    }
    println!("{:>8} {:>12} {:>12} {:>12} {:>8} {:>14}", "bytes", "engine ns", "call ns", "above ns", "ratio", "processor ns");
    let mut worst_of_16 = 0.0;
    for length in [16, 256, 1024, 4096, 16384, 65536] {
        let rounds: Vec<(f64, [f64; 2])> = (0..ROUNDS).map(|_| (direct(length), supervised(&program, length))).collect();
        let engine = median(rounds.iter().map(|round| round.0).collect());
        let [call, processor] = [0, 1].map(|which| median(rounds.iter().map(|round| round.1[which]).collect()));
        let above = median(rounds.iter().map(|round| round.1[0] - round.0).collect());
        println!("{length:>8} {engine:>12.0} {call:>12.0} {above:>12.0} {:>8.2} {processor:>14.0}", call / engine);
        if length == 16 {
            worst_of_16 = above;
        }
    }
    println!("a call of 16 bytes costs {worst_of_16:.0} ns above the engine; the bar is {BAR_NS:.0}");
    ExitCode::SUCCESS
}
