//! Quotas on what one client may have in flight and what one user may hold.

mod support;

use bywash_core::{Algorithm, Engine, Error, Keyed, OwnedOperation, Result, SessionParams};
use bywash_manager::calibrate::sample;
use bywash_manager::{Costs, Manager, ManagerConfig};
use bywash_protocol::descriptor::Verdict;
use bywash_protocol::{ClientMessage, Role};
use std::sync::Arc;
use support::{LONG, Raw, SPIN, ctr, serve, until};

/// An engine with more workers than one client may use, whatever this machine has.
struct Wide(Arc<dyn Engine>);

impl Engine for Wide {
    fn name(&self) -> &str {
        "wide"
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.0.capabilities()
    }
    fn workers(&self) -> usize {
        8
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.0.open(params)
    }
}

#[test]
fn requests_in_flight_are_bounded_and_the_rest_is_answered_with_the_quota() {
    let served = serve(|config| {
        config.quotas.in_flight_max = 1;
        let mut wide = ManagerConfig::new(vec![Arc::new(Wide(bywash_manager::probe().present.remove(0)))]);
        wide.costs = Costs::Given(Vec::new());
        config.manager = Manager::new(wide).unwrap();
    });
    let mut client = Raw::connect(&served.path).unwrap();
    let (params, _) = sample(Algorithm::Rsa4096Private, 0).unwrap();
    let session = client.open(&params).unwrap();
    let mut operations: Vec<OwnedOperation> = (0..64).map(|_| sample(Algorithm::Rsa4096Private, 0).unwrap().1).collect();
    let tickets: Vec<_> = operations.iter_mut().map(|operation| client.begin(session, &operation.borrow())).collect();
    let verdicts: Vec<Verdict> = tickets.iter().map(|ticket| ticket.wait(SPIN, LONG).expect("an answer").verdict).collect();
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Done | Verdict::Quota)), "{verdicts:?}");
    let refused = verdicts.iter().filter(|verdict| **verdict == Verdict::Quota).count() as u64;
    assert!((1..64).contains(&refused), "{verdicts:?}");
    assert_eq!(served.handle.stats().quotas_hit["in_flight_max"], refused);
    // With nothing in flight the next is served.
    drop(tickets);
    let ticket = client.begin(session, &operations[0].borrow());
    assert_eq!(ticket.wait(SPIN, LONG).unwrap().verdict, Verdict::Done);
}

#[test]
fn arenas_of_one_user_are_bounded_and_come_back_with_the_connection() {
    let served = serve(|config| config.quotas.arena_mib_per_uid_max = 20);
    let mut held: Vec<Raw> = (0..2).map(|_| Raw::connect(&served.path).unwrap()).collect();
    let error = Raw::connect(&served.path).err().expect("8 MiB more are too much");
    assert!(matches!(error, Error::Quota { limit: 20, setting: "arena_mib_per_uid_max", .. }), "{error}");
    let observer = Raw::connect_as(&served.path, bywash_protocol::VERSION, Role::Observe, None);
    assert!(observer.is_ok(), "an observer has no arena");
    held.pop();
    until("there is room again", || Raw::connect(&served.path).is_ok());
}

#[test]
fn sessions_of_one_user_are_bounded_over_all_its_clients_and_come_back() {
    let served = serve(|config| config.quotas.sessions_per_uid_max = 3);
    let mut clients: Vec<Raw> = (0..2).map(|_| Raw::connect(&served.path).unwrap()).collect();
    let session = clients[0].open(&ctr()).unwrap();
    clients[0].open(&ctr()).unwrap();
    clients[1].open(&ctr()).unwrap();
    for client in &mut clients {
        let error = client.open(&ctr()).unwrap_err();
        assert!(matches!(error, Error::Quota { limit: 3, setting: "sessions_per_uid_max", .. }), "{error}");
    }
    assert_eq!(served.handle.stats().quotas_hit["sessions_per_uid_max"], 2);
    clients[0].socket.send(&ClientMessage::Close { session }, &[], LONG).unwrap();
    let clients = std::cell::RefCell::new(clients);
    until("one is closed", || clients.borrow_mut()[1].open(&ctr()).is_ok());
    clients.borrow_mut().remove(1);
    until("two more have ended with their connection", || clients.borrow_mut()[0].open(&ctr()).is_ok());
    assert!(clients.borrow_mut()[0].open(&ctr()).is_ok());
}

#[test]
fn connections_come_only_so_often_once_all_have_come() {
    let served = serve(|config| {
        config.quotas.clients_per_uid_max = 8;
        config.quotas.connect_rate_max = 1;
    });
    let all: Vec<Raw> = (0..8).map(|_| Raw::connect(&served.path).expect("all may come at once, as after a restart")).collect();
    drop(all);
    until("they are gone", || served.handle.clients() == 0);
    let errors: Vec<Error> = (0..8).filter_map(|_| Raw::connect(&served.path).err()).collect();
    let of_rate = |error: &Error| matches!(error, Error::Quota { limit: 1, setting: "connect_rate_max", .. });
    assert!(errors.iter().any(of_rate), "{errors:?}");
}
