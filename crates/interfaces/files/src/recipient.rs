//! Recipients and identities: files for whoever holds a private key. X25519 alone (RFC 7748), or together with ML-KEM-768 (FIPS 203) so that both
//! must be broken; ECDH on NIST P-256 (SP 800-56A s5.7.1.2), for a key that never leaves a broker's vault; or X25519 with a key of SSH's ([`ssh`]).

use crate::error::{Error, Result};
use crate::kdf::{KEY_BYTES, derive};
use crate::nonce::random;
use crate::slot::SlotKind;
use crate::ssh;
use aws_lc_rs::{agreement, digest, kem};
use base64ct::{Base64UrlUnpadded, Encoding};
use bywash_client::{Client, PublicKey, Session};
use bywash_core::{Algorithm, Data, Direction, Key, KeyReference, Operation, SecretBytes, SessionParams};
use core::fmt;
use core::str::FromStr;

/// Bytes of an X25519 key, public or private, and of the secrets agreed on.
const X25519_BYTES: usize = 32;
/// Bytes of a point of P-256, uncompressed (SEC 1 s2.3.3).
const POINT_BYTES: usize = 65;
/// Bytes of an ML-KEM-768 encapsulation key, decapsulation key and ciphertext (FIPS 203 table 3).
const ENCAPSULATION_BYTES: usize = 1184;
const DECAPSULATION_BYTES: usize = 2400;
const CIPHERTEXT_BYTES: usize = 1088;
/// Where the encapsulation key stands in a decapsulation key (FIPS 203 algorithm 16).
const ENCAPSULATION_AT: usize = 1152;
const CHECK_BYTES: usize = 4;

const IDENTITY_X25519: &str = "BYWASH-IDENTITY-X25519-";
const IDENTITY_HYBRID: &str = "BYWASH-IDENTITY-HYBRID-";

/// A public key that files can be encrypted for. As text: `bywash-x25519-...`, `bywash-hybrid-...`, `bywash-p256-...` or `ssh-ed25519 ...`.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient {
    kind: SlotKind,
    /// X25519's key, followed in a hybrid one by ML-KEM-768's; a point of P-256; or one of Ed25519, as SSH has it.
    public: Vec<u8>,
}

/// A private key that opens files for its recipient. As text, secret: `BYWASH-IDENTITY-X25519-...` or `BYWASH-IDENTITY-HYBRID-...`; one that is in a vault, or SSH's, has none.
pub struct Identity {
    private: Private,
    recipient: Recipient,
}

enum Private {
    X25519(SecretBytes),
    /// X25519's and ML-KEM-768's.
    Hybrid(SecretBytes, SecretBytes),
    /// A session whose operations run where the key is.
    Vault(Session),
}

/// A key that cannot be used.
pub(crate) fn failed(what: &str) -> Error {
    Error::BadKey { what: what.into() }
}

impl Identity {
    /// A new one; hybrid, or X25519 alone.
    ///
    /// # Errors
    /// [`Error::BadKey`] or [`Error::Io`] if there is no randomness.
    pub fn generate(hybrid: bool) -> Result<Self> {
        let mut x25519 = SecretBytes::zeroed(X25519_BYTES);
        random(&mut x25519)?;
        if !hybrid {
            return Self::x25519(x25519);
        }
        let key = kem::DecapsulationKey::generate(&kem::ML_KEM_768).map_err(|_| failed("ML-KEM-768 made no key"))?;
        Self::hybrid(x25519, key.key_bytes().map_err(|_| failed("ML-KEM-768 gave no key"))?.as_ref().into())
    }

    fn x25519(private: SecretBytes) -> Result<Self> {
        let recipient = Recipient { kind: SlotKind::X25519, public: public_of(&private)? };
        Ok(Self { private: Private::X25519(private), recipient })
    }

