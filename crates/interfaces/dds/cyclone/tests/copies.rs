//! What was sent once and comes again: as a copy, to another reader, back to its sender, under another sender's name.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the tables are called as a host calls them, with objects of the test's own")]

mod sides;

use bywash_dds::wire::{Form, RECEIVER};
use bywash_dds::{BLOCKS_MAX, KeyMaterial, Sender, Specific, add_receiver, protect, protected_len};
use bywash_dds_cyclone::abi::{Handle, TRUE, code};
use sides::{ALL, MESSAGE, SUBMESSAGE, Side, called, met, tell_of_participant, tell_of_writer, told};

/// What readers send.
const ACKNACK: &[u8] = b"\x06\x01\x0c\x00twelve bytes";

fn sent(from: &Side, readers: &[Handle]) -> Vec<Vec<u8>> {
    (0..10).map(|_| from.writes(from.writer, readers, SUBMESSAGE).unwrap()).collect()
}

/// How many of them come through; the others have come already.
fn accepted(by: &Side, messages: &[Vec<u8>]) -> usize {
    let is_accepted = |message: &&Vec<u8>| match by.submessage_back(message) {
        Ok(text) => text == SUBMESSAGE,
        Err(refused) => refused != code::ARGUMENT,
    };
    messages.iter().filter(is_accepted).count()
}

#[test]
fn what_one_reader_had_another_does_not_have_again() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        let mut all = sent(&alice, &[alice.their_reader]);
        assert_eq!(accepted(&bob, &all), 10);
        // A second reader of the same writer comes.
        let (reader, their_reader) = (bob.own(false, None), alice.matched(false, alice.writer));
        let writer = bob.matched(true, reader);
        tell_of_writer(&alice, (alice.writer, their_reader), &bob, (reader, writer));
        assert_eq!(accepted(&bob, &all), 0, "after the second reader came");
        let both = sent(&alice, &[alice.their_reader, their_reader]);
        assert_eq!(accepted(&bob, &both), 10);
        all.extend(both);
        // Payloads may come again, and to each.
        let payload = alice.payload(b"a payload.").unwrap();
        for (reader, writer) in [(bob.reader, bob.their_writer), (reader, writer), (reader, writer)] {
            assert_eq!(bob.payload_for(reader, writer, &payload).unwrap(), b"a payload.");
        }
        // The first one's key is told again.
        tell_of_writer(&alice, (alice.writer, alice.their_reader), &bob, (bob.reader, bob.their_writer));
        assert_eq!(accepted(&bob, &all), 0, "after the key was told again");
        let factory = bob.factory();
        unsafe {
            called(|e| ((*factory).unregister_datawriter)(factory, writer, e)).unwrap();
            called(|e| ((*factory).unregister_datareader)(factory, reader, e)).unwrap();
        }
        assert_eq!(accepted(&bob, &all), 0, "after the second reader went");
        assert_eq!(accepted(&bob, &sent(&alice, &[alice.their_reader])), 10);
    }
}

/// As Cyclone's own tests of a plug-in do, which ask nobody which of them it is for.
#[test]
fn a_host_may_decode_a_submessage_for_each_of_its_readers() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        let mut matches = vec![(bob.reader, bob.their_writer)];
        let mut readers = vec![alice.their_reader];
        for _ in 0..3 {
            let (reader, their_reader) = (bob.own(false, None), alice.matched(false, alice.writer));
            let writer = bob.matched(true, reader);
            tell_of_writer(&alice, (alice.writer, their_reader), &bob, (reader, writer));
            matches.push((reader, writer));
            readers.push(their_reader);
        }
        for message in sent(&alice, &readers) {
            for (reader, writer) in &matches {
                assert_eq!(bob.submessage_for(*reader, *writer, &message).unwrap(), SUBMESSAGE);
                assert_eq!(bob.submessage_for(*reader, *writer, &message), Err(code::ARGUMENT));
            }
            assert_eq!(bob.submessage_back(&message), Err(code::ARGUMENT));
        }
    }
}

