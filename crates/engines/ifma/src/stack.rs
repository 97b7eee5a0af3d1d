//! What kernels leave on the stack is wiped, and they have stacks of their own.
//!
//! Values that move leave copies behind that no name reaches, and compilers spill registers where they like. So every safe function of this
//! crate that touches a secret runs in frames of its own, and the stack they lay on is overwritten after it.
//!
//! RSA needs some hundred KiB, curves and the making of their tables some ten. A caller may not have them: OpenSSL's asynchronous jobs have 32 KiB in all, from its allocator and with no page behind them
//! that would fault. And on the stacks of whichever threads come to compute they would stay, in a server of 64 threads 64 times, and a server that forks copies what
//! they map each time. So they take turns on a few stacks, which stay in the processor's caches, too.

use crate::montgomery::POWERS;
use crate::vector::V;
use core::ptr;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Relaxed},
};
use corosensei::on_stack;
use corosensei::stack::DefaultStack;
use zeroize::Zeroize;

/// What Curve25519 and multiples of base points on P-256 need, in registers' widths of 64 bytes; the tests say if it is too little.
pub(crate) const SMALL: usize = 192;

/// The same of making an RSA key ready.
pub(crate) const RSA_KEY: usize = 768;

/// The same of RSA: numbers, and the powers of the input modulo both primes.
pub(crate) const fn rsa(bits: usize) -> usize {
    let digits_of_prime = 10 * bits.div_ceil(1024);
    320 + (2 * POWERS + 68) * digits_of_prime
}

/// Bytes of such a stack; only what is touched takes memory. Builds that optimise little need more than others.
const STACK_BYTES: usize = 1 << 20;
/// Stacks that are kept. More than that are there while more batches run at once.
const KEPT: usize = 8;

/// Stacks that wait. No lock, for the child of a fork may find this in any state; it has copies of those that wait.
struct Pool([AtomicPtr<DefaultStack>; KEPT]);

impl Pool {
    const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; KEPT])
    }

    /// One that waits, or a new one; none if there is no memory for it.
    fn take(&self) -> Option<Box<DefaultStack>> {
        let found = self.0.iter().map(|place| place.swap(ptr::null_mut(), AcqRel)).find(|found| !found.is_null());
        match found {
            #[allow(unsafe_code)]
            // SAFETY: from a box, by `give`, and nobody else's since it was swapped out.
            Some(stack) => Some(unsafe { Box::from_raw(stack) }),
            None => DefaultStack::new(STACK_BYTES).ok().map(Box::new),
        }
    }

    /// Keeps it for the next one, if there is room.
    fn give(&self, stack: Box<DefaultStack>) {
        let stack = Box::into_raw(stack);
        let is_kept = self.0.iter().any(|place| place.compare_exchange(ptr::null_mut(), stack, AcqRel, Relaxed).is_ok());
        if !is_kept {
            #[allow(unsafe_code)]
            // SAFETY: from the box above, and nobody else's.
            drop(unsafe { Box::from_raw(stack) });
        }
    }
}

#[cfg(not(test))]
fn pool() -> &'static Pool {
    static POOL: Pool = Pool::new();
    &POOL
}

/// Each thread's own, so that a test can look at a stack that no other test has used.
#[cfg(test)]
fn pool() -> &'static Pool {
    thread_local! {
        static POOL: &'static Pool = Box::leak(Box::new(Pool::new()));
    }
    POOL.with(|pool| *pool)
}

/// As [`wiped`], [`elsewhere`].
pub(crate) fn wiped_apart<const REGISTERS: usize, T>(work: impl FnOnce() -> T) -> T {
    elsewhere(|| wiped::<REGISTERS, T>(work))
}

/// Does the work on one of the stacks that are kept.
///
/// # Panics
/// Without memory for a stack, as for anything else: the caller's own may be too small.
pub(crate) fn elsewhere<T>(work: impl FnOnce() -> T) -> T {
    let mut stack = pool().take().expect("memory for a stack");
    // A panic is a mistake of the caller's, and costs the stack.
    let result = on_stack(&mut *stack, work);
    pool().give(stack);
    result
}

/// Does the work, then overwrites the `REGISTERS` times 64 bytes of stack below the caller, on which it was done.
#[inline(never)]
fn wiped<const REGISTERS: usize, T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    wipe::<REGISTERS>();
    result
}

