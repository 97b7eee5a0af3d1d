//! Requests that are handed over while a thread of the manager's decides, and are left to it: each ends once, whatever else happens.

mod common;

use bywash_core::Error;
use bywash_manager::{Manager, SessionId};
use common::{HANG, Mood, Moody, ctr, manager, operation};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

const EACH: usize = 5_000;
const THREADS: usize = 3;

fn managers() -> [Arc<Manager>; 3] {
    let alone = |engine: Moody| manager(&[engine.in_mood(Mood::Good)], |_| ());
    let both = [Moody::new("cpu").in_mood(Mood::Good), Moody::new("gpu").distant().lanes(64).in_mood(Mood::Good)];
    [
        alone(Moody::new("cpu")),
        alone(Moody::new("gpu").distant().lanes(64)),
        manager(&both, |config| config.policy = "mediator".parse().unwrap()),
    ]
}

/// Hands over as fast as it can, with small texts and long ones; the numbers that it was given.
fn hand_over(manager: &Manager, session: SessionId, ended: &Arc<AtomicUsize>, failed: &Arc<AtomicUsize>) -> Vec<u64> {
    hand_over_some(manager, session, ended, failed, EACH)
}

fn hand_over_some(manager: &Manager, session: SessionId, ended: &Arc<AtomicUsize>, failed: &Arc<AtomicUsize>, count: usize) -> Vec<u64> {
    let one = |number| {
        let (ended, failed) = (ended.clone(), failed.clone());
        let on_done = Box::new(move |completion: bywash_manager::Completion| {
            match completion.outcome {
                Ok(_) => {}
                Err(Error::Unavailable { .. } | Error::NoSession { .. }) => drop(failed.fetch_add(1, SeqCst)),
                Err(error) => panic!("{error}"),
            }
            ended.fetch_add(1, SeqCst);
        });
        manager.submit(session, operation(1, if number % 50 == 0 { 100_000 } else { 64 }), on_done).0
    };
    (0..count).map(one).collect()
}

#[test]
fn each_ends_once_and_has_a_number_of_its_own() {
    for manager in managers() {
        let session = manager.open(1, ctr()).unwrap();
        let (ended, failed) = (Arc::default(), Arc::default());
        let numbers: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| hand_over(&manager, session, &ended, &failed))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(manager.drain(HANG));
        assert_eq!((ended.load(SeqCst), failed.load(SeqCst)), (THREADS * EACH, 0));
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), THREADS * EACH);
        assert_eq!(manager.snapshot().in_flight, 0);
    }
}

#[test]
fn those_that_come_while_it_shuts_down_are_told_so() {
    for manager in managers() {
        let session = manager.open(1, ctr()).unwrap();
        let (ended, failed) = (Arc::default(), Arc::default());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| hand_over(&manager, session, &ended, &failed));
            }
            while ended.load(SeqCst) < EACH / 10 {
                thread::yield_now();
            }
            assert!(manager.shutdown(HANG));
        });
        assert_eq!(ended.load(SeqCst), THREADS * EACH, "each was told");
    }
}

/// A callback may wait for what it hands over itself, as long as another thread can compute it.
#[test]
fn a_callback_that_waits_for_another_request_is_not_waited_for() {
    for manager in managers() {
        let session = manager.open(1, ctr()).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            // Others decide meanwhile.
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let (ended, failed) = (Arc::default(), Arc::default());
                    let handed = hand_over(&manager, session, &ended, &failed).len();
                    assert!(manager.snapshot().threads > 0);
                    // What nobody waits for would become more and more.
                    while ended.load(SeqCst) < handed {
                        thread::yield_now();
                    }
                }
            });
            for _ in 0..200 {
                let (tell, told) = mpsc::channel();
                let inner = manager.clone();
                let on_done = move |_| {
                    let (within, answer) = mpsc::channel();
                    inner.submit(session, operation(1, 64), Box::new(move |_| within.send(()).unwrap()));
                    tell.send(answer.recv_timeout(HANG).is_ok()).unwrap();
                };
                manager.submit(session, operation(1, 64), Box::new(on_done));
                assert!(told.recv_timeout(2 * HANG).unwrap());
            }
            stop.store(true, SeqCst);
        });
        assert!(manager.shutdown(HANG));
    }
}

/// What was handed over before is done, whoever was to take it in.
#[test]
fn what_was_handed_over_before_a_drain_is_done() {
    for _ in 0..60 {
        for manager in managers() {
            let session = manager.open(1, ctr()).unwrap();
            let (ended, failed) = (Arc::default(), Arc::default());
            for _ in 0..50 {
                hand_over_some(&manager, session, &ended, &failed, 20);
            }
            assert!(manager.drain(HANG));
            assert_eq!((ended.load(SeqCst), failed.load(SeqCst)), (1000, 0));
        }
    }
}

/// A callback that is told that there is no such session may use the manager as any other.
#[test]
fn who_is_told_that_a_session_is_closed_may_open_another() {
    for manager in managers() {
        let session = manager.open(1, ctr()).unwrap();
        manager.close(session).unwrap();
        let (tell, told) = mpsc::channel();
        let inner = manager.clone();
        let on_done = move |completion: bywash_manager::Completion| {
            assert!(matches!(completion.outcome, Err(Error::NoSession { .. })));
            let another = inner.open(1, ctr()).unwrap();
            tell.send(inner.close(another).is_ok()).unwrap();
        };
        manager.submit(session, operation(1, 64), Box::new(on_done));
        assert!(told.recv_timeout(HANG).unwrap());
    }
}

/// Who hands over without end keeps nobody else from the manager, and not more is taken in than was done before.
#[test]
fn who_hands_over_without_end_keeps_nobody_out() {
    for manager in managers() {
        let session = manager.open(1, ctr()).unwrap();
        let stop = AtomicBool::new(false);
        let (ended, failed) = (Arc::default(), Arc::default());
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    hand_over_some(&manager, session, &ended, &failed, 10);
                }
            });
            (0..100).for_each(|_| drop(manager.snapshot()));
            assert!(manager.shutdown(HANG));
            stop.store(true, SeqCst);
        });
    }
}
