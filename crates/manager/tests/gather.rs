//! Requests of threads that do not wait for them: they gather, and every one ends once.

mod common;

use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, OwnedOperation, SessionParams};
use bywash_manager::{Completion, Manager, SessionId};
use common::{HANG, Mood, Moody, ctr, done, manager, operation, refill};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

fn wide(workers: usize) -> (Arc<Moody>, Arc<Manager>) {
    let engine = Arc::new(Moody::new("wide").workers(workers).lanes(8));
    let manager = manager(std::slice::from_ref(&engine), |_| {});
    (engine, manager)
}

fn ctr_256() -> SessionParams {
    SessionParams::new(Algorithm::Aes256Ctr, Key::Symmetric((&[5; 32]).into())).unwrap()
}

fn gather(manager: &Manager, session: SessionId, operation: OwnedOperation, tell: &Sender<Completion>) {
    let tell = tell.clone();
    manager.gather(session, operation, Box::new(move |completion| tell.send(completion).unwrap()));
}

fn wait_until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < HANG, "it never came to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn ends(heard: &Receiver<Completion>, count: usize) -> Vec<Completion> {
    (0..count).map(|_| heard.recv_timeout(HANG).unwrap()).collect()
}

#[test]
fn what_comes_during_a_batch_shares_the_next_and_its_threads_go_on() {
    let (engine, manager) = wide(1);
    assert_eq!((manager.lanes(Algorithm::Aes128Ctr), manager.lanes(Algorithm::X25519)), (8, 8));
    let session = manager.open(1, ctr()).unwrap();
    let (tell, heard) = channel();
    engine.set(Mood::Stalls);
    std::thread::scope(|scope| {
        scope.spawn(|| gather(&manager, session, operation(0, 100), &tell));
        wait_until(|| engine.batches.load(SeqCst) == 1);
        // None of these blocks, or the gate would never be opened.
        (1..21).for_each(|seed| gather(&manager, session, operation(seed, 100), &tell));
        engine.set(Mood::Good);
        engine.open_gate();
    });
    let ended = ends(&heard, 21);
    for Completion { operation, outcome, .. } in ended {
        assert_eq!(outcome.unwrap().written, 100);
        assert_eq!(operation.output, done(operation.clone()).output);
    }
    assert_eq!((engine.operations.load(SeqCst), engine.batches.load(SeqCst)), (21, 4), "1, 8, 8 and 4");
    assert_eq!(engine.inside_max.load(SeqCst), 1);
    assert!(manager.shutdown(HANG));
}

#[test]
fn many_threads_are_answered_once_each_whatever_the_engine_does() {
    for mood in [Mood::Good, Mood::Fails, Mood::Panics] {
        let (engine, manager) = wide(2);
        let session = manager.open(1, ctr()).unwrap();
        engine.set(mood);
        let (tell, heard) = channel();
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (manager, tell) = (&manager, tell.clone());
                scope.spawn(move || (0..100).for_each(|seed| gather(manager, session, operation(thread * 100 + seed, 10), &tell)));
            }
        });
        let ended = ends(&heard, 1600);
        assert!(ended.iter().all(|end| end.outcome.is_ok() == (mood == Mood::Good)), "{mood:?}");
        assert!(heard.try_recv().is_err());
        assert!(engine.inside_max.load(SeqCst) <= 2 && engine.batch_seen_max.load(SeqCst) <= 8);
        assert!(manager.shutdown(HANG));
    }
}

#[test]
fn bad_requests_and_late_ones_are_refused() {
    let (_, manager) = wide(1);
    let session = manager.open(1, ctr()).unwrap();
    let (tell, heard) = channel();
    let mut wrong = operation(1, 10);
    wrong.iv = vec![0; 3];
    gather(&manager, session, wrong, &tell);
    manager.close(session).unwrap();
    gather(&manager, session, operation(2, 10), &tell);
    let outcomes: Vec<_> = ends(&heard, 2).into_iter().map(|end| end.outcome.unwrap_err()).collect();
    assert!(matches!(outcomes[..], [Error::IvLength { .. }, Error::NoSession { .. }]), "{outcomes:?}");
    let session = manager.open(1, ctr()).unwrap();
    assert!(manager.shutdown(HANG));
    gather(&manager, session, operation(3, 10), &tell);
    assert!(ends(&heard, 1)[0].outcome.is_err());
}

