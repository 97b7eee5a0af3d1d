//! The operations that engines do, each with what belongs around it. Every one answers `None` where it would rather have the twin
//! decide: an unusual setting, an argument that is wrong (the twin raises the error), an engine that failed.

use super::context::Question;
use super::evp::{Digest, Hash, remove_oaep, remove_pkcs1};
use super::gather::compute;
use super::key::Key;
use super::rejection::MadeUp;
use super::twin::{CipherFns, SignatureFns};
use super::{der, emsa, tls};
use crate::random::{random, random_secret};
use bywash_client::Session;
use bywash_core::SecretBytes;
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

/// `RSA_*_PADDING` of rsa.h.
const PKCS1: c_int = 1;
const NONE: c_int = 3;
const OAEP: c_int = 4;
const PSS: c_int = 6;
const WITH_TLS: c_int = 7;

/// How an RSA signature is to be made.
struct RsaState {
    padding: c_int,
    salt: c_int,
    digest: Option<Arc<Digest>>,
    mask: Option<Arc<Digest>>,
}

fn rsa_state(fns: &SignatureFns, twin: *mut c_void) -> Option<RsaState> {
    let mut question = Question::new();
    question.number(0, c"pad-mode");
    question.number(1, c"saltlen");
    question.name(0, c"digest");
    question.name(1, c"mgf1-digest");
    question.ask(twin, fns.get_ctx_params?)?;
    let (digest, mask) = (question.name_of(0), question.name_of(1));
    let fetched = Digest::named(digest);
    if fetched.is_none() && !digest.is_empty() {
        return None;
    }
    Some(RsaState { padding: question.number_of(0), salt: question.number_of(1), digest: fetched, mask: Digest::named(mask) })
}

/// The digest that a context is to sign with, if engines can sign what it gives.
pub(super) fn signature_digest(is_rsa: bool, fns: &SignatureFns, twin: *mut c_void) -> Option<Arc<Digest>> {
    if is_rsa {
        let state = rsa_state(fns, twin)?;
        return state.digest.filter(|_| matches!(state.padding, PKCS1 | PSS));
    }
    let mut question = Question::new();
    question.name(0, c"digest");
    question.ask(twin, fns.get_ctx_params?)?;
    Digest::named(question.name_of(0)).filter(|digest| digest.size() >= 20)
}

/// How long a salt is to be that libcrypto has this number for, in bytes: -1 means the digest's length, -2 and -3 the longest, -4 the shorter of these (FIPS 186-4,
/// 5.5, and what OpenSSL since 3.1 does where nobody asks). None if it does not fit.
fn salt_len(asked: c_int, digest: usize, longest: usize) -> Option<usize> {
    let len = match asked {
        -1 => digest,
        -2 | -3 => longest,
        -4 => digest.min(longest),
        given => usize::try_from(given).ok()?,
    };
    (len <= longest).then_some(len)
}

/// EMSA-PSS with a fresh salt of the length asked for.
fn pss(state: &RsaState, value: &[u8], modulus: usize) -> Option<Vec<u8>> {
    let (digest, mask) = (state.digest.as_ref()?, state.mask.as_ref()?);
    let mut salt = vec![0; salt_len(state.salt, digest.size(), modulus.checked_sub(digest.size() + 2)?)?];
    if !random(&mut salt) {
        return None;
    }
    let (mut hash, mut mask_hash) = (Hash::new(digest)?, Hash::new(mask)?);
    emsa::pss(value, &salt, modulus, &mut |pieces| hash.of(digest, pieces), &mut |pieces| mask_hash.of(mask, pieces))
}

/// Signs with RSA; the signature is as long as the modulus.
pub(super) fn rsa_sign(key: &Key, fns: &SignatureFns, twin: *mut c_void, value: &[u8], room: usize) -> Option<Vec<u8>> {
    let session = key.private_session()?;
    let modulus = session.params().algorithm().output_len(0);
    let state = rsa_state(fns, twin)?;
    if room < modulus || state.digest.as_ref().is_some_and(|digest| digest.size() != value.len()) {
        return None;
    }
    let encoded = match (state.padding, &state.digest) {
        (PKCS1, Some(digest)) => emsa::pkcs1(&[digest.info(), value], modulus)?,
        (PKCS1, None) => emsa::pkcs1(&[value], modulus)?,
        (PSS, Some(_)) => pss(&state, value, modulus)?,
        (NONE, None) if value.len() == modulus => value.to_vec(),
        _ => return None,
    };
    let mut signature = vec![0; modulus];
    compute(session, &encoded, &mut signature, &mut [])?;
    Some(signature)
}

