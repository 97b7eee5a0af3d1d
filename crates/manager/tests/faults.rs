//! Engines that fail, panic and stall: every request ends exactly once, with the right bytes or a precise error.

mod common;

use bywash_core::{Data, Direction, Error, Operation};
use bywash_manager::{Completion, Manager, SessionId};
use common::{HANG, Mood, Moody, ctr, done, manager, operation};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// A bound that is meant to be reached.
const SOON: Duration = Duration::from_millis(50);
/// A bound that only the stalled engine is meant to reach, on a busy machine too.
const STALL: Duration = Duration::from_secs(1);

fn submit(manager: &Manager, session: SessionId, seeds: std::ops::Range<u64>) -> Receiver<(u64, Completion)> {
    let (tell, told) = mpsc::channel();
    for seed in seeds {
        let tell = tell.clone();
        manager.submit(session, operation(seed, 100), Box::new(move |completion| tell.send((seed, completion)).unwrap()));
    }
    told
}

/// All completions are there, right, and there is not one more.
fn expect_right(told: &Receiver<(u64, Completion)>, count: usize) {
    for _ in 0..count {
        let (seed, completion) = told.recv_timeout(HANG).expect("a completion is missing");
        completion.outcome.unwrap();
        assert_eq!(completion.operation, done(operation(seed, 100)));
    }
    assert!(told.recv_timeout(Duration::ZERO).is_err(), "a completion too many");
}

#[test]
fn requests_of_a_broken_engine_are_done_by_another() {
    for mood in [Mood::Fails, Mood::Panics, Mood::NoSessions] {
        for distant in [false, true] {
            let broken = Moody::new("broken");
            let broken = if distant { broken.distant() } else { broken }.in_mood(mood);
            let sound = Moody::new("sound").in_mood(Mood::Good);
            let manager = manager(&[broken.clone(), sound.clone()], |config| config.probation = Duration::from_millis(1));
            let session = manager.open(1, ctr()).unwrap();
            let told = submit(&manager, session, 0..100);
            expect_right(&told, 100);
            for seed in 0..50 {
                let mut own = operation(seed, 100);
                let end = manager.run(session, &mut own.borrow()).unwrap();
                assert_eq!(manager.engine_name(end.engine), "sound");
                assert_eq!(own, done(operation(seed, 100)));
            }
            assert_eq!(sound.operations.load(Ordering::SeqCst), 150, "each exactly once");
        }
    }
}

#[test]
fn work_in_place_survives_an_engine_that_spoils_it() {
    let broken = Moody::new("broken").in_mood(Mood::Fails);
    let sound = Moody::new("sound").in_mood(Mood::Good);
    let manager = manager(&[broken.clone(), sound], |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let mut data = operation(9, 5000).input.to_vec();
    let wanted = done(operation(9, 5000)).output;
    let iv = operation(9, 0).iv;
    let mut run = Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data: Data::InPlace(&mut data), tag: &mut [] };
    manager.run(session, &mut run).unwrap();
    assert_eq!(data, *wanted);
    assert_eq!(broken.operations.load(Ordering::SeqCst), 1, "it was tried");
}

#[test]
fn with_no_engine_left_the_error_names_the_last() {
    for mood in [Mood::Fails, Mood::Panics] {
        let broken = Moody::new("broken").in_mood(mood);
        let manager = manager(std::slice::from_ref(&broken), |_| {});
        let session = manager.open(1, ctr()).unwrap();
        for seed in 0..10 {
            let error = manager.run(session, &mut operation(seed, 10).borrow()).unwrap_err();
            assert!(matches!(&error, Error::EngineFailed { engine, .. } if engine == "broken"), "{error}");
        }
        let told = submit(&manager, session, 0..10);
        for _ in 0..10 {
            let (seed, completion) = told.recv_timeout(HANG).unwrap();
            assert!(matches!(completion.outcome, Err(Error::EngineFailed { .. })));
            assert_eq!(completion.operation.input, operation(seed, 100).input, "the input comes back");
        }
        broken.set(Mood::Good);
        manager.run(session, &mut operation(1, 10).borrow()).expect("the last engine up stays up");
    }
}

