use super::*;
use ::hmac::{Hmac as Other, KeyInit, Mac};
use sha2::Digest;

const KINDS: [Kind; 2] = [Kind::Sha384, Kind::Sha512];

/// Those that this processor can take.
fn paths() -> Vec<Path> {
    let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
    if !is_supported() {
        println!("skipped: this processor has no AVX2 and BMI2");
        return Vec::new();
    }
    if !wide {
        println!("skipped in part: no AVX-512VL");
    }
    [Path::Avx2, Path::Avx512].into_iter().filter(|&path| wide || path == Path::Avx2).collect()
}

fn expected(kind: Kind, message: &[u8]) -> Vec<u8> {
    match kind {
        Kind::Sha384 => sha2::Sha384::digest(message).to_vec(),
        Kind::Sha512 => sha2::Sha512::digest(message).to_vec(),
    }
}

fn expected_mac(kind: Kind, key: &[u8], message: &[u8]) -> Vec<u8> {
    match kind {
        Kind::Sha384 => Other::<sha2::Sha384>::new_from_slice(key).unwrap().chain_update(message).finalize().into_bytes().to_vec(),
        Kind::Sha512 => Other::<sha2::Sha512>::new_from_slice(key).unwrap().chain_update(message).finalize().into_bytes().to_vec(),
    }
}

fn value(hash: &mut Hash) -> Vec<u8> {
    let mut value = vec![0; hash.kind().size()];
    hash.finish(&mut value);
    value
}

fn each(mut check: impl FnMut(Path, Kind)) {
    paths().into_iter().for_each(|path| KINDS.into_iter().for_each(|kind| check(path, kind)));
}

/// FIPS 180-4's examples, of one block and of two.
#[test]
fn the_standards_examples() {
    let hex = |value: Vec<u8>| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let two = b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
    each(|path, kind| {
        let of = |message: &[u8]| {
            let mut hash = Hash::by(path, kind);
            hash.update(message);
            hex(value(&mut hash))
        };
        let (one, other) = match kind {
            Kind::Sha384 => (
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
                "09330c33f71147e83d192fc782cd1b4753111b173b3b05d22fa08086e3b0f712fcc7c71a557e2db966c3e9fa91746039",
            ),
            Kind::Sha512 => (
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
                "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909",
            ),
        };
        assert_eq!((of(b"abc").as_str(), of(two).as_str()), (one, other), "{path:?} {kind:?}");
    });
}

#[test]
fn every_length_agrees_with_a_second_implementation() {
    let message: Vec<u8> = (0..4200_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    each(|path, kind| {
        let mut hash = Hash::by(path, kind);
        for length in (0..=4096).chain([4199]) {
            // At every alignment, too.
            let part = &message[length % 64 % (message.len() - length)..][..length];
            hash.reset();
            hash.update(part);
            assert_eq!(value(&mut hash), expected(kind, part), "{path:?} {kind:?} of {length}");
        }
    });
}

#[test]
fn pieces_are_the_whole() {
    let mut random = fastrand::Rng::with_seed(7);
    let message: Vec<u8> = (0..700).map(|_| random.u8(..)).collect();
    each(|path, kind| {
        let whole = expected(kind, &message);
        for cut in 0..=message.len() {
            let mut hash = Hash::by(path, kind);
            hash.update(&message[..cut]);
            let mut copy = Hash::by(path, kind);
            copy.update(b"something else, which is forgotten");
            copy.copy_from(&hash);
            hash.update(&message[cut..]);
            copy.update(&message[cut..]);
            assert_eq!((value(&mut hash), value(&mut copy)), (whole.clone(), whole.clone()), "{path:?} {kind:?} cut at {cut}");
        }
        for _ in 0..200 {
            let mut hash = Hash::by(path, kind);
            let mut rest = &message[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(random.usize(0..=rest.len()));
                hash.update(now);
                rest = later;
            }
            assert_eq!(value(&mut hash), whole);
        }
    });
}

#[test]
fn hmac_agrees_with_a_second_implementation() {
    let message: Vec<u8> = (0..300_u16).map(|at| at as u8).collect();
    if paths().is_empty() {
        return;
    }
    for kind in KINDS {
        let mut hmac = Hmac::new(kind);
        for key_len in (0..=260).chain([1000]) {
            let key = vec![key_len as u8; key_len];
            hmac.set_key(&key);
            for length in [0, 1, 13, 63, 64, 111, 112, 125, 127, 128, 129, 240, 300] {
                let expected = expected_mac(kind, &key, &message[..length]);
                let mut value = [0; SIZE_MAX];
                let (one, other) = message[..length].split_at(length / 3);
                hmac.of(&[one, &[], other], &mut value);
                assert_eq!(value[..kind.size()], expected, "{kind:?} key of {key_len}, message of {length}");
            }
        }
    }
}