    fn hybrid(private: SecretBytes, decapsulation: SecretBytes) -> Result<Self> {
        let mut public = public_of(&private)?;
        public.extend_from_slice(&decapsulation[ENCAPSULATION_AT..][..ENCAPSULATION_BYTES]);
        Ok(Self { private: Private::Hybrid(private, decapsulation), recipient: Recipient { kind: SlotKind::Hybrid, public } })
    }

    /// SSH's key, by the private scalar of Ed25519.
    pub(crate) fn ssh(scalar: SecretBytes, recipient: Recipient) -> Result<Self> {
        match public_of(&scalar)? == recipient.x25519()? {
            true => Ok(Self { private: Private::X25519(scalar), recipient }),
            false => Err(failed("this SSH key's two halves do not belong together")),
        }
    }

    /// A P-256 key in the broker's vault that may be used to derive, by its name. Each file that it opens costs one operation there; the key stays there.
    ///
    /// # Errors
    /// Those of [`Recipient::in_vault`].
    pub fn in_vault(client: &Client, name: &str) -> Result<Self> {
        Self::at_vault(client, client.vault_key(name, None)?)
    }

    /// The same by its key file, which has its public half: so one that has been rotated since is found as long as it serves.
    ///
    /// # Errors
    /// Those of [`Recipient::in_vault`].
    pub fn by_key_file(client: &Client, file: &KeyReference) -> Result<Self> {
        Self::at_vault(client, client.vault_key(&file.name, Some(&file.public))?)
    }

    fn at_vault(client: &Client, reference: KeyReference) -> Result<Self> {
        let recipient = Recipient::at_vault(&reference)?;
        let session = client.session(SessionParams::new(Algorithm::EcdhP256, Key::Vault(reference))?)?;
        // Before files are: what it may not be used for is said at once.
        agree_in_vault(&session, &recipient.public)?;
        Ok(Self { private: Private::Vault(session), recipient })
    }

    /// Its public half.
    pub fn recipient(&self) -> &Recipient {
        &self.recipient
    }

    /// As text for a file that nobody else reads; none for one in a vault, which nobody reads, and for SSH's, which has a file.
    pub fn to_secret_text(&self) -> Option<SecretBytes> {
        match &self.private {
            Private::X25519(_) if self.recipient.kind == SlotKind::Ssh => None,
            Private::X25519(key) => Some(secret_text(IDENTITY_X25519, key)),
            Private::Hybrid(key, more) => Some(secret_text(IDENTITY_HYBRID, &joined(&[key, more]))),
            Private::Vault(_) => None,
        }
    }

    /// From its text.
    ///
    /// # Errors
    /// [`Error::BadKey`], which does not repeat the text.
    pub fn from_secret_text(text: &str) -> Result<Self> {
        let unknown = || failed("this is no identity: it begins with neither BYWASH-IDENTITY-X25519- nor BYWASH-IDENTITY-HYBRID-");
        if let Some(text) = text.strip_prefix(IDENTITY_X25519) {
            return Self::x25519(from_text(IDENTITY_X25519, text, X25519_BYTES)?);
        }
        let text = text.strip_prefix(IDENTITY_HYBRID).ok_or_else(unknown)?;
        let bytes = from_text(IDENTITY_HYBRID, text, X25519_BYTES + DECAPSULATION_BYTES)?;
        let (x25519, decapsulation) = bytes.split_at(X25519_BYTES);
        Self::hybrid(x25519.into(), decapsulation.into())
    }

    /// What slots it may open.
    pub(crate) fn kind(&self) -> SlotKind {
        self.recipient.kind
    }

