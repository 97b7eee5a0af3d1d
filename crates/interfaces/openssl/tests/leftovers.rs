//! When a context has been freed, nothing of its key is left on the stack.

mod common;

use bywash_client::Client;
use bywash_core::Algorithm;
use bywash_openssl::ffi::OwnedParams;
use common::kdf::Kdf;
use common::{Cipher, Context, Library};
use std::ffi::CStr;

/// Bytes of stack that are looked at, more than any cipher uses.
const DEPTH: usize = 256 << 10;
/// Bytes just below the caller, where frames of the test's own lie.
const OWN: usize = 256;
const PAINT: u64 = 0xA5A5_5A5A_C33C_3CC3;
const NAMES: [&str; 9] =
    ["AES-128-CTR", "AES-256-CTR", "AES-128-CBC", "AES-256-CBC", "AES-128-ECB", "AES-256-ECB", "AES-256-XTS", "AES-128-GCM", "AES-256-GCM"];
const CHACHA: &str = "ChaCha20-Poly1305";
const LONGEST: usize = 70_000;
const SIZES: [usize; 12] = [16, 32, 48, 80, 128, 144, 256, 320, 512, 1024, 4096, LONGEST];
const IV: [u8; 16] = [9; 16];

/// Product in GF(2^8) (FIPS 197 s4.2).
fn times(a: u8, b: u8) -> u8 {
    (0..8).fold((0u8, a), |(sum, a), bit| (sum ^ (a & 0u8.wrapping_sub(b >> bit & 1)), a << 1 ^ (0x1B & 0u8.wrapping_sub(a >> 7)))).0
}

fn substitute(byte: u8) -> u8 {
    let inverse = (0..254).fold(1, |power, _| times(power, byte));
    (0..5).fold(0x63, |sum, turn| sum ^ inverse.rotate_left(turn))
}

/// The round keys of a key (FIPS 197 s5.2).
fn expand(key: &[u8]) -> Vec<[u8; 16]> {
    let length = key.len() / 4;
    let mut words: Vec<[u8; 4]> = key.chunks_exact(4).map(|word| word.try_into().unwrap()).collect();
    let mut constant = 1;
    for i in length..4 * (length + 7) {
        let mut word = words[i - 1];
        if i % length == 0 {
            word.rotate_left(1);
            word = word.map(substitute);
            word[0] ^= constant;
            constant = times(constant, 2);
        } else if length > 6 && i % length == 4 {
            word = word.map(substitute);
        }
        words.push(core::array::from_fn(|j| words[i - length][j] ^ word[j]));
    }
    words.chunks_exact(4).map(|words| words.concat().try_into().unwrap()).collect()
}

/// What a round key is in the equivalent inverse cipher (FIPS 197 s5.3.5).
fn inverted(key: &[u8; 16]) -> [u8; 16] {
    core::array::from_fn(|i| {
        let factors = [14, 11, 13, 9];
        (0..4).fold(0, |sum, j| sum ^ times(key[i / 4 * 4 + j], factors[(j + 4 - i % 4) % 4]))
    })
}

/// A block after the first round (FIPS 197 s5.1): of a block that is known it gives the key away.
fn after_first_round(keys: &[[u8; 16]], block: [u8; 16]) -> [u8; 16] {
    let state: [u8; 16] = core::array::from_fn(|i| substitute(block[i] ^ keys[0][i]));
    let shifted: [u8; 16] = core::array::from_fn(|i| state[(i + 4 * (i % 4)) % 16]);
    core::array::from_fn(|i| {
        let factors = [2, 3, 1, 1];
        (0..4).fold(keys[1][i], |sum, j| sum ^ times(shifted[i / 4 * 4 + j], factors[(j + 4 - i % 4) % 4]))
    })
}

/// The key, its two halves and those of the hash's key, the first half of which is kept clamped (RFC 8439 s2.3, s2.5, s2.6).
fn chacha_parts(key: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let constants = [0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574];
    let words = constants.into_iter().chain(key.chunks(4).map(word)).chain([0]).chain(IV[..12].chunks(4).map(word));
    let state: Vec<u32> = words.collect();
    let mut x = state.clone();
    for round in 0..20 {
        for i in 0..4 {
            let turned = if round % 2 == 0 { 0 } else { 1 };
            let [a, b, c, d] = [0, 1, 2, 3].map(|row| 4 * row + (i + row * turned) % 4);
            for (sum, plus, turn, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                x[sum] = x[sum].wrapping_add(x[plus]);
                x[turn] = (x[turn] ^ x[sum]).rotate_left(by);
            }
        }
    }
    let pair = |i: usize| u64::from(x[i].wrapping_add(state[i])) | u64::from(x[i + 1].wrapping_add(state[i + 1])) << 32;
    let clamped = [pair(0) & 0x0FFF_FFFC_0FFF_FFFF, pair(2) & 0x0FFF_FFFC_0FFF_FFFC];
    let of_key = key.chunks(8).map(|part| u64::from_le_bytes(part.try_into().unwrap()));
    of_key.chain([0, 2, 4, 6].map(pair)).chain(clamped).collect()
}

