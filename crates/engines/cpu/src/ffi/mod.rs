//! The one place where AWS-LC is called: safe types over its C interface, and all of this crate's `unsafe`.
//!
//! Each type owns one object of the library and frees it on drop. `OPENSSL_free` wipes what it frees (`crypto/mem.c`), and so `BN_free`,
//! `RSA_free`, `EC_KEY_free` and `EVP_CIPHER_CTX_free` leave no key behind; objects in our own boxes are wiped with `OPENSSL_cleanse`.
//! The library's thread-local error queue is cleared whenever a call fails: the reason is of no use to a caller and
//! would otherwise pile up.

pub(crate) mod aead;
pub(crate) mod aes;
pub(crate) mod blowfish;
pub(crate) mod cipher;
pub(crate) mod dsa;
pub(crate) mod ec;
pub(crate) mod ed25519;
pub(crate) mod forks;
pub(crate) mod hash;
pub(crate) mod library;
pub(crate) mod number;
#[cfg(target_arch = "x86_64")]
pub(crate) mod random;
pub(crate) mod residue;
pub(crate) mod rsa;
pub(crate) mod x25519;

use aws_lc_sys as lc;
use bywash_core::Data;

/// The library said no. Which of the reasons it was is known from the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// A call's `1` for success.
fn accepted(code: core::ffi::c_int) -> Result<(), Refused> {
    if code == 1 { Ok(()) } else { Err(refused()) }
}

/// Overwrites bytes in a way that the compiler does not leave out.
pub(crate) fn wipe(bytes: &mut [u8]) {
    // SAFETY: writable for its length.
    unsafe { lc::OPENSSL_cleanse(bytes.as_mut_ptr().cast(), bytes.len()) };
}

fn refused() -> Refused {
    // SAFETY: takes no argument and touches this thread's error queue alone.
    unsafe { lc::ERR_clear_error() };
    Refused
}

/// Input and output as C wants them: `len` readable bytes and `len` writable ones, either the same or apart.
struct Spans {
    input: *const u8,
    output: *mut u8,
    len: usize,
}

impl Spans {
    /// The pointers live as long as the borrow of `data`; `Refused` if the output is shorter than the input.
    fn of(data: &mut Data<'_>) -> Result<Self, Refused> {
        match data {
            Data::InPlace(buffer) => {
                let output = buffer.as_mut_ptr();
                Ok(Self { input: output, output, len: buffer.len() })
            }
            Data::Copy { input, output } if output.len() >= input.len() => {
                Ok(Self { input: input.as_ptr(), output: output.as_mut_ptr(), len: input.len() })
            }
            Data::Copy { .. } => Err(Refused),
        }
    }
}