/// One is computed until the engine's gate is opened, and three gather behind it.
fn gather_behind_one<'s>(scope: &'s Scope<'s, '_>, engine: &Moody, manager: &'s Manager, session: SessionId, tell: &'s Sender<Completion>) {
    engine.set(Mood::Stalls);
    scope.spawn(move || gather(manager, session, operation(0, 10), tell));
    wait_until(|| engine.batches.load(SeqCst) == 1);
    (1..4).for_each(|seed| gather(manager, session, operation(seed, 10), tell));
}

#[test]
fn a_shutdown_ends_what_has_gathered() {
    let (engine, manager) = wide(1);
    let session = manager.open(1, ctr()).unwrap();
    let (tell, heard) = channel();
    std::thread::scope(|scope| {
        gather_behind_one(scope, &engine, &manager, session, &tell);
        scope.spawn(|| assert!(manager.shutdown(HANG)));
        engine.set(Mood::Good);
        engine.open_gate();
    });
    assert_eq!(ends(&heard, 4).len(), 4, "done or refused, each has its end");
}

#[test]
fn a_drain_waits_for_what_has_gathered() {
    let (engine, manager) = wide(1);
    let session = manager.open(1, ctr()).unwrap();
    let (tell, heard) = channel();
    std::thread::scope(|scope| {
        gather_behind_one(scope, &engine, &manager, session, &tell);
        let drain = scope.spawn(|| manager.drain(HANG));
        let (probe, refused) = channel();
        wait_until(|| {
            let probe = probe.clone();
            manager.submit(session, operation(9, 10), Box::new(move |end| probe.send(end.outcome.is_err()).unwrap()));
            refused.try_recv() == Ok(true)
        });
        engine.set(Mood::Good);
        engine.open_gate();
        assert!(drain.join().unwrap());
        assert_eq!(heard.try_iter().filter(|end| end.outcome.is_ok()).count(), 4, "told before it returned");
    });
}

#[test]
fn what_gathers_is_led_while_the_engine_never_runs_out_of_other_work() {
    let (_, manager) = wide(1);
    let (first, second) = (manager.open(1, ctr()).unwrap(), manager.open(1, ctr_256()).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    (0..4).for_each(|_| refill(&manager, first, &stop, || ()));
    let (tell, ended) = channel();
    for thread in 0..6 {
        let (manager, tell, session) = (manager.clone(), tell.clone(), if thread % 2 == 0 { first } else { second });
        std::thread::spawn(move || {
            for seed in 0..50 {
                let (one, heard) = channel();
                gather(&manager, session, operation(seed, 10), &one);
                heard.recv().unwrap().outcome.unwrap();
            }
            tell.send(()).unwrap();
        });
    }
    let count = (0..6).filter(|_| ended.recv_timeout(Duration::from_secs(20)).is_ok()).count();
    stop.store(true, SeqCst);
    assert_eq!(count, 6, "some wait for a thread that has other things to do");
    assert!(manager.shutdown(HANG));
}

#[test]
fn who_waits_for_a_short_request_computes_no_long_one_of_somebody_elses() {
    let manager = manager(&[Arc::new(Moody::new("narrow").workers(1))], |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (caller, ended, by_caller) = (std::thread::current().id(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (all, here) = (ended.clone(), by_caller.clone());
    let note = move || {
        here.fetch_add(usize::from(std::thread::current().id() == caller), SeqCst);
        all.fetch_add(1, SeqCst);
        // Meanwhile the caller has the engine for itself, and is met in the middle of a request of its own.
        std::thread::sleep(Duration::from_micros(200));
    };
    refill(&manager, session, &stop, note);
    while ended.load(SeqCst) < 200 {
        let OwnedOperation { iv, mut input, .. } = operation(1, 32 << 10);
        let data = Data::InPlace(&mut input);
        manager.run(session, &mut Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut [] }).unwrap();
    }
    stop.store(true, SeqCst);
    assert!(manager.shutdown(HANG));
    assert_eq!(by_caller.load(SeqCst), 0);
}
