//! What a manager tells about its work: observers, counters, cost sheets, routes.

mod common;

use bywash_core::route::{ROUTES, route_index};
use bywash_core::{Algorithm, CostSheet, Place};
use bywash_manager::{Costs, Manager, ManagerConfig};
use common::{HANG, Mood, Moody, ctr, done, manager, operation};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[test]
fn observers_see_every_request_once() {
    let broken = Moody::new("broken").workers(1).in_mood(Mood::Good);
    let manager = manager(std::slice::from_ref(&broken), |_| {});
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    manager.observe(Arc::new(move |end| {
        assert!(end.arrival <= end.start && end.start <= end.done, "{end:?}");
        notes.lock().unwrap().push((end.request.id, end.request.client, end.request.bytes, end.engine.to_owned(), end.outcome.is_ok()));
    }));
    let session = manager.open(7, ctr()).unwrap();
    for seed in 0..30 {
        manager.submit(session, operation(seed, 40), Box::new(|_| {}));
        manager.run(session, &mut operation(seed, 40).borrow()).unwrap();
    }
    assert!(manager.run(session, &mut bywash_core::OwnedOperation { iv: vec![], ..operation(1, 8) }.borrow()).is_err());
    while manager.snapshot().in_flight > 0 {
        std::thread::yield_now();
    }
    broken.set(Mood::Fails);
    manager.run(session, &mut operation(1, 40).borrow()).unwrap_err();
    assert!(manager.drain(HANG));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 61, "30 submitted, 30 run, one failed; a refused one is no request");
    assert_eq!(seen.iter().map(|&(id, ..)| id).collect::<BTreeSet<_>>().len(), 61);
    assert!(seen.iter().all(|(_, client, bytes, engine, good)| (*client, *bytes) == (7, 40) && (engine == "broken") == *good));
    assert_eq!(seen.iter().filter(|seen| !seen.4).count(), 1);
}

#[test]
fn an_observer_that_panics_costs_no_request_its_end() {
    let manager = manager(&[Moody::new("cpu").in_mood(Mood::Good)], |_| {});
    manager.observe(Arc::new(|_| panic!("this observer panics, as it was told to")));
    let session = manager.open(1, ctr()).unwrap();
    manager.run(session, &mut operation(1, 40).borrow()).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    manager.submit(session, operation(2, 40), Box::new(move |completion| tell.send(completion).unwrap()));
    assert_eq!(told.recv_timeout(HANG).unwrap().operation, done(operation(2, 40)));
}

#[test]
fn counters_tell_what_ran_where() {
    let engines = [Moody::new("one").in_mood(Mood::Good), Moody::new("two").distant().in_mood(Mood::Good)];
    let manager = manager(&engines, |_| {});
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..20 {
        let mut own = operation(seed, 100);
        manager.run(session, &mut own.borrow()).unwrap();
        assert_eq!(own, done(operation(seed, 100)));
    }
    let usage = manager.snapshot().usage;
    assert!(usage.iter().all(|usage| usage.algorithm == Algorithm::Aes128Ctr && usage.bytes == 100 * usage.ops && usage.busy_ns > 0));
    assert_eq!(usage.iter().map(|usage| usage.ops).sum::<u64>(), 20);
}

fn sheet(engine: &str, ns: f64) -> CostSheet {
    let text = format!("engine = \"{engine}\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, {ns:.1}], [1048576, {:.1}]]\n", ns * 1000.0);
    CostSheet::from_toml(&text, "test").unwrap()
}

#[test]
fn cost_sheets_learn_from_what_requests_took() {
    let engine = Moody::new("cpu").in_mood(Mood::Good);
    let given = sheet("cpu", 1e9);
    let manager = manager(std::slice::from_ref(&engine), |config| config.costs = Costs::Given(vec![given.clone()]));
    assert_eq!(manager.costs(), [given]);
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..100 {
        manager.run(session, &mut operation(seed, 16).borrow()).unwrap();
    }
    let learnt = manager.costs()[0].estimate_ns(Algorithm::Aes128Ctr, 16).unwrap();
    assert!(learnt < 1e8, "a second was expected, and far less was needed each time: {learnt} ns");
}

#[test]
fn routes_say_queue_only_where_an_engine_gains() {
    let engines = [Moody::new("cpu").in_mood(Mood::Good), Moody::new("card").distant().in_mood(Mood::Good)];
    let sheets = vec![sheet("cpu", 1e6), sheet("card", 1e4)];
    let gaining = manager(&engines, |config| config.costs = Costs::Given(sheets));
    let queued = |handover_ns| gaining.routes(None, handover_ns).iter().filter(|&&place| place == Place::Queue).count();
    assert!(queued(0.0) > 0 && queued(1e12) == 0);
    assert_eq!(gaining.routes(Some(&gaining.routes(None, 0.0)), 0.0), gaining.routes(None, 0.0));
    let alone = manager(&engines[..1], |_| {});
    assert_eq!(alone.routes(None, 0.0), [Place::Here; ROUTES]);
    let distant = manager(&engines[1..], |_| {});
    assert_eq!(distant.routes(None, 0.0), [Place::Queue; ROUTES], "there is no place here");
}

#[test]
fn routes_are_without_an_engine_that_is_down() {
    let engines = [Moody::new("card").distant().in_mood(Mood::Fails), Moody::new("cpu").in_mood(Mood::Good)];
    let manager = manager(&engines, |config| {
        config.costs = Costs::Given(vec![sheet("card", 1e4), sheet("cpu", 1e6)]);
        config.probation = HANG * 60;
    });
    assert!(manager.routes(None, 0.0).contains(&Place::Queue));
    let session = manager.open(1, ctr()).unwrap();
    for seed in 0..20 {
        let (tell, told) = std::sync::mpsc::channel();
        manager.submit(session, operation(seed, 100), Box::new(move |completion| tell.send(completion).unwrap()));
        assert_eq!(told.recv_timeout(HANG).unwrap().operation, done(operation(seed, 100)));
    }
    assert_eq!(manager.snapshot().engines.iter().map(|engine| engine.up).collect::<Vec<_>>(), [false, true]);
    assert_eq!(manager.routes(None, 0.0), [Place::Here; ROUTES]);
}

#[test]
fn a_card_alone_gets_what_it_does_and_nothing_else() {
    let card = bywash_manager::find(&["board:munetoh-meac32".parse().unwrap()]).unwrap().present;
    let manager = Manager::new(ManagerConfig { costs: Costs::Given(vec![]), ..ManagerConfig::new(card) }).unwrap();
    let routes = manager.routes(None, 0.0);
    let place = |algorithm| routes[route_index(algorithm, 256)];
    assert_eq!((place(Algorithm::Rsa2048Private), place(Algorithm::X25519)), (Place::Queue, Place::Here));
}
