//! The twin: the default provider's own implementations, on whose shoulders every object of ours stands.
//!
//! `OSSL_PROVIDER_query_operation` and `OSSL_PROVIDER_get0_provider_ctx` are public: through them we hold the very dispatch tables that libcrypto
//! would use without Bywash, bound to a private library context. An object of ours (key, context) wraps one of theirs; whatever Bywash does
//! not do itself is handed on, argument by argument, so results and errors are the default provider's because it made them.

pub(super) use crate::delegate::call;
use crate::delegate::{Delegate, functions};
use crate::ffi::ids::{asym_cipher as a, keyexch as x, keymgmt as k, operation, signature as s};
use crate::ffi::libcrypto::{OSSL_LIB_CTX, OSSL_PROVIDER};
use crate::ffi::{Callback, Param};
use core::ffi::{c_char, c_int, c_void};
use once_cell::race::OnceBox;

type Data = *mut c_void;
type Bytes = *const u8;
type Room = *mut u8;
type Size = *mut usize;

functions! {
    /// `OSSL_FUNC_keymgmt_*`.
    KeyFns {
        new = k::NEW => (Data) -> Data;
        free = k::FREE => (Data);
        get_params = k::GET_PARAMS => (Data, *mut Param) -> c_int;
        gettable_params = k::GETTABLE_PARAMS => (Data) -> *const Param;
        set_params = k::SET_PARAMS => (Data, *const Param) -> c_int;
        settable_params = k::SETTABLE_PARAMS => (Data) -> *const Param;
        has = k::HAS => (*const c_void, c_int) -> c_int;
        matches = k::MATCH => (*const c_void, *const c_void, c_int) -> c_int;
        validate = k::VALIDATE => (*const c_void, c_int, c_int) -> c_int;
        import = k::IMPORT => (Data, c_int, *const Param) -> c_int;
        import_types = k::IMPORT_TYPES => (c_int) -> *const Param;
        export = k::EXPORT => (Data, c_int, Callback, Data) -> c_int;
        export_types = k::EXPORT_TYPES => (c_int) -> *const Param;
        dup = k::DUP => (*const c_void, c_int) -> Data;
        gen_init = k::GEN_INIT => (Data, c_int, *const Param) -> Data;
        gen_set_template = k::GEN_SET_TEMPLATE => (Data, Data) -> c_int;
        gen_set_params = k::GEN_SET_PARAMS => (Data, *const Param) -> c_int;
        gen_settable_params = k::GEN_SETTABLE_PARAMS => (Data, Data) -> *const Param;
        generate = k::GEN => (Data, Option<Callback>, Data) -> Data;
        gen_cleanup = k::GEN_CLEANUP => (Data);
    }
}

functions! {
    /// `OSSL_FUNC_signature_*`.
    SignatureFns {
        newctx = s::NEWCTX => (Data, *const c_char) -> Data;
        freectx = s::FREECTX => (Data);
        dupctx = s::DUPCTX => (Data) -> Data;
        sign_init = s::SIGN_INIT => (Data, Data, *const Param) -> c_int;
        sign = s::SIGN => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        verify_init = s::VERIFY_INIT => (Data, Data, *const Param) -> c_int;
        verify = s::VERIFY => (Data, Bytes, usize, Bytes, usize) -> c_int;
        verify_recover_init = s::VERIFY_RECOVER_INIT => (Data, Data, *const Param) -> c_int;
        verify_recover = s::VERIFY_RECOVER => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        digest_sign_init = s::DIGEST_SIGN_INIT => (Data, *const c_char, Data, *const Param) -> c_int;
        digest_sign_update = s::DIGEST_SIGN_UPDATE => (Data, Bytes, usize) -> c_int;
        digest_sign_final = s::DIGEST_SIGN_FINAL => (Data, Room, Size, usize) -> c_int;
        digest_sign = s::DIGEST_SIGN => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        digest_verify_init = s::DIGEST_VERIFY_INIT => (Data, *const c_char, Data, *const Param) -> c_int;
        digest_verify_update = s::DIGEST_VERIFY_UPDATE => (Data, Bytes, usize) -> c_int;
        digest_verify_final = s::DIGEST_VERIFY_FINAL => (Data, Bytes, usize) -> c_int;
        digest_verify = s::DIGEST_VERIFY => (Data, Bytes, usize, Bytes, usize) -> c_int;
        get_ctx_params = s::GET_CTX_PARAMS => (Data, *mut Param) -> c_int;
        gettable_ctx_params = s::GETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        set_ctx_params = s::SET_CTX_PARAMS => (Data, *const Param) -> c_int;
        settable_ctx_params = s::SETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        get_ctx_md_params = s::GET_CTX_MD_PARAMS => (Data, *mut Param) -> c_int;
        gettable_ctx_md_params = s::GETTABLE_CTX_MD_PARAMS => (Data) -> *const Param;
        set_ctx_md_params = s::SET_CTX_MD_PARAMS => (Data, *const Param) -> c_int;
        settable_ctx_md_params = s::SETTABLE_CTX_MD_PARAMS => (Data) -> *const Param;
    }
}

