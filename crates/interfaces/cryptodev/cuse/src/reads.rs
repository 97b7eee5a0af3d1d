//! What a request reads of the program's memory, beside its argument: told from the argument alone.

use bywash_cryptodev::Errno;
use bywash_cryptodev_abi::Layout;
use bywash_cryptodev_abi::linux::{
    AALG_MAX_RESULT_LEN, CIOCASYNCCRYPT, CIOCAUTHCRYPT, CIOCCRYPT, CIOCGSESSION, CIOCKEY, COP_DECRYPT, COP_FLAG_AEAD_SRTP_TYPE,
    CRYPTO_CIPHER_MAX_KEY_LEN, CRYPTO_HMAC_MAX_KEY_LEN, CryptAuthOp, CryptKop, CryptOp, EALG_MAX_BLOCK_LEN, SessionOp,
};

/// The size of a request's argument, as its number says (`asm-generic/ioctl.h`).
pub(crate) const fn argument_size(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// Address and length of what a request reads, its argument first.
///
/// Null pointers and lengths that the dispatcher refuses are left out: it says what is wrong with them, without reading.
pub(crate) fn of(request: u32, address: u64, argument: &[u8]) -> Vec<(u64, u64)> {
    let mut reads = vec![(address, argument.len() as u64)];
    match request {
        CIOCGSESSION => {
            let op = SessionOp::from_bytes(argument);
            // A key that is too long is refused before it is read.
            if op.cipher != 0 && op.keylen as usize <= CRYPTO_CIPHER_MAX_KEY_LEN {
                reads.push((op.key, op.keylen.into()));
            }
            if op.mac != 0 && op.mackeylen as usize <= CRYPTO_HMAC_MAX_KEY_LEN {
                reads.push((op.mackey, op.mackeylen.into()));
            }
        }
        CIOCCRYPT | CIOCASYNCCRYPT => {
            let op = CryptOp::from_bytes(argument);
            reads.extend([(op.src, op.len.into()), (op.iv, EALG_MAX_BLOCK_LEN as u64)]);
        }
        CIOCAUTHCRYPT => {
            let op = CryptAuthOp::from_bytes(argument);
            reads.extend([(op.auth_src, op.auth_len.into()), (op.src, op.len.into()), (op.iv, EALG_MAX_BLOCK_LEN as u64)]);
            // Nobody else looks there: the others have the tag behind the text, and where the last request of a program's structure had it is still in this one.
            if op.flags & COP_FLAG_AEAD_SRTP_TYPE != 0 && op.op == COP_DECRYPT {
                // No length is the whole tag, whose length the session knows.
                let tag_len = if op.tag_len == 0 { AALG_MAX_RESULT_LEN as u64 } else { op.tag_len.into() };
                reads.push((op.tag, tag_len.min(AALG_MAX_RESULT_LEN as u64)));
            }
        }
        CIOCKEY => {
            let op = CryptKop::from_bytes(argument);
            let inputs = op.crk_param.iter().take(op.crk_iparams.into());
            reads.extend(inputs.map(|param| (param.crp_p, u64::from(param.crp_nbits).div_ceil(8))));
        }
        _ => {}
    }
    reads.retain(|(address, length)| *address != 0 && *length != 0);
    reads
}

/// Whether it is no more than the kernel carries in one message, `most` bytes.
pub(crate) fn check(ranges: &[(u64, u64)], most: usize) -> Result<(), Errno> {
    const E2BIG: Errno = Errno(7);
    let sum = ranges.iter().try_fold(0u64, |sum, (_, length)| sum.checked_add(*length));
    if sum.is_some_and(|sum| sum <= most as u64) && ranges.len() <= crate::wire::IOCTL_MAX_IOV { Ok(()) } else { Err(E2BIG) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_cryptodev_abi::linux::COP_ENCRYPT;

    #[test]
    fn a_tag_is_read_where_srtp_deciphers_and_nowhere_else() {
        let tag = |flags, op, tag_len| {
            let asked = CryptAuthOp { flags, op, tag_len, tag: 0x5000, ..CryptAuthOp::default() };
            let mut argument = [0; CryptAuthOp::SIZE];
            asked.put_bytes(&mut argument);
            let reads = of(CIOCAUTHCRYPT, 0x1000, &argument);
            reads.iter().find(|(address, _)| *address == 0x5000).map(|(_, length)| *length)
        };
        assert_eq!(tag(COP_FLAG_AEAD_SRTP_TYPE, COP_DECRYPT, 0), Some(AALG_MAX_RESULT_LEN as u64));
        assert_eq!(tag(COP_FLAG_AEAD_SRTP_TYPE, COP_DECRYPT, 10), Some(10));
        assert_eq!(tag(COP_FLAG_AEAD_SRTP_TYPE, COP_ENCRYPT, 0), None);
        assert_eq!(tag(COP_FLAG_AEAD_SRTP_TYPE, COP_ENCRYPT, 10), None);
        assert_eq!(tag(0, COP_DECRYPT, 0), None);
        assert_eq!((tag(0, COP_DECRYPT, 16), tag(0, COP_ENCRYPT, 16)), (None, None), "left there by the last request");
    }
}
