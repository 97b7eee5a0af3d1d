//! Where numbers lie. A load that lies as far into its page as a store that is under way may wait for it: how far what a window reads and writes lies into its
//! pages decides about 3 % of RSA-2048, and is not to be an accident of each allocation.

use crate::vector::V;
use core::ops::{Deref, DerefMut};
use zeroize::Zeroize;

/// What begins with a page of memory.
#[repr(C, align(4096))]
pub(crate) struct Paged<T>(pub(crate) T);

/// Registers from the beginning of a page on. Wiped when dropped.
pub(super) struct Place {
    all: Vec<V>,
    from: usize,
}

impl Place {
    /// So many, all zero.
    pub(super) fn new(len: usize) -> Self {
        let page = align_of::<Paged<V>>();
        let all = vec![V::ZERO; len + page / size_of::<V>() - 1];
        let from = all.as_ptr().align_offset(page);
        Self { all, from }
    }
}

impl Deref for Place {
    type Target = [V];

    fn deref(&self) -> &[V] {
        &self.all[self.from..]
    }
}

impl DerefMut for Place {
    fn deref_mut(&mut self) -> &mut [V] {
        &mut self.all[self.from..]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Not the vector, which would be empty then.
        self.all.as_mut_slice().zeroize();
    }
}
