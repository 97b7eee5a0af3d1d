//! Calibration of the CPU engine, and the cache: kept, used again, never trusted blindly.

use bywash_core::Place;
use bywash_core::route::route_index;
use bywash_core::{Algorithm, Engine, Keyed, Result, SessionParams, Task};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::calibrate::{BUDGET, SIZES, Thorough, keep, load_or_measure, load_or_measure_with, measure, measure_full};
use bywash_manager::{Costs, Manager, ManagerConfig};
use bywash_policy::estimate::Estimate;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn every_algorithm_of_the_engine_gets_a_curve() {
    let engine = CpuEngine::new();
    let sheet = measure(&engine, engine.capabilities(), BUDGET);
    for &algorithm in engine.capabilities() {
        let curve = sheet.curve(algorithm).unwrap_or_else(|| panic!("{algorithm} was not measured"));
        assert!(curve.points.iter().all(|&(_, ns)| ns > 0.0), "{algorithm}: {curve:?}");
        assert_eq!(curve.points.len() == 1, algorithm.is_public_key(), "{algorithm}");
        let batches: Vec<_> = curve.batch.iter().map(|&(operations, _)| operations as usize).collect();
        let lanes = engine.lanes(algorithm);
        assert_eq!(batches, if lanes > 1 { vec![lanes] } else { vec![] }, "{algorithm}: a full batch is measured where there are lanes");
    }
}

/// Even where there was no time at all: what is cheap is not judged by its first, cold run.
#[test]
fn cheap_operations_are_run_more_than_once() {
    let engine = Cold::new(Duration::ZERO);
    measure(&engine, &[Algorithm::Aes128Gcm], Duration::ZERO);
    assert!(engine.runs() > SIZES.len() as u32, "{} runs for {} sizes", engine.runs(), SIZES.len());
}

/// Relations that hold on any processor; with time enough that a busy machine spoils some runs of an operation, not all.
#[test]
fn figures_are_sane() {
    let engine = CpuEngine::new();
    let sheet = measure(&engine, engine.capabilities(), 10 * BUDGET);
    for &algorithm in engine.capabilities() {
        let curve = sheet.curve(algorithm).unwrap();
        assert!(curve.setup_ns >= 0.0 && curve.points.is_sorted_by(|a, b| a.0 < b.0), "{algorithm}: {curve:?}");
        if let [(_, short), .., (_, long)] = curve.points[..] {
            assert!(long > 4.0 * short, "{algorithm}: 128 KiB cost much more than 16 bytes: {curve:?}");
        }
    }
    let ns = |algorithm| sheet.curve(algorithm).unwrap().points[0].1;
    for (dear, cheap) in [
        (Algorithm::Rsa4096Private, Algorithm::Rsa2048Private),
        (Algorithm::Rsa2048Private, Algorithm::Rsa2048Public),
        (Algorithm::Rsa2048Private, Algorithm::EcdsaP256Sign),
    ] {
        assert!(ns(dear) > ns(cheap), "{dear} costs {} ns, {cheap} {} ns", ns(dear), ns(cheap));
    }
}

/// An engine whose first run is slow, as on a processor that wakes up.
struct Cold {
    engine: CpuEngine,
    first: Duration,
    runs: AtomicU32,
}

impl Cold {
    fn new(first: Duration) -> Self {
        Cold { engine: CpuEngine::new(), first, runs: AtomicU32::new(0) }
    }
    fn runs(&self) -> u32 {
        self.runs.load(Relaxed)
    }
}

impl Engine for Cold {
    fn name(&self) -> &str {
        "cold"
    }
    fn describe(&self) -> String {
        "slow once".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.engine.capabilities()
    }
    fn workers(&self) -> usize {
        1
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.engine.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        if self.runs.fetch_add(1, Relaxed) == 0 {
            std::thread::sleep(self.first);
        }
        self.engine.run(batch);
    }
}

#[test]
fn a_cold_start_does_not_enter_the_sheet() {
    let engine = Cold::new(Duration::from_millis(100));
    let first = [Algorithm::Rsa2048Private, Algorithm::EcdhP256, Algorithm::X25519, Algorithm::EcdsaP256Sign];
    // The first run alone takes longer than its share, but not longer than the whole budget.
    let sheet = measure(&engine, &first, Duration::from_millis(300));
    let ns = sheet.curve(Algorithm::Rsa2048Private).unwrap().points[0].1;
    assert!(ns < 100e6, "{ns} ns is the cold run's time");
}

