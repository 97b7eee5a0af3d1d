//! The built module, loaded into libcrypto through its public interface beside the default provider.
#![allow(unreachable_pub, reason = "shared by test files, each a crate of its own")]
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "tests call libcrypto as its manual pages say, with buffers that outlive the calls")]

pub mod kdf;
pub mod pair;

use bywash_openssl::ffi::Param;
use bywash_openssl::ffi::abi::{OCTET_STRING, UNSIGNED_INTEGER};
use bywash_openssl::ffi::libcrypto::*;
use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

/// The module that cargo built along with this test.
pub fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let module = deps.join("libbywash_openssl.so");
    assert!(module.exists(), "{} is missing; `cargo test -p bywash-openssl` builds it", module.display());
    module
}

/// A configuration with Bywash first, for this route. What stays in place might find a broker, as far as is known at first, so that all is offered: its socket is
/// a file that is none.
pub fn configuration(route: &str, folder: &Path) -> PathBuf {
    let socket = if route == "queue" { "none".into() } else { folder.join(format!("{route}.cnf")) };
    configuration_with(route, &socket, folder, "")
}

fn configuration_with(route: &str, socket: &Path, folder: &Path, setting: &str) -> PathBuf {
    let file = folder.join(format!("{route}.cnf"));
    let module = module();
    let text = format!(
        "openssl_conf = init\n[init]\nproviders = providers\n[providers]\nbywash = bywash\ndefault = default_sect\n\
         [bywash]\nmodule = {}\nactivate = 1\nroute = {route}\nsocket = {}\n{setting}\n[default_sect]\nactivate = 1\n",
        module.display(),
        socket.display()
    );
    std::fs::write(&file, text).expect("a temporary folder can be written");
    file
}

/// A library context with both providers in it.
pub struct Library {
    pub context: *mut OSSL_LIB_CTX,
    _folder: tempfile::TempDir,
}

impl Library {
    pub fn new(route: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = configuration(route, folder.path());
        Self::load(&file, folder)
    }

    /// Without any broker's socket.
    pub fn alone(route: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = configuration_with(route, Path::new("none"), folder.path(), "");
        Self::load(&file, folder)
    }

    /// Without any broker's socket, and with a bound for keyed ciphers that a thread keeps.
    pub fn keeping(keep: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = configuration_with("here", Path::new("none"), folder.path(), &format!("keep = {keep}"));
        Self::load(&file, folder)
    }

    fn load(file: &Path, folder: tempfile::TempDir) -> Self {
        let file = CString::new(file.to_str().expect("a plain path")).expect("a plain path");
        let context = unsafe { OSSL_LIB_CTX_new() };
        assert!(!context.is_null());
        assert_eq!(unsafe { OSSL_LIB_CTX_load_config(context, file.as_ptr()) }, 1, "the configuration is refused: {}", last_error());
        Self { context, _folder: folder }
    }

    pub fn cipher(&self, name: &str, provider: &str) -> Cipher {
        let found = self.find(name, &format!("provider={provider}"));
        found.unwrap_or_else(|| panic!("{provider} does not offer {name:?}: {}", last_error()))
    }

    /// The cipher that the properties find, if there is one.
    pub fn find(&self, name: &str, properties: &str) -> Option<Cipher> {
        let (name, properties) = (CString::new(name).unwrap(), CString::new(properties).unwrap());
        let cipher = unsafe { EVP_CIPHER_fetch(self.context, name.as_ptr(), properties.as_ptr()) };
        (!cipher.is_null()).then_some(Cipher(cipher))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        unsafe { OSSL_LIB_CTX_free(self.context) };
    }
}

/// The last error in words.
pub fn last_error() -> String {
    let mut data = ptr::null();
    let code = unsafe { ERR_peek_error_all(ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &raw mut data, ptr::null_mut()) };
    let reason = unsafe { ERR_reason_error_string(code) };
    let text = |text: *const std::ffi::c_char| {
        if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
    };
    format!("{} ({})", text(reason), text(data))
}

/// The reason of the first error, in words, and an empty queue.
pub fn take_reason() -> String {
    let code = unsafe { ERR_peek_error_all(ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut()) };
    let reason = unsafe { ERR_reason_error_string(code) };
    let text = if reason.is_null() { String::new() } else { unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned() };
    unsafe { ERR_clear_error() };
    text
}

/// The first error as a number, library and all, and an empty queue.
pub fn take_code() -> std::ffi::c_ulong {
    let code = unsafe { ERR_peek_error_all(ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut()) };
    unsafe { ERR_clear_error() };
    code
}

pub struct Cipher(pub *mut EVP_CIPHER);

impl Cipher {
    pub fn number(&self, key: &CStr) -> u64 {
        let mut value = 0_u64;
        let mut params = [Param::new(key, UNSIGNED_INTEGER, (&raw mut value).cast(), 8), Param::END];
        assert_eq!(unsafe { EVP_CIPHER_get_params(self.0, params.as_mut_ptr()) }, 1);
        value
    }
    pub fn provider(&self) -> &str {
        unsafe { CStr::from_ptr(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(self.0))) }.to_str().unwrap()
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        unsafe { EVP_CIPHER_free(self.0) };
    }
}

/// A cipher context.
pub struct Context(pub *mut EVP_CIPHER_CTX);

pub const SET_IVLEN: c_int = 0x9;
pub const GET_TAG: c_int = 0x10;
pub const SET_TAG: c_int = 0x11;
pub const SET_IV_FIXED: c_int = 0x12;
pub const IV_GEN: c_int = 0x13;
pub const TLS1_AAD: c_int = 0x16;
pub const SET_IV_INV: c_int = 0x18;

