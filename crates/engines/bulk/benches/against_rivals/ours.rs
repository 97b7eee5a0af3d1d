//! The kernels as contenders.

use crate::{Mode, STREAMS, Work, now};
use bywash_bulk::aegis::{aegis128l, aegis128x4, aegis256};
use bywash_bulk::{Text, cbc, ccm, chacha20_poly1305, ctr, ecb, gcm, gcm_siv, xts};
use std::hint::black_box;

/// A message with a tag under a key, with a nonce of so many bytes.
macro_rules! aead {
    ($key:expr, $nonce:literal) => {{
        let (key, nonce, mut tag) = ($key, [1; $nonce], [0; 16]);
        Box::new(move |buffer| {
            key.seal(black_box(&nonce), &[], Text::in_place(buffer), &mut tag).expect("lengths that fit");
            black_box(&mut tag);
        })
    }};
}

pub(crate) fn of(mode: Mode, key: &[u8]) -> Work {
    match mode {
        Mode::Gcm => aead!(gcm::Key::new(key).expect("a key's length"), 12),
        Mode::GcmSiv => aead!(gcm_siv::Key::new(key).expect("a key's length"), 12),
        Mode::Ccm => aead!(ccm::Key::new(key).expect("a key's length"), 12),
        Mode::ChaCha20Poly1305 => aead!(chacha20_poly1305::Key::new(key.try_into().expect("a key's length")), 12),
        Mode::Aegis128L => aead!(aegis128l::Key::new(key.try_into().expect("a key's length")), 16),
        Mode::Aegis128X4 => aead!(aegis128x4::Key::new(key.try_into().expect("a key's length")), 16),
        Mode::Aegis256 => aead!(aegis256::Key::new(key.try_into().expect("a key's length")), 32),
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
        Mode::GcmSiv => drop(black_box(gcm_siv::Key::new(black_box(key)))),
        Mode::Ccm => drop(black_box(ccm::Key::new(black_box(key)))),
        Mode::Aegis128L => drop(black_box(key.try_into().map(aegis128l::Key::new))),
        Mode::Aegis128X4 => drop(black_box(key.try_into().map(aegis128x4::Key::new))),
        Mode::Aegis256 => drop(black_box(key.try_into().map(aegis256::Key::new))),
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
