//! Keys that come again: a program that makes and keys a context for each message finds its key expanded, by the cipher of a context that this thread has freed.
//!
//! A key outlives its contexts only if this thread was given it twice, in two contexts or after another key, within a second (or one whose 16 bits are the same), and for no longer than until the
//! thread next gives a GCM context a key, a second or more after the last use of that key; until the thread ends, or says that it is done (`OPENSSL_thread_stop`), or the provider is unloaded. So the keys of connections and files, each of
//! which has its context, are wiped with that as ever. A thread whose keys do not come again keeps none, and looks at an eighth of them ([`Watch`]). Where the program has set up OpenSSL's secure heap nothing is kept: whoever does that has said how keys are to lie in memory.

use crate::ffi::guard;
use crate::ffi::libcrypto::CRYPTO_secure_malloc_initialized;
use crate::provider::Provider;
use bywash_client::{Kept, Seen, Tag, Watch};
use bywash_core::{Algorithm, Solo};
use core::cell::RefCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counted up when a provider is unloaded: threads that have kept something wipe it when they are next here.
static UNLOADED: AtomicU64 = AtomicU64::new(0);

struct Recurring {
    kept: Kept,
    seen: Seen,
    watch: Watch,
    /// [`UNLOADED`] when last looked at.
    unloaded: u64,
    /// The providers that have asked to be told when this thread stops.
    told: Vec<u64>,
}

thread_local! {
    static RECURRING: RefCell<Recurring> =
        const { RefCell::new(Recurring { kept: Kept::new(), seen: Seen::new(), watch: Watch::new(), unloaded: 0, told: Vec::new() }) };
}

/// Does something with this thread's, unless the thread is ending.
fn with<T>(run: impl FnOnce(&mut Recurring) -> T) -> Option<T> {
    RECURRING.try_with(|recurring| recurring.try_borrow_mut().ok().map(|mut recurring| run(recurring.settled()))).ok().flatten()
}

impl Recurring {
    fn settled(&mut self) -> &mut Self {
        let unloaded = UNLOADED.load(Relaxed);
        if self.unloaded != unloaded {
            self.kept.clear();
            self.unloaded = unloaded;
        }
        self
    }
}

/// What is known of a key, and what it is found by.
pub(super) enum Found {
    /// A cipher that has it.
    Ready(Tag, Box<dyn Solo>),
    /// It was here lately.
    Again(Tag),
    /// It is new, or was not looked for.
    New,
}

/// Looks for a key that is another than the context has.
#[inline]
pub(super) fn find(algorithm: Algorithm, key: &[u8], most: usize) -> Found {
    let find =
        |recurring: &mut Recurring| if recurring.watch.looks(most) { recurring.look(algorithm, key, most) } else { recurring.pass_by() };
    with(find).unwrap_or(Found::New)
}

impl Recurring {
    fn look(&mut self, algorithm: Algorithm, key: &[u8], most: usize) -> Found {
        let tag = Tag::of(algorithm, key);
        let found = match self.kept.take(algorithm, tag, key) {
            Some(solo) => Found::Ready(tag, solo),
            None if self.seen.note(tag, most) => Found::Again(tag),
            None => return Found::New,
        };
        self.watch.found();
        found
    }

    /// What is kept has had no use for longer than there would have been use for it.
    #[inline]
    fn pass_by(&mut self) -> Found {
        if !self.kept.is_empty() {
            self.kept.clear();
        }
        Found::New
    }
}

/// Keeps a cipher with the key of this tag, for a provider that may keep so many. What is not kept, or had to go for it, of whatever algorithm, comes back with its key.
pub(super) fn keep(provider: &Provider, algorithm: Algorithm, tag: Tag, solo: Box<dyn Solo>) -> Option<(Algorithm, Box<dyn Solo>)> {
    // SAFETY: takes nothing, and reads a number.
    if unsafe { CRYPTO_secure_malloc_initialized() } != 0 {
        return Some((algorithm, solo));
    }
    let mut given = Some(solo);
    let goes = with(|recurring| {
        if !recurring.told.contains(&provider.number()) && provider.tell_when_thread_stops(thread_stops) {
            recurring.told.push(provider.number());
        }
        given.take().and_then(|solo| recurring.kept.keep(algorithm, tag, solo, provider.keeps_most()))
    });
    goes.flatten().or(given.map(|solo| (algorithm, solo)))
}

/// Wipes what this thread has kept, and has the others wipe theirs when they are next here: a provider is being unloaded.
pub(crate) fn unload() {
    UNLOADED.fetch_add(1, Relaxed);
    with(|_| ());
}

