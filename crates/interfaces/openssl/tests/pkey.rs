//! Public-key operations through Bywash against the default provider, in both directions, as a program makes them.
//! Where an engine is to do the work, its counter proves that it did.

mod support;

use bywash_core::Algorithm;
use bywash_openssl::ffi::OwnedParams;
use bywash_openssl::ffi::libcrypto::EVP_PKEY_check;
use std::sync::LazyLock;
use support::pair::{Pair, counting, none};
use support::{KEYPAIR, Library, PUBLIC, Pkey, Signing};

const DIGESTS: [&str; 13] = [
    "SHA1",
    "SHA224",
    "SHA256",
    "SHA384",
    "SHA512",
    "SHA512-224",
    "SHA512-256",
    "SHA3-224",
    "SHA3-256",
    "SHA3-384",
    "SHA3-512",
    "MD5",
    "RIPEMD160",
];
const MESSAGE: &[u8] = b"a message that is signed";

fn pss(salt: &str) -> OwnedParams {
    none().utf8(c"pad-mode", "pss").utf8(c"saltlen", salt)
}

/// Makes a key.
type Make<'a> = &'a dyn Fn() -> Pkey;

/// RSA keys are slow to make: one of each size for all tests.
static RSA: LazyLock<[Pkey; 5]> = LazyLock::new(|| [1536, 2048, 3072, 4096, 1024].map(|bits| Library::plain().rsa(bits)));

fn rsa_algorithm(index: usize) -> Option<Algorithm> {
    use Algorithm as A;
    [None, Some(A::Rsa2048Private), Some(A::Rsa3072Private), Some(A::Rsa4096Private), Some(A::Rsa1024Private)][index]
}

fn rsa(pair: &Pair, index: usize) -> (Pkey, Pkey) {
    let key = RSA[index].transfer("RSA", KEYPAIR, &pair.plain);
    pair.both("RSA", key)
}

#[test]
fn rsa_pkcs1_signatures_are_the_default_providers() {
    let pair = Pair::new();
    for index in 0..RSA.len() {
        let (plain, ours) = rsa(&pair, index);
        for digest in DIGESTS {
            let expected = plain.digest_sign(digest, none(), &[MESSAGE]).unwrap();
            let (signature, native) = match rsa_algorithm(index) {
                Some(algorithm) => counting(&pair.bywash, algorithm, || ours.digest_sign(digest, none(), &[&MESSAGE[..5], &MESSAGE[5..]])),
                None => (ours.digest_sign(digest, none(), &[MESSAGE]), 0),
            };
            assert_eq!(signature.unwrap(), expected, "{index} {digest}");
            assert_eq!(native, u64::from(index > 0), "{digest}");
            assert!(ours.digest_verify(digest, none(), MESSAGE, &expected));
            assert!(!ours.digest_verify(digest, none(), b"another message", &expected));
        }
    }
}

#[test]
fn rsa_pss_signatures_verify_in_both_directions() {
    let pair = Pair::new();
    for index in 1..4 {
        let (plain, ours) = rsa(&pair, index);
        for digest in DIGESTS {
            for salt in ["auto", "max", "digest", "0", "13"] {
                let run = || ours.digest_sign(digest, pss(salt), &[MESSAGE]).unwrap();
                let (signature, native) = counting(&pair.bywash, rsa_algorithm(index).unwrap(), run);
                assert_eq!(native, 1, "{digest} {salt}");
                let verified = if salt == "max" { "auto" } else { salt };
                assert!(plain.digest_verify(digest, pss(verified), MESSAGE, &signature), "{index} {digest} {salt}");
                let theirs = plain.digest_sign(digest, pss(salt), &[MESSAGE]).unwrap();
                assert!(ours.digest_verify(digest, pss(verified), MESSAGE, &theirs), "{index} {digest} {salt}");
            }
        }
    }
}

