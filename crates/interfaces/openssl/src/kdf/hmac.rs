//! HMAC (RFC 2104) on AWS-LC: a key is hashed once, and the state it leaves is copied for each message.

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
pub(super) enum Hash {
    Sha256,
    Sha384,
}

/// A digest's value, of which the first [`Hash::len`] bytes count; wiped when dropped.
pub(super) type Value = Zeroizing<[u8; VALUE_MAX]>;

/// Room for a value.
pub(super) fn zeros() -> Value {
    Zeroizing::new([0; VALUE_MAX])
}

impl Hash {
    /// By any of the names that the default provider knows it by.
    pub(super) fn of(name: &str) -> Option<Self> {
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
    pub(super) fn len(self) -> usize {
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

    /// The hash of nothing.
    pub(super) fn of_nothing(self) -> Value {
        let mut value = zeros();
        // SAFETY: room for the longer of both values; no input.
        unsafe {
            match self {
                Self::Sha256 => SHA256(ptr::null(), 0, value.as_mut_ptr()),
                Self::Sha384 => SHA384(ptr::null(), 0, value.as_mut_ptr()),
            }
        };
        value
    }
}

/// HMAC under one key; wiped when dropped.
pub(super) struct Hmac {
    context: HMAC_CTX,
    is_fresh: bool,
}

impl Hmac {
    /// Runs something with HMAC under this key, which stays where it is and is wiped there. None only where that answers so, or AWS-LC fails.
    pub(super) fn with<T>(hash: Hash, key: &[u8], run: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut context = MaybeUninit::uninit();
        // SAFETY: initialises all of it; it holds no pointer into itself, so it may be moved.
        let context = unsafe {
            HMAC_CTX_init(context.as_mut_ptr());
            context.assume_init()
        };
        let mut hmac = Self { context, is_fresh: true };
        // SAFETY: an initialised context, and a key of the length it says.
        let keyed = unsafe { HMAC_Init_ex(&raw mut hmac.context, key.as_ptr().cast(), key.len(), hash.md(), ptr::null_mut()) } == 1;
        if keyed { run(&mut hmac) } else { None }
    }

    /// The MAC of these parts, one after the other, into a place that its caller wipes: handed out by value, each move would leave a copy.
    pub(super) fn of(&mut self, parts: &[&[u8]], value: &mut Value) -> Option<()> {
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

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        unsafe { HMAC_CTX_cleanup(&raw mut self.context) };
    }
}
