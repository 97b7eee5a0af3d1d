//! DSA with numbers that come without a session.
//!
//! The private key and the signature's secret number are used in constant time (AWS-LC's `DSA_do_sign`; `BN_mod_exp_mont_consttime` for the public key, which signing wants and nobody brings
//! along). The secret number is random, and a new one each time: two signatures under one would give the key away, and so would one whose secret number is known.
//!
//! A generator whose order does not divide q is refused before anything is signed: such numbers are of no group, and what comes out of them could show the private key. Verifying alone does not
//! find them: of a small private key they make, now and then, what verifies. Each signature is verified before it is given away, for a fault in its computation could show the private key
//! too (Bao and others 1997).

use crate::ffi::Refused;
use crate::ffi::dsa::DsaKey;
use crate::ffi::number::Number;
use crate::ffi::residue::Modulus;
use bywash_core::number::trimmed;
use bywash_core::{DsaGroup, DsaSign, DsaVerify, Error, Result};

fn numbers(group: &DsaGroup<'_>) -> core::result::Result<[Number; 3], Refused> {
    Ok([Number::from_bytes(trimmed(group.p))?, Number::from_bytes(trimmed(group.q))?, Number::from_bytes(trimmed(group.g))?])
}

/// A private key in no more bytes than q has, so that its width is that of q; `None` for one that is above every number of so many.
fn fitting(private: &[u8], length: usize) -> Option<&[u8]> {
    let (zeros, number) = private.split_at(private.len().saturating_sub(length));
    // How many bytes it was given in is no secret; whether they are zero shows in the refusal alone.
    (zeros.iter().fold(0, |any, byte| any | byte) == 0).then_some(number)
}

/// Signs a digest; each half of the signature is as long as q.
pub(crate) fn sign(asked: &DsaSign<'_>, r: &mut [u8], s: &mut [u8]) -> Result<()> {
    let length = asked.check()?;
    if (r.len(), s.len()) != (length, length) {
        return Err(Error::Number { reason: format!("each half of the signature needs {length} bytes, as q has") });
    }
    let group = &asked.group;
    let mut compute = || {
        let private = Number::from_bytes(fitting(asked.private, length).ok_or(Refused)?)?;
        let generator = Number::from_bytes(trimmed(group.g))?;
        let modulus = Modulus::new(trimmed(group.p))?;
        if !modulus.power(&generator, &Number::from_bytes(trimmed(group.q))?)?.is_one() {
            return Err(Refused);
        }
        let public = modulus.power(&generator, &private)?;
        let key = DsaKey::new(numbers(group)?, public, Some(private))?;
        key.sign(asked.digest, r, s)?;
        key.verify(asked.digest, Number::from_bytes(r)?, Number::from_bytes(s)?)
    };
    if compute() == Ok(true) {
        return Ok(());
    }
    r.fill(0);
    s.fill(0);
    Err(Error::Number { reason: "p, q, g and the private key are no key of DSA".into() })
}

/// Whether a signature is of this digest and key.
pub(crate) fn verify(asked: &DsaVerify<'_>) -> Result<bool> {
    asked.check()?;
    let compute = || {
        let key = DsaKey::new(numbers(&asked.group)?, Number::from_bytes(trimmed(asked.public))?, None)?;
        key.verify(asked.digest, Number::from_bytes(trimmed(asked.r))?, Number::from_bytes(trimmed(asked.s))?)
    };
    compute().map_err(|_| Error::Number { reason: "p, q, g and the public key are no key of DSA".into() })
}