/// The length of digest that an ECDSA context insists on; 0 for none.
fn ecdsa_size(fns: &SignatureFns, twin: *mut c_void) -> Option<usize> {
    let mut question = Question::new();
    question.size(c"digest-size");
    question.ask(twin, fns.get_ctx_params?)?;
    Some(question.size_of())
}

/// Whether an engine can take this value, and the context does.
fn is_ecdsa_value(fns: &SignatureFns, twin: *mut c_void, value: &[u8]) -> bool {
    (20..=64).contains(&value.len()) && ecdsa_size(fns, twin).is_some_and(|size| size == 0 || size == value.len())
}

/// Signs with ECDSA; the signature in DER.
pub(super) fn ecdsa_sign(key: &Key, fns: &SignatureFns, twin: *mut c_void, value: &[u8], room: usize) -> Option<Vec<u8>> {
    let session = key.private_session()?;
    if room < der::length_max(key.group()?.size()) || !is_ecdsa_value(fns, twin, value) {
        return None;
    }
    let mut signature = vec![0; session.params().algorithm().output_len(0)];
    compute(session, value, &mut signature, &mut [])?;
    Some(der::encode(&signature))
}

/// Verifies with ECDSA. Only a yes counts; the twin says the no's, with the error that belongs to each.
pub(super) fn ecdsa_verify(key: &Key, fns: &SignatureFns, twin: *mut c_void, value: &[u8], signature: &[u8]) -> Option<()> {
    let session = key.verification_session()?;
    let mut signature = der::decode(signature, key.group()?.size()).filter(|_| is_ecdsa_value(fns, twin, value))?;
    compute(session, value, &mut [], &mut signature).map(|_| ())
}

/// Longer messages are the twin's to sign, where it has the key: hashing them, which is most of the work then, gains nothing by company, and their
/// copies cost.
const ED25519_MESSAGE_MAX: usize = 4096;

/// Signs a message with Ed25519.
pub(super) fn ed25519_sign(key: &Key, message: &[u8], room: usize) -> Option<Vec<u8>> {
    let session = key.private_session().filter(|_| message.len() <= ED25519_MESSAGE_MAX || key.vault().is_some())?;
    let mut signature = vec![0; session.params().algorithm().output_len(0)];
    if room < signature.len() {
        return None;
    }
    compute(session, message, &mut signature, &mut [])?;
    Some(signature)
}

/// The outcome of a decryption, which must not be branched on: `done` is 1 or 0, and `length` holds if it is 1.
pub(super) struct Decrypted {
    pub(super) done: c_int,
    pub(super) length: usize,
}

impl Decrypted {
    /// From a length or -1; `before` is what the length was, kept on failure.
    fn from(length: c_int, before: usize) -> Self {
        let failed = (length as u32 >> 31).ct_eq(&1);
        let length = u64::conditional_select(&(length as u64), &(before as u64), failed) as usize;
        Self { done: c_int::conditional_select(&1, &0, failed), length }
    }
}

/// How an RSA ciphertext is to be decrypted.
fn cipher_state(fns: &CipherFns, twin: *mut c_void, rejects: bool) -> Option<Box<Question>> {
    let mut question = Question::new();
    question.number(0, c"pad-mode");
    question.name(0, c"digest");
    question.name(1, c"mgf1-digest");
    question.unsigned(0, c"tls-client-version", 0);
    question.unsigned(1, c"tls-negotiated-version", 0);
    question.unsigned(2, c"implicit-rejection", rejects.into());
    question.pointer(c"oaep-label");
    question.ask(twin, fns.get_ctx_params?)?;
    Some(question)
}

/// The decrypted block, one modulus long, its padding still on.
fn decrypted_block(session: &Session, ciphertext: &[u8]) -> Option<SecretBytes> {
    let mut block = SecretBytes::zeroed(ciphertext.len());
    (compute(session, ciphertext, &mut block, &mut [])? == block.len()).then_some(block)
}

