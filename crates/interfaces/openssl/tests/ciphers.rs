//! Every cipher against the default provider: the same calls, the same bytes, the same answers.

mod common;

use bywash_client::Client;
use bywash_core::Algorithm;
use common::pair::{AEAD, PLAIN, Pair, XTS};
use common::*;

const ROUTES: &[&str] = &["here", "queue"];

#[test]
fn ciphers_describe_themselves_alike() {
    let library = Library::new("auto");
    for name in PLAIN.iter().chain(XTS).chain(AEAD) {
        let pair = Pair::new(&library, name);
        for key in [c"mode", c"keylen", c"ivlen", c"blocksize", c"aead", c"custom-iv", c"cts", c"tls-multi", c"has-randkey"] {
            assert_eq!(pair.ours.number(key), pair.theirs.number(key), "{name} {key:?}");
        }
    }
}

#[test]
fn what_can_only_be_passed_on_is_not_offered() {
    let alone = Library::alone("here");
    // Without a cipher of our own each of its contexts would be the default provider's.
    let is_ours = Client::has_solo(Algorithm::ChaCha20Poly1305);
    assert_eq!(alone.find("ChaCha20-Poly1305", "provider=bywash").is_some(), is_ours);
    take_reason();
    let found = |library: &Library, name| library.find(name, "?provider=bywash").expect("somebody has it").provider().to_owned();
    assert_eq!([found(&alone, "ChaCha20-Poly1305"), found(&alone, "AES-256-GCM")], [if is_ours { "bywash" } else { "default" }, "bywash"]);
    assert_eq!(found(&Library::alone("queue"), "ChaCha20-Poly1305"), "bywash", "its operations go to a queue");
    assert_eq!(found(&Library::new("here"), "ChaCha20-Poly1305"), "bywash", "its operations may be recorded");
}

#[test]
fn aliases_and_object_identifiers_are_found() {
    let library = Library::new("auto");
    for name in ["AES256", "2.16.840.1.101.3.4.1.2", "id-aes256-GCM", "aes-128-gcm", "1.3.111.2.1619.0.1.2"] {
        assert_eq!(library.cipher(name, "bywash").provider(), "bywash");
    }
}

#[test]
fn every_split_around_block_boundaries() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(1);
        for name in PLAIN {
            let pair = Pair::new(&library, name);
            let (key, iv) = (random.bytes(pair.key_len()), random.bytes(16));
            for total in [0, 1, 15, 16, 17, 31, 32, 33, 48, 100] {
                let data = random.bytes(total);
                for first in 0..=total.min(50) {
                    for (encrypt, padding) in [(true, true), (true, false), (false, true), (false, false)] {
                        let (ours, theirs) = pair.contexts(&key, &iv, encrypt);
                        ours.set_padding(padding);
                        theirs.set_padding(padding);
                        let run = |context: &Context| (context.update(&data[..first]), context.update(&data[first..]), context.finish());
                        assert_eq!(run(&ours), run(&theirs), "{name} {route} {total} at {first}, encrypt {encrypt}, padding {padding}");
                    }
                }
            }
        }
    }
}

