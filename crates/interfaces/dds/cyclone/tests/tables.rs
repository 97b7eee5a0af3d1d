//! What a host may do with the tables, and what messages and tokens of all sorts come to.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the tables are called as a host calls them, with objects of the test's own")]

mod sides;

use bywash_dds_cyclone::abi::code;
use sides::{ALL, MESSAGE, SUBMESSAGE, Side, bytes, called, met, none, tell, tell_of_participant};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn what_one_side_protects_the_other_reads_once() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        for _ in 0..50 {
            let payload = alice.payload(b"a payload.").unwrap();
            assert_eq!(bob.payload_back(&payload).unwrap(), b"a payload.");
            assert_eq!(bob.payload_back(&payload).unwrap(), b"a payload.", "a payload may come again");
            for receivers in [1, 3] {
                let submessage = alice.listed(SUBMESSAGE, receivers, false).unwrap();
                assert_eq!(bob.submessage_back(&submessage).unwrap(), SUBMESSAGE);
                assert_eq!(bob.submessage_back(&submessage), Err(code::ARGUMENT), "a submessage may not");
                let message = alice.listed(MESSAGE, receivers, true).unwrap();
                assert_eq!(bob.message_back(&message).unwrap()[44..], *SUBMESSAGE);
                assert_eq!(bob.message_back(&message), Err(code::ARGUMENT));
            }
            let answer = bob.reader_sends(SUBMESSAGE).unwrap();
            assert_eq!(alice.submessage_back(&answer).unwrap(), SUBMESSAGE);
        }
    }
}

#[test]
fn changed_messages_are_exceptions() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut change = |message: Vec<u8>| {
                let mut message = message;
                let at = random.usize(..message.len());
                match random.u8(..4) {
                    0 => message.truncate(at.max(1)),
                    1 => message.insert(at, random.u8(..)),
                    _ => message[at] ^= 1 << random.u8(..8),
                }
                message
            };
            let submessage = change(alice.listed(SUBMESSAGE, 2, false).unwrap());
            assert!(bob.submessage_back(&submessage).refused_or(SUBMESSAGE));
            let message = change(alice.listed(MESSAGE, 2, true).unwrap());
            // What is in front, and is not protected, may be another: the text behind it says who sent it.
            assert!(bob.message_back(&message).map(|message| message[44..].to_vec()).refused_or(SUBMESSAGE));
            let payload = change(alice.payload(b"a payload.").unwrap());
            assert!(bob.payload_back(&payload).refused_or(b"a payload."));
        }
    }
}

trait RefusedOr {
    /// Refused, or nothing that counts was changed.
    fn refused_or(self, text: &[u8]) -> bool;
}

impl RefusedOr for Result<Vec<u8>, i32> {
    fn refused_or(self, text: &[u8]) -> bool {
        self.map_or(true, |got| got == text)
    }
}

#[test]
fn what_the_governance_does_not_allow_is_refused() {
    let (signs, encrypts) = (ALL[0], ALL[1]);
    // Keys that are for less than the governance asks for.
    let (alice, bob) = (Side::new(signs), Side::new(encrypts));
    tell(&alice, &bob);
    assert_eq!(bob.payload_back(&alice.payload(b"a payload.").unwrap()), Err(code::TRANSFORMATION));
    assert_eq!(bob.submessage_back(&alice.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::TRANSFORMATION));
    assert_eq!(bob.message_back(&alice.listed(MESSAGE, 1, true).unwrap()), Err(code::TRANSFORMATION));
}

/// Of two participants in one process each has what its own governance asks for, whichever has met the other side first.
#[test]
fn each_participant_asks_for_itself() {
    let (signs, encrypts) = (ALL[0], ALL[1]);
    let (alice, bob) = met(encrypts);
    let second = bob.participant_asking(signs);
    assert_eq!(bob.meets(second, 2), bob.remote);
    tell_of_participant(&alice, alice.remote, &bob, second);
    let message = alice.listed(MESSAGE, 1, true).unwrap();
    assert_eq!(bob.message_for(second, &message), Err(code::TRANSFORMATION));
    assert_eq!(bob.message_back(&message).unwrap()[44..], *SUBMESSAGE);
}

#[test]
fn without_keys_nothing_is_read() {
    let (alice, bob) = (Side::new(ALL[1]), Side::new(ALL[1]));
    assert_eq!(bob.payload_back(&alice.payload(b"a payload.").unwrap()), Err(code::HANDLE));
    assert_eq!(bob.submessage_back(&alice.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::HANDLE));
    assert_eq!(bob.message_back(&alice.listed(MESSAGE, 1, true).unwrap()), Err(code::HANDLE));
}

