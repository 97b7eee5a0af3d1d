//! A program's view of libcrypto, safe enough for tests: one library context with Bywash first, one without.
#![allow(dead_code, reason = "each test uses its own part of this")]

pub(crate) mod pair;

use bywash_core::Algorithm;
use bywash_openssl::ffi::abi::OCTET_STRING;
use bywash_openssl::ffi::libcrypto::*;
use bywash_openssl::ffi::{CoreHandle, DispatchEntry, OwnedParams, Param};
use bywash_openssl::provider::{OSSL_provider_init, Provider};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::ffi::{CStr, CString};

type Init = unsafe extern "C" fn(*const CoreHandle, *const DispatchEntry, *mut *const DispatchEntry, *mut *mut c_void) -> c_int;

unsafe extern "C" {
    fn OSSL_PROVIDER_add_builtin(ctx: *mut OSSL_LIB_CTX, name: *const c_char, init: Init) -> c_int;
    fn OSSL_PROVIDER_get0_provider_ctx(provider: *const OSSL_PROVIDER) -> *mut c_void;
    fn EVP_PKEY_get0_provider(key: *const EVP_PKEY) -> *const OSSL_PROVIDER;
    fn EVP_PKEY_copy_parameters(to: *mut EVP_PKEY, from: *const EVP_PKEY) -> c_int;
    fn EVP_PKEY_set1_encoded_public_key(key: *mut EVP_PKEY, bytes: *const u8, length: usize) -> c_int;
    fn EVP_PKEY_get1_encoded_public_key(key: *mut EVP_PKEY, bytes: *mut *mut u8) -> usize;
    fn EVP_PKEY_CTX_set_rsa_padding(ctx: *mut EVP_PKEY_CTX, padding: c_int) -> c_int;
    fn EVP_MD_CTX_copy(out: *mut EVP_MD_CTX, from: *const EVP_MD_CTX) -> c_int;
    fn CRYPTO_free(bytes: *mut c_void, file: *const c_char, line: c_int);
}

/// Whole keys, as EVP_PKEY_todata(3) selects them.
pub(crate) const KEYPAIR: c_int = EVP_PKEY_KEYPAIR;
/// Public halves.
pub(crate) const PUBLIC: c_int = EVP_PKEY_PUBLIC_KEY;

