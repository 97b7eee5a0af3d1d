//! What a context was told, as far as it is ours to understand.

use super::derive::{expand_label, next_secret, prf};
use super::hmac::Hash;
use crate::ffi::abi::OCTET_STRING;
use crate::ffi::{OwnedParams, Param, Params};
use core::ffi::CStr;
use zeroize::Zeroizing;

/// Longest seed that the default provider takes (`TLS1_PRF_MAXBUF`).
const SEED_MAX: usize = 1024;
/// `EVP_KDF_HKDF_MODE_*` of kdf.h.
const EXTRACT_ONLY: u64 = 1;
const EXPAND_ONLY: u64 = 2;

type Bytes = Zeroizing<Vec<u8>>;

/// A function's parameters.
pub(super) trait Given: Clone + 'static {
    /// Nothing was told.
    fn default_values() -> Self;
    /// Takes all of these; false if some are not ours to understand, and none was taken.
    fn take(&mut self, params: Params<'_>) -> bool;
    /// All that was taken, if anything was.
    fn told(&self) -> Option<OwnedParams>;
    /// None where something is missing or out of bounds.
    fn derive(&self, out: &mut [u8]) -> Option<()>;
}

/// The hash function that a parameter names, if it is one of ours.
fn hash_of(param: &Param) -> Option<Hash> {
    param.text().and_then(Hash::named)
}

/// Whether a parameter leaves it to libcrypto which of several implementations is fetched.
fn is_no_query(param: &Param) -> bool {
    param.is(c"properties") && param.text() == Some("")
}

/// Whether an octet string is there, with as many bytes as it says. One that is null is an error in some places and nothing in others.
fn is_whole(param: &Param) -> bool {
    !param.data.is_null() && param.data_type == OCTET_STRING && param.octets().is_some_and(|bytes| bytes.len() == param.data_size)
}

/// Names that an array has had so far, by number. Where one stands twice, which of them counts differs from release to release.
#[derive(Default)]
struct Names(u8);

impl Names {
    fn is_new(&mut self, number: usize) -> bool {
        let is_new = self.0 >> number & 1 == 0;
        self.0 |= 1 << number;
        is_new
    }
}

fn told(params: OwnedParams, key: &'static CStr, bytes: Option<&Bytes>) -> OwnedParams {
    match bytes {
        Some(bytes) => params.octets(key, bytes),
        None => params,
    }
}

/// Those of TLS 1.2's pseudorandom function.
#[derive(Clone, Default)]
pub(super) struct Tls12 {
    hash: Option<Hash>,
    secret: Option<Bytes>,
    seed: Bytes,
}

impl Given for Tls12 {
    fn default_values() -> Self {
        Self::default()
    }

    fn take(&mut self, params: Params<'_>) -> bool {
        let (mut seeds, mut names) = (0, Names::default());
        let ours = params.iter().all(|param| {
            if param.is(c"seed") {
                seeds = param.data_size.saturating_add(seeds);
            }
            match () {
                () if param.is(c"digest") => names.is_new(0) && hash_of(param).is_some(),
                () if param.is(c"secret") => names.is_new(1) && is_whole(param),
                // libssl gives those that it has none of as null.
                () if param.is(c"seed") => {
                    is_whole(param) || param.data.is_null() && param.data_size == 0 && param.data_type == OCTET_STRING
                }
                () => is_no_query(param),
            }
        });
        if !ours || self.seed.len().saturating_add(seeds) > SEED_MAX {
            return false;
        }
        // Grown at once, so that no copy is left behind.
        let mut seed = Zeroizing::new(Vec::with_capacity(self.seed.len() + seeds));
        seed.extend_from_slice(&self.seed);
        for param in params.iter() {
            match param.octets() {
                Some(bytes) if param.is(c"seed") => seed.extend_from_slice(bytes),
                Some(bytes) if param.is(c"secret") => self.secret = Some(Zeroizing::new(bytes.to_vec())),
                _ if param.is(c"digest") => self.hash = hash_of(param),
                _ => {}
            }
        }
        self.seed = seed;
        true
    }

