//! One algorithm under one key, in one thread.

use crate::functions::{Functions, Param, Pointer};
use crate::{NAME, failed};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Kind, Operation, Result, SessionParams};
use std::ffi::{CString, c_int, c_uint};
use std::ptr::{null, null_mut};

// From openssl/evp.h.
const CTRL_SET_IV_LEN: c_int = 0x9;
const CTRL_GET_TAG: c_int = 0x10;
const CTRL_SET_TAG: c_int = 0x11;
const MODE_CCM: c_int = 0x7;
/// From openssl/core.h.
const PARAM_UTF8_STRING: c_uint = 4;

/// A session that measures what OpenSSL's own code costs.
pub struct Session {
    functions: &'static Functions,
    algorithm: Algorithm,
    context: Context,
    tag_len: usize,
}

enum Context {
    Cipher { context: Pointer, direction: Direction, iv: usize },
    Aead { context: Pointer, direction: Direction, iv: usize, is_ccm: bool },
    Digest { context: Pointer, digest: Pointer },
    Mac { context: Pointer, len: usize },
}

// SAFETY: contexts belong to no thread; they must not be used by two at a time, which `&mut self` sees to.
unsafe impl Send for Session {}

impl Session {
    /// Opens a session that encrypts or decrypts (ciphers and AEADs), or computes (digests and MACs).
    ///
    /// # Errors
    /// [`Error::Unavailable`] without OpenSSL, [`Error::Unsupported`] for what this OpenSSL does not have and for public keys.
    pub fn open(params: &SessionParams, direction: Direction) -> Result<Self> {
        let functions = Functions::get()?;
        let algorithm = params.algorithm();
        let key: &[u8] = if let Key::Symmetric(key) = params.key() { key } else { &[] };
        let context = match algorithm.kind() {
            Kind::Cipher { iv, .. } => cipher(functions, algorithm, key, direction, iv)?,
            Kind::Aead { .. } => cipher(functions, algorithm, key, direction, 0)?,
            Kind::Digest { output } => digest(functions, algorithm, output)?,
            Kind::Mac { output } => mac(functions, algorithm, key, output)?,
            _ => return Err(unsupported(algorithm)),
        };
        Ok(Self { functions, algorithm, context, tag_len: params.tag_len() })
    }

    /// Runs one operation that has passed [`SessionParams::check`], in the session's direction.
    ///
    /// # Errors
    /// [`Error::Authentication`], [`Error::OutputTooSmall`], [`Error::EngineFailed`].
    pub fn run(&mut self, operation: &mut Operation<'_>) -> Result<()> {
        let needed = self.algorithm.output_len(operation.data.input_len());
        let (algorithm, given) = (self.algorithm, operation.data.output_len());
        if given < needed {
            return Err(Error::OutputTooSmall { algorithm, needed, given });
        }
        let ready = match self.context {
            Context::Cipher { direction, iv, .. } => operation.direction == direction && operation.iv.len() == iv,
            Context::Aead { direction, iv, .. } => {
                operation.direction == direction && operation.iv.len() == iv && operation.tag.len() == self.tag_len
            }
            Context::Digest { .. } | Context::Mac { .. } => operation.direction == Direction::Compute,
        };
        if !ready {
            return Err(Error::EngineFailed { engine: NAME.into(), reason: "the operation is not of the session's shape".into() });
        }
        let (iv, aad, tag) = (operation.iv, operation.aad, &mut *operation.tag);
        let (input, output, len) = match &mut operation.data {
            Data::InPlace(buffer) => (buffer.as_ptr(), buffer.as_mut_ptr(), buffer.len()),
            Data::Copy { input, output } => (input.as_ptr(), output.as_mut_ptr(), input.len()),
        };
        let len = c_int::try_from(len).map_err(|_| failed("a message of more than 2 GiB"))?;
        // SAFETY: input is as long as said, output at least as long as needed, and both are one or apart; IV and tag have their lengths.
        unsafe {
            match self.context {
                Context::Cipher { context, .. } => self.crypt(context, iv, input, output, len),
                Context::Aead { context, direction, is_ccm, .. } => {
                    self.seal_or_open(context, (direction, is_ccm), (iv, aad), tag, (input, output, len))
                }
                Context::Digest { context, digest } => self.hash(context, digest, input, output, len),
                Context::Mac { context, len: most } => self.authenticate(context, input, output, len, most),
            }
        }
    }

    /// # Safety
    /// `iv` as long as the cipher's; `input` and `output` of `len` bytes.
    unsafe fn crypt(&self, context: Pointer, iv: &[u8], input: *const u8, output: *mut u8, len: c_int) -> Result<()> {
        let f = self.functions;
        let mut written = 0;
        // SAFETY: as the caller says; direction -1 leaves it as it is. Without padding nothing is left for a final call.
        unsafe {
            check("EVP_CipherInit_ex2", (f.EVP_CipherInit_ex2)(context, null_mut(), null(), iv.as_ptr(), -1, null()))?;
            check("EVP_CipherUpdate", (f.EVP_CipherUpdate)(context, output, &mut written, input, len))
        }
    }