/// A library context that lives as long as the test process.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    context: *mut OSSL_LIB_CTX,
    bywash: *mut OSSL_PROVIDER,
}
// SAFETY: library contexts are made to be shared by threads.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    fn load(self, name: &str) -> *mut OSSL_PROVIDER {
        let name = CString::new(name).unwrap();
        // SAFETY: a live context and name.
        let provider = unsafe { OSSL_PROVIDER_load(self.context, name.as_ptr()) };
        assert!(!provider.is_null(), "{name:?} does not load");
        provider
    }

    /// The default provider alone.
    pub(crate) fn plain() -> Self {
        // SAFETY: no arguments.
        let library = Self { context: unsafe { OSSL_LIB_CTX_new() }, bywash: ptr::null_mut() };
        library.load("default");
        library
    }

    /// Bywash first, then the default provider.
    pub(crate) fn bywash() -> Self {
        // SAFETY: no arguments.
        let mut library = Self { context: unsafe { OSSL_LIB_CTX_new() }, bywash: ptr::null_mut() };
        // SAFETY: a live context, a name, our entry point.
        assert_eq!(unsafe { OSSL_PROVIDER_add_builtin(library.context, c"bywash".as_ptr(), OSSL_provider_init) }, 1);
        library.bywash = library.load("bywash");
        // The provider keeps panics quiet, by a hook of its own copy of std; linked into a test, it is the test's, which would fail without a word.
        drop(std::panic::take_hook());
        library.load("default");
        library
    }

    /// How many operations engines have done for this context.
    pub(crate) fn counted(&self, algorithm: Algorithm) -> u64 {
        // SAFETY: our own provider, loaded; its context is ours.
        let provider = unsafe { Provider::from_ptr(OSSL_PROVIDER_get0_provider_ctx(self.bywash)) };
        provider.unwrap().client().unwrap().counted(algorithm).0
    }

    fn pkey_ctx(&self, name: &str) -> Ctx {
        let name = CString::new(name).unwrap();
        // SAFETY: a live context and name.
        Ctx::of(unsafe { EVP_PKEY_CTX_new_from_name(self.context, name.as_ptr(), ptr::null()) })
    }

    /// Generates a key.
    pub(crate) fn generate(&self, name: &str, mut params: OwnedParams) -> Pkey {
        let ctx = self.pkey_ctx(name);
        let mut key = ptr::null_mut();
        // SAFETY: a live context; the array outlives the call.
        unsafe {
            assert_eq!(EVP_PKEY_keygen_init(ctx.0), 1);
            assert_eq!(EVP_PKEY_CTX_set_params(ctx.0, params.as_ptr()), 1);
            assert_eq!(EVP_PKEY_generate(ctx.0, &raw mut key), 1);
        }
        Pkey { key, library: *self }
    }

    /// Generates an RSA key.
    pub(crate) fn rsa(&self, bits: u64) -> Pkey {
        self.generate("RSA", OwnedParams::new().number(c"bits", bits))
    }

    /// Generates a key on a curve.
    pub(crate) fn ec(&self, group: &str) -> Pkey {
        self.generate("EC", OwnedParams::new().utf8(c"group", group))
    }

    /// Generates an X25519 key.
    pub(crate) fn x25519(&self) -> Pkey {
        self.generate("X25519", OwnedParams::new())
    }

    /// Generates an Ed25519 key.
    pub(crate) fn ed25519(&self) -> Pkey {
        self.generate("ED25519", OwnedParams::new())
    }

    /// A key from parameters; none if it is refused.
    pub(crate) fn import(&self, name: &str, selection: c_int, params: *mut Param) -> Option<Pkey> {
        let ctx = self.pkey_ctx(name);
        let mut key = ptr::null_mut();
        // SAFETY: a live context; the array is the caller's.
        let done = unsafe { EVP_PKEY_fromdata_init(ctx.0) == 1 && EVP_PKEY_fromdata(ctx.0, &raw mut key, selection, params) == 1 };
        forget_errors();
        done.then_some(Pkey { key, library: *self })
    }
}

/// Empties this thread's error queue.
pub(crate) fn forget_errors() {
    // SAFETY: no arguments.
    unsafe { ERR_clear_error() };
}

/// An operation's context.
pub(crate) struct Ctx(pub(crate) *mut EVP_PKEY_CTX);

impl Ctx {
    fn of(ctx: *mut EVP_PKEY_CTX) -> Self {
        assert!(!ctx.is_null());
        Self(ctx)
    }

    /// Sets parameters; whether that was allowed.
    pub(crate) fn set(&self, mut params: OwnedParams) -> bool {
        // SAFETY: a live context; the array outlives the call.
        unsafe { EVP_PKEY_CTX_set_params(self.0, params.as_ptr()) == 1 }
    }

    /// A copy.
    pub(crate) fn duplicate(&self) -> Self {
        // SAFETY: a live context.
        Self::of(unsafe { EVP_PKEY_CTX_dup(self.0) })
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // SAFETY: made once, freed once.
        unsafe { EVP_PKEY_CTX_free(self.0) };
    }
}

/// A key in a library.
pub(crate) struct Pkey {
    pub(crate) key: *mut EVP_PKEY,
    pub(crate) library: Library,
}
// SAFETY: keys are made to be shared by threads.
unsafe impl Send for Pkey {}
// SAFETY: as above.
unsafe impl Sync for Pkey {}

impl Drop for Pkey {
    fn drop(&mut self) {
        // SAFETY: made once, freed once.
        unsafe { EVP_PKEY_free(self.key) };
    }
}

impl Pkey {
    /// Whether its key manager is Bywash's.
    pub(crate) fn is_bywash(&self) -> bool {
        // SAFETY: a live key.
        unsafe { ptr::eq(EVP_PKEY_get0_provider(self.key), self.library.bywash) }
    }

