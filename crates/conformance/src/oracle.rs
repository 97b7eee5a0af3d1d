//! The second implementation: RustCrypto's primitives, with modes written out from their standards, and `num-bigint` for RSA.

use crate::block_ciphers::BlockCipher;
use crate::vectors::{self, File, Record};
use aegis::{aegis128l::Aegis128L, aegis128x4::Aegis128X4, aegis256::Aegis256};
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16};
use bywash_core::{Algorithm, Direction, Kind, RsaPrivateKey, RsaPublicKey};
use chacha20poly1305::{ChaCha20Poly1305, aead::AeadInOut};
use ghash::{GHash, universal_hash::UniversalHash};
use hmac::{Hmac, Mac};
use md5::Md5;
use num_bigint::BigUint;
use polyval::Polyval;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use xts_mode::Xts128;

fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

fn block(bytes: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    block[..bytes.len()].copy_from_slice(bytes);
    block
}

/// ECB, CBC, CFB128, OFB, CTR (SP 800-38A) or XTS (IEEE 1619).
pub(crate) fn cipher(algorithm: Algorithm, key: &[u8], direction: Direction, iv: &[u8], text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    match algorithm.kind() {
        _ if algorithm.is_xts() => xts(key, direction, block(iv), &mut text),
        _ if algorithm.name().ends_with("-CFB") => cfb(&BlockCipher::of(algorithm, key), direction, block(iv), &mut text),
        _ if algorithm.name().ends_with("-OFB") => ofb(&BlockCipher::of(algorithm, key), block(iv), &mut text),
        Kind::Cipher { iv: 0, .. } => BlockCipher::of(algorithm, key).run(direction, &mut text),
        Kind::Cipher { block: 1, .. } => counter_mode(&BlockCipher::of(algorithm, key), number(iv), u128::wrapping_add, &mut text),
        _ => cbc(&BlockCipher::of(algorithm, key), direction, iv, &mut text),
    }
    text
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

fn cbc(cipher: &BlockCipher, direction: Direction, iv: &[u8], text: &mut [u8]) {
    let mut chain = iv.to_vec();
    if direction == Direction::Decrypt {
        let previous = [&chain, &text[..text.len().saturating_sub(iv.len())]].concat();
        cipher.run(Direction::Decrypt, text);
        return xor(text, &previous);
    }
    for piece in text.chunks_exact_mut(iv.len()) {
        xor(piece, &chain);
        cipher.run(Direction::Encrypt, piece);
        chain.copy_from_slice(piece);
    }
}

fn cfb(cipher: &BlockCipher, direction: Direction, mut chain: [u8; 16], text: &mut [u8]) {
    for piece in text.chunks_mut(16) {
        let before = block(piece);
        xor(piece, &cipher.encrypt_block(chain));
        chain = if direction == Direction::Encrypt { block(piece) } else { before };
    }
}

fn ofb(cipher: &BlockCipher, mut chain: [u8; 16], text: &mut [u8]) {
    for piece in text.chunks_mut(16) {
        chain = cipher.encrypt_block(chain);
        xor(piece, &chain);
    }
}

fn counter_mode(cipher: &BlockCipher, first: u128, add: impl Fn(u128, u128) -> u128, text: &mut [u8]) {
    let count = text.len().div_ceil(cipher.block) as u128;
    let counter = |index| add(first, index).to_be_bytes()[16 - cipher.block..].to_vec();
    let mut keystream: Vec<u8> = (0..count).flat_map(counter).collect();
    cipher.run(Direction::Encrypt, &mut keystream);
    xor(text, &keystream);
}

fn xts(key: &[u8], direction: Direction, tweak: [u8; 16], text: &mut [u8]) {
    fn sector<C: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit + aes::cipher::BlockSizeUser<BlockSize = U16>>(
        key: &[u8],
        direction: Direction,
        tweak: [u8; 16],
        text: &mut [u8],
    ) {
        let (left, right) = key.split_at(key.len() / 2);
        let fits = "half of the key has the cipher's length";
        let xts = Xts128::new(C::new_from_slice(left).expect(fits), C::new_from_slice(right).expect(fits));
        if direction == Direction::Encrypt { xts.encrypt_sector(text, tweak.into()) } else { xts.decrypt_sector(text, tweak.into()) }
    }
    if key.len() == 32 { sector::<aes::Aes128>(key, direction, tweak, text) } else { sector::<aes::Aes256>(key, direction, tweak, text) }
}

/// AEAD encryption with a full tag.
pub(crate) fn seal(algorithm: Algorithm, key: &[u8], iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    seal_for(algorithm, 16, key, iv, aad, text)
}

/// AEAD encryption for a session whose tags have so many bytes: what is before them changes with their length in CCM alone.
pub(crate) fn seal_for(algorithm: Algorithm, tag_len: usize, key: &[u8], iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let mut text = text.to_vec();
    let fits = "key and nonce have the algorithm's lengths";
    let tag = match algorithm {
        Algorithm::ChaCha20Poly1305 => {
            let cipher = ChaCha20Poly1305::new_from_slice(key).expect(fits);
            cipher.encrypt_inout_detached(iv.try_into().expect(fits), aad, text.as_mut_slice().into()).expect("short enough").into()
        }
        Algorithm::Aegis128L => {
            Aegis128L::<16>::new(key.try_into().expect(fits), iv.try_into().expect(fits)).encrypt_in_place(&mut text, aad)
        }
        Algorithm::Aegis128X4 => {
            Aegis128X4::<16>::new(key.try_into().expect(fits), iv.try_into().expect(fits)).encrypt_in_place(&mut text, aad)
        }
        Algorithm::Aegis256 => {
            Aegis256::<16>::new(key.try_into().expect(fits), iv.try_into().expect(fits)).encrypt_in_place(&mut text, aad)
        }
        _ if algorithm.is_ccm() => ccm(&BlockCipher::aes(key), tag_len, iv, aad, &mut text),
        _ if algorithm.is_one_shot() => gcm_siv(key, iv, aad, &mut text),
        _ => {
            let gcm = Gcm::new(key);
            let start = gcm.start(iv);
            gcm.keystream(start, &mut text);
            gcm.tag(start, aad, &text)
        }
    };
    (text, tag)
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

/// CCM (SP 800-38C s6.1, formatted as in appendix A).
fn ccm(aes: &BlockCipher, tag_len: usize, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    let first = |flags: usize, number: usize| {
        let mut first = (number as u128).to_be_bytes();
        first[0] = flags as u8;
        first[1..=nonce.len()].copy_from_slice(nonce);
        first
    };
    let (has_aad, counter_flags) = (usize::from(!aad.is_empty()), 14 - nonce.len());
    let mut hashed = first(64 * has_aad + 8 * ((tag_len - 2) / 2) + counter_flags, text.len()).to_vec();
    if has_aad > 0 {
        let length = match aad.len() {
            len @ ..0xFF00 => (len as u16).to_be_bytes().to_vec(),
            len => [&[0xFF, 0xFE][..], &(len as u32).to_be_bytes()].concat(),
        };
        hashed.extend(padded(&[&length, aad].concat()));
    }
    hashed.extend(padded(text));
    cbc(aes, Direction::Encrypt, &[0; 16], &mut hashed);
    let mut tag = block(&hashed[hashed.len() - 16..]);
    xor(&mut tag, &aes.encrypt_block(first(counter_flags, 0)));
    counter_mode(aes, u128::from_be_bytes(first(counter_flags, 1)), u128::wrapping_add, text);
    tag
}

/// AES-GCM-SIV (RFC 8452 s4).
fn gcm_siv(key: &[u8], nonce: &[u8], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    let generating = BlockCipher::aes(key);
    let half = |number: u32| generating.encrypt_block(block(&[&number.to_le_bytes()[..], nonce].concat()))[..8].to_vec();
    let hash_key = block(&[half(0), half(1)].concat());
    let aes = BlockCipher::aes(&(2..2 + key.len() as u32 / 8).flat_map(half).collect::<Vec<u8>>());
    let mut hash = Polyval::new(&hash_key.into());
    hash.update_padded(aad);
    hash.update_padded(text);
    hash.update_padded(&[aad.len() as u64 * 8, text.len() as u64 * 8].map(u64::to_le_bytes).concat());
    let mut tag: [u8; 16] = hash.finalize().into();
    xor(&mut tag, nonce);
    tag[15] &= 0x7F;
    tag = aes.encrypt_block(tag);
    let start = u128::from_le_bytes(tag) | 1 << 127;
    let counters = 0..text.len().div_ceil(16) as u32;
    let counter = |i: u32| ((start >> 32 << 32) | u128::from((start as u32).wrapping_add(i))).to_le_bytes();
    let mut keystream: Vec<u8> = counters.flat_map(counter).collect();
    aes.run(Direction::Encrypt, &mut keystream);
    xor(text, &keystream);
    tag
}

/// GCM (SP 800-38D), for every IV length.
pub(crate) struct Gcm {
    aes: BlockCipher,
    /// The hash key H.
    pub(crate) hash_key: [u8; 16],
}

impl Gcm {
    pub(crate) fn new(key: &[u8]) -> Self {
        let aes = BlockCipher::aes(key);
        let hash_key = aes.encrypt_block([0; 16]);
        Self { aes, hash_key }
    }

    fn ghash(&self, parts: &[&[u8]], lengths: [u64; 2]) -> [u8; 16] {
        let mut hash = GHash::new(&self.hash_key.into());
        parts.iter().for_each(|part| hash.update_padded(part));
        let bits = (u128::from(lengths[0] * 8) << 64) | u128::from(lengths[1] * 8);
        hash.update(&[bits.to_be_bytes().into()]);
        hash.finalize().into()
    }

    /// J0, s7.1 step 2.
    pub(crate) fn start(&self, iv: &[u8]) -> [u8; 16] {
        if iv.len() == 12 {
            let mut start = block(iv);
            start[15] = 1;
            return start;
        }
        self.ghash(&[iv], [0, iv.len() as u64])
    }

    fn keystream(&self, start: [u8; 16], text: &mut [u8]) {
        // inc32, s6.2: the low 32 bits wrap alone.
        let add = |start: u128, index: u128| (start & !0xFFFF_FFFF) | u128::from((start as u32).wrapping_add(1).wrapping_add(index as u32));
        counter_mode(&self.aes, u128::from_be_bytes(start), add, text);
    }

    fn tag(&self, start: [u8; 16], aad: &[u8], text: &[u8]) -> [u8; 16] {
        let mut tag = self.ghash(&[aad, text], [aad.len() as u64, text.len() as u64]);
        xor(&mut tag, &self.aes.encrypt_block(start));
        tag
    }
}

/// SHA-2 (FIPS 180-4), by output length in bits; 224 too, for vectors that use it.
pub(crate) fn sha(bits: usize, text: &[u8]) -> Vec<u8> {
    match bits {
        224 => Sha224::digest(text).to_vec(),
        256 => Sha256::digest(text).to_vec(),
        384 => Sha384::digest(text).to_vec(),
        _ => Sha512::digest(text).to_vec(),
    }
}

/// A digest or an HMAC (RFC 2104).
pub(crate) fn hash(algorithm: Algorithm, key: &[u8], text: &[u8]) -> Vec<u8> {
    fn mac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes every key length");
        mac.update(text);
        mac.finalize().into_bytes().to_vec()
    }
    match algorithm {
        Algorithm::Md5 => Md5::digest(text).to_vec(),
        Algorithm::Sha1 => Sha1::digest(text).to_vec(),
        Algorithm::Ripemd160 => Ripemd160::digest(text).to_vec(),
        Algorithm::Sha224 | Algorithm::Sha256 | Algorithm::Sha384 | Algorithm::Sha512 => sha(algorithm.output_len(0) * 8, text),
        Algorithm::HmacMd5 => mac::<Hmac<Md5>>(key, text),
        Algorithm::HmacSha1 => mac::<Hmac<Sha1>>(key, text),
        Algorithm::HmacSha224 => mac::<Hmac<Sha224>>(key, text),
        Algorithm::HmacSha256 => mac::<Hmac<Sha256>>(key, text),
        Algorithm::HmacSha384 => mac::<Hmac<Sha384>>(key, text),
        Algorithm::HmacSha512 => mac::<Hmac<Sha512>>(key, text),
        Algorithm::HmacRipemd160 => mac::<Hmac<Ripemd160>>(key, text),
        _ => panic!("{algorithm}: the suite has no second implementation of it"),
    }
}

/// An Ed25519 signature (RFC 8032 s5.1.6).
pub(crate) fn ed25519(seed: &[u8; 32], message: &[u8]) -> Vec<u8> {
    use ed25519_dalek::Signer;
    ed25519_dalek::SigningKey::from_bytes(seed).sign(message).to_bytes().to_vec()
}

/// An RSA key as numbers.
pub(crate) struct RsaKey {
    pub(crate) bits: usize,
    pub(crate) n: BigUint,
    pub(crate) e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
}

impl RsaKey {
    /// From two primes and the public exponent (RFC 8017 s3.2); `None` if e has no inverse.
    pub(crate) fn new(p: BigUint, q: BigUint, e: BigUint) -> Option<Self> {
        let one = BigUint::from(1u8);
        let n = &p * &q;
        let d = e.modinv(&((&p - &one) * (&q - &one)))?;
        Some(Self { bits: n.bits() as usize, n, e, d, p, q })
    }

    /// The same primes with another public exponent; `None` if it has no inverse.
    pub(crate) fn with_exponent(&self, e: BigUint) -> Option<Self> {
        Self::new(self.p.clone(), self.q.clone(), e)
    }

    pub(crate) fn from_record(record: &Record) -> Result<Self, String> {
        let number = |name| record.bytes(name).map(|bytes| BigUint::from_bytes_be(&bytes));
        Self::new(number("p")?, number("q")?, number("e")?).ok_or_else(|| format!("{}: e has no inverse", record.place()))
    }

    /// The keys of `rsa-keys.rsp`.
    pub(crate) fn all(file: &File) -> Result<Vec<Self>, String> {
        file.records()?.iter().map(Self::from_record).collect()
    }

    /// The first key of each size among the suite's own.
    pub(crate) fn one_of_each_size() -> Result<Vec<Self>, String> {
        let mut keys = Self::all(&vectors::RSA_KEYS)?;
        keys.sort_by_key(|key| key.bits);
        keys.dedup_by_key(|key| key.bits);
        Ok(keys)
    }

    pub(crate) fn len(&self) -> usize {
        self.bits / 8
    }

    pub(crate) fn public(&self) -> RsaPublicKey {
        RsaPublicKey { modulus: self.n.to_bytes_be(), exponent: self.e.to_bytes_be() }
    }

    pub(crate) fn private(&self) -> RsaPrivateKey {
        let one = BigUint::from(1u8);
        let secret = |number: BigUint| number.to_bytes_be().into();
        RsaPrivateKey {
            public: self.public(),
            private_exponent: secret(self.d.clone()),
            prime1: secret(self.p.clone()),
            prime2: secret(self.q.clone()),
            exponent1: secret(&self.d % (&self.p - &one)),
            exponent2: secret(&self.d % (&self.q - &one)),
            coefficient: secret(self.q.modinv(&self.p).expect("two different primes")),
        }
    }

    fn padded(&self, number: &BigUint) -> Vec<u8> {
        let bytes = number.to_bytes_be();
        [vec![0; self.len() - bytes.len()], bytes].concat()
    }

    /// A number as one modulus long.
    pub(crate) fn bytes(&self, number: &BigUint) -> Vec<u8> {
        self.padded(&(number % &self.n))
    }

    pub(crate) fn apply_public(&self, input: &[u8]) -> Vec<u8> {
        self.padded(&BigUint::from_bytes_be(input).modpow(&self.e, &self.n))
    }

    pub(crate) fn apply_private(&self, input: &[u8]) -> Vec<u8> {
        self.padded(&BigUint::from_bytes_be(input).modpow(&self.d, &self.n))
    }
}

/// `EMSA-PKCS1-v1_5` (RFC 8017 s9.2) of a message under a SHA-2 of `bits`, `len` bytes long.
pub(crate) fn pkcs1_signature(bits: usize, message: &[u8], len: usize) -> Vec<u8> {
    let last = match bits {
        224 => 4,
        256 => 1,
        384 => 2,
        _ => 3,
    };
    let hash = sha(bits, message);
    let size = hash.len() as u8;
    let info = [0x30, 17 + size, 0x30, 0x0D, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last, 5, 0, 4, size];
    let mut encoded = vec![0xFF; len - info.len() - hash.len() - 1];
    encoded[..2].copy_from_slice(&[0, 1]);
    [encoded, vec![0], info.to_vec(), hash].concat()
}

fn mask(bits: usize, seed: &[u8], len: usize) -> Vec<u8> {
    // MGF1, RFC 8017 appendix B.2.1.
    let mut mask: Vec<u8> = Vec::new();
    for counter in 0..len.div_ceil(bits / 8) as u32 {
        mask.extend(sha(bits, &[seed, &counter.to_be_bytes()].concat()));
    }
    mask.truncate(len);
    mask
}

/// `EMSA-PSS-VERIFY` (RFC 8017 s9.1.2) with a modulus of whole bytes and one hash for message and mask.
pub(crate) fn pss_verifies(bits: usize, message: &[u8], encoded: &[u8], salt_len: usize) -> bool {
    let hash_len = bits / 8;
    let Some((&0xBC, front)) = encoded.split_last() else { return false };
    if front.len() < hash_len + salt_len + 1 || front[0] & 0x80 != 0 {
        return false;
    }
    let (masked, hash) = front.split_at(front.len() - hash_len);
    let mut data = mask(bits, hash, masked.len());
    xor(&mut data, masked);
    data[0] &= 0x7F;
    let (padding, salt) = data.split_at(data.len() - salt_len);
    let padded = padding.split_last().is_some_and(|(&last, zeros)| last == 1 && zeros.iter().all(|&byte| byte == 0));
    padded && sha(bits, &[&[0; 8], sha(bits, message).as_slice(), salt].concat()) == hash
}

/// `EME-PKCS1-v1_5` decoding (RFC 8017 s7.2.2 step 3).
pub(crate) fn pkcs1_message(encoded: &[u8]) -> Option<&[u8]> {
    let padded = encoded.strip_prefix(&[0, 2])?;
    let zero = padded.iter().position(|&byte| byte == 0)?;
    if zero >= 8 { Some(&padded[zero + 1..]) } else { None }
}

/// `EME-OAEP` decoding (RFC 8017 s7.1.2 step 3) with one hash for label and mask.
pub(crate) fn oaep_message(bits: usize, label: &[u8], encoded: &[u8]) -> Option<Vec<u8>> {
    let (&first, rest) = encoded.split_first()?;
    let (seed, data) = rest.split_at_checked(bits / 8)?;
    let mut seed = seed.to_vec();
    xor(&mut seed, &mask(bits, data, bits / 8));
    let mut data = data.to_vec();
    let unmask = mask(bits, &seed, data.len());
    xor(&mut data, &unmask);
    let (label_hash, padded) = data.split_at_checked(bits / 8)?;
    let one = padded.iter().position(|&byte| byte != 0)?;
    (first == 0 && label_hash == sha(bits, label) && padded[one] == 1).then(|| padded[one + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcm_agrees_with_test_case_4_of_its_submission() {
        let hex =
            |text: &str| -> Vec<u8> { (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect() };
        let text =
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let key = hex("feffe9928665731c6d6a8f9467308308");
        let (_, tag) = seal(Algorithm::Aes128Gcm, &key, &hex("cafebabefacedbaddecaf888"), &aad, &hex(text));
        assert_eq!(tag.to_vec(), hex("5bc94fbc3221a5db94fae95ae7121a47"));
    }

    #[test]
    fn rsa_undoes_itself() {
        let keys = RsaKey::all(&crate::vectors::RSA_KEYS).unwrap();
        let input = keys[0].bytes(&BigUint::from(0xC0FFEEu32));
        assert_eq!(keys[0].apply_private(&keys[0].apply_public(&input)), input);
    }
}
