//! Arithmetic on numbers that come without a session: one modular exponentiation, asked for with all its numbers, as cryptodev's CIOCKEY does.
//!
//! Numbers are unsigned and big-endian; zeros in front do not matter. Who computes with one key again and again opens a session of an RSA algorithm instead: its key
//! is prepared once, checked, and computed with others'.

use crate::error::{Error, Result};

/// Longest number taken, in bytes: 8192 bits.
pub const NUMBER_MAX: usize = 1024;

/// `base ^ exponent mod modulus`. The exponent is a secret; how long it is, and the modulus, are not.
///
/// It is no `Debug`, so that nothing prints it.
#[derive(Clone, Copy)]
pub struct ModExp<'a> {
    /// Need not be below the modulus. At most [`NUMBER_MAX`] bytes.
    pub base: &'a [u8],
    /// At most [`NUMBER_MAX`] bytes; 0 is a number like others, and so is one without a byte.
    pub exponent: &'a [u8],
    /// At most [`NUMBER_MAX`] bytes; odd. By an even one nothing is computed: there is no way in constant time, and no cryptosystem has one.
    pub modulus: &'a [u8],
}

impl ModExp<'_> {
    /// Checks the numbers and the room for the result; the modulus's length in bytes, zeros in front not counted.
    ///
    /// # Errors
    /// [`Error::Number`].
    pub fn check(&self, room: usize) -> Result<usize> {
        let Self { base, exponent, modulus } = self;
        limit("the base", base, NUMBER_MAX)?;
        limit("the exponent", exponent, NUMBER_MAX)?;
        let modulus = odd("the modulus", modulus, NUMBER_MAX)?;
        fits(modulus.len(), room)
    }
}

/// The same by the Chinese remainder theorem (RFC 8017 s5.1.2): `base ^ d mod (p * q)` for the d of which `dp` and `dq` are the remainders. All but the base is secret.
///
/// It is no `Debug`, so that nothing prints it.
#[derive(Clone, Copy)]
pub struct CrtExp<'a> {
    /// Need not be below `p * q`. At most [`NUMBER_MAX`] bytes.
    pub base: &'a [u8],
    /// The one prime, of at most half of [`NUMBER_MAX`] bytes.
    pub p: &'a [u8],
    /// The other, as long as `p`: in as many words of eight bytes.
    pub q: &'a [u8],
    /// The exponent modulo p - 1.
    pub dp: &'a [u8],
    /// The exponent modulo q - 1.
    pub dq: &'a [u8],
    /// The inverse of q modulo p.
    pub qinv: &'a [u8],
}

impl CrtExp<'_> {
    /// Checks the numbers' lengths and the room for the result; how long `p * q` may be in bytes.
    ///
    /// # Errors
    /// [`Error::Number`].
    pub fn check(&self, room: usize) -> Result<usize> {
        let Self { base, p, q, dp, dq, qinv } = self;
        limit("the base", base, NUMBER_MAX)?;
        let (p, q) = (odd("p", p, NUMBER_MAX / 2)?, odd("q", q, NUMBER_MAX / 2)?);
        for (what, number) in [("dp", dp), ("dq", dq), ("qinv", qinv)] {
            limit(what, number, NUMBER_MAX / 2)?;
        }
        if p.len().div_ceil(8) != q.len().div_ceil(8) {
            return Err(Error::Number { reason: "p and q are not of one length".into() });
        }
        fits(p.len() + q.len(), room)
    }
}

/// A number without the zeros in front, for numbers whose length is no secret.
pub fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

pub(crate) fn limit(what: &str, number: &[u8], most: usize) -> Result<()> {
    if number.len() <= most {
        Ok(())
    } else {
        Err(Error::Number { reason: format!("{what} has {} bytes, at most {most} are taken", number.len()) })
    }
}

pub(crate) fn odd<'n>(what: &str, number: &'n [u8], most: usize) -> Result<&'n [u8]> {
    limit(what, number, most)?;
    match trimmed(number) {
        [] => Err(Error::Number { reason: format!("{what} is 0") }),
        odd @ [.., last] if last % 2 == 1 => Ok(odd),
        _ => Err(Error::Number { reason: format!("{what} is even") }),
    }
}

fn fits(needed: usize, room: usize) -> Result<usize> {
    if room >= needed {
        Ok(needed)
    } else {
        Err(Error::Number { reason: format!("the result needs {needed} bytes, the buffer has {room}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_computed_is_refused() {
        let check = |modulus: &[u8], room| ModExp { base: &[2], exponent: &[3], modulus }.check(room).map_err(|error| error.to_string());
        assert_eq!(check(&[0, 0, 5], 1), Ok(1));
        assert!(check(&[0], 1).unwrap_err().contains("the modulus is 0"));
        assert!(check(&[4], 1).unwrap_err().contains("the modulus is even"));
        assert!(check(&[1, 5], 1).unwrap_err().contains("needs 2 bytes, the buffer has 1"));
        assert!(check(&[1; NUMBER_MAX + 1], 2000).unwrap_err().contains("at most 1024"));
        let long = ModExp { base: &[2], exponent: &[0; NUMBER_MAX + 1], modulus: &[5] };
        assert!(long.check(1).unwrap_err().to_string().contains("the exponent has 1025 bytes"));
    }

    #[test]
    fn the_parts_are_of_one_length() {
        let parts = |p, q| CrtExp { base: &[2], p, q, dp: &[1], dq: &[1], qinv: &[1] };
        assert_eq!(parts(&[0, 7], &[11]).check(2), Ok(2));
        assert!(parts(&[7], &[1; 9]).check(99).is_err());
        assert!(parts(&[7], &[10]).check(99).is_err());
        assert!(parts(&[7], &[11]).check(1).is_err());
    }
}
