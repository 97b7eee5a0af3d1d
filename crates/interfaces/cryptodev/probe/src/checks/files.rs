//! Sessions belong to the open file: duplicates, clones, other opens, threads, forks.

use crate::port::{at, out};
use crate::vectors::{CIPHERS, HASHES};
use crate::{Check, Handle, Outcome, Port, Wrong, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::linux::*;

pub(crate) fn add(list: &mut Vec<Check>) {
    list.push(Check::new("files/another-open-has-other-sessions", |port| {
        let (one, two) = (Handle::open(port)?, Handle::open(port)?);
        let ses = one.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        refused(libc::EINVAL, enciphers(&two, ses).map_err(|_| libc::EINVAL))
    }));
    list.push(Check::new("files/closed-session", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        device.finish(ses)?;
        same(0, device.finish(ses)?)?;
        refused(libc::EINVAL, device.crypt(CryptOp { ses, ..CryptOp::default() }))
    }));
    list.push(Check::new("files/unknown-session-closes", |port| same(0, Handle::open(port)?.finish(0x1234)?)));
    list.push(Check::new("files/numbers-differ", |port| {
        let device = Handle::open(port)?;
        let mut numbers = std::collections::HashSet::new();
        for _ in 0..500 {
            let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
            same(true, numbers.insert(ses))?;
            device.finish(ses)?;
        }
        Ok(())
    }));
    list.push(Check::new("files/a-thousand-sessions", |port| {
        let device = Handle::open(port)?;
        let sessions: Result<Vec<u32>, i32> = (0..1000).map(|_| device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))).collect();
        for ses in sessions? {
            enciphers(&device, ses)?;
        }
        Ok(())
    }));
    list.push(Check::new("files/dup-shares-sessions", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        let copy = port.duplicate(device.descriptor()).ok_or_else(|| Wrong::Skipped("no dup through this port".into()))?;
        let copy = Handle::of(port, copy);
        enciphers(&copy, ses)?;
        drop(device);
        enciphers(&copy, ses)
    }));
    list.push(Check::new("files/clone-shares-sessions", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        let clone = clone(port, &device)?;
        same(true, clone.descriptor() != device.descriptor())?;
        enciphers(&clone, ses)?;
        let other = clone.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        enciphers(&device, other)?;
        drop(device);
        enciphers(&clone, ses)
    }));
    list.push(Check::new("files/clone-nowhere", |port| refused(libc::EFAULT, Handle::open(port)?.ask_at(CRIOGET, 16))));
    list.push(Check::new("files/threads-share-a-session", |port| threads(port, true)));
    list.push(Check::new("files/threads-with-sessions-of-their-own", |port| threads(port, false)));
    list.push(Check::new("files/threads-open-and-close", open_and_close));
    for (name, both) in [("parent-and-child-go-on", true), ("child-alone", false)] {
        list.push(Check::new(format!("fork/cipher/{name}"), move |port| fork_cipher(port, both)));
        list.push(Check::new(format!("fork/hash/{name}"), move |port| fork_hash(port, both)));
    }
    list.push(Check::new("fork/child-closes-its-descriptor", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        in_child(port, || {
            port.close(device.descriptor());
            Ok(())
        })?;
        enciphers(&device, ses)
    }));
    list.push(Check::new("fork/child-opens-sessions", |port| {
        let device = Handle::open(port)?;
        in_child(port, || {
            let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
            enciphers(&device, ses)
        })?;
        let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
        enciphers(&device, ses)
    }));
}

fn enciphers(device: &Handle<'_>, ses: u32) -> Outcome {
    let (iv, text, mut result) = (bytes(16, 5), bytes(64, 1), vec![0; 64]);
    device.crypt(CryptOp { ses, len: 64, src: at(&text), dst: out(&mut result), iv: at(&iv), ..CryptOp::default() })?;
    same_bytes(&unhex(CIPHERS[0].enciphered), &result)
}

fn clone<'a>(port: &'a dyn Port, device: &Handle<'_>) -> Result<Handle<'a>, Wrong> {
    let mut number = -1i32;
    device.ask(CRIOGET, &mut number)?;
    Ok(Handle::of(port, number))
}

