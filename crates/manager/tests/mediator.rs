//! The mediator on the real clock: requests cut and packed over two engines come back as one engine alone would have computed them, also when an engine fails.

mod common;

use bywash_core::{AAD_USUAL, Algorithm, CostSheet, Direction, Engine, Key, Keyed, OwnedOperation, SecretBytes, SessionParams};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Costs, Manager, ManagerConfig, Observation, PolicyKind, Reason, SessionId};
use common::{HANG, Mood, Moody};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const MODES: [(Algorithm, Direction); 7] = [
    (Algorithm::Aes128Ctr, Direction::Encrypt),
    (Algorithm::Aes256Ctr, Direction::Decrypt),
    (Algorithm::Aes128Ecb, Direction::Encrypt),
    (Algorithm::Aes256Cbc, Direction::Decrypt),
    (Algorithm::Aes128Xts, Direction::Encrypt),
    (Algorithm::Aes256Xts, Direction::Encrypt),
    (Algorithm::Aes256Xts, Direction::Decrypt),
];

/// Both so slow by their sheets that a request of 100 KB is worth cutting.
fn sheet(name: &str) -> CostSheet {
    let curve = "points = [[0, 1000.0], [1000000, 50001000.0]]";
    let all: String = MODES
        .map(|(algorithm, _)| algorithm)
        .into_iter()
        .chain([Algorithm::Aes256Gcm])
        .collect::<std::collections::BTreeSet<_>>()
        .iter()
        .map(|algorithm| format!("[algorithms.\"{algorithm}\"]\n{curve}\n"))
        .collect();
    CostSheet::from_toml(&format!("engine = \"{name}\"\nhandover_ns = {}\n{all}", if name == "cpu" { "0.0" } else { "20000.0" }), name)
        .unwrap()
}

fn manager(prefer: &str) -> (Arc<Manager>, Arc<Moody>) {
    manager_with(prefer, |_| ())
}

fn manager_with(prefer: &str, change: impl FnOnce(&mut ManagerConfig)) -> (Arc<Manager>, Arc<Moody>) {
    let gpu = Moody::new("gpu").distant().workers(1).lanes(64).in_mood(Mood::Good);
    let mut config = ManagerConfig::new(vec![Arc::new(CpuEngine::new()), gpu.clone()]);
    change(&mut config);
    config.policy = format!("mediator:prefer={prefer},wait=200us").parse::<PolicyKind>().unwrap();
    config.costs = Costs::Given(vec![sheet("cpu"), sheet("gpu")]);
    (Manager::new(config).unwrap(), gpu)
}

fn params(algorithm: Algorithm) -> SessionParams {
    SessionParams::new(algorithm, Key::Symmetric((0..algorithm.key_lengths().0 as u8).collect::<Vec<_>>().into())).unwrap()
}

fn operation(algorithm: Algorithm, direction: Direction, size: usize) -> OwnedOperation {
    let input: Vec<u8> = (0..size).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    let tag = vec![0; if algorithm == Algorithm::Aes256Gcm { 16 } else { 0 }];
    // A counter that carries through all of its bytes within the first kilobyte.
    let mut iv = vec![0xff; algorithm.usual_iv_len()];
    if let Some(last) = iv.last_mut() {
        *last = 0xd0;
    }
    OwnedOperation { direction, iv, aad: Vec::new(), output: SecretBytes::zeroed(size), input: input.into(), tag }
}

fn alone(keyed: &dyn Keyed, mut operation: OwnedOperation) -> OwnedOperation {
    let written = keyed.run(&mut operation.borrow()).unwrap();
    assert_eq!(written, operation.input.len());
    operation
}

/// Hands all over at once, and takes them as they come.
fn all(manager: &Manager, requests: Vec<(SessionId, OwnedOperation)>) -> Vec<OwnedOperation> {
    let (tell, told) = mpsc::channel();
    let count = requests.len();
    for (place, (session, operation)) in requests.into_iter().enumerate() {
        let tell = tell.clone();
        manager.submit(session, operation, Box::new(move |completion| tell.send((place, completion)).unwrap()));
    }
    let mut ended: Vec<_> = (0..count).map(|_| told.recv_timeout(HANG).expect("every request ends")).collect();
    ended.sort_by_key(|(place, _)| *place);
    let written = |completion: &bywash_manager::Completion| completion.outcome.clone().unwrap().written;
    ended
        .into_iter()
        .map(|(_, completion)| {
            assert_eq!(written(&completion), completion.operation.input.len());
            completion.operation
        })
        .collect()
}

