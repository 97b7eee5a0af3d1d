//! Sessions: refused when they must be, wiped when they end, never mistaken for one another.

mod common;

use bywash_core::{Algorithm, CostSheet, Engine, Error, Key, SessionParams};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Costs, Manager, ManagerConfig};
use common::{HANG, Mood, Moody, ctr, done, manager, operation};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn a_bad_key_is_refused_when_the_session_is_opened() {
    let manager = manager(&[Moody::new("cpu").in_mood(Mood::Good)], |_| {});
    // Not below the group's order: only an engine's arithmetic finds that out.
    let scalar = SessionParams::new(Algorithm::EcdsaP256Sign, Key::EcPrivate((&[0xFF; 32]).into())).unwrap();
    assert!(matches!(manager.open(1, scalar), Err(Error::BadKey { .. })));
    assert_eq!(manager.snapshot().sessions, 0);
}

#[test]
fn stale_numbers_are_refused() {
    let manager = manager(&[Moody::new("cpu").in_mood(Mood::Good)], |_| {});
    let first = manager.open(1, ctr()).unwrap();
    manager.close(first).unwrap();
    let second = manager.open(1, ctr()).unwrap();
    assert_eq!(first.number(), second.number(), "the place is used again");
    assert_ne!(first, second);
    assert!(matches!(manager.run(first, &mut operation(1, 8).borrow()), Err(Error::NoSession { .. })));
    assert!(matches!(manager.close(first), Err(Error::NoSession { .. })));
    let (tell, told) = mpsc::channel();
    manager.submit(first, operation(1, 8), Box::new(move |completion| tell.send(completion).unwrap()));
    let completion = told.recv_timeout(HANG).unwrap();
    assert!(matches!(completion.outcome, Err(Error::NoSession { .. })));
    assert_eq!(completion.operation, operation(1, 8), "the buffers come back");
    manager.run(second, &mut operation(1, 8).borrow()).unwrap();
}

#[test]
fn bad_operations_never_reach_an_engine() {
    let engine = Moody::new("cpu").in_mood(Mood::Good);
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let mut short = operation(1, 8);
    short.iv.pop();
    assert!(matches!(manager.run(session, &mut short.borrow()), Err(Error::IvLength { .. })));
    let (tell, told) = mpsc::channel();
    manager.submit(session, short, Box::new(move |completion| tell.send(completion).unwrap()));
    assert!(matches!(told.recv_timeout(HANG).unwrap().outcome, Err(Error::IvLength { .. })));
    assert_eq!(engine.batches.load(Ordering::SeqCst), 0);
}

#[test]
fn a_session_closed_in_flight_ends_its_requests_and_is_then_wiped() {
    let engine = Moody::new("slow").distant().workers(1).in_mood(Mood::Stalls);
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let (tell, told) = mpsc::channel();
    for seed in 0..5 {
        let tell = tell.clone();
        let keyed = engine.keyed.clone();
        let on_done = move |completion| tell.send((seed, completion, keyed.load(Ordering::SeqCst))).unwrap();
        manager.submit(session, operation(seed, 64), Box::new(on_done));
    }
    manager.close(session).unwrap();
    assert_eq!(engine.keyed.load(Ordering::SeqCst), 1, "still in use");
    engine.open_gate();
    let mut left = 1;
    for _ in 0..5 {
        let (seed, completion, keyed) = told.recv_timeout(HANG).unwrap();
        completion.outcome.unwrap();
        assert_eq!(completion.operation, done(operation(seed, 64)));
        left = keyed;
    }
    assert_eq!(left, 0, "wiped before the last end was told");
}

#[test]
fn a_client_that_leaves_takes_its_sessions_along() {
    let engine = Moody::new("cpu").in_mood(Mood::Good);
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    let of_two: Vec<_> = (0..50).map(|_| manager.open(2, ctr()).unwrap()).collect();
    let of_three = manager.open(3, ctr()).unwrap();
    assert_eq!(manager.close_client(2), 50);
    assert_eq!(manager.close_client(2), 0);
    assert_eq!((engine.keyed.load(Ordering::SeqCst), manager.snapshot().sessions), (1, 1));
    assert!(of_two.iter().all(|&id| manager.run(id, &mut operation(1, 8).borrow()).is_err()));
    manager.run(of_three, &mut operation(1, 8).borrow()).unwrap();
}

#[test]
fn drain_finishes_the_old_and_refuses_the_new() {
    let engine = Moody::new("slow").distant().workers(1).in_mood(Mood::Stalls);
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let (tell, told) = mpsc::channel();
    for seed in 0..3 {
        let tell = tell.clone();
        manager.submit(session, operation(seed, 8), Box::new(move |completion| tell.send(completion.outcome).unwrap()));
    }
    assert!(!manager.drain(Duration::from_millis(20)), "three are still there");
    assert!(matches!(manager.run(session, &mut operation(1, 8).borrow()), Err(Error::Unavailable { .. })));
    assert!(matches!(manager.open(1, ctr()), Err(Error::Unavailable { .. })));
    engine.open_gate();
    assert!(manager.drain(HANG));
    assert!(told.try_iter().take(3).all(|outcome| outcome.is_ok()), "the old were told before drain returned");
    assert!(manager.shutdown(HANG));
    assert_eq!((manager.snapshot().threads, engine.keyed.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn a_manager_that_is_dropped_ends_what_is_queued() {
    let engine = Moody::new("slow").distant().workers(1).in_mood(Mood::Stalls);
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let (tell, told) = mpsc::channel();
    for seed in 0..4 {
        let tell = tell.clone();
        manager.submit(session, operation(seed, 8), Box::new(move |completion| tell.send(completion.outcome).unwrap()));
    }
    drop((manager, tell));
    engine.open_gate();
    let outcomes: Vec<_> = (0..4).map(|_| told.recv_timeout(HANG).unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "the one that ran: {outcomes:?}");
    assert!(told.recv_timeout(HANG).is_err(), "all callbacks are gone");
}

#[test]
fn engines_are_checked() {
    let new = |engines: Vec<Arc<dyn Engine>>| {
        let mut config = ManagerConfig::new(engines);
        config.costs = Costs::Given(vec![CostSheet::empty("cpu")]);
        Manager::new(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(new(vec![]).contains("1 to 64"));
    let cpu = || Arc::new(CpuEngine::new());
    assert!(new(vec![cpu(), cpu()]).contains("two engines are named 'cpu'"));
}
