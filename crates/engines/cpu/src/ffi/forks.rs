//! Forks, and what a child of one would find in the midst of a change.
//!
//! The library's random generator, its thread-local state and the blinding factors of an RSA key are behind locks. A thread that holds one while another forks is not in
//! the child: there the lock is held for ever, and whoever wants it hangs; factors that it was using fail an assertion (`rsa_impl.c`), which ends the child. So a fork
//! waits until nobody is [inside](enter), and nobody enters while it lasts.
//!
//! Neither waits for long. Handlers of others (`pthread_atfork`) may wait, in the midst of a fork, for a lock that its owner holds around a call of ours: such a call goes on after a
//! moment, and the child is as it would be without all this.

use super::lc;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a fork waits for who is inside: the slowest operation, RSA-8192, takes some tens of milliseconds.
const FORK_PATIENCE: Duration = Duration::from_secs(1);
/// How long who wants to enter waits for forks.
const ENTRY_PATIENCE: Duration = Duration::from_millis(200);
/// Between two looks.
const ROUND: Duration = Duration::from_micros(20);

/// Threads inside.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Threads that fork.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Forks by which this process came to be, from the first one that was watched.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How often this thread is inside: a signal handler that interrupts it there may fork, or come in itself.
    static OWN: Cell<u32> = const { Cell::new(0) };
    static END: End = const { End };
}

unsafe extern "C" {
    /// pthread_atfork(3).
    fn pthread_atfork(prepare: Option<extern "C" fn()>, parent: Option<extern "C" fn()>, child: Option<extern "C" fn()>) -> c_int;
}

/// Being inside.
pub(super) struct Inside(());

/// Goes in, after forks that are under way. Whoever calls what takes a lock of the library, or uses its random generator, is inside meanwhile.
pub(super) fn enter() -> Inside {
    // Once the thread has begun to end this is refused, and what it leaves is the library's own destructor's.
    let _ = END.try_with(|_| ());
    INSIDE.fetch_add(1, SeqCst);
    if FORKS.load(SeqCst) > 0 && OWN.get() == 0 {
        wait_for_forks();
    }
    OWN.set(OWN.get() + 1);
    Inside(())
}

#[cold]
fn wait_for_forks() {
    let begun = Instant::now();
    while FORKS.load(SeqCst) > 0 && begun.elapsed() < ENTRY_PATIENCE {
        leave();
        while FORKS.load(SeqCst) > 0 && begun.elapsed() < ENTRY_PATIENCE {
            sleep(ROUND);
        }
        INSIDE.fetch_add(1, SeqCst);
    }
}

/// A signal handler that forked while its thread came in left a child in which it is not counted.
fn leave() {
    let _ = INSIDE.fetch_update(SeqCst, SeqCst, |inside| inside.checked_sub(1));
}

impl Drop for Inside {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        leave();
    }
}

/// The end of a thread: what the library keeps for it goes while it is inside, not afterwards by the library's own destructor, which takes locks as well.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let _inside = enter();
        // SAFETY: frees this thread's own state, which is made anew should it be wanted once more.
        unsafe { lc::AWSLC_thread_local_clear() };
    }
}

/// Has forks of this process wait. Called before anything else here is; twice does no harm.
pub(crate) fn watch() {
    if IS_REGISTERED.load(SeqCst) {
        return;
    }
    // SAFETY: three functions of this library, with which glibc takes them back should it be unloaded. It only fails for want of memory: then forks do not wait.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    IS_REGISTERED.store(true, SeqCst);
}

/// Differs between a process and its children, whose numbers may be the same: a container's first process has 1, and so has its child that is the first of another.
#[cfg_attr(not(any(target_arch = "x86_64", test)), expect(dead_code, reason = "for the kernels"))]
pub(crate) fn generation() -> u32 {
    GENERATION.load(SeqCst)
}

extern "C" fn prepare() {
    FORKS.fetch_add(1, SeqCst);
    let begun = Instant::now();
    while INSIDE.load(SeqCst) > OWN.get() && begun.elapsed() < FORK_PATIENCE {
        sleep(ROUND);
    }
}

extern "C" fn parent() {
    FORKS.fetch_sub(1, SeqCst);
}

extern "C" fn child() {
    GENERATION.fetch_add(1, SeqCst);
    FORKS.store(0, SeqCst);
    INSIDE.store(OWN.get(), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// All that shares the process' counts is in one test.
    #[test]
    fn forks_wait_for_who_is_inside_and_who_wants_to_enter_for_forks_but_neither_for_ever() {
        let (entered, has_entered) = channel();
        let (go, may_go) = channel::<()>();
        let other = std::thread::spawn(move || {
            let inside = enter();
            entered.send(()).unwrap();
            may_go.recv().unwrap();
            drop(inside);
        });
        has_entered.recv().unwrap();
        let fork = std::thread::spawn(|| prepare());
        while FORKS.load(SeqCst) == 0 {
            sleep(ROUND);
        }
        sleep(Duration::from_millis(20));
        assert!(!fork.is_finished(), "it waits for the other thread");
        go.send(()).unwrap();
        other.join().unwrap();
        fork.join().unwrap();

        let begun = Instant::now();
        let impatient = enter();
        assert!(begun.elapsed() >= ENTRY_PATIENCE, "nobody enters while a fork lasts");
        assert_eq!(INSIDE.load(SeqCst), 1, "but does after a while");
        // A handler that interrupts this thread here: it waits neither to come in again nor, if it forks, for its own thread.
        let begun = Instant::now();
        drop(enter());
        prepare();
        assert!(begun.elapsed() < ENTRY_PATIENCE);
        let generation = super::generation();
        child();
        assert_ne!(super::generation(), generation, "a child is told from its parent");
        assert_eq!((FORKS.load(SeqCst), INSIDE.load(SeqCst)), (0, 1), "its thread goes on in the child");
        drop(impatient);
        assert_eq!(INSIDE.load(SeqCst), 0);
    }
}
