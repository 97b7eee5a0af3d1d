//! What tells an RSA signature from a decryption.
//!
//! An engine raises a block to the private exponent and does not care why. A key that may only sign must not do so for a ciphertext, or whoever has
//! taken a server over decrypts what was once recorded. So before the private operation the block is looked at: a signature's bears a
//! padding (RFC 8017 s9.1, s9.2) whose fixed bytes a ciphertext cannot be made to have, for they are more than a hundred.

use aws_lc_rs::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};

/// Longest content under a PKCS#1 v1.5 padding: `DigestInfo` of SHA-512, and room for longer identifiers of digests.
const CONTENT_MAX: usize = 96;

/// Whether a block, one modulus long, bears the padding of a signature.
pub fn is_signature(block: &[u8]) -> bool {
    is_pkcs1(block) || [&SHA256, &SHA384, &SHA512, &SHA1_FOR_LEGACY_USE_ONLY].into_iter().any(|digest| is_pss(block, digest))
}

/// EMSA-PKCS1-v1_5: 00 01, many FF, 00, then what is signed.
fn is_pkcs1(block: &[u8]) -> bool {
    let Some(padding) = block.strip_prefix(&[0, 1]) else { return false };
    let ones = padding.iter().take_while(|&&byte| byte == 0xFF).count();
    let content = padding.len().saturating_sub(ones + 1);
    padding.get(ones) == Some(&0) && ones >= 8 && content <= CONTENT_MAX
}

/// EMSA-PSS with MGF1 over the same digest and a salt no longer than it: the masked zeros before the salt must be there.
fn is_pss(block: &[u8], digest: &'static Algorithm) -> bool {
    let hash = digest.output_len();
    let Some((b"\xBC", front)) = block.split_last().map(|(last, front)| (core::array::from_ref(last), front)) else { return false };
    let Some(db_len) = front.len().checked_sub(hash).filter(|&length| length > 2 * hash + 1) else { return false };
    let (masked, h) = front.split_at(db_len);
    let mut db = masked.to_vec();
    unmask(&mut db, h, digest);
    // The block is one bit shorter than the modulus.
    db[0] &= 0x7F;
    let zeros = db.iter().take_while(|&&byte| byte == 0).count();
    masked[0] & 0x80 == 0 && db.get(zeros) == Some(&1) && db.len() - zeros - 1 <= hash
}

/// MGF1 (RFC 8017 appendix B.2.1), added bit by bit.
fn unmask(text: &mut [u8], seed: &[u8], digest: &'static Algorithm) {
    for (counter, chunk) in (0_u32..).zip(text.chunks_mut(digest.output_len())) {
        let mut context = Context::new(digest);
        context.update(seed);
        context.update(&counter.to_be_bytes());
        chunk.iter_mut().zip(context.finish().as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding};
    use bywash_core::{Algorithm as Ours, Data, Direction, Key, Operation, RsaPublicKey, SessionParams};
    use der::Decode;

    /// The block under a signature that another library made: the public operation takes the signature off.
    fn block(pair: &KeyPair, encoding: &'static dyn RsaEncoding) -> Vec<u8> {
        use aws_lc_rs::signature::KeyPair as _;
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), b"message", &mut signature).unwrap();
        let public = pkcs1::RsaPublicKeyRef::from_der(pair.public_key().as_ref()).unwrap();
        let key = RsaPublicKey { modulus: public.modulus.as_bytes().to_vec(), exponent: public.public_exponent.as_bytes().to_vec() };
        let session = SessionParams::new(Ours::Rsa2048Public, Key::RsaPublic(key)).unwrap();
        let mut output = vec![0; 256];
        let data = Data::Copy { input: &signature, output: &mut output };
        let mut operation = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] };
        bywash_manager::here().open(&session).unwrap().run(&mut operation).unwrap();
        output
    }

    #[test]
    fn signatures_of_another_library_are_known() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let encodings: [&'static dyn RsaEncoding; 5] =
            [&RSA_PKCS1_SHA256, &RSA_PKCS1_SHA512, &RSA_PSS_SHA256, &RSA_PSS_SHA384, &RSA_PSS_SHA512];
        for encoding in encodings {
            let block = block(&pair, encoding);
            assert!(is_signature(&block));
            // A bit turned in the padding, and it is none.
            for at in [0, 1, 5] {
                let mut turned = block.clone();
                turned[at] ^= 0x40;
                assert!(!is_signature(&turned), "byte {at}");
            }
        }
    }

    #[test]
    fn anything_else_is_not() {
        let mut random = vec![0; 256];
        for _ in 0..2000 {
            aws_lc_rs::rand::fill(&mut random).unwrap();
            random[0] &= 0x7F;
            random[255] = 0xBC;
            assert!(!is_signature(&random));
        }
        let premaster = [&[0, 2][..], &[0xFF; 205], &[0], &[3; 48]].concat();
        assert!(!is_signature(&premaster));
        let short = [&[0, 1][..], &[0xFF; 150], &[0], &[3; 103]].concat();
        assert!(!is_signature(&short), "too little padding to rule a ciphertext out");
        assert!(!is_signature(&[]) && !is_signature(&[0, 1]) && !is_signature(&[0xBC]));
    }
}
