//! What is refused, with which error, and which of several errors comes first.

use crate::pages::Pages;
use crate::port::{at, out};
use crate::{Check, Handle, Outcome, bytes, refused, same};
use bywash_cryptodev_abi::linux::*;

/// An address where nothing is.
const NOWHERE: u64 = 16;

pub(crate) fn add(list: &mut Vec<Check>) {
    numbers(list);
    opening(list);
    crypting(list);
    authenticating(list);
    copying(list);
    describing(list);
}

fn check(list: &mut Vec<Check>, name: impl Into<String>, run: impl Fn(&Handle<'_>) -> Outcome + 'static) {
    list.push(Check::new(name, move |port| run(&Handle::open(port)?)));
}

fn numbers(list: &mut Vec<Check>) {
    for number in [0xc030_63ff, 0x6300, 0xc030_6300 | 113, CIOCCRYPT ^ 0x0001_0000] {
        check(list, format!("errors/unknown-request-{number:#x}"), move |device| refused(libc::EINVAL, device.ask_at(number, 0)));
    }
    for number in [u32::MAX, 0x5401] {
        list.push(Check::new(format!("errors/unknown-request-{number:#x}"), move |port| {
            let expected = if port.sees_other_letters() { libc::EINVAL } else { libc::ENOTTY };
            refused(expected, Handle::open(port)?.ask_at(number, 0))
        }));
    }
    let written = [CIOCASYMFEAT];
    for (number, name) in REQUESTS.into_iter().filter(|(number, _)| *number != CIOCKEY && *number != CIOCASYNCFETCH && *number != CRIOGET) {
        for (what, address) in [("null", 0), ("nowhere", NOWHERE), ("kernel", 0xffff_8000_0000_0000), ("top", u64::MAX - 7)] {
            check(list, format!("errors/{name}-{what}"), move |device| refused(libc::EFAULT, device.ask_at(number, address)));
        }
        check(list, format!("errors/{name}-across-a-page-end"), move |device| {
            let pages = Pages::new(1);
            refused(libc::EFAULT, device.ask_at(number, pages.end() - 2))
        });
        if written.contains(&number) {
            check(list, format!("errors/{name}-read-only"), move |device| {
                let pages = Pages::new(1).read_only();
                refused(libc::EFAULT, device.ask_at(number, pages.start()))
            });
        }
    }
}

fn opening(list: &mut Vec<Check>) {
    check(list, "errors/session/neither", |device| refused(libc::EINVAL, device.session(0, &[], 0, &[])));
    let unknown = [CRYPTO_CAST_CBC, CRYPTO_SKIPJACK_CBC, CRYPTO_ARC4, CRYPTO_MD5_KPDK, 49, 52, 99, 110, u32::MAX];
    for number in unknown {
        check(list, format!("errors/session/cipher-{number}"), move |device| refused(libc::EINVAL, device.cipher(number, &[0; 16])));
        check(list, format!("errors/session/mac-{number}"), move |device| refused(libc::EINVAL, device.hash(number, &[0; 16])));
    }
    check(list, "errors/session/cipher-as-mac", |device| refused(libc::EINVAL, device.hash(CRYPTO_AES_CBC, &[0; 16])));
    check(list, "errors/session/mac-as-cipher", |device| refused(libc::EINVAL, device.cipher(CRYPTO_SHA1, &[])));
    let open = |device: &Handle<'_>, mut op: SessionOp| device.ask(CIOCGSESSION, &mut op);
    let aes = SessionOp { cipher: CRYPTO_AES_CBC, keylen: 16, key: NOWHERE, ..SessionOp::default() };
    check(list, "errors/session/key-nowhere", move |device| refused(libc::EFAULT, open(device, aes)));
    check(list, "errors/session/key-null", move |device| refused(libc::EFAULT, open(device, SessionOp { key: 0, ..aes })));
    check(list, "errors/session/long-key-before-its-address", move |device| {
        refused(libc::EINVAL, open(device, SessionOp { keylen: 65, ..aes }))
    });
    check(list, "errors/session/address-before-its-length", move |device| {
        refused(libc::EFAULT, open(device, SessionOp { keylen: 17, ..aes }))
    });
    check(list, "errors/session/huge-key", move |device| refused(libc::EINVAL, open(device, SessionOp { keylen: u32::MAX, ..aes })));
    check(list, "errors/session/unknown-mac-before-key", move |device| refused(libc::EINVAL, open(device, SessionOp { mac: 99, ..aes })));
    let hmac = SessionOp { mac: CRYPTO_SHA1_HMAC, mackeylen: 20, mackey: NOWHERE, ..SessionOp::default() };
    check(list, "errors/session/mackey-nowhere", move |device| refused(libc::EFAULT, open(device, hmac)));
    check(list, "errors/session/long-mackey", move |device| refused(libc::EINVAL, open(device, SessionOp { mackeylen: 513, ..hmac })));
    check(list, "errors/session/huge-mackey", move |device| refused(libc::EINVAL, open(device, SessionOp { mackeylen: u32::MAX, ..hmac })));
    let null = Check::new("errors/session/mackey-null", move |port| {
        refused(libc::EFAULT, open(&Handle::open(port)?, SessionOp { mackey: 0, ..hmac }))
    });
    list.push(null.deviating("the module takes what is on its stack for the key"));
    check(list, "errors/session/digest-without-key", |device| device.hash(CRYPTO_SHA1, &[]).map(drop).map_err(Into::into));
    check(list, "errors/session/argument-read-only", |device| {
        let pages = Pages::new(1).read_only();
        refused(libc::EINVAL, device.ask_at(CIOCGSESSION, pages.start()))
    });
    check(list, "errors/session/end-of-a-page", move |device| {
        let mut pages = Pages::new(1);
        pages.last(16).copy_from_slice(&bytes(16, 3));
        open(device, SessionOp { key: pages.end() - 16, ..aes })?;
        refused(libc::EFAULT, open(device, SessionOp { key: pages.end() - 15, ..aes }))
    });
}

fn crypting(list: &mut Vec<Check>) {
    let mut with = |name: &str, errno: i32, change: fn(CryptOp) -> CryptOp| {
        check(list, format!("errors/crypt/{name}"), move |device| {
            let (ses, mut data) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, [0; 64]);
            let place = out(&mut data);
            refused(errno, device.crypt(change(CryptOp { ses, len: 32, src: place, dst: place, ..CryptOp::default() })))
        });
    };
    with("no-session", libc::EINVAL, |op| CryptOp { ses: op.ses ^ 1, ..op });
    with("session-0", libc::EINVAL, |op| CryptOp { ses: 0, ..op });
    with("session-before-iv", libc::EINVAL, |op| CryptOp { ses: op.ses ^ 1, iv: NOWHERE, ..op });
    with("iv-nowhere", libc::EFAULT, |op| CryptOp { iv: NOWHERE, ..op });
    with("iv-before-operation", libc::EFAULT, |op| CryptOp { iv: NOWHERE, op: 2, ..op });
    with("operation-2", libc::EINVAL, |op| CryptOp { op: 2, ..op });
    with("operation-65535", libc::EINVAL, |op| CryptOp { op: 65_535, ..op });
    with("operation-without-data", libc::EINVAL, |op| CryptOp { op: 2, len: 0, ..op });
    with("operation-before-length", libc::EINVAL, |op| CryptOp { op: 3, len: 17, src: 0, ..op });
    with("length-1", libc::EINVAL, |op| CryptOp { len: 1, ..op });
    with("length-17", libc::EINVAL, |op| CryptOp { len: 17, ..op });
    with("length-before-data", libc::EINVAL, |op| CryptOp { len: 17, src: NOWHERE, dst: NOWHERE, ..op });
    with("src-nowhere", libc::EFAULT, |op| CryptOp { src: NOWHERE, ..op });
    with("dst-nowhere", libc::EFAULT, |op| CryptOp { dst: NOWHERE, ..op });
    with("src-kernel", libc::EFAULT, |op| CryptOp { src: 0xffff_8000_0000_0000, ..op });
    with("dst-kernel", libc::EFAULT, |op| CryptOp { dst: 0xffff_8000_0000_0000, ..op });
    with("src-wraps", libc::EFAULT, |op| CryptOp { src: u64::MAX - 15, ..op });
    with("dst-wraps", libc::EFAULT, |op| CryptOp { dst: u64::MAX - 15, ..op });
    for flags in [0, COP_FLAG_NO_ZC] {
        check(list, format!("errors/crypt/src-ends-flags-{flags}"), move |device| {
            let (ses, pages, mut result) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, Pages::new(1), [0; 64]);
            let op = CryptOp { ses, flags, len: 32, dst: out(&mut result), ..CryptOp::default() };
            device.crypt(CryptOp { src: pages.end() - 32, ..op })?;
            refused(libc::EFAULT, device.crypt(CryptOp { src: pages.end() - 31, ..op }))
        });
        check(list, format!("errors/crypt/dst-read-only-flags-{flags}"), move |device| {
            let (ses, pages) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, Pages::new(1).read_only());
            let (src, len) = (pages.start(), 32);
            refused(libc::EFAULT, device.crypt(CryptOp { ses, flags, len, src, dst: src, ..CryptOp::default() }))
        });
    }
    check(list, "errors/crypt/src-read-only-is-fine", |device| {
        let (ses, pages, mut result) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, Pages::new(1).read_only(), [0; 64]);
        device.crypt(CryptOp { ses, len: 32, src: pages.start(), dst: out(&mut result), ..CryptOp::default() })?;
        Ok(())
    });
    check(list, "errors/crypt/unknown-flags-are-ignored", |device| {
        let (ses, mut data) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, [0; 32]);
        let place = out(&mut data);
        device.crypt(CryptOp { ses, flags: 0xff80, len: 32, src: place, dst: place, ..CryptOp::default() }).map(drop).map_err(Into::into)
    });
    check(list, "errors/crypt/wrong-iv-address-of-a-cipher-without", |device| {
        let (ses, mut data) = (device.cipher(CRYPTO_AES_ECB, &[1; 16])?, [0; 32]);
        let place = out(&mut data);
        device.crypt(CryptOp { ses, len: 32, src: place, dst: place, iv: NOWHERE, ..CryptOp::default() }).map(drop).map_err(Into::into)
    });
    check(list, "errors/crypt/mac-nowhere", |device| {
        let (ses, data) = (device.hash(CRYPTO_SHA1, &[])?, [0; 32]);
        refused(libc::EFAULT, device.crypt(CryptOp { ses, len: 32, src: at(&data), mac: NOWHERE, ..CryptOp::default() }))
    });
    check(list, "errors/crypt/mac-unused-by-a-piece", |device| {
        let (ses, data) = (device.hash(CRYPTO_SHA1, &[])?, [0; 32]);
        let flags = COP_FLAG_UPDATE;
        device.crypt(CryptOp { ses, flags, len: 32, src: at(&data), mac: NOWHERE, ..CryptOp::default() }).map(drop).map_err(Into::into)
    });
    check(list, "errors/crypt/iv-read-only-to-write", |device| {
        let (ses, pages, mut data) = (device.cipher(CRYPTO_AES_CBC, &[1; 16])?, Pages::new(1).read_only(), [0; 32]);
        let place = out(&mut data);
        let op = CryptOp { ses, flags: COP_FLAG_WRITE_IV, len: 32, src: place, dst: place, iv: pages.start(), ..CryptOp::default() };
        refused(libc::EFAULT, device.crypt(op))?;
        device.crypt(CryptOp { flags: 0, ..op }).map(drop).map_err(Into::into)
    });
}

