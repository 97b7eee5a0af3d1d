//! AES-CCM and AES-GCM-SIV, which take whole messages only, against their standards in plain words. Published vectors come through the CPU engine's
//! conformance suite.

mod support;

use bywash_bulk::{Error, Text, ccm, gcm_siv};
use fastrand::Rng;
use polyval::{Polyval, universal_hash::UniversalHash};
use support::{Aes, Guarded, random_bytes, supported, xor};

/// A cipher with the lengths of one session.
#[derive(Clone, Copy, Debug)]
struct Cipher {
    is_siv: bool,
    key: usize,
    nonce: usize,
    tag: usize,
}

fn siv(key: usize) -> Cipher {
    Cipher { is_siv: true, key, nonce: 12, tag: 16 }
}

/// Every key, nonce and tag at least once.
fn ciphers() -> Vec<Cipher> {
    let ccm = |(nonce, (key, tag))| Cipher { is_siv: false, key, nonce, tag };
    let lengths = [(16, 4), (24, 6), (32, 8), (16, 10), (32, 12), (24, 14), (16, 16)];
    (7..=13).zip(lengths).map(ccm).chain([siv(16), siv(32)]).collect()
}

impl Cipher {
    fn seal(&self, key: &[u8], nonce: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        match self.is_siv {
            true => gcm_siv::Key::new(key)?.seal(nonce.try_into().unwrap(), aad, text, tag),
            false => ccm::Key::new(key)?.seal(nonce, aad, text, tag),
        }
    }

    fn open(&self, key: &[u8], nonce: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        match self.is_siv {
            true => gcm_siv::Key::new(key)?.open(nonce.try_into().unwrap(), aad, text, tag),
            false => ccm::Key::new(key)?.open(nonce, aad, text, tag),
        }
    }

    fn oracle(&self, case: &Case) -> (Vec<u8>, Vec<u8>) {
        if self.is_siv { siv_oracle(case) } else { ccm_oracle(case, self.tag) }
    }
}

struct Case {
    key: Vec<u8>,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    text: Vec<u8>,
    cipher: Vec<u8>,
    tag: Vec<u8>,
}