#[test]
fn handles_of_others_and_of_the_dead_are_refused() {
    let (alice, bob) = met(ALL[3]);
    let table = alice.factory();
    let transform = alice.transform();
    let encode = |writer| {
        bytes(|to, from, e| unsafe { ((*transform).encode_serialized_payload)(transform, to, null_mut(), from, writer, e) }, b"text")
    };
    for handle in [0, -1, 1, i64::MAX, i64::MIN, alice.local, alice.reader, alice.their_reader, alice.writer + (1 << 32)] {
        assert_eq!(encode(handle), Err(code::HANDLE), "{handle:#x}");
        let exchange = alice.exchange();
        let mut tokens = none();
        let create = |e| unsafe { ((*exchange).create_local_datawriter_crypto_tokens)(exchange, &mut tokens, handle, handle, e) };
        assert!(called(create).is_err());
    }
    assert!(
        bytes(|to, _, e| unsafe { ((*transform).encode_serialized_payload)(transform, to, null_mut(), null(), alice.writer, e) }, b"")
            .is_err()
    );
    unsafe {
        called(|e| ((*table).unregister_datawriter)(table, alice.writer, e)).unwrap();
        assert_eq!(called(|e| ((*table).unregister_datawriter)(table, alice.writer, e)), Err(code::HANDLE));
        assert_eq!(called(|e| ((*table).unregister_datareader)(table, alice.their_writer, e)), Err(code::HANDLE));
    }
    assert_eq!(encode(alice.writer), Err(code::HANDLE));
    let submessage = bob.listed(SUBMESSAGE, 1, false).unwrap();
    assert_eq!(alice.submessage_back(&submessage).unwrap(), SUBMESSAGE);
    unsafe { called(|e| ((*table).unregister_datawriter)(table, alice.their_writer, e)).unwrap() };
    assert_eq!(alice.submessage_back(&bob.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::HANDLE));
    unsafe {
        called(|e| ((*table).unregister_participant)(table, alice.local, e)).unwrap();
        called(|e| ((*table).unregister_participant)(table, alice.remote, e)).unwrap();
    }
    assert_eq!(alice.message_back(&bob.listed(MESSAGE, 1, true).unwrap()), Err(code::HANDLE));
}

/// A side that several threads call at once, as a host's do.
struct Shared<'a>(&'a Side);
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    fn side(&self) -> &Side {
        self.0
    }
}

#[test]
fn messages_go_on_while_others_come_and_go() {
    let (alice, bob) = met(ALL[3]);
    let (to, from) = (Shared(&bob), Shared(&alice));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (alice, bob) = (from.side(), to.side());
            while !ended.load(Relaxed) {
                assert_eq!(bob.payload_back(&alice.payload(b"a payload.").unwrap()).unwrap(), b"a payload.");
            }
        });
        // One thread: what another had sent long before would be too old.
        scope.spawn(|| {
            let (alice, bob) = (from.side(), to.side());
            while !ended.load(Relaxed) {
                assert_eq!(bob.submessage_back(&alice.listed(SUBMESSAGE, 3, false).unwrap()).unwrap(), SUBMESSAGE);
                assert_eq!(bob.message_back(&alice.listed(MESSAGE, 3, true).unwrap()).unwrap()[44..], *SUBMESSAGE);
                assert_eq!(alice.submessage_back(&bob.reader_sends(SUBMESSAGE).unwrap()).unwrap(), SUBMESSAGE);
            }
        });
        for _ in 0..2000 {
            for side in [&alice, &bob] {
                let table = side.factory();
                let (participant, writer) = (side.participant(), side.own(true, None));
                side.meets(participant, 77);
                let reader = side.matched(false, writer);
                unsafe {
                    called(|e| ((*table).unregister_datareader)(table, reader, e)).unwrap();
                    called(|e| ((*table).unregister_datawriter)(table, writer, e)).unwrap();
                    called(|e| ((*table).unregister_participant)(table, participant, e)).unwrap();
                }
            }
        }
        ended.store(true, Relaxed);
    });
}

#[test]
fn tokens_of_strangers_are_refused() {
    let (alice, bob) = met(ALL[1]);
    let (from, to) = (alice.exchange(), bob.exchange());
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tokens = none();
        unsafe {
            let create = |e| ((*from).create_local_datawriter_crypto_tokens)(from, &mut tokens, alice.writer, alice.their_reader, e);
            called(create).unwrap();
            let token = &mut *tokens.buffer;
            let value = &mut (*token.binary_properties.buffer).value;
            match random.u8(..4) {
                0 => value.length = random.u32(..value.length),
                1 => *token.class_id = 0,
                2 => token.binary_properties.length = 0,
                _ => *value.buffer.add(random.usize(..value.length as usize)) ^= 1 << random.u8(..8),
            }
            let _ = called(|e| ((*to).set_remote_datawriter_crypto_tokens)(to, bob.reader, bob.their_writer, &tokens, e));
            token.binary_properties.length = 1;
            called(|e| ((*from).return_crypto_tokens)(from, &mut tokens, e)).unwrap();
        }
    }
    unsafe {
        let empty = none();
        assert_eq!(called(|e| ((*to).set_remote_participant_crypto_tokens)(to, bob.local, bob.remote, &empty, e)), Err(code::TOKEN));
    }
}