#[inline(never)]
fn paint() {
    let mut stack = [0u64; DEPTH / 8];
    // SAFETY: each is a valid place for a write.
    stack.iter_mut().for_each(|word| unsafe { core::ptr::write_volatile(word, PAINT) });
    core::hint::black_box(&mut stack);
}

/// How far below the caller parts of these keys lie, and how far down the stack has been used.
#[inline(never)]
fn found(parts: &[u64]) -> (Vec<usize>, usize) {
    let here = 0u64;
    let top = (&raw const here).expose_provenance();
    let (mut places, mut deepest) = (Vec::new(), 0);
    for down in (OWN / 8..(DEPTH - 4096) / 8).map(|words| 8 * words) {
        // SAFETY: bytes of this thread's stack, below the frames in use; nothing refers to them.
        let word = unsafe { core::ptr::read_volatile(core::ptr::with_exposed_provenance::<u64>(top - down)) };
        if word != PAINT {
            deepest = down;
        }
        if parts.contains(&word) {
            places.push(down);
        }
    }
    (places, deepest)
}

/// One message in one context, which is then freed.
#[inline(never)]
fn message(cipher: &Cipher, key: &[u8], text: &[u8], encrypt: i32) {
    let context = keyed(cipher, key, encrypt);
    assert!(context.update(text).is_some());
    // Where there is a tag to be right, it is not.
    let _ = context.finish();
}

/// One message in a copy, which is then freed.
#[inline(never)]
fn message_in_copy(context: &Context, text: &[u8]) {
    let copy = context.copy();
    assert!(copy.init(None, None, Some(&IV), -1));
    assert!(copy.update(text).is_some());
    let _ = copy.finish();
}

fn keyed(cipher: &Cipher, key: &[u8], encrypt: i32) -> Context {
    let context = Context::new();
    let iv_len = cipher.number(c"ivlen") as usize;
    assert!(context.init(Some(cipher), Some(key), Some(&IV[..iv_len]), encrypt));
    context.set_padding(false);
    context
}

fn key_of(cipher: &Cipher) -> Vec<u8> {
    (0..cipher.number(c"keylen") as u8).map(|i| i.wrapping_mul(73) ^ 0x5E).collect()
}

/// Halves of all round keys, of either direction, and of GCM's counter blocks after the first round that half which 256 of them share.
fn parts_of(name: &str, key: &[u8]) -> Vec<u64> {
    if name == CHACHA {
        return chacha_parts(key);
    }
    let keys = if name.ends_with("XTS") { key.chunks_exact(key.len() / 2).collect() } else { vec![key] };
    let rounds: Vec<[u8; 16]> = keys.into_iter().flat_map(expand).collect();
    let all = rounds.iter().copied().chain(rounds.iter().map(inverted));
    let half = |block: &[u8; 16], at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    let mut parts: Vec<u64> = all.flat_map(|key| [0, 8].map(|at| half(&key, at))).collect();
    if name.ends_with("GCM") {
        let keys = expand(key);
        let counter = |number: u32| core::array::from_fn(|i| if i < 12 { IV[i] } else { number.to_be_bytes()[i - 12] });
        parts.extend((0..=LONGEST as u32 / 16 / 256).map(|group| half(&after_first_round(&keys, counter(256 * group)), 8)));
    }
    parts
}

#[test]
fn round_keys_are_those_of_the_standard() {
    // FIPS 197, appendix A.1.
    let keys = expand(&u128::to_be_bytes(0x2b7e151628aed2a6abf7158809cf4f3c));
    assert_eq!((keys.len(), u128::from_be_bytes(keys[10])), (11, 0xd014f9a8c9ee2589e13f0cc8b6630ca6));
    // Appendix A.3.
    let key: Vec<u8> = (0x603deb1015ca71be2b73aef0857d7781u128.to_be_bytes().into_iter())
        .chain(0x1f352c073b6108d72d9810a30914dff4u128.to_be_bytes())
        .collect();
    let keys = expand(&key);
    assert_eq!((keys.len(), u128::from_be_bytes(keys[14])), (15, 0xfe4890d1e6188d0b046df344706c631e));
    // The first column of FIPS 197 s5.3.3's inverse of what MixColumns makes of db 13 53 45.
    let mut mixed = [0; 16];
    mixed[..4].copy_from_slice(&[0x8e, 0x4d, 0xa1, 0xbc]);
    assert_eq!(inverted(&mixed)[..4], [0xdb, 0x13, 0x53, 0x45]);
    // Appendix B: the state at the start of round 2.
    let keys = expand(&u128::to_be_bytes(0x2b7e151628aed2a6abf7158809cf4f3c));
    let state = after_first_round(&keys, u128::to_be_bytes(0x3243f6a8885a308d313198a2e0370734));
    assert_eq!(u128::from_be_bytes(state), 0xa49c7ff2689f352b6b5bea43026a5049);
}

