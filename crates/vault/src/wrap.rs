//! A key on its way out of a token: wrapped there under a key made for this once, unwrapped here (NIST SP 800-38F, KWP, with AES-256).

use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrapPadded};
use bywash_core::SecretBytes;
use der::Decode;
use der::asn1::AnyRef;

/// A new wrapping key; none only if the generator of random numbers fails.
pub fn new_key() -> Option<SecretBytes> {
    let mut key = SecretBytes::zeroed(32);
    aws_lc_rs::rand::fill(&mut key).ok()?;
    Some(key)
}

/// Unwraps a key in DER; none if it was not wrapped under this key.
pub fn unwrap(key: &[u8], wrapped: &[u8]) -> Option<SecretBytes> {
    let mut room = SecretBytes::zeroed(wrapped.len());
    let plain = &*AesKek::new(&AES_256, key).ok()?.unwrap_with_padding(wrapped, &mut room).ok()?;
    // SoftHSM fills up with zeros to a multiple of 8 before it wraps.
    let (_, rest) = AnyRef::from_der_partial(plain).ok()?;
    let key = &plain[..plain.len() - rest.len()];
    (rest.len() < 8 && rest.iter().all(|&byte| byte == 0)).then(|| SecretBytes::from(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wrapped_is_unwrapped_and_nothing_else() {
        let key = new_key().unwrap();
        let wrap = |plain: &[u8]| AesKek::new(&AES_256, &key).unwrap().wrap_with_padding(plain, &mut [0; 64]).unwrap().to_vec();
        let wrapped = wrap(b"\x04\x0da private key");
        assert_eq!(&*unwrap(&key, &wrapped).unwrap(), b"\x04\x0da private key");
        assert_eq!(&*unwrap(&key, &wrap(b"\x04\x01k\0\0\0\0\0")).unwrap(), b"\x04\x01k", "filled up");
        assert!(unwrap(&key, &wrap(b"\x04\x01k\0\0\0\0\x01")).is_none() && unwrap(&key, &wrap(b"\x04\x09k")).is_none());
        assert!(unwrap(&new_key().unwrap(), &wrapped).is_none());
        assert!(unwrap(&key, &wrapped[1..]).is_none());
    }
}
