//! Requests that take less than waking a thread: computed by whoever hands them over, as far as nothing is lost by it.

mod common;

use bywash_core::{Algorithm, CostCurve, CostSheet};
use bywash_manager::{Costs, Manager, SessionId};
use common::{HANG, Mood, Moody, ctr, manager, operation};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};

/// A manager over one engine of which every operation is believed to take so long.
fn over(engine: Moody, ns: f64) -> (Arc<Manager>, SessionId) {
    let mut sheet = CostSheet::empty("cpu");
    sheet.algorithms.insert(Algorithm::Aes128Ctr.name().to_owned(), CostCurve { points: vec![(0, ns)], ..CostCurve::default() });
    let manager = manager(&[engine.in_mood(Mood::Good)], |config| config.costs = Costs::Given(vec![sheet]));
    let session = manager.open(1, ctr()).unwrap();
    (manager, session)
}

/// Where a request of so many bytes ends that this thread hands over.
fn ends(manager: &Manager, session: SessionId, bytes: usize) -> ThreadId {
    let (tell, told) = mpsc::channel();
    manager.submit(session, operation(1, bytes), Box::new(move |_| tell.send(thread::current().id()).unwrap()));
    told.recv_timeout(HANG).unwrap()
}

#[test]
fn a_short_one_is_computed_here_and_wakes_nobody() {
    let (manager, session) = over(Moody::new("cpu"), 500.0);
    assert_eq!(ends(&manager, session, 64), thread::current().id());
    assert!(manager.snapshot().threads <= 1, "nobody but who keeps time");
}

#[test]
fn a_long_one_is_not() {
    let (manager, session) = over(Moody::new("cpu"), 1e6);
    assert_ne!(ends(&manager, session, 64), thread::current().id());
}

/// Whatever the estimate says: it knows nothing of associated data.
#[test]
fn one_that_is_not_small_is_not() {
    let (manager, session) = over(Moody::new("cpu"), 500.0);
    assert_ne!(ends(&manager, session, 1 << 20), thread::current().id());
}

#[test]
fn what_could_fail_to_answer_is_not() {
    let (manager, session) = over(Moody::new("cpu").distant(), 500.0);
    assert_ne!(ends(&manager, session, 64), thread::current().id());
}

/// Each callback hands over the next request: one within the other they would need a hundred times this stack.
#[test]
fn callbacks_that_hand_over_the_next_do_not_fill_the_stack() {
    let (manager, session) = over(Moody::new("cpu"), 500.0);
    let (tell, told) = mpsc::channel();
    let begin = {
        let manager = manager.clone();
        move || next(manager, session, 20_000, tell)
    };
    thread::Builder::new().stack_size(256 << 10).spawn(begin).unwrap().join().unwrap();
    told.recv_timeout(HANG).unwrap();
}

fn next(manager: Arc<Manager>, session: SessionId, left: usize, tell: mpsc::Sender<()>) {
    if left == 0 {
        return tell.send(()).unwrap();
    }
    let on = manager.clone();
    manager.submit(session, operation(1, 64), Box::new(move |_| next(on, session, left - 1, tell)));
}