    /// The key-encryption key of a slot, right or wrong.
    pub(crate) fn open(&self, body: &[u8]) -> Result<SecretBytes> {
        if body.len() != self.recipient.body_len() {
            return Err(Error::DamagedHeader { what: "a recipient's slot has a length that cannot be" });
        }
        match &self.private {
            Private::X25519(key) => combine(&self.recipient, body, &[&agree(&x25519(key)?, body)?]),
            Private::Hybrid(key, decapsulation) => {
                let (ephemeral, ciphertext) = body.split_at(X25519_BYTES);
                let first = agree(&x25519(key)?, ephemeral)?;
                let key = kem::DecapsulationKey::new(&kem::ML_KEM_768, decapsulation).map_err(|_| failed("this is no ML-KEM-768 key"))?;
                let no_ciphertext = |_| Error::DamagedHeader { what: "an ML-KEM-768 ciphertext is none" };
                let second = key.decapsulate(ciphertext.into()).map_err(no_ciphertext)?;
                combine(&self.recipient, body, &[second.as_ref(), &first])
            }
            Private::Vault(session) => combine(&self.recipient, body, &[&agree_in_vault(session, body)?]),
        }
    }
}

impl Recipient {
    /// The kinds, with what their texts begin with and how long their keys are.
    const KINDS: [(SlotKind, &str, usize); 3] = [
        (SlotKind::X25519, "bywash-x25519-", X25519_BYTES),
        (SlotKind::Hybrid, "bywash-hybrid-", X25519_BYTES + ENCAPSULATION_BYTES),
        (SlotKind::P256, "bywash-p256-", POINT_BYTES),
    ];

    /// The recipient that a P-256 key in the broker's vault is. What is encrypted for it can be opened as long as the vault has that key, by its key file once another has its name.
    ///
    /// # Errors
    /// [`Error::Engine`]: no such key, no right to it, also to derive with it, no broker. [`Error::BadKey`] for a key of another kind.
    pub fn in_vault(client: &Client, name: &str) -> Result<Self> {
        Ok(Identity::in_vault(client, name)?.recipient)
    }

    /// The same by the key's file (`bywash key uri`).
    ///
    /// # Errors
    /// As [`in_vault`](Self::in_vault); [`Error::BadKey`] too if another key has its name by now: the vault forgets the old one.
    pub fn by_key_file(client: &Client, file: &KeyReference) -> Result<Self> {
        let recipient = Self::in_vault(client, &file.name)?;
        match recipient == Self::at_vault(file)? {
            true => Ok(recipient),
            false => Err(failed(&format!(
                "this key file is of before the key was rotated, and opens files alone; encrypt to bywash:{}",
                file.name
            ))),
        }
    }

    fn at_vault(file: &KeyReference) -> Result<Self> {
        match PublicKey::from_der(&file.public) {
            Some(PublicKey::P256(point)) => Ok(Self { kind: SlotKind::P256, public: point }),
            _ => {
                let what = format!(
                    "the vault's key {} is not of the kind p256; make one with `bywash key generate NAME --algorithm p256 --allow derive`",
                    file.name
                );
                Err(Error::BadKey { what })
            }
        }
    }

    /// SSH's key by its point of Ed25519, which must be one.
    pub(crate) fn ssh(point: [u8; X25519_BYTES]) -> Self {
        Self { kind: SlotKind::Ssh, public: point.to_vec() }
    }

    /// The public key of X25519 in it.
    fn x25519(&self) -> Result<[u8; X25519_BYTES]> {
        if self.kind == SlotKind::Ssh {
            return ssh::x25519_of(&self.public);
        }
        let key = self.public.first_chunk();
        key.copied().ok_or_else(|| failed("this recipient has no X25519 key"))
    }

    /// The kind of slot it gets.
    pub(crate) fn kind(&self) -> SlotKind {
        self.kind
    }

    /// Length of its slots' bodies.
    fn body_len(&self) -> usize {
        match self.kind {
            SlotKind::P256 => POINT_BYTES,
            SlotKind::Hybrid => X25519_BYTES + CIPHERTEXT_BYTES,
            _ => X25519_BYTES,
        }
    }