/// One random call on both contexts; true if both succeeded.
fn random_call(random: &mut Random, pair: &Pair, ours: &mut Context, theirs: &mut Context, encrypt: &mut bool, aead: bool) -> bool {
    let place = format!("{} (seed state {})", pair.name, random.0);
    macro_rules! both {
        ($call:expr) => {{
            let (mine, other) = ($call(&*ours), $call(&*theirs));
            assert_eq!(mine, other, "{place}: {}", stringify!($call));
            mine
        }};
    }
    match random.below(14) {
        0 => {
            *encrypt = random.one_in(2);
            let (key, iv) = (random.bytes(pair.key_len()), random.bytes(128));
            let way = i32::from(*encrypt);
            if aead && both!(|context: &Context| context.init(None, None, None, way)) && pair.name.contains("GCM") {
                let len = if random.one_in(2) { 12 } else { 1 + random.below(40) };
                both!(|context: &Context| context.set_ivlen(len));
            }
            both!(|context: &Context| context.init(None, Some(&key), Some(&iv), way))
        }
        1 => {
            let iv = random.bytes(128);
            both!(|context: &Context| context.init(None, None, Some(&iv), -1))
        }
        2 if !aead => both!(|context: &Context| context.init(None, None, None, -1)),
        3 => {
            *ours = ours.copy();
            *theirs = theirs.copy();
            true
        }
        4 => {
            // What a context does after a failed end is nobody's promise, so it begins anew.
            let done = both!(|context: &Context| context.finish()).is_some();
            if !done {
                let (key, iv) = (random.bytes(pair.key_len()), random.bytes(128));
                both!(|context: &Context| context.init(None, Some(&key), Some(&iv), -1));
            }
            done
        }
        // While encrypting this fails in both, but spoils the tag of the default provider.
        5 if aead && *encrypt => both!(|context: &Context| context.number(c"taglen")).is_some(),
        5 if aead => {
            let len = 1 + random.below(16);
            let tag = random.bytes(len);
            both!(|context: &Context| context.set_tag(&tag))
        }
        6 if aead => {
            if pair.name.starts_with("ChaCha") {
                // The default provider takes associated data after text and makes a tag that nobody else would; here it is an error.
                let iv = random.bytes(12);
                both!(|context: &Context| context.init(None, None, Some(&iv), -1));
            }
            let len = random.below(40);
            let data = random.bytes(len);
            both!(|context: &Context| context.aad(&data)).is_some()
        }
        7 if aead => {
            let len = 1 + random.below(16);
            both!(|context: &Context| context.tag(len)).is_some()
        }
        5 => {
            let padding = random.one_in(2);
            both!(|context: &Context| context.set_padding(padding))
        }
        6 if !pair.name.contains("ECB") => both!(|context: &Context| context.octets(c"updated-iv", 16)).is_some(),
        7 => both!(|context: &Context| context.octets(c"iv", 16)).is_some(),
        8 => both!(|context: &Context| context.number(c"num")).is_some(),
        9 => both!(|context: &Context| (context.number(c"ivlen"), context.number(c"keylen"), context.number(c"taglen"))).0.is_some(),
        10 => {
            // Not empty for AEADs: in the default provider no text at all ends the associated data, and pads it, too early.
            let len = 16 * (random.below(9) + usize::from(aead));
            let data = random.bytes(len);
            let in_place = random.one_in(2);
            both!(|context: &Context| context.step(&data, in_place)).0 >= 0
        }
        11 => {
            // In place only where nothing waits in a buffer: otherwise the default provider overwrites what it has not read.
            let len = if aead || pair.name.contains("CTR") { random.below(300) } else { 0 };
            let data = random.bytes(len);
            both!(|context: &Context| context.update_in_place(&data)).is_some()
        }
        _ => {
            let len = if random.one_in(8) { random.below(5000) } else { random.below(70) };
            let data = random.bytes(len);
            both!(|context: &Context| context.update(&data)).is_some()
        }
    }
}

fn random_walk(names: &[&str], aead: bool, stream: u64) {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(stream);
        for name in names {
            let pair = Pair::new(&library, name);
            for _ in 0..600 {
                let mut encrypt = random.one_in(2);
                let (key, iv) = (random.bytes(pair.key_len()), random.bytes(pair.iv_len().max(16)));
                let (mut ours, mut theirs) = pair.contexts(&key, &iv, encrypt);
                for _ in 0..40 {
                    random_call(&mut random, &pair, &mut ours, &mut theirs, &mut encrypt, aead);
                }
            }
        }
    }
}

#[test]
fn any_order_of_calls_on_plain_modes() {
    random_walk(PLAIN, false, 2);
}