#[test]
fn chacha_parts_are_those_of_the_standard() {
    // RFC 8439 s2.3.2's key, with this file's nonce and counter 0: the bytes of a second implementation's key stream.
    let key: Vec<u8> = (0..32).collect();
    let parts = chacha_parts(&key);
    assert_eq!((parts.len(), parts[0]), (10, 0x0706_0504_0302_0100));
    let library = Library::new("here");
    let context = Context::new();
    let counter_and_nonce = [&[0; 4], &IV[..12]].concat();
    assert!(context.init(Some(&library.cipher("ChaCha20", "default")), Some(&key), Some(&counter_and_nonce), 1));
    let stream = context.update(&[0; 32]).unwrap();
    let theirs: Vec<u64> = stream.chunks(8).map(|part| u64::from_le_bytes(part.try_into().unwrap())).collect();
    assert_eq!(parts[4..8], theirs);
}

#[test]
fn a_freed_context_leaves_no_round_key_on_the_stack() {
    let work = || {
        let library = Library::alone("here");
        let (mut deepest_of_all, mut left) = (0, Vec::new());
        let has_chacha = Client::has_solo(Algorithm::ChaCha20Poly1305);
        if !has_chacha {
            eprintln!("skipped: ChaCha20-Poly1305, which is OpenSSL's on this processor");
        }
        for name in NAMES.into_iter().chain(has_chacha.then_some(CHACHA)) {
            let cipher = library.cipher(name, "bywash");
            let key = key_of(&cipher);
            let parts = parts_of(name, &key);
            for (size, encrypt) in SIZES.into_iter().flat_map(|size| [(size, 1), (size, 0)]) {
                let text = vec![3; size];
                let whole: &dyn Fn() = &|| message(&cipher, &key, &text, encrypt);
                let original = keyed(&cipher, &key, encrypt);
                for (what, run) in [("context", whole), ("copy", &|| message_in_copy(&original, &text))] {
                    run(); // what is made once for all
                    paint();
                    run();
                    let (places, deepest) = found(&parts);
                    deepest_of_all = deepest_of_all.max(deepest);
                    if let (Some(first), Some(last)) = (places.first(), places.last()) {
                        left.push(format!(
                            "{name}, {size} bytes, direction {encrypt}, {what}: {} parts {first} to {last} below",
                            places.len()
                        ));
                    }
                }
            }
        }
        assert!(left.is_empty(), "frames reached {deepest_of_all} bytes down, and of round keys were left\n{}", left.join("\n"));
    };
    std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap().join().unwrap();
}

/// One derivation in one context, which is then freed.
#[inline(never)]
fn derivation(library: &Library, name: &CStr, params: &dyn Fn() -> OwnedParams, len: usize) -> Vec<u8> {
    let (done, out, _) = Kdf::new(library, name, "bywash").derive(len, params());
    assert_eq!(done, 1);
    out
}

#[test]
fn a_derivation_leaves_nothing_of_its_result_on_the_stack() {
    let work = || {
        let library = Library::alone("here");
        type Case = (&'static CStr, fn() -> OwnedParams, usize);
        let cases: [Case; 5] = [
            (c"TLS1-PRF", || OwnedParams::new().utf8(c"digest", "SHA384").octets(c"secret", &[5; 48]).octets(c"seed", &[6; 77]), 48),
            (c"TLS1-PRF", || OwnedParams::new().utf8(c"digest", "SHA256").octets(c"secret", &[5; 48]).octets(c"seed", &[6; 77]), 104),
            (c"TLS13-KDF", || tls_1_3("EXPAND_ONLY").octets(c"key", &[5; 32]).octets(c"data", &[7; 32]), 32),
            (c"TLS13-KDF", || tls_1_3("EXTRACT_ONLY").octets(c"key", &[5; 32]).octets(c"salt", &[7; 32]), 32),
            (c"TLS13-KDF", || tls_1_3("EXTRACT_ONLY"), 32),
        ];
        for (index, (name, params, len)) in cases.into_iter().enumerate() {
            let expected = derivation(&library, name, &params, len);
            let words = expected.chunks_exact(8).map(|part| u64::from_le_bytes(part.try_into().unwrap()));
            // As they are in a hash's state, too.
            let parts: Vec<u64> = words.flat_map(|word| [word, word.swap_bytes()]).collect();
            paint();
            // The result itself is on the heap.
            drop(derivation(&library, name, &params, len));
            let (places, deepest) = found(&parts);
            assert!(places.is_empty(), "case {index}, frames reached {deepest} bytes down: parts of the result are left at {places:?}");
        }
    };
    std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap().join().unwrap();
}

fn tls_1_3(mode: &str) -> OwnedParams {
    OwnedParams::new().utf8(c"mode", mode).utf8(c"digest", "SHA256").octets(c"prefix", b"tls13 ").octets(c"label", b"derived")
}

/// Leaves the words on the stack, as a careless cipher would.
#[inline(never)]
fn plant(words: &[u64]) {
    let mut copy = [0; 1024];
    copy[512..512 + words.len()].copy_from_slice(words);
    std::hint::black_box(&mut copy);
}

#[test]
fn what_is_left_is_found() {
    let work = || {
        let parts = parts_of("AES-256-CTR", &[7; 32]);
        paint();
        plant(&parts[..30]);
        assert_eq!(found(&parts).0.len(), 30);
    };
    std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap().join().unwrap();
}