    /// A key-encryption key that only its identity finds again, and the slot body to find it by.
    pub(crate) fn encapsulate(&self) -> Result<(SecretBytes, Vec<u8>)> {
        if self.kind == SlotKind::P256 {
            let ephemeral = agreement::PrivateKey::generate(&agreement::ECDH_P256).map_err(|_| failed("P-256 made no key"))?;
            let (shared, body) = (agree(&ephemeral, &self.public)?, public_bytes(&ephemeral)?);
            return Ok((combine(self, &body, &[&shared])?, body));
        }
        let mut secret = SecretBytes::zeroed(X25519_BYTES);
        random(&mut secret)?;
        let ephemeral = x25519(&secret)?;
        let (shared, mut body) = (agree(&ephemeral, &self.x25519()?)?, public_bytes(&ephemeral)?);
        if self.kind != SlotKind::Hybrid {
            return Ok((combine(self, &body, &[&shared])?, body));
        }
        let encapsulation = &self.public[X25519_BYTES..];
        let key = kem::EncapsulationKey::new(&kem::ML_KEM_768, encapsulation).map_err(|_| failed("this is no ML-KEM-768 key"))?;
        let (ciphertext, second) =
            key.encapsulate().map_err(|_| failed("this recipient's ML-KEM-768 key cannot be used; ask for it again"))?;
        body.extend_from_slice(ciphertext.as_ref());
        Ok((combine(self, &body, &[second.as_ref(), &shared])?, body))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (SlotKind::Ssh, Some(point)) = (self.kind, self.public.first_chunk()) {
            return f.write_str(&ssh::text_of(*point));
        }
        let name = Self::KINDS.into_iter().find(|(kind, ..)| *kind == self.kind).map_or("", |(_, name, _)| name);
        f.write_str(&String::from_utf8_lossy(&secret_text(name, &self.public)))
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Recipient {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        for (kind, name, len) in Self::KINDS {
            if let Some(text) = text.strip_prefix(name) {
                return Ok(Self { kind, public: from_text(name, text, len)?.to_vec() });
            }
        }
        if ssh::is_public(text) {
            return ssh::recipient(text);
        }
        Err(failed("this is no recipient: it begins with none of bywash-x25519-, bywash-hybrid-, bywash-p256-, and is no SSH key"))
    }
}

fn x25519(bytes: &[u8]) -> Result<agreement::PrivateKey> {
    agreement::PrivateKey::from_private_key(&agreement::X25519, bytes).map_err(|_| failed("this is no X25519 key"))
}

fn public_of(private: &[u8]) -> Result<Vec<u8>> {
    public_bytes(&x25519(private)?)
}

fn public_bytes(key: &agreement::PrivateKey) -> Result<Vec<u8>> {
    Ok(key.compute_public_key().map_err(|_| failed("this key has no public half"))?.as_ref().to_vec())
}

/// X25519, of which a public key whose result is zero (RFC 7748 s6.1) is an error, or ECDH on P-256, of which one that is no point of it is.
fn agree(own: &agreement::PrivateKey, public: &[u8]) -> Result<SecretBytes> {
    let public = agreement::UnparsedPublicKey::new(own.algorithm(), public);
    agreement::agree(own, public, failed("this public key cannot be used"), |shared| Ok(shared.into()))
}

/// ECDH where the private key is.
fn agree_in_vault(session: &Session, point: &[u8]) -> Result<SecretBytes> {
    let mut shared = SecretBytes::zeroed(X25519_BYTES);
    let data = Data::Copy { input: point, output: &mut shared };
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })?;
    Ok(shared)
}

/// One key from the shared secrets, bound to both public keys and to all that was sent.
fn combine(recipient: &Recipient, body: &[u8], secrets: &[&[u8]]) -> Result<SecretBytes> {
    let public = digest::digest(&digest::SHA256, &[&recipient.public, body].concat());
    derive(public.as_ref(), &joined(secrets), &[b"bywash-files/1 recipient", &[recipient.kind as u8]], KEY_BYTES)
}

fn joined(parts: &[&[u8]]) -> SecretBytes {
    let mut all = SecretBytes::zeroed(parts.iter().map(|part| part.len()).sum());
    let mut rest = &mut all[..];
    for part in parts {
        let (front, back) = rest.split_at_mut(part.len());
        front.copy_from_slice(part);
        rest = back;
    }
    all
}

