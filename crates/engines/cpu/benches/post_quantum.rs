//! What ML-KEM-768 (FIPS 203) is in a TLS 1.3 handshake with `X25519MLKEM768` and an ECDSA P-256 certificate, and what lanes could take off it.
//!
//! `cargo bench -p bywash-engine-cpu --bench post_quantum` prints microseconds of one operation, all contenders taking turns within each round; the time is
//! the thread's CPU time; the figure is the fastest round. ML-KEM is AWS-LC's, one operation at a time. Beside it what else a server's handshake
//! computes, in full batches by the engine. A server encapsulates; a client makes a key pair and decapsulates. Keccak's share is bounded by what
//! AWS-LC's SHA3-256, one message at a time, takes for the permutations that encapsulation needs.

use aws_lc_sys as lc;
use bywash_core::{Algorithm, Data, Direction, Engine, Key, Keyed, Operation, SessionParams, Task};
use bywash_engine_cpu::CpuEngine;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::ptr::{NonNull, null_mut};

const ROUNDS: usize = 60;
/// Time of one contender in one round.
const TURN_NS: u64 = 2_000_000;
const LANES: usize = 8;

/// Bytes of an encapsulation key, a ciphertext and a shared secret (FIPS 203 table 3).
const PUBLIC: usize = 1184;
const CIPHERTEXT: usize = 1088;
const SECRET: usize = 32;

/// Permutations in one encapsulation: H of the key (1,184 bytes at 136 a block), G, nine entries of the matrix at three blocks of SHAKE128 each,
/// seven noise polynomials of one block of SHAKE256 each.
const PERMUTATIONS: usize = 9 + 1 + 9 * 3 + 7;
/// The rate of SHA3-256 in bytes.
const RATE: usize = 136;

/// What is timed: its name, how many operations one run does, a run.
type Contender = (&'static str, usize, Box<dyn FnMut()>);

/// CPU time of this thread in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of one run, over a turn. Reading the clock is a system call: many runs between two readings.
fn turn(runs: u64, work: &mut dyn FnMut()) -> f64 {
    let start = now();
    (0..runs).for_each(|_| work());
    (now() - start) as f64 / runs as f64
}

/// A key pair of ML-KEM-768, or its public half.
struct KemKey(NonNull<lc::EVP_PKEY>);

impl Drop for KemKey {
    fn drop(&mut self) {
        // SAFETY: made once, freed once.
        unsafe { lc::EVP_PKEY_free(self.0.as_ptr()) };
    }
}

impl KemKey {
    fn generate() -> Self {
        let mut key = null_mut();
        // SAFETY: a context of its own; the key is ours.
        unsafe {
            let ctx = lc::EVP_PKEY_CTX_new_id(lc::EVP_PKEY_KEM, null_mut());
            assert_eq!(lc::EVP_PKEY_CTX_kem_set_params(ctx, lc::NID_MLKEM768), 1);
            assert_eq!((lc::EVP_PKEY_keygen_init(ctx), lc::EVP_PKEY_keygen(ctx, &raw mut key)), (1, 1));
            lc::EVP_PKEY_CTX_free(ctx);
        }
        Self(NonNull::new(key).expect("a key"))
    }

    fn public(&self) -> [u8; PUBLIC] {
        let (mut public, mut length) = ([0; PUBLIC], PUBLIC);
        // SAFETY: a live key, and room for so many bytes.
        assert_eq!(unsafe { lc::EVP_PKEY_get_raw_public_key(self.0.as_ptr(), public.as_mut_ptr(), &raw mut length) }, 1);
        public
    }

    /// What a server does with a client's key share.
    fn encapsulate(public: &[u8; PUBLIC]) -> ([u8; CIPHERTEXT], [u8; SECRET]) {
        let (mut ciphertext, mut secret) = ([0; CIPHERTEXT], [0; SECRET]);
        let (mut lengths, bytes) = ((CIPHERTEXT, SECRET), public.as_ptr());
        // SAFETY: the array gives pointer and length; the results have their room.
        unsafe {
            let key = Self(NonNull::new(lc::EVP_PKEY_kem_new_raw_public_key(lc::NID_MLKEM768, bytes, PUBLIC)).expect("a public key"));
            let ctx = lc::EVP_PKEY_CTX_new(key.0.as_ptr(), null_mut());
            let (text, shared) = (ciphertext.as_mut_ptr(), secret.as_mut_ptr());
            assert_eq!(lc::EVP_PKEY_encapsulate(ctx, text, &raw mut lengths.0, shared, &raw mut lengths.1), 1);
            lc::EVP_PKEY_CTX_free(ctx);
        }
        (ciphertext, secret)
    }

    fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT]) -> [u8; SECRET] {
        let (mut secret, mut length) = ([0; SECRET], SECRET);
        // SAFETY: a live key; the arrays give pointers and lengths.
        unsafe {
            let ctx = lc::EVP_PKEY_CTX_new(self.0.as_ptr(), null_mut());
            assert_eq!(lc::EVP_PKEY_decapsulate(ctx, secret.as_mut_ptr(), &raw mut length, ciphertext.as_ptr(), CIPHERTEXT), 1);
            lc::EVP_PKEY_CTX_free(ctx);
        }
        secret
    }
}

