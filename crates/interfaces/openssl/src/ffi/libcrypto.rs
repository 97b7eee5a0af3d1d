//! Public functions of libcrypto, as the manual pages of OpenSSL 3.0 describe them. Used in a private library context only
//! (see [`delegate`](crate::delegate)).
//!
//! The module is linked to no libcrypto: it calls the one that has loaded it, OpenSSL 3's or 4's, in a process with both the one that was first. The other is
//! served as well, since nothing of it is handed on; it alone has no jobs to suspend.
#![allow(
    missing_docs,
    non_snake_case,
    clippy::too_many_arguments,
    reason = "the manual pages of OpenSSL 3.0 are the documentation; names and arguments are theirs"
)]

use super::abi::Param;
use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use core::mem::{MaybeUninit, transmute_copy};
use core::ptr::NonNull;
use once_cell::race::OnceBox;

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

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// Where the functions are.
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Functions {
            /// All of them, by name; none if one is missing.
            ///
            /// # Safety
            /// `find` finds libcrypto's.
            unsafe fn of(find: impl Fn(&CStr) -> Option<NonNull<c_void>>) -> Option<Self> {
                Some(Self {
                    // SAFETY: the function of that name has this type, by its manual page.
                    $($name: unsafe { transmute_copy(&find(CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).ok()?)?) },)*
                })
            }
        }

        $(
            /// # Safety
            /// That of libcrypto's function of this name.
            #[inline]
            pub unsafe fn $name($($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller's.
                unsafe { (functions().$name)($($arg),*) }
            }
        )*
    };
}

functions! {
    fn OSSL_LIB_CTX_new() -> *mut OSSL_LIB_CTX;
    fn OSSL_LIB_CTX_free(ctx: *mut OSSL_LIB_CTX);
    fn OSSL_PROVIDER_load(ctx: *mut OSSL_LIB_CTX, name: *const c_char) -> *mut OSSL_PROVIDER;
    fn RAND_bytes_ex(ctx: *mut OSSL_LIB_CTX, buf: *mut c_uchar, num: usize, strength: c_uint) -> c_int;
    fn RAND_priv_bytes_ex(ctx: *mut OSSL_LIB_CTX, buf: *mut c_uchar, num: usize, strength: c_uint) -> c_int;
    fn CRYPTO_secure_malloc_initialized() -> c_int;
    fn ASYNC_get_current_job() -> *mut ASYNC_JOB;
    fn ASYNC_get_wait_ctx(job: *mut ASYNC_JOB) -> *mut ASYNC_WAIT_CTX;
    fn ASYNC_pause_job() -> c_int;
    fn ASYNC_WAIT_CTX_get_fd(ctx: *mut ASYNC_WAIT_CTX, key: *const c_void, fd: *mut c_int, custom: *mut *mut c_void) -> c_int;
    fn ASYNC_WAIT_CTX_set_wait_fd(
        ctx: *mut ASYNC_WAIT_CTX,
        key: *const c_void,
        fd: c_int,
        custom: *mut c_void,
        clean_up: Option<unsafe extern "C" fn(*mut ASYNC_WAIT_CTX, *const c_void, c_int, *mut c_void)>,
    ) -> c_int;
    fn EVP_CIPHER_fetch(ctx: *mut OSSL_LIB_CTX, algorithm: *const c_char, properties: *const c_char) -> *mut EVP_CIPHER;
    fn EVP_CIPHER_free(cipher: *mut EVP_CIPHER);
    fn EVP_CIPHER_CTX_new() -> *mut EVP_CIPHER_CTX;
    fn EVP_CIPHER_CTX_free(ctx: *mut EVP_CIPHER_CTX);
    fn EVP_CIPHER_CTX_copy(out: *mut EVP_CIPHER_CTX, from: *const EVP_CIPHER_CTX) -> c_int;
    fn EVP_CIPHER_CTX_get_params(ctx: *mut EVP_CIPHER_CTX, params: *mut Param) -> c_int;
    fn EVP_CipherInit_ex2(
        ctx: *mut EVP_CIPHER_CTX,
        cipher: *const EVP_CIPHER,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypt: c_int,
        params: *const Param,
    ) -> c_int;
    fn EVP_CipherUpdate(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, outl: *mut c_int, input: *const c_uchar, inl: c_int) -> c_int;
    fn EVP_MD_fetch(ctx: *mut OSSL_LIB_CTX, algorithm: *const c_char, properties: *const c_char) -> *mut EVP_MD;
    fn EVP_MD_free(md: *mut EVP_MD);
    fn EVP_MD_get_size(md: *const EVP_MD) -> c_int;
    fn EVP_MD_is_a(md: *const EVP_MD, name: *const c_char) -> c_int;
    fn EVP_MD_CTX_new() -> *mut EVP_MD_CTX;
    fn EVP_MD_CTX_free(ctx: *mut EVP_MD_CTX);
    fn EVP_MD_CTX_copy_ex(out: *mut EVP_MD_CTX, from: *const EVP_MD_CTX) -> c_int;
    fn EVP_MD_CTX_set_params(ctx: *mut EVP_MD_CTX, params: *const Param) -> c_int;
    fn EVP_MD_CTX_get_params(ctx: *mut EVP_MD_CTX, params: *mut Param) -> c_int;
    fn EVP_DigestInit_ex2(ctx: *mut EVP_MD_CTX, md: *const EVP_MD, params: *const Param) -> c_int;
    fn EVP_DigestUpdate(ctx: *mut EVP_MD_CTX, data: *const c_void, len: usize) -> c_int;
    fn EVP_DigestFinal_ex(ctx: *mut EVP_MD_CTX, out: *mut c_uchar, len: *mut c_uint) -> c_int;

    fn RSA_padding_check_PKCS1_type_2(to: *mut c_uchar, tlen: c_int, from: *const c_uchar, flen: c_int, rsa_len: c_int) -> c_int;
    fn RSA_padding_check_PKCS1_OAEP_mgf1(
        to: *mut c_uchar,
        tlen: c_int,
        from: *const c_uchar,
        flen: c_int,
        num: c_int,
        label: *const c_uchar,
        label_len: c_int,
        md: *const EVP_MD,
        mgf1: *const EVP_MD,
    ) -> c_int;

    fn OSSL_PROVIDER_get_capabilities(
        provider: *const OSSL_PROVIDER,
        capability: *const c_char,
        callback: super::Callback,
        arg: *mut c_void,
    ) -> c_int;

    fn OSSL_PROVIDER_query_operation(provider: *const OSSL_PROVIDER, operation: c_int, no_cache: *mut c_int) -> *const super::AlgorithmEntry;
    fn OSSL_PROVIDER_get0_provider_ctx(provider: *const OSSL_PROVIDER) -> *mut c_void;
}

