//! The environment, unless it is a stranger's.
//!
//! A set-user-ID program (or one with file capabilities) runs with rights that whoever started it lacks, in an environment that this person
//! wrote. Were it to say there which socket is the broker's and that everything is to be queued, the program would hand over its
//! private keys. So such a program sees none of our variables, as libcrypto shows it no `OPENSSL_CONF`.

use std::ffi::OsString;

mod auxv {
    use core::ffi::c_ulong;

    const AT_SECURE: c_ulong = 23;

    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }

    /// What the kernel said of this program when it started it.
    pub(super) fn is_secure() -> bool {
        // SAFETY: looks a number up in what the kernel laid out for this process; takes and gives numbers only.
        unsafe { getauxval(AT_SECURE) != 0 }
    }
}

/// A variable's value, if it is not empty and this program runs with no more rights than whoever started it.
pub fn variable(name: &str) -> Option<OsString> {
    if auxv::is_secure() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}
