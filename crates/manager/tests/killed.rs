//! Clients that end in the midst of things, at one module, under every policy: what they held others have, and nothing is stuck.

use bywash_core::{Algorithm, CostSheet, Direction, Key, OwnedOperation, SecretBytes, SessionParams};
use bywash_engine_board::{Board, Waiting};
use bywash_manager::{Completion, Costs, Manager, ManagerConfig, SessionId, Tenant};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Far beyond any lease.
const STUCK: Duration = Duration::from_secs(30);
const DEATHS: u32 = 1000;
const HONEST: u32 = 1;

fn manager(policy: &str) -> Arc<Manager> {
    let sheet = "engine = \"module\"\nmodelled = true\nlanes = 1\nswitch_ns = 1e3\n[algorithms.\"DES-EDE3-CBC\"]\npoints = [[0, 1e3]]\n";
    let module = Board::new(CostSheet::from_toml(sheet, "test").unwrap(), Waiting::FixedSleep).unwrap();
    let mut config = ManagerConfig::new(vec![Arc::new(module)]);
    (config.policy, config.costs) = (policy.parse().unwrap(), Costs::Given(Vec::new()));
    Manager::new(config).unwrap()
}

fn open(manager: &Manager, client: u32) -> SessionId {
    let key = Key::Symmetric((0..24).collect::<Vec<u8>>().into());
    manager.open(client, SessionParams::new(Algorithm::TripleDesCbc, key).unwrap()).unwrap()
}

fn submit(manager: &Manager, session: SessionId, ends: &Sender<Completion>) {
    let (input, output) = (SecretBytes::zeroed(64), SecretBytes::zeroed(64));
    let operation = OwnedOperation { direction: Direction::Encrypt, iv: vec![0; 8], aad: Vec::new(), input, output, tag: Vec::new() };
    let ends = ends.clone();
    manager.submit(session, operation, Box::new(move |end| drop(ends.send(end))));
}

fn must_end(ends: &Receiver<Completion>, policy: &str, death: u32) -> Completion {
    ends.recv_timeout(STUCK).unwrap_or_else(|_| panic!("{policy}: stuck at death {death}"))
}

fn deaths(policy: &str, count: u32) {
    let manager = manager(policy);
    manager.join(HONEST, Tenant { weight: 2, goal_ns: Some(1_000_000) });
    for death in 0..count {
        let victim = 2 + death;
        manager.join(victim, Tenant::default());
        let (told, ends) = channel();
        let held = open(&manager, victim);
        submit(&manager, held, &told);
        // It dies holding the module, or with requests under way and waiting, or with sessions that it never used.
        if death % 3 == 0 {
            assert!(must_end(&ends, policy, death).outcome.is_ok());
        }
        let more = death % 4;
        (0..more).for_each(|_| submit(&manager, held, &told));
        let idle = (death % 5 == 0).then(|| open(&manager, victim));
        let (honest_told, honest_ends) = channel();
        let honest = open(&manager, HONEST);
        submit(&manager, honest, &honest_told);
        // Seldom it only stops: then there is the lease.
        let stops = death % 100 == 99;
        if !stops {
            assert_eq!(manager.close_client(victim), 1 + usize::from(idle.is_some()));
        }
        assert!(must_end(&honest_ends, policy, death).outcome.is_ok(), "{policy}: death {death}");
        manager.close(honest).unwrap();
        if stops {
            manager.close_client(victim);
        }
        let owed = more + u32::from(death % 3 != 0);
        (0..owed).for_each(|_| drop(must_end(&ends, policy, death)));
    }
    let end = manager.snapshot();
    assert_eq!((end.in_flight, end.sessions), (0, 0), "{policy}");
    assert!(manager.shutdown(STUCK), "{policy}: its threads end");
}

#[test]
fn a_thousand_clients_die_at_the_module_of_the_paper_and_nothing_is_stuck() {
    deaths("exclusive:lease=2ms", DEATHS);
}

#[test]
fn under_every_policy_what_the_dead_held_others_have() {
    for policy in bywash_policy::NAMES {
        deaths(policy, DEATHS / 5);
    }
}

#[test]
fn what_a_client_has_waiting_ends_with_it_and_its_goal_is_each_requests_deadline() {
    let manager = manager("exclusive:lease=1s");
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = seen.clone();
    manager.observe(Arc::new(move |end| {
        let deadline = end.request.deadline.map(|deadline| deadline.since_ns(end.arrival));
        notes.lock().unwrap().push((end.request.client, deadline, end.switched, end.reason.is_some(), end.outcome.is_ok()));
    }));
    manager.join(1, Tenant { weight: 1, goal_ns: Some(5_000_000) });
    let (holder, other) = (open(&manager, 1), open(&manager, 2));
    let (told, ends) = channel();
    submit(&manager, holder, &told);
    must_end(&ends, "exclusive", 0).outcome.unwrap();
    submit(&manager, other, &told);
    manager.abandon(2);
    let refused = must_end(&ends, "exclusive", 0).outcome.unwrap_err().to_string();
    assert!(refused.contains("its client has ended"), "{refused}");
    assert_eq!(*seen.lock().unwrap(), [(1, Some(5_000_000), true, true, true), (2, None, false, false, false)]);
}
