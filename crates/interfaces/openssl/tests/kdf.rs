//! Key derivation against the default provider: the same parameters in any order and any pieces, the same bytes, the same answers.

#![allow(clippy::undocumented_unsafe_blocks, reason = "tests call libcrypto as its manual pages say, with buffers that outlive the calls")]

mod common;

use bywash_openssl::ffi::abi::{OCTET_PTR, OCTET_STRING, UTF8_PTR, UTF8_STRING};
use bywash_openssl::ffi::libcrypto::*;
use bywash_openssl::ffi::{OwnedParams, Param};
use common::kdf::*;
use common::*;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

fn pair(library: &Library, name: &CStr) -> [Kdf; 2] {
    ["bywash", "default"].map(|provider| Kdf::new(library, name, provider))
}

/// Random bytes, as many as one of these says.
fn some(random: &mut Random, lengths: &[usize]) -> Vec<u8> {
    let length = lengths[random.below(lengths.len())];
    random.bytes(length)
}

/// The same calls on both; both answer alike.
fn agree(pair: &[Kdf; 2], len: usize, params: impl Fn() -> OwnedParams, what: &str) -> (c_int, Vec<u8>, String) {
    let [ours, theirs] = pair.each_ref().map(|kdf| kdf.derive(len, params()));
    assert_eq!(ours, theirs, "{what}");
    ours
}

#[test]
fn programs_find_ours_first() {
    let library = Library::new("auto");
    for name in [c"TLS1-PRF", c"TLS13-KDF"] {
        unsafe {
            let kdf = EVP_KDF_fetch(library.context, name.as_ptr(), ptr::null());
            let provider = CStr::from_ptr(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)));
            assert_eq!(provider, c"bywash");
            EVP_KDF_free(kdf);
        }
    }
}

#[test]
fn tls_1_2_derives_the_same() {
    let library = Library::new("auto");
    let mut random = Random::new(12);
    for round in 0..600 {
        let pair = pair(&library, c"TLS1-PRF");
        let digest = ["SHA256", "sha2-384", "SHA384", "SHA-256", "MD5-SHA1", "SHA512", "SHA1"][random.below(7)];
        let secret = some(&mut random, &[1, 32, 48, 66, 128, 200]);
        let seeds: Vec<Vec<u8>> = (0..random.below(5)).map(|_| some(&mut random, &[0, 13, 32, 64])).collect();
        let params = || {
            let begun = OwnedParams::new().utf8(c"digest", digest).octets(c"secret", &secret);
            seeds.iter().fold(begun, |params, seed| params.octets(c"seed", seed))
        };
        let what = format!("{round}: {digest}, a secret of {}, seeds {seeds:x?}", secret.len());
        let len = [1, 12, 40, 48, 104, 255][random.below(6)];
        agree(&pair, len, params, &what);
        // Seeds are added to, all else stays.
        let more = || OwnedParams::new().octets(c"seed", &seeds.concat());
        agree(&pair, len, more, &format!("{what}, again"));
        for kdf in &pair {
            unsafe { EVP_KDF_CTX_reset(kdf.0) };
        }
        agree(&pair, len, more, &format!("{what}, after a reset"));
    }
}

#[test]
fn tls_1_3_derives_the_same() {
    let library = Library::new("auto");
    let mut random = Random::new(13);
    for round in 0..1000 {
        let pair = pair(&library, c"TLS13-KDF");
        let digest = ["SHA256", "SHA384", "SHA2-384", "SHA512"][random.below(4)];
        let mode = ["EXTRACT_ONLY", "EXPAND_ONLY", "EXTRACT_AND_EXPAND"][[0, 0, 0, 1, 1, 1, 2][random.below(7)]];
        let label = some(&mut random, &[2, 7, 7, 12, 12, 249, 250]);
        let fields: Vec<(&CStr, Vec<u8>)> = vec![
            (c"key", some(&mut random, &[0, 32, 48, 56])),
            (c"salt", some(&mut random, &[0, 32, 48])),
            (c"prefix", b"tls13 ".to_vec()),
            (c"label", label),
            (c"data", some(&mut random, &[0, 32, 48, 64, 65])),
        ];
        let left_out: Vec<bool> = fields.iter().map(|_| random.one_in(6)).collect();
        let given = || fields.iter().zip(&left_out).filter(|&(_, &left_out)| !left_out).map(|(field, _)| field);
        let begun = || OwnedParams::new().utf8(c"mode", mode).utf8(c"digest", digest);
        let params = || given().fold(begun(), |params, (name, bytes)| params.octets(name, bytes));
        let what = format!("{round}: {digest}, {mode}, {:x?}", given().collect::<Vec<_>>());
        let len = [12, 16, 32, 48, 100][random.below(5)];
        agree(&pair, len, params, &what);
        let one_by_one = || {
            pair.each_ref().map(|kdf| {
                unsafe { EVP_KDF_CTX_reset(kdf.0) };
                given().map(|(name, bytes)| kdf.set(OwnedParams::new().octets(name, bytes))).chain([kdf.set(begun())]).collect::<Vec<_>>()
            })
        };
        let [ours, theirs] = one_by_one();
        assert_eq!(ours, theirs, "{what}, one by one");
        agree(&pair, len, OwnedParams::new, &format!("{what}, one by one"));
    }
}