/// Does the work in a frame that [`wipe`] will cover.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn wipe<const REGISTERS: usize>() {
    [V::default(); REGISTERS].zeroize();
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Random, skip_without_ifma};
    use crate::{ed25519, p256, p384, x25519};
    use corosensei::stack::Stack;

    /// What unused stack is painted with.
    const PAINT: u64 = 0xA5A5_5A5A_C33C_3CC3;
    /// Bytes just below the caller where frames of the test itself, of `wiped` and of `wipe` lie.
    const OWN: usize = 2 << 10;

    /// Words below an address, in so many bytes of stack that no frame is on, that are neither paint nor zero; and how far down the last was that is not paint.
    #[allow(unsafe_code)]
    fn leftovers(top: usize, depth: usize, registers: usize) -> (usize, usize) {
        let (mut left, mut deepest) = (0, 0);
        // Frames of what `wipe` calls in builds that inline little lie below what it wipes.
        let wipes_own = 64 * registers..64 * registers + 1024;
        for down in (OWN / 8..depth / 8).filter(|down| !wipes_own.contains(&(8 * down))) {
            // SAFETY: these are bytes of a stack of this thread's, below the frames in use; nothing refers to them.
            let word = unsafe { core::ptr::read_volatile(core::ptr::with_exposed_provenance::<u64>(top - 8 * down)) };
            left += usize::from(word != PAINT && word != 0);
            if word != PAINT {
                deepest = down * 8;
            }
        }
        (left, deepest)
    }

    /// Asserts that work on a stack of [`wiped_apart`] leaves nothing there, and that as much as `registers` says was overwritten.
    #[track_caller]
    #[allow(unsafe_code)]
    pub(crate) fn nothing_left(registers: usize, mut work: impl FnMut()) {
        work(); // what is made once for all, and the stack
        let stack = pool().take().unwrap();
        let (base, depth) = (stack.base().get(), STACK_BYTES / 8 * 7);
        for down in 1..=depth / 8 {
            // SAFETY: bytes of a stack above its guard page, on which nothing runs.
            unsafe { core::ptr::write_volatile(core::ptr::with_exposed_provenance_mut::<u64>(base - 8 * down), PAINT) };
        }
        pool().give(stack);
        work();
        check(leftovers(base, depth, registers), registers);
    }

    #[track_caller]
    fn check((left, deepest): (usize, usize), registers: usize) {
        assert_eq!(left, 0, "{left} words of {deepest} bytes were left");
        assert!(deepest >= 64 * registers - OWN, "the stack was overwritten {deepest} bytes deep only");
    }

    #[test]
    fn stacks_are_used_again_and_more_are_made_where_more_are_needed() {
        let pool = Pool::new();
        let addresses = |stacks: &[Box<DefaultStack>]| stacks.iter().map(|stack| stack.base().get()).collect::<Vec<_>>();
        let stacks: Vec<_> = (0..KEPT + 2).map(|_| pool.take().unwrap()).collect();
        let before = addresses(&stacks);
        stacks.into_iter().for_each(|stack| pool.give(stack));
        let again: Vec<_> = (0..KEPT).map(|_| pool.take().unwrap()).collect();
        assert_eq!(addresses(&again), before[..KEPT]);
        assert!(pool.0.iter().all(|place| place.load(Relaxed).is_null()));
    }

    #[test]
    fn a_panic_comes_through_and_the_next_one_has_a_stack() {
        let panicked = std::panic::catch_unwind(|| wiped_apart::<16, ()>(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(wiped_apart::<16, _>(|| 7), 7);
    }

    /// What OpenSSL's asynchronous jobs have, less what libssl and the provider have taken of it; who comes to its end faults.
    const SMALL_BYTES: usize = 20 << 10;

    #[test]
    fn a_small_stack_is_enough() {
        skip_without_ifma!();
        on_a_small_stack(|| {
            macro_rules! curve {
                ($curve:ident, $scalar:literal) => {
                    let private = &[7; $scalar];
                    let (mut public, mut signature, mut shared) = ([0; 2 * $scalar], [0; 2 * $scalar], [0; $scalar]);
                    $curve::public_value(&mut [$curve::PublicValueTask { private, public: &mut public }]);
                    let signature = &mut signature;
                    $curve::sign(&mut [$curve::SignTask { private, nonce: &[8; $scalar], digest: &[1; $scalar], signature, done: false }]);
                    $curve::agree(&mut [$curve::AgreeTask { private, peer: &public, shared: &mut shared, done: false }]);
                };
            }
            curve!(p256, 32);
            curve!(p384, 48);
        });
    }

    pub(crate) fn on_a_small_stack(work: impl FnOnce()) {
        on_stack(DefaultStack::new(SMALL_BYTES).unwrap(), work);
    }

    #[test]
    fn elliptic_curves_leave_nothing_on_the_stack() {
        skip_without_ifma!();
        let bytes: [u8; 48] = Random::new(1).bytes(48).try_into().unwrap();
        let private: &[u8; 32] = bytes.first_chunk().unwrap();
        macro_rules! curve {
            ($curve:ident, $scalar:literal, $base:expr, $point:expr) => {
                let private: &[u8; $scalar] = bytes.first_chunk().unwrap();
                let (mut public, mut signature, mut shared) = ([0; 2 * $scalar], [0; 2 * $scalar], [0; $scalar]);
                nothing_left($base, || {
                    let signature = &mut signature;
                    $curve::sign(&mut [$curve::SignTask { private, nonce: private, digest: &[1; 32], signature, done: false }]);
                });
                nothing_left($base, || $curve::public_value(&mut [$curve::PublicValueTask { private, public: &mut public }]));
                nothing_left($point, || {
                    $curve::agree(&mut [$curve::AgreeTask { private, peer: &public, shared: &mut shared, done: false }]);
                });
            };
        }
        curve!(p256, 32, SMALL, p256::POINT);
        curve!(p384, 48, p384::BASE, p384::POINT);
        let mut shared = [0; 32];
        nothing_left(SMALL, || x25519::public_value(&mut [x25519::PublicValueTask { private, public: &mut shared }]));
        nothing_left(SMALL, || x25519::agree(&mut [x25519::AgreeTask { private, peer: &[9; 32], shared: &mut shared, nonzero: false }]));
        nothing_left(SMALL, || drop(ed25519::Key::new(private)));
        let key = ed25519::Key::new(private);
        let mut signature = [0; 64];
        nothing_left(SMALL, || ed25519::sign(&mut [ed25519::SignTask { key: &key, message: b"message", signature: &mut signature }]));
    }
}
