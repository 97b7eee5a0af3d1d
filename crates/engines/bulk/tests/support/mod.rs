//! What the tests share: a second implementation from RustCrypto's primitives, and guarded pages.
#![allow(dead_code, reason = "each test uses a part")]

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16};
use bywash_bulk::Text;
use bywash_bulk::ctr::{CounterMode, Message};
use fastrand::Rng;
use ghash::{GHash, universal_hash::UniversalHash};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

type Block = Array<u8, U16>;

/// Whether to go on; says so if not.
pub(crate) fn supported() -> bool {
    if !bywash_bulk::is_supported() {
        eprintln!("skipped: this processor has no VAES with AVX-512");
    }
    bywash_bulk::is_supported()
}

pub(crate) fn random_bytes(random: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes
}

/// AES with any key.
pub(crate) enum Aes {
    Aes128(aes::Aes128),
    Aes192(aes::Aes192),
    Aes256(aes::Aes256),
}

impl Aes {
    pub(crate) fn new(key: &[u8]) -> Self {
        match key.len() {
            16 => Self::Aes128(aes::Aes128::new_from_slice(key).unwrap()),
            24 => Self::Aes192(aes::Aes192::new_from_slice(key).unwrap()),
            _ => Self::Aes256(aes::Aes256::new_from_slice(key).unwrap()),
        }
    }

    pub(crate) fn encrypt(&self, text: &mut [u8]) {
        let blocks = Block::slice_as_chunks_mut(text).0;
        match self {
            Self::Aes128(aes) => aes.encrypt_blocks(blocks),
            Self::Aes192(aes) => aes.encrypt_blocks(blocks),
            Self::Aes256(aes) => aes.encrypt_blocks(blocks),
        }
    }

    pub(crate) fn decrypt(&self, text: &mut [u8]) {
        let blocks = Block::slice_as_chunks_mut(text).0;
        match self {
            Self::Aes128(aes) => aes.decrypt_blocks(blocks),
            Self::Aes192(aes) => aes.decrypt_blocks(blocks),
            Self::Aes256(aes) => aes.decrypt_blocks(blocks),
        }
    }

    /// Counter blocks, enciphered.
    pub(crate) fn keystream(&self, counters: impl Iterator<Item = u128>) -> Vec<u8> {
        let mut stream: Vec<u8> = counters.flat_map(u128::to_be_bytes).collect();
        self.encrypt(&mut stream);
        stream
    }
}

pub(crate) fn xor(text: &[u8], stream: &[u8]) -> Vec<u8> {
    text.iter().zip(stream).map(|(a, b)| a ^ b).collect()
}

/// CTR by single blocks: the text under counters from `first` on.
pub(crate) fn ctr_oracle(aes: &Aes, first: u128, text: &[u8]) -> Vec<u8> {
    xor(text, &aes.keystream((0..text.len().div_ceil(16)).map(|i| first.wrapping_add(i as u128))))
}

/// CTR of a text of so many bytes in three pieces, split at every boundary, the middle one also by a copy of the message.
pub(crate) fn ctr_in_pieces(random: &mut Rng, what: &str, key: &impl CounterMode, aes: &Aes, len: usize) {
    let text = random_bytes(random, len);
    let cipher = ctr_oracle(aes, 1 << 40, &text);
    for split in 0..=text.len() {
        let (mut message, mut out) = (Message::new(&(1u128 << 40).to_be_bytes()), text.clone());
        let (first, second) = out.split_at_mut(split);
        message.apply(key, Text::in_place(first));
        let third = random.usize(..second.len() + 1);
        let (second, third) = second.split_at_mut(third);
        message.clone().apply(key, Text::in_place(&mut second.to_vec()));
        message.apply(key, Text::in_place(second));
        message.apply(key, Text::in_place(third));
        assert!(out == cipher, "{what}, split at {split}");
    }
}

