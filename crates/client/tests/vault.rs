//! Keys of a vault as a program uses them: through restarts, forks of policy, and without a broker.

use bywash_broker::{Broker, BrokerConfig, BrokerHandle};
use bywash_client::{Client, Config, PublicKey, Route, Session};
use bywash_core::{Algorithm, Data, Direction, Error, Key, KeyReference, Operation, OwnedOperation, Result, SessionParams};
use bywash_manager::{Costs, Manager, ManagerConfig, probe};
use bywash_protocol::keys::{KeyAlgorithm, KeyPolicy};
use bywash_vault::Vault;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

struct Running {
    handle: BrokerHandle,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.shutdown();
        self.thread.take().map(JoinHandle::join);
    }
}

fn broker(place: &Path) -> Running {
    let manager = ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) };
    let mut config = BrokerConfig::new(place.join("s"), Manager::new(manager).unwrap());
    config.vault = Some(Arc::new(Vault::open(&place.join("keys"), None).unwrap()));
    let broker = Broker::bind(config).unwrap();
    Running { handle: broker.handle(), thread: Some(broker.spawn().unwrap()) }
}

/// A folder with a P-256 key called web.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    Vault::open(&place.path().join("keys"), None).unwrap().generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    place
}

fn client(place: &Path, route: Route) -> Client {
    Client::new(Config { socket: Some(place.join("s")), route, run: None, ..Config::default() })
}

fn session(client: &Client, key: KeyReference) -> Session {
    client.session(SessionParams::new(Algorithm::EcdsaP256Sign, Key::Vault(key)).unwrap()).unwrap()
}

fn sign(session: &Session) -> Result<[u8; 64]> {
    let mut signature = [0; 64];
    let data = Data::Copy { input: &[5; 32], output: &mut signature };
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })?;
    Ok(signature)
}

fn verify(public: &[u8], mut signature: [u8; 64]) {
    let Some(PublicKey::P256(point)) = PublicKey::from_der(public) else { panic!("no point") };
    let params = SessionParams::new(Algorithm::EcdsaP256Verify, Key::EcPublic(point)).unwrap();
    let data = Data::Copy { input: &[5; 32], output: &mut [] };
    let mut operation = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut signature };
    bywash_manager::here().open(&params).unwrap().run(&mut operation).unwrap();
}

#[test]
fn whatever_the_route_the_broker_signs() {
    let place = place();
    let _broker = broker(place.path());
    for route in [Route::Auto, Route::Here, Route::Queue] {
        let client = client(place.path(), route);
        let key = client.vault_key("web", None).unwrap();
        let (public, session) = (key.public.clone(), session(&client, key));
        verify(&public, sign(&session).unwrap());
        let operation = OwnedOperation {
            direction: Direction::Compute,
            iv: Vec::new(),
            aad: Vec::new(),
            input: [5; 32].as_slice().into(),
            output: vec![0; 64].into(),
            tag: Vec::new(),
        };
        let done = session.submit(operation).wait().unwrap();
        verify(&public, done.output[..].try_into().unwrap());
        assert_eq!((client.stats().queued, client.counted(Algorithm::EcdsaP256Sign)), (2, (0, 0)), "{route}: none here");
    }
}

#[test]
fn what_is_too_large_to_be_sent_is_said_to_be() {
    let place = tempfile::tempdir().unwrap();
    Vault::open(&place.path().join("keys"), None).unwrap().generate("ed", KeyAlgorithm::Ed25519, KeyPolicy::default()).unwrap();
    let _broker = broker(place.path());
    let client = client(place.path(), Route::Auto);
    let key = Key::Vault(client.vault_key("ed", None).unwrap());
    let session = client.session(SessionParams::new(Algorithm::Ed25519Sign, key).unwrap()).unwrap();
    let sign = |length| {
        let data = Data::Copy { input: &vec![5; length], output: &mut [0; 64] };
        session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })
    };
    assert_eq!(sign(1 << 20), Ok(64));
    let why = sign(1 << 28).unwrap_err().to_string();
    assert!(why.contains("bywash:ed") && why.contains("larger than the memory"), "{why}");
    assert_eq!(sign(100), Ok(64), "and that is all");
}

#[test]
fn a_restarted_broker_is_waited_for() {
    let place = place();
    let first = broker(place.path());
    let client = client(place.path(), Route::Auto);
    let key = client.vault_key("web", None).unwrap();
    let (public, session) = (key.public.clone(), session(&client, key));
    verify(&public, sign(&session).unwrap());
    drop(first);
    let path = place.path().to_owned();
    let second = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        broker(&path)
    });
    verify(&public, sign(&session).expect("the broker came back in time"));
    drop(second.join().unwrap());
}

#[test]
fn without_its_broker_a_key_fails_in_words_and_soon() {
    let place = place();
    let client = client(place.path(), Route::Auto);
    let error = client.vault_key("web", None).unwrap_err().to_string();
    assert!(error.contains("bywash:web") && error.contains("no broker listens") && error.contains("bywash serve"), "{error}");
    let running = broker(place.path());
    let again = Client::new(Config { socket: Some(place.path().join("s")), route: Route::Auto, run: None, ..Config::default() });
    let session = session(&again, again.vault_key("web", None).unwrap());
    sign(&session).unwrap();
    drop(running);
    let error = sign(&session).unwrap_err();
    assert!(matches!(error, Error::VaultKey { .. }), "{error}");
    let begun = Instant::now();
    assert!(sign(&session).is_err());
    assert!(begun.elapsed() < Duration::from_secs(1), "who has waited once does not wait again");
    let alone = Client::new(Config::default());
    assert!(alone.vault_key("web", None).unwrap_err().to_string().contains("BYWASH_SOCKET"));
}

#[test]
fn refusals_reach_the_program() {
    let place = place();
    let _broker = broker(place.path());
    let client = client(place.path(), Route::Auto);
    assert!(client.vault_key("other", None).unwrap_err().to_string().contains("no such key"));
    assert!(client.vault_key("../web", None).is_err());
    let session = session(&client, KeyReference { name: "web".into(), public: b"not its own".to_vec() });
    assert!(sign(&session).unwrap_err().to_string().contains("bywash key uri web"));
    let stream = session.stream(Direction::Encrypt, &[]).err().unwrap().to_string();
    assert!(stream.contains("vault"), "{stream}");
}
