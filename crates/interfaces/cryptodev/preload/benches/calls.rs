//! What the way through `/dev/crypto` costs: AES-128-CBC by `ioctl` under the preload library beside the CPU engine called directly, in one process, in turns.
//!
//! `cargo bench -p bywash-cryptodev-preload --bench calls`. The bars: at 16 bytes at most 0.5 us above the engine, at 64 KiB at least 0.9 times as fast. Both write to
//! another buffer than they read from. Processor time, so that other load does not count.

use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_cryptodev_abi::linux::{CIOCCRYPT, CIOCGSESSION, CryptOp, SessionOp};
use bywash_manager::here;
use bywash_measure::statistics::{median, ratio};
use bywash_measure::turns::{Call, Clock, Contender, Effort, take_turns};
use std::ffi::c_ulong;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

const KEY: [u8; 16] = [7; 16];
const IV: [u8; 16] = [9; 16];
const SIZES: [usize; 5] = [16, 256, 1024, 8192, 65536];
const AES_CBC: u32 = 11;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Starts itself anew with the library in front.
fn under_preload() -> Failure {
    let test = std::env::current_exe().expect("this benchmark");
    let library = test.with_file_name("libbywash_cryptodev_preload.so");
    let mut again = Command::new(&test);
    again.args(std::env::args_os().skip(1)).env("LD_PRELOAD", library).env("BYWASH_SOCKET", "none").env("BYWASH_ROUTE", "here");
    again.exec().into()
}

/// As in a program of C: Rust's standard library handles these to tell of stack overflows, and then the slower way to the program's memory is taken.
fn handle_no_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: gives a signal its default action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn ioctl<T>(fd: i32, request: u32, argument: &mut T) -> Result<(), Failure> {
    // SAFETY: the struct that the request takes.
    let answer = unsafe { libc::ioctl(fd, c_ulong::from(request), std::ptr::from_mut(argument)) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

fn by_ioctl(fd: i32, session: u32, size: usize) -> Call<'static, Failure> {
    let (text, mut out) = (vec![5_u8; size], vec![0_u8; size]);
    Box::new(move || {
        let (src, dst, iv) = (text.as_ptr() as u64, out.as_mut_ptr() as u64, IV.as_ptr() as u64);
        ioctl(fd, CIOCCRYPT, &mut CryptOp { ses: session, len: size as u32, src, dst, iv, ..CryptOp::default() })
    })
}

fn directly(size: usize) -> Result<Call<'static, Failure>, Failure> {
    let keyed = here().open(&SessionParams::new(Algorithm::Aes128Cbc, Key::Symmetric((&KEY).into()))?)?;
    let (text, mut out) = (vec![5_u8; size], vec![0_u8; size]);
    Ok(Box::new(move || {
        let data = Data::Copy { input: &text, output: &mut out };
        keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &IV, aad: &[], data, tag: &mut [] })?;
        Ok(())
    }))
}

fn main() -> Result<(), Failure> {
    handle_no_faults();
    // SAFETY: a C string.
    let fd = unsafe { libc::open(c"/dev/crypto".as_ptr(), libc::O_RDWR) };
    if fd < 0 {
        return Err(if std::env::var_os("LD_PRELOAD").is_some() { std::io::Error::last_os_error().into() } else { under_preload() });
    }
    let mut asked = SessionOp { cipher: AES_CBC, keylen: 16, key: KEY.as_ptr() as u64, ..SessionOp::default() };
    ioctl(fd, CIOCGSESSION, &mut asked)?;
    println!("{:>8} {:>14} {:>14} {:>10} {:>24}", "bytes", "engine, ns", "ioctl, ns", "more, ns", "speed, engine = 1");
    for size in SIZES {
        let one = |call| Contender::Calls { threads: vec![call], operations: 1 };
        let mut contenders = [one(directly(size)?), one(by_ioctl(fd, asked.ses, size))];
        let effort = Effort { rounds: 31, slice: Duration::from_millis(30), clock: Clock::Cpu };
        let samples = take_turns(&mut contenders, effort, &mut || {}, &|| true).into_iter().collect::<Result<Vec<_>, _>>()?;
        let [engine, ours] = [0, 1].map(|place| median(&samples[place].ns_per_op));
        let speed = ratio(&samples[0].ns_per_op, &samples[1].ns_per_op);
        println!(
            "{size:>8} {engine:>14.0} {ours:>14.0} {:>10.0} {:>10.2} ({:.2} to {:.2})",
            ours - engine,
            speed.mid,
            speed.low,
            speed.high
        );
    }
    Ok(())
}