fn threads(port: &dyn Port, shared: bool) -> Outcome {
    let device = Handle::open(port)?;
    let one = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
    let work = || -> Outcome {
        let ses = if shared { one } else { device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))? };
        (0..200).try_for_each(|_| enciphers(&device, ses))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| same("an end", "a panic")))
    })
}

/// Sessions are closed under those who use them: each request is done or refused.
fn open_and_close(port: &dyn Port) -> Outcome {
    let device = Handle::open(port)?;
    let number = std::sync::atomic::AtomicU32::new(device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let work = || -> Outcome {
        for _ in 0..200 {
            let ses = number.load(relaxed);
            let (iv, text, mut result) = (bytes(16, 5), bytes(64, 1), vec![0; 64]);
            let asked = CryptOp { ses, len: 64, src: at(&text), dst: out(&mut result), iv: at(&iv), ..CryptOp::default() };
            match device.crypt(asked) {
                Ok(_) => same_bytes(&unhex(CIPHERS[0].enciphered), &result)?,
                Err(libc::EINVAL) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        for _ in 0..200 {
            let next = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
            device.finish(number.swap(next, relaxed))?;
        }
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| same("an end", "a panic")))
    })
}

/// Half a text before the fork, the other half after it, in the child, and in the parent too (OpenSSL's issue 8430).
///
/// Where parent and child share one session, the parent's half comes behind the child's, so each gives its IV.
fn fork_cipher(port: &dyn Port, both: bool) -> Outcome {
    let device = Handle::open(port)?;
    let ses = device.cipher(CRYPTO_AES_CBC, &bytes(16, 3))?;
    let (mut iv, text, secret) = (bytes(16, 5), bytes(64, 1), unhex(CIPHERS[0].enciphered));
    let mut result = vec![0; 64];
    let iv = out(&mut iv);
    let op = CryptOp { ses, flags: COP_FLAG_WRITE_IV, len: 32, iv, ..CryptOp::default() };
    device.crypt(CryptOp { src: at(&text), dst: out(&mut result), ..op })?;
    let finish = || {
        let mut rest = vec![0; 32];
        device.crypt(CryptOp { src: at(&text[32..]), dst: out(&mut rest), ..op })?;
        same_bytes(&secret[32..], &rest)
    };
    in_child(port, finish)?;
    same_bytes(&secret[..32], &result[..32])?;
    if both { finish() } else { Ok(()) }
}

/// Half a message before the fork, the other half after it. Where parent and child share one session, it is copied before.
fn fork_hash(port: &dyn Port, both: bool) -> Outcome {
    let (device, vector) = (Handle::open(port)?, &HASHES[7]);
    let key = bytes(vector.key_len, 3);
    let (mine, childs) = (device.hash(vector.mac, &key)?, device.hash(vector.mac, &key)?);
    let text = bytes(64, 1);
    let flags = COP_FLAG_UPDATE | COP_FLAG_RESET;
    device.crypt(CryptOp { ses: mine, flags, len: 40, src: at(&text), ..CryptOp::default() })?;
    device.ask(CIOCCPHASH, &mut CphashOp { dst_ses: childs, src_ses: mine })?;
    let finish = |ses| {
        let (mut mac, expected) = ([0; 64], unhex(vector.of_text));
        let (src, flags) = (at(&text[40..]), COP_FLAG_FINAL);
        device.crypt(CryptOp { ses, flags, len: 24, src, mac: out(&mut mac), ..CryptOp::default() })?;
        same_bytes(&expected, &mac[..expected.len()])
    };
    in_child(port, || finish(childs))?;
    if both { finish(mine) } else { Ok(()) }
}

/// Does something in a child, and waits for how it came out.
fn in_child(port: &dyn Port, work: impl Fn() -> Outcome) -> Outcome {
    if !port.forks() {
        return Err(Wrong::Skipped("no fork through this port".into()));
    }
    // SAFETY: the child does the check's work and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = match work() {
            Ok(()) => 0,
            Err(wrong) => {
                eprintln!("in the child: {wrong:?}");
                1
            }
        };
        // SAFETY: it ends the child at once, without what the parent would do at its end.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the child is this one's own.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    same(0, status)
}
