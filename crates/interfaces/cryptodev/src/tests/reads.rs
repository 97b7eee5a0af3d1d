//! How often, and how far, a program's memory is read: it may change meanwhile, and a length is a claim.

use super::ciphers::open;
use crate::testing::{Ranges, device};
use crate::{Device, Errno, Memory};
use bywash_cryptodev_abi::{freebsd, linux::*};
use std::sync::Mutex;

/// A part of a program's memory in which each byte changes as soon as it was read, as another process may do it with memory that is shared.
struct Changing {
    inner: Ranges,
    start: u64,
    reads: Mutex<Vec<u32>>,
}

impl Changing {
    fn new(inner: Ranges, start: u64, length: usize) -> Self {
        Self { inner, start, reads: Mutex::new(vec![0; length]) }
    }

    /// The most often that any of it was read.
    fn most(&self) -> u32 {
        self.reads.lock().unwrap().iter().copied().max().unwrap_or(0)
    }
}

impl Memory for Changing {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        self.inner.read(address, into)?;
        let mut reads = self.reads.lock().unwrap();
        for (at, byte) in (address..).zip(into) {
            let Some(count) = at.checked_sub(self.start).and_then(|at| reads.get_mut(at as usize)) else { continue };
            *count += 1;
            self.inner.write(at, &[!*byte])?;
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        self.inner.write(address, from)
    }
}

const KEY: [u8; 16] = [3; 16];

/// A session of a cipher and HMAC-SHA1, which has no key of its own to speak of.
fn both(device: &Device, memory: &Ranges, cipher: u32) -> u32 {
    let key = memory.put(&KEY);
    let argument = memory.put_struct(&SessionOp { cipher, keylen: 16, key, mac: CRYPTO_SHA1_HMAC, mackeylen: 16, mackey: key, ses: 0 });
    device.request(CIOCGSESSION, argument, memory).unwrap();
    memory.get_struct::<SessionOp>(argument).ses
}

/// One request, with its data in memory as it was said to be; what is in that memory afterwards, as far as it is told.
fn authenticated(device: &Device, op: u16, flags: u16, data: &[u8], tag: &[u8], told: usize) -> Result<(Vec<u8>, Vec<u8>), Errno> {
    let memory = Ranges::default();
    let ses = both(device, &memory, if flags == COP_FLAG_AEAD_SRTP_TYPE { CRYPTO_AES_CTR } else { CRYPTO_AES_CBC });
    let (at, tag_at, iv) = (memory.put(data), memory.put(tag), memory.put(&[9; 16]));
    let header = if flags == COP_FLAG_AEAD_SRTP_TYPE { 12 } else { 0 };
    let auth_len = if header > 0 { told as u32 } else { 0 };
    let (len, src) = ((told - header) as u32, at + header as u64);
    let asked = CryptAuthOp { ses, op, flags, len, auth_len, auth_src: at, src, dst: src, tag: tag_at, tag_len: 20, iv, iv_len: 16 };
    let argument = memory.put_struct(&asked);
    let memory = Changing::new(memory, at, data.len());
    device.request(CIOCAUTHCRYPT, argument, &memory)?;
    assert_eq!(memory.most(), 1, "read more than once");
    Ok((memory.inner.get(at, data.len()), memory.inner.get(tag_at, 20)))
}

#[test]
fn a_packet_of_srtp_is_read_once() {
    let (device, clear) = (device(), [5; 112]);
    let (sealed, tag) = authenticated(&device, COP_ENCRYPT, COP_FLAG_AEAD_SRTP_TYPE, &clear, &[0; 20], 112).unwrap();
    assert_eq!(sealed[..12], [!5; 12], "the header was read, and has changed since");
    let packet = [&clear[..12], &sealed[12..]].concat();
    let (opened, _) = authenticated(&device, COP_DECRYPT, COP_FLAG_AEAD_SRTP_TYPE, &packet, &tag, 112).unwrap();
    assert_eq!(opened[12..], clear[12..]);
    let broken = [&packet[..111], &[!packet[111]]].concat();
    assert_eq!(authenticated(&device, COP_DECRYPT, COP_FLAG_AEAD_SRTP_TYPE, &broken, &tag, 112), Err(Errno::EBADMSG));
}

#[test]
fn a_record_of_tls_is_read_once() {
    let device = device();
    let room = [&[5; 100][..], &[0; 28]].concat();
    let (sealed, _) = authenticated(&device, COP_ENCRYPT, COP_FLAG_AEAD_TLS_TYPE, &room, &[0; 20], 100).unwrap();
    let (opened, _) = authenticated(&device, COP_DECRYPT, COP_FLAG_AEAD_TLS_TYPE, &sealed, &[0; 20], 128).unwrap();
    assert_eq!(opened[..100], [5; 100]);
}

