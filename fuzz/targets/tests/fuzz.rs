//! Every target on mutated inputs, for a bounded number of iterations. `BYWASH_SEED=7 cargo test -p bywash-fuzz-targets` tries others.

use bywash_fuzz_targets::runner::{Random, mutate, run, seed_from_env};
use bywash_fuzz_targets::{Target, kernel_targets, targets};

/// Enough to be worth something, little enough to be run always; `cargo fuzz` goes on from here.
const ITERATIONS: u64 = 20_000;

/// The same for kernels, each iteration of which takes milliseconds in an unoptimised build.
const KERNEL_ITERATIONS: u64 = 500;

fn run_all(targets: Vec<(&'static str, Target, Vec<Vec<u8>>)>, iterations: u64) {
    let seed = seed_from_env();
    for (name, target, seeds) in targets {
        println!("{name}: BYWASH_SEED={seed}, {iterations} iterations from {} seeds", seeds.len());
        if let Err(crash) = run(target, &seeds, iterations, seed) {
            panic!("{name} panicked in iteration {} (BYWASH_SEED={seed}) on {:02x?}", crash.iteration, crash.input);
        }
    }
}

#[test]
fn no_input_makes_a_target_panic() {
    run_all(targets(), ITERATIONS);
}

#[test]
fn no_input_makes_a_kernel_panic_or_err() {
    let targets = kernel_targets();
    if targets.is_empty() {
        return eprintln!("skipped: this processor has no AVX-512 IFMA");
    }
    run_all(targets, KERNEL_ITERATIONS);
}

#[test]
fn a_target_that_panics_is_caught_with_its_input() {
    let target: fn(&[u8]) = |bytes| assert!(!(bytes.len() > 4 && bytes[3] == 0xff), "planted");
    let crash = run(target, &[vec![0; 8]], ITERATIONS, 1).expect_err("the planted mistake is found");
    assert_eq!(crash.input[3], 0xff);
    let again = run(target, &[vec![0; 8]], ITERATIONS, 1).expect_err("and found again");
    assert_eq!((again.iteration, again.input), (crash.iteration, crash.input), "the same seed, the same input");
}

#[test]
fn mutation_makes_many_different_inputs() {
    let seeds = [b"engine = 1".to_vec()];
    let mut random = Random::new(3);
    let inputs: std::collections::BTreeSet<_> = (0..1000).map(|_| mutate(&seeds, &mut random)).collect();
    assert!(inputs.len() > 800, "{}", inputs.len());
}

#[test]
fn threads_that_share_open_files_leave_nothing_behind() {
    use bywash_fuzz_targets::cryptodev::{Arena, World};
    let (world, seed) = (World::new(), seed_from_env());
    println!("BYWASH_SEED={seed}, {ITERATIONS} requests by each of 3 threads");
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let world = &world;
            scope.spawn(move || {
                let (arena, mut random) = (Arena::default(), Random::new(seed * 3 + thread));
                for _ in 0..ITERATIONS {
                    world.step(&arena, &mut random).expect("a generator does not end");
                }
            });
        }
    });
    world.close();
}
