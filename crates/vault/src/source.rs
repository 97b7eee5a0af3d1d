//! Keys as they come from elsewhere: PKCS#8, PKCS#1 and SEC1, in PEM or DER, and PKCS#8 under a passphrase.

use bywash_core::SecretBytes;
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, UintRef};
use der::{Decode, Encode};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfo, PrivateKeyInfoRef};
use zeroize::Zeroizing;

/// `rsaEncryption`.
pub(crate) const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// `id-ecPublicKey`.
pub(crate) const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// `secp256r1`.
pub(crate) const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

const NEEDS_PASSPHRASE: &str = "it is encrypted; give its passphrase with --passphrase-file";

/// Brings a key file to PKCS#8 in DER. The error says what is wrong and the way out.
///
/// # Errors
/// A text for people.
pub fn to_pkcs8(file: &[u8], passphrase: Option<&[u8]>) -> Result<SecretBytes, String> {
    match core::str::from_utf8(file).ok().filter(|text| text.contains("-----BEGIN ")) {
        Some(text) => from_pem(text, passphrase),
        None => from_der(file, passphrase),
    }
}

/// The first block that is a private key; certificates and parameters before it are passed over.
fn from_pem(text: &str, passphrase: Option<&[u8]>) -> Result<SecretBytes, String> {
    for (label, block) in blocks(text) {
        let known = matches!(label, "PRIVATE KEY" | "ENCRYPTED PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY");
        if label == bywash_protocol::key_file::LABEL {
            return Err("it only names a key of a vault and holds none itself".into());
        }
        if !known {
            continue;
        }
        if block.contains("Proc-Type:") {
            return Err("it is encrypted in OpenSSL's old way; convert it with `openssl pkcs8 -topk8 -in OLD -out NEW`".into());
        }
        let (_, der) = pem_rfc7468::decode_vec(block.as_bytes()).map_err(|error| format!("its PEM is damaged: {error}"))?;
        let der = Zeroizing::new(der);
        return match label {
            "PRIVATE KEY" => Ok(SecretBytes::from(&der[..])),
            "ENCRYPTED PRIVATE KEY" => decrypt(&der, passphrase),
            "RSA PRIVATE KEY" => wrap_rsa(&der),
            _ => wrap_ec(&der),
        };
    }
    Err("there is no private key in it; PKCS#8, PKCS#1 and SEC1 are understood, in PEM or DER".into())
}

/// The PEM blocks of a text, each with its label.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("-----BEGIN ").filter_map(move |(start, begin)| {
        let rest = &text[start + begin.len()..];
        let label = &rest[..rest.find("-----")?];
        let end = format!("-----END {label}-----");
        Some((label, &text[start..start + text[start..].find(&end)? + end.len()]))
    })
}

/// An RSA key from its numbers, big-endian: n, e, d, p, q, d mod (p - 1), d mod (q - 1), q^-1 mod p. None for what are no numbers.
pub fn from_rsa(numbers: &[&[u8]; 8]) -> Option<SecretBytes> {
    let number = |index: usize| UintRef::new(numbers[index]).ok();
    let key = pkcs1::RsaPrivateKeyRef {
        modulus: number(0)?,
        public_exponent: number(1)?,
        private_exponent: number(2)?,
        prime1: number(3)?,
        prime2: number(4)?,
        exponent1: number(5)?,
        exponent2: number(6)?,
        coefficient: number(7)?,
        other_prime_infos: None,
    };
    wrap(RSA, AnyRef::NULL, &SecretBytes::from(key.to_der().ok()?))
}

/// A P-256 key from the object identifier of its curve in DER and its scalar, big-endian. None for another curve's.
pub fn from_ec(curve: &[u8], scalar: &[u8]) -> Option<SecretBytes> {
    let curve = ObjectIdentifier::from_der(curve).ok().filter(|&curve| curve == P256)?;
    // A token may leave leading zeros out.
    let mut whole = SecretBytes::zeroed(32);
    let start = whole.len().checked_sub(scalar.len())?;
    whole[start..].copy_from_slice(scalar);
    let key = sec1::EcPrivateKey { private_key: &whole, parameters: None, public_key: None };
    wrap(EC, (&curve).into(), &SecretBytes::from(key.to_der().ok()?))
}

fn from_der(der: &[u8], passphrase: Option<&[u8]>) -> Result<SecretBytes, String> {
    if PrivateKeyInfoRef::from_der(der).is_ok() {
        return Ok(der.into());
    }
    if EncryptedPrivateKeyInfoRef::from_der(der).is_ok() {
        return decrypt(der, passphrase);
    }
    wrap_rsa(der)
        .or_else(|_| wrap_ec(der))
        .map_err(|_| "it is no private key; PKCS#8, PKCS#1 and SEC1 are understood, in PEM or DER".into())
}

fn decrypt(der: &[u8], passphrase: Option<&[u8]>) -> Result<SecretBytes, String> {
    let info = EncryptedPrivateKeyInfoRef::from_der(der)
        .map_err(|_| "its encryption is of a kind not understood; convert it with `openssl pkcs8 -topk8 -v2 aes-256-cbc`")?;
    let passphrase = passphrase.ok_or(NEEDS_PASSPHRASE)?;
    let plain = info.decrypt(passphrase).map_err(|_| "it cannot be decrypted; is the passphrase right?")?;
    Ok(plain.as_bytes().into())
}

fn wrap(oid: ObjectIdentifier, parameters: AnyRef<'_>, key: &[u8]) -> Option<SecretBytes> {
    let algorithm = spki_identifier(oid, parameters);
    let info = PrivateKeyInfo::<AnyRef<'_>, &OctetStringRef, BitStringRef<'_>>::new(algorithm, OctetStringRef::new(key).ok()?);
    Some(SecretBytes::from(info.to_der().ok()?))
}

fn spki_identifier(oid: ObjectIdentifier, parameters: AnyRef<'_>) -> pkcs8::AlgorithmIdentifierRef<'_> {
    pkcs8::AlgorithmIdentifierRef { oid, parameters: Some(parameters) }
}

fn wrap_rsa(der: &[u8]) -> Result<SecretBytes, String> {
    let wrong = || "its RSA private key is damaged".to_owned();
    pkcs1::RsaPrivateKeyRef::from_der(der).map_err(|_| wrong())?;
    wrap(RSA, AnyRef::NULL, der).ok_or_else(wrong)
}

fn wrap_ec(der: &[u8]) -> Result<SecretBytes, String> {
    let key = sec1::EcPrivateKey::from_der(der).map_err(|_| "its elliptic-curve private key is damaged")?;
    let curve = key.parameters.as_ref().and_then(|parameters| parameters.named_curve());
    let curve = curve.ok_or("its elliptic-curve private key does not name its curve")?;
    wrap(EC, (&curve).into(), der).ok_or_else(|| "its elliptic-curve private key is damaged".into())
}
