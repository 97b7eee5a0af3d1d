//! The derivations themselves.

use super::hmac::{Hash, Hmac, zeros};

/// Longest label with its prefix, and longest context, in an `HkdfLabel` as the default provider makes them.
const LABEL_MAX: usize = 249;
const CONTEXT_MAX: usize = 64;

/// The pseudorandom function of TLS 1.2 (RFC 5246 section 5), label and seeds in one. None only where the library fails.
pub(super) fn prf(hash: Hash, secret: &[u8], seed: &[u8], out: &mut [u8]) -> Option<()> {
    let len = hash.len();
    let (mut chained, mut next, mut value) = (zeros(), zeros(), zeros());
    Hmac::with(hash, secret, |hmac| {
        hmac.of(&[seed], &mut chained)?;
        let mut pieces = out.chunks_mut(len).peekable();
        while let Some(piece) = pieces.next() {
            hmac.of(&[&chained[..len], seed], &mut value)?;
            piece.copy_from_slice(&value[..piece.len()]);
            if pieces.peek().is_some() {
                hmac.of(&[&chained[..len]], &mut next)?;
                chained.copy_from_slice(&next[..]);
            }
        }
        Some(())
    })
}

/// `HKDF-Expand-Label` of TLS 1.3 (RFC 8446 section 7.1) with HKDF-Expand of RFC 5869. None where something is too long.
pub(super) fn expand_label(hash: Hash, secret: &[u8], [prefix, label, context]: [&[u8]; 3], out: &mut [u8]) -> Option<()> {
    if prefix.len() + label.len() > LABEL_MAX || context.len() > CONTEXT_MAX || out.len() > 255 * hash.len() {
        return None;
    }
    let out_len = u16::try_from(out.len()).ok()?.to_be_bytes();
    let head = [out_len[0], out_len[1], (prefix.len() + label.len()) as u8];
    let context_len = [context.len() as u8];
    let (mut before, mut value) = (zeros(), zeros());
    Hmac::with(hash, secret, |hmac| {
        for (index, piece) in out.chunks_mut(hash.len()).enumerate() {
            let before_it = if index == 0 { &[][..] } else { &before[..hash.len()] };
            hmac.of(&[before_it, &head, prefix, label, &context_len, context, &[index as u8 + 1]], &mut value)?;
            piece.copy_from_slice(&value[..piece.len()]);
            before.copy_from_slice(&value[..]);
        }
        Some(())
    })
}

/// The next secret of TLS 1.3's key schedule (RFC 8446 section 7.1): HKDF-Extract with what is derived from the secret before, of which the first has none. Where
/// there is no input, it is as many zeros as the hash has bytes.
pub(super) fn next_secret(
    hash: Hash,
    before: Option<&[u8]>,
    [prefix, label]: [&[u8]; 2],
    input: Option<&[u8]>,
    out: &mut [u8],
) -> Option<()> {
    let mut salt = zeros();
    let salt_len = match before {
        Some(before) => {
            let mut nothing = zeros();
            hash.of(&[], &mut nothing);
            expand_label(hash, before, [prefix, label, &nothing[..hash.len()]], &mut salt[..hash.len()])?;
            hash.len()
        }
        None => 0,
    };
    let nothing = zeros();
    let input = input.unwrap_or(&nothing[..hash.len()]);
    if out.len() != hash.len() {
        return None;
    }
    let mut secret = zeros();
    Hmac::with(hash, &salt[..salt_len], |hmac| hmac.of(&[input], &mut secret))?;
    out.copy_from_slice(&secret[..hash.len()]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// The IETF's test vectors for TLS 1.2 with SHA-256 and SHA-384 (mailing list of the TLS working group, July 2009).
    #[test]
    fn prf_of_the_working_groups_vectors() {
        let mut out = [0; 100];
        let seed = [b"test label".as_slice(), &bytes("a0ba9f936cda311827a6f796ffd5198c")].concat();
        prf(Hash::Sha256, &bytes("9bbe436ba940f017b17652849a71db35"), &seed, &mut out).unwrap();
        let expected = "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab\
                        4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66";
        assert_eq!(out[..], bytes(expected));
        let mut out = [0; 148];
        let seed = [b"test label".as_slice(), &bytes("cd665cf6a8447dd6ff8b27555edb7465")].concat();
        prf(Hash::Sha384, &bytes("b80b733d6ceefcdc71566ea48e5567df"), &seed, &mut out).unwrap();
        let expected = "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cde9ca0faa60be9fe34f82b1233c9146a0e534cb400fed2700884f9dc236f80edd\
                        8bfa961144c9e8d792eca722a7b32fc3d416d473ebc2c5fd4abfdad05d9184259b5bf8cd4d90fa0d31e2dec479e4f1a26066f2eea9a69236a3e52655c9e9aee6\
                        91c8f3a26854308d5eaa3be85e0990703d73e56f";
        assert_eq!(out[..], bytes(expected));
    }

    /// RFC 8448 section 3, "Simple 1-RTT Handshake"; the second secret needs HKDF-Expand-Label as well.
    #[test]
    fn the_key_schedule_of_rfc_8448() {
        let mut early = [0; 32];
        let derived: [&[u8]; 2] = [b"tls13 ", b"derived"];
        next_secret(Hash::Sha256, None, derived, None, &mut early).unwrap();
        assert_eq!(early[..], bytes("33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a"));
        let shared = bytes("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
        let mut handshake = [0; 32];
        next_secret(Hash::Sha256, Some(&early), derived, Some(&shared), &mut handshake).unwrap();
        assert_eq!(handshake[..], bytes("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac"));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut out = [0; 32];
        assert_eq!(expand_label(Hash::Sha256, &[1; 32], [b"tls13 ", &[b'x'; 244], b""], &mut out), None);
        assert_eq!(expand_label(Hash::Sha256, &[1; 32], [b"tls13 ", b"x", &[0; 65]], &mut out), None);
        assert_eq!(expand_label(Hash::Sha256, &[1; 32], [b"tls13 ", b"x", b""], &mut [0; 255 * 32 + 1]), None);
        assert_eq!(next_secret(Hash::Sha256, None, [b"", b""], None, &mut [0; 31]), None, "a secret is as long as the hash");
    }
}