/// The program says that the thread is done with OpenSSL, or it ends.
unsafe extern "C" fn thread_stops(_: *mut c_void) {
    guard((), || {
        with(|recurring| {
            recurring.kept.clear();
            recurring.told.clear();
        });
    });
}

/// How many ciphers this thread keeps.
#[cfg(test)]
pub(super) fn count() -> usize {
    with(|recurring| recurring.kept.len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::Cipher;
    use super::super::gcm::Gcm;
    use super::super::io::Io;
    use super::super::passed::Held;
    use super::super::spec::{Mode, Spec};
    use super::*;
    use bywash_client::Route;
    use bywash_core::Direction;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    const SPEC: &Spec = &Spec::new(Algorithm::Aes256Gcm, Mode::Gcm);

    /// A provider that keeps so many; none where the engine has no cipher to keep.
    fn provider(keep: usize) -> Option<&'static Provider> {
        let mut provider = Provider::of_no_program(Route::Here);
        provider.keep(keep);
        let has_solo = provider.client()?.solo(Algorithm::Aes256Gcm).is_some();
        if !has_solo {
            eprintln!("skipped: this processor has no AES-GCM of ours");
        }
        has_solo.then(|| &*Box::leak(Box::new(provider)))
    }

    fn context(provider: &'static Provider) -> Box<Held<Gcm>> {
        Held::new(provider, SPEC).unwrap()
    }

    fn seal(held: &mut Held<Gcm>, key: u8) -> [u8; 40] {
        let Held::Own(own) = held else { panic!("not ours") };
        own.init(Direction::Encrypt, Some(&[key; 32]), Some(&[2; 12])).unwrap();
        let mut text = [7; 40];
        let at = text.as_mut_ptr();
        // SAFETY: 40 bytes, in place, for the time of the call.
        own.update(&mut unsafe { Io::new(at, 40, at, 40) }).unwrap();
        text
    }

    /// Whether a scenario comes out as it should. It is begun anew, with nothing kept, where it does not: this thread may have been put off for a second in the middle. One at a time, for
    /// what is unloaded in one thread is forgotten in all.
    fn comes_out(scenario: impl Fn() -> bool + Sync) -> bool {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        (0..50).any(|_| thread::scope(|scope| scope.spawn(&scenario).join().unwrap()))
    }

    #[test]
    fn a_key_of_one_context_goes_with_it_and_one_of_two_stays() {
        let Some(provider) = provider(4) else { return };
        assert!(comes_out(|| {
            let first = seal(&mut context(provider), 1);
            let mut counts = vec![count()];
            for _ in 0..3 {
                assert_eq!(seal(&mut context(provider), 1), first);
                counts.push(count());
            }
            let mut held = context(provider);
            seal(&mut held, 1);
            counts.push(count());
            drop(held);
            for others in [2..6, 6..50] {
                for key in others {
                    seal(&mut context(provider), key);
                }
                counts.push(count());
            }
            // Nobody knows at first that it comes again; while a context has it, the table does not; keys of one message each are not kept, and after many of them it is not either.
            counts == [0, 1, 1, 1, 0, 1, 0]
        }));
    }

    #[test]
    fn a_context_that_goes_from_key_to_key_leaves_them_ready() {
        let Some(provider) = provider(4) else { return };
        assert!(comes_out(|| {
            let mut held = context(provider);
            let first = [1, 2, 3].map(|key| seal(&mut held, key));
            for _ in 0..4 {
                assert_eq!([1, 2, 3].map(|key| seal(&mut held, key)), first);
            }
            // All but the one that it has.
            let beside = count();
            drop(held);
            (beside, count()) == (2, 3)
        }));
    }

    #[test]
    fn there_is_a_bound_and_none_is_a_bound() {
        let (Some(few), Some(none)) = (provider(4), provider(0)) else { return };
        let keys = [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 5, 6];
        let kept = |provider| {
            for key in keys {
                seal(&mut context(provider), key);
            }
            count()
        };
        assert!(comes_out(|| kept(few) == 4));
        assert!(comes_out(|| {
            assert_eq!(kept(none), 0);
            true
        }));
    }

    #[test]
    fn a_stopped_thread_and_an_unloaded_provider_leave_nothing() {
        let Some(provider) = provider(4) else { return };
        let kept = || {
            for _ in 0..2 {
                seal(&mut context(provider), 1);
            }
            count()
        };
        let left_by = |end: &dyn Fn()| {
            let before = kept();
            end();
            assert_eq!(count(), 0);
            before == 1
        };
        // SAFETY: looks at no argument.
        assert!(comes_out(|| left_by(&|| unsafe { thread_stops(core::ptr::null_mut()) })));
        assert!(comes_out(|| left_by(&|| thread::spawn(unload).join().unwrap())), "in another thread");
    }
}