fn authenticating(list: &mut Vec<Check>) {
    let mut with = |name: &str, errno: i32, change: fn(CryptAuthOp) -> CryptAuthOp| {
        check(list, format!("errors/auth/{name}"), move |device| {
            let (ses, mut data, iv) = (device.cipher(CRYPTO_AES_GCM, &[1; 16])?, [0; 80], [0; 12]);
            let place = out(&mut data);
            refused(errno, device.auth(change(CryptAuthOp { ses, len: 32, src: place, dst: place, iv: at(&iv), ..CryptAuthOp::default() })))
        });
    };
    with("no-session", libc::EINVAL, |op| CryptAuthOp { ses: op.ses ^ 1, iv: NOWHERE, ..op });
    with("iv-nowhere", libc::EFAULT, |op| CryptAuthOp { iv: NOWHERE, op: 2, ..op });
    with("operation-2", libc::EINVAL, |op| CryptAuthOp { op: 2, ..op });
    with("associated-nowhere", libc::EFAULT, |op| CryptAuthOp { auth_len: 20, auth_src: NOWHERE, ..op });
    with("src-nowhere", libc::EINVAL, |op| CryptAuthOp { src: NOWHERE, ..op });
    with("dst-nowhere", libc::EINVAL, |op| CryptAuthOp { dst: NOWHERE, ..op });
    with("srtp-of-an-aead", libc::EINVAL, |op| CryptAuthOp { flags: COP_FLAG_AEAD_SRTP_TYPE, ..op });
    for (name, cipher, mac) in
        [("cipher-alone", CRYPTO_AES_CBC, 0), ("hash-alone", 0, CRYPTO_SHA1), ("cipher-and-hash", CRYPTO_AES_CTR, CRYPTO_SHA1)]
    {
        check(list, format!("errors/auth/{name}"), move |device| {
            let key: &[u8] = if cipher == 0 { &[] } else { &[1; 16] };
            let (ses, mut data) = (device.session(cipher, key, mac, &[])?, [0; 64]);
            let place = out(&mut data);
            refused(libc::EINVAL, device.auth(CryptAuthOp { ses, len: 32, src: place, dst: place, ..CryptAuthOp::default() }))
        });
    }
}