/// A host decodes a message once for each of its participants that know the sender.
#[test]
fn each_participant_has_a_message_once() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        let (second, remote) = (bob.participant(), alice.meets(alice.local, 4));
        assert_eq!(bob.meets(second, 2), bob.remote);
        tell_of_participant(&alice, remote, &bob, second);
        let mut all = Vec::new();
        for _ in 0..20 {
            let message = alice.message_to(&[alice.remote, remote], MESSAGE).unwrap();
            for local in [bob.local, second] {
                assert_eq!(bob.message_for(local, &message).unwrap()[44..], *SUBMESSAGE);
                assert_eq!(bob.message_for(local, &message), Err(code::ARGUMENT));
            }
            all.push(message);
        }
        tell_of_participant(&alice, remote, &bob, second);
        for local in [bob.local, second] {
            assert!(all.iter().all(|message| bob.message_for(local, message) == Err(code::ARGUMENT)), "after the key was told again");
        }
    }
}

/// Writer and reader that carry keys, and those of the other side.
fn carriers(side: &Side) -> [Handle; 4] {
    let writer = side.own(true, Some(c"BuiltinParticipantVolatileMessageSecureWriter"));
    let reader = side.own(false, Some(c"BuiltinParticipantVolatileMessageSecureReader"));
    [writer, side.matched(false, writer), reader, side.matched(true, reader)]
}

#[test]
fn keys_are_not_taken_from_who_sent_them() {
    let (alice, bob) = met(ALL[1]);
    let (of_alice, of_bob) = (carriers(&alice), carriers(&bob));
    let [writer, their_reader, ..] = of_alice;
    assert_eq!(alice.writes(writer, &[their_reader, their_reader], SUBMESSAGE), Err(code::ARGUMENT), "the second could not read it");
    assert_eq!(alice.writes(writer, &[alice.their_reader], SUBMESSAGE), Err(code::HANDLE), "one that matches another writer");
    let mut all: Vec<(&Side, &Side, Vec<u8>)> = Vec::new();
    // Long enough for many sessions.
    for round in 0..100 {
        for (from, [writer, their_reader, reader, their_writer], to) in [(&alice, of_alice, &bob), (&bob, of_bob, &alice)] {
            let mut once = |message: Vec<u8>, plain: &[u8]| {
                assert_eq!(from.submessage_back(&message), Err(code::ARGUMENT), "sent back in round {round}");
                assert_eq!(to.submessage_back(&message).unwrap(), plain, "round {round}");
                all.push((from, to, message));
            };
            once(from.writes(writer, &[their_reader], SUBMESSAGE).unwrap(), SUBMESSAGE);
            if round % 7 == 0 {
                once(from.answers(reader, their_writer, ACKNACK).unwrap(), ACKNACK);
            }
        }
        for (from, to, message) in &all {
            assert_eq!(from.submessage_back(message), Err(code::ARGUMENT), "sent back after round {round}");
            assert_eq!(to.submessage_back(message), Err(code::ARGUMENT), "a copy after round {round}");
        }
    }
}

/// What a reader elsewhere is told of a writer's submessages.
fn material(of: &Side, writer: Handle, their_reader: Handle) -> KeyMaterial {
    let mut material = None;
    told(
        of,
        |table, tokens, e| unsafe { ((*table).create_local_datawriter_crypto_tokens)(table, tokens, writer, their_reader, e) },
        |tokens, _| unsafe {
            let value = &(*(*(*tokens).buffer).binary_properties.buffer).value;
            let bytes = std::slice::from_raw_parts(value.buffer, value.length as usize);
            material = KeyMaterial::parse(bytes).unwrap();
            TRUE
        },
    );
    material.unwrap()
}

/// A submessage under one key, with the tag that another makes of it.
fn tagged(sender: &Sender, tags: &KeyMaterial) -> Vec<u8> {
    let mut message = vec![0; protected_len(sender, Form::Submessage, SUBMESSAGE.len())];
    protect(sender, Form::Submessage, SUBMESSAGE, &mut message).unwrap();
    message.extend([0; RECEIVER]);
    add_receiver(Form::Submessage, &mut message, &Specific::new(tags).unwrap()).unwrap();
    message
}

