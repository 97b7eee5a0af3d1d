//! Session keys and the keys of the key exchange (DDS Security 1.1 s9.5.2.1.2, s9.5.3.3.3).

use crate::kind::Kind;
use aws_lc_rs::{digest, hmac};
use zeroize::Zeroizing;

/// A key of 128 or 256 bits; the shorter has zeros behind it. Wiped when dropped.
pub type KeyBytes = Zeroizing<[u8; 32]>;

/// Bytes of a challenge of the authentication handshake.
pub const CHALLENGE: usize = 32;

/// Whose tag a session key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The text and its common tag, by the sender's master key.
    Sender,
    /// A receiver-specific tag, by the master key that sender and receiver share.
    Receiver,
}

impl Purpose {
    /// What the derivation begins with.
    pub fn label(self) -> &'static [u8] {
        match self {
            Self::Sender => b"SessionKey",
            Self::Receiver => b"SessionReceiverKey",
        }
    }
}

/// HMAC-SHA-256 of the parts one after the other.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> KeyBytes {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut context = hmac::Context::with_key(&key);
    parts.iter().for_each(|part| context.update(part));
    let mut bytes = Zeroizing::new([0; 32]);
    bytes.copy_from_slice(context.sign().as_ref());
    bytes
}

/// The key of a session: `HMAC-SHA-256(master key, label | salt | session id)`, cut to the kind's length.
pub fn session_key(kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32) -> KeyBytes {
    let mut key = hmac_sha256(master_key, &[purpose.label(), salt, &session.to_be_bytes()]);
    key[kind.key_len()..].fill(0);
    key
}

/// Salt and key under which two participants exchange the keys of their endpoints: AES-256-GCM with key id 0.
pub fn exchange_keys(secret: &[u8], challenge1: &[u8; CHALLENGE], challenge2: &[u8; CHALLENGE]) -> (KeyBytes, KeyBytes) {
    let made = |first: &[u8], cookie: &[u8], second: &[u8]| {
        let mut context = digest::Context::new(&digest::SHA256);
        [first, cookie, second].iter().for_each(|part| context.update(part));
        hmac_sha256(context.finish().as_ref(), &[secret])
    };
    (made(challenge1, b"keyexchange salt", challenge2), made(challenge2, b"key exchange key", challenge1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 test case 2.
    #[test]
    fn hmac_is_that_of_the_rfc() {
        let expected = [
            0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d,
            0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
        ];
        assert_eq!(*hmac_sha256(b"Jefe", &[b"what do ya want ", b"for nothing?"]), expected);
    }

    #[test]
    fn a_short_key_is_cut() {
        let long = session_key(Kind::Aes256Gcm, Purpose::Sender, &[1; 16], &[2; 16], 7);
        let short = session_key(Kind::Aes128Gcm, Purpose::Sender, &[1; 16], &[2; 16], 7);
        assert_eq!(long[..16], short[..16]);
        assert_eq!(short[16..], [0; 16]);
        assert_ne!(session_key(Kind::Aes256Gcm, Purpose::Receiver, &[1; 16], &[2; 16], 7), long);
    }
}