fn copying(list: &mut Vec<Check>) {
    let copy = |device: &Handle<'_>, dst_ses, src_ses| device.ask(CIOCCPHASH, &mut CphashOp { dst_ses, src_ses });
    check(list, "errors/copy/itself", move |device| {
        let ses = device.hash(CRYPTO_SHA1, &[])?;
        refused(libc::EDEADLK, copy(device, ses, ses))
    });
    check(list, "errors/copy/itself-unknown", move |device| refused(libc::EDEADLK, copy(device, 5, 5)));
    check(list, "errors/copy/unknown", move |device| {
        let ses = device.hash(CRYPTO_SHA1, &[])?;
        refused(libc::ENOENT, copy(device, ses, ses ^ 1))?;
        refused(libc::ENOENT, copy(device, ses ^ 1, ses))
    });
    check(list, "errors/copy/cipher", move |device| {
        let (hash, cipher) = (device.hash(CRYPTO_SHA1, &[])?, device.cipher(CRYPTO_AES_CBC, &[1; 16])?);
        refused(libc::EINVAL, copy(device, hash, cipher))?;
        refused(libc::EINVAL, copy(device, cipher, hash))
    });
    let other = Check::new("errors/copy/another-hash", move |port| {
        let device = Handle::open(port)?;
        let (one, two) = (device.hash(CRYPTO_SHA1, &[])?, device.hash(CRYPTO_SHA2_512, &[])?);
        refused(libc::EINVAL, copy(&device, one, two))
    });
    list.push(other.deviating("the module copies the one's state over the other's"));
}