    /// # Safety
    /// `iv` and `tag` as long as the context was told; input and output of as many bytes as is said.
    unsafe fn seal_or_open(
        &self,
        context: Pointer,
        (direction, is_ccm): (Direction, bool),
        (iv, aad): (&[u8], &[u8]),
        tag: &mut [u8],
        (input, output, len): (*const u8, *mut u8, c_int),
    ) -> Result<()> {
        let f = self.functions;
        let (mut written, tag_len) = (0, tag.len() as c_int);
        let opens = direction == Direction::Decrypt;
        // SAFETY: as the caller says; a null output means associated data, and a null input with it the length that CCM must know.
        unsafe {
            if opens {
                let set = (f.EVP_CIPHER_CTX_ctrl)(context, CTRL_SET_TAG, tag_len, tag.as_mut_ptr().cast());
                check("EVP_CIPHER_CTX_ctrl", set)?;
            }
            check("EVP_CipherInit_ex2", (f.EVP_CipherInit_ex2)(context, null_mut(), null(), iv.as_ptr(), -1, null()))?;
            if is_ccm {
                check("EVP_CipherUpdate", (f.EVP_CipherUpdate)(context, null_mut(), &mut written, null(), len))?;
            }
            if !aad.is_empty() {
                let aad_len = c_int::try_from(aad.len()).map_err(|_| failed("associated data of more than 2 GiB"))?;
                check("EVP_CipherUpdate", (f.EVP_CipherUpdate)(context, null_mut(), &mut written, aad.as_ptr(), aad_len))?;
            }
            let updated = (f.EVP_CipherUpdate)(context, output, &mut written, input, len);
            if is_ccm && opens {
                return if updated == 1 { Ok(()) } else { Err(Error::Authentication) };
            }
            check("EVP_CipherUpdate", updated)?;
            // There is no text left to write; the room is that of the longest block.
            let mut rest = [0; 32];
            let finished = (f.EVP_CipherFinal_ex)(context, rest.as_mut_ptr(), &mut written);
            if opens {
                return if finished == 1 { Ok(()) } else { Err(Error::Authentication) };
            }
            check("EVP_CipherFinal_ex", finished)?;
            check("EVP_CIPHER_CTX_ctrl", (f.EVP_CIPHER_CTX_ctrl)(context, CTRL_GET_TAG, tag_len, tag.as_mut_ptr().cast()))
        }
    }

    /// # Safety
    /// `input` of `len` bytes; `output` as long as the digest.
    unsafe fn hash(&self, context: Pointer, digest: Pointer, input: *const u8, output: *mut u8, len: c_int) -> Result<()> {
        let f = self.functions;
        // SAFETY: as the caller says.
        unsafe {
            check("EVP_DigestInit_ex2", (f.EVP_DigestInit_ex2)(context, digest, null()))?;
            check("EVP_DigestUpdate", (f.EVP_DigestUpdate)(context, input, len as usize))?;
            check("EVP_DigestFinal_ex", (f.EVP_DigestFinal_ex)(context, output, null_mut()))
        }
    }

