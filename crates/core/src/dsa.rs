//! DSA with numbers that come without a session (FIPS 186-4): a signature made or looked at, asked for with all its numbers, as cryptodev's CIOCKEY does.
//!
//! FIPS 186-5 has withdrawn DSA for new signatures; it is here for programs that ask for it. Numbers are unsigned and big-endian; zeros in front do not matter.

use crate::error::{Error, Result};
use crate::number::{NUMBER_MAX, limit, odd, trimmed};

/// The group of a key: public numbers. Whether p and q are primes nobody looks: that takes longer than what is asked. Who signs looks
/// whether the order of g is q.
#[derive(Clone, Copy, Debug)]
pub struct DsaGroup<'a> {
    /// The prime; at most [`NUMBER_MAX`] bytes.
    pub p: &'a [u8],
    /// The prime that divides p - 1, of 160, 224 or 256 bits (FIPS 186-4 s4.2).
    pub q: &'a [u8],
    /// From 2 to p - 1.
    pub g: &'a [u8],
}

/// What is to be signed, and with what. The private key is a secret.
///
/// It is no `Debug`, so that nothing prints it.
#[derive(Clone, Copy)]
pub struct DsaSign<'a> {
    /// The key's group.
    pub group: DsaGroup<'a>,
    /// The digest; of one that is longer than q the leftmost bits count.
    pub digest: &'a [u8],
    /// The private key, from 1 to q - 1.
    pub private: &'a [u8],
}

/// A signature to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct DsaVerify<'a> {
    /// The key's group.
    pub group: DsaGroup<'a>,
    /// The digest.
    pub digest: &'a [u8],
    /// The public key, from 2 to p - 1.
    pub public: &'a [u8],
    /// One half of the signature. What is no number below q is of no signature.
    pub r: &'a [u8],
    /// The other.
    pub s: &'a [u8],
}

impl DsaGroup<'_> {
    /// Checks the numbers; how long q is in bytes, and so each half of a signature.
    ///
    /// # Errors
    /// [`Error::Number`].
    pub fn check(&self) -> Result<usize> {
        let (p, q) = (odd("p", self.p, NUMBER_MAX)?, odd("q", self.q, NUMBER_MAX)?);
        let bits = 8 * q.len() - q[0].leading_zeros() as usize;
        if !matches!(bits, 160 | 224 | 256) {
            return Err(Error::Number { reason: format!("q has {bits} bits; 160, 224 and 256 are DSA's") });
        }
        if is_below(p, q) || p == q {
            return Err(Error::Number { reason: "p is not above q".into() });
        }
        self.element("g", self.g)?;
        Ok(q.len())
    }

    /// That a number is from 2 to p - 1.
    fn element(&self, what: &str, number: &[u8]) -> Result<()> {
        limit(what, number, NUMBER_MAX)?;
        match trimmed(number) {
            [] | [1] => Err(Error::Number { reason: format!("{what} is 0 or 1") }),
            element if !is_below(element, trimmed(self.p)) => Err(Error::Number { reason: format!("{what} is not below p") }),
            _ => Ok(()),
        }
    }
}

impl DsaSign<'_> {
    /// Checks the numbers, but for whether the private key is below q; how long each half of a signature is in bytes.
    ///
    /// # Errors
    /// [`Error::Number`].
    pub fn check(&self) -> Result<usize> {
        let length = self.group.check()?;
        digest(self.digest)?;
        limit("the private key", self.private, NUMBER_MAX)?;
        Ok(length)
    }
}

impl DsaVerify<'_> {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Number`].
    pub fn check(&self) -> Result<()> {
        self.group.check()?;
        digest(self.digest)?;
        self.group.element("the public key", self.public)?;
        limit("r", self.r, NUMBER_MAX)?;
        limit("s", self.s, NUMBER_MAX)
    }
}

fn digest(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Err(Error::Number { reason: "there is no digest".into() }) } else { limit("the digest", bytes, NUMBER_MAX) }
}

/// Whether one number without zeros in front is below another. For public numbers: its time depends on both.
fn is_below(one: &[u8], other: &[u8]) -> bool {
    (one.len(), one) < (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_group_or_key_is_refused() {
        let (p, q) = ([0xFF; 128], [0xFF; 20]);
        let group = DsaGroup { p: &p, q: &q, g: &[2] };
        let said = |group: DsaGroup<'_>| group.check().map_err(|error| error.to_string());
        assert_eq!(said(group), Ok(20));
        assert_eq!(said(DsaGroup { q: &[&[0, 0][..], &q].concat(), ..group }), Ok(20), "zeros in front");
        for (wrong, why) in [
            (DsaGroup { q: &q[1..], ..group }, "q has 152 bits"),
            (DsaGroup { q: &[0x7F; 20], ..group }, "q has 159 bits"),
            (DsaGroup { p: &q, ..group }, "p is not above q"),
            (DsaGroup { g: &[0, 1], ..group }, "g is 0 or 1"),
            (DsaGroup { g: &p, ..group }, "g is not below p"),
            (DsaGroup { p: &[2], ..group }, "p is even"),
            (DsaGroup { q: &[], ..group }, "q is 0"),
        ] {
            assert!(said(wrong).unwrap_err().contains(why), "{why}");
        }
        let sign = DsaSign { group, digest: &[], private: &[1] };
        assert!(sign.check().unwrap_err().to_string().contains("no digest"));
        let verify = DsaVerify { group, digest: &[1], public: &[1], r: &[1], s: &[1] };
        assert!(verify.check().unwrap_err().to_string().contains("the public key is 0 or 1"));
    }
}
