//! Calibration of the CPU engine, and the cache: kept, used again, never trusted blindly.

use bywash_core::{Algorithm, Engine};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::calibrate::{BUDGET, load_or_measure, measure};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn every_algorithm_of_the_engine_gets_a_curve() {
    let engine = CpuEngine::new();
    let sheet = measure(&engine, engine.capabilities(), BUDGET);
    for &algorithm in engine.capabilities() {
        let curve = sheet.curve(algorithm).unwrap_or_else(|| panic!("{algorithm} was not measured"));
        assert!(curve.points.iter().all(|&(_, ns)| ns > 0.0), "{algorithm}: {curve:?}");
        assert_eq!(curve.points.len() == 1, algorithm.is_public_key(), "{algorithm}");
    }
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