#[test]
fn rsa_pss_takes_another_digest_for_its_mask_and_refuses_a_salt_too_long() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let settings = || pss("digest").utf8(c"mgf1-digest", "SHA1");
    let run = || ours.digest_sign("SHA256", settings(), &[MESSAGE]).unwrap();
    let (signature, native) = counting(&pair.bywash, Algorithm::Rsa2048Private, run);
    assert_eq!(native, 1);
    assert!(plain.digest_verify("SHA256", settings(), MESSAGE, &signature));
    assert!(!plain.digest_verify("SHA256", pss("digest"), MESSAGE, &signature));
    assert_eq!(ours.digest_sign("SHA256", pss("223"), &[MESSAGE]), None);
    assert_eq!(plain.digest_sign("SHA256", pss("223"), &[MESSAGE]), None);
}

#[test]
fn rsa_signs_values_as_they_are() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let same = |settings: &dyn Fn() -> OwnedParams, value: &[u8], native: u64| {
        let (signature, counted) = counting(&pair.bywash, Algorithm::Rsa2048Private, || ours.sign(settings(), value));
        assert_eq!(signature, plain.sign(settings(), value));
        assert_eq!(counted, native);
    };
    same(&none, b"short", 1);
    same(&none, &[7; 245], 1);
    same(&none, &[7; 246], 0);
    same(&|| none().utf8(c"pad-mode", "none"), &[7; 256], 1);
    same(&|| none().utf8(c"pad-mode", "none"), &[0xFF; 256], 0);
    same(&|| none().utf8(c"pad-mode", "none"), &[7; 255], 0);
    same(&|| none().utf8(c"digest", "SHA256"), &[7; 32], 1);
    same(&|| none().utf8(c"digest", "SHA256"), &[7; 31], 0);
    same(&|| none().utf8(c"digest", "MD5-SHA1"), &[7; 36], 1);
    same(&|| none().utf8(c"digest", "SHA256").utf8(c"pad-mode", "x931"), &[7; 32], 0);
}

#[test]
fn a_digest_under_x931_is_the_twins() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let settings = || none().utf8(c"pad-mode", "x931");
    assert_eq!(ours.digest_sign("SHA256", settings(), &[MESSAGE]).unwrap(), plain.digest_sign("SHA256", settings(), &[MESSAGE]).unwrap());
}

#[test]
fn rsa_decrypts_what_the_default_provider_encrypts() {
    let pair = Pair::new();
    for index in 0..RSA.len() {
        let (plain, ours) = rsa(&pair, index);
        let oaep = |digest: &str, mask: &str| {
            none().utf8(c"pad-mode", "oaep").utf8(c"digest", digest).utf8(c"mgf1-digest", mask).octets(c"oaep-label", b"label")
        };
        let settings: [&dyn Fn() -> OwnedParams; 5] =
            [&none, &|| none().utf8(c"pad-mode", "oaep"), &|| oaep("SHA256", "SHA256"), &|| oaep("SHA1", "SHA256"), &|| {
                oaep("SHA3-256", "SHA384").octets(c"oaep-label", b"")
            }];
        for (which, settings) in settings.into_iter().enumerate() {
            for text in [&b""[..], b"text", &[5; 60]] {
                // A 1024-bit modulus has no room for 60 bytes under every digest.
                let Some(ciphertext) = plain.encrypt(settings(), text) else { continue };
                let run = || ours.decrypt(settings(), &ciphertext);
                let (found, native) = rsa_algorithm(index).map_or_else(|| (run(), 1), |algorithm| counting(&pair.bywash, algorithm, run));
                assert_eq!(found.as_deref(), Some(text), "{index} {which}");
                assert_eq!(native, 1);
                let mut damaged = ciphertext.clone();
                damaged[0] ^= 1;
                assert_eq!(ours.decrypt(settings(), &damaged), plain.decrypt(settings(), &damaged), "{index} {which}");
                let theirs = ours.encrypt(settings(), text).unwrap();
                assert_eq!(plain.decrypt(settings(), &theirs).as_deref(), Some(text));
            }
        }
    }
}

