//! The parts of a key as engines take them, and their way in and out of OpenSSL's parameters.

use super::gather::compute;
use super::key::{Kind, TwinKey};
use super::nist::Nist;
use super::pairs::{self, Pair};
use crate::ffi::abi::{OCTET_STRING, UNMODIFIED, UNSIGNED_INTEGER, UTF8_STRING};
use crate::ffi::ids::keymgmt::{SELECT_DOMAIN_PARAMETERS, SELECT_PRIVATE_KEY, SELECT_PUBLIC_KEY};
use crate::ffi::{OwnedParams, Param, Params};
use crate::random::random_secret;
use bywash_client::Client;
use bywash_core::{Algorithm, Key as CoreKey, RsaPrivateKey, RsaPublicKey, SecretBytes, SessionParams};
use core::ffi::{CStr, c_int};
use zeroize::Zeroizing;

/// A group on which engines compute, and what they compute there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Nist(Nist),
    X25519,
    Ed25519,
}

impl Group {
    /// Length of a private key in bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::Nist(curve) => curve.size(),
            Self::X25519 | Self::Ed25519 => 32,
        }
    }

    /// How engines sign.
    pub(super) const fn signature(self) -> Option<Algorithm> {
        match self {
            Self::Nist(Nist::P256) => Some(Algorithm::EcdsaP256Sign),
            Self::Nist(Nist::P384) => Some(Algorithm::EcdsaP384Sign),
            Self::Ed25519 => Some(Algorithm::Ed25519Sign),
            Self::X25519 => None,
        }
    }

    /// How they verify.
    pub(super) const fn verification(self) -> Option<Algorithm> {
        match self {
            Self::Nist(Nist::P256) => Some(Algorithm::EcdsaP256Verify),
            Self::Nist(Nist::P384) => Some(Algorithm::EcdsaP384Verify),
            Self::X25519 | Self::Ed25519 => None,
        }
    }

    /// How they agree on a secret.
    pub(super) const fn agreement(self) -> Option<Algorithm> {
        match self {
            Self::Nist(Nist::P256) => Some(Algorithm::EcdhP256),
            Self::Nist(Nist::P384) => Some(Algorithm::EcdhP384),
            Self::X25519 => Some(Algorithm::X25519),
            Self::Ed25519 => None,
        }
    }

    /// How they make the public value of a private key.
    pub(super) const fn public_value(self) -> Option<Algorithm> {
        match self {
            Self::Nist(Nist::P256) => Some(Algorithm::EcdhP256Public),
            Self::Nist(Nist::P384) => Some(Algorithm::EcdhP384Public),
            Self::X25519 => Some(Algorithm::X25519Public),
            Self::Ed25519 => None,
        }
    }

    /// The public value of a private key, by an engine. None sends the caller to the twin.
    fn public_of(self, private: &SecretBytes, client: &Client) -> Option<Vec<u8>> {
        let algorithm = self.public_value()?;
        let session = client.session(SessionParams::new(algorithm, CoreKey::EcPrivate(private.clone())).ok()?).ok()?;
        let mut public = vec![0; algorithm.output_len(0)];
        compute(&session, &[], &mut public, &mut [])?;
        Some(public)
    }

    /// New private keys for agreements: one draw from the generator takes as long for many as for one.
    pub(super) fn private_keys(self, count: usize) -> Option<Vec<SecretBytes>> {
        let mut drawn = SecretBytes::zeroed(count * self.size());
        if !random_secret(&mut drawn) {
            return None;
        }
        drawn.chunks_exact(self.size()).map(|bytes| self.private_key_of(bytes.into())).collect()
    }

    /// A private key of random bytes.
    fn private_key_of(self, mut bytes: SecretBytes) -> Option<SecretBytes> {
        match self {
            // Each try succeeds but for one in 2^32 at most; so many failures would be a broken generator.
            Self::Nist(curve) => {
                (0..16).find(|&tries| (tries == 0 || random_secret(&mut bytes)) && curve.is_scalar(&bytes))?;
            }
            Self::X25519 => {
                // As the default provider keeps them: clamped (RFC 7748 s5).
                bytes[0] &= 248;
                bytes[31] = bytes[31] & 127 | 64;
            }
            Self::Ed25519 => return None,
        }
        Some(bytes)
    }
}

/// What an engine must know of a key.
pub(super) enum Parts {
    /// A two-prime private key with its CRT parts, of a size that engines know.
    Rsa(Algorithm, RsaPrivateKey),
    /// A key in a group that engines know.
    Curve(Curve),
}

/// A key in a group that engines know; on NIST's curves with a public value that is uncompressed and on the curve, and a scalar in range.
#[derive(Clone)]
pub(super) struct Curve {
    pub(super) group: Group,
    pub(super) public: Option<Vec<u8>>,
    pub(super) private: Option<SecretBytes>,
}

/// Room for the twin to write numbers into.
struct Room(Zeroizing<Vec<Vec<u8>>>);