    /// A context for operations in the key's library.
    pub(crate) fn ctx(&self) -> Ctx {
        // SAFETY: a live context and key.
        Ctx::of(unsafe { EVP_PKEY_CTX_new_from_pkey(self.library.context, self.key, ptr::null()) })
    }

    /// The same key made anew in another library.
    pub(crate) fn transfer(&self, name: &str, selection: c_int, to: &Library) -> Pkey {
        let mut params = ptr::null_mut();
        // SAFETY: a live key; the array is freed below.
        assert_eq!(unsafe { EVP_PKEY_todata(self.key, selection, &raw mut params) }, 1);
        let key = to.import(name, selection, params).expect("what one library exports the other imports");
        // SAFETY: made by EVP_PKEY_todata.
        unsafe { OSSL_PARAM_free(params) };
        key
    }

    /// The same key in another library with one number changed (its bytes as they lie there); none if it is refused.
    pub(crate) fn damaged(&self, name: &CStr, damage: fn(&mut [u8]), to: &Library) -> Option<Pkey> {
        let mut params: *mut Param = ptr::null_mut();
        // SAFETY: a live key; the array ends as it must, holds `data_size` bytes at each entry, and is freed at the end.
        unsafe {
            assert_eq!(EVP_PKEY_todata(self.key, KEYPAIR, &raw mut params), 1);
            let mut entry = params;
            while !(*entry).is(name) {
                entry = entry.add(1);
            }
            damage(core::slice::from_raw_parts_mut((*entry).data.cast(), (*entry).data_size));
            let key = to.import("RSA", KEYPAIR, params);
            OSSL_PARAM_free(params);
            key
        }
    }