#[test]
fn modes_are_numbers_as_well() {
    let library = Library::new("auto");
    for mode in 0..4 {
        let pair = pair(&library, c"TLS13-KDF");
        let number = |params: OwnedParams| params.number(c"mode", mode).utf8(c"digest", "SHA256");
        let params = || {
            number(OwnedParams::new()).octets(c"key", &[7; 32]).octets(c"prefix", b"tls13 ").octets(c"label", b"key").octets(c"data", b"")
        };
        let (done, ..) = agree(&pair, 32, params, &format!("mode {mode}"));
        assert_eq!(done, c_int::from(mode == 1 || mode == 2));
    }
}

#[test]
fn what_is_missing_or_malformed_is_refused_alike() {
    let library = Library::new("auto");
    let prf = || OwnedParams::new().utf8(c"digest", "SHA256").octets(c"secret", &[1; 48]).octets(c"seed", &[2; 77]);
    type Case = (&'static str, fn() -> OwnedParams);
    let cases: [Case; 5] = [
        ("nothing", OwnedParams::new),
        ("no digest", || OwnedParams::new().octets(c"secret", &[1; 48]).octets(c"seed", &[2; 77])),
        ("no secret", || OwnedParams::new().utf8(c"digest", "SHA256").octets(c"seed", &[2; 77])),
        ("no seed", || OwnedParams::new().utf8(c"digest", "SHA256").octets(c"secret", &[1; 48])),
        ("a digest that nobody has", || OwnedParams::new().utf8(c"digest", "SHA257")),
    ];
    for (what, params) in cases {
        let (done, ..) = agree(&pair(&library, c"TLS1-PRF"), 12, params, what);
        assert_ne!(done, 1, "{what}");
    }
    // OpenSSL 3.0 refuses it, 3.5 does not.
    let longer =
        || OwnedParams::new().utf8(c"digest", "SHA256").octets(c"secret", &[1; 48]).octets(c"seed", &[2; 1000]).octets(c"seed", &[2; 25]);
    agree(&pair(&library, c"TLS1-PRF"), 12, longer, "a seed longer than OpenSSL 3.0 takes");
    let (done, ..) = agree(&pair(&library, c"TLS1-PRF"), 0, prf, "no room");
    assert_ne!(done, 1);
    let nobodys = || prf().utf8(c"properties", "provider=nobody");
    let (done, ..) = agree(&pair(&library, c"TLS1-PRF"), 12, nobodys, "a digest of a provider that is not there");
    assert_ne!(done, 1);
    // Of a wrong type.
    let mut secret = [1_u8; 48];
    for (key, data_type) in [(c"secret", UTF8_STRING), (c"digest", OCTET_STRING)] {
        let params = [Param::new(key, data_type, secret.as_mut_ptr().cast(), 48), Param::END];
        let answers = pair(&library, c"TLS1-PRF").map(|kdf| unsafe { EVP_KDF_CTX_set_params(kdf.0, params.as_ptr()) });
        assert_eq!(answers[0], answers[1], "{key:?}");
    }
}

/// Arrays that no release's libssl makes: whoever makes them gets what the default provider says.
#[test]
fn unusual_arrays_are_answered_alike() {
    let library = Library::new("auto");
    let (mut bytes, mut others) = (*b"a secret of some 32 bytes at all", *b"another of as many bytes as that");
    let mut pointer: *mut c_void = bytes.as_mut_ptr().cast();
    let octets = |key: &CStr, bytes: &mut [u8]| Param::new(key, OCTET_STRING, bytes.as_mut_ptr().cast(), bytes.len());
    let text = |key: &CStr, text: &'static CStr, len: usize| Param::new(key, UTF8_STRING, text.as_ptr().cast_mut().cast::<c_void>(), len);
    let pointed = |key: &CStr, data_type, place: &mut *mut c_void| Param::new(key, data_type, ptr::from_mut(place).cast(), 32);
    let null = |key: &CStr| Param::new(key, OCTET_STRING, ptr::null_mut(), 0);
    let tls_1_2 = [text(c"digest", c"SHA256", 6), octets(c"secret", &mut bytes), octets(c"seed", &mut bytes)];
    let tls_1_3 = [
        text(c"mode", c"EXPAND_ONLY", 11),
        text(c"digest", c"SHA256", 6),
        octets(c"key", &mut bytes),
        octets(c"prefix", &mut bytes[..6]),
        octets(c"label", &mut bytes[..3]),
        octets(c"data", &mut bytes),
    ];
    let mut sha384: *mut c_void = c"SHA384".as_ptr().cast_mut().cast();
    let strange = [
        null(c"secret"),
        null(c"seed"),
        null(c"key"),
        null(c"salt"),
        null(c"prefix"),
        null(c"label"),
        null(c"data"),
        octets(c"secret", &mut others),
        octets(c"key", &mut others),
        octets(c"salt", &mut others),
        octets(c"label", &mut others[..5]),
        octets(c"data", &mut others),
        text(c"digest", c"SHA384", 6),
        text(c"digest", c"SHA256xyz", 6),
        text(c"mode", c"EXTRACT_ONLY", 12),
        text(c"mode", c"EXPAND_ONLYx", 11),
        text(c"engine", c"nobody", 6),
        text(c"properties", c"", 0),
        text(c"properties", c"provider=nobody", 15),
        text(c"unheard-of", c"x", 1),
        pointed(c"secret", OCTET_PTR, &mut pointer),
        pointed(c"seed", OCTET_PTR, &mut pointer),
        pointed(c"key", OCTET_PTR, &mut pointer),
        pointed(c"digest", UTF8_PTR, &mut sha384),
        pointed(c"mode", UTF8_PTR, &mut sha384),
    ];
    for (name, usual) in [(c"TLS1-PRF", &tls_1_2[..]), (c"TLS13-KDF", &tls_1_3[..])] {
        for (index, &entry) in strange.iter().enumerate() {
            // Among the others, in the place of the one of its name, before all and behind all.
            let is_same = |param: &&Param| unsafe { CStr::from_ptr(param.key) == CStr::from_ptr(entry.key) };
            let instead: Vec<Param> = usual.iter().filter(|param| !is_same(param)).copied().chain([entry]).collect();
            for array in [instead, [&[entry], usual].concat(), [usual, &[entry]].concat()] {
                let array = [&array[..], &[Param::END]].concat();
                let answers = pair(&library, name).map(|kdf| {
                    let mut out = [0; 32];
                    let done = unsafe { EVP_KDF_derive(kdf.0, out.as_mut_ptr(), 32, array.as_ptr()) };
                    if done == 1 { Some(out) } else { None }
                });
                let names: Vec<_> =
                    array.iter().take_while(|param| !param.key.is_null()).map(|param| unsafe { CStr::from_ptr(param.key) }).collect();
                assert_eq!(answers[0], answers[1], "{name:?}, entry {index} among {names:?}");
            }
        }
    }
}

#[test]
fn contexts_say_their_size_and_are_copied() {
    let library = Library::new("auto");
    let [ours, theirs] = pair(&library, c"TLS1-PRF");
    assert_eq!(unsafe { EVP_KDF_CTX_get_kdf_size(ours.0) }, unsafe { EVP_KDF_CTX_get_kdf_size(theirs.0) });
    let [ours, theirs] = pair(&library, c"TLS13-KDF");
    let params = || OwnedParams::new().utf8(c"mode", "EXPAND_ONLY").utf8(c"digest", "SHA384").octets(c"key", &[7; 48]);
    assert_eq!((ours.set(params()), theirs.set(params())), (1, 1));
    let copy = Kdf(unsafe { EVP_KDF_CTX_dup(ours.0) });
    drop(ours);
    let rest = || OwnedParams::new().octets(c"prefix", b"tls13 ").octets(c"label", b"iv").octets(c"data", b"");
    assert_eq!(copy.derive(12, rest()), theirs.derive(12, rest()));
}
