//! Work in the caller's own place, on a toy engine.

#[path = "common/toy.rs"]
mod toy;

use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, OwnedOperation, Place, SecretBytes, SessionParams};
use std::sync::Arc;
use toy::Toy;

fn client(route: Route) -> Client {
    Client::with_engine(Config { route, ..Config::default() }, Arc::new(Toy))
}

fn params() -> SessionParams {
    SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[0x20; 16]).into())).unwrap()
}

#[test]
fn run_checks_computes_and_counts() {
    let client = client(Route::Here);
    let session = client.session(params()).unwrap();
    let mut data = *b"bywash";
    let mut operation = Operation { direction: Direction::Encrypt, iv: &[0; 16], aad: &[], data: Data::InPlace(&mut data), tag: &mut [] };
    assert_eq!(session.run(&mut operation), Ok(6));
    operation.iv = &[0; 12];
    assert!(matches!(session.run(&mut operation), Err(Error::IvLength { .. })));
    assert_eq!(&data, b"BYWASH");
    assert_eq!(client.counted(Algorithm::Aes128Ctr), (1, 6));
}

#[test]
fn many_are_run_and_each_is_answered_in_its_place() {
    for route in [Route::Here, Route::Queue] {
        let client = client(route);
        let (one, other) = (client.session(params()).unwrap(), client.session(params()).unwrap());
        let (mut first, mut second, mut third) = (*b"bywash", *b"never", *b"two");
        let operation = |iv, data| Operation { direction: Direction::Encrypt, iv, aad: &[], data, tag: &mut [] };
        let outcomes = bywash_client::run_many(&mut [
            (&one, operation(&[0; 16], Data::InPlace(&mut first))),
            (&other, operation(&[0; 12], Data::InPlace(&mut second))),
            (&other, operation(&[0; 16], Data::InPlace(&mut third))),
        ]);
        assert!(matches!(outcomes[..], [Ok(6), Err(Error::IvLength { .. }), Ok(3)]), "{outcomes:?}");
        if route == Route::Here {
            assert_eq!((&first, &second, &third), (b"BYWASH", b"never", b"TWO"));
            assert_eq!(client.counted(Algorithm::Aes128Ctr), (2, 9));
        }
    }
    assert!(bywash_client::run_many(&mut []).is_empty());
}

#[test]
fn a_submitted_operation_comes_back_with_its_output() {
    let session = client(Route::Here).session(params()).unwrap();
    let operation = OwnedOperation {
        direction: Direction::Encrypt,
        iv: vec![0; 16],
        aad: vec![],
        input: SecretBytes::from(b"bywash"),
        output: SecretBytes::zeroed(6),
        tag: vec![],
    };
    assert_eq!(&*session.submit(operation).wait().unwrap().output, b"BYWASH");
}

#[test]
fn the_stream_is_the_engines_own() {
    let session = client(Route::Here).session(params()).unwrap();
    let mut data = *b"by";
    session.stream(Direction::Encrypt, &[0; 16]).unwrap().update(Data::InPlace(&mut data)).unwrap();
    assert_eq!(&data, b"BY");
}

#[test]
fn without_a_broker_the_table_says_here_and_the_route_overrides_it() {
    assert_eq!(client(Route::Auto).place(Algorithm::Rsa2048Private, 256), Place::Here);
    assert_eq!(client(Route::Here).place(Algorithm::Rsa2048Private, 256), Place::Here);
    assert_eq!(client(Route::Queue).place(Algorithm::Aes128Ctr, 1), Place::Queue);
}

#[test]
fn an_algorithm_that_the_engine_lacks_is_an_error() {
    let params = SessionParams::new(Algorithm::Sha256, Key::None).unwrap();
    assert!(matches!(client(Route::Auto).session(params), Err(Error::Unsupported { .. })));
}
