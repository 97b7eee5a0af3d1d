//! Keys as they come from elsewhere: PKCS#8, PKCS#1 and SEC1, in PEM or DER, PKCS#8 under a passphrase, and files of a vault's folder in which the key stands in plain.

use crate::folder::{Private, Record, where_damaged};
use bywash_core::SecretBytes;
use bywash_protocol::oid;
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, PrintableStringRef, UintRef};
use der::{Decode, Encode};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfo, PrivateKeyInfoRef};
use zeroize::Zeroizing;

/// Length of an Ed25519 private key, in bytes (RFC 8032 s5.1.5).
pub(crate) const ED25519_SEED: usize = 32;

const NEEDS_PASSPHRASE: &str = "it is encrypted; give its passphrase with --passphrase-file";

/// Brings a key file to PKCS#8 in DER. The error says what is wrong and the way out.
///
/// # Errors
/// A text for people.
pub fn to_pkcs8(file: &[u8], passphrase: Option<&[u8]>) -> Result<SecretBytes, String> {
    match core::str::from_utf8(file).ok().filter(|text| text.contains("-----BEGIN ")) {
        Some(text) => from_pem(text, passphrase),
        None if file.starts_with(b"{") => from_record(file),
        None => from_der(file, passphrase),
    }
}

/// The present key of a vault's file. Its policy stays behind: who takes a key over says anew who may use it.
fn from_record(file: &[u8]) -> Result<SecretBytes, String> {
    let record: Record =
        serde_json::from_slice(file).map_err(|error| format!("it is no private key: as a file of a vault it {}", where_damaged(&error)))?;
    match record.private.first() {
        Some(Private::Plain(key)) => Ok(key.0.as_slice().into()),
        Some(Private::Sealed(_)) => {
            Err("it is a file of a vault, and the key in it is encrypted: put it back into its vault's folder".into())
        }
        None => Err("it is a file of a vault with no key in it".into()),
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
    wrap(oid::RSA, Some(AnyRef::NULL), &SecretBytes::from(key.to_der().ok()?))
}

/// Length in bytes of a scalar on a curve; none for one whose keys are not kept.
pub(crate) fn scalar_len(curve: ObjectIdentifier) -> Option<usize> {
    match curve {
        oid::P256 => Some(32),
        oid::P384 => Some(48),
        _ => None,
    }
}

/// A key on P-256 or P-384 from the object identifier of its curve in DER and its scalar, big-endian. None for another curve's.
pub fn from_ec(curve: &[u8], scalar: &[u8]) -> Option<SecretBytes> {
    let curve = ObjectIdentifier::from_der(curve).ok()?;
    // A token may leave leading zeros out.
    let mut whole = SecretBytes::zeroed(scalar_len(curve)?);
    let start = whole.len().checked_sub(scalar.len())?;
    whole[start..].copy_from_slice(scalar);
    let key = sec1::EcPrivateKey { private_key: &whole, parameters: None, public_key: None };
    wrap(oid::EC, Some((&curve).into()), &SecretBytes::from(key.to_der().ok()?))
}

/// An Ed25519 key from the parameters of its curve in DER, an object identifier or a name (PKCS#11 3.0 s6.3.5), and its seed. None for another curve's.
pub fn from_edwards(curve: &[u8], seed: &[u8]) -> Option<SecretBytes> {
    let named = PrintableStringRef::from_der(curve).is_ok_and(|name| name.as_str() == "edwards25519");
    let known = named || ObjectIdentifier::from_der(curve) == Ok(oid::ED25519);
    if !known || seed.len() != ED25519_SEED {
        return None;
    }
    // RFC 8410 s7: an octet string of its own within that of PKCS#8.
    let inner = SecretBytes::from(OctetStringRef::new(seed).ok()?.to_der().ok()?);
    wrap(oid::ED25519, None, &inner)
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

fn wrap(oid: ObjectIdentifier, parameters: Option<AnyRef<'_>>, key: &[u8]) -> Option<SecretBytes> {
    let algorithm = pkcs8::AlgorithmIdentifierRef { oid, parameters };
    let info = PrivateKeyInfo::<AnyRef<'_>, &OctetStringRef, BitStringRef<'_>>::new(algorithm, OctetStringRef::new(key).ok()?);
    Some(SecretBytes::from(info.to_der().ok()?))
}

fn wrap_rsa(der: &[u8]) -> Result<SecretBytes, String> {
    let wrong = || "its RSA private key is damaged".to_owned();
    pkcs1::RsaPrivateKeyRef::from_der(der).map_err(|_| wrong())?;
    wrap(oid::RSA, Some(AnyRef::NULL), der).ok_or_else(wrong)
}

fn wrap_ec(der: &[u8]) -> Result<SecretBytes, String> {
    let key = sec1::EcPrivateKey::from_der(der).map_err(|_| "its elliptic-curve private key is damaged")?;
    let curve = key.parameters.as_ref().and_then(|parameters| parameters.named_curve());
    let curve = curve.ok_or("its elliptic-curve private key does not name its curve")?;
    wrap(oid::EC, Some((&curve).into()), der).ok_or_else(|| "its elliptic-curve private key is damaged".into())
}