#[test]
fn a_sheet_is_kept_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("not/there/yet");
    let (first, notes) = load_or_measure(Some(&nested), &CpuEngine::new(), SHORT);
    assert!(notes.iter().any(|note| note.contains("kept in")), "{notes:?}");
    let (second, notes) = load_or_measure(Some(&nested), &CpuEngine::new(), SHORT);
    assert_eq!((first, Vec::<String>::new()), (second, notes));
    assert_eq!(std::fs::read_dir(&nested).unwrap().count(), 1, "no draft is left behind");
}

/// A version that knew fewer algorithms, no segments and no broker: what it measured counts, what it lacks is measured once.
#[test]
fn a_sheet_of_an_earlier_version_is_used_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = CpuEngine::new();
    let (mut old, _) = load_or_measure(Some(folder.path()), &engine, SHORT);
    old.algorithms.remove(Algorithm::X25519.name());
    old.algorithms.get_mut(Algorithm::Sha256.name()).unwrap().points = vec![(16, 4321.0), (1024, 8642.0)];
    keep(folder.path(), &engine, &old).unwrap();
    let (sheet, notes) = load_or_measure(Some(folder.path()), &engine, SHORT);
    assert!(notes.len() == 1 && notes[0].contains("lacked: X25519"), "{notes:?}");
    assert_eq!(sheet.estimate_ns(Algorithm::Sha256, 16), Some(4321.0), "what was measured is not measured again");
    assert!(sheet.curve(Algorithm::X25519).is_some());
    assert_eq!(load_or_measure(Some(folder.path()), &engine, SHORT), (sheet, Vec::new()), "and it was kept");
}

/// Legacy ciphers are measured for who asks, kept, and there from then on; nobody else pays for them.
#[test]
fn legacy_ciphers_are_on_a_sheet_once_somebody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let engine = CpuEngine::new();
    let (plain, _) = load_or_measure(Some(folder.path()), &engine, SHORT);
    assert!(plain.curve(Algorithm::DesCbc).is_none());
    let asked = [Algorithm::DesCbc, Algorithm::Rc6_128Ecb];
    let (sheet, notes) = load_or_measure_with(&asked, Some(folder.path()), &engine, SHORT);
    assert!(notes.len() == 1 && notes[0].contains("DES-CBC") && notes[0].contains("RC6-128-ECB"), "{notes:?}");
    assert!(asked.iter().all(|&algorithm| sheet.curve(algorithm).is_some()) && sheet.curve(Algorithm::DesEcb).is_none());
    assert_eq!(sheet.algorithms.len(), plain.algorithms.len() + 2);
    assert_eq!(load_or_measure(Some(folder.path()), &engine, SHORT), (sheet, Vec::new()), "it stays");
    let (anew, _) = load_or_measure_with(&asked, None, &engine, SHORT);
    assert!(asked.iter().all(|&algorithm| anew.curve(algorithm).is_some()));
}

/// The manager that finds a thorough sheet routes by its segments.
#[test]
fn a_router_decides_by_a_sheet_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let engine = CpuEngine::new();
    let (mut sheet, _) = load_or_measure(Some(folder.path()), &engine, SHORT);
    let curve = sheet.algorithms.get_mut(Algorithm::Aes128Ctr.name()).unwrap();
    curve.points = vec![(16, 10.0), (1 << 24, 1e7)];
    // At 1 MiB a cliff: from there on a card pays, and not below.
    curve.segments = vec![(0, 10.0, 0.5), (1 << 20, 1e8, 100.0)];
    keep(folder.path(), &engine, &sheet).unwrap();
    let card =
        "engine = \"card\"\nmodelled = true\nhandover_ns = 1e7\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 10.0], [16777216, 1e7]]\n";
    let file = folder.path().join("card.toml");
    std::fs::write(&file, card).unwrap();
    let engines = ["cpu".to_owned(), format!("board:{}", file.display())].map(|name| name.parse().unwrap());
    let costs = Costs::Calibrate { cache: Some(folder.path().to_owned()), budget: SHORT };
    let manager = Manager::new(ManagerConfig { costs, ..ManagerConfig::new(bywash_manager::find(&engines).unwrap().present) }).unwrap();
    let routes = manager.routes(None, 0.0);
    let place = |bytes| routes[route_index(Algorithm::Aes128Ctr, bytes)];
    assert_eq!([1 << 10, 1 << 19, 1 << 20, 1 << 23].map(place), [Place::Here, Place::Here, Place::Queue, Place::Queue]);
}

