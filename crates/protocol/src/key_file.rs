//! The file that stands in for a private key: a PEM block with the key's URI and its public half.
//!
//! ```text
//! -----BEGIN BYWASH KEY URI-----
//! base64 of the DER of SEQUENCE { version INTEGER (0), uri UTF8String, publicKey SubjectPublicKeyInfo }
//! -----END BYWASH KEY URI-----
//! ```
//!
//! It holds no secret. Servers are given it where they want a key file; our provider reads it and asks the broker.

use crate::keys::key_error;
use crate::public_key::PublicKey;
use bywash_core::{Error, KeyReference, Result};
use der::asn1::{AnyRef, Utf8StringRef};
use der::{Decode, Encode, Sequence};

/// The PEM block's label.
pub const LABEL: &str = "BYWASH KEY URI";
/// No such file is longer in DER, in bytes: the public half of an RSA-4096 key takes 550, and a name at most 64.
pub const DER_MAX: usize = 1024;

#[derive(Sequence)]
struct Body<'a> {
    version: u8,
    uri: Utf8StringRef<'a>,
    public: AnyRef<'a>,
}

/// Writes the file.
///
/// # Errors
/// [`Error::VaultKey`] if the reference holds no public key.
pub fn write(reference: &KeyReference) -> Result<String> {
    pem_rfc7468::encode_string(LABEL, pem_rfc7468::LineEnding::LF, &to_der(reference)?).map_err(|_| unwritable(reference))
}

/// Writes what the PEM block holds.
///
/// # Errors
/// As [`write()`].
pub fn to_der(reference: &KeyReference) -> Result<Vec<u8>> {
    let failed = || unwritable(reference);
    let uri = reference.uri();
    let public = AnyRef::from_der(&reference.public).map_err(|_| failed())?;
    let body = Body { version: 0, uri: Utf8StringRef::new(&uri).map_err(|_| failed())?, public };
    body.to_der().map_err(|_| failed())
}

fn unwritable(reference: &KeyReference) -> Error {
    key_error(&reference.name, "its public half cannot be written; import the key again")
}

/// Reads one PEM block of that label.
///
/// # Errors
/// [`Error::VaultKey`], saying what is wrong with it.
pub fn read(pem: &str) -> Result<KeyReference> {
    let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|_| damaged("not PEM"))?;
    if label != LABEL {
        return Err(damaged("another kind of PEM block"));
    }
    read_der(&der)
}

/// Reads what the PEM block holds.
///
/// # Errors
/// As [`read`].
pub fn read_der(der: &[u8]) -> Result<KeyReference> {
    let body = Body::from_der(der).map_err(|_| damaged("not the DER expected"))?;
    if body.version != 0 {
        return Err(damaged("written by a later release"));
    }
    let reference = KeyReference { name: name_of(body.uri.as_str())?.to_owned(), public: body.public.to_der().unwrap_or_default() };
    match PublicKey::from_der(&reference.public).and_then(|key| key.algorithm()) {
        Some(_) => Ok(reference),
        None => Err(damaged("its public key is of no kind that a vault keeps")),
    }
}

fn damaged(what: &str) -> Error {
    key_error("?", format!("the key file is damaged ({what}); write it again with `bywash key uri NAME`"))
}

/// The name in a URI.
///
/// # Errors
/// [`Error::VaultKey`] for anything that is no URI of a vault key.
pub fn name_of(uri: &str) -> Result<&str> {
    let name = uri.strip_prefix(KeyReference::SCHEME).ok_or_else(|| key_error("?", "a key's URI is bywash:NAME"))?;
    KeyReference::check_name(name).map(|()| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> KeyReference {
        let public = PublicKey::P256([&[4][..], &[7; 64]].concat()).to_der().unwrap();
        KeyReference { name: "www.example.org".into(), public }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = write(&reference()).unwrap();
        assert!(text.starts_with("-----BEGIN BYWASH KEY URI-----\n"), "{text}");
        assert_eq!(read(&text).unwrap(), reference());
        let der = to_der(&reference()).unwrap();
        assert_eq!(read_der(&der).unwrap(), reference());
        (0..der.len()).for_each(|cut| assert!(read_der(&der[..cut]).is_err(), "cut at {cut}"));
    }

    #[test]
    fn the_longest_file_is_within_its_bound() {
        let public = PublicKey::Rsa { modulus: vec![0xC1; 512], exponent: vec![0xFF; 4] }.to_der().unwrap();
        let longest = KeyReference { name: "x".repeat(64), public };
        assert!(to_der(&longest).unwrap().len() <= DER_MAX);
    }

    #[test]
    fn damaged_files_say_so() {
        let text = write(&reference()).unwrap();
        let spoilt = [text.replace("URI", "URL"), text[..text.len() / 2].to_owned(), String::new(), text.replacen('M', "A", 1)];
        for text in spoilt {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains("bywash key uri NAME"), "{error}");
        }
        assert!(name_of("file:web").is_err() && name_of("bywash:../web").is_err());
        assert_eq!(name_of("bywash:web"), Ok("web"));
    }
}
