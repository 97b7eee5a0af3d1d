//! Forks while other threads use what the library keeps behind locks: each child has to do the same, and none may wait for a thread that it does not have.

use bywash_core::{Algorithm, Data, Direction, Engine, Key, Keyed, Operation, SessionParams};
use bywash_engine_cpu::CpuEngine;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

const THREADS: usize = 4;
/// More than the child that would have been lost before forks waited: of RSA it was nearly each first one, of ECDSA one in some 500.
const FORKS: usize = 1_000;
/// Seconds that a child has for what takes milliseconds, beside other tests.
const PATIENCE: u32 = 60;

unsafe extern "C" {
    fn fork() -> c_int;
    fn alarm(seconds: u32) -> u32;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

fn run(keyed: &dyn Keyed, len: usize, output: &mut [u8]) -> bool {
    let input = [1; 256];
    let data = Data::Copy { input: &input[..len], output };
    keyed.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }).is_ok()
}

/// An RSA private operation, and a signature.
fn both(rsa: &dyn Keyed, ecdsa: &dyn Keyed) -> bool {
    run(rsa, 256, &mut [0; 256]) && run(ecdsa, 32, &mut [0; 64])
}

#[test]
fn children_of_forks_in_the_midst_of_signatures_sign_as_well() {
    let engine = CpuEngine::without_lanes();
    let open = |algorithm, key| engine.open(&SessionParams::new(algorithm, key).unwrap()).unwrap();
    let rsa = open(Algorithm::Rsa2048Private, Key::RsaPrivate(bywash_conformance::rsa_private_key(2048)));
    let ecdsa = open(Algorithm::EcdsaP256Sign, Key::EcPrivate(vec![7; 32].into()));
    let is_over = AtomicBool::new(false);
    let lost = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    assert!(both(&*rsa, &*ecdsa));
                }
            });
        }
        // Threads that come and go have states of the library's made and freed.
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                assert!(std::thread::scope(|inner| inner.spawn(|| run(&*ecdsa, 32, &mut [0; 64])).join()).unwrap());
            }
        });
        let lost = (0..FORKS).filter(|_| has_lost_a_child(|| both(&*rsa, &*ecdsa))).count();
        is_over.store(true, SeqCst);
        lost
    });
    assert_eq!(lost, 0, "of {FORKS} children");
}

/// Forks; whether the child did not end well.
fn has_lost_a_child(work: impl FnOnce() -> bool) -> bool {
    let mut status = 0;
    // SAFETY: the child computes and ends, without returning into the test.
    unsafe {
        let child = fork();
        if child == 0 {
            alarm(PATIENCE);
            _exit(c_int::from(!work()));
        }
        assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
        assert_eq!(waitpid(child, &raw mut status, 0), child);
    }
    status != 0
}
