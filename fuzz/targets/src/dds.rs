//! Messages of DDS Security from the network, and the keys that a peer tells.

use bywash_dds::wire::{Form, RECEIVER, Sealed, is_of_its_sender, prefix_key, split_message, split_payload, split_submessage};
use bywash_dds::{BLOCKS_MAX, KeyMaterial, Kind, Opener, Refusal, Sender, add_receiver, payload_len, protect, protected_len, seal_payload};
use std::sync::LazyLock;

/// How one of the three forms in which something is protected is taken apart.
type Split = fn(&[u8]) -> Result<Sealed<'_>, Refusal>;
const SPLITS: [Split; 3] = [split_payload, split_submessage, split_message];
const KINDS: [Kind; 4] = [Kind::Aes128Gmac, Kind::Aes128Gcm, Kind::Aes256Gmac, Kind::Aes256Gcm];
/// A DATA submessage, and a message's header before it: what is protected in every seed.
const DATA: &[u8] = b"\x15\x01\x14\0what everybody reads";
const HEADER: &[u8] = b"RTPS\x02\x01\x01\x10twelve bytes";
/// What a message's header becomes within what is protected: a submessage of its own, INFO_SRC.
const SOURCE: [u8; 8] = [0x0c, 1, 20, 0, 0, 0, 0, 0];

/// Keys that never change, so that what a fuzzer keeps stays authentic.
fn material(kind: Kind) -> KeyMaterial {
    let receiver = Some((78, [5; 32].into()));
    KeyMaterial { kind, salt: [3; 32].into(), sender_id: 77, sender_key: [4; 32].into(), receiver }
}

static OPENERS: LazyLock<[Opener; 4]> = LazyLock::new(|| KINDS.map(|kind| Opener::new(material(kind))));

/// A payload, submessage or message from anybody. What is authentic has the text of the seeds, and what is not gives none of it away.
pub fn dds_message(bytes: &[u8]) {
    let _ = prefix_key(bytes);
    let text = bytes.get(HEADER.len()..).unwrap_or_default();
    assert!(!is_of_its_sender(bytes, text) || text.starts_with(&SOURCE[..1]));
    let message = [&SOURCE, &HEADER[4..], DATA].concat();
    for split in SPLITS {
        let Ok(sealed) = split(bytes) else { continue };
        for opener in &*OPENERS {
            let mut opened = vec![0xaa; sealed.text.len()];
            match opener.open(&sealed, &mut opened) {
                // What is a message in one form may be cut out and be one in another.
                Ok(()) => assert!(opened == DATA || opened == message),
                Err(refusal) => {
                    assert!(!refusal.to_string().is_empty());
                    assert!(opened.iter().all(|byte| [0, 0xaa].contains(byte)), "what is not authentic is given away");
                }
            }
            let _ = opener.specific().expect("there is a receiver").check(&sealed);
        }
    }
    for form in [Form::Submessage, Form::Message] {
        let mut grown = [bytes, &[0; RECEIVER]].concat();
        let _ = add_receiver(form, &mut grown, OPENERS[0].specific().expect("there is a receiver"));
    }
}

pub(crate) fn message_seeds() -> Vec<Vec<u8>> {
    let protected = |kind, form, plain: &[u8]| {
        let sender = Sender::new(material(kind), BLOCKS_MAX).expect("a sender");
        let mut message = vec![0; protected_len(&sender, form, plain.len())];
        protect(&sender, form, plain, &mut message).expect("it can be sent");
        message.extend([0; RECEIVER]);
        add_receiver(form, &mut message, Opener::new(material(kind)).specific().expect("a receiver")).expect("there is room");
        message
    };
    let payload = |kind| {
        let sender = Sender::new(material(kind), BLOCKS_MAX).expect("a sender");
        let mut message = vec![0; payload_len(&sender, DATA.len())];
        seal_payload(&sender, DATA, &mut message).expect("it can be sent");
        message
    };
    let of_kind = |kind| [payload(kind), protected(kind, Form::Submessage, DATA), protected(kind, Form::Message, &[HEADER, DATA].concat())];
    let seeds: Vec<_> = KINDS.into_iter().flat_map(of_kind).collect();
    // Should the seeds not be what `dds_message` takes for authentic, nothing is fuzzed.
    for (seed, (split, opener)) in seeds.iter().zip(OPENERS.iter().flat_map(|opener| SPLITS.map(|split| (split, opener)))) {
        let sealed = split(seed).expect("a seed has its parts");
        opener.open(&sealed, &mut vec![0; sealed.text.len()]).expect("a seed is authentic");
        dds_message(seed);
    }
    seeds
}

/// What a peer says its keys are. What is taken is written as it was understood.
pub fn dds_token(bytes: &[u8]) {
    let Ok(Some(keys)) = KeyMaterial::parse(bytes) else { return };
    let again = KeyMaterial::parse(&keys.to_bytes()).expect("its own bytes").expect("it has keys");
    assert_eq!(*again.to_bytes(), *keys.to_bytes());
    assert_eq!((again.kind, again.sender_id), (keys.kind, keys.sender_id));
}

pub(crate) fn token_seeds() -> Vec<Vec<u8>> {
    let of_kind = |kind| {
        let without = KeyMaterial { receiver: None, ..material(kind) };
        [material(kind).to_bytes().to_vec(), without.to_bytes().to_vec()]
    };
    KINDS.into_iter().flat_map(of_kind).chain([KeyMaterial::none().to_vec()]).collect()
}
