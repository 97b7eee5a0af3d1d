//! Modular exponentiation with numbers that come without a session.
//!
//! # What guards the exponent
//!
//! Exponents are used in constant time (`BN_mod_exp_mont_consttime`); how many bytes they were given in shows.
//!
//! # What guards the factors
//!
//! By the Chinese remainder theorem a result that is wrong modulo one prime alone gives both away to whoever sees it (Boneh, DeMillo, Lipton 1997). So the result
//! is raised to the public exponent and compared with the base. None comes along, but those in use are few, and which it is shows from the key:
//! dp times it is 1 modulo p - 1, dq times it is 1 modulo q - 1.
//!
//! - 3, 5, 17, 257 or 65537 belongs to dp and to dq: the result is compared by way of it, with numbers taken anew from the caller's bytes. No wrong result passes,
//!   whatever went wrong: the computation, or one of the numbers.
//! - One belongs to dp alone, or to dq alone: the other is wrong, and nothing is computed. (Primes of up to eight bytes may be so by chance, and go on with the next.)
//! - None does: each power is taken again, with dp + p - 1, which for a prime is the same power by another way (Fermat), from numbers taken anew; and the result modulo p
//!   and q is compared with the powers. A single fault in the computation is noticed, and so are a p, q or qinv that does not belong to the rest. *Not* noticed is a dp or dq that the caller
//!   gives wrongly, if the public exponent is an unusual one: nothing in the numbers shows it. This way takes twice the time.
//!
//! Which exponent it is shows in the time, as it is public. Of what is refused nothing is given away.
//!
//! The lanes are not for this: their kernels compare each result by way of e, and take keys that were checked and prepared when a session was opened. Who uses a key again
//! opens one.

use crate::failed;
use crate::ffi::Refused;
use crate::ffi::number::Number;
use crate::ffi::residue::Modulus;
use bywash_core::number::trimmed;
use bywash_core::{CrtExp, Error, ModExp, Result, SecretBytes};

type Computed<T> = core::result::Result<T, Refused>;

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
    match run(|| by_remainders(numbers, p, q), "to exponentiate")? {
        Some(result) => run(|| result.write(out), "to exponentiate"),
        None => parts("p, q, dp, dq and qinv do not belong together"),
    }
}

/// The power, or `None` where something is wrong. `prime_p` and `prime_q` are those of `numbers`, without zeros in front.
fn by_remainders(numbers: &CrtExp<'_>, prime_p: &[u8], prime_q: &[u8]) -> Computed<Option<Number>> {
    let [p, q] = [Modulus::new(prime_p)?, Modulus::new(prime_q)?];
    let [dp, dq, qinv] = [Number::from_bytes(numbers.dp)?, Number::from_bytes(numbers.dq)?, Number::from_bytes(numbers.qinv)?];
    if !p.number().is_above(&dp) || !q.number().is_above(&dq) || !p.number().is_above(&qinv) {
        return Ok(None);
    }
    let (of_dp, of_dq) = (usual(prime_p, &dp)?, usual(prime_q, &dq)?);
    let of_both = of_dp & of_dq;
    if of_both == 0 && of_dp | of_dq != 0 && prime_p.len() > 8 {
        return Ok(None);
    }
    let base = base(numbers, &p, &q)?;
    let (of_p, of_q) = (p.power(&p.reduce(&base)?, &dp)?, q.power(&q.reduce(&base)?, &dq)?);
    let factor = p.product(&p.difference(&of_p, &p.reduce(&of_q)?)?, &qinv)?;
    let result = q.times_plus(&factor, &of_q)?;
    let sound = match of_both {
        0 => {
            p.reduce(&result)?.equals(&of_p)
                && q.reduce(&result)?.equals(&of_q)
                && taken_again(numbers, &p, &q, &other_exponent(numbers.dp, prime_p), &of_p)?
                && taken_again(numbers, &q, &p, &other_exponent(numbers.dq, prime_q), &of_q)?
        }
        fitting => verified(numbers, prime_p, prime_q, &result, fitting.trailing_zeros())?,
    };
    Ok(sound.then_some(result))
}

/// The base modulo p * q, from the caller's bytes. Both are public.
fn base(numbers: &CrtExp<'_>, p: &Modulus, q: &Modulus) -> Computed<Number> {
    p.times_plus(q.number(), &Number::from_bytes(&[])?)?.remainder(&Number::from_bytes(numbers.base)?)
}

/// Which of the usual public exponents, all of which are 2^k + 1, belong to an exponent below a prime: bit k is set for those whose product with it is 1 modulo the prime less 1.
fn usual(prime: &[u8], exponent: &Number) -> Computed<u32> {
    let order = Number::from_bytes(&less_one(prime))?;
    let (mut fitting, one) = (0, Number::from_bytes(&[1])?);
    if !order.is_above(exponent) {
        return Ok(fitting);
    }
    let mut multiple = order.sum(exponent, exponent)?;
    for doublings in 1..=16 {
        if [1, 2, 4, 8, 16].contains(&doublings) && order.sum(&multiple, exponent)?.equals(&one) {
            fitting |= 1 << doublings;
        }
        multiple = order.sum(&multiple, &multiple)?;
    }
    Ok(fitting)
}