fn describing(list: &mut Vec<Check>) {
    check(list, "info/names", |device| {
        let ses = device.session(CRYPTO_AES_CBC, &[1; 16], CRYPTO_SHA1_HMAC, &[2; 20])?;
        let mut info = SessionInfoOp { ses, ..SessionInfoOp::default() };
        device.ask(CIOCGSESSINFO, &mut info)?;
        same(true, info.cipher_info.cra_name.starts_with(b"cbc(aes)\0"))?;
        same(true, info.hash_info.cra_name.starts_with(b"hmac(sha1)\0"))?;
        same(true, info.cipher_info.cra_driver_name[0] != 0)
    });
    check(list, "info/no-session", |device| refused(libc::EINVAL, device.ask(CIOCGSESSINFO, &mut SessionInfoOp::default())));
    let read_only = Check::new("info/read-only", |port| {
        let device = Handle::open(port)?;
        let ses = device.cipher(CRYPTO_AES_CBC, &[1; 16])?;
        let mut pages = Pages::new(1);
        pages.last(4096)[..4].copy_from_slice(&ses.to_ne_bytes());
        let pages = pages.read_only();
        refused(libc::EFAULT, device.ask_at(CIOCGSESSINFO, pages.start()))
    });
    list.push(read_only.deviating("the module returns how many bytes it could not copy, as if that were success"));
    check(list, "info/features-are-written", |device| {
        let mut features = u32::MAX;
        device.ask(CIOCASYMFEAT, &mut features)?;
        same(0, features & !0x1f)
    });
}
