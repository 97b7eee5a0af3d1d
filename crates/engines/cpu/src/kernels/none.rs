//! What stands in for the kernels on processors for which there are none.

use crate::wrong;
use bywash_core::{Algorithm, Keyed, Result, SecretBytes, Solo, Task};

/// Whether the kernels can run here.
pub(crate) fn is_supported() -> bool {
    false
}

/// Whether there is a kernel for the algorithm.
pub(crate) fn has(_: Algorithm) -> bool {
    false
}

/// Opens no session.
pub(crate) fn open(algorithm: Algorithm, _: &SecretBytes, _: usize) -> Result<Box<dyn Keyed>> {
    Err(wrong(algorithm, "have a kernel on this processor"))
}

/// How many encryptions gain from going together.
pub(crate) fn chains(_: Algorithm) -> usize {
    1
}

/// Leaves the batch as it is.
pub(crate) fn encrypt_together(_: &mut Vec<&mut Task<'_>>) {}

/// No cipher for one caller.
pub(crate) fn solo(_: Algorithm) -> Option<Box<dyn Solo>> {
    None
}

/// No paths either.
pub(crate) mod narrow {
    use bywash_core::{Algorithm, Keyed, Result, Solo};

    /// What computes a cipher: nothing here.
    #[derive(Clone, Copy, Debug)]
    pub enum Path {}

    impl Path {
        /// None.
        pub const ALL: [Self; 0] = [];

        /// Never asked.
        pub fn is_supported(self) -> bool {
            match self {}
        }
    }

    impl From<Path> for crate::aegis::Path {
        fn from(path: Path) -> Self {
            match path {}
        }
    }

    pub(crate) fn best() -> Option<Path> {
        None
    }

    pub(crate) fn has(path: Path, _: Algorithm) -> bool {
        match path {}
    }

    pub(crate) fn solo(path: Path, _: Algorithm) -> Option<Box<dyn Solo>> {
        match path {}
    }

    pub(crate) fn open(path: Path, _: Algorithm, _: &[u8], _: usize) -> Result<Box<dyn Keyed>> {
        match path {}
    }
}