#[test]
fn a_sheet_that_is_damaged_or_a_stranger_is_measured_anew() {
    let folder = tempfile::tempdir().unwrap();
    load_or_measure(Some(folder.path()), &CpuEngine::new(), SHORT);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read_to_string(&file).unwrap();
    let damaged = [
        (good.replace("# processor: ", "# processor: other "), "another machine"),
        (good.replace("points = ", "points = ["), "line"),
        (good.replace("engine = \"cpu\"", "engine = \"gpu\""), "not this engine's"),
        (String::new(), "another machine"),
    ];
    for (text, said) in damaged {
        std::fs::write(&file, text).unwrap();
        let (sheet, notes) = load_or_measure(Some(folder.path()), &CpuEngine::new(), SHORT);
        assert!(notes[0].contains(said) && notes[0].contains("measured anew"), "{notes:?}");
        assert!(sheet.curve(Algorithm::X25519).is_some());
    }
    let (_, notes) = load_or_measure(Some(folder.path()), &CpuEngine::new(), SHORT);
    assert!(notes.is_empty(), "mended: {notes:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_no_failure() {
    let (sheet, notes) = load_or_measure(Some("/dev/null/x".as_ref()), &CpuEngine::new(), SHORT);
    assert!(sheet.curve(Algorithm::Sha256).is_some());
    assert!(notes.iter().any(|note| note.contains("not kept in /dev/null/x")), "{notes:?}");
}

/// A device that computes in launches: so long for each, and so long for each operation in it. For some of the launch, and for each operation, it keeps the processor busy.
struct Launching(CpuEngine);

const LAUNCH: Duration = Duration::from_micros(400);
const EACH: Duration = Duration::from_micros(40);
const BUSY: Duration = Duration::from_micros(100);
const BUSY_EACH: Duration = Duration::from_micros(20);

/// Processor time of this thread.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Engine for Launching {
    fn name(&self) -> &str {
        "launching"
    }
    fn describe(&self) -> String {
        "for tests".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        &[Algorithm::Aes128Ctr]
    }
    fn workers(&self) -> usize {
        2
    }
    fn batch_max(&self) -> usize {
        1024
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.0.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        let (begun, count) = (Instant::now(), batch.len() as u32);
        let enough = busy() + BUSY + BUSY_EACH * count;
        self.0.run(batch);
        while busy() < enough {
            std::hint::spin_loop();
        }
        std::thread::sleep((LAUNCH + EACH * count).saturating_sub(begun.elapsed()));
    }
}

/// A launch of many is not free because it has room for them: whoever weighs it against a processor knows what each adds.
#[test]
fn launches_are_measured_as_a_hand_over_and_what_each_adds() {
    let engine = Launching(CpuEngine::new());
    let quick = measure(&engine, engine.capabilities(), BUDGET);
    let thorough = Thorough { time: Duration::from_millis(1), begin: &mut |_| (), go_on: &|| true };
    let full = measure_full(&engine, engine.capabilities(), None, thorough);
    for sheet in [quick, full] {
        assert_eq!(sheet.lanes, 2, "one for each worker");
        assert!(sheet.handover_ns >= (LAUNCH + EACH).as_nanos() as f64, "{sheet:?}");
        // Eight operations of 128 KiB fill a launch.
        let (host, per_byte) = ((BUSY + BUSY_EACH).as_nanos() as f64, 7.0 * BUSY_EACH.as_nanos() as f64 / f64::from(1 << 20));
        assert!((host..=sheet.handover_ns).contains(&sheet.host_ns), "{sheet:?}");
        assert!(sheet.host_ns_per_byte > per_byte / 2.0, "{sheet:?}");
        let estimate = Estimate::new(sheet, 2);
        let [one, many] = [1, 100].map(|count| estimate.batch_ns(Algorithm::Aes128Ctr, 16, count));
        assert!(many > one + 50.0 * EACH.as_nanos() as f64, "{one} {many}");
    }
}
