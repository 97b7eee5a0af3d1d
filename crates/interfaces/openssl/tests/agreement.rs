//! Key agreement and its keys through Bywash against the default provider, in both directions.

mod support;

use bywash_core::Algorithm;
use bywash_openssl::ffi::libcrypto::{EVP_PKEY_check, EVP_PKEY_pairwise_check, EVP_PKEY_public_check, EVP_PKEY_public_check_quick};
use support::pair::{Pair, counting, none};
use support::{KEYPAIR, Library, PUBLIC, Pkey};

/// Makes a key in a library.
type MakeIn<'a> = &'a dyn Fn(&Library) -> Pkey;

#[test]
fn secrets_are_agreed_in_both_directions() {
    let pair = Pair::new();
    let kinds: [(&str, MakeIn<'_>, Option<Algorithm>); 4] = [
        ("EC", &|library| library.ec("prime256v1"), Some(Algorithm::EcdhP256)),
        ("EC", &|library| library.ec("P-384"), Some(Algorithm::EcdhP384)),
        ("EC", &|library| library.ec("P-521"), None),
        ("X25519", &Library::x25519, Some(Algorithm::X25519)),
    ];
    for (name, generate, algorithm) in kinds {
        let (theirs, ours) = (generate(&pair.plain), generate(&pair.bywash));
        assert!(ours.is_bywash());
        let expected = theirs.derive(&ours.transfer(name, PUBLIC, &pair.plain), none()).unwrap();
        let peer = theirs.transfer(name, PUBLIC, &pair.bywash);
        let counter = algorithm.unwrap_or(Algorithm::EcdhP256);
        let (secret, native) = counting(&pair.bywash, counter, || ours.derive(&peer, none()).unwrap());
        assert_eq!(secret, expected, "{name}");
        assert_eq!(native, u64::from(algorithm.is_some()));
    }
}

#[test]
fn raw_private_keys_are_an_engines() {
    let pair = Pair::new();
    let import = |library: &Library, bytes: &[u8]| library.import("X25519", KEYPAIR, none().octets(c"priv", bytes).as_ptr());
    let peer = pair.plain.x25519();
    // One as it is kept, and one with bits that are cleared first (RFC 7748 s5).
    for bytes in [[64; 32], [0xFF; 32]] {
        let theirs = import(&pair.plain, &bytes).unwrap();
        let (ours, native) = counting(&pair.bywash, Algorithm::X25519Public, || import(&pair.bywash, &bytes).unwrap());
        assert_eq!((ours.encoded_public(), native), (theirs.encoded_public(), 1));
        assert!(ours.transfer("X25519", KEYPAIR, &pair.plain).is(&theirs));
        let there = peer.transfer("X25519", PUBLIC, &pair.bywash);
        let (secret, native) = counting(&pair.bywash, Algorithm::X25519, || ours.derive(&there, none()));
        assert_eq!((secret, native), (theirs.derive(&peer, none()), 1));
    }
    for bytes in [&[7; 31][..], &[7; 33], &[]] {
        assert_eq!(import(&pair.bywash, bytes).is_some(), import(&pair.plain, bytes).is_some(), "{}", bytes.len());
    }
}

#[test]
fn ecdh_with_a_kdf_is_the_twins() {
    let pair = Pair::new();
    let (one, one_ours) = pair.both("EC", pair.plain.ec("P-256"));
    let (other, other_ours) = pair.both("EC", pair.plain.ec("P-256"));
    let kdf =
        || none().utf8(c"kdf-type", "X963KDF").utf8(c"kdf-digest", "SHA256").number(c"kdf-outlen", 45).octets(c"kdf-ukm", b"material");
    let secret = one_ours.derive(&other_ours, kdf()).unwrap();
    assert_eq!(secret.len(), 45);
    assert_eq!(secret, other.derive(&one, kdf()).unwrap());
    let wrong = pair.bywash.ec("P-384");
    assert_eq!(one_ours.derive(&wrong, none()), None);
}

#[test]
fn generated_pairs_are_an_engines_and_good() {
    let pair = Pair::new();
    let kinds = [
        ("EC", "P-256", Algorithm::EcdhP256Public),
        ("EC", "secp384r1", Algorithm::EcdhP384Public),
        ("X25519", "", Algorithm::X25519Public),
    ];
    for (name, group, algorithm) in kinds {
        let generate = || if name == "EC" { pair.bywash.ec(group) } else { pair.bywash.x25519() };
        let (key, native) = counting(&pair.bywash, algorithm, generate);
        assert_eq!(native, 1);
        let there = key.transfer(name, KEYPAIR, &pair.plain);
        for key in [&key, &there] {
            assert!(key.check(EVP_PKEY_check) && key.check(EVP_PKEY_pairwise_check), "{name}");
            assert!(key.check(EVP_PKEY_public_check) && key.check(EVP_PKEY_public_check_quick), "{name}");
        }
        assert!(!key.is(&generate()));
    }
    let rsa = pair.bywash.rsa(2048);
    assert!(rsa.is_bywash() && rsa.check(EVP_PKEY_check));
}

#[test]
fn key_shares_travel_as_in_tls() {
    let pair = Pair::new();
    for (name, group) in [("EC", "P-256"), ("EC", "P-384"), ("EC", "P-521"), ("X25519", "")] {
        let generate = |library: &Library| if name == "EC" { library.ec(group) } else { library.x25519() };
        let (theirs, ours) = (generate(&pair.plain), generate(&pair.bywash));
        let peer = ours.peer(&theirs.encoded_public()).unwrap();
        assert!(peer.is_bywash());
        let back = theirs.peer(&ours.encoded_public()).unwrap();
        assert_eq!(ours.derive(&peer, none()).unwrap(), theirs.derive(&back, none()).unwrap(), "{name} {group}");
        let good = theirs.encoded_public();
        let mut off = good.clone();
        *off.last_mut().unwrap() ^= 1;
        for bad in [&[][..], &good[..good.len() - 1], &[&good[..], &[0]].concat(), &off] {
            assert_eq!(ours.peer(bad).is_some(), theirs.peer(bad).is_some(), "{name} {group} {}", bad.len());
        }
    }
}

#[test]
fn a_zero_secret_is_refused() {
    let pair = Pair::new();
    let (theirs, ours) = (pair.plain.x25519(), pair.bywash.x25519());
    for point in [[0; 32], {
        let mut one = [0; 32];
        one[0] = 1;
        one
    }] {
        assert_eq!(theirs.derive(&theirs.peer(&point).unwrap(), none()), None);
        assert_eq!(ours.derive(&ours.peer(&point).unwrap(), none()), None);
    }
}
