//! `CIOCKEY`: arithmetic with large numbers. Linux's module declares it and never had it; it is here as FreeBSD had it until release 13.
//!
//! Numbers are little-endian, and as many bytes are read as hold their bits. The result has as many bytes as the modulus, however much more room there is: OpenSSL's engine, asking for
//! Diffie-Hellman, names eight times the room that it has. Work is not counted: no algorithm's figures are of such numbers.
//!
//! Numbers have at most 8192 bits, an eighth of what FreeBSD took: the time of a power grows with the cube of that, and one of 8192 bits takes one to two tenths of a second. Meanwhile no session and no
//! table is locked: other threads' requests go on.

use crate::errno::Errno;
use crate::memory::Program;
use crate::refusal::Refusal;
use bywash_client::Client;
use bywash_core::number::{NUMBER_MAX, trimmed};
use bywash_core::{CrtExp, ModExp, SecretBytes};
use bywash_cryptodev_abi::linux::{
    CRF_DH_COMPUTE_KEY, CRF_MOD_EXP, CRF_MOD_EXP_CRT, CRK_DH_COMPUTE_KEY, CRK_DSA_SIGN, CRK_DSA_VERIFY, CRK_MOD_EXP, CRK_MOD_EXP_CRT,
    CrParam, CryptKop,
};

/// What `CIOCASYMFEAT` says.
pub(crate) const FEATURES: u32 = CRF_MOD_EXP | CRF_MOD_EXP_CRT | CRF_DH_COMPUTE_KEY;

/// Computes what the argument asks for, and answers it.
///
/// # Errors
/// In this order: an unknown operation, a wrong number of parameters, one that is too long or cannot be read, numbers with which nothing can be computed, no room, a result that cannot
/// be written.
pub(crate) fn key(client: &Client, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let mut asked: CryptKop = program.take::<_, { size_of::<CryptKop>() }>(argument)?;
    let wanted = match asked.crk_op {
        CRK_MOD_EXP | CRK_DH_COMPUTE_KEY => 3,
        CRK_MOD_EXP_CRT => 6,
        CRK_DSA_SIGN | CRK_DSA_VERIFY => {
            return Err(Refusal::new(Errno::EOPNOTSUPP, "DSA is not computed here; CIOCASYMFEAT says so"));
        }
        other => return Err(Refusal::invalid(format!("crk_op is {other}, which is no operation"))),
    };
    if (asked.crk_iparams, asked.crk_oparams) != (wanted, 1) {
        let (given, results) = (asked.crk_iparams, asked.crk_oparams);
        return Err(Refusal::invalid(format!("crk_iparams is {given} and crk_oparams {results}; this operation has {wanted} and 1")));
    }
    let (inputs, rest) = asked.crk_param.split_at(usize::from(wanted));
    let numbers = inputs.iter().map(|parameter| read(program, parameter)).collect::<Result<Vec<_>, _>>()?;
    let result = match (asked.crk_op, &numbers[..]) {
        (CRK_MOD_EXP, [base, exponent, modulus]) => power(client, &ModExp { base, exponent, modulus })?,
        (CRK_DH_COMPUTE_KEY, [exponent, base, modulus]) => {
            check_public(base, modulus)?;
            power(client, &ModExp { base, exponent, modulus })?
        }
        (_, [p, q, base, dp, dq, qinv]) => {
            let numbers = CrtExp { base, p, q, dp, dq, qinv };
            let mut result = SecretBytes::zeroed(numbers.check(usize::MAX)?);
            client.crt_exp(&numbers, &mut result)?;
            result
        }
        _ => return Err(Refusal::invalid("the parameters are not those of the operation")),
    };
    if let Some(into) = rest.first() {
        write(program, into, &result)?;
    }
    asked.crk_status = 0;
    program.give::<_, { size_of::<CryptKop>() }>(argument, &asked)
}

fn power(client: &Client, numbers: &ModExp<'_>) -> Result<SecretBytes, Refusal> {
    let mut result = SecretBytes::zeroed(numbers.check(usize::MAX)?);
    client.mod_exp(numbers, &mut result)?;
    Ok(result)
}

/// A parameter, big-endian.
fn read(program: Program<'_>, parameter: &CrParam) -> Result<SecretBytes, Refusal> {
    let length = parameter.crp_nbits.div_ceil(8) as usize;
    if length > NUMBER_MAX {
        return Err(Refusal::invalid(format!(
            "crp_nbits is {}; numbers of at most {} bits are taken",
            parameter.crp_nbits,
            8 * NUMBER_MAX
        )));
    }
    let mut number = SecretBytes::zeroed(length);
    program.read("a number", parameter.crp_p, &mut number)?;
    number.reverse();
    Ok(number)
}

/// A peer's public value is from 2 to the modulus less 2 (SP 800-56A s5.6.2.3.1): others give away what is computed with them.
fn check_public(value: &[u8], modulus: &[u8]) -> Result<(), Refusal> {
    let (value, modulus) = (trimmed(value), trimmed(modulus));
    let mut last = modulus.to_vec();
    // An even modulus is refused by the arithmetic; an odd one has nothing to borrow.
    last.last_mut().into_iter().for_each(|byte| *byte &= 0xFE);
    let below = (value.len(), value) < (last.len(), &last);
    match below && !matches!(value, [] | [1]) {
        true => Ok(()),
        false => Err(Refusal::invalid("the public value is not from 2 to the modulus less 2")),
    }
}

/// Writes a result, of which nothing but zeros may be too long for its place.
fn write(program: Program<'_>, into: &CrParam, result: &[u8]) -> Result<(), Refusal> {
    let room = into.crp_nbits.div_ceil(8) as usize;
    if trimmed(result).len() > room {
        let why =
            format!("the result has {} bytes, crp_nbits of its place says {room}; give as many as the modulus has", trimmed(result).len());
        return Err(Refusal::invalid(why));
    }
    let mut number = SecretBytes::from(result);
    number.reverse();
    program.write("the result", into.crp_p, &number[..room.min(result.len())])
}
