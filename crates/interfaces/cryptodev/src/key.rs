//! `CIOCKEY`: arithmetic with large numbers. Linux's module declares it and never had it; it is here as FreeBSD had it until release 13.
//!
//! Numbers are little-endian, and as many bytes are read as hold their bits. The result has as many bytes as the modulus, however much more room there is: OpenSSL's engine, asking for
//! Diffie-Hellman, names eight times the room that it has. Work is not counted: no algorithm's figures are of such numbers.
//!
//! DSA has its parameters in the order in which OpenSSL's engine gives them, which is all that says what they are: digest, p, q, g and the private key, and places for r and s; digest, p, q, g, the public key, r
//! and s. A digest lies in memory as it is, and is no number. A signature that is none is answered with 0, and `crk_status` says `EBADMSG`: where that is not 0, that engine takes the signature for a false one,
//! and where the request fails it computes itself.
//!
//! Numbers have at most 8192 bits, an eighth of what FreeBSD took: the time of a power grows with the cube of that, and one of 8192 bits takes one to two tenths of a second. Meanwhile no session and no
//! table is locked: other threads' requests go on.

use crate::errno::Errno;
use crate::memory::Program;
use crate::refusal::Refusal;
use bywash_client::Client;
use bywash_core::number::{NUMBER_MAX, trimmed};
use bywash_core::{CrtExp, DsaGroup, DsaSign, DsaVerify, ModExp, SecretBytes};
use bywash_cryptodev_abi::linux::{
    CRF_DH_COMPUTE_KEY, CRF_DSA_SIGN, CRF_DSA_VERIFY, CRF_MOD_EXP, CRF_MOD_EXP_CRT, CRK_DH_COMPUTE_KEY, CRK_DSA_SIGN, CRK_DSA_VERIFY,
    CRK_MOD_EXP, CRK_MOD_EXP_CRT, CrParam, CryptKop,
};

/// What `CIOCASYMFEAT` says.
pub(crate) const FEATURES: u32 = CRF_MOD_EXP | CRF_MOD_EXP_CRT | CRF_DSA_SIGN | CRF_DSA_VERIFY | CRF_DH_COMPUTE_KEY;

/// How many parameters an operation reads, and how many it writes.
fn parameters(operation: u32) -> Option<(u16, u16)> {
    match operation {
        CRK_MOD_EXP | CRK_DH_COMPUTE_KEY => Some((3, 1)),
        CRK_MOD_EXP_CRT => Some((6, 1)),
        CRK_DSA_SIGN => Some((5, 2)),
        CRK_DSA_VERIFY => Some((7, 0)),
        _ => None,
    }
}

/// Computes what the argument asks for, and answers it.
///
/// # Errors
/// In this order: an unknown operation, a wrong number of parameters, one that is too long or cannot be read, numbers with which nothing can be computed, no room, a result that cannot
/// be written.
pub(crate) fn key(client: &Client, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let mut asked: CryptKop = program.take::<_, { size_of::<CryptKop>() }>(argument)?;
    let operation = asked.crk_op;
    let wanted = parameters(operation).ok_or_else(|| Refusal::invalid(format!("crk_op is {operation}, which is no operation")))?;
    let given = (asked.crk_iparams, asked.crk_oparams);
    if given != wanted {
        let why = format!("crk_iparams is {} and crk_oparams {}; this operation has {} and {}", given.0, given.1, wanted.0, wanted.1);
        return Err(Refusal::invalid(why));
    }
    let (inputs, places) = asked.crk_param.split_at(usize::from(wanted.0));
    let is_dsa = matches!(operation, CRK_DSA_SIGN | CRK_DSA_VERIFY);
    let number = |(place, parameter)| read(program, parameter, if is_dsa && place == 0 { Order::Memory } else { Order::Little });
    let numbers = inputs.iter().enumerate().map(number).collect::<Result<Vec<_>, _>>()?;
    asked.crk_status = 0;
    let results = match (operation, &numbers[..]) {
        (CRK_MOD_EXP, [base, exponent, modulus]) => vec![power(client, &ModExp { base, exponent, modulus })?],
        (CRK_DH_COMPUTE_KEY, [exponent, base, modulus]) => {
            check_public(base, modulus)?;
            vec![power(client, &ModExp { base, exponent, modulus })?]
        }
        (CRK_DSA_SIGN, [digest, p, q, g, private]) => {
            let asked = DsaSign { group: DsaGroup { p, q, g }, digest, private };
            let length = asked.check()?;
            let (mut r, mut s) = (SecretBytes::zeroed(length), SecretBytes::zeroed(length));
            client.dsa_sign(&asked, &mut r, &mut s)?;
            vec![r, s]
        }
        (CRK_DSA_VERIFY, [digest, p, q, g, public, r, s]) => {
            if !client.dsa_verify(&DsaVerify { group: DsaGroup { p, q, g }, digest, public, r, s })? {
                asked.crk_status = Errno::EBADMSG.0.unsigned_abs();
            }
            Vec::new()
        }
        (_, [p, q, base, dp, dq, qinv]) => {
            let numbers = CrtExp { base, p, q, dp, dq, qinv };
            let mut result = SecretBytes::zeroed(numbers.check(usize::MAX)?);
            client.crt_exp(&numbers, &mut result)?;
            vec![result]
        }
        _ => return Err(Refusal::invalid("the parameters are not those of the operation")),
    };
    // All of them have room, or none is written.
    places.iter().zip(&results).try_for_each(|(into, result)| room(into, result).map(drop))?;
    places.iter().zip(&results).try_for_each(|(into, result)| write(program, into, result))?;
    program.give::<_, { size_of::<CryptKop>() }>(argument, &asked)
}

fn power(client: &Client, numbers: &ModExp<'_>) -> Result<SecretBytes, Refusal> {
    let mut result = SecretBytes::zeroed(numbers.check(usize::MAX)?);
    client.mod_exp(numbers, &mut result)?;
    Ok(result)
}

/// How the bytes of a parameter lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As a number's of this interface.
    Little,
    /// As they are: a digest's.
    Memory,
}

/// A parameter, big-endian.
fn read(program: Program<'_>, parameter: &CrParam, order: Order) -> Result<SecretBytes, Refusal> {
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
    if order == Order::Little {
        number.reverse();
    }
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

/// How many bytes there are for a result, of which nothing but zeros may be too long.
fn room(into: &CrParam, result: &[u8]) -> Result<usize, Refusal> {
    let room = into.crp_nbits.div_ceil(8) as usize;
    // All of them are looked at: how many zeros a secret begins with is not to be told by time.
    let beyond = result[..result.len().saturating_sub(room)].iter().fold(0, |all, byte| all | byte);
    if beyond == 0 {
        return Ok(room);
    }
    let why = format!("the result is longer than the {room} bytes that crp_nbits of its place says; give as many as the modulus has");
    Err(Refusal::invalid(why))
}

/// Writes a result to its place.
fn write(program: Program<'_>, into: &CrParam, result: &[u8]) -> Result<(), Refusal> {
    let room = room(into, result)?;
    let mut number = SecretBytes::from(result);
    number.reverse();
    program.write("the result", into.crp_p, &number[..room.min(result.len())])
}
