//! `bywash key import` from a PKCS#11 token (SoftHSM) whose keys may be read as they stand and are not wrapped. Those that are wrapped are
//! `tests/vault-token.sh`'s.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeType};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use std::path::Path;
use std::process::Command;
use support::{bywash, stderr, stdout, succeed};

const LIBRARY: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "1234";

/// The keys in the token: a name, how the token makes it, and what its public half is called there.
fn kinds() -> [(&'static str, Mechanism<'static>, Vec<Attribute>, AttributeType); 4] {
    let curve = |der: &[u8]| vec![Attribute::EcParams(der.to_vec())];
    let rsa = vec![Attribute::ModulusBits(2048.into()), Attribute::PublicExponent(vec![1, 0, 1])];
    [
        ("rsa-2048", Mechanism::RsaPkcsKeyPairGen, rsa, AttributeType::Modulus),
        ("p256", Mechanism::EccKeyPairGen, curve(&[6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7]), AttributeType::EcPoint),
        ("p384", Mechanism::EccKeyPairGen, curve(&[6, 5, 0x2B, 0x81, 4, 0, 0x22]), AttributeType::EcPoint),
        ("ed25519", Mechanism::EccEdwardsKeyPairGen, curve(b"\x13\x0Cedwards25519"), AttributeType::EcPoint),
    ]
}

/// Makes a key that only a trusted key may wrap, which a user's own key never is. Gives what the token tells of its public half.
fn make(session: &Session, name: &str, sensitive: bool, kind: (Mechanism<'_>, Vec<Attribute>, AttributeType)) -> Vec<u8> {
    let (mechanism, of_public, wanted) = kind;
    let label = || Attribute::Label(name.into());
    let public = [vec![Attribute::Token(true), label()], of_public].concat();
    let flags = [Attribute::Sensitive(sensitive), Attribute::Extractable(true), Attribute::WrapWithTrusted(true)];
    let private = [&[Attribute::Token(true), Attribute::Private(true), label()][..], &flags].concat();
    let (public, _) = session.generate_key_pair(&mechanism, &public, &private).unwrap_or_else(|error| panic!("{name}: {error}"));
    match session.get_attributes(public, &[wanted]).unwrap().pop() {
        Some(Attribute::Modulus(bytes)) => bytes,
        // A point is in an octet string (PKCS#11 3.0 s6.3.3); all of ours are shorter than 128 bytes.
        Some(Attribute::EcPoint(der)) => der[2..].to_vec(),
        other => panic!("{name}: {other:?}"),
    }
}

/// Fills the token in a process of its own, since the library reads its folder from the environment; run without its variable, there is nothing to do.
#[test]
fn child_that_fills_the_token() {
    if std::env::var_os("SOFTHSM2_CONF").is_none() {
        return;
    }
    let library = Pkcs11::new(LIBRARY).unwrap();
    library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).unwrap();
    let slot = library.get_slots_with_initialized_token().unwrap()[0];
    let session = library.open_rw_session(slot).unwrap();
    session.login(UserType::User, Some(&AuthPin::new(PIN.into()))).unwrap();
    for (name, mechanism, of_public, wanted) in kinds() {
        let public = make(&session, name, false, (mechanism, of_public, wanted));
        println!("made {name} {}", hex(&public));
    }
    let [_, (_, mechanism, of_public, wanted), ..] = kinds();
    make(&session, "sensitive", true, (mechanism, of_public, wanted));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A public key in PEM as hexadecimal digits of its DER.
fn digits(pem: &str) -> String {
    hex(&pem_rfc7468::decode_vec(pem.as_bytes()).expect("PEM").1)
}

#[test]
fn keys_that_a_token_lets_be_read_are_taken_as_they_stand() {
    if !Path::new(LIBRARY).exists() {
        eprintln!("skipped: {LIBRARY} is missing: run 'make setup'");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (conf, pin, keys) = (place.path().join("conf"), place.path().join("pin"), place.path().join("keys"));
    std::fs::create_dir(place.path().join("tokens")).unwrap();
    std::fs::write(&conf, format!("directories.tokendir = {}/tokens\n", place.path().display())).unwrap();
    std::fs::write(&pin, PIN).unwrap();
    succeed(Command::new("chmod").arg("600").arg(&pin));
    let in_place = |command: &mut Command| succeed(command.env("SOFTHSM2_CONF", &conf));
    in_place(Command::new("softhsm2-util").args(["--init-token", "--free", "--label", "T", "--so-pin", "5678", "--pin", PIN]));
    let me = std::env::current_exe().unwrap();
    let filled = stdout(&in_place(Command::new(me).args(["--exact", "child_that_fills_the_token", "--nocapture"])));
    let key = |arguments: &[&str]| {
        let mut command = bywash();
        command.arg("key").args(arguments).arg("--keys").arg(&keys);
        command
    };
    for (name, ..) in kinds() {
        let uri = format!("pkcs11:token=T;object={name}?module-path={LIBRARY}&pin-source={}", pin.display());
        in_place(&mut key(&["import", name, "--from", &uri]));
        let there = filled.lines().find_map(|line| line.split_once(&format!("made {name} "))).map(|(_, rest)| rest);
        let here = digits(&stdout(&succeed(&mut key(&["public", name]))));
        assert!(here.contains(there.expect("the token has made it")), "{name}: {here} is not the token's: {filled}");
    }
    let list = stdout(&succeed(&mut key(&["list"])));
    assert!(kinds().iter().all(|(name, ..)| list.contains(&format!("{name}  "))), "{list}");
    let sensitive = format!("pkcs11:object=sensitive?module-path={LIBRARY}&pin-value={PIN}");
    let neither = key(&["import", "sensitive", "--from", &sensitive]).env("SOFTHSM2_CONF", &conf).output().unwrap();
    assert!(stderr(&neither).contains("does not wrap it, and does not let it be read"), "{}", stderr(&neither));
    let again = key(&["import", "p256", "--from", &format!("pkcs11:object=p256?module-path={LIBRARY}&pin-value={PIN}")])
        .env("SOFTHSM2_CONF", &conf)
        .output()
        .unwrap();
    assert!(stderr(&again).contains("there is a key of this name") && !stderr(&again).contains(PIN), "{}", stderr(&again));
}
