//! The client against the house's own broker, shut down and started again under it.

use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Clients, Config, Route};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_manager::{Costs, Manager, ManagerConfig, probe};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn broker(path: &Path) -> Broker {
    let config = ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) };
    Broker::bind(BrokerConfig::new(path.to_owned(), Manager::new(config).unwrap())).unwrap()
}

/// Encrypts in threads through the client and compares with work in place.
fn load(client: &Client) {
    let params = || SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[9; 16]).into())).unwrap();
    let (session, here) = (client.session(params()).unwrap(), Client::new(Config::default()).session(params()).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (session, here) = (&session, &here);
            scope.spawn(move || {
                for len in (0..200).map(|number| number * 97 + thread) {
                    let (mut ours, mut wanted) = (vec![len as u8; len], vec![len as u8; len]);
                    for (session, text) in [(session, &mut ours), (here, &mut wanted)] {
                        let (data, tag) = (Data::InPlace(text), &mut [][..]);
                        let operation = Operation { direction: Direction::Encrypt, iv: &[len as u8; 16], aad: &[], data, tag };
                        assert_eq!(session.run(&mut { operation }), Ok(len));
                    }
                    assert!(ours == wanted, "wrong bytes");
                }
            });
        }
    });
}

#[test]
fn the_broker_computes_drains_and_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let client = Client::new(Config { socket: Some(path.clone()), route: Route::Queue, run: None, ..Config::default() });
    for _ in 0..3 {
        let broker = broker(&path);
        let handle = broker.handle();
        let thread = broker.spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        // Not told by a connection: one may have been made to the broker before, while it was draining.
        let found = client.stats().queued;
        while client.stats().queued == found {
            assert!(Instant::now() < end, "not found again within 60 s: {}", client.status());
            load(&client);
        }
        let before = client.stats();
        load(&client);
        assert_eq!(client.stats().queued + client.stats().overflows, before.queued + before.overflows + 800, "{:?}", client.stats());
        assert!(client.stats().queued > before.queued, "{}", client.status());
        handle.shutdown();
        thread.join().unwrap().unwrap();
        load(&client);
    }
}

/// Two processes and this one: who computes for them is not who they are.
#[test]
fn a_client_of_another_process_is_known_as_that_while_it_lives() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let broker = broker(&path);
    let handle = broker.handle();
    let serving = broker.spawn().unwrap();
    let clients = Clients::new(Config { socket: Some(path), route: Route::Queue, ..Config::default() }).unwrap();
    let known = || {
        let list = handle.stats().clients.into_iter().map(|client| (client.pid, client.comm));
        list.collect::<std::collections::BTreeSet<_>>()
    };
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(20);
        while !holds() {
            assert!(Instant::now() < end, "{what}: {:?}", known());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        let watched = clients.watched(scope);
        let mut two = [(); 2].map(|()| Command::new("sleep").arg("60").spawn().unwrap());
        // Until it has executed the program it has the name of this one.
        until("sleep", &|| two.iter().all(|child| std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() == "sleep\n"));
        for child in &two {
            load(&clients.of(child.id()));
            load(&clients.of(child.id()));
        }
        load(&clients.of(u32::MAX));
        let named = |child: &Child| (child.id(), "sleep".to_owned());
        assert!(two.iter().all(|child| known().contains(&named(child))), "{:?}", known());
        assert_eq!((known().len(), clients.len()), (3, 2), "{:?}", known());
        assert!(known().iter().any(|(pid, _)| *pid == std::process::id()), "who cannot be told is this process");
        two[0].kill().unwrap();
        two[0].wait().unwrap();
        until("one has ended", &|| clients.len() == 1 && !known().contains(&named(&two[0])));
        assert!(known().contains(&named(&two[1])));
        // Who has ended before there was a connection is served as this process's.
        let orphan =
            Command::new("sleep").arg("60").spawn().map(|mut child| (clients.of(child.id()), child.kill(), child.wait())).unwrap().0;
        load(&orphan);
        assert_eq!((orphan.stats().queued, orphan.stats().connections), (800, 1), "{}", orphan.status());
        drop(watched);
        two[1].kill().unwrap();
        two[1].wait().unwrap();
    });
    assert!(clients.is_empty(), "nobody is left after the watch");
    handle.shutdown();
    serving.join().unwrap().unwrap();
}

/// However many threads ask, and whoever of them comes first: what is to go to the queue goes there, and what is done here is in the broker's account.
#[test]
fn nothing_is_lost_while_a_connection_is_made() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let broker = broker(&path);
    let handle = broker.handle();
    let serving = broker.spawn().unwrap();
    for route in [Route::Queue, Route::Here].into_iter().cycle().take(40) {
        let client = Client::new(Config { socket: Some(path.clone()), route, ..Config::default() });
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    let session =
                        client.session(SessionParams::new(Algorithm::Aes128Cbc, Key::Symmetric((&[9; 16]).into())).unwrap()).unwrap();
                    for _ in 0..200 {
                        let (data, tag) = (Data::InPlace(&mut [7; 4096]), &mut [][..]);
                        session.run(&mut Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data, tag }).unwrap();
                    }
                });
            }
        });
        let wanted = if route == Route::Queue { (1600, 0) } else { (0, 1600) };
        let here = handle
            .stats()
            .clients
            .iter()
            .flat_map(|client| &client.work)
            .filter(|work| work.engine == "here")
            .map(|work| work.operations)
            .sum::<u64>();
        assert_eq!((client.stats().queued, here), wanted, "{:?}: {}", client.stats(), client.status());
        drop(client);
        while handle.clients() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    handle.shutdown();
    serving.join().unwrap().unwrap();
}