static FUNCTIONS: OnceBox<Functions> = OnceBox::new();

/// Libcrypto where it is in no other's scope, or the program has one of its own and exports nothing of it.
const LIBRARIES: [&CStr; 2] = [c"libcrypto.so.3", c"libcrypto.so.4"];

/// Finds libcrypto's functions, in the library that `core`, one of its own, is in: once for the process. Whether they are there.
pub fn attach(core: *const c_void) -> bool {
    FUNCTIONS.get().is_some() || find(core).is_some_and(|functions| FUNCTIONS.set(Box::new(functions)).is_ok() || FUNCTIONS.get().is_some())
}

#[cold]
fn find(core: *const c_void) -> Option<Functions> {
    let mut place = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; what it answers names a library that is loaded, and RTLD_NOLOAD loads no other. That is never let go of.
    let loaded = unsafe {
        let is_known = libc::dladdr(core, place.as_mut_ptr()) != 0;
        let name = place.assume_init().dli_fname;
        if is_known && !name.is_null() { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) } else { core::ptr::null_mut() }
    };
    let open = |name: &CStr| {
        // SAFETY: libcrypto's initialisers have no requirements.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) }
    };
    let libraries = core::iter::once(loaded).chain(LIBRARIES.into_iter().map(open)).filter(|library| !library.is_null());
    libraries.into_iter().find_map(|library| {
        // SAFETY: libraries of OpenSSL, or the program, of whose names nobody else makes use.
        unsafe { Functions::of(|name| NonNull::new(libc::dlsym(library, name.as_ptr()))) }
    })
}

#[inline]
fn functions() -> &'static Functions {
    FUNCTIONS.get().unwrap_or_else(|| found_late())
}

/// Where nothing has loaded this as a module: tests.
#[cold]
fn found_late() -> &'static Functions {
    attach(core::ptr::null());
    FUNCTIONS.get().expect("whoever calls libcrypto has it")
}

// What only tests call, which are linked to a libcrypto.
unsafe extern "C" {
    pub fn OpenSSL_version_num() -> core::ffi::c_ulong;
    pub fn OSSL_LIB_CTX_load_config(ctx: *mut OSSL_LIB_CTX, file: *const c_char) -> c_int;
    pub fn OSSL_PROVIDER_unload(provider: *mut OSSL_PROVIDER) -> c_int;
    pub fn OSSL_PROVIDER_set_default_search_path(ctx: *mut OSSL_LIB_CTX, path: *const c_char) -> c_int;
    pub fn OSSL_PARAM_free(params: *mut Param);

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

    #[cfg(test)]
    pub fn ASYNC_WAIT_CTX_new() -> *mut ASYNC_WAIT_CTX;
    #[cfg(test)]
    pub fn ASYNC_WAIT_CTX_free(ctx: *mut ASYNC_WAIT_CTX);

    pub fn EVP_CIPHER_get_params(cipher: *mut EVP_CIPHER, params: *mut Param) -> c_int;
    pub fn EVP_CIPHER_get0_provider(cipher: *const EVP_CIPHER) -> *const OSSL_PROVIDER;
    pub fn OSSL_PROVIDER_get0_name(provider: *const OSSL_PROVIDER) -> *const c_char;
    pub fn EVP_CIPHER_CTX_ctrl(ctx: *mut EVP_CIPHER_CTX, what: c_int, arg: c_int, ptr: *mut c_void) -> c_int;
    pub fn EVP_CIPHER_CTX_set_padding(ctx: *mut EVP_CIPHER_CTX, padding: c_int) -> c_int;
    pub fn EVP_CIPHER_CTX_set_params(ctx: *mut EVP_CIPHER_CTX, params: *const Param) -> c_int;
    pub fn EVP_CipherFinal_ex(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, outl: *mut c_int) -> c_int;
    pub fn EVP_Cipher(ctx: *mut EVP_CIPHER_CTX, out: *mut c_uchar, input: *const c_uchar, inl: c_uint) -> c_int;

    pub fn EVP_MD_get0_name(md: *const EVP_MD) -> *const c_char;
    pub fn EVP_MD_CTX_gettable_params(ctx: *mut EVP_MD_CTX) -> *const Param;
    pub fn EVP_MD_CTX_settable_params(ctx: *mut EVP_MD_CTX) -> *const Param;

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
