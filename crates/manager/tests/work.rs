//! Real work through a manager: many threads, many algorithms, every result compared with the engine's own.

use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Key, Keyed, Kind, Operation, OwnedOperation, SecretBytes, SessionParams};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Costs, Manager, ManagerConfig, PolicyKind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const HANG: Duration = Duration::from_secs(120);

fn manager(policy: PolicyKind) -> Arc<Manager> {
    let mut config = ManagerConfig::new(vec![Arc::new(CpuEngine::new())]);
    config.policy = policy;
    config.costs = Costs::Given(vec![CostSheet::empty("cpu")]);
    Manager::new(config).unwrap()
}

fn params(algorithm: Algorithm) -> SessionParams {
    let key = match algorithm.kind() {
        Kind::Cipher { key, .. } | Kind::Aead { key, .. } => Key::Symmetric((0..key as u8).collect::<Vec<_>>().into()),
        Kind::Mac { .. } => Key::Symmetric((&[9; 20]).into()),
        Kind::Digest { .. } => Key::None,
        _ => Key::EcPrivate((&[7; 32]).into()),
    };
    SessionParams::new(algorithm, key).unwrap()
}

fn operation(algorithm: Algorithm, size: usize, seed: u8) -> OwnedOperation {
    let (direction, iv, tag) = match algorithm.kind() {
        Kind::Cipher { iv, .. } => (Direction::Encrypt, iv, 0),
        Kind::Aead { .. } => (Direction::Encrypt, 12, 16),
        _ => (Direction::Compute, 0, 0),
    };
    let size = match algorithm.kind() {
        Kind::Cipher { block, .. } => size.div_ceil(block).max(1) * block,
        Kind::EcdsaSign { .. } | Kind::Agreement { .. } => 32,
        _ => size,
    };
    let input: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
    OwnedOperation {
        direction,
        iv: vec![seed; iv],
        aad: Vec::new(),
        output: SecretBytes::zeroed(algorithm.output_len(size)),
        input: input.into(),
        tag: vec![0; tag],
    }
}

/// Algorithms whose output is a function of the input.
const MIXED: [Algorithm; 8] = [
    Algorithm::Aes128Ctr,
    Algorithm::Aes256Gcm,
    Algorithm::Aes128Cbc,
    Algorithm::Aes256Xts,
    Algorithm::ChaCha20Poly1305,
    Algorithm::Sha256,
    Algorithm::HmacSha512,
    Algorithm::X25519,
];

fn expected(keyed: &dyn Keyed, mut operation: OwnedOperation) -> OwnedOperation {
    keyed.run(&mut operation.borrow()).unwrap();
    operation
}

#[test]
fn many_threads_and_algorithms_get_the_engines_own_bytes() {
    for policy in [PolicyKind::Fifo, PolicyKind::Placement] {
        let manager = manager(policy);
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let manager = &manager;
                scope.spawn(move || one_thread(manager, thread));
            }
        });
        assert!(manager.drain(HANG));
        assert_eq!(manager.snapshot().in_flight, 0);
        let done: u64 = manager.snapshot().usage.iter().map(|usage| usage.ops).sum();
        assert_eq!(done, 8 * 8 * 60);
    }
}

fn one_thread(manager: &Arc<Manager>, thread: u8) {
    let engine = CpuEngine::new();
    for algorithm in MIXED {
        let params = params(algorithm);
        let keyed = engine.open(&params).unwrap();
        let session = manager.open(u32::from(thread), params).unwrap();
        let (tell, told) = mpsc::channel();
        for round in 0..30u8 {
            let operation = operation(algorithm, usize::from(round) * 97, round ^ thread);
            let wanted = expected(&*keyed, operation.clone());
            let tell = tell.clone();
            let by_submit = operation.clone();
            manager.submit(session, by_submit, Box::new(move |completion| tell.send((completion, wanted)).unwrap()));
            let wanted = expected(&*keyed, operation.clone());
            let mut own = operation;
            let done = manager.run(session, &mut own.borrow()).unwrap();
            assert_eq!(done.written, wanted.output.len());
            assert_eq!(own, wanted, "{algorithm}");
        }
        drop(tell);
        for _ in 0..30 {
            let (completion, wanted) = told.recv_timeout(HANG).unwrap();
            completion.outcome.unwrap();
            assert_eq!(completion.operation, wanted, "{algorithm}");
        }
        assert!(told.recv_timeout(Duration::ZERO).is_err(), "a completion too many");
        manager.close(session).unwrap();
    }
}

#[test]
fn works_in_place_and_starts_no_thread_for_lone_callers() {
    let manager = manager(PolicyKind::Placement);
    let session = manager.open(1, params(Algorithm::Aes128Ctr)).unwrap();
    let mut data = [5; 1000];
    for _ in 0..2 {
        let mut tag = [];
        let operation = Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data: Data::InPlace(&mut data), tag: &mut tag };
        manager.run(session, &mut { operation }).unwrap();
    }
    assert_eq!(data, [5; 1000], "CTR twice is the identity");
    assert_eq!(manager.snapshot().threads, 0);
}
