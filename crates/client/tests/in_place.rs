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
fn messages_hashed_in_pieces_are_counted_when_they_end() {
    let client = Client::new(Config { route: Route::Here, ..Config::default() });
    let session = client.session(SessionParams::new(Algorithm::Sha1, Key::None).unwrap()).unwrap();
    let mut hashing = session.hashing().unwrap();
    hashing.update(b"broken").unwrap();
    hashing.reset().unwrap();
    hashing.update(b"a").unwrap();
    let mut copy = hashing.duplicate().unwrap();
    let (mut value, mut copied) = ([0; 20], [0; 20]);
    for (hashing, value) in [(&mut hashing, &mut value), (&mut copy, &mut copied)] {
        hashing.update(b"bc").unwrap();
        assert_eq!(hashing.finish(value), Ok(20));
    }
    // FIPS 180-4's first example.
    assert_eq!(value[..4], [0xA9, 0x99, 0x3E, 0x36]);
    assert_eq!(value, copied);
    assert_eq!(client.counted(Algorithm::Sha1), (2, 6));
    let key = Key::Symmetric((&[0x20; 16]).into());
    let cipher = client.session(SessionParams::new(Algorithm::Aes128Ctr, key).unwrap()).unwrap();
    assert_eq!(cipher.hashing().err(), Some(Error::WrongOperation { algorithm: Algorithm::Aes128Ctr, what: "hash" }));
}

#[test]
fn numbers_need_no_session() {
    use bywash_core::{CrtExp, ModExp};
    let client = Client::new(Config { route: Route::Here, ..Config::default() });
    let mut out = [0xA5; 2];
    client.mod_exp(&ModExp { base: &[4], exponent: &[13], modulus: &[0x01, 0xF1] }, &mut out).unwrap();
    assert_eq!(out, [0x01, 0xBD], "4^13 mod 497 is 445");
    assert!(client.mod_exp(&ModExp { base: &[4], exponent: &[13], modulus: &[0x01, 0xF1] }, &mut out[..1]).is_err());
    client.crt_exp(&CrtExp { base: &[5], p: &[11], q: &[7], dp: &[3], dq: &[1], qinv: &[8] }, &mut out).unwrap();
    assert_eq!(out, [0, 26], "5^13 mod 77 is 26");
    let toy = Client::with_engine(Config::default(), Arc::new(Toy));
    assert!(matches!(toy.mod_exp(&ModExp { base: &[4], exponent: &[13], modulus: &[7] }, &mut out), Err(Error::Unavailable { .. })));
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