/// What was told of each request.
fn watch(manager: &Manager) -> Arc<Mutex<Vec<(Reason, u64)>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = seen.clone();
    manager.observe(Arc::new(move |observation: &Observation<'_>| {
        own.lock().unwrap().extend(observation.reason.map(|reason| (reason, observation.request.bytes)));
    }));
    seen
}

#[test]
fn what_is_cut_comes_back_whole_at_every_length_about_the_cuts() {
    for (algorithm, direction) in MODES {
        let reference = CpuEngine::new().open(&params(algorithm)).unwrap();
        let block = if ["CTR", "XTS"].iter().any(|mode| algorithm.name().ends_with(mode)) { 1 } else { 16 };
        let lengths = (0..40).map(|n| 131_072 - 20 * block + n * block).chain([1 << 16, (1 << 16) + block, 200_000 / 16 * 16, 1 << 20]);
        for length in lengths {
            let asked = operation(algorithm, direction, length);
            let expected = alone(&*reference, asked.clone());
            // Handed over, and in a caller's own buffer. Each by a manager that has the sheets' word alone: it soon learns that the processor is faster.
            for in_place in [false, true] {
                let (manager, _) = manager("latency");
                let seen = watch(&manager);
                let session = manager.open(1, params(algorithm)).unwrap();
                if in_place {
                    let mut text = asked.input.to_vec();
                    let data = bywash_core::Data::InPlace(&mut text);
                    let mut lent = bywash_core::Operation { direction, iv: &asked.iv, aad: &[], data, tag: &mut [] };
                    assert_eq!(manager.run(session, &mut lent).unwrap().written, length);
                    assert!(text[..] == expected.output[..], "{algorithm}, {length} bytes, in place");
                } else {
                    let [done] = &all(&manager, vec![(session, asked.clone())])[..] else { panic!("one request, one end") };
                    assert!(*done == expected, "{algorithm}, {length} bytes");
                }
                // It was cut, and whoever counts requests is told of the one that was asked.
                assert_eq!(*seen.lock().unwrap(), [(Reason::Part, length as u64)], "{algorithm}");
                assert!(manager.shutdown(HANG));
            }
        }
    }
}

#[test]
fn what_the_processor_does_at_once_is_not_copied() {
    let mut config =
        ManagerConfig::new(vec![Arc::new(CpuEngine::new()), Moody::new("gpu").distant().workers(1).lanes(64).in_mood(Mood::Good)]);
    config.policy = "mediator".parse::<PolicyKind>().unwrap();
    let sheets = [("cpu", "[[0, 100.0], [1000000, 100100.0]]"), ("gpu", "[[0, 100000.0], [1000000, 100100000.0]]")];
    let sheet =
        |(name, points)| CostSheet::from_toml(&format!("engine = \"{name}\"\n[algorithms.\"AES-128-CTR\"]\npoints = {points}\n"), name);
    config.costs = Costs::Given(sheets.map(|given| sheet(given).unwrap()).into());
    let manager = Manager::new(config).unwrap();
    let session = manager.open(1, params(Algorithm::Aes128Ctr)).unwrap();
    for length in [16, 4096, 1 << 20] {
        let asked = operation(Algorithm::Aes128Ctr, Direction::Encrypt, length);
        let expected = alone(&*CpuEngine::new().open(&params(Algorithm::Aes128Ctr)).unwrap(), asked.clone());
        let mut text = asked.input.to_vec();
        let data = bywash_core::Data::InPlace(&mut text);
        let mut lent = bywash_core::Operation { direction: Direction::Encrypt, iv: &asked.iv, aad: &[], data, tag: &mut [] };
        manager.run(session, &mut lent).unwrap();
        assert!(text[..] == expected.output[..], "{length} bytes");
    }
    // Whatever is kept is watched by a thread: nothing was.
    assert_eq!(manager.snapshot().threads, 0);
    assert!(manager.shutdown(HANG));
}

