//! Messages that were changed, cut, copied or invented: each is refused, none is a crash.

use bywash_dds::wire::{Form, RECEIVER, Sealed, prefix_key, split_message, split_payload, split_submessage};
use bywash_dds::{BLOCKS_MAX, KeyMaterial, Kind, Opener, Refusal, Sender, add_receiver, payload_len, protect, protected_len, seal_payload};

const KINDS: [Kind; 4] = [Kind::Aes128Gmac, Kind::Aes128Gcm, Kind::Aes256Gmac, Kind::Aes256Gcm];
/// Rounds for each of twelve messages. A failing one is repeated by its seed.
const ROUNDS: u64 = 4000;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Payload,
    Submessage,
    Message,
}

impl Shape {
    fn split(self, message: &[u8]) -> Result<Sealed<'_>, Refusal> {
        match self {
            Self::Payload => split_payload(message),
            Self::Submessage => split_submessage(message),
            Self::Message => split_message(message),
        }
    }
}

/// DATA, then HEARTBEAT: two submessages, behind a message's header.
fn plain(shape: Shape, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut body = |id: u8, len: usize| {
        let mut submessage = vec![id, 1, len as u8, (len >> 8) as u8];
        submessage.extend((0..len).map(|_| random.u8(..)));
        submessage
    };
    match shape {
        Shape::Payload => body(0, 100).split_off(4),
        Shape::Submessage => body(0x15, 76),
        Shape::Message => [b"RTPS\x02\x01\x01\x10twelve bytes".to_vec(), body(0x15, 76), body(7, 28)].concat(),
    }
}

fn made(shape: Shape, sender: &Sender, plain: &[u8], opener: &Opener) -> Vec<u8> {
    let form = match shape {
        Shape::Payload => {
            let mut message = vec![0; payload_len(sender, plain.len())];
            seal_payload(sender, plain, &mut message).unwrap();
            return message;
        }
        Shape::Submessage => Form::Submessage,
        Shape::Message => Form::Message,
    };
    let mut message = vec![0; protected_len(sender, form, plain.len())];
    protect(sender, form, plain, &mut message).unwrap();
    for _ in 0..3 {
        message.extend([0; RECEIVER]);
        add_receiver(form, &mut message, opener.specific().unwrap()).unwrap();
    }
    message
}

fn pair(kind: Kind) -> (Sender, Opener) {
    let material = KeyMaterial::generate(kind, 77).unwrap().with_receiver(78).unwrap();
    (Sender::new(material.clone(), BLOCKS_MAX).unwrap(), Opener::new(material))
}

fn read(shape: Shape, message: &[u8], opener: &Opener) -> Result<Vec<u8>, Refusal> {
    let sealed = shape.split(message)?;
    if !matches!(shape, Shape::Payload) {
        opener.specific().unwrap().check(&sealed)?;
    }
    let mut text = vec![0xaa; sealed.text.len()];
    let result = opener.open(&sealed, &mut text);
    if result.is_err() {
        assert!(text.iter().all(|byte| *byte == 0 || *byte == 0xaa), "what is not authentic was given away");
    }
    result.map(|()| text)
}

fn text_of(shape: Shape, plain: &[u8]) -> Vec<u8> {
    match shape {
        Shape::Message => [&[0x0c, 1, 20, 0, 0, 0, 0, 0], &plain[4..]].concat(),
        _ => plain.to_vec(),
    }
}

fn mutated(message: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut message = message.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..message.len());
        match random.u8(..6) {
            0 => message.truncate(at.max(1)),
            1 => message[at] ^= 1 << random.u8(..8),
            2 => message[at] = *random.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap(),
            3 => message.insert(at, random.u8(..)),
            4 => {
                let to = random.usize(..message.len());
                message.copy_within(at.min(to)..at.max(to), 0);
            }
            _ => message.extend((0..random.usize(..40)).map(|_| random.u8(..))),
        }
    }
    message
}

#[test]
fn changed_messages_are_refused() {
    for (kind, shape) in KINDS.iter().flat_map(|kind| [Shape::Payload, Shape::Submessage, Shape::Message].map(|shape| (*kind, shape))) {
        let (sender, opener) = pair(kind);
        let mut random = fastrand::Rng::with_seed(kind as u64);
        let plain = plain(shape, &mut random);
        let message = made(shape, &sender, &plain, &opener);
        let text = text_of(shape, &plain);
        assert_eq!(read(shape, &message, &opener).unwrap(), text, "{kind:?} {shape:?}");
        let mut refused = 0;
        for seed in 0..ROUNDS {
            let changed = mutated(&message, &mut fastrand::Rng::with_seed(seed));
            let _ = prefix_key(&changed);
            // Bytes behind the end and flags that mean nothing may change; the text may not.
            match read(shape, &changed, &opener) {
                Ok(other) => assert_eq!(other, text, "{kind:?} {shape:?}: fastrand seed {seed}"),
                Err(_) => refused += 1,
            }
            let mut grown = [&changed[..], &[0; RECEIVER]].concat();
            let form = if matches!(shape, Shape::Message) { Form::Message } else { Form::Submessage };
            let _ = add_receiver(form, &mut grown, opener.specific().unwrap());
        }
        assert!(refused > ROUNDS * 2 / 3, "{kind:?} {shape:?}: {refused} of {ROUNDS}");
    }
}