impl Case {
    fn new(random: &mut Rng, of: Cipher, len: usize, aad: usize) -> Self {
        let [key, nonce, aad, text] = [of.key, of.nonce, aad, len].map(|len| random_bytes(random, len));
        let mut case = Self { key, nonce, aad, text, cipher: Vec::new(), tag: Vec::new() };
        (case.cipher, case.tag) = of.oracle(&case);
        case
    }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

/// SP 800-38C s6.1, with the formatting of appendix A.
fn ccm_oracle(case: &Case, tag_len: usize) -> (Vec<u8>, Vec<u8>) {
    let (aes, counted) = (Aes::new(&case.key), 15 - case.nonce.len());
    let block = |flags: usize, number: usize| [&[flags as u8][..], &case.nonce, &number.to_be_bytes_of(counted)].concat();
    let has_aad = usize::from(!case.aad.is_empty());
    let mut hashed = block(64 * has_aad + 8 * (tag_len - 2) / 2 + counted - 1, case.text.len());
    if has_aad > 0 {
        let length = match case.aad.len() {
            len @ ..0xFF00 => len.to_be_bytes_of(2),
            len => [vec![0xFF, 0xFE], len.to_be_bytes_of(4)].concat(),
        };
        hashed.extend(padded(&[length, case.aad.clone()].concat()));
    }
    hashed.extend(padded(&case.text));
    let mut mac = vec![0; 16];
    for block in hashed.chunks(16) {
        mac = xor(&mac, block);
        aes.encrypt(&mut mac);
    }
    let mut stream: Vec<u8> = (0..=case.text.len().div_ceil(16)).flat_map(|i| block(counted - 1, i)).collect();
    aes.encrypt(&mut stream);
    (xor(&case.text, &stream[16..]), xor(&mac, &stream)[..tag_len].to_vec())
}

trait BigEndian {
    fn to_be_bytes_of(self, len: usize) -> Vec<u8>;
}

impl BigEndian for usize {
    fn to_be_bytes_of(self, len: usize) -> Vec<u8> {
        u64::to_be_bytes(self as u64)[8 - len..].to_vec()
    }
}

/// RFC 8452 s4.
fn siv_oracle(case: &Case) -> (Vec<u8>, Vec<u8>) {
    let generating = Aes::new(&case.key);
    let half = |number: u32| {
        let mut block = [&number.to_le_bytes()[..], &case.nonce].concat();
        generating.encrypt(&mut block);
        block[..8].to_vec()
    };
    let hash_key: [u8; 16] = [half(0), half(1)].concat().try_into().unwrap();
    let aes = Aes::new(&(2..2 + case.key.len() as u32 / 8).flat_map(half).collect::<Vec<u8>>());
    let mut hash = Polyval::new(&hash_key.into());
    hash.update_padded(&case.aad);
    hash.update_padded(&case.text);
    let lengths = [case.aad.len() as u64 * 8, case.text.len() as u64 * 8].map(u64::to_le_bytes).concat();
    hash.update_padded(&lengths);
    let mut tag = xor(hash.finalize().as_slice(), &[&case.nonce[..], &[0; 4]].concat());
    tag[15] &= 0x7F;
    aes.encrypt(&mut tag);
    let counter = |i: usize| {
        let first = u32::from_le_bytes(tag[..4].try_into().unwrap());
        let rest = [&tag[4..15], &[tag[15] | 0x80]].concat();
        [&first.wrapping_add(i as u32).to_le_bytes()[..], &rest].concat()
    };
    let mut stream: Vec<u8> = (0..case.text.len().div_ceil(16)).flat_map(counter).collect();
    aes.encrypt(&mut stream);
    (xor(&case.text, &stream), tag)
}

#[test]
fn every_length_in_place_and_apart_at_the_edges_of_pages() {
    if !supported() {
        return;
    }
    let (mut random, mut from, mut to) = (Rng::with_seed(1), Guarded::new(), Guarded::new());
    for cipher in ciphers() {
        for len in 0..=4200 {
            let aad = random.usize(..300);
            let case = Case::new(&mut random, cipher, len, aad);
            let (from, to) = (from.edge(len % 2 == 0, len), to.edge(len % 3 == 0, len));
            let mut tag = vec![0; cipher.tag];
            from.copy_from_slice(&case.text);
            cipher.seal(&case.key, &case.nonce, &case.aad, Text::apart(from, to), &mut tag).unwrap();
            assert_eq!((&*to, &tag), (&case.cipher[..], &case.tag), "{cipher:?}, {len} bytes, {aad} of associated data");
            cipher.open(&case.key, &case.nonce, &case.aad, Text::in_place(to), &tag).unwrap();
            assert!(to == case.text, "{cipher:?}, {len} bytes in place");
        }
    }
}

#[test]
fn long_messages_and_associated_data_at_the_edges_of_pages() {
    if !supported() {
        return;
    }
    let (mut random, mut pages) = (Rng::with_seed(2), Guarded::new());
    for cipher in ciphers() {
        for (len, aad) in [(65_534, 0), (65_535, 65_279), (65_536, 65_280), (65_537, 65_281), (1 << 20, 13), (0, 1 << 16), (7, 70_000)] {
            if len >= 1 << 16 && cipher.nonce == 13 {
                continue;
            }
            let case = Case::new(&mut random, cipher, len, aad);
            let (mut text, mut tag) = (case.text.clone(), vec![0; cipher.tag]);
            cipher.seal(&case.key, &case.nonce, &case.aad, Text::in_place(&mut text), &mut tag).unwrap();
            assert!(text == case.cipher && tag == case.tag, "{cipher:?}, {len} bytes, {aad} of associated data");
        }
        for len in 0..600 {
            let case = Case::new(&mut random, cipher, 20, len);
            let aad = pages.edge(len % 2 == 0, len);
            aad.copy_from_slice(&case.aad);
            let mut text = case.cipher.clone();
            cipher.open(&case.key, &case.nonce, aad, Text::in_place(&mut text), &case.tag).unwrap();
            assert!(text == case.text, "{cipher:?}, {len} bytes of associated data");
        }
    }
}

#[test]
fn a_forgery_leaves_zeros() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(3);
    for cipher in ciphers() {
        for len in [0, 1, 15, 16, 17, 100, 1000, 5000] {
            let case = Case::new(&mut random, cipher, len, 20);
            let refused = |nonce: &[u8], aad: &[u8], text: &[u8], tag: &[u8]| {
                let mut output = vec![0x5A; len];
                let opened = cipher.open(&case.key, nonce, aad, Text::apart(text, &mut output), tag);
                assert_eq!((opened, output), (Err(Error::Authentication), vec![0; len]), "{cipher:?}, {len} bytes");
            };
            let changed = |bytes: &[u8], bit: usize| {
                let mut bytes = bytes.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            };
            for bit in 0..8 * cipher.tag {
                refused(&case.nonce, &case.aad, &case.cipher, &changed(&case.tag, bit));
            }
            refused(&changed(&case.nonce, random.usize(..8 * cipher.nonce)), &case.aad, &case.cipher, &case.tag);
            refused(&case.nonce, &changed(&case.aad, random.usize(..160)), &case.cipher, &case.tag);
            refused(&case.nonce, &[&case.aad[..], &[0]].concat(), &case.cipher, &case.tag);
            if len > 0 {
                refused(&case.nonce, &case.aad, &changed(&case.cipher, random.usize(..8 * len)), &case.tag);
            }
        }
    }
}

#[test]
fn refusals() {
    if !supported() {
        return;
    }
    let key = ccm::Key::new(&[7; 16]).unwrap();
    for len in [0, 1, 6, 14, 16] {
        assert_eq!(key.seal(&vec![0; len], &[], Text::in_place(&mut []), &mut [0; 16]), Err(Error::NonceLength(len)));
    }
    for len in [0, 2, 3, 5, 15, 17, 18] {
        assert_eq!(key.open(&[0; 13], &[], Text::in_place(&mut []), &vec![0; len]), Err(Error::TagLength(len)));
    }
    // With a nonce of 13 bytes, two are left for the length.
    let mut text = vec![0; 1 << 16];
    assert_eq!(key.seal(&[0; 13], &[], Text::in_place(&mut text), &mut [0; 16]), Err(Error::TextLength(1 << 16)));
    assert_eq!(key.open(&[0; 13], &[], Text::in_place(&mut text), &[0; 16]), Err(Error::TextLength(1 << 16)));
    assert_eq!(key.seal(&[0; 13], &[], Text::in_place(&mut text[1..]), &mut [0; 16]), Ok(()));
    assert_eq!(ccm::Key::new(&[0; 17]).err(), Some(Error::KeyLength(17)));
    assert_eq!(gcm_siv::Key::new(&[0; 24]).err(), Some(Error::KeyLength(24)));
    let key = gcm_siv::Key::new(&[7; 32]).unwrap();
    assert_eq!(key.seal(&[0; 12], &[], Text::in_place(&mut []), &mut [0; 15]), Err(Error::TagLength(15)));
    assert_eq!(key.open(&[0; 12], &[], Text::in_place(&mut []), &[0; 12]), Err(Error::TagLength(12)));
}
