//! A client's first use on a stack as small as those of OpenSSL's asynchronous jobs: 32 KiB from its allocator, so that who goes beyond the end writes over somebody else's memory.
//! Here a page lies there that faults. One test: what is made once in a process is made on that stack.

use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_manager::{Costs, Manager, ManagerConfig, probe};
use corosensei::on_stack;
use corosensei::stack::DefaultStack;

/// What of a job's stack is left by libcrypto, libssl and the provider.
const LEFT: usize = 16 << 10;

#[test]
fn a_client_connects_opens_and_computes_on_the_stack_of_an_asynchronous_job() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let config = ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) };
    let broker = Broker::bind(BrokerConfig::new(path.clone(), Manager::new(config).unwrap())).unwrap();
    let handle = broker.handle();
    let thread = broker.spawn().unwrap();
    let mut output = [0; 32];
    let queued = on_stack(DefaultStack::new(LEFT).unwrap(), || {
        let client = Client::new(Config { socket: Some(path), route: Route::Queue, run: None, ..Config::default() });
        let private = Key::EcPrivate(vec![7; 32].into());
        let session = client.session(SessionParams::new(Algorithm::X25519Public, private).unwrap()).unwrap();
        let data = Data::Copy { input: &[], output: &mut output };
        let mut operation = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] };
        session.run(&mut operation).unwrap();
        client.stats().queued
    });
    assert_eq!(queued, 1, "it was the broker that computed");
    assert_ne!(output, [0; 32]);
    handle.shutdown();
    thread.join().unwrap().unwrap();
}