impl Context {
    pub fn new() -> Self {
        Self(unsafe { EVP_CIPHER_CTX_new() })
    }
    pub fn init(&self, cipher: Option<&Cipher>, key: Option<&[u8]>, iv: Option<&[u8]>, encrypt: c_int) -> bool {
        let pointer = |bytes: Option<&[u8]>| bytes.map_or(ptr::null(), <[u8]>::as_ptr);
        let cipher = cipher.map_or(ptr::null(), |cipher| cipher.0.cast_const());
        unsafe { EVP_CipherInit_ex2(self.0, cipher, pointer(key), pointer(iv), encrypt, ptr::null()) == 1 }
    }
    /// Output apart from input.
    pub fn update(&self, input: &[u8]) -> Option<Vec<u8>> {
        let mut output = vec![0xA5; input.len() + 32];
        let mut len = 0;
        let done = unsafe { EVP_CipherUpdate(self.0, output.as_mut_ptr(), &raw mut len, input.as_ptr(), input.len() as c_int) };
        output.truncate(len as usize);
        (done == 1).then_some(output)
    }
    /// Output over input; there is room for one block more.
    pub fn update_in_place(&self, input: &[u8]) -> Option<Vec<u8>> {
        let mut buffer = input.to_vec();
        buffer.resize(input.len() + 32, 0);
        let mut len = 0;
        let done = unsafe { EVP_CipherUpdate(self.0, buffer.as_mut_ptr(), &raw mut len, buffer.as_ptr(), input.len() as c_int) };
        buffer.truncate(len as usize);
        (done == 1).then_some(buffer)
    }
    pub fn aad(&self, aad: &[u8]) -> Option<i32> {
        let mut len = 0;
        let done = unsafe { EVP_CipherUpdate(self.0, ptr::null_mut(), &raw mut len, aad.as_ptr(), aad.len() as c_int) };
        (done == 1).then_some(len)
    }
    pub fn finish(&self) -> Option<Vec<u8>> {
        let mut output = vec![0xA5; 64];
        let mut len = 0;
        let done = unsafe { EVP_CipherFinal_ex(self.0, output.as_mut_ptr(), &raw mut len) };
        output.truncate(len as usize);
        (done == 1).then_some(output)
    }
    /// `EVP_Cipher`, in place or apart.
    pub fn step(&self, input: &[u8], in_place: bool) -> (c_int, Vec<u8>) {
        let mut output = if in_place { input.to_vec() } else { Vec::new() };
        output.resize(input.len() + 32, 0);
        let from = if in_place { output.as_ptr() } else { input.as_ptr() };
        let done = unsafe { EVP_Cipher(self.0, output.as_mut_ptr(), from, input.len() as u32) };
        output.truncate(if done >= 0 { input.len() } else { 0 });
        (done, output)
    }
    pub fn ctrl(&self, what: c_int, arg: c_int, bytes: &mut [u8]) -> c_int {
        unsafe { EVP_CIPHER_CTX_ctrl(self.0, what, arg, bytes.as_mut_ptr().cast()) }
    }
    pub fn set_ivlen(&self, len: usize) -> bool {
        unsafe { EVP_CIPHER_CTX_ctrl(self.0, SET_IVLEN, len as c_int, ptr::null_mut()) == 1 }
    }
    pub fn tag(&self, len: usize) -> Option<Vec<u8>> {
        let mut tag = vec![0; len];
        (self.ctrl(GET_TAG, len as c_int, &mut tag) == 1).then_some(tag)
    }
    pub fn set_tag(&self, tag: &[u8]) -> bool {
        self.ctrl(SET_TAG, tag.len() as c_int, &mut tag.to_vec()) == 1
    }
    pub fn set_padding(&self, padding: bool) -> bool {
        unsafe { EVP_CIPHER_CTX_set_padding(self.0, padding.into()) == 1 }
    }
    pub fn octets(&self, key: &CStr, len: usize) -> Option<Vec<u8>> {
        let mut value = vec![0; len];
        let mut params = [Param::new(key, OCTET_STRING, value.as_mut_ptr().cast(), len), Param::END];
        (unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) } == 1).then(|| {
            value.truncate(params[0].return_size);
            value
        })
    }
    pub fn number(&self, key: &CStr) -> Option<u64> {
        let mut value = 0_u64;
        let mut params = [Param::new(key, UNSIGNED_INTEGER, (&raw mut value).cast(), 8), Param::END];
        (unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) } == 1).then_some(value)
    }
    pub fn set_number(&self, key: &CStr, value: u64) -> bool {
        let mut value = value;
        let params = [Param::new(key, UNSIGNED_INTEGER, (&raw mut value).cast(), 8), Param::END];
        unsafe { EVP_CIPHER_CTX_set_params(self.0, params.as_ptr()) == 1 }
    }
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        assert_eq!(unsafe { EVP_CIPHER_CTX_copy(copy.0, self.0) }, 1, "{}", last_error());
        copy
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { EVP_CIPHER_CTX_free(self.0) };
    }
}

/// Reproducible random numbers (xorshift64*).
pub struct Random(pub u64);

impl Random {
    /// Seeded by `BYWASH_TEST_SEED`, or always the same.
    pub fn new(stream: u64) -> Self {
        let seed = std::env::var("BYWASH_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5EED_u64);
        Self((seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)).max(1))
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