#[test]
fn raw_rsa_takes_short_input_and_refuses_what_is_too_large() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let raw = || none().utf8(c"pad-mode", "none");
    for input in [vec![9; 256], vec![9; 200], vec![], vec![0xFF; 256], vec![0; 257]] {
        assert_eq!(ours.decrypt(raw(), &input), plain.decrypt(raw(), &input), "{}", input.len());
    }
}

#[test]
fn premaster_secrets_come_out_and_flaws_do_not_show() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let tls = |offered| none().number(c"tls-client-version", offered);
    let mut secret = vec![0x5A; 48];
    (secret[0], secret[1]) = (3, 3);
    let ciphertext = plain.encrypt(none(), &secret).unwrap();
    let (found, native) = counting(&pair.bywash, Algorithm::Rsa2048Private, || ours.premaster(tls(0x303), &ciphertext));
    assert_eq!((found, native), (Some(secret.clone()), 1));
    let rolled_back = ours.premaster(tls(0x304), &ciphertext).unwrap();
    assert!(rolled_back.len() == 48 && rolled_back != secret);
    assert_eq!(ours.premaster(tls(0x304).number(c"tls-negotiated-version", 0x303), &ciphertext), Some(secret));
    for bad in [plain.encrypt(none(), b"short").unwrap(), plain.encrypt(none().utf8(c"pad-mode", "oaep"), &[3; 48]).unwrap()] {
        let (one, other) = (ours.premaster(tls(0x303), &bad).unwrap(), ours.premaster(tls(0x303), &bad).unwrap());
        assert!(one.len() == 48 && one != other, "a bad block gives a new random secret each time");
    }
    assert_eq!(ours.premaster(tls(0), &ciphertext), None);
}

#[test]
fn ecdsa_signatures_verify_in_both_directions() {
    let pair = Pair::new();
    let p256 = (Algorithm::EcdsaP256Sign, Algorithm::EcdsaP256Verify);
    let p384 = (Algorithm::EcdsaP384Sign, Algorithm::EcdsaP384Verify);
    for (group, (sign, verify), native) in
        [("P-256", p256, 1), ("P-384", p384, 1), ("P-521", p384, 0), ("secp256k1", p256, 0), ("brainpoolP256r1", p256, 0)]
    {
        let (plain, ours) = pair.both("EC", pair.plain.ec(group));
        for digest in &DIGESTS[..11] {
            let run = || ours.digest_sign(digest, none(), &[MESSAGE]).unwrap();
            let (signature, counted) = counting(&pair.bywash, sign, run);
            assert_eq!(counted, native, "{group} {digest}");
            assert!(plain.digest_verify(digest, none(), MESSAGE, &signature), "{group} {digest}");
            let theirs = plain.digest_sign(digest, none(), &[MESSAGE]).unwrap();
            let (good, counted) = counting(&pair.bywash, verify, || ours.digest_verify(digest, none(), MESSAGE, &theirs));
            assert_eq!((good, counted), (true, native), "{group} {digest}");
            assert!(!ours.digest_verify(digest, none(), b"another", &theirs));
            assert!(!ours.digest_verify(digest, none(), MESSAGE, &theirs[..theirs.len() - 1]));
        }
        assert!(ours.sign(none(), b"tiny").is_some_and(|signature| !signature.is_empty()));
        // What OpenSSL knows since 3.2, and earlier ones pass over: how nonces come about. At random they are anyway.
        for (random, native) in [(0, native), (1, 0)] {
            let settings = || none().number(c"nonce-type", random);
            let (signature, counted) = counting(&pair.bywash, sign, || ours.digest_sign("SHA256", settings(), &[MESSAGE]).unwrap());
            assert_eq!(counted, native, "{group} {random}");
            assert!(plain.digest_verify("SHA256", none(), MESSAGE, &signature), "{group} {random}");
        }
    }
}

