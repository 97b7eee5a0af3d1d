//! Modular exponentiation with numbers that come without a session.
//!
//! # What guards the exponent
//!
//! Exponents are used in constant time (`BN_mod_exp_mont_consttime`); how many bytes they were given in shows. By the Chinese remainder theorem one faulty half gives the
//! factors away to whoever sees the result (Boneh, DeMillo, Lipton 1997). With a public exponent the result would be raised to it and compared, but none comes along, and to
//! derive it from dp takes an inversion modulo the even p - 1, for which the library has nothing in constant time. So each half is computed twice, with dp and with
//! dp + p - 1, which for a prime is the same power by another way (Fermat), and the result modulo p and q is compared with the halves. A fault would have to strike twice, to
//! the same effect, in computations that multiply differently; parts that do not belong together, and a p or q that is no prime, are noticed too, and nothing of what was
//! computed is given away. It costs twice the time. The lanes are not for this: their kernels
//! compare each result by way of e, and take keys that were checked and prepared when a session was opened. Who uses a key again opens one.

use crate::failed;
use crate::ffi::Refused;
use crate::ffi::number::Number;
use crate::ffi::residue::Modulus;
use bywash_core::number::trimmed;
use bywash_core::{CrtExp, Error, ModExp, Result};

/// `base ^ exponent mod modulus`, into all of `out`.
pub(crate) fn mod_exp(numbers: &ModExp<'_>, out: &mut [u8]) -> Result<()> {
    numbers.check(out.len())?;
    let modulus = trimmed(numbers.modulus);
    if modulus == [1] {
        out.fill(0);
        return Ok(());
    }
    let compute = || {
        let modulus = Modulus::new(modulus)?;
        let base = modulus.number().remainder(&Number::from_bytes(numbers.base)?)?;
        modulus.power(&base, &Number::from_bytes(numbers.exponent)?)?.write(out)
    };
    run(compute, "to exponentiate")
}

/// `base ^ d mod (p * q)`, into all of `out`.
pub(crate) fn crt_exp(numbers: &CrtExp<'_>, out: &mut [u8]) -> Result<()> {
    numbers.check(out.len())?;
    let parts = |reason: &str| Err(Error::Number { reason: reason.to_owned() });
    let (p, q) = (trimmed(numbers.p), trimmed(numbers.q));
    if p == [1] || q == [1] || p == q {
        return parts("p and q are not two primes");
    }
    let compute = || {
        let [p, q] = [Modulus::new(p)?, Modulus::new(q)?];
        let [dp, dq, qinv] = [Number::from_bytes(numbers.dp)?, Number::from_bytes(numbers.dq)?, Number::from_bytes(numbers.qinv)?];
        if !p.is_above(&dp) || !q.is_above(&dq) || !p.is_above(&qinv) {
            return Ok(false);
        }
        let product = p.times_plus(q.number(), &Number::from_bytes(&[])?)?;
        // The product is public, as the base is.
        let base = product.remainder(&Number::from_bytes(numbers.base)?)?;
        let (Some(of_p), Some(of_q)) = (half(&p, &base, &dp)?, half(&q, &base, &dq)?) else { return Ok(false) };
        let factor = p.product(&p.difference(&of_p, &p.reduce(&of_q)?)?, &qinv)?;
        let result = q.times_plus(&factor, &of_q)?;
        if !p.reduce(&result)?.equals(&of_p) || !q.reduce(&result)?.equals(&of_q) {
            return Ok(false);
        }
        result.write(out)?;
        Ok(true)
    };
    match run(compute, "to exponentiate")? {
        true => Ok(()),
        false => parts("p, q, dp, dq and qinv do not belong together"),
    }
}

/// The power modulo one prime, computed twice; `None` if the two differ.
fn half(prime: &Modulus, base: &Number, exponent: &Number) -> core::result::Result<Option<Number>, Refused> {
    let base = prime.reduce(base)?;
    let once = prime.power(&base, exponent)?;
    let twice = prime.power(&base, &prime.other_exponent(exponent)?)?;
    Ok(once.equals(&twice).then_some(once))
}

fn run<T>(compute: impl FnOnce() -> core::result::Result<T, Refused>, doing: &str) -> Result<T> {
    compute().map_err(|_| failed(doing))
}
