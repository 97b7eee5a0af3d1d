//! What a context has done and not yet told the client, which keeps the accounts.

/// Operations after which a context that has done many tells of them.
const MOST: u8 = 64;

/// Operations and bytes. They are told after the first operation, then after twice as many each time, and when the context is freed: a program that never
/// frees its contexts, as a generator of random numbers does, loses at most half of what one has done, and never as many as [`MOST`].
pub(super) struct Accounts {
    operations: u64,
    bytes: u64,
    until: u8,
}

impl Accounts {
    pub(super) const fn new() -> Self {
        Self { operations: 0, bytes: 0, until: 1 }
    }

    /// Adds an operation. True if it is time to tell.
    #[inline(always)]
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        (self.operations, self.bytes) = (self.operations + 1, self.bytes + bytes as u64);
        self.operations >= u64::from(self.until)
    }

    /// What is to be told, if there is something; it begins anew.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        let told = (core::mem::take(&mut self.operations), core::mem::take(&mut self.bytes));
        if told.0 == 0 {
            return None;
        }
        self.until = (2 * self.until).min(MOST);
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_are_untold_and_never_many() {
        let (mut accounts, mut told) = (Accounts::new(), (0, 0));
        // As with each new key.
        assert_eq!(accounts.take(), None);
        for operation in 1..1000_u64 {
            if accounts.add(16) {
                let (operations, bytes) = accounts.take().unwrap();
                told = (told.0 + operations, told.1 + bytes);
            }
            let untold = operation - told.0;
            assert!(2 * untold <= operation && untold < u64::from(MOST), "{untold} of {operation}");
        }
        let (operations, bytes) = accounts.take().unwrap();
        assert_eq!((told.0 + operations, told.1 + bytes), (999, 999 * 16));
        assert_eq!(accounts.take(), None);
    }
}
