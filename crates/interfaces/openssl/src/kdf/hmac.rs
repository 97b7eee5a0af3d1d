//! HMAC (RFC 2104) on AWS-LC, or of SHA-384 on our own code: a key is hashed once, and the state it leaves is copied for each message.

use aws_lc_sys::{
    EVP_MD, EVP_sha256, EVP_sha384, HMAC_CTX, HMAC_CTX_cleanup, HMAC_CTX_init, HMAC_Final, HMAC_Init_ex, HMAC_Update, SHA256, SHA384,
};
use core::mem::MaybeUninit;
use core::ptr;
use zeroize::Zeroizing;

/// A digest's longest value, in bytes.
const VALUE_MAX: usize = 48;

/// The hash functions of TLS 1.2 and 1.3 that are computed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
}

/// A digest's value, of which the first [`Hash::len`] bytes count; wiped when dropped.
pub(crate) type Value = Zeroizing<[u8; VALUE_MAX]>;

/// Room for a value.
pub(crate) fn zeros() -> Value {
    Zeroizing::new([0; VALUE_MAX])
}

impl Hash {
    /// By any of the names that the default provider knows it by.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_one_of = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        if is_one_of(&["SHA2-256", "SHA256", "SHA-256"]) {
            Some(Self::Sha256)
        } else if is_one_of(&["SHA2-384", "SHA384", "SHA-384"]) {
            Some(Self::Sha384)
        } else {
            None
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA256",
            Self::Sha384 => "SHA384",
        }
    }

    /// Bytes of its values.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    fn md(self) -> *const EVP_MD {
        // SAFETY: no arguments; both are constants.
        unsafe {
            match self {
                Self::Sha256 => EVP_sha256(),
                Self::Sha384 => EVP_sha384(),
            }
        }
    }

    /// The hash of these bytes, into a place that its caller wipes.
    pub(crate) fn of(self, bytes: &[u8], value: &mut Value) {
        // SAFETY: bytes of the length they say; room for the longer of both values.
        unsafe {
            match self {
                Self::Sha256 => SHA256(bytes.as_ptr(), bytes.len(), value.as_mut_ptr()),
                Self::Sha384 => SHA384(bytes.as_ptr(), bytes.len(), value.as_mut_ptr()),
            }
        };
    }
}

/// HMAC under one key; wiped when dropped.
#[allow(clippy::large_enum_variant, reason = "it is made on the stack, for one derivation")]
pub(crate) enum Hmac {
    Library(LibraryHmac),
    /// Of SHA-384, where that is faster than the library's.
    #[cfg(target_arch = "x86_64")]
    Own(bywash_sha512::Hmac),
}

impl Hmac {
    /// Runs something with HMAC under this key, which stays where it is and is wiped there. None only where that answers so, or AWS-LC fails.
    pub(crate) fn with<T>(hash: Hash, key: &[u8], run: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut hmac = Self::new(hash);
        let done = if hmac.set_key(hash, key) { run(&mut hmac) } else { None };
        hmac.wipe_stack();
        done
    }

    /// Overwrites what our own code has left on the stack.
    fn wipe_stack(&self) {
        /// Bytes to which its frames reach; `tests/leftovers.rs` says if it is too little. Builds that optimise little need more.
        #[cfg(target_arch = "x86_64")]
        const REACH: usize = if cfg!(debug_assertions) { 16 << 10 } else { 2 << 10 };
        #[cfg(target_arch = "x86_64")]
        if matches!(self, Self::Own(_)) {
            crate::stack::overwrite::<REACH>();
        }
    }

    fn new(hash: Hash) -> Self {
        #[cfg(target_arch = "x86_64")]
        if hash == Hash::Sha384 && bywash_sha512::is_faster() {
            return Self::Own(bywash_sha512::Hmac::new(bywash_sha512::Kind::Sha384));
        }
        _ = hash;
        Self::Library(LibraryHmac::new())
    }

    fn set_key(&mut self, hash: Hash, key: &[u8]) -> bool {
        match self {
            Self::Library(hmac) => hmac.set_key(hash, key),
            #[cfg(target_arch = "x86_64")]
            Self::Own(hmac) => {
                hmac.set_key(key);
                true
            }
        }
    }

    /// The MAC of these parts, one after the other, into a place that its caller wipes: handed out by value, each move would leave a copy.
    pub(crate) fn of(&mut self, parts: &[&[u8]], value: &mut Value) -> Option<()> {
        match self {
            Self::Library(hmac) => hmac.of(parts, value),
            #[cfg(target_arch = "x86_64")]
            Self::Own(hmac) => {
                hmac.of(parts, &mut value[..]);
                Some(())
            }
        }
    }
}

/// HMAC of AWS-LC.
pub(crate) struct LibraryHmac {
    context: HMAC_CTX,
    is_fresh: bool,
}

impl LibraryHmac {
    fn new() -> Self {
        let mut context = MaybeUninit::uninit();
        // SAFETY: initialises all of it; it holds no pointer into itself, so it may be moved.
        let context = unsafe {
            HMAC_CTX_init(context.as_mut_ptr());
            context.assume_init()
        };
        Self { context, is_fresh: true }
    }

    fn set_key(&mut self, hash: Hash, key: &[u8]) -> bool {
        // SAFETY: an initialised context, and a key of the length it says.
        unsafe { HMAC_Init_ex(&raw mut self.context, key.as_ptr().cast(), key.len(), hash.md(), ptr::null_mut()) == 1 }
    }

    fn of(&mut self, parts: &[&[u8]], value: &mut Value) -> Option<()> {
        let mut len = 0;
        let context = &raw mut self.context;
        // SAFETY: a keyed context; parts of the lengths they say; room for the longest value that a hash of ours has.
        unsafe {
            let is_ready = core::mem::take(&mut self.is_fresh) || HMAC_Init_ex(context, ptr::null(), 0, ptr::null(), ptr::null_mut()) == 1;
            let done = is_ready
                && parts.iter().all(|part| HMAC_Update(context, part.as_ptr(), part.len()) == 1)
                && HMAC_Final(context, value.as_mut_ptr(), &raw mut len) == 1;
            done.then_some(())
        }
    }
}

impl Drop for LibraryHmac {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        unsafe { HMAC_CTX_cleanup(&raw mut self.context) };
    }
}