#[test]
fn any_order_of_calls_on_aeads() {
    random_walk(AEAD, true, 3);
}

#[test]
fn block_modes_in_place_and_shifted() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(4);
        for name in PLAIN {
            let pair = Pair::new(&library, name);
            let (key, iv) = (random.bytes(pair.key_len()), random.bytes(16));
            for len in [16, 32, 160, 4096, 5008] {
                let data = random.bytes(len);
                for encrypt in [true, false] {
                    let (ours, theirs) = pair.contexts(&key, &iv, encrypt);
                    let run = |context: &Context| (context.update_in_place(&data), context.finish());
                    assert_eq!(run(&ours), run(&theirs), "{name} {route} {len}");
                }
            }
        }
    }
}

#[test]
fn in_place_with_a_waiting_partial_block_is_right() {
    // The default provider gets this wrong, so the reference is the same call out of place; and what is kept in place is passed on to it.
    let library = Library::new("queue");
    let mut random = Random::new(5);
    let pair = Pair::new(&library, "AES-256-CBC");
    let (key, iv, data) = (random.bytes(32), random.bytes(16), random.bytes(100));
    for first in 1..40 {
        let (ours, theirs) = pair.contexts(&key, &iv, true);
        let run = |in_place: bool, context: &Context| {
            let head = context.update(&data[..first]);
            let tail = if in_place { context.update_in_place(&data[first..]) } else { context.update(&data[first..]) };
            (head, tail, context.finish())
        };
        assert_eq!(run(true, &ours), run(false, &theirs), "after {first}");
    }
}

#[test]
fn xts_data_units() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(6);
        for name in XTS {
            let pair = Pair::new(&library, name);
            let (key, iv) = (random.bytes(pair.key_len()), random.bytes(16));
            for len in (0..70).chain([512, 4096, 4099]) {
                let data = random.bytes(len);
                for encrypt in [true, false] {
                    let (ours, theirs) = pair.contexts(&key, &iv, encrypt);
                    // The tweak stays for the second unit.
                    let run = |context: &Context| {
                        let copy = context.copy();
                        (
                            context.update(&data),
                            context.update_in_place(&data),
                            context.finish(),
                            copy.update(&data),
                            context.octets(c"iv", 16),
                        )
                    };
                    assert_eq!(run(&ours), run(&theirs), "{name} {route} {len}");
                }
            }
        }
    }
}

#[test]
fn xts_keys_with_equal_halves() {
    for (route, name) in ROUTES.iter().flat_map(|route| XTS.iter().map(move |name| (*route, name))) {
        let library = Library::new(route);
        let pair = Pair::new(&library, name);
        let (key, data) = (vec![7; pair.key_len()], [9; 48]);
        let refused = Context::new();
        assert!(!refused.init(Some(&pair.ours), Some(&key), Some(&[0; 16]), 1));
        assert_eq!(take_reason(), "xts duplicated keys");
        let (ours, theirs) = pair.contexts(&key, &[1; 16], false);
        assert_eq!(ours.update(&data), theirs.update(&data));
        if route == "queue" {
            assert!(!ours.init(None, None, None, 1), "such a key must not encrypt, here; it does in the default provider");
            take_reason();
        }
    }
}

#[test]
fn reasons_are_the_default_providers() {
    let library = Library::new("auto");
    let mut random = Random::new(7);
    let pair = Pair::new(&library, "AES-128-CBC");
    let (key, iv, data) = (random.bytes(16), random.bytes(16), random.bytes(32));
    for len in [5, 16, 32] {
        let (ours, theirs) = pair.contexts(&key, &iv, false);
        let reason = |context: &Context| {
            context.update(&data[..len]);
            let done = context.finish().is_some();
            (done, take_reason())
        };
        assert_eq!(reason(&ours), reason(&theirs), "{len}");
    }
    let unkeyed = |cipher: &Cipher| {
        let context = Context::new();
        assert!(context.init(Some(cipher), None, Some(&iv), 1));
        let done = context.update(&data).is_some();
        (done, take_reason())
    };
    assert_eq!(unkeyed(&pair.ours), (false, "no key set".into()));
    assert_eq!(unkeyed(&pair.ours), unkeyed(&pair.theirs));
}