    /// # Safety
    /// `input` of `len` bytes; `output` of `most`.
    unsafe fn authenticate(&self, context: Pointer, input: *const u8, output: *mut u8, len: c_int, most: usize) -> Result<()> {
        let f = self.functions;
        let mut written = 0;
        // SAFETY: as the caller says; without a key the one it has is used again.
        unsafe {
            check("EVP_MAC_init", (f.EVP_MAC_init)(context, null(), 0, null()))?;
            check("EVP_MAC_update", (f.EVP_MAC_update)(context, input, len as usize))?;
            check("EVP_MAC_final", (f.EVP_MAC_final)(context, output, &mut written, most))
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let f = self.functions;
        // SAFETY: each was made by the function that belongs to this one, and is used by nobody else.
        unsafe {
            match self.context {
                Context::Cipher { context, .. } | Context::Aead { context, .. } => (f.EVP_CIPHER_CTX_free)(context),
                Context::Digest { context, digest } => {
                    (f.EVP_MD_CTX_free)(context);
                    (f.EVP_MD_free)(digest);
                }
                Context::Mac { context, .. } => (f.EVP_MAC_CTX_free)(context),
            }
        }
    }
}

/// OpenSSL's functions return 1 if all is well.
fn check(call: &str, result: c_int) -> Result<()> {
    if result == 1 { Ok(()) } else { Err(failed(call)) }
}

fn unsupported(algorithm: Algorithm) -> Error {
    Error::Unsupported { engine: NAME.into(), algorithm }
}

fn fetch(fetch: impl Fn(&CString) -> Pointer, algorithm: Algorithm) -> Result<Pointer> {
    let found = CString::new(algorithm.name()).map(|name| fetch(&name)).ok().filter(|found| !found.is_null());
    found.ok_or_else(|| unsupported(algorithm))
}

/// A context with its key. `iv` is 0 for an AEAD, whose IVs have the cipher's own length.
fn cipher(f: &'static Functions, algorithm: Algorithm, key: &[u8], direction: Direction, iv: usize) -> Result<Context> {
    // SAFETY: a C string, and the context made for fetching.
    let cipher = fetch(|name| unsafe { (f.EVP_CIPHER_fetch)(f.library, name.as_ptr(), null()) }, algorithm)?;
    let is_aead = matches!(algorithm.kind(), Kind::Aead { .. });
    // SAFETY: the cipher was fetched; the key is as long as the cipher's. What was made is freed if anything fails; the context keeps the cipher.
    unsafe {
        let is_ccm = (f.EVP_CIPHER_get_mode)(cipher) == MODE_CCM;
        let aead_iv = (f.EVP_CIPHER_get_iv_length)(cipher) as usize;
        let lengths = (f.EVP_CIPHER_get_key_length)(cipher) as usize == key.len() && (is_aead || aead_iv == iv);
        let context = (f.EVP_CIPHER_CTX_new)();
        let encrypts = c_int::from(direction != Direction::Decrypt);
        let ready = lengths
            && !context.is_null()
            && (f.EVP_CipherInit_ex2)(context, cipher, null(), null(), encrypts, null()) == 1
            // Both must be told to CCM before the key; 12 and 16 are what calibration uses.
            && (!is_ccm
                || (f.EVP_CIPHER_CTX_ctrl)(context, CTRL_SET_IV_LEN, 12, null_mut()) == 1
                    && (f.EVP_CIPHER_CTX_ctrl)(context, CTRL_SET_TAG, 16, null_mut()) == 1)
            && (f.EVP_CipherInit_ex2)(context, null_mut(), key.as_ptr(), null(), encrypts, null()) == 1
            && (is_aead || (f.EVP_CIPHER_CTX_set_padding)(context, 0) == 1);
        (f.EVP_CIPHER_free)(cipher);
        if !ready {
            (f.EVP_CIPHER_CTX_free)(context);
            return Err(unsupported(algorithm));
        }
        let iv = if is_ccm { 12 } else { aead_iv };
        Ok(if is_aead { Context::Aead { context, direction, iv, is_ccm } } else { Context::Cipher { context, direction, iv } })
    }
}

fn digest(f: &'static Functions, algorithm: Algorithm, len: usize) -> Result<Context> {
    // SAFETY: a C string, and the context made for fetching.
    let digest = fetch(|name| unsafe { (f.EVP_MD_fetch)(f.library, name.as_ptr(), null()) }, algorithm)?;
    // SAFETY: the digest was fetched.
    let (context, is_fit) = unsafe { ((f.EVP_MD_CTX_new)(), (f.EVP_MD_get_size)(digest) as usize == len) };
    let session = Context::Digest { context, digest };
    if context.is_null() || !is_fit {
        drop(Session { functions: f, algorithm, context: session, tag_len: 0 });
        return Err(unsupported(algorithm));
    }
    Ok(session)
}

/// HMAC with the digest that the algorithm's name ends with.
fn mac(f: &'static Functions, algorithm: Algorithm, key: &[u8], len: usize) -> Result<Context> {
    let digest =
        algorithm.name().strip_prefix("HMAC-").and_then(|digest| CString::new(digest).ok()).ok_or_else(|| unsupported(algorithm))?;
    let end = || Param { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };
    let named = Param {
        key: c"digest".as_ptr(),
        data_type: PARAM_UTF8_STRING,
        data: digest.as_ptr().cast_mut().cast(),
        data_size: digest.as_bytes().len(),
        return_size: 0,
    };
    let params = [named, end()];
    // SAFETY: C strings and a list of parameters that ends as it must, all of which outlive the calls; the context keeps the MAC.
    unsafe {
        let mac = (f.EVP_MAC_fetch)(f.library, c"HMAC".as_ptr(), null());
        if mac.is_null() {
            return Err(unsupported(algorithm));
        }
        let context = (f.EVP_MAC_CTX_new)(mac);
        (f.EVP_MAC_free)(mac);
        let ready = !context.is_null()
            && (f.EVP_MAC_init)(context, key.as_ptr(), key.len(), params.as_ptr()) == 1
            && (f.EVP_MAC_CTX_get_mac_size)(context) == len;
        if !ready {
            (f.EVP_MAC_CTX_free)(context);
            return Err(unsupported(algorithm));
        }
        Ok(Context::Mac { context, len })
    }
}
