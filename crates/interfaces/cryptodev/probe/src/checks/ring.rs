//! The ring of queued requests, and what poll says of it.

use crate::port::{at, out};
use crate::vectors::CIPHERS;
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::linux::*;

/// How long a request in the ring is waited for, in polls of a millisecond.
const POLLS: usize = 5000;

pub(crate) fn add(list: &mut Vec<Check>) {
    let mut check =
        |name: &str, run: fn(&Handle<'_>) -> Outcome| list.push(Check::new(format!("ring/{name}"), move |port| run(&Handle::open(port)?)));
    check("idle", |device| {
        refused(libc::EBUSY, device.ask(CIOCASYNCFETCH, &mut CryptOp::default()))?;
        same((false, true), device.poll())
    });
    check("one", |device| {
        let (text, iv, mut result) = (bytes(64, 1), bytes(16, 5), vec![0; 64]);
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        let mut op = CryptOp { ses, len: 64, src: at(&text), dst: out(&mut result), iv: at(&iv), ..CryptOp::default() };
        device.ask(CIOCASYNCCRYPT, &mut op)?;
        wait(device)?;
        let mut answer = CryptOp::default();
        device.ask(CIOCASYNCFETCH, &mut answer)?;
        same(op, answer)?;
        same_bytes(&unhex(CIPHERS[0].enciphered), &result)?;
        same((false, true), device.poll())
    });
    check("hash", |device| {
        let (text, mut mac) = (bytes(64, 1), [0; 20]);
        let ses = device.hash(CRYPTO_SHA1, &[])?;
        device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, len: 64, src: at(&text), mac: out(&mut mac), ..CryptOp::default() })?;
        wait(device)?;
        same([0; 20], mac)?;
        device.ask(CIOCASYNCFETCH, &mut CryptOp::default())?;
        let sha1 = crate::vectors::HASHES.iter().find(|vector| vector.mac == CRYPTO_SHA1).map_or("", |vector| vector.of_text);
        same_bytes(&unhex(sha1), &mac)
    });
    check("full", |device| {
        let (ses, mut data) = (device.cipher(CRYPTO_AES_ECB, &[1; 16])?, [0; 64 * 16]);
        let place = out(&mut data);
        for index in 0..64 {
            let src = place + 16 * index;
            device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, len: 16, src, dst: src, ..CryptOp::default() })?;
        }
        refused(libc::EBUSY, device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, len: 16, src: place, dst: place, ..CryptOp::default() }))?;
        wait(device)?;
        same((true, false), device.poll())?;
        for index in 0..64 {
            wait(device)?;
            let mut answer = CryptOp::default();
            device.ask(CIOCASYNCFETCH, &mut answer)?;
            same(place + 16 * index, answer.src)?;
        }
        refused(libc::EBUSY, device.ask(CIOCASYNCFETCH, &mut CryptOp::default()))?;
        same((false, true), device.poll())
    });
    check("error-comes-with-the-fetch", |device| {
        let ses = device.cipher(CRYPTO_AES_CBC, &[1; 16])?;
        device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, len: 17, ..CryptOp::default() })?;
        wait(device)?;
        refused(libc::EINVAL, device.ask(CIOCASYNCFETCH, &mut CryptOp::default()))?;
        refused(libc::EBUSY, device.ask(CIOCASYNCFETCH, &mut CryptOp::default()))
    });
    check("unknown-session", |device| refused(libc::EINVAL, device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses: 1, ..CryptOp::default() })));
    check("copied", |device| {
        let ses = device.cipher(CRYPTO_AES_CBC, &[1; 16])?;
        refused(libc::EINVAL, device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, flags: COP_FLAG_NO_ZC, ..CryptOp::default() }))
    });
    check("fetch-nowhere", |device| {
        let ses = device.cipher(CRYPTO_AES_CBC, &[1; 16])?;
        refused(libc::EBUSY, device.ask_at(CIOCASYNCFETCH, 16))?;
        device.ask(CIOCASYNCCRYPT, &mut CryptOp { ses, ..CryptOp::default() })?;
        wait(device)?;
        refused(libc::EFAULT, device.ask_at(CIOCASYNCFETCH, 16))
    });
}

/// Until the device is readable.
fn wait(device: &Handle<'_>) -> Outcome {
    for _ in 0..POLLS {
        if device.poll().0 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    same("readable", "not")
}