#[test]
fn ed25519_signatures_are_the_default_providers() {
    let pair = Pair::new();
    let theirs = pair.bywash.ed25519();
    assert!(theirs.is_bywash());
    for key in [pair.plain.ed25519(), theirs.transfer("ED25519", KEYPAIR, &pair.plain)] {
        let (plain, ours) = pair.both("ED25519", key);
        for (length, native) in [(0, 1), (1, 1), (146, 1), (4096, 1), (4097, 0), (100_000, 0)] {
            let message = vec![length as u8; length];
            let expected = plain.sign_at_once(&message).unwrap();
            let (signature, counted) = counting(&pair.bywash, Algorithm::Ed25519Sign, || ours.sign_at_once(&message));
            assert_eq!((signature.as_ref(), counted), (Some(&expected), native), "{length}");
            for key in [&plain, &ours, &ours.transfer("ED25519", PUBLIC, &pair.bywash)] {
                assert!(key.verify_at_once(&message, &expected), "{length}");
                assert!(!key.verify_at_once(b"another message", &expected) && !key.verify_at_once(&message, &expected[..63]));
            }
        }
        assert_eq!(ours.digest_sign("SHA512", none(), &[MESSAGE]), None, "Ed25519 takes no digest");
        assert_eq!(ours.transfer("ED25519", PUBLIC, &pair.bywash).sign_at_once(MESSAGE), None, "no private half");
    }
}

/// RFC 8032 s7.1, tests 1 to 3: private key, message, signature.
const RFC8032: [[&str; 3]; 3] = [
    [
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
];

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn ed25519_signs_as_in_rfc_8032() {
    let library = Library::bywash();
    for [private, message, signature] in RFC8032 {
        let key = library.import("ED25519", KEYPAIR, none().octets(c"priv", &hex(private)).as_ptr()).unwrap();
        assert_eq!(key.sign_at_once(&hex(message)), Some(hex(signature)));
    }
    assert_eq!(library.counted(Algorithm::Ed25519Sign), 3);
}

#[test]
fn keys_are_compared_and_copied_across_libraries() {
    let pair = Pair::new();
    let make: [(&str, Make<'_>, Make<'_>); 7] = [
        ("RSA", &|| RSA[1].transfer("RSA", KEYPAIR, &pair.plain), &|| RSA[2].transfer("RSA", KEYPAIR, &pair.plain)),
        ("EC", &|| pair.plain.ec("P-256"), &|| pair.plain.ec("P-256")),
        ("EC", &|| pair.plain.ec("P-384"), &|| pair.plain.ec("P-384")),
        ("EC", &|| pair.plain.ec("P-384"), &|| pair.plain.ec("P-256")),
        ("EC", &|| pair.plain.ec("P-521"), &|| pair.plain.ec("P-384")),
        ("ED25519", &|| pair.plain.ed25519(), &|| pair.plain.ed25519()),
        ("X25519", &|| pair.plain.x25519(), &|| pair.plain.x25519()),
    ];
    for (name, one, other) in make {
        let (plain, ours) = pair.both(name, one());
        let (_, other) = pair.both(name, other());
        assert!(ours.is(&plain) && plain.is(&ours) && ours.is(&ours.duplicate()), "{name}");
        assert!(!ours.is(&other) && !other.is(&plain), "{name}");
        let public = ours.transfer(name, PUBLIC, &pair.bywash);
        assert!(public.is(&plain) && ours.is(&public) && ours.duplicate().is(&public), "{name}");
        assert!(public.duplicate().is(&plain), "{name}");
    }
}

#[test]
fn half_a_message_can_be_copied_and_finished_twice() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let first = Signing::begin(&ours, "SHA256", true).unwrap();
    assert!(first.update(b"begun "));
    let second = first.duplicate();
    assert!(first.update(b"here") && second.update(b"there"));
    assert_eq!(first.sign(), plain.digest_sign("SHA256", none(), &[b"begun here"]));
    assert_eq!(second.sign(), plain.digest_sign("SHA256", none(), &[b"begun there"]));
    assert_eq!(first.sign(), plain.digest_sign("SHA256", none(), &[b"begun here"]), "EVP signs a copy: the context can go on");
}

