//! `CIOCGSESSINFO`: what computes a session.

use crate::memory::Program;
use crate::refusal::Refusal;
use crate::table::Table;
use bywash_cryptodev_abi::linux::{AlgInfo, SIOP_FLAG_KERNEL_DRIVER_ONLY, SessionInfoOp};

/// Answers the names of a session's cipher and hash. What the session does not have is left as the program has it.
///
/// The flag says that the program has nothing as fast of its own, without which OpenSSL's engine for the device does not use it: here a request
/// may go to any engine of the machine.
///
/// # Errors
/// The argument cannot be read or written; no such session.
pub(crate) fn info(table: &Table, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let mut answer: SessionInfoOp = program.take::<_, { size_of::<SessionInfoOp>() }>(argument)?;
    let session = table.get(answer.ses)?;
    if let Some(cipher) = &session.cipher {
        answer.cipher_info = names(cipher.kind.name);
    }
    if let Some(hash) = &session.hash {
        answer.hash_info = names(hash.kind.name);
    }
    answer.alignmask = 0;
    answer.flags = SIOP_FLAG_KERNEL_DRIVER_ONLY;
    program.give::<_, { size_of::<SessionInfoOp>() }>(argument, &answer)
}

/// `cbc(aes)`, computed by `cbc-aes-bywash`.
fn names(name: &str) -> AlgInfo {
    let driver: String = name.chars().filter_map(|c| if matches!(c, '(' | '_') { Some('-') } else { (c != ')').then_some(c) }).collect();
    let mut info = AlgInfo::default();
    info.cra_name[..name.len()].copy_from_slice(name.as_bytes());
    let driver = driver + "-bywash";
    info.cra_driver_name[..driver.len()].copy_from_slice(driver.as_bytes());
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_zero() {
        let info = names("ecb(cipher_null)");
        assert!(info.cra_name.starts_with(b"ecb(cipher_null)\0"));
        assert!(info.cra_driver_name.starts_with(b"ecb-cipher-null-bywash\0"));
    }
}