functions! {
    /// `OSSL_FUNC_asym_cipher_*`.
    CipherFns {
        newctx = a::NEWCTX => (Data) -> Data;
        freectx = a::FREECTX => (Data);
        dupctx = a::DUPCTX => (Data) -> Data;
        encrypt_init = a::ENCRYPT_INIT => (Data, Data, *const Param) -> c_int;
        encrypt = a::ENCRYPT => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        decrypt_init = a::DECRYPT_INIT => (Data, Data, *const Param) -> c_int;
        decrypt = a::DECRYPT => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        get_ctx_params = a::GET_CTX_PARAMS => (Data, *mut Param) -> c_int;
        gettable_ctx_params = a::GETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        set_ctx_params = a::SET_CTX_PARAMS => (Data, *const Param) -> c_int;
        settable_ctx_params = a::SETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
    }
}

functions! {
    /// `OSSL_FUNC_keyexch_*`.
    ExchangeFns {
        newctx = x::NEWCTX => (Data) -> Data;
        freectx = x::FREECTX => (Data);
        dupctx = x::DUPCTX => (Data) -> Data;
        init = x::INIT => (Data, Data, *const Param) -> c_int;
        set_peer = x::SET_PEER => (Data, Data) -> c_int;
        derive = x::DERIVE => (Data, Room, Size, usize) -> c_int;
        get_ctx_params = x::GET_CTX_PARAMS => (Data, *mut Param) -> c_int;
        gettable_ctx_params = x::GETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        set_ctx_params = x::SET_CTX_PARAMS => (Data, *const Param) -> c_int;
        settable_ctx_params = x::SETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
    }
}

/// The default provider's implementations, and what they are made in.
pub(super) struct Twin {
    /// The library context they live in.
    delegate: &'static Delegate,
    /// The default provider's own context: the first argument of its constructors.
    pub(super) provctx: *mut c_void,
    pub(super) rsa: KeyFns,
    pub(super) ec: KeyFns,
    pub(super) x25519: KeyFns,
    pub(super) ed25519: KeyFns,
    pub(super) rsa_signature: SignatureFns,
    pub(super) ecdsa: SignatureFns,
    pub(super) eddsa: SignatureFns,
    pub(super) rsa_cipher: CipherFns,
    pub(super) ecdh: ExchangeFns,
    pub(super) x25519_exchange: ExchangeFns,
}

// SAFETY: a provider's context and functions are made to be used by many threads (provider-base(7)).
unsafe impl Send for Twin {}
// SAFETY: as above.
unsafe impl Sync for Twin {}

impl Twin {
    /// The process's twin, made on first use; none only where OpenSSL's default provider cannot be loaded. It is never taken down: the functions
    /// without a context (`import_types`) need it at any time.
    pub(super) fn get() -> Option<&'static Self> {
        static TWIN: OnceBox<Option<Twin>> = OnceBox::new();
        TWIN.get_or_init(|| Box::new(Self::new())).as_ref()
    }

    fn new() -> Option<Self> {
        let delegate = Delegate::get()?;
        let keys = |name| delegate.table(operation::KEYMGMT, name);
        let signatures = |name| delegate.table(operation::SIGNATURE, name);
        let exchanges = |name| delegate.table(operation::KEYEXCH, name);
        // SAFETY: each table goes with the operation it was asked for.
        unsafe {
            Some(Self {
                provctx: delegate.provctx(),
                rsa: KeyFns::of(keys("RSA")?),
                ec: KeyFns::of(keys("EC")?),
                x25519: KeyFns::of(keys("X25519")?),
                ed25519: KeyFns::of(keys("ED25519")?),
                rsa_signature: SignatureFns::of(signatures("RSA")?),
                ecdsa: SignatureFns::of(signatures("ECDSA")?),
                eddsa: SignatureFns::of(signatures("ED25519")?),
                rsa_cipher: CipherFns::of(delegate.table(operation::ASYM_CIPHER, "RSA")?),
                ecdh: ExchangeFns::of(exchanges("ECDH")?),
                x25519_exchange: ExchangeFns::of(exchanges("X25519")?),
                delegate,
            })
        }
    }

    /// The default provider.
    pub(super) fn provider(&self) -> *const OSSL_PROVIDER {
        self.delegate.provider()
    }

    /// The private library context.
    pub(super) fn context(&self) -> *mut OSSL_LIB_CTX {
        self.delegate.context()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_provider_offers_what_we_wrap() {
        let twin = Twin::get().expect("the default provider is part of libcrypto");
        assert!(twin.rsa.generate.is_some() && twin.ec.gen_set_template.is_some() && twin.x25519.set_params.is_some());
        assert!(twin.rsa_signature.digest_sign_final.is_some() && twin.ecdsa.digest_verify_final.is_some());
        assert!(twin.ed25519.generate.is_some() && twin.eddsa.digest_sign.is_some() && twin.eddsa.digest_verify.is_some());
        assert!(twin.rsa_cipher.decrypt.is_some() && twin.ecdh.derive.is_some() && twin.x25519_exchange.derive.is_some());
        assert!(twin.delegate.table(operation::KEYMGMT, "no such thing").is_none());
    }
}