#[test]
fn every_bit_of_text_nonce_and_tag_counts() {
    for kind in KINDS {
        let (sender, opener) = pair(kind);
        let mut message = vec![0; payload_len(&sender, 20)];
        seal_payload(&sender, &[9; 20], &mut message).unwrap();
        // The number of receivers behind the tag has a check of its own.
        for bit in 0..(message.len() - 4) * 8 {
            message[bit / 8] ^= 1 << (bit % 8);
            assert!(read(Shape::Payload, &message, &opener).is_err(), "{kind:?}: bit {bit}");
            message[bit / 8] ^= 1 << (bit % 8);
        }
        read(Shape::Payload, &message, &opener).unwrap();
    }
}

#[test]
fn invented_bytes_are_refused() {
    let (_, opener) = pair(Kind::Aes256Gcm);
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        for shape in [Shape::Payload, Shape::Submessage, Shape::Message] {
            assert!(read(shape, &bytes, &opener).is_err());
        }
        let _ = KeyMaterial::parse(&bytes);
    }
}

#[test]
fn changed_tokens_are_read_or_refused() {
    let token = KeyMaterial::generate(Kind::Aes128Gcm, 5).unwrap().with_receiver(6).unwrap().to_bytes();
    for seed in 0..20_000 {
        let _ = KeyMaterial::parse(&mutated(&token, &mut fastrand::Rng::with_seed(seed)));
    }
}

#[test]
fn copies_are_refused_where_they_must_come_once() {
    let (sender, opener) = pair(Kind::Aes256Gcm);
    let plain = plain(Shape::Submessage, &mut fastrand::Rng::with_seed(3));
    let messages: Vec<Vec<u8>> = (0..300).map(|_| made(Shape::Submessage, &sender, &plain, &opener)).collect();
    let once = |message: &[u8]| {
        let sealed = split_submessage(message).unwrap();
        let mut text = vec![0; sealed.text.len()];
        (opener.open_once(&sealed, &mut text), text)
    };
    for message in &messages {
        assert_eq!(once(message), (Ok(()), plain.clone()));
        let (result, text) = once(message);
        assert_eq!((result, text), (Err(Refusal::Replayed), vec![0; plain.len()]));
    }
    // A forgery of a number that has not come yet does not take its place.
    let next = made(Shape::Submessage, &sender, &plain, &opener);
    let mut forged = next.clone();
    forged[40] ^= 1;
    assert_eq!(once(&forged).0, Err(Refusal::Authentication));
    assert_eq!(once(&next).0, Ok(()));
}

/// Numbers and sessions far ahead, by somebody without the key: were they remembered, what is genuine would be too old.
#[test]
fn forged_messages_are_not_remembered() {
    for kind in KINDS {
        let (sender, opener) = pair(kind);
        let mut random = fastrand::Rng::with_seed(4);
        let plain = plain(Shape::Submessage, &mut random);
        let once = |message: &[u8]| {
            let sealed = split_submessage(message).unwrap();
            opener.open_once(&sealed, &mut vec![0; sealed.text.len()])
        };
        for _ in 0..200 {
            let message = made(Shape::Submessage, &sender, &plain, &opener);
            for _ in 0..20 {
                let mut forged = message.clone();
                // Session and number lie behind the submessage's header, kind and key id.
                let [session, suffix] = [12..16, 16..24];
                let bytes = if random.bool() { &mut forged[session] } else { &mut forged[suffix] };
                let at = random.usize(..bytes.len());
                bytes[at] = bytes[at].wrapping_add(random.u8(1..));
                assert_eq!(once(&forged), Err(Refusal::Authentication));
            }
            assert_eq!(once(&message), Ok(()));
            assert_eq!(once(&message), Err(Refusal::Replayed));
        }
    }
}

#[test]
fn openers_that_share_what_was_accepted_have_each_message_once() {
    let (sender, opener) = pair(Kind::Aes128Gcm);
    let other = Opener::sharing(opener.material().clone(), opener.accepted().clone());
    let apart = Opener::new(opener.material().clone());
    let plain = plain(Shape::Submessage, &mut fastrand::Rng::with_seed(5));
    for round in 0..100 {
        let message = made(Shape::Submessage, &sender, &plain, &opener);
        let once = |opener: &Opener| {
            let sealed = split_submessage(&message).unwrap();
            opener.open_once(&sealed, &mut vec![0; sealed.text.len()])
        };
        let [first, second] = if round % 2 == 0 { [&opener, &other] } else { [&other, &opener] };
        assert_eq!([once(first), once(second), once(first)], [Ok(()), Err(Refusal::Replayed), Err(Refusal::Replayed)]);
        assert_eq!(once(&apart), Ok(()));
    }
}

#[test]
fn what_cannot_be_sent_is_refused_before_it_is() {
    let (sender, _) = pair(Kind::Aes256Gcm);
    let long = vec![0; 65536];
    let mut room = vec![0; protected_len(&sender, Form::Submessage, long.len())];
    assert!(matches!(protect(&sender, Form::Submessage, &long, &mut room), Err(Refusal::Unprotectable(_))));
    assert!(matches!(protect(&sender, Form::Message, b"RTPS", &mut [0; 100]), Err(Refusal::Unprotectable(_))));
    let (sender, _) = pair(Kind::Aes256Gmac);
    let mut room = vec![0; protected_len(&sender, Form::Submessage, 8)];
    assert!(matches!(protect(&sender, Form::Submessage, &[0x15, 1, 9, 0, 0, 0, 0, 0], &mut room), Err(Refusal::Unprotectable(_))));
}