#[test]
fn forged_messages_are_refused() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(8);
        for name in AEAD {
            let pair = Pair::new(&library, name);
            let (key, iv, aad, text) = (random.bytes(pair.key_len()), random.bytes(12), random.bytes(20), random.bytes(333));
            let (ours, _) = pair.contexts(&key, &iv, true);
            ours.aad(&aad);
            let sealed = ours.update(&text).unwrap();
            ours.finish().unwrap();
            let tag = ours.tag(16).unwrap();
            for flipped in [None, Some(0), Some(15)] {
                let mut tag = tag.clone();
                flipped.iter().for_each(|&index: &usize| tag[index] ^= 1);
                let (opened, _) = pair.contexts(&key, &iv, false);
                assert!(opened.set_tag(&tag));
                opened.aad(&aad);
                assert_eq!(opened.update(&sealed).as_deref(), Some(&text[..]));
                assert_eq!(opened.finish().is_some(), flipped.is_none(), "{name} {flipped:?}");
            }
        }
    }
}

/// Message after message in one context, in pieces: the key set again or not, the tag set early or late, copies between messages, either direction.
#[test]
fn gcm_messages_one_after_another() {
    let library = Library::new("here");
    let mut random = Random::new(31);
    for _ in 0..60 {
        let pair = Pair::new(&library, "AES-256-GCM");
        let (key, encrypt) = (random.bytes(32), random.one_in(2));
        let (mut ours, mut theirs) = pair.contexts(&key, &random.bytes(12), encrypt);
        for message in 0..12 {
            let (iv, aad_len, wanted) = (random.bytes(12), random.below(40), random.bytes(16));
            let aad = random.bytes(aad_len);
            let sizes: Vec<_> = (0..1 + random.below(3)).map(|_| 1 + random.below(6000)).collect();
            let pieces: Vec<_> = sizes.into_iter().map(|size| random.bytes(size)).collect();
            let (again, early) = (random.one_in(4), random.one_in(2));
            let run = |context: &Context| {
                let keyed = !again || context.init(None, Some(&key), None, -1);
                let begun = context.init(None, None, Some(&iv), -1);
                let tagged = encrypt || !early || context.set_tag(&wanted);
                context.aad(&aad);
                let text: Vec<_> = pieces.iter().map(|piece| context.update(piece)).collect();
                let tagged = tagged && (encrypt || early || context.set_tag(&wanted));
                (keyed, begun, tagged, text, context.finish(), if encrypt { context.tag(16) } else { None }, context.octets(c"iv", 12))
            };
            assert_eq!(run(&ours), run(&theirs), "message {message}, encrypt {encrypt}");
            take_reason();
            if random.one_in(5) {
                (ours, theirs) = (ours.copy(), theirs.copy());
            }
        }
    }
}

/// Three pieces with every boundary between them, after associated data that ends with a block or within one.
#[test]
fn every_split_of_a_gcm_message() {
    let library = Library::new("here");
    let mut random = Random::new(33);
    for name in ["AES-128-GCM", "AES-256-GCM"] {
        let pair = Pair::new(&library, name);
        let (key, data) = (random.bytes(pair.key_len()), random.bytes(80));
        for encrypt in [true, false] {
            let (ours, theirs) = pair.contexts(&key, &[0; 12], encrypt);
            for (aad_len, total) in
                [0, 1, 16, 23, 32].into_iter().flat_map(|aad_len| [15, 16, 31, 48, 64, 80].map(|total| (aad_len, total)))
            {
                let (iv, aad) = (random.bytes(12), random.bytes(aad_len));
                for (first, second) in (0..=total).flat_map(|first| (first..=total).map(move |second| (first, second))) {
                    let run = |context: &Context| {
                        let begun = context.init(None, None, Some(&iv), -1) && (encrypt || context.set_tag(&[7; 16]));
                        context.aad(&aad);
                        let pieces = [0..first, first..second, second..total].map(|piece| context.update(&data[piece]));
                        (begun, pieces, context.finish(), encrypt.then(|| context.tag(16)))
                    };
                    assert_eq!(run(&ours), run(&theirs), "{name}, encrypt {encrypt}: {aad_len}, {total} at {first} and {second}");
                }
                take_reason();
            }
        }
    }
}