/// Whether the result to the power of 2^squarings + 1 is the base, with all numbers taken anew.
fn verified(numbers: &CrtExp<'_>, prime_p: &[u8], prime_q: &[u8], result: &Number, squarings: u32) -> Computed<bool> {
    let (p, q) = (Modulus::new(prime_p)?, Number::from_bytes(prime_q)?);
    let mut product = vec![0; prime_p.len() + prime_q.len()];
    p.times_plus(&q, &Number::from_bytes(&[])?)?.write(&mut product)?;
    let product = Modulus::new(trimmed(&product))?;
    if !product.number().is_above(result) {
        return Ok(false);
    }
    let mut power = product.product(result, result)?;
    for _ in 1..squarings {
        power = product.product(&power, &power)?;
    }
    let base = product.number().remainder(&Number::from_bytes(numbers.base)?)?;
    Ok(product.product(&power, result)?.equals(&base))
}

/// Whether another exponent of the same power gives it, of the base taken anew.
fn taken_again(numbers: &CrtExp<'_>, prime: &Modulus, other: &Modulus, exponent: &[u8], power: &Number) -> Computed<bool> {
    let base = prime.reduce(&base(numbers, prime, other)?)?;
    Ok(prime.power(&base, &Number::from_bytes(exponent)?)?.equals(power))
}

/// `exponent + prime - 1`, for a prime another exponent of the same powers; always of one word more than the prime, so that its length says nothing of the exponent.
fn other_exponent(exponent: &[u8], prime: &[u8]) -> SecretBytes {
    let order = less_one(prime);
    let mut sum = SecretBytes::zeroed((prime.len().div_ceil(8) + 1) * 8);
    let mut carry = 0u16;
    for (place, byte) in sum.iter_mut().rev().enumerate() {
        let digit = |number: &[u8]| number.len().checked_sub(place + 1).map_or(0, |at| u16::from(number[at]));
        carry += digit(exponent) + digit(&order);
        [*byte, _] = carry.to_le_bytes();
        carry >>= 8;
    }
    sum
}

/// An odd number less 1.
fn less_one(odd: &[u8]) -> SecretBytes {
    let mut even = SecretBytes::from(odd);
    even.last_mut().into_iter().for_each(|byte| *byte &= 0xFE);
    even
}

fn run<T>(compute: impl FnOnce() -> Computed<T>, doing: &str) -> Result<T> {
    compute().map_err(|_| failed(doing))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two primes less 1 of which 17 has an inverse modulo.
    const P: u8 = 251;
    const Q: u8 = 241;

    fn inverse(e: u32, modulus: u32) -> u32 {
        (1..modulus).find(|d| e * d % modulus == 1).expect("an inverse")
    }

    fn number(value: u32) -> Number {
        Number::from_bytes(&value.to_be_bytes()).expect("memory")
    }

    #[test]
    fn the_public_exponent_is_found() {
        for (e, k) in [(3, 1), (17, 4), (257, 8), (65537, 16)] {
            let fitting = usual(&[P], &number(inverse(e % 250, 250))).expect("memory");
            assert_eq!(fitting >> k & 1, 1, "{e}: {fitting:b}");
        }
        for (exponent, expected) in [(inverse(11, 250), 0), (250, 0), (249, 0), (0, 0), (5, 0)] {
            assert_eq!(usual(&[P], &number(exponent)).expect("memory"), expected, "{exponent}");
        }
    }

    /// What a fault would leave: a result that is right modulo one prime alone.
    #[test]
    fn a_result_that_is_wrong_modulo_one_prime_is_refused() {
        let (p, q) = (u32::from(P), u32::from(Q));
        let n = p * q;
        let (dp, dq) = (inverse(17, p - 1).to_be_bytes(), inverse(17, q - 1).to_be_bytes());
        let numbers = CrtExp { base: &[2], p: &[P], q: &[Q], dp: &dp, dq: &dq, qinv: &[inverse(q, p) as u8] };
        let result = by_remainders(&numbers, &[P], &[Q]).expect("memory").expect("a sound key");
        let mut bytes = [0; 4];
        result.write(&mut bytes).expect("room");
        let right = u32::from_be_bytes(bytes);
        for (given, expected) in [(right, true), ((right + p) % n, false), ((right + q) % n, false), (right + n, false)] {
            assert_eq!(verified(&numbers, &[P], &[Q], &number(given), 4).expect("memory"), expected, "{given}");
        }
        let [of_p, of_q] = [Modulus::new(&[P]).expect("odd"), Modulus::new(&[Q]).expect("odd")];
        let again = |power| taken_again(&numbers, &of_p, &of_q, &other_exponent(&dp, &[P]), &number(power)).expect("memory");
        assert!(again(right % p) && !again((right + 1) % p));
    }

    #[test]
    fn the_other_exponent_is_of_one_length() {
        for (exponent, prime, expected) in
            [(&[7][..], &[11][..], 17u128), (&[0, 0, 250], &[251], 500), (&[], &[3], 2), (&[0xFF; 8], &[0xFF; 8], 0x1_FFFF_FFFF_FFFF_FFFD)]
        {
            assert_eq!(other_exponent(exponent, prime)[..], expected.to_be_bytes());
        }
    }
}