/// SHA3-256 over a message of so many blocks.
fn keccak(message: &[u8]) {
    let (mut digest, mut length) = ([0; 32], 0);
    // SAFETY: the slice gives pointer and length; the digest has its room.
    let done = unsafe {
        lc::EVP_Digest(message.as_ptr().cast(), message.len(), digest.as_mut_ptr(), &raw mut length, lc::EVP_sha3_256(), null_mut())
    };
    assert_eq!(done, 1);
    black_box(digest);
}

/// A full batch of one algorithm by the engine.
fn batch(algorithm: Algorithm, input: Vec<u8>) -> Box<dyn FnMut()> {
    let engine = CpuEngine::new();
    let params = SessionParams::new(algorithm, Key::EcPrivate(vec![7; 32].into())).expect("a key");
    let sessions: Vec<Box<dyn Keyed>> = (0..LANES).map(|_| engine.open(&params).expect("the engine knows it")).collect();
    let mut outputs = vec![vec![0; algorithm.output_len(input.len())]; LANES];
    Box::new(move || {
        let operation = |output| Operation {
            direction: Direction::Compute,
            iv: &[],
            aad: &[],
            data: Data::Copy { input: &input, output },
            tag: &mut [],
        };
        let mut tasks: Vec<_> = sessions.iter().zip(&mut outputs).map(|(keyed, output)| Task::new(&**keyed, operation(output))).collect();
        engine.run(&mut tasks);
        assert!(tasks.iter().all(|task| task.outcome.is_ok()));
    })
}

fn main() {
    let pair = KemKey::generate();
    let public = pair.public();
    let (ciphertext, secret) = KemKey::encapsulate(&public);
    assert_eq!(pair.decapsulate(&ciphertext), secret);
    let message = vec![0x5A; PERMUTATIONS * RATE - 1];
    let mut peer = vec![0; 32];
    peer[0] = 9;
    let mut contenders: Vec<Contender> = vec![
        ("ML-KEM-768 encapsulation", 1, Box::new(move || _ = black_box(KemKey::encapsulate(&public)))),
        ("ML-KEM-768 key pair", 1, Box::new(|| drop(black_box(KemKey::generate())))),
        ("ML-KEM-768 decapsulation", 1, Box::new(move || _ = black_box(pair.decapsulate(&ciphertext)))),
        ("its Keccak, one at a time", 1, Box::new(move || keccak(&message))),
        ("X25519, in a batch", LANES, batch(Algorithm::X25519, peer)),
        ("X25519 public value, in a batch", LANES, batch(Algorithm::X25519Public, Vec::new())),
        ("ECDSA-P256 sign, in a batch", LANES, batch(Algorithm::EcdsaP256Sign, vec![5; 32])),
    ];
    let mut runs: Vec<u64> = contenders.iter_mut().map(|(.., work)| ((TURN_NS as f64 / turn(3, work)) as u64).max(1)).collect();
    let mut best = vec![f64::INFINITY; contenders.len()];
    for _ in 0..ROUNDS {
        for (((_, lanes, work), best), runs) in contenders.iter_mut().zip(&mut best).zip(&mut runs) {
            *best = best.min(turn(*runs, work) / *lanes as f64);
        }
    }
    println!("{:<34} {:>8}", "operation", "us");
    contenders.iter().zip(&best).for_each(|((name, ..), ns)| println!("{name:<34} {:>8.2}", ns / 1e3));
}
