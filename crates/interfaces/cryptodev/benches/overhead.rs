//! What the dispatcher costs on top of the engine: `cargo bench -p bywash-cryptodev`.
//!
//! The same AES-128-CBC encryption and decryption by the engine called directly, by a session of the client, and by `CIOCCRYPT` handed to the dispatcher with
//! the memory of this process; interleaved, in processor time of this thread, medians of the rounds. A transport's own cost comes on top: it is measured
//! with the transport.

use bywash_client::{Client, Config};
use bywash_core::{Algorithm, Data, Direction, Key, Keyed, Operation, SessionParams};
use bywash_cryptodev::{Device, Errno, Memory};
use bywash_cryptodev_abi::linux::{CIOCCRYPT, CIOCGSESSION, CRYPTO_AES_CBC, CryptOp, SessionOp};
use bywash_measure::turns::Clock;
use std::hint::black_box;

const SIZES: [usize; 5] = [16, 256, 1024, 16_384, 65_536];
const ROUNDS: usize = 31;
/// Bytes that a contender computes in one turn, with so many calls at the least.
const TURN_BYTES: usize = 8 << 20;
const TURN_CALLS: usize = 256;
const TURN_CALLS_MAX: usize = 20_000;
const KEY: [u8; 16] = [7; 16];
const IV: [u8; 16] = [9; 16];

/// The memory of this process, which is what a preloaded library has.
struct Own;

impl Memory for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        // SAFETY: the addresses are those of this benchmark's own buffers, which are long enough and not `into`.
        unsafe { core::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        // SAFETY: as above.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
        Ok(())
    }
}

/// Nanoseconds of one call.
fn turn(size: usize, work: &mut dyn FnMut()) -> f64 {
    let calls = (TURN_BYTES / size).clamp(TURN_CALLS, TURN_CALLS_MAX);
    let start = Clock::Cpu.now();
    for _ in 0..calls {
        work();
    }
    (Clock::Cpu.now() - start).as_nanos() as f64 / calls as f64
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn params() -> SessionParams {
    SessionParams::new(Algorithm::Aes128Cbc, Key::Symmetric((&KEY).into())).expect("a good key")
}

fn operation<'a>(direction: Direction, buffer: &'a mut [u8]) -> Operation<'a> {
    Operation { direction, iv: &IV, aad: &[], data: Data::InPlace(buffer), tag: &mut [] }
}

fn measure(keyed: &dyn Keyed, device: &Device, ses: u32, direction: Direction, size: usize) {
    let session = Client::new(Config::default()).session(params()).expect("a session");
    let (mut first, mut second, mut third) = (vec![1; size], vec![1; size], vec![1u8; size]);
    let place = third.as_mut_ptr().expose_provenance() as u64;
    let mut asked = CryptOp {
        ses,
        op: direction as u16,
        len: size as u32,
        src: place,
        dst: place,
        iv: IV.as_ptr().expose_provenance() as u64,
        ..CryptOp::default()
    };
    let argument = (&raw mut asked).expose_provenance() as u64;
    let mut engine = || {
        let _ = black_box(keyed.run(&mut operation(direction, black_box(&mut first))));
    };
    let mut client = || {
        let _ = black_box(session.run(&mut operation(direction, black_box(&mut second))));
    };
    let mut dispatcher = || {
        let _ = black_box(device.request(CIOCCRYPT, argument, &Own));
    };
    let contenders: [&mut dyn FnMut(); 3] = [&mut engine, &mut client, &mut dispatcher];
    let mut samples = [vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        for (contender, samples) in [0, 1, 2].into_iter().zip(&mut samples) {
            samples.push(turn(size, &mut *contenders[contender]));
        }
    }
    let [engine_ns, client_ns, dispatcher_ns] = samples.map(|mut samples| median(&mut samples));
    println!(
        "{:7} {size:6} B  engine {engine_ns:9.1} ns  session {client_ns:9.1} ns  dispatcher {dispatcher_ns:9.1} ns  over the engine {:+8.1} ns, {:.3} x as fast",
        format!("{direction:?}").to_lowercase(),
        dispatcher_ns - engine_ns,
        engine_ns / dispatcher_ns
    );
}

fn main() {
    let engine = bywash_manager::here();
    let keyed = engine.open(&params()).expect("a session");
    let device = Device::new(Client::new(Config::default()));
    let mut asked = SessionOp { cipher: CRYPTO_AES_CBC, keylen: 16, key: KEY.as_ptr().expose_provenance() as u64, ..SessionOp::default() };
    device.request(CIOCGSESSION, (&raw mut asked).expose_provenance() as u64, &Own).expect("a session");
    println!("AES-128-CBC by {}", engine.describe());
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        for size in SIZES {
            measure(&*keyed, &device, asked.ses, direction, size);
        }
    }
}