/// One long message by calls of few bytes and of many: positions of all kinds in the block, raw steps, a position that is set back, copies.
#[test]
fn plain_modes_in_pieces_of_any_length() {
    let library = Library::new("here");
    let mut random = Random::new(42);
    for name in PLAIN {
        let pair = Pair::new(&library, name);
        for (encrypt, padding) in [(true, true), (false, true), (false, false)] {
            for limit in [40, 700, 3000] {
                let (key, iv) = (random.bytes(pair.key_len()), random.bytes(16));
                let (mut ours, mut theirs) = pair.contexts(&key, &iv, encrypt);
                assert!(ours.set_padding(padding) && theirs.set_padding(padding));
                let mut total = 0;
                while total < 40_000 {
                    let len = random.below(limit);
                    let (data, raw, set_back) = (random.bytes(len), random.one_in(8), random.one_in(16));
                    let run = |context: &Context| {
                        let position = (context.number(c"num"), set_back && context.set_number(c"num", 0));
                        let stepped = raw.then(|| context.step(&data[..len & !15], true));
                        (position, stepped, context.update(&data), context.number(c"num"), context.octets(c"iv", 16))
                    };
                    assert!(run(&ours) == run(&theirs), "{name}: {total} bytes, then {len}; encrypt {encrypt}, padding {padding}");
                    total += len;
                    if random.one_in(20) {
                        (ours, theirs) = (ours.copy(), theirs.copy());
                    }
                }
                assert_eq!(ours.finish(), theirs.finish(), "{name}: the end; encrypt {encrypt}, padding {padding}");
                take_reason();
            }
        }
    }
}

#[test]
fn a_random_iv_is_made_where_none_is_set() {
    let library = Library::new("auto");
    let pair = Pair::new(&library, "AES-256-GCM");
    let context = Context::new();
    assert!(context.init(Some(&pair.ours), Some(&[1; 32]), None, 1));
    let sealed = context.update(b"text").unwrap();
    context.finish().unwrap();
    let (iv, tag) = (context.octets(c"iv", 12).unwrap(), context.tag(16).unwrap());
    let (_, theirs) = pair.contexts(&[1; 32], &iv, false);
    theirs.set_tag(&tag);
    assert_eq!(theirs.update(&sealed).unwrap(), b"text");
    assert!(theirs.finish().is_some());
}

#[test]
fn no_iv_encrypts_twice() {
    for route in ROUTES {
        let library = Library::new(route);
        let cipher = library.cipher("AES-128-GCM", "bywash");
        let (key, iv) = ([1; 16], [2; 12]);
        let begun = || {
            let context = Context::new();
            assert!(context.init(Some(&cipher), Some(&key), Some(&iv), 1));
            assert!(context.update(&[0; 32]).is_some());
            context
        };
        let keyed_again = begun();
        assert!(keyed_again.init(None, Some(&key), None, 1));
        assert_eq!(keyed_again.update(&[0; 32]), None, "{route}: the same key in the middle of a message began it again under its IV");
        let turned = begun();
        assert!(turned.init(None, None, None, 0) && turned.init(None, None, None, 1));
        assert_eq!(turned.update(&[0; 32]), None, "{route}: there and back began a message again under its IV");
        assert!(turned.init(None, None, Some(&[3; 12]), 1) && turned.update(&[0; 32]).is_some(), "a fresh IV goes on");
        take_reason();
    }
}