/// A check sum against typing errors: of the name and the key.
fn check_sum(name: &str, key: &[u8]) -> [u8; CHECK_BYTES] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(name.as_bytes());
    context.update(key);
    let mut sum = [0; CHECK_BYTES];
    sum.copy_from_slice(&context.finish().as_ref()[..CHECK_BYTES]);
    sum
}

fn secret_text(name: &str, key: &[u8]) -> SecretBytes {
    let bytes = joined(&[key, &check_sum(name, key)]);
    let mut text = SecretBytes::zeroed(name.len() + Base64UrlUnpadded::encoded_len(&bytes));
    text[..name.len()].copy_from_slice(name.as_bytes());
    // The room is exactly what the encoding takes, so it cannot fail.
    let written = Base64UrlUnpadded::encode(&bytes, &mut text[name.len()..]).map(str::len);
    debug_assert!(written.is_ok());
    text
}

fn from_text(name: &str, text: &str, len: usize) -> Result<SecretBytes> {
    let wrong = || failed(&format!("this key ({name}...) is incomplete or has a typing error; copy it again"));
    let mut bytes = SecretBytes::zeroed(len + CHECK_BYTES);
    let read = Base64UrlUnpadded::decode(text.trim_end(), &mut bytes).map_err(|_| wrong())?.len();
    let (key, sum) = bytes.split_at(len);
    if read != len + CHECK_BYTES || check_sum(name, key) != sum {
        return Err(wrong());
    }
    Ok(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_and_show_typing_errors() {
        for hybrid in [false, true] {
            let identity = Identity::generate(hybrid).unwrap();
            let text = String::from_utf8(identity.to_secret_text().unwrap().to_vec()).unwrap();
            let again = Identity::from_secret_text(&text).unwrap();
            assert_eq!(again.recipient(), identity.recipient());
            let public = identity.recipient().to_string();
            assert_eq!(public.parse::<Recipient>().unwrap(), *identity.recipient());
            let typo = public[..40].to_owned() + if &public[40..41] == "A" { "B" } else { "A" } + &public[41..];
            assert!(typo.parse::<Recipient>().unwrap_err().to_string().contains("typing error"));
            assert!(public[..public.len() - 3].parse::<Recipient>().is_err());
            let error = Identity::from_secret_text(&text[..text.len() - 1]).err().unwrap().to_string();
            assert!(!error.contains(&text[30..50]), "{error}");
        }
        let point = |len| secret_text("bywash-p256-", &vec![4; len]);
        let text = String::from_utf8(point(POINT_BYTES).to_vec()).unwrap();
        let recipient: Recipient = text.parse().unwrap();
        assert_eq!((recipient.kind(), recipient.to_string()), (SlotKind::P256, text));
        assert!(recipient.encapsulate().is_err(), "no point of the curve");
        assert!(String::from_utf8(point(POINT_BYTES - 1).to_vec()).unwrap().parse::<Recipient>().is_err());
        assert!("age1xyz".parse::<Recipient>().is_err() && Identity::from_secret_text("AGE-SECRET-KEY-1").is_err());
    }

    #[test]
    fn only_the_identity_finds_the_key_again() {
        for hybrid in [false, true] {
            let (identity, other) = (Identity::generate(hybrid).unwrap(), Identity::generate(hybrid).unwrap());
            let (key, body) = identity.recipient().encapsulate().unwrap();
            assert_eq!(identity.open(&body).unwrap(), key);
            assert_ne!(other.open(&body).unwrap(), key);
            assert!(matches!(identity.open(&body[1..]), Err(Error::DamagedHeader { .. })));
            for at in [0, body.len() - 1] {
                let mut changed = body.clone();
                changed[at] ^= 1;
                assert!(identity.open(&changed).map_or(true, |opened| opened != key));
            }
            let zeros = [&[0; 32][..], &body[32..]].concat();
            assert!(identity.open(&zeros).is_err(), "a public key of small order");
        }
    }
}