/// Decrypts with RSA into `out`. From the moment the block is there, nothing branches on it; `None` comes only before.
///
/// `rejects` says that this libcrypto answers a bad PKCS#1 padding with made-up text unless it is told not to (implicit rejection, OpenSSL 3.2).
pub(super) fn rsa_decrypt(
    key: &Key,
    fns: &CipherFns,
    twin: *mut c_void,
    rejects: bool,
    ciphertext: &[u8],
    out: &mut [u8],
    before: usize,
) -> Option<Decrypted> {
    let session = key.private_session()?;
    let modulus = session.params().algorithm().output_len(0);
    let state = cipher_state(fns, twin, rejects)?;
    let padding = state.number_of(0);
    let needed = if padding == WITH_TLS { tls::PREMASTER } else { modulus };
    // Nothing is no number to some versions of libcrypto.
    if out.len() < needed || ciphertext.is_empty() {
        return None;
    }
    // It may lack leading zeros.
    let ciphertext = [&vec![0; modulus.checked_sub(ciphertext.len())?], ciphertext].concat();
    match padding {
        PKCS1 if state.unsigned_of(2) > 0 => {
            let made_up = MadeUp::new(key.private_exponent()?, &ciphertext)?;
            let length = made_up.unless_padded(&decrypted_block(session, &ciphertext)?, &mut out[..modulus]);
            Some(Decrypted { done: 1, length })
        }
        PKCS1 => Some(Decrypted::from(remove_pkcs1(&decrypted_block(session, &ciphertext)?, &mut out[..modulus]), before)),
        NONE => {
            out[..modulus].copy_from_slice(&decrypted_block(session, &ciphertext)?);
            Some(Decrypted { done: 1, length: modulus })
        }
        OAEP => {
            let digest = Digest::named(Some(state.name_of(0)).filter(|name| !name.is_empty()).unwrap_or("SHA1"))?;
            let mask = Some(state.name_of(1)).filter(|name| !name.is_empty()).map_or(Some(digest.clone()), Digest::named)?;
            let block = decrypted_block(session, &ciphertext)?;
            Some(Decrypted::from(remove_oaep(&block, out, state.octets_of(), &digest, &mask), before))
        }
        WITH_TLS if state.unsigned_of(0) > 0 => {
            let mut fallback = Zeroizing::new([0; tls::PREMASTER]);
            if !random_secret(&mut *fallback) {
                return None;
            }
            let block = decrypted_block(session, &ciphertext)?;
            let secret = Zeroizing::new(tls::premaster(&block, &fallback, state.unsigned_of(0), state.unsigned_of(1))?);
            out[..tls::PREMASTER].copy_from_slice(&*secret);
            Some(Decrypted { done: 1, length: tls::PREMASTER })
        }
        _ => None,
    }
}

/// The shared secret of our private key and a peer's public value.
pub(super) fn agree(key: &Key, peer: &Key) -> Option<SecretBytes> {
    let size = key.group().filter(|&group| peer.group() == Some(group))?.size();
    let session = key.agreement_session()?;
    let mut secret = SecretBytes::zeroed(size);
    (compute(session, peer.public()?, &mut secret, &mut [])? == size).then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_are_as_long_as_libcrypto_makes_them() {
        let asked = [-1, -2, -3, -4, 20, 191, -5];
        assert_eq!(asked.map(|asked| salt_len(asked, 64, 190)), [Some(64), Some(190), Some(190), Some(64), Some(20), None, None]);
        // RSA of 1024 bits with SHA-512: RFC 8017's longest is shorter than the digest.
        assert_eq!([-1, -3, -4].map(|asked| salt_len(asked, 64, 62)), [None, Some(62), Some(62)]);
    }

    #[test]
    fn a_failed_decryption_keeps_the_length_it_found() {
        let failed = Decrypted::from(-1, 77);
        assert_eq!((failed.done, failed.length), (0, 77));
        let done = Decrypted::from(0, 77);
        assert_eq!((done.done, done.length), (1, 0));
        let done = Decrypted::from(245, 77);
        assert_eq!((done.done, done.length), (1, 245));
    }
}