#[test]
fn associated_data_that_does_not_suit_an_engine_goes_to_another() {
    let (both, gpu) = manager("cpu-free");
    let session = both.open(1, params(Algorithm::Aes256Gcm)).unwrap();
    let with_aad = |aad: usize| OwnedOperation { aad: vec![1; aad], ..operation(Algorithm::Aes256Gcm, Direction::Encrypt, 16 << 10) };
    let expected = alone(&*CpuEngine::new().open(&params(Algorithm::Aes256Gcm)).unwrap(), with_aad(1 << 20));
    for end in all(&both, vec![(session, with_aad(1 << 20)); 20]) {
        assert!(end == expected);
    }
    assert!(both.run(session, &mut with_aad(1 << 20).borrow()).is_ok());
    assert_eq!(gpu.operations.load(Ordering::SeqCst), 0);
    all(&both, vec![(session, with_aad(AAD_USUAL)); 20]);
    assert!(gpu.operations.load(Ordering::SeqCst) > 0, "so much is usual");
    assert!(both.shutdown(HANG));

    let gpu = Moody::new("gpu").distant().workers(1).in_mood(Mood::Good);
    let alone = Manager::new(ManagerConfig { costs: Costs::Given(vec![sheet("gpu")]), ..ManagerConfig::new(vec![gpu]) }).unwrap();
    let session = alone.open(1, params(Algorithm::Aes256Gcm)).unwrap();
    assert!(all(&alone, vec![(session, with_aad(1 << 20))]) == [expected], "where there is no other it does it");
    assert!(alone.shutdown(HANG));
}

#[test]
fn a_part_whose_engine_fails_is_computed_elsewhere() {
    for mood in [Mood::Fails, Mood::Panics] {
        let (manager, gpu) = manager("latency");
        gpu.set(mood);
        let reference = CpuEngine::new().open(&params(Algorithm::Aes128Ctr)).unwrap();
        let session = manager.open(1, params(Algorithm::Aes128Ctr)).unwrap();
        for length in [300_001, 1 << 20] {
            let asked = operation(Algorithm::Aes128Ctr, Direction::Encrypt, length);
            let expected = alone(&*reference, asked.clone());
            assert!(all(&manager, vec![(session, asked)])[0] == expected, "{mood:?}, {length} bytes");
        }
        assert!(gpu.batches.load(Ordering::SeqCst) > 0, "it was given a part");
        assert!(manager.shutdown(HANG));
    }
}

#[test]
fn a_part_whose_engine_hangs_is_computed_elsewhere_and_the_late_one_spoils_nothing() {
    let (manager, gpu) = manager_with("latency", |config| config.stall_bound = Duration::from_secs(1));
    gpu.set(Mood::Stalls);
    let session = manager.open(1, params(Algorithm::Aes128Ctr)).unwrap();
    let asked = operation(Algorithm::Aes128Ctr, Direction::Encrypt, 1 << 20);
    let expected = alone(&*CpuEngine::new().open(&params(Algorithm::Aes128Ctr)).unwrap(), asked.clone());
    let mut done = all(&manager, vec![(session, asked)]).pop().unwrap();
    assert!(done == expected);
    assert!(gpu.batches.load(Ordering::SeqCst) > 0, "it was given a part");
    // It writes to its piece yet, which is nobody's any more.
    done.output.fill(0x11);
    gpu.open_gate();
    assert!(manager.shutdown(HANG));
    assert!(done.output.iter().all(|&byte| byte == 0x11));
}

#[test]
fn packs_of_several_sessions_and_lengths_come_back_as_they_should() {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    for prefer in ["latency", "throughput", "cpu-free", "energy"] {
        let (manager, gpu) = manager(prefer);
        let algorithms = [Algorithm::Aes128Ctr, Algorithm::Aes256Gcm];
        let sessions: Vec<_> =
            (0..8).map(|n| (algorithms[n % 2], manager.open(n as u32 / 2, params(algorithms[n % 2])).unwrap())).collect();
        let requests: Vec<_> = (0..400)
            .map(|n| {
                let (algorithm, session) = sessions[n % 8];
                (session, operation(algorithm, Direction::Encrypt, [0, 1, 15, 16, 17, 100, 4096, 5000, 70_001][n % 9]))
            })
            .collect();
        let asked: Vec<_> = requests.iter().map(|(_, operation)| operation.clone()).collect();
        let done = all(&manager, requests);
        for (n, (done, asked)) in done.into_iter().zip(asked).enumerate() {
            let reference = CpuEngine::new().open(&params(sessions[n % 8].0)).unwrap();
            assert!(done == alone(&*reference, asked), "{prefer}, request {n}");
        }
        MOST.fetch_max(gpu.batch_seen_max.load(Ordering::SeqCst), Ordering::SeqCst);
        assert!(manager.shutdown(HANG));
    }
    let most = MOST.load(Ordering::SeqCst);
    assert!((2..=64).contains(&most), "the largest pack had {most}");
}
