//! Operations of handshakes on stacks as small as those of OpenSSL's asynchronous jobs: 32 KiB, which come from its allocator, so that who goes beyond the end
//! writes over somebody else's memory. Here a page lies there that faults.

use bywash_core::{Algorithm, Data, Direction, Engine, Key, Operation, SessionParams, Task};
use bywash_engine_cpu::CpuEngine;
use corosensei::on_stack;
use corosensei::stack::DefaultStack;

/// What of a job's stack is left by libcrypto, libssl, the provider and the client.
const LEFT: usize = 20 << 10;
/// As many as the kernels compute side by side, of operations that are collected.
const AT_ONCE: usize = 8;

fn point(engine: &CpuEngine, algorithm: Algorithm, private: &Key) -> Vec<u8> {
    let mut public = vec![0; algorithm.output_len(0)];
    let keyed = engine.open(&SessionParams::new(algorithm, private.clone()).unwrap()).unwrap();
    let data = Data::Copy { input: &[], output: &mut public };
    keyed.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }).unwrap();
    public
}

#[test]
fn handshakes_operations_fit_on_the_stack_of_an_asynchronous_job() {
    let scalar = |len: usize| Key::EcPrivate(vec![7; len].into());
    let mut input = vec![0; 512];
    input[511] = 2;
    for engine in [CpuEngine::without_lanes(), CpuEngine::new()] {
        let (p256, p384) = (point(&engine, Algorithm::EcdhP256Public, &scalar(32)), point(&engine, Algorithm::EcdhP384Public, &scalar(48)));
        let all = [
            (Algorithm::Rsa2048Private, Key::RsaPrivate(bywash_conformance::rsa_private_key(2048)), &input[256..]),
            (Algorithm::Rsa4096Private, Key::RsaPrivate(bywash_conformance::rsa_private_key(4096)), &input[..]),
            (Algorithm::Rsa2048Public, Key::RsaPublic(bywash_conformance::rsa_private_key(2048).public), &input[256..]),
            (Algorithm::EcdsaP256Sign, scalar(32), &input[..32]),
            (Algorithm::EcdsaP384Sign, scalar(48), &input[..48]),
            (Algorithm::EcdhP256Public, scalar(32), &[]),
            (Algorithm::EcdhP256, scalar(32), &p256),
            (Algorithm::EcdhP384Public, scalar(48), &[]),
            (Algorithm::EcdhP384, scalar(48), &p384),
            (Algorithm::X25519Public, scalar(32), &[]),
            (Algorithm::X25519, scalar(32), &[9; 32]),
            (Algorithm::Ed25519Sign, scalar(32), &input[..100]),
        ];
        for (algorithm, key, input) in all {
            let params = SessionParams::new(algorithm, key).unwrap();
            for count in [1, AT_ONCE] {
                let mut outputs = vec![vec![0; algorithm.output_len(input.len())]; count];
                let done = on_stack(DefaultStack::new(LEFT).unwrap(), || {
                    let keyed = engine.open(&params).unwrap();
                    let task = |output| {
                        let data = Data::Copy { input, output };
                        Task::new(&*keyed, Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })
                    };
                    let mut tasks: Vec<Task<'_>> = outputs.iter_mut().map(|output| task(&mut output[..])).collect();
                    engine.run(&mut tasks);
                    tasks.iter().all(|task| task.outcome.is_ok())
                });
                assert!(done, "{algorithm}, {count} at once");
            }
        }
    }
}
