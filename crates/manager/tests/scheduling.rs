//! Who runs when: permits, batches, order, waiting, loading, threads.

mod common;

use bywash_core::{Algorithm, Time};
use bywash_manager::{EngineId, PolicyKind, RequestId};
use bywash_policy::{Decision, EngineInfo, Event, Policy};
use common::{HANG, Mood, Moody, ctr, done, manager, operation};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};

#[test]
fn an_engine_never_has_more_batches_than_workers() {
    for policy in [PolicyKind::Fifo, PolicyKind::Placement] {
        let engines = [Moody::new("one").workers(1).in_mood(Mood::Good), Moody::new("two").distant().in_mood(Mood::Good)];
        let manager = manager(&engines, |config| config.policy = policy.clone());
        let completions = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (manager, completions) = (&manager, completions.clone());
                scope.spawn(move || {
                    let session = manager.open(thread, ctr()).unwrap();
                    for seed in 0..200 {
                        let completions = completions.clone();
                        let count = Box::new(move |_| {
                            completions.fetch_add(1, Ordering::SeqCst);
                        });
                        manager.submit(session, operation(seed, 50), count);
                        let mut own = operation(seed, 300);
                        manager.run(session, &mut own.borrow()).unwrap();
                        assert_eq!(own, done(operation(seed, 300)));
                    }
                });
            }
        });
        assert!(manager.drain(HANG));
        assert_eq!(completions.load(Ordering::SeqCst), 1600);
        assert!(engines[0].inside_max.load(Ordering::SeqCst) <= 1);
        assert!(engines[1].inside_max.load(Ordering::SeqCst) <= 2);
        let operations: usize = engines.iter().map(|engine| engine.operations.load(Ordering::SeqCst)).sum();
        assert_eq!(operations, 3200);
        assert!(manager.snapshot().threads <= 4, "3 workers and the timer");
    }
}

#[test]
fn an_idle_manager_has_no_thread() {
    let engine = Moody::new("cpu").in_mood(Mood::Good);
    let manager = manager(&[engine], |_| {});
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..100 {
        manager.run(session, &mut operation(seed, 64).borrow()).unwrap();
    }
    assert_eq!(manager.snapshot().threads, 0, "lone callers need none");
    let (tell, told) = mpsc::channel();
    manager.submit(session, operation(1, 8), Box::new(move |_| tell.send(()).unwrap()));
    told.recv_timeout(HANG).unwrap();
    assert_eq!(manager.snapshot().threads, 2, "one worker, one timer");
}

#[test]
fn requests_of_several_threads_fill_the_lanes_of_one_batch() {
    for distant in [false, true] {
        let engine = Moody::new("lanes").workers(1).lanes(8);
        let engine = if distant { engine.distant() } else { engine }.in_mood(Mood::Stalls);
        let manager = manager(std::slice::from_ref(&engine), |_| {});
        let session = manager.open(1, ctr()).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| manager.run(session, &mut operation(0, 100).borrow()));
            while engine.batches.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let others: Vec<_> = (1..9)
                .map(|seed| {
                    let manager = &manager;
                    scope.spawn(move || {
                        let mut own = operation(seed, 100);
                        manager.run(session, &mut own.borrow()).unwrap();
                        assert_eq!(own, done(operation(seed, 100)));
                    })
                })
                .collect();
            while manager.snapshot().in_flight < 9 {
                std::thread::yield_now();
            }
            engine.open_gate();
            first.join().unwrap().unwrap();
            others.into_iter().for_each(|other| other.join().unwrap());
        });
        assert_eq!(engine.batch_seen_max.load(Ordering::SeqCst), 8, "eight waiting requests make one batch");
        assert_eq!(engine.batches.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn fifo_serves_submissions_in_their_order() {
    let engine = Moody::new("cpu").distant().workers(1).in_mood(Mood::Good);
    let manager = manager(&[engine], |_| {});
    let session = manager.open(1, ctr()).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let given: Vec<RequestId> = (0..500)
        .map(|seed| {
            let order = order.clone();
            manager.submit(session, operation(seed, 8), Box::new(move |completion| order.lock().unwrap().push(completion.id)))
        })
        .collect();
    assert!(manager.drain(HANG));
    assert_eq!(*order.lock().unwrap(), given);
}

#[test]
fn one_callers_flood_does_not_starve_another() {
    let engine = Moody::new("cpu").workers(1).in_mood(Mood::Good);
    let manager = manager(&[engine], |_| {});
    let flooding = Barrier::new(2);
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let session = manager.open(1, ctr()).unwrap();
            let (tell, told) = mpsc::sync_channel::<()>(10_000);
            for seed in 0.. {
                if stop.load(Ordering::SeqCst) == 1 {
                    break;
                }
                let tell = tell.clone();
                manager.submit(session, operation(seed, 2000), Box::new(move |_| tell.send(()).unwrap()));
                match seed {
                    99 => drop(flooding.wait()),
                    100.. => told.recv_timeout(HANG).unwrap(),
                    _ => {}
                }
            }
        });
        flooding.wait();
        let session = manager.open(2, ctr()).unwrap();
        for seed in 0..200 {
            manager.run(session, &mut operation(seed, 100).borrow()).expect("not starved into a time-out");
        }
        stop.store(1, Ordering::SeqCst);
    });
    assert!(manager.drain(HANG));
}

/// Gathers requests for a millisecond, loads a circuit first, then dispatches all in one batch.
struct Gather {
    waiting: VecDeque<RequestId>,
    since: Option<Time>,
    loaded: bool,
    asked: bool,
    busy: bool,
}

impl Policy for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }
    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => {
                self.waiting.push_back(request.id);
                self.since.get_or_insert(now);
            }
            Event::Cancelled(id) => self.waiting.retain(|&waiting| waiting != id),
            Event::Finished { .. } => self.busy = false,
            Event::Loaded(_) => self.loaded = true,
            _ => {}
        }
    }
    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        let due = self.since.map(|since| since + 1_000_000);
        match due {
            _ if self.waiting.is_empty() || self.busy => Decision::Idle,
            _ if !self.asked => {
                self.asked = true;
                Decision::Load(EngineId(0), vec![Algorithm::Aes128Ctr])
            }
            _ if !self.loaded => Decision::Idle,
            Some(due) if due > now => Decision::WaitUntil(due),
            _ => {
                batch.extend(self.waiting.drain(..));
                self.since = None;
                self.busy = true;
                Decision::Dispatch(EngineId(0))
            }
        }
    }
}

fn gather(_engines: &[EngineInfo]) -> Box<dyn Policy> {
    Box::new(Gather { waiting: VecDeque::new(), since: None, loaded: false, asked: false, busy: false })
}

#[test]
fn a_policy_may_wait_and_load() {
    let engine = Moody::new("board").in_mood(Mood::Good);
    let manager = manager(std::slice::from_ref(&engine), |config| config.policy = PolicyKind::Other(gather));
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..5 {
        let mut own = operation(seed, 100);
        manager.run(session, &mut own.borrow()).unwrap();
        assert_eq!(own, done(operation(seed, 100)));
    }
    assert_eq!(engine.loads.load(Ordering::SeqCst), 1);
    let (tell, told) = mpsc::channel();
    for seed in 0..20 {
        let tell = tell.clone();
        manager.submit(session, operation(seed, 8), Box::new(move |completion| tell.send(completion.outcome).unwrap()));
    }
    for _ in 0..20 {
        told.recv_timeout(HANG).unwrap().unwrap();
    }
}
