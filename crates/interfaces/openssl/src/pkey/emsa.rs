//! How a digest becomes a number to sign: EMSA-PKCS1-v1_5 (RFC 8017 s9.2) and EMSA-PSS (s9.1.1).
//!
//! Nothing here is secret: the encoded message is what anyone can compute from message, salt and signature.

/// EMSA-PKCS1-v1_5 over whatever is to follow the zero byte: `DigestInfo`, or raw bytes. None if there is no room for eight bytes of padding.
pub(super) fn pkcs1(content: &[&[u8]], length: usize) -> Option<Vec<u8>> {
    let used: usize = content.iter().map(|piece| piece.len()).sum();
    let padding = length.checked_sub(used + 3).filter(|&padding| padding >= 8)?;
    let mut encoded = Vec::with_capacity(length);
    encoded.extend_from_slice(&[0, 1]);
    encoded.resize(2 + padding, 0xFF);
    encoded.push(0);
    content.iter().for_each(|piece| encoded.extend_from_slice(piece));
    Some(encoded)
}

/// A digest of some pieces, one after the other; none if libcrypto fails.
pub(super) type HashFn<'a> = &'a mut dyn FnMut(&[&[u8]]) -> Option<Vec<u8>>;

/// MGF1 (RFC 8017 appendix B.2.1), added into `mask` bit by bit.
fn mgf1(seed: &[u8], mask: &mut [u8], hash: HashFn<'_>) -> Option<()> {
    let mut rest = mask;
    for counter in 0_u32.. {
        if rest.is_empty() {
            break;
        }
        let block = hash(&[seed, &counter.to_be_bytes()]).filter(|block| !block.is_empty())?;
        let (now, later) = rest.split_at_mut(block.len().min(rest.len()));
        now.iter_mut().zip(&block).for_each(|(byte, mask)| *byte ^= mask);
        rest = later;
    }
    Some(())
}

/// EMSA-PSS for a modulus of `length` bytes whose highest bit is set (so emBits is one less than the modulus's bits). None if the salt does not fit.
pub(super) fn pss(digest: &[u8], salt: &[u8], length: usize, hash: HashFn<'_>, mask_hash: HashFn<'_>) -> Option<Vec<u8>> {
    let zeros = length.checked_sub(digest.len() + salt.len() + 2)?;
    let h = hash(&[&[0; 8], digest, salt])?;
    let mut encoded = vec![0; zeros];
    encoded.push(1);
    encoded.extend_from_slice(salt);
    mgf1(&h, &mut encoded, mask_hash)?;
    encoded[0] &= 0x7F;
    encoded.extend_from_slice(&h);
    encoded.push(0xBC);
    (encoded.len() == length).then_some(encoded)
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;
    use crate::pkey::evp::{Digest, Hash};

    #[test]
    fn pkcs1_has_its_shape_and_its_limit() {
        assert_eq!(pkcs1(&[b"a", b"b"], 13).unwrap(), b"\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\0ab");
        assert!(pkcs1(&[b"abc"], 13).is_none());
        assert!(pkcs1(&[b"abc"], 0).is_none());
    }

    #[test]
    fn mgf1_agrees_with_a_published_value() {
        // MGF1-SHA1("foo", 3) and MGF1-SHA1("bar", 5), well-known small examples of PKCS #1's MGF1.
        let sha1 = Digest::named("SHA1").unwrap();
        let mut hash = Hash::new(&sha1).unwrap();
        for (seed, expected) in [("foo", "1ac907"), ("bar", "bc0c655e01")] {
            let mut mask = vec![0; expected.len() / 2];
            mgf1(seed.as_bytes(), &mut mask, &mut |pieces| hash.of(&sha1, pieces)).unwrap();
            assert_eq!(mask, hex(expected));
        }
    }

    #[test]
    fn pss_fills_the_length_and_refuses_a_salt_too_long() {
        let sha256 = Digest::named("SHA256").unwrap();
        let (mut hash, mut mask) = (Hash::new(&sha256).unwrap(), Hash::new(&sha256).unwrap());
        let (mut hash, mut mask) = (|pieces: &[&[u8]]| hash.of(&sha256, pieces), |pieces: &[&[u8]]| mask.of(&sha256, pieces));
        let encoded = pss(&[7; 32], &[9; 222], 256, &mut hash, &mut mask).unwrap();
        assert_eq!((encoded.len(), encoded[0] & 0x80, encoded[255]), (256, 0, 0xBC));
        assert!(pss(&[7; 32], &[9; 223], 256, &mut hash, &mut mask).is_none());
    }
}