/// A new direction in the midst of a message, and then the old one: to go on from the message's beginning would be to encrypt twice under one IV.
#[test]
fn no_turn_encrypts_twice() {
    for route in ROUTES {
        let library = Library::new(route);
        for (name, algorithm) in [("AES-256-GCM", Algorithm::Aes256Gcm), ("ChaCha20-Poly1305", Algorithm::ChaCha20Poly1305)] {
            if *route == "here" && !Client::has_solo(algorithm) {
                eprintln!("skipped: {name} in place, which is OpenSSL's on this processor, and does what that does");
                continue;
            }
            let cipher = library.cipher(name, "bywash");
            let context = Context::new();
            assert!(context.init(Some(&cipher), Some(&[1; 32]), Some(&[2; 12]), 1));
            let stream = context.update(&[0; 64]).unwrap();
            assert!(context.init(None, None, None, 0) && context.init(None, None, None, 1));
            assert_eq!(context.update(&[0; 64]), None, "{name}");
            assert_eq!(context.finish(), None, "{name}");
            take_reason();
            assert!(context.init(None, None, Some(&[2; 12]), 1), "whoever sets an IV again has said so");
            assert_eq!(context.update(&[0; 64]).unwrap(), stream, "{name}");
        }
    }
}

/// `EVP_Cipher` of nothing is nothing, also in the midst of a message.
#[test]
fn a_step_of_nothing_ends_no_message_of_chacha() {
    let library = Library::new("here");
    let pair = Pair::new(&library, "ChaCha20-Poly1305");
    for encrypt in [true, false] {
        let (ours, theirs) = pair.contexts(&[1; 32], &[2; 12], encrypt);
        let run = |context: &Context| {
            let nothing = context.step(&[], false);
            (nothing, context.update(&[5; 70]), context.step(&[], false), context.step(&[], true), context.update(&[6; 40]))
        };
        assert_eq!(run(&ours), run(&theirs), "encrypt {encrypt}");
        take_reason();
    }
}

#[test]
fn an_iv_too_short_to_be_counted_is_not() {
    let library = Library::new("auto");
    let context = Context::new();
    assert!(context.init(Some(&library.cipher("AES-128-GCM", "bywash")), Some(&[1; 16]), Some(&[2; 12]), 1));
    assert_eq!(context.ctrl(SET_IV_FIXED, -1, &mut [9; 12]), 1);
    assert!(context.set_ivlen(4));
    let record = [0; 40];
    assert_eq!(context.ctrl(TLS1_AAD, 13, &mut [0, 0, 0, 0, 0, 0, 0, 0, 23, 3, 3, 0, 24]), 16);
    assert_eq!(context.update_in_place(&record), None);
    assert_eq!(take_reason(), "cipher operation failed", "refused, and not by a panic");
    assert!(context.ctrl(IV_GEN, -1, &mut [0; 12]) <= 0, "what cannot be counted up would come twice");
    take_reason();
}

#[test]
fn errors_have_the_default_providers_numbers() {
    let library = Library::new("auto");
    for name in ["AES-128-CBC", "AES-128-XTS"] {
        let pair = Pair::new(&library, name);
        let code = |cipher: &Cipher| {
            let context = Context::new();
            assert!(context.init(
                Some(cipher),
                Some(&vec![0; pair.key_len() - 1].into_iter().chain([1]).collect::<Vec<_>>()),
                Some(&[0; 16]),
                0
            ));
            context.update(&[0; 5]);
            context.finish();
            take_code()
        };
        let theirs = code(&pair.theirs);
        assert_ne!(theirs, 0);
        assert_eq!(code(&pair.ours), theirs, "{name}");
    }
}