/// CBC in the words of SP 800-38A s6.2.
pub(crate) fn cbc_oracle(aes: &Aes, iv: &[u8; 16], text: &[u8]) -> Vec<u8> {
    let (mut chain, mut out) = (iv.to_vec(), Vec::new());
    for block in text.chunks(16) {
        chain = xor(block, &chain);
        aes.encrypt(&mut chain);
        out.extend_from_slice(&chain);
    }
    out
}

/// XTS encryption in the words of IEEE 1619 s5.3.
pub(crate) fn xts_oracle(key: &[u8], tweak: &[u8; 16], text: &[u8]) -> Vec<u8> {
    let (data, second) = key.split_at(key.len() / 2);
    let (data, mut first) = (Aes::new(data), *tweak);
    Aes::new(second).encrypt(&mut first);
    let mut tweak = u128::from_le_bytes(first);
    let mut out: Vec<u8> = Vec::new();
    let one = |block: &[u8], tweak: u128| {
        let mut block = xor(block, &tweak.to_le_bytes());
        data.encrypt(&mut block);
        xor(&block, &tweak.to_le_bytes())
    };
    for block in text.chunks(16) {
        if block.len() < 16 {
            let last = out.split_off(out.len() - 16);
            out.extend(one(&[block, &last[block.len()..]].concat(), tweak));
            out.extend_from_slice(&last[..block.len()]);
        } else {
            out.extend(one(block, tweak));
        }
        tweak = (tweak << 1) ^ (0x87 * (tweak >> 127));
    }
    out
}

/// GCM, SP 800-38D.
pub(crate) struct Gcm {
    aes: Aes,
    pub(crate) hash_key: [u8; 16],
}

impl Gcm {
    pub(crate) fn new(key: &[u8]) -> Self {
        let (aes, mut hash_key) = (Aes::new(key), [0; 16]);
        aes.encrypt(&mut hash_key);
        Self { aes, hash_key }
    }

    fn hash(&self, parts: [&[u8]; 2]) -> u128 {
        let mut hash = GHash::new(&self.hash_key.into());
        parts.iter().for_each(|part| hash.update_padded(part));
        let lengths = ((parts[0].len() as u128 * 8) << 64) | (parts[1].len() as u128 * 8);
        hash.update(&[lengths.to_be_bytes().into()]);
        u128::from_be_bytes(hash.finalize().into())
    }

    pub(crate) fn before(&self, iv: &[u8]) -> u128 {
        match iv.len() {
            12 => iv.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)) << 32 | 1,
            _ => self.hash([&[], iv]),
        }
    }

    /// The keystream and the block that masks the tag.
    pub(crate) fn stream(&self, iv: &[u8], len: usize) -> (Vec<u8>, u128) {
        let before = self.before(iv);
        let counter = |i: usize| before >> 32 << 32 | u128::from((before as u32).wrapping_add(i as u32));
        let stream = self.aes.keystream((0..=len.div_ceil(16)).map(counter));
        (stream[16..].to_vec(), u128::from_be_bytes(stream[..16].try_into().unwrap()))
    }

    pub(crate) fn tag(&self, mask: u128, aad: &[u8], cipher: &[u8]) -> [u8; 16] {
        (self.hash([aad, cipher]) ^ mask).to_be_bytes()
    }

    pub(crate) fn seal(&self, iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
        let (stream, mask) = self.stream(iv, text.len());
        let cipher = xor(text, &stream);
        let tag = self.tag(mask, aad, &cipher);
        (cipher, tag)
    }
}

/// Two readable and writable pages between two that are neither.
pub(crate) struct Guarded {
    start: *mut u8,
}

const PAGE: usize = 4096;

impl Guarded {
    pub(crate) const LEN: usize = 2 * PAGE;

    pub(crate) fn new() -> Self {
        // SAFETY: new pages, which nothing refers to; the last and the first of them lose all access.
        unsafe {
            let all = mmap_anonymous(std::ptr::null_mut(), 4 * PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE).unwrap();
            mprotect(all, PAGE, MprotectFlags::empty()).unwrap();
            mprotect(all.byte_add(3 * PAGE), PAGE, MprotectFlags::empty()).unwrap();
            Self { start: all.byte_add(PAGE).cast() }
        }
    }