    fn told(&self) -> Option<OwnedParams> {
        let params = self.hash.iter().fold(OwnedParams::new(), |params, hash| params.utf8(c"digest", hash.name()));
        let params = told(params, c"secret", self.secret.as_ref());
        Some(if self.seed.is_empty() { params } else { params.octets(c"seed", &self.seed) })
    }

    fn derive(&self, out: &mut [u8]) -> Option<()> {
        if self.seed.is_empty() {
            return None;
        }
        prf(self.hash?, self.secret.as_ref()?, &self.seed, out)
    }
}

/// Those of TLS 1.3's key schedule, told at once as libssl does.
#[derive(Clone, Default)]
pub(super) struct Tls13 {
    hash: Option<Hash>,
    mode: Option<u64>,
    /// In the order of [`OCTETS`].
    octets: [Option<Bytes>; OCTETS.len()],
}

const OCTETS: [&CStr; 5] = [c"key", c"salt", c"prefix", c"label", c"data"];

fn mode_of(param: &Param) -> Option<u64> {
    let mode = param.number().or_else(|| match param.text()? {
        "EXTRACT_ONLY" => Some(EXTRACT_ONLY),
        "EXPAND_ONLY" => Some(EXPAND_ONLY),
        _ => None,
    });
    mode.filter(|mode| [EXTRACT_ONLY, EXPAND_ONLY].contains(mode))
}

fn place(param: &Param) -> Option<usize> {
    OCTETS.iter().position(|key| param.is(key))
}

impl Given for Tls13 {
    fn default_values() -> Self {
        Self::default()
    }

    fn take(&mut self, params: Params<'_>) -> bool {
        let mut names = Names::default();
        let is_ours = |param: &Param| match place(param) {
            // What an empty one means differs from name to name.
            Some(place) => names.is_new(place) && is_whole(param) && (param.data_size > 0 || param.is(c"data")),
            None if param.is(c"digest") => names.is_new(OCTETS.len()) && hash_of(param).is_some(),
            None if param.is(c"mode") => names.is_new(OCTETS.len() + 1) && mode_of(param).is_some(),
            None => is_no_query(param),
        };
        // OpenSSL 3.0 forgets its data whenever it is told anything else, and wants the mode first: what comes in pieces is left to whichever release this is.
        let comes_whole = self.mode.is_none() && params.get(c"mode").is_some();
        if !comes_whole || !params.iter().all(is_ours) {
            return false;
        }
        for param in params.iter() {
            match (place(param), param.octets()) {
                (Some(place), Some(bytes)) => self.octets[place] = Some(Zeroizing::new(bytes.to_vec())),
                _ if param.is(c"digest") => self.hash = hash_of(param),
                _ if param.is(c"mode") => self.mode = mode_of(param),
                _ => {}
            }
        }
        true
    }

    fn told(&self) -> Option<OwnedParams> {
        let mode = if self.mode? == EXTRACT_ONLY { "EXTRACT_ONLY" } else { "EXPAND_ONLY" };
        let params = OwnedParams::new().utf8(c"mode", mode);
        let params = self.hash.iter().fold(params, |params, hash| params.utf8(c"digest", hash.name()));
        Some(OCTETS.into_iter().zip(&self.octets).fold(params, |params, (key, bytes)| told(params, key, bytes.as_ref())))
    }

    fn derive(&self, out: &mut [u8]) -> Option<()> {
        let [key, salt, prefix, label, data] = self.octets.each_ref().map(|bytes| bytes.as_ref().map(|bytes| bytes.as_slice()));
        let (hash, prefix, label) = (self.hash?, prefix?, label?);
        if self.mode? == EXTRACT_ONLY {
            next_secret(hash, salt, [prefix, label], key, out)
        } else {
            expand_label(hash, key?, [prefix, label, data.unwrap_or(&[])], out)
        }
    }
}
