//! What kernels leave on the stack is wiped.
//!
//! Values that move leave copies behind that no name reaches, and compilers spill registers where they like. So every safe function of this
//! crate that touches a secret runs in frames of its own, and the stack they lay on is overwritten after it.

use crate::vector::V;
use zeroize::Zeroize;

/// What Curve25519 and multiples of base points on P-256 need, in registers' widths of 64 bytes; the tests say if it is too little.
pub(crate) const SMALL: usize = 192;

/// The same of RSA.
pub(crate) const fn rsa(bits: usize) -> usize {
    bits / 2 + 256
}

/// Does the work, then overwrites the `REGISTERS` times 64 bytes of stack below the caller, on which it was done.
#[inline(never)]
pub(crate) fn wiped<const REGISTERS: usize, T>(work: impl FnOnce() -> T) -> T {
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

    /// What unused stack is painted with.
    const PAINT: u64 = 0xA5A5_5A5A_C33C_3CC3;
    /// Bytes looked at, more than any kernel uses.
    const DEPTH: usize = 256 << 10;
    /// Bytes just below the caller where frames of the test itself, of `wiped` and of `wipe` lie.
    const OWN: usize = 2 << 10;

    #[inline(never)]
    #[allow(unsafe_code)]
    fn paint() {
        let mut stack = [0u64; DEPTH / 8];
        // SAFETY: each is a valid place for a write.
        stack.iter_mut().for_each(|word| unsafe { core::ptr::write_volatile(word, PAINT) });
        core::hint::black_box(&mut stack);
    }

    /// Words below the caller that are neither paint nor zero, and how far down the last was that is not paint.
    #[inline(never)]
    #[allow(unsafe_code)]
    fn leftovers(registers: usize) -> (usize, usize) {
        let here = 0u64;
        let top = (&raw const here).expose_provenance();
        let (mut left, mut deepest) = (0, 0);
        // Frames of what `wipe` calls in builds that inline little lie below what it wipes.
        let wipes_own = 64 * registers..64 * registers + 1024;
        for down in (OWN / 8..DEPTH / 8 - 128).filter(|down| !wipes_own.contains(&(8 * down))) {
            // SAFETY: these are bytes of this thread's own stack, which has 16 MiB, below the frame in use; nothing refers to them.
            let word = unsafe { core::ptr::read_volatile(core::ptr::with_exposed_provenance::<u64>(top - 8 * down)) };
            left += usize::from(word != PAINT && word != 0);
            if word != PAINT {
                deepest = down * 8;
            }
        }
        (left, deepest)
    }

    /// Asserts that the work leaves nothing on the stack, and that as much as `registers` says was overwritten.
    #[track_caller]
    pub(crate) fn nothing_left(registers: usize, mut work: impl FnMut()) {
        work(); // what is made once for all, as tables are
        paint();
        work();
        let (left, deepest) = leftovers(registers);
        assert_eq!(left, 0, "{left} words of {deepest} bytes were left");
        assert!(deepest >= 64 * registers - OWN, "the stack was overwritten {deepest} bytes deep only");
    }

    pub(crate) fn on_a_big_stack(work: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn elliptic_curves_leave_nothing_on_the_stack() {
        skip_without_ifma!();
        on_a_big_stack(|| {
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
            nothing_left(SMALL, || {
                x25519::agree(&mut [x25519::AgreeTask { private, peer: &[9; 32], shared: &mut shared, nonzero: false }])
            });
            nothing_left(SMALL, || drop(ed25519::Key::new(private)));
            let key = ed25519::Key::new(private);
            let mut signature = [0; 64];
            nothing_left(SMALL, || ed25519::sign(&mut [ed25519::SignTask { key: &key, message: b"message", signature: &mut signature }]));
        });
    }
}
