//! SSH keys as recipients and identities, as age takes them: of the kind ssh-ed25519. A point of Ed25519 is one of X25519's after a map (RFC 7748 s4.1), and the private
//! scalar is the same (RFC 8032 s5.1.5), so what is encrypted is agreed on by X25519; that one key may sign and agree is argued in [Thormarker 2021](https://eprint.iacr.org/2021/509).

use crate::error::{Error, Result};
use crate::recipient::{Identity, Recipient, failed};
use bywash_core::SecretBytes;
use curve25519_dalek::edwards::CompressedEdwardsY;
use sha2::{Digest, Sha512};
use ssh_key::private::KeypairData;
use ssh_key::public::{Ed25519PublicKey, KeyData};
use ssh_key::{Cipher, PrivateKey, PublicKey};
use zeroize::Zeroizing;

/// Bytes of a key of either kind.
const KEY_BYTES: usize = 32;
/// What a private key's text begins with.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
/// What public keys' texts begin with.
const KINDS: [&str; 4] = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];

fn of_other_kind(kind: &str) -> Error {
    failed(&format!("nothing is encrypted for an SSH key of the kind {kind}; take one of the kind ssh-ed25519 (`ssh-keygen -t ed25519`)"))
}

/// Whether a text is meant as an SSH public key.
pub fn is_public(text: &str) -> bool {
    KINDS.iter().any(|kind| text.starts_with(kind)) && text.split_ascii_whitespace().nth(1).is_some()
}

/// Whether a text is an SSH private key.
pub fn is_private(text: &str) -> bool {
    text.trim_start().starts_with(BEGIN)
}

/// The recipient that a line of `id_ed25519.pub` or `authorized_keys` without options is.
pub(crate) fn recipient(line: &str) -> Result<Recipient> {
    // One of a kind that is not known here may be written in a way that is not either.
    let kind = line.split_ascii_whitespace().next().unwrap_or_default();
    if kind != "ssh-ed25519" {
        return Err(of_other_kind(kind));
    }
    let key = PublicKey::from_openssh(line).map_err(|_| failed("this SSH key is incomplete or has a typing error; copy it again"))?;
    recipient_of(&key)
}

fn recipient_of(key: &PublicKey) -> Result<Recipient> {
    let KeyData::Ed25519(Ed25519PublicKey(point)) = key.key_data() else { return Err(of_other_kind(key.algorithm().as_str())) };
    x25519_of(point)?;
    Ok(Recipient::ssh(*point))
}

/// As a line of `authorized_keys`, without a comment.
pub(crate) fn text_of(point: [u8; KEY_BYTES]) -> String {
    PublicKey::from(Ed25519PublicKey(point)).to_openssh().unwrap_or_default()
}

/// The public key of X25519 that belongs to one of Ed25519.
pub(crate) fn x25519_of(point: &[u8]) -> Result<[u8; KEY_BYTES]> {
    let point = CompressedEdwardsY::from_slice(point).ok().and_then(|point| point.decompress());
    // What is agreed on with one of a small order everybody knows (RFC 7748 s6.1).
    let point = point.filter(|point| !point.is_small_order());
    let point = point.ok_or_else(|| failed("this SSH key is no point of its curve, or one that hides nothing; ask for it again"))?;
    Ok(point.to_montgomery().to_bytes())
}

/// A private key as OpenSSH keeps it, encrypted or not.
pub struct SshKey(PrivateKey);

impl SshKey {
    /// From its text.
    ///
    /// # Errors
    /// [`Error::BadKey`], which does not repeat the text.
    pub fn parse(text: &str) -> Result<Self> {
        let key = PrivateKey::from_openssh(text.trim()).map_err(|error| failed(&format!("this SSH key cannot be read: {error}")))?;
        Ok(Self(key))
    }

    /// Whether it takes a passphrase to use it.
    ///
    /// # Errors
    /// [`Error::BadKey`] if none helps, since it is encrypted by a cipher that is not here.
    pub fn needs_passphrase(&self) -> Result<bool> {
        if self.0.cipher() == Cipher::TdesCbc {
            let way_out = "encrypt it anew (`ssh-keygen -p -Z aes256-ctr -f KEY`)";
            return Err(failed(&format!("this SSH key is encrypted by 3des-cbc, which is not read here; {way_out}")));
        }
        Ok(self.0.is_encrypted())
    }

    /// Its public half, which is there without a passphrase. Nothing proves that it belongs to the private one.
    ///
    /// # Errors
    /// [`Error::BadKey`] for other kinds than ssh-ed25519.
    pub fn recipient(&self) -> Result<Recipient> {
        recipient_of(self.0.public_key())
    }