#[test]
fn a_stalled_engine_loses_its_requests_and_its_late_results_are_dropped() {
    let stalled = Moody::new("stalled").distant().in_mood(Mood::Stalls);
    let sound = Moody::new("sound").in_mood(Mood::Good);
    let manager = manager(&[stalled.clone(), sound], |config| config.stall_bound = STALL);
    let session = manager.open(1, ctr()).unwrap();
    let told = submit(&manager, session, 0..40);
    let mut own = operation(77, 100);
    manager.run(session, &mut own.borrow()).unwrap();
    assert_eq!(own, done(operation(77, 100)));
    expect_right(&told, 40);
    let status = manager.snapshot().engines.remove(0);
    assert!(status.stuck > 0, "{status:?}");
    stalled.set(Mood::Good);
    stalled.open_gate();
    while manager.snapshot().engines[0].stuck > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(told.recv_timeout(SOON).is_err(), "the late result was told too");
    assert!(manager.shutdown(HANG));
}

#[test]
fn a_lone_stalled_engine_ends_in_a_timeout() {
    let stalled = Moody::new("stalled").distant().workers(1).in_mood(Mood::Stalls);
    let manager = manager(std::slice::from_ref(&stalled), |config| config.stall_bound = STALL);
    let session = manager.open(1, ctr()).unwrap();
    let error = manager.run(session, &mut operation(1, 10).borrow()).unwrap_err();
    assert!(error.to_string().contains("engine 'stalled'"), "{error}");
    assert!(matches!(error, Error::Timeout { .. }));
    stalled.set(Mood::Good);
    manager.run(session, &mut operation(1, 10).borrow()).expect("another thread takes the stuck one's place");
    stalled.open_gate();
    assert!(manager.shutdown(HANG));
}

#[test]
fn a_request_that_is_never_dispatched_times_out() {
    let stalled = Moody::new("stalled").distant().workers(1).in_mood(Mood::Stalls);
    let manager = manager(std::slice::from_ref(&stalled), |config| config.request_bound = SOON);
    let session = manager.open(1, ctr()).unwrap();
    let told = submit(&manager, session, 0..3);
    for _ in 0..2 {
        let (_, completion) = told.recv_timeout(HANG).unwrap();
        assert!(matches!(completion.outcome, Err(Error::Timeout { .. })));
    }
    stalled.open_gate();
    expect_right(&told, 1);
}

#[test]
fn an_engine_that_goes_on_failing_is_taken_down_and_tried_again() {
    let broken = Moody::new("broken").in_mood(Mood::Fails);
    let sound = Moody::new("sound").in_mood(Mood::Good);
    let manager = manager(&[broken.clone(), sound], |config| config.probation = Duration::from_secs(3600));
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..20 {
        manager.run(session, &mut operation(seed, 10).borrow()).unwrap();
    }
    assert_eq!(broken.batches.load(Ordering::SeqCst), 3, "then it was down");
    assert!(!manager.snapshot().engines[0].up);

    let again = self::manager(std::slice::from_ref(&broken), |_| {});
    assert!(again.snapshot().engines[0].up, "a new manager judges anew");
    let sound = Moody::new("sound").in_mood(Mood::Good);
    let manager = self::manager(&[broken.clone(), sound], |config| config.probation = Duration::from_millis(1));
    let session = manager.open(1, ctr()).unwrap();
    let submitted = submit(&manager, session, 0..20);
    expect_right(&submitted, 20);
    broken.set(Mood::Good);
    for seed in 0.. {
        let end = manager.run(session, &mut operation(seed, 10).borrow()).unwrap();
        if manager.engine_name(end.engine) == "broken" {
            break;
        }
        assert!(seed < 100_000, "it was never tried again");
        std::thread::sleep(Duration::from_millis(1));
    }
}