/// Whoever has a writer's key can give a text any common tag, and so one of which the other writer has made a tag for the receiver.
#[test]
fn a_tag_of_another_writers_key_is_refused() {
    for asked in [ALL[2], ALL[3]] {
        let (alice, bob) = met(asked);
        let (writer, reader) = (alice.own(true, None), bob.own(false, None));
        let (their_reader, their_writer) = (alice.matched(false, writer), bob.matched(true, reader));
        tell_of_writer(&alice, (writer, their_reader), &bob, (reader, their_writer));
        let materials = [material(&alice, alice.writer, alice.their_reader), material(&alice, writer, their_reader)];
        let senders = materials.clone().map(|material| Sender::new(material, BLOCKS_MAX).unwrap());
        for (of, sender) in senders.iter().enumerate() {
            assert_eq!(bob.submessage_back(&tagged(sender, &materials[1 - of])), Err(code::RECEIVER_SIGN), "writer {of}");
            assert_eq!(bob.submessage_back(&tagged(sender, &materials[of])).unwrap(), SUBMESSAGE, "writer {of}");
        }
        // A tag for the other of our readers of the same writer counts: the host decodes what is for any of them.
        let (second, seconds) = (bob.own(false, None), alice.matched(false, writer));
        let seconds_writer = bob.matched(true, second);
        tell_of_writer(&alice, (writer, seconds), &bob, (second, seconds_writer));
        for tags in [&materials[1], &material(&alice, writer, seconds)] {
            assert_eq!(bob.submessage_back(&tagged(&senders[1], tags)).unwrap(), SUBMESSAGE);
        }
    }
}

/// Parts of a submessage that is protected, by nobody.
const PREFIX: &[u8] = b"\x31\x01\x04\0head";
const BODY: &[u8] = b"\x30\x01\x04\0body";
const POSTFIX: &[u8] = b"\x32\x01\x04\0tail";

/// The key is that of whom the header names; the host goes by what the text says.
#[test]
fn a_message_in_another_participants_name_is_refused() {
    let source = |name: &[u8; 12]| [&b"\x0c\x01\x14\x00\0\0\0\0\x02\x01\x01\x10"[..], name].concat();
    for asked in ALL {
        let (alice, bob) = met(asked);
        let sent = |plain: &[u8]| alice.listed(plain, 1, true).unwrap();
        // As Cyclone DDS hands it over on a machine that is little-endian.
        let mut turned = sent(MESSAGE);
        turned[8..20].copy_from_slice(b"lewtb evsety");
        assert_eq!(bob.message_back(&turned).unwrap()[44..], *SUBMESSAGE);
        let mut renamed = sent(MESSAGE);
        renamed[19] ^= 1;
        assert_eq!(bob.message_back(&renamed), Err(code::ARGUMENT));
        // A timestamp without one, and something that goes on to the end.
        let (empty, to_the_end) = (b"\x09\x03\0\0", b"\x15\x01\0\0");
        for (inner, is_taken) in [
            (source(b"twelve bytes"), true),
            (source(b"lewtb evsety"), true),
            (source(b"other person"), false),
            ([&empty[..], &source(b"other person")].concat(), false),
            (b"\x0c\x01\x04\x00\0\0\0\0".to_vec(), false),
            // Protected submessages, as they are and as two readers would take them for two different things.
            ([PREFIX, BODY, POSTFIX].concat(), true),
            ([PREFIX, BODY, POSTFIX, &source(b"other person")].concat(), false),
            ([PREFIX, b"\x30\x01\0\0", POSTFIX, &source(b"other person")].concat(), false),
            ([PREFIX, b"\x30\0\x04\0body", POSTFIX, &source(b"other person"), &[0; 1024]].concat(), false),
            ([PREFIX, BODY, b"\x32\x01\0\0", &source(b"other person")].concat(), false),
            ([PREFIX, BODY, BODY].concat(), false),
            ([PREFIX, &source(b"twelve bytes"), POSTFIX].concat(), false),
            ([&b"\x31\x01\0\0"[..], BODY, POSTFIX].concat(), false),
            ([&to_the_end[..], &source(b"other person")].concat(), true),
        ] {
            if !asked.encrypts && inner.starts_with(to_the_end) {
                // Nobody finds the end of text in the clear then.
                continue;
            }
            let got = bob.message_back(&sent(&[MESSAGE, &inner].concat()));
            assert_eq!(got.map(|_| ()), if is_taken { Ok(()) } else { Err(code::ARGUMENT) }, "{inner:x?}");
        }
        let beyond = b"\x15\x01\x08\0four";
        for inner in [source(b"twelve bytes"), [&empty[..], &source(b"other person")].concat(), PREFIX.to_vec(), beyond.to_vec()] {
            if asked.encrypts || inner.starts_with(b"\x0c") || inner == PREFIX {
                assert_eq!(bob.submessage_back(&alice.listed(&inner, 1, false).unwrap()), Err(code::ARGUMENT), "{inner:x?}");
            }
        }
    }
}