#[test]
fn what_is_set_for_one_signature_is_not_for_the_next() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let sign = |settings: Option<OwnedParams>, digest: &str| {
        let signing = Signing::begin(&ours, digest, true).unwrap();
        assert!(settings.is_none_or(|settings| signing.set(settings)) && signing.update(MESSAGE));
        signing.sign().unwrap()
    };
    for digest in ["SHA256", "SHA384", "SHA256", "sha2-256"] {
        let expected = plain.digest_sign(digest, none(), &[MESSAGE]).unwrap();
        for _ in 0..3 {
            assert_eq!(sign(None, digest), expected, "{digest}");
            assert!(plain.digest_verify(digest, pss("digest"), MESSAGE, &sign(Some(pss("digest")), digest)), "{digest}");
            assert!(plain.digest_verify(digest, pss("13"), MESSAGE, &sign(Some(pss("13")), digest)), "{digest}");
        }
    }
    assert_eq!(pair.bywash.counted(Algorithm::Rsa2048Private), 36);
    let (plain, ours) = pair.both("EC", pair.plain.ec("P-256"));
    for digest in ["SHA256", "SHA384", "SHA256"] {
        let signature = ours.digest_sign(digest, none(), &[MESSAGE]).unwrap();
        assert!(plain.digest_verify(digest, none(), MESSAGE, &signature), "{digest}");
    }
    assert!(Signing::begin(&ours, "no such digest", true).is_none());
}

/// libcrypto asks for it when it signs a certificate. Contexts are copies of the first with their key and digest.
#[test]
fn algorithm_identifiers_outlive_the_first_signature() {
    let pair = Pair::new();
    for (plain, ours) in [rsa(&pair, 1), pair.both("EC", pair.plain.ec("P-256"))] {
        let expected = Signing::begin(&plain, "SHA256", true).unwrap().algorithm_identifier();
        for _ in 0..4 {
            let first = Signing::begin(&ours, "SHA256", true).unwrap();
            assert_eq!(first.algorithm_identifier(), expected);
            let second = Signing::begin(&ours, "SHA256", true).unwrap();
            drop(first);
            // In the room of what was freed, perhaps.
            let others: Vec<Signing> = (0..8).map(|_| Signing::begin(&plain, "SHA384", true).unwrap()).collect();
            assert_eq!(second.algorithm_identifier(), expected);
            assert!(others.iter().all(|other| other.algorithm_identifier() != expected));
        }
    }
}

#[test]
fn an_empty_message_is_signed_too() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    assert_eq!(ours.digest_sign("SHA256", none(), &[]), plain.digest_sign("SHA256", none(), &[]));
    let (plain, ours) = pair.both("EC", pair.plain.ec("P-256"));
    let signature = ours.digest_sign("SHA256", none(), &[]).unwrap();
    assert!(plain.digest_verify("SHA256", none(), b"", &signature) && ours.digest_verify("SHA256", none(), b"", &signature));
}

#[test]
fn threads_share_a_key() {
    let pair = Pair::new();
    let (plain, ours) = rsa(&pair, 1);
    let expected = plain.digest_sign("SHA256", none(), &[MESSAGE]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(ours.digest_sign("SHA256", none(), &[MESSAGE]).as_ref(), Some(&expected))));
        }
    });
    assert_eq!(pair.bywash.counted(Algorithm::Rsa2048Private), 80);
    let (plain, ours) = pair.both("EC", pair.plain.ec("P-256"));
    std::thread::scope(|scope| {
        for digest in ["SHA256", "SHA384", "sha2-256", "SHA512", "SHA256", "SHA384"] {
            let (plain, ours) = (&plain, &ours);
            scope.spawn(move || {
                for _ in 0..50 {
                    let signature = ours.digest_sign(digest, none(), &[MESSAGE]).unwrap();
                    assert!(plain.digest_verify(digest, none(), MESSAGE, &signature), "{digest}");
                }
            });
        }
    });
}

