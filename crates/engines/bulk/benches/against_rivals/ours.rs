//! The kernels as contenders.

use crate::{Mode, STREAMS, Work, now};
use bywash_bulk::{Text, cbc, chacha20_poly1305, ctr, ecb, gcm, xts};
use std::hint::black_box;

pub(crate) fn of(mode: Mode, key: &[u8]) -> Work {
    match mode {
        Mode::Gcm => {
            let key = gcm::Key::new(key).expect("a key's length");
            let (iv, mut tag) = ([1; 12], [0; 16]);
            Box::new(move |buffer| {
                key.seal(black_box(&iv), &[], Text::in_place(buffer), &mut tag).expect("lengths that fit");
                black_box(&mut tag);
            })
        }
        Mode::ChaCha20Poly1305 => {
            let key = chacha20_poly1305::Key::new(key.try_into().expect("a key's length"));
            let (nonce, mut tag) = ([1; 12], [0; 16]);
            Box::new(move |buffer| {
                key.seal(black_box(&nonce), &[], Text::in_place(buffer), &mut tag).expect("lengths that fit");
                black_box(&mut tag);
            })
        }
        Mode::Ctr => {
            let key = ctr::Key::new(key).expect("a key's length");
            Box::new(move |buffer| key.apply(black_box(&[1; 16]), Text::in_place(buffer)))
        }
        Mode::Xts => {
            let key = xts::Key::new(key).expect("a key's length");
            Box::new(move |buffer| key.encrypt(black_box(&[1; 16]), Text::in_place(buffer)).expect("a unit"))
        }
        Mode::Ecb => {
            let key = ecb::Key::new(key).expect("a key's length");
            Box::new(move |buffer| key.encrypt(Text::in_place(buffer)).expect("whole blocks"))
        }
        Mode::CbcDecrypt => {
            let key = cbc::Key::new(key).expect("a key's length");
            Box::new(move |buffer| key.decrypt(black_box(&mut [1; 16]), Text::in_place(buffer)).expect("whole blocks"))
        }
        Mode::CbcStreams => {
            let key = cbc::Key::new(key).expect("a key's length");
            let mut texts = vec![Vec::new(); STREAMS];
            Box::new(move |buffer| {
                texts.iter_mut().for_each(|text| text.resize(buffer.len(), 0));
                let mut chains = [[1; 16]; STREAMS];
                let task = |(text, chain)| cbc::Task { key: &key, chain, text: Text::in_place(text) };
                let mut tasks: Vec<_> = texts.iter_mut().map(Vec::as_mut_slice).zip(&mut chains).map(task).collect();
                cbc::encrypt_many(&mut tasks).expect("whole blocks");
            })
        }
    }
}

/// Nanoseconds until a key can be used, and is gone again.
pub(crate) fn key_ns(mode: Mode, key: &[u8]) -> f64 {
    let once = || match mode {
        Mode::Gcm => drop(black_box(gcm::Key::new(black_box(key)))),
        Mode::Ctr => drop(black_box(ctr::Key::new(black_box(key)))),
        Mode::ChaCha20Poly1305 => drop(black_box(key.try_into().map(chacha20_poly1305::Key::new))),
        Mode::Xts => drop(black_box(xts::Key::new(black_box(key)))),
        Mode::Ecb => drop(black_box(ecb::Key::new(black_box(key)))),
        Mode::CbcDecrypt | Mode::CbcStreams => drop(black_box(cbc::Key::new(black_box(key)))),
    };
    let timed = || {
        let start = now();
        (0..1000).for_each(|_| once());
        (now() - start) as f64 / 1000.0
    };
    (0..20).map(|_| timed()).fold(f64::INFINITY, f64::min)
}