    /// The identity that it is.
    ///
    /// # Errors
    /// [`Error::WrongPassphrase`], also for none where one is needed; [`Error::BadKey`] for other kinds than ssh-ed25519.
    pub fn identity(&self, passphrase: Option<&[u8]>) -> Result<Identity> {
        let recipient = self.recipient()?;
        let opened = match (self.needs_passphrase()?, passphrase) {
            (true, Some(passphrase)) => Some(self.0.decrypt(passphrase).map_err(|_| Error::WrongPassphrase)?),
            (true, None) => return Err(Error::WrongPassphrase),
            (false, _) => None,
        };
        let KeypairData::Ed25519(pair) = opened.as_ref().unwrap_or(&self.0).key_data() else {
            return Err(of_other_kind(self.0.algorithm().as_str()));
        };
        let (mut hash, mut scalar) = (Zeroizing::new([0; 2 * KEY_BYTES]), SecretBytes::zeroed(KEY_BYTES));
        Sha512::new_with_prefix(pair.private.as_ref()).finalize_into((&mut *hash).into());
        scalar.copy_from_slice(&hash[..KEY_BYTES]);
        Identity::ssh(scalar, recipient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `ssh-keygen -t ed25519 -C note`, the second with the passphrase `correct horse`.
    const KEYS: [(&str, &str, Option<&[u8]>); 2] = [
        (include_str!("../tests/ssh/id_ed25519"), include_str!("../tests/ssh/id_ed25519.pub"), None),
        (include_str!("../tests/ssh/encrypted"), include_str!("../tests/ssh/encrypted.pub"), Some(b"correct horse")),
    ];

    #[test]
    fn what_is_encrypted_for_a_key_its_private_half_opens() {
        for (private, public, passphrase) in KEYS {
            assert!(is_private(private) && is_public(public) && !is_private(public));
            let key = SshKey::parse(private).unwrap();
            assert_eq!(key.needs_passphrase().unwrap(), passphrase.is_some());
            let recipient: Recipient = public.trim().parse().unwrap();
            assert_eq!(key.recipient().unwrap(), recipient);
            assert_eq!(format!("{recipient} note"), public.trim());
            let identity = key.identity(passphrase).unwrap();
            assert!(identity.to_secret_text().is_none());
            let (kek, body) = recipient.encapsulate().unwrap();
            assert_eq!(identity.open(&body).unwrap(), kek);
            let other = Identity::generate(false).unwrap();
            assert_ne!(other.open(&body).unwrap(), kek);
        }
        let [first, second] = KEYS.map(|(private, _, passphrase)| SshKey::parse(private).unwrap().identity(passphrase).unwrap());
        let (kek, body) = first.recipient().encapsulate().unwrap();
        assert_ne!(second.open(&body).unwrap(), kek);
    }

    #[test]
    fn what_is_encrypted_in_an_old_way_is_told_as_such() {
        // `ssh-keygen -t ed25519 -N 'correct horse' -Z 3des-cbc`
        let key = SshKey::parse(include_str!("../tests/ssh/3des-cbc")).unwrap();
        assert!(key.identity(Some(b"correct horse")).err().unwrap().to_string().contains("ssh-keygen -p -Z aes256-ctr"));
    }

    #[test]
    fn a_wrong_passphrase_is_told_as_such() {
        let key = SshKey::parse(KEYS[1].0).unwrap();
        assert!([None, Some(&b"wrong"[..])].into_iter().all(|given| matches!(key.identity(given), Err(Error::WrongPassphrase))));
    }

    #[test]
    fn keys_of_other_kinds_are_refused_in_words() {
        let said = |line: &str| line.parse::<Recipient>().unwrap_err().to_string();
        for line in ["ssh-rsa AAAAB3NzaC1yc2E= a", "ecdsa-sha2-nistp256 AAAA", "sk-ssh-ed25519@openssh.com AAAA"] {
            assert!(said(line).contains(line.split(' ').next().unwrap()) && said(line).contains("ssh-keygen -t ed25519"), "{}", said(line));
        }
        let public = KEYS[0].1.trim();
        assert!(said(&public[..60]).contains("typing error"), "{}", said(&public[..60]));
        assert!(said("ssh-ed25519").contains("this is no recipient"), "a file may be called so");
        assert!(SshKey::parse(&KEYS[0].0[..200]).is_err());
        // y = 2 is of no point.
        let none = text_of([&[2][..], &[0; 31]].concat().try_into().unwrap());
        assert!(said(&none).contains("no point of its curve"), "{}", said(&none));
        // The neutral element.
        let small = text_of([&[1][..], &[0; 31]].concat().try_into().unwrap());
        assert!(said(&small).contains("hides nothing"), "{}", said(&small));
    }
}
