//! Error numbers, as Linux has them.

use bywash_core::Error;
use core::fmt;

/// A positive `errno` value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Its name: `EINVAL`. Of those that the device answers.
            pub const fn name(self) -> &'static str {
                match self.0 { $($value => stringify!($name),)* _ => "errno" }
            }
        }
    };
}

errnos! {
    /// No such session to copy a hash from or to.
    ENOENT = 2;
    /// More data than one request takes (FreeBSD's dialect).
    E2BIG = 7;
    /// An engine failed.
    EIO = 5;
    /// No memory.
    ENOMEM = 12;
    /// An address that cannot be read or written.
    EFAULT = 14;
    /// The ring is full, or nothing in it is done.
    EBUSY = 16;
    /// The request makes no sense.
    EINVAL = 22;
    /// A hash copied to itself.
    EDEADLK = 35;
    /// A tag that does not verify.
    EBADMSG = 74;
    /// An operation that is not there.
    EOPNOTSUPP = 95;
}

impl Errno {
    /// What an engine's or client's error is to a program.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Authentication => Self::EBADMSG,
            Error::EngineFailed { .. } | Error::NotRun | Error::Timeout { .. } | Error::Unavailable { .. } => Self::EIO,
            Error::Quota { .. } => Self::ENOMEM,
            _ => Self::EINVAL,
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
