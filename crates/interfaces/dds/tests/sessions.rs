//! Sessions: found again, bounded, rekeyed in time, shared by threads.

use bywash_dds::wire::{Header, split_payload};
use bywash_dds::{Epoch, KeyMaterial, Keyed, Kind, Opener, Purpose, Refusal, Sender, Sessions, client, payload_len, seal_payload};
use std::collections::HashSet;

fn sealed(sender: &Sender, text: &[u8]) -> Vec<u8> {
    let mut message = vec![0; payload_len(sender, text.len())];
    seal_payload(sender, text, &mut message).unwrap();
    message
}

fn opened(opener: &Opener, message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let sealed = split_payload(message)?;
    let mut text = vec![0; sealed.text.len()];
    opener.open(&sealed, &mut text).map(|()| text)
}

#[test]
fn a_session_is_derived_once() {
    let sessions = Sessions::new(client().clone(), 64);
    let get = |session| sessions.get(Kind::Aes256Gcm, Purpose::Sender, &[1; 32], &[2; 32], session).unwrap();
    let is_new = |purpose, session| sessions.find_or_make(Kind::Aes256Gcm, purpose, &[1; 32], &[2; 32], session).unwrap().1.is_some();
    let first = get(7);
    assert!(!is_new(Purpose::Sender, 7) && is_new(Purpose::Sender, 8) && is_new(Purpose::Receiver, 7));
    let other = sessions.get(Kind::Aes256Gcm, Purpose::Receiver, &[1; 32], &[2; 32], 7).unwrap();
    assert_ne!(first.mac(&[0; 12], b"text").unwrap(), other.mac(&[0; 12], b"text").unwrap());
    (0..1000).for_each(|session| drop(get(session)));
    assert!(sessions.len() <= 64);
    assert!(sessions.get(Kind::Aes256Gcm, Purpose::Sender, &[1; 16], &[2; 32], 7).is_err());
}

#[test]
fn what_is_not_authentic_takes_no_place() {
    let sessions = Sessions::new(client().clone(), 64);
    sessions.find_or_make(Kind::Aes256Gcm, Purpose::Sender, &[1; 32], &[2; 32], 7).unwrap();
    assert!(sessions.is_empty());
}

#[test]
fn what_was_made_before_all_were_forgotten_takes_no_place() {
    let sessions = Sessions::new(client().clone(), 64);
    let made = || sessions.find_or_make(Kind::Aes256Gcm, Purpose::Sender, &[1; 32], &[2; 32], 7).unwrap();
    let keep = |(keyed, new): (Keyed, Option<Epoch>)| {
        sessions.keep(Kind::Aes256Gcm, Purpose::Sender, &[1; 32], &[2; 32], 7, (&keyed, new.unwrap()));
    };
    let before = made();
    sessions.clear();
    keep(before);
    assert!(sessions.is_empty());
    keep(made());
    assert_eq!(sessions.len(), 1);
}

#[test]
fn a_session_ends_after_its_blocks() {
    let material = KeyMaterial::generate(Kind::Aes128Gcm, 1).unwrap();
    let (sender, opener) = (Sender::new(material.clone(), 10).unwrap(), Opener::new(material));
    let mut sessions = Vec::new();
    for _ in 0..100 {
        // Two blocks of text and two of GCM's own: three messages are more than ten.
        let message = sealed(&sender, &[5; 32]);
        sessions.push(split_payload(&message).unwrap().header.session);
        assert_eq!(opened(&opener, &message).unwrap(), [5; 32]);
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 34);
    assert!(sessions.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
}

#[test]
fn a_sender_knows_what_it_has_made_from_what_another_has_made_with_its_key() {
    let material = KeyMaterial::generate(Kind::Aes256Gcm, 1).unwrap();
    // One that changes its session every third message, and one that never does.
    let senders = [10, u64::MAX].map(|blocks| Sender::new(material.clone(), blocks).unwrap());
    let [some, others] = [0, 1].map(|of: usize| (0..1000).map(|_| senders[of].next(32).unwrap().0).collect::<Vec<_>>());
    for header in some {
        assert!(senders[0].has_made(&header) && !senders[1].has_made(&header));
        assert!(!senders[0].has_made(&Header { key_id: 2, ..header }));
    }
    for header in &others {
        assert!(senders[1].has_made(header) && !senders[0].has_made(header));
    }
    let (first, last) = (others[0], others[999]);
    for header in [
        Header { suffix: first.suffix.wrapping_sub(1), ..first },
        Header { suffix: last.suffix.wrapping_add(1), ..last },
        Header { session: first.session.wrapping_sub(1), ..first },
        Header { session: last.session.wrapping_add(1), ..last },
    ] {
        assert!(!senders[1].has_made(&header), "{header:?}");
    }
}

#[test]
fn threads_share_a_sender_and_an_opener() {
    let material = KeyMaterial::generate(Kind::Aes256Gcm, 1).unwrap();
    let (sender, opener) = (Sender::new(material.clone(), 50).unwrap(), Opener::new(material));
    let nonces: Vec<_> = std::thread::scope(|scope| {
        let work = |number: u8| {
            let (sender, opener) = (&sender, &opener);
            move || -> Vec<_> {
                let one = |index: usize| {
                    let text = vec![number; index];
                    let message = sealed(sender, &text);
                    assert_eq!(opened(opener, &message).unwrap(), text);
                    let header = split_payload(&message).unwrap().header;
                    (header.session, header.suffix)
                };
                (0..500).map(one).collect()
            }
        };
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(work(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(nonces.iter().collect::<HashSet<_>>().len(), nonces.len());
}
