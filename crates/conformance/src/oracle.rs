//! The second implementation: RustCrypto's primitives, with modes written out from their standards, and `num-bigint` for RSA.

use crate::block_ciphers::BlockCipher;
use crate::vectors::{self, File, Record};
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16};
use bywash_core::{Algorithm, Direction, Kind, RsaPrivateKey, RsaPublicKey};
use chacha20poly1305::{ChaCha20Poly1305, aead::AeadInOut};
use ghash::{GHash, universal_hash::UniversalHash};
use hmac::{Hmac, Mac};
use num_bigint::BigUint;
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

/// ECB, CBC, CTR (SP 800-38A) or XTS (IEEE 1619).
pub(crate) fn cipher(algorithm: Algorithm, key: &[u8], direction: Direction, iv: &[u8], text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    match algorithm.kind() {
        _ if algorithm.is_xts() => xts(key, direction, block(iv), &mut text),
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

/// AEAD encryption with the full tag.
pub(crate) fn seal(algorithm: Algorithm, key: &[u8], iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let mut text = text.to_vec();
    if algorithm == Algorithm::ChaCha20Poly1305 {
        let cipher = ChaCha20Poly1305::new_from_slice(key).expect("32 bytes");
        let nonce = iv.try_into().expect("12 bytes");
        let tag = cipher.encrypt_inout_detached(nonce, aad, text.as_mut_slice().into()).expect("short enough");
        return (text, tag.into());
    }
    let gcm = Gcm::new(key);
    let start = gcm.start(iv);
    gcm.keystream(start, &mut text);
    let tag = gcm.tag(start, aad, &text);
    (text, tag)
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
        Algorithm::HmacSha256 => mac::<Hmac<Sha256>>(key, text),
        Algorithm::HmacSha384 => mac::<Hmac<Sha384>>(key, text),
        Algorithm::HmacSha512 => mac::<Hmac<Sha512>>(key, text),
        _ => sha(algorithm.output_len(0) * 8, text),
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