    /// Whether libcrypto thinks two keys the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        // SAFETY: two live keys.
        let answer = unsafe { EVP_PKEY_eq(self.key, other.key) };
        forget_errors();
        answer == 1
    }

    /// EVP_PKEY_dup.
    pub(crate) fn duplicate(&self) -> Self {
        // SAFETY: a live key.
        let key = unsafe { EVP_PKEY_dup(self.key) };
        assert!(!key.is_null());
        Self { key, library: self.library }
    }

    /// Hashes and signs; none if it is refused.
    pub(crate) fn digest_sign(&self, digest: &str, settings: OwnedParams, pieces: &[&[u8]]) -> Option<Vec<u8>> {
        let signing = Signing::begin(self, digest, true)?;
        let done = signing.set(settings) && pieces.iter().all(|piece| signing.update(piece));
        if done { signing.sign() } else { None }
    }

    /// Hashes and verifies.
    pub(crate) fn digest_verify(&self, digest: &str, settings: OwnedParams, message: &[u8], signature: &[u8]) -> bool {
        let Some(signing) = Signing::begin(self, digest, false) else { return false };
        let done = signing.set(settings)
            && signing.update(message)
            // SAFETY: a live context; the slice gives pointer and length.
            && unsafe { EVP_DigestVerifyFinal(signing.ctx, signature.as_ptr(), signature.len()) == 1 };
        forget_errors();
        done
    }

    /// Signs a message that is given in one piece, without a digest of our choice.
    pub(crate) fn sign_at_once(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signing = Signing::begin(self, "", true)?;
        // SAFETY: a live context; the slice gives pointer and length.
        twice(|out, length| unsafe { EVP_DigestSign(signing.ctx, out, length, message.as_ptr(), message.len()) })
    }

    /// Verifies such a signature.
    pub(crate) fn verify_at_once(&self, message: &[u8], signature: &[u8]) -> bool {
        let Some(verifying) = Signing::begin(self, "", false) else { return false };
        let (ctx, length) = (verifying.ctx, signature.len());
        // SAFETY: a live context; the slices give pointers and lengths.
        let done = unsafe { EVP_DigestVerify(ctx, signature.as_ptr(), length, message.as_ptr(), message.len()) == 1 };
        forget_errors();
        done
    }

    /// Signs a value as it is.
    pub(crate) fn sign(&self, mut settings: OwnedParams, value: &[u8]) -> Option<Vec<u8>> {
        let ctx = self.ctx();
        // SAFETY: live contexts; slices give pointers and lengths.
        let begun = unsafe { EVP_PKEY_sign_init_ex(ctx.0, settings.as_ptr()) == 1 };
        // SAFETY: as above.
        let signed = |out: *mut u8, length: *mut usize| unsafe { EVP_PKEY_sign(ctx.0, out, length, value.as_ptr(), value.len()) };
        begun.then(|| twice(signed))?
    }

    /// Decrypts.
    pub(crate) fn decrypt(&self, mut settings: OwnedParams, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let ctx = self.ctx();
        // SAFETY: live contexts; slices give pointers and lengths.
        let begun = unsafe { EVP_PKEY_decrypt_init_ex(ctx.0, settings.as_ptr()) == 1 };
        // SAFETY: as above.
        let run = |out: *mut u8, length: *mut usize| unsafe { EVP_PKEY_decrypt(ctx.0, out, length, ciphertext.as_ptr(), ciphertext.len()) };
        begun.then(|| twice(run))?
    }

    /// Takes a premaster secret out, as a TLS server does (7 is RSA_PKCS1_WITH_TLS_PADDING).
    pub(crate) fn premaster(&self, versions: OwnedParams, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let ctx = self.ctx();
        // SAFETY: a live context.
        let begun = unsafe { EVP_PKEY_decrypt_init_ex(ctx.0, ptr::null()) == 1 && EVP_PKEY_CTX_set_rsa_padding(ctx.0, 7) == 1 };
        assert!(begun && ctx.set(versions));
        // SAFETY: live contexts; slices give pointers and lengths.
        twice(|out, length| unsafe { EVP_PKEY_decrypt(ctx.0, out, length, ciphertext.as_ptr(), ciphertext.len()) })
    }

    /// Encrypts.
    pub(crate) fn encrypt(&self, mut settings: OwnedParams, text: &[u8]) -> Option<Vec<u8>> {
        let ctx = self.ctx();
        // SAFETY: live contexts; slices give pointers and lengths.
        let begun = unsafe { EVP_PKEY_encrypt_init_ex(ctx.0, settings.as_ptr()) == 1 };
        // SAFETY: as above.
        let run = |out: *mut u8, length: *mut usize| unsafe { EVP_PKEY_encrypt(ctx.0, out, length, text.as_ptr(), text.len()) };
        begun.then(|| twice(run))?
    }

    /// Derives a shared secret.
    pub(crate) fn derive(&self, peer: &Self, mut settings: OwnedParams) -> Option<Vec<u8>> {
        let ctx = self.ctx();
        // SAFETY: live contexts and keys.
        let begun =
            unsafe { EVP_PKEY_derive_init_ex(ctx.0, settings.as_ptr()) == 1 && EVP_PKEY_derive_set_peer_ex(ctx.0, peer.key, 1) == 1 };
        // SAFETY: as above.
        begun.then(|| twice(|out, length| unsafe { EVP_PKEY_derive(ctx.0, out, length) }))?
    }

    /// What TLS sends.
    pub(crate) fn encoded_public(&self) -> Vec<u8> {
        let mut bytes = ptr::null_mut();
        // SAFETY: a live key; the bytes are libcrypto's to free.
        unsafe {
            let length = EVP_PKEY_get1_encoded_public_key(self.key, &raw mut bytes);
            assert!(length > 0);
            let copy = core::slice::from_raw_parts(bytes, length).to_vec();
            CRYPTO_free(bytes.cast(), ptr::null(), 0);
            copy
        }
    }

    /// What TLS makes of what it receives: a peer with this key's parameters.
    pub(crate) fn peer(&self, encoded: &[u8]) -> Option<Self> {
        // SAFETY: live keys; the slice gives pointer and length.
        let (peer, done) = unsafe {
            let peer = Self { key: EVP_PKEY_new(), library: self.library };
            assert_eq!(EVP_PKEY_copy_parameters(peer.key, self.key), 1);
            let done = EVP_PKEY_set1_encoded_public_key(peer.key, encoded.as_ptr(), encoded.len()) == 1;
            (peer, done)
        };
        forget_errors();
        done.then_some(peer)
    }

    /// One of the checks of EVP_PKEY_check(3).
    pub(crate) fn check(&self, check: unsafe extern "C" fn(*mut EVP_PKEY_CTX) -> c_int) -> bool {
        // SAFETY: a live context.
        let good = unsafe { check(self.ctx().0) } == 1;
        forget_errors();
        good
    }
}