/// Whether a key is taken, and what it signs.
fn taken(library: &Library, name: &str, selection: i32, params: OwnedParams) -> Option<Option<bool>> {
    let mut params = params;
    let key = library.import(name, selection, params.as_ptr())?;
    if name == "X25519" {
        return Some(key.derive(&library.x25519(), none()).map(|_| true));
    }
    if name == "ED25519" {
        return Some(key.sign_at_once(MESSAGE).map(|signature| key.verify_at_once(MESSAGE, &signature)));
    }
    let signature = key.digest_sign("SHA256", none(), &[MESSAGE]);
    Some(signature.map(|signature| key.digest_verify("SHA256", none(), MESSAGE, &signature)))
}

#[test]
fn keys_that_cannot_be_are_treated_alike() {
    let pair = Pair::new();
    let orders = [
        ("P-256", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
        ("P-384", "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"),
    ];
    for (group, order) in orders {
        let order = hex(order);
        let (zero, full) = (vec![0; order.len()], vec![0xff; order.len()]);
        let good = pair.plain.ec(group).encoded_public();
        let mut off = good.clone();
        *off.last_mut().unwrap() ^= 1;
        for private in [&zero[..], &order, &full, &[&[0xff][..], &full].concat(), &[1], &[0xff; 200], &[]] {
            for public in [Some(&good[..]), Some(&off), Some(&[0]), Some(&[]), None] {
                let make = || {
                    let params = none().utf8(c"group", group).big_endian(c"priv", private);
                    match public {
                        Some(public) => params.octets(c"pub", public),
                        None => params,
                    }
                };
                let (ours, theirs) = (taken(&pair.bywash, "EC", KEYPAIR, make()), taken(&pair.plain, "EC", KEYPAIR, make()));
                assert_eq!(ours, theirs, "{group} {private:x?} {public:x?}");
            }
        }
    }
    let zero = [0; 32];
    for private in [&zero[..], &[0xff; 32], &[1; 31], &[1; 33], &[]] {
        for public in [Some(&zero[..]), Some(&[0xff; 32]), Some(&[1; 31]), Some(&[1; 33]), None] {
            let make = || {
                let params = none().octets(c"priv", private);
                match public {
                    Some(public) => params.octets(c"pub", public),
                    None => params,
                }
            };
            for name in ["X25519", "ED25519"] {
                let (ours, theirs) = (taken(&pair.bywash, name, KEYPAIR, make()), taken(&pair.plain, name, KEYPAIR, make()));
                assert_eq!(ours, theirs, "{name} {private:x?} {public:x?}");
            }
        }
    }
}

/// Changes a number's bytes, least significant first.
type Damage = fn(&mut [u8]);

#[test]
fn rsa_keys_with_a_damaged_part_are_treated_alike() {
    let pair = Pair::new();
    let damages: [(&str, Damage); 5] = [
        ("lowest bit", |number| number[0] ^= 1),
        ("another bit", |number| number[number.len() / 2] ^= 4),
        ("zero", |number| number.fill(0)),
        ("one", |number| {
            number.fill(0);
            number[0] = 1;
        }),
        ("all ones", |number| number.fill(0xFF)),
    ];
    for name in [c"n", c"e", c"d", c"rsa-factor1", c"rsa-factor2", c"rsa-exponent1", c"rsa-exponent2", c"rsa-coefficient1"] {
        for (damage, apply) in damages {
            let sign = |library: &Library| {
                let key = RSA[1].damaged(name, apply, library)?;
                // Blinding makes what a wrong key gives random, so it is only asked whether it is a signature.
                let signature = key.digest_sign("SHA256", none(), &[MESSAGE]);
                let good = signature.map(|signature| RSA[1].digest_verify("SHA256", none(), MESSAGE, &signature));
                Some((good, key.check(EVP_PKEY_check)))
            };
            assert_eq!(sign(&pair.bywash), sign(&pair.plain), "{name:?}, {damage}");
        }
    }
}
