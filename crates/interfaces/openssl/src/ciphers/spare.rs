//! Ciphers that contexts of this thread have done with, for its next ones: room for keys is large and aligned, and takes the allocator longer to find than a
//! short message takes in all. They hold no secret.

use bywash_core::{Algorithm, Solo};
use core::cell::RefCell;

/// How many are kept: a TLS connection has four contexts at a time.
const KEPT: usize = 8;

type Spares = Vec<(Algorithm, Box<dyn Solo>)>;

thread_local! {
    static SPARES: RefCell<Spares> = const { RefCell::new(Vec::new()) };
}

/// Does something with this thread's, unless the thread is ending.
fn with<T>(run: impl FnOnce(&mut Spares) -> Option<T>) -> Option<T> {
    SPARES.try_with(|spares| run(&mut *spares.try_borrow_mut().ok()?)).ok().flatten()
}

/// One for the algorithm, if there is one. All providers of a process have the same engine in place, so whose it was does not matter.
pub(super) fn take(algorithm: Algorithm) -> Option<Box<dyn Solo>> {
    with(|spares| {
        let found = spares.iter().rposition(|(of, _)| *of == algorithm)?;
        Some(spares.swap_remove(found).1)
    })
}

/// Keeps one, in the place of another if there are enough.
pub(super) fn keep(algorithm: Algorithm, mut solo: Box<dyn Solo>) {
    solo.forget_key();
    let replaced = with(|spares| {
        let replaced = (spares.len() == KEPT).then(|| spares.swap_remove(0));
        spares.push((algorithm, solo));
        replaced
    });
    drop(replaced);
}