impl Parts {
    /// The parts of a key that the twin made; none if engines cannot use them.
    pub(super) fn of_twin(kind: Kind, twin: &TwinKey) -> Option<Self> {
        match kind {
            Kind::Rsa => rsa_of_twin(twin),
            Kind::Ec => Curve::nist_of_twin(twin).map(Self::Curve),
            Kind::X25519 => Curve::edwards_of_twin(kind, Group::X25519, twin).map(Self::Curve),
            Kind::Ed25519 => Curve::edwards_of_twin(kind, Group::Ed25519, twin).map(Self::Curve),
        }
    }
}

/// Asks the twin for numbers or octets of these names, each with this much room; none for those it does not have.
fn ask(kind: Kind, twin: &TwinKey, data_type: u32, names: &[(&'static CStr, usize)]) -> Option<Vec<Option<SecretBytes>>> {
    let mut room = Room(Zeroizing::new(names.iter().map(|&(_, size)| vec![0; size]).collect()));
    let mut params: Vec<Param> = names
        .iter()
        .zip(room.0.iter_mut())
        .map(|((name, size), room)| Param::new(name, data_type, room.as_mut_ptr().cast(), *size))
        .collect();
    params.push(Param::END);
    if super::twin::call!(kind.fns()?, get_params(twin.data(), params.as_mut_ptr()), else 0) != 1 {
        return None;
    }
    let answer = |param: &Param| {
        let bytes = if data_type == UNSIGNED_INTEGER {
            param.big_endian().map(SecretBytes::from)
        } else {
            param.octets().map(|octets| octets[..param.return_size.min(octets.len())].into())
        };
        bytes.filter(|_| param.return_size != UNMODIFIED)
    };
    Some(params[..names.len()].iter().map(answer).collect())
}

fn ask_bits(kind: Kind, twin: &TwinKey) -> Option<usize> {
    let mut bits: c_int = 0;
    let mut params = [Param::new(c"bits", crate::ffi::abi::INTEGER, (&raw mut bits).cast(), size_of::<c_int>()), Param::END];
    let done = super::twin::call!(kind.fns()?, get_params(twin.data(), params.as_mut_ptr()), else 0) == 1;
    usize::try_from(bits).ok().filter(|_| done)
}

fn rsa_of_twin(twin: &TwinKey) -> Option<Parts> {
    let bits = ask_bits(Kind::Rsa, twin)?;
    let algorithm = match bits {
        1024 => Algorithm::Rsa1024Private,
        2048 => Algorithm::Rsa2048Private,
        3072 => Algorithm::Rsa3072Private,
        4096 => Algorithm::Rsa4096Private,
        _ => return None,
    };
    let names = [c"n", c"e", c"d", c"rsa-factor1", c"rsa-factor2", c"rsa-exponent1", c"rsa-exponent2", c"rsa-coefficient1", c"rsa-factor3"];
    let asked = names.map(|name| (name, bits / 8));
    let [modulus, exponent, private_exponent, prime1, prime2, exponent1, exponent2, coefficient, prime3] =
        ask(Kind::Rsa, twin, UNSIGNED_INTEGER, &asked)?.try_into().ok()?;
    if prime3.is_some() {
        return None;
    }
    let public = RsaPublicKey { modulus: modulus?.to_vec(), exponent: exponent?.to_vec() };
    let key = RsaPrivateKey {
        public,
        private_exponent: private_exponent?,
        prime1: prime1?,
        prime2: prime2?,
        exponent1: exponent1?,
        exponent2: exponent2?,
        coefficient: coefficient?,
    };
    Some(Parts::Rsa(algorithm, key))
}

/// A secret number with its leading zeros cut or filled up to a scalar of the curve.
fn scalar(curve: Nist, number: &[u8]) -> Option<SecretBytes> {
    let (excess, digits) = number.split_at(number.len().saturating_sub(curve.size()));
    let mut scalar = SecretBytes::zeroed(curve.size());
    scalar[curve.size() - digits.len()..].copy_from_slice(digits);
    let fits = excess.iter().fold(0, |any, byte| any | byte) == 0;
    (fits && curve.is_scalar(&scalar)).then_some(scalar)
}

impl Curve {
    /// One without anything on it yet.
    pub(super) fn blank(group: Group) -> Self {
        Self { group, public: None, private: None }
    }

    fn nist_of_twin(twin: &TwinKey) -> Option<Self> {
        let mut name = [0_u8; 32];
        let mut params = [Param::new(c"group", UTF8_STRING, name.as_mut_ptr().cast(), name.len()), Param::END];
        let done = super::twin::call!(Kind::Ec.fns()?, get_params(twin.data(), params.as_mut_ptr()), else 0);
        let curve = params[0].utf8().filter(|_| done == 1).and_then(Nist::named)?;
        let asked = [c"qx", c"qy", c"priv"].map(|name| (name, curve.size()));
        let [x, y, private] = ask(Kind::Ec, twin, UNSIGNED_INTEGER, &asked)?.try_into().ok()?;
        let public = x.zip(y).map(|(x, y)| [&[4], &*x, &*y].concat()).filter(|point| curve.is_point(point));
        Some(Self { group: Group::Nist(curve), public, private: private.and_then(|number| scalar(curve, &number)) })
    }

    fn edwards_of_twin(kind: Kind, group: Group, twin: &TwinKey) -> Option<Self> {
        let [public, private] = ask(kind, twin, OCTET_STRING, &[(c"pub", 32), (c"priv", 32)])?.try_into().ok()?;
        Some(Self { group, public: public.map(|public| public.to_vec()), private })
    }

    /// The parts in parameters that are to be imported, if they are plain: nothing in them that engines do not know.
    pub(super) fn from_params(kind: Kind, client: &Client, selection: c_int, params: &Params<'_>) -> Option<Self> {
        let curve = match kind {
            Kind::Rsa | Kind::Ed25519 => return None,
            Kind::Ec => Self::nist_from_params(selection, params)?,
            Kind::X25519 => Self::x25519_from_params(client, selection, params)?,
        };
        Some(curve)
    }

    fn nist_from_params(selection: c_int, params: &Params<'_>) -> Option<Self> {
        let nist = params.get(c"group")?.utf8().and_then(Nist::named)?;
        if selection & SELECT_DOMAIN_PARAMETERS == 0 || !params.iter().all(is_plain_nist) {
            return None;
        }
        let mut curve = Self::blank(Group::Nist(nist));
        if selection & (SELECT_PUBLIC_KEY | SELECT_PRIVATE_KEY) != 0
            && let Some(public) = params.get(c"pub")
        {
            curve.public = Some(public.octets().filter(|point| nist.is_point(point))?.to_vec());
        }
        if selection & SELECT_PRIVATE_KEY != 0
            && let Some(private) = params.get(c"priv")
        {
            curve.private = Some(scalar(nist, &Zeroizing::new(private.big_endian()?))?);
        }
        // A keypair without either half is the twin's to refuse.
        let wanted = selection & (SELECT_PUBLIC_KEY | SELECT_PRIVATE_KEY) != 0;
        (!wanted || curve.public.is_some()).then_some(curve)
    }

    fn x25519_from_params(client: &Client, selection: c_int, params: &Params<'_>) -> Option<Self> {
        let octets = |name| params.get(name).and_then(Param::octets).filter(|octets| octets.len() == 32);
        let known = |param: &Param| param.name() == c"pub" || param.name() == c"priv";
        if selection & SELECT_PUBLIC_KEY == 0 || !params.iter().all(known) {
            return None;
        }
        let private: Option<SecretBytes> =
            if selection & SELECT_PRIVATE_KEY != 0 && params.get(c"priv").is_some() { Some(octets(c"priv")?.into()) } else { None };
        let public = match (params.get(c"pub"), &private) {
            // EVP_PKEY_new_raw_private_key(3) gives the private half alone.
            (None, Some(private)) => Group::X25519.public_of(private, client)?,
            _ => octets(c"pub")?.to_vec(),
        };
        Some(Self { group: Group::X25519, public: Some(public), private })
    }

    /// Parameters from which the twin makes the same key; none if there is nothing to import.
    pub(super) fn to_params(&self) -> Option<(c_int, OwnedParams)> {
        let mut params = OwnedParams::new();
        let mut selection = 0;
        if let Group::Nist(curve) = self.group {
            params = params.utf8(c"group", &curve.name().to_string_lossy());
            selection |= SELECT_DOMAIN_PARAMETERS;
        }
        if let Some(public) = &self.public {
            params = params.octets(c"pub", public);
            selection |= SELECT_PUBLIC_KEY;
        }
        if let Some(private) = &self.private {
            params = match self.group {
                Group::Nist(_) => params.big_endian(c"priv", private),
                Group::X25519 | Group::Ed25519 => params.octets(c"priv", private),
            };
            selection |= SELECT_PUBLIC_KEY | SELECT_PRIVATE_KEY;
        }
        (selection != 0).then_some((selection, params))
    }

    /// A new key pair: random private key, public value from an engine. None sends the caller to the twin.
    pub(super) fn generate(group: Group, client: &Client) -> Option<Self> {
        if let Some(Pair { private, public }) = pairs::take(group, client) {
            return Some(Self { group, public: Some(public), private: Some(private) });
        }
        let private = group.private_keys(1)?.pop()?;
        Some(Self { group, public: Some(group.public_of(&private, client)?), private: Some(private) })
    }
}

/// Whether a parameter says nothing that a plain key on one of NIST's curves does not say anyway. The curve's own numbers are redundant beside its name, and
/// the default provider ignores them there.
fn is_plain_nist(param: &Param) -> bool {
    let is = |value: &str| param.utf8() == Some(value);
    match param.name().to_bytes() {
        b"group" | b"pub" | b"priv" => true,
        b"p" | b"a" | b"b" | b"generator" | b"order" | b"cofactor" | b"seed" | b"field-type" => true,
        b"encoding" => is("named_curve"),
        b"point-format" => is("uncompressed"),
        b"group-check" => is("default"),
        b"use-cofactor-flag" | b"decoded-from-explicit" => param.signed() == Some(0),
        b"include-public" => param.signed() == Some(1),
        _ => false,
    }
}