    pub(crate) fn pages(&mut self) -> &mut [u8] {
        // SAFETY: two pages of our own.
        unsafe { std::slice::from_raw_parts_mut(self.start, Self::LEN) }
    }

    /// `len` bytes that begin with the pages or end with them.
    pub(crate) fn edge(&mut self, at_end: bool, len: usize) -> &mut [u8] {
        let at = if at_end { Self::LEN - len } else { 0 };
        &mut self.pages()[at..at + len]
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the four pages that `new` made; nothing refers to them any more.
        unsafe { munmap(self.start.byte_sub(PAGE).cast(), 4 * PAGE).unwrap() };
    }
}

/// What AEADs whose messages may come in pieces are tested with alike: cases by a second implementation, given as a function of key, nonce,
/// associated data and text to ciphertext and tag; the test of every length; and a message in pieces. `Key`, `Message` and `supported` are those in scope.
#[allow(unused_macros, reason = "each test uses a part")]
macro_rules! aead {
    ($key:literal, $nonce:literal, $sealed:expr) => {
        struct Case {
            key: [u8; $key],
            nonce: [u8; $nonce],
            aad: Vec<u8>,
            text: Vec<u8>,
            cipher: Vec<u8>,
            tag: [u8; 16],
        }

        impl Case {
            fn new(random: &mut Rng, len: usize, aad: usize) -> Self {
                let key = random_bytes(random, $key).try_into().unwrap();
                let nonce = random_bytes(random, $nonce).try_into().unwrap();
                let (aad, text) = (random_bytes(random, aad), random_bytes(random, len));
                let (cipher, tag) = $sealed(&key, &nonce, &aad, &text);
                Self { key, nonce, aad, text, cipher, tag }
            }

            /// Puts all of it through a message that has just begun, in pieces of these lengths, each by a copy of the message before it.
            fn in_pieces(&self, mut message: Message, seal: bool, pieces: &mut dyn FnMut() -> usize) {
                let (given, wanted) = if seal { (&self.text, &self.cipher) } else { (&self.cipher, &self.text) };
                let (mut aad, mut text) = (&self.aad[..], given.clone());
                while !aad.is_empty() {
                    let (now, later) = aad.split_at(aad.len().min(pieces()));
                    message.aad(now).unwrap();
                    aad = later;
                }
                let mut rest = &mut text[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at_mut(rest.len().min(pieces()));
                    let now = Text::in_place(now);
                    if seal { message.encrypt(now) } else { message.decrypt(now) }.unwrap();
                    message = message.clone();
                    rest = later;
                }
                assert!(text == *wanted, "{} bytes", text.len());
                assert_eq!((message.tag(), message.tag()), (self.tag, self.tag), "{} bytes", text.len());
            }
        }

        #[test]
        fn every_length_in_place_and_apart_at_the_edges_of_pages() {
            if !supported() {
                return;
            }
            let (mut random, mut from, mut to) = (Rng::with_seed(1), Guarded::new(), Guarded::new());
            for len in 0..=4200 {
                let aad = random.usize(..300);
                let case = Case::new(&mut random, len, aad);
                let key = Key::new(&case.key);
                let (from, to) = (from.edge(len % 2 == 0, len), to.edge(len % 3 == 0, len));
                let mut tag = [0; 16];
                from.copy_from_slice(&case.text);
                key.seal(&case.nonce, &case.aad, Text::apart(from, to), &mut tag).unwrap();
                assert_eq!((&*to, tag), (&case.cipher[..], case.tag), "{len} bytes, {aad} of associated data");
                key.open(&case.nonce, &case.aad, Text::in_place(to), &tag).unwrap();
                assert!(to == case.text, "{len} bytes in place");
            }
        }
    };
}
#[allow(unused_imports, reason = "each test uses a part")]
pub(crate) use aead;