#[test]
fn data_of_freebsd_are_read_once() {
    let (device, memory) = (device(), Ranges::default());
    let key = memory.put(&KEY);
    let (cipher, mac, keylen, mackeylen) = (freebsd::CRYPTO_AES_CBC, freebsd::CRYPTO_SHA1_HMAC, 16, 16);
    let session = freebsd::SessionOp { cipher, mac, keylen, key, mackeylen, mackey: key, ..Default::default() };
    let argument = memory.put_struct(&session);
    device.request(freebsd::CIOCGSESSION, argument, &memory).unwrap();
    let ses = memory.get_struct::<freebsd::SessionOp>(argument).ses;
    let (data, mac, iv) = (memory.put(&[5; 64]), memory.put(&[0; 20]), memory.put(&[9; 16]));
    let asked = freebsd::CryptOp { ses, len: 64, src: data, dst: data, mac, iv, ..Default::default() };
    let sealing = memory.put_struct(&freebsd::CryptOp { op: freebsd::COP_ENCRYPT, ..asked });
    let opening = memory.put_struct(&freebsd::CryptOp { op: freebsd::COP_DECRYPT, ..asked });
    let memory = Changing::new(memory, data, 64);
    device.request(freebsd::CIOCCRYPT, sealing, &memory).unwrap();
    device.request(freebsd::CIOCCRYPT, opening, &memory).unwrap();
    assert_eq!(memory.most(), 2, "once by each");
    assert_eq!(memory.inner.get(data, 64), [5; 64]);
}

/// Memory that has the first and the last byte of what is asked for, and little in between.
struct Hollow<'a> {
    inner: &'a Ranges,
    start: u64,
    length: u64,
    longest: Mutex<usize>,
}

impl Memory for Hollow<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        let Some(at) = address.checked_sub(self.start).filter(|at| *at < self.length) else { return self.inner.read(address, into) };
        let mut longest = self.longest.lock().unwrap();
        *longest = into.len().max(*longest);
        let end = at + into.len() as u64;
        if end <= 4096 || at >= self.length - 4096 && end <= self.length { Ok(()) } else { Err(Errno::EFAULT) }
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        self.inner.write(address, from)
    }
}

/// Two pages make nobody touch mebibytes.
#[test]
fn what_is_claimed_is_read_piece_by_piece() {
    const START: u64 = 0x7000_0000_0000;
    const LENGTH: u32 = 16 << 20;
    let (device, inner) = (device(), Ranges::default());
    let xts = open(&device, &inner, CRYPTO_AES_XTS, &[[1; 16], [2; 16]].concat()).unwrap();
    let gcm = open(&device, &inner, CRYPTO_AES_GCM, &KEY).unwrap();
    let iv = inner.put(&[9; 16]);
    let unit = inner.put_struct(&CryptOp { ses: xts, len: LENGTH, src: START, dst: START, iv, ..Default::default() });
    let message = inner.put_struct(&CryptAuthOp { ses: gcm, len: LENGTH, src: START, dst: START, iv, ..Default::default() });
    for (request, argument, errno) in [(CIOCCRYPT, unit, Errno::EFAULT), (CIOCAUTHCRYPT, message, Errno::EINVAL)] {
        let memory = Hollow { inner: &inner, start: START, length: LENGTH.into(), longest: Mutex::default() };
        assert_eq!(device.request(request, argument, &memory), Err(errno));
        let longest = *memory.longest.lock().unwrap();
        assert!((1..=1 << 20).contains(&longest), "{longest} bytes at once");
    }
}

#[test]
fn a_key_ends_with_its_session_though_an_answer_waits() {
    let (device, memory) = (device(), Ranges::default());
    let ses = open(&device, &memory, CRYPTO_AES_CBC, &KEY).unwrap();
    let data = memory.put(&[7; 32]);
    for len in [32, 31] {
        let queued = memory.put_struct(&CryptOp { ses, len, src: data, dst: data, ..Default::default() });
        device.request(CIOCASYNCCRYPT, queued, &memory).unwrap();
    }
    let session = device.weak(ses);
    assert!(session.upgrade().is_some());
    device.request(CIOCFSESSION, memory.put(&ses.to_ne_bytes()), &memory).unwrap();
    assert!(session.upgrade().is_none(), "the ring keeps the session");
    let answer = memory.put(&[0; 48]);
    device.request(CIOCASYNCFETCH, answer, &memory).unwrap();
    assert_eq!(device.request(CIOCASYNCFETCH, answer, &memory), Err(Errno::EINVAL));
}
