//! Public functions of libcrypto, as the manual pages of OpenSSL 3.0 describe them. Used in a private library context only
//! (see [`delegate`](crate::delegate)).
#![allow(missing_docs, reason = "the manual pages of OpenSSL 3.0 are the documentation; the names are theirs")]

use super::abi::Param;
use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name { _opaque: [u8; 0] }
    )* };
}

opaque! { ASYNC_JOB ASYNC_WAIT_CTX OSSL_LIB_CTX OSSL_PROVIDER EVP_CIPHER EVP_CIPHER_CTX EVP_MD EVP_MD_CTX EVP_PKEY EVP_PKEY_CTX EVP_KDF EVP_KDF_CTX }

pub const EVP_PKEY_KEY_PARAMETERS: c_int = 0x04 | 0x80;
pub const EVP_PKEY_PUBLIC_KEY: c_int = EVP_PKEY_KEY_PARAMETERS | 0x02;
pub const EVP_PKEY_KEYPAIR: c_int = EVP_PKEY_PUBLIC_KEY | 0x01;

unsafe extern "C" {
    pub fn OpenSSL_version_num() -> core::ffi::c_ulong;
    pub fn OSSL_LIB_CTX_new() -> *mut OSSL_LIB_CTX;
    pub fn OSSL_LIB_CTX_free(ctx: *mut OSSL_LIB_CTX);
    pub fn OSSL_LIB_CTX_load_config(ctx: *mut OSSL_LIB_CTX, file: *const c_char) -> c_int;
    pub fn OSSL_PROVIDER_load(ctx: *mut OSSL_LIB_CTX, name: *const c_char) -> *mut OSSL_PROVIDER;
    pub fn OSSL_PROVIDER_unload(provider: *mut OSSL_PROVIDER) -> c_int;
    pub fn OSSL_PROVIDER_set_default_search_path(ctx: *mut OSSL_LIB_CTX, path: *const c_char) -> c_int;
    pub fn OSSL_PARAM_free(params: *mut Param);

    pub fn RAND_bytes_ex(ctx: *mut OSSL_LIB_CTX, buf: *mut c_uchar, num: usize, strength: c_uint) -> c_int;
    pub fn RAND_priv_bytes_ex(ctx: *mut OSSL_LIB_CTX, buf: *mut c_uchar, num: usize, strength: c_uint) -> c_int;

    pub fn CRYPTO_secure_malloc_initialized() -> c_int;

    pub fn ERR_set_mark() -> c_int;
    pub fn ERR_pop_to_mark() -> c_int;
    pub fn ERR_peek_last_error() -> core::ffi::c_ulong;
    pub fn ERR_peek_error_all(
        file: *mut *const c_char,
        line: *mut c_int,
        func: *mut *const c_char,
        data: *mut *const c_char,
        flags: *mut c_int,
    ) -> core::ffi::c_ulong;
    pub fn ERR_reason_error_string(error: core::ffi::c_ulong) -> *const c_char;
    pub fn ERR_clear_error();

    pub fn ASYNC_get_current_job() -> *mut ASYNC_JOB;
    pub fn ASYNC_get_wait_ctx(job: *mut ASYNC_JOB) -> *mut ASYNC_WAIT_CTX;
    pub fn ASYNC_pause_job() -> c_int;
    #[cfg(test)]
    pub fn ASYNC_WAIT_CTX_new() -> *mut ASYNC_WAIT_CTX;
    #[cfg(test)]
    pub fn ASYNC_WAIT_CTX_free(ctx: *mut ASYNC_WAIT_CTX);
    pub fn ASYNC_WAIT_CTX_get_fd(ctx: *mut ASYNC_WAIT_CTX, key: *const c_void, fd: *mut c_int, custom: *mut *mut c_void) -> c_int;
    pub fn ASYNC_WAIT_CTX_set_wait_fd(
        ctx: *mut ASYNC_WAIT_CTX,
        key: *const c_void,
        fd: c_int,
        custom: *mut c_void,
        clean_up: Option<unsafe extern "C" fn(*mut ASYNC_WAIT_CTX, *const c_void, c_int, *mut c_void)>,
    ) -> c_int;

    pub fn EVP_CIPHER_fetch(ctx: *mut OSSL_LIB_CTX, algorithm: *const c_char, properties: *const c_char) -> *mut EVP_CIPHER;
    pub fn EVP_CIPHER_free(cipher: *mut EVP_CIPHER);
    pub fn EVP_CIPHER_get_params(cipher: *mut EVP_CIPHER, params: *mut Param) -> c_int;
    pub fn EVP_CIPHER_get0_provider(cipher: *const EVP_CIPHER) -> *const OSSL_PROVIDER;
    pub fn OSSL_PROVIDER_get0_name(provider: *const OSSL_PROVIDER) -> *const c_char;
    pub fn EVP_CIPHER_CTX_new() -> *mut EVP_CIPHER_CTX;
    pub fn EVP_CIPHER_CTX_free(ctx: *mut EVP_CIPHER_CTX);
    pub fn EVP_CIPHER_CTX_copy(out: *mut EVP_CIPHER_CTX, from: *const EVP_CIPHER_CTX) -> c_int;
    pub fn EVP_CIPHER_CTX_ctrl(ctx: *mut EVP_CIPHER_CTX, what: c_int, arg: c_int, ptr: *mut c_void) -> c_int;
    pub fn EVP_CIPHER_CTX_set_padding(ctx: *mut EVP_CIPHER_CTX, padding: c_int) -> c_int;
    pub fn EVP_CIPHER_CTX_set_params(ctx: *mut EVP_CIPHER_CTX, params: *const Param) -> c_int;
    pub fn EVP_CIPHER_CTX_get_params(ctx: *mut EVP_CIPHER_CTX, params: *mut Param) -> c_int;
    pub fn EVP_CipherInit_ex2(
        ctx: *mut EVP_CIPHER_CTX,
        cipher: *const EVP_CIPHER,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypt: c_int,
        params: *const Param,
    ) -> c_int;
    pub fn EVP_CipherUpdate(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, outl: *mut c_int, input: *const c_uchar, inl: c_int) -> c_int;
    pub fn EVP_CipherFinal_ex(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, outl: *mut c_int) -> c_int;
    pub fn EVP_Cipher(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, input: *const c_uchar, inl: c_uint) -> c_int;

    pub fn EVP_MD_fetch(ctx: *mut OSSL_LIB_CTX, algorithm: *const c_char, properties: *const c_char) -> *mut EVP_MD;
    pub fn EVP_MD_free(md: *mut EVP_MD);
    pub fn EVP_MD_get_size(md: *const EVP_MD) -> c_int;
    pub fn EVP_MD_get0_name(md: *const EVP_MD) -> *const c_char;
    pub fn EVP_MD_is_a(md: *const EVP_MD, name: *const c_char) -> c_int;
    pub fn EVP_MD_CTX_new() -> *mut EVP_MD_CTX;
    pub fn EVP_MD_CTX_free(ctx: *mut EVP_MD_CTX);
    pub fn EVP_MD_CTX_copy_ex(out: *mut EVP_MD_CTX, from: *const EVP_MD_CTX) -> c_int;
    pub fn EVP_MD_CTX_set_params(ctx: *mut EVP_MD_CTX, params: *const Param) -> c_int;
    pub fn EVP_MD_CTX_get_params(ctx: *mut EVP_MD_CTX, params: *mut Param) -> c_int;
    pub fn EVP_MD_CTX_gettable_params(ctx: *mut EVP_MD_CTX) -> *const Param;
    pub fn EVP_MD_CTX_settable_params(ctx: *mut EVP_MD_CTX) -> *const Param;
    pub fn EVP_DigestInit_ex2(ctx: *mut EVP_MD_CTX, md: *const EVP_MD, params: *const Param) -> c_int;
    pub fn EVP_DigestUpdate(ctx: *mut EVP_MD_CTX, data: *const c_void, len: usize) -> c_int;
    pub fn EVP_DigestFinal_ex(ctx: *mut EVP_MD_CTX, out: *mut c_uchar, len: *mut c_uint) -> c_int;

    pub fn EVP_PKEY_new() -> *mut EVP_PKEY;
    pub fn EVP_PKEY_free(key: *mut EVP_PKEY);
    pub fn EVP_PKEY_up_ref(key: *mut EVP_PKEY) -> c_int;
    pub fn EVP_PKEY_dup(key: *mut EVP_PKEY) -> *mut EVP_PKEY;
    pub fn EVP_PKEY_eq(a: *const EVP_PKEY, b: *const EVP_PKEY) -> c_int;
    pub fn EVP_PKEY_parameters_eq(a: *const EVP_PKEY, b: *const EVP_PKEY) -> c_int;
    pub fn EVP_PKEY_get_params(key: *const EVP_PKEY, params: *mut Param) -> c_int;
    pub fn EVP_PKEY_set_params(key: *mut EVP_PKEY, params: *mut Param) -> c_int;
    pub fn EVP_PKEY_gettable_params(key: *const EVP_PKEY) -> *const Param;
    pub fn EVP_PKEY_settable_params(key: *const EVP_PKEY) -> *const Param;
    pub fn EVP_PKEY_todata(key: *const EVP_PKEY, selection: c_int, params: *mut *mut Param) -> c_int;
    pub fn EVP_PKEY_export(key: *const EVP_PKEY, selection: c_int, callback: super::Callback, arg: *mut c_void) -> c_int;

    pub fn EVP_PKEY_CTX_new_from_name(ctx: *mut OSSL_LIB_CTX, name: *const c_char, properties: *const c_char) -> *mut EVP_PKEY_CTX;
    pub fn EVP_PKEY_CTX_new_from_pkey(ctx: *mut OSSL_LIB_CTX, key: *mut EVP_PKEY, properties: *const c_char) -> *mut EVP_PKEY_CTX;
    pub fn EVP_PKEY_CTX_dup(ctx: *const EVP_PKEY_CTX) -> *mut EVP_PKEY_CTX;
    pub fn EVP_PKEY_CTX_free(ctx: *mut EVP_PKEY_CTX);
    pub fn EVP_PKEY_CTX_set_params(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_CTX_get_params(ctx: *mut EVP_PKEY_CTX, params: *mut Param) -> c_int;
    pub fn EVP_PKEY_CTX_settable_params(ctx: *const EVP_PKEY_CTX) -> *const Param;
    pub fn EVP_PKEY_CTX_gettable_params(ctx: *const EVP_PKEY_CTX) -> *const Param;
    pub fn EVP_PKEY_fromdata_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_fromdata(ctx: *mut EVP_PKEY_CTX, key: *mut *mut EVP_PKEY, selection: c_int, params: *mut Param) -> c_int;
    pub fn EVP_PKEY_fromdata_settable(ctx: *mut EVP_PKEY_CTX, selection: c_int) -> *const Param;
    pub fn EVP_PKEY_keygen_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_paramgen_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_generate(ctx: *mut EVP_PKEY_CTX, key: *mut *mut EVP_PKEY) -> c_int;
    pub fn EVP_PKEY_check(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_public_check(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_public_check_quick(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_param_check(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_param_check_quick(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_private_check(ctx: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_pairwise_check(ctx: *mut EVP_PKEY_CTX) -> c_int;

    pub fn EVP_PKEY_sign_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_sign(ctx: *mut EVP_PKEY_CTX, sig: *mut c_uchar, siglen: *mut usize, tbs: *const c_uchar, tbslen: usize) -> c_int;
    pub fn EVP_PKEY_verify_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_verify(ctx: *mut EVP_PKEY_CTX, sig: *const c_uchar, siglen: usize, tbs: *const c_uchar, tbslen: usize) -> c_int;
    pub fn EVP_PKEY_verify_recover_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_verify_recover(
        ctx: *mut EVP_PKEY_CTX,
        rout: *mut c_uchar,
        routlen: *mut usize,
        sig: *const c_uchar,
        siglen: usize,
    ) -> c_int;
    pub fn EVP_PKEY_encrypt_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_encrypt(ctx: *mut EVP_PKEY_CTX, out: *mut c_uchar, outlen: *mut usize, input: *const c_uchar, inlen: usize) -> c_int;
    pub fn EVP_PKEY_decrypt_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_decrypt(ctx: *mut EVP_PKEY_CTX, out: *mut c_uchar, outlen: *mut usize, input: *const c_uchar, inlen: usize) -> c_int;
    pub fn EVP_PKEY_derive_init_ex(ctx: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub fn EVP_PKEY_derive_set_peer_ex(ctx: *mut EVP_PKEY_CTX, peer: *mut EVP_PKEY, validate: c_int) -> c_int;
    pub fn EVP_PKEY_derive(ctx: *mut EVP_PKEY_CTX, key: *mut c_uchar, keylen: *mut usize) -> c_int;

    pub fn EVP_DigestSignInit_ex(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        mdname: *const c_char,
        libctx: *mut OSSL_LIB_CTX,
        props: *const c_char,
        key: *mut EVP_PKEY,
        params: *const Param,
    ) -> c_int;
    pub fn EVP_DigestSignUpdate(ctx: *mut EVP_MD_CTX, data: *const c_void, len: usize) -> c_int;
    pub fn EVP_DigestSignFinal(ctx: *mut EVP_MD_CTX, sig: *mut c_uchar, siglen: *mut usize) -> c_int;
    pub fn EVP_DigestSign(ctx: *mut EVP_MD_CTX, sig: *mut c_uchar, siglen: *mut usize, tbs: *const c_uchar, tbslen: usize) -> c_int;
    pub fn EVP_DigestVerifyInit_ex(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        mdname: *const c_char,
        libctx: *mut OSSL_LIB_CTX,
        props: *const c_char,
        key: *mut EVP_PKEY,
        params: *const Param,
    ) -> c_int;
    pub fn EVP_DigestVerifyUpdate(ctx: *mut EVP_MD_CTX, data: *const c_void, len: usize) -> c_int;
    pub fn EVP_DigestVerifyFinal(ctx: *mut EVP_MD_CTX, sig: *const c_uchar, siglen: usize) -> c_int;
    pub fn EVP_DigestVerify(ctx: *mut EVP_MD_CTX, sig: *const c_uchar, siglen: usize, tbs: *const c_uchar, tbslen: usize) -> c_int;
}