/// Asks for the length, then for the bytes.
fn twice(run: impl Fn(*mut u8, *mut usize) -> c_int) -> Option<Vec<u8>> {
    let mut length = 0;
    if run(ptr::null_mut(), &raw mut length) != 1 {
        forget_errors();
        return None;
    }
    let mut out = vec![0; length];
    let done = run(out.as_mut_ptr(), &raw mut length) == 1;
    forget_errors();
    out.truncate(length);
    done.then_some(out)
}

/// A message being signed or verified.
pub(crate) struct Signing {
    pub(crate) ctx: *mut EVP_MD_CTX,
    pkey_ctx: *mut EVP_PKEY_CTX,
}

impl Drop for Signing {
    fn drop(&mut self) {
        // SAFETY: made once, freed once.
        unsafe { EVP_MD_CTX_free(self.ctx) };
    }
}

impl Signing {
    /// Begins, with the key's own digest if none is named.
    pub(crate) fn begin(key: &Pkey, digest: &str, signing: bool) -> Option<Self> {
        let digest = (!digest.is_empty()).then(|| CString::new(digest).unwrap());
        let name = digest.as_ref().map_or(ptr::null(), |digest| digest.as_ptr());
        let init = if signing { EVP_DigestSignInit_ex } else { EVP_DigestVerifyInit_ex };
        let mut pkey_ctx = ptr::null_mut();
        // SAFETY: live objects.
        let (ctx, done) = unsafe {
            let ctx = EVP_MD_CTX_new();
            (ctx, init(ctx, &raw mut pkey_ctx, name, key.library.context, ptr::null(), key.key, ptr::null()))
        };
        let signing = Self { ctx, pkey_ctx };
        forget_errors();
        (done == 1).then_some(signing)
    }

    /// Sets parameters.
    pub(crate) fn set(&self, mut settings: OwnedParams) -> bool {
        // SAFETY: the digest context owns a live key context.
        let done = unsafe { EVP_PKEY_CTX_set_params(self.pkey_ctx, settings.as_ptr()) == 1 };
        forget_errors();
        done
    }

    /// The algorithm identifier that goes beside the signature, in DER.
    pub(crate) fn algorithm_identifier(&self) -> Vec<u8> {
        let mut identifier = [0; 128];
        let mut params = [Param::new(c"algorithm-id", OCTET_STRING, identifier.as_mut_ptr().cast(), identifier.len()), Param::END];
        // SAFETY: the digest context owns a live key context; room for the answer.
        assert_eq!(unsafe { EVP_PKEY_CTX_get_params(self.pkey_ctx, params.as_mut_ptr()) }, 1);
        identifier[..params[0].return_size].to_vec()
    }

    /// Takes a piece.
    pub(crate) fn update(&self, piece: &[u8]) -> bool {
        // SAFETY: a live context; DigestVerifyUpdate and DigestSignUpdate do the same for their own contexts.
        unsafe { EVP_DigestUpdate(self.ctx, piece.as_ptr().cast(), piece.len()) == 1 }
    }

    /// A copy in the same state.
    pub(crate) fn duplicate(&self) -> Self {
        // SAFETY: live contexts.
        unsafe {
            let ctx = EVP_MD_CTX_new();
            assert_eq!(EVP_MD_CTX_copy(ctx, self.ctx), 1);
            Self { ctx, pkey_ctx: ptr::null_mut() }
        }
    }

    /// Signs what was taken.
    pub(crate) fn sign(&self) -> Option<Vec<u8>> {
        // SAFETY: a live context.
        twice(|out, length| unsafe { EVP_DigestSignFinal(self.ctx, out, length) })
    }
}
