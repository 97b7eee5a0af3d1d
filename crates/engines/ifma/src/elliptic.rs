//! ECDSA signatures and ECDH, eight at once: the same code for every curve.

use crate::digits::{Order, from_lanes, per_lane, read, to_bytes};
use crate::field::{Tight, is_zero};
use crate::scalar_mult;
use crate::vector::{RADIX, V};
use crate::weierstrass::{Affine, Curve};
use zeroize::Zeroize;

/// A signature (FIPS 186-5, section 6.4.1) with a nonce that the caller drew. N: bytes of a scalar; S: of a signature, 2N.
pub struct SignTask<'a, const N: usize, const S: usize> {
    /// The private key, from 1 to n - 1.
    pub private: &'a [u8; N],
    /// From 1 to n - 1, drawn uniformly at random or by RFC 6979, secret, and for this signature only.
    pub nonce: &'a [u8; N],
    /// The digest of the message, of any length; the leftmost N bytes count.
    pub digest: &'a [u8],
    /// Receives r, then s.
    pub signature: &'a mut [u8; S],
    /// Set to false where r or s is zero: the signature says nothing, and it takes another nonce. Else set to true.
    pub done: bool,
}

/// The x coordinate of a multiple of the peer's point (SP 800-56A, section 5.7.1.2). N: bytes of a scalar; S: of a point, 2N.
pub struct AgreeTask<'a, const N: usize, const S: usize> {
    /// The private key, from 1 to n - 1.
    pub private: &'a [u8; N],
    /// The peer's point: x, then y. The kernel checks that it is on the curve.
    pub peer: &'a [u8; S],
    /// Receives the shared secret; all zero where the point was refused.
    pub shared: &'a mut [u8; N],
    /// Set to whether the peer's point is on the curve.
    pub done: bool,
}

/// The public value of a private key. N: bytes of a scalar; S: of a point, 2N.
pub struct PublicValueTask<'a, const N: usize, const S: usize> {
    /// The private key, from 1 to n - 1.
    pub private: &'a [u8; N],
    /// Receives the point: x, then y.
    pub public: &'a mut [u8; S],
}

/// The safe functions of a curve's module: what a batch asks of its caller is asserted, the kernel is entered, and the stack that
/// multiples of the base point, or of any point, used is wiped: so many times 64 bytes.
macro_rules! doors {
    ($curve:ty, $base:expr, $point:expr) => {
        /// A signature to compute.
        pub type SignTask<'a> = $crate::elliptic::SignTask<'a, N, { 2 * N }>;
        /// A key agreement to compute.
        pub type AgreeTask<'a> = $crate::elliptic::AgreeTask<'a, N, { 2 * N }>;
        /// A public value to compute.
        pub type PublicValueTask<'a> = $crate::elliptic::PublicValueTask<'a, N, { 2 * N }>;

        $crate::elliptic::doors! { $curve;
            /// Signs one to eight digests.
            sign(SignTask, $base)
            /// Agrees on one to eight shared secrets.
            agree(AgreeTask, $point)
            /// Computes one to eight public values.
            public_value(PublicValueTask, $base)
        }
    };
    ($curve:ty; $($(#[$doc:meta])* $name:ident($task:ident, $stack:expr))*) => {
        $($(#[$doc])*
        ///
        /// # Panics
        /// Where [`crate::is_supported`] says no, and without or with more than [`crate::LANES`] tasks.
        pub fn $name(tasks: &mut [$task<'_>]) {
            $crate::assert_batch(tasks.len());
            #[allow(unsafe_code)] // SAFETY: `assert_batch` has asked the processor.
            $crate::stack::wiped_apart::<{ $stack }, _>(|| unsafe {
                $crate::elliptic::$name::<$curve, D, N, { 2 * N }>(tasks)
            })
        })*
    };
}
pub(crate) use doors;

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn sign<C: Curve<D>, const D: usize, const N: usize, const S: usize>(tasks: &mut [SignTask<'_, N, S>]) {
    let mut nonce = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.nonce[..]));
    let mut private = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.private[..]));
    let digest = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.digest[..N.min(task.digest.len())]));
    let x = C::comb().multiply(&nonce).0.affine_x().plain();
    let r = Tight::<C::Order, D>::from_digits(x).subtract_modulus_once(); // the field's prime is below 2n
    // A product of a number in Montgomery form and a plain one is plain.
    let mut inverse = Tight::<C::Order, D>::from_digits(nonce).to_montgomery().invert();
    let product = Tight::from_digits(private).to_montgomery().mul(&Tight::from_digits(r));
    let mut sum = product.add(&Tight::from_digits(digest).loose()).carry();
    let s = sum.to_montgomery().mul(&inverse).carry().plain();
    let failed = is_zero(&r) | is_zero(&s);
    for (lane, (task, (r, s))) in tasks.iter_mut().zip(from_lanes(&r).iter().zip(from_lanes(&s))).enumerate() {
        to_bytes::<RADIX>(Order::Big, r, &mut task.signature[..N]);
        to_bytes::<RADIX>(Order::Big, &s, &mut task.signature[N..]);
        task.done = failed >> lane & 1 == 0;
    }
    nonce.zeroize();
    private.zeroize();
    inverse.0.zeroize();
    sum.0.zeroize();
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn agree<C: Curve<D>, const D: usize, const N: usize, const S: usize>(tasks: &mut [AgreeTask<'_, N, S>]) {
    let mut private = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.private[..]));
    let x = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.peer[..N]));
    let y = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.peer[N..]));
    let (x, y) = (Tight::<C::Field, D>::from_digits(x), Tight::<C::Field, D>::from_digits(y));
    let point = Affine { x: x.to_montgomery(), y: y.to_montgomery() };
    let good = x.is_below_modulus() & y.is_below_modulus() & point.on_curve();
    let mut shared = scalar_mult::multiply::<C, D>(&private, &point).0.affine_x().plain();
    for digit in &mut shared {
        *digit = V::keep(good, *digit);
    }
    for (lane, (task, mut digits)) in tasks.iter_mut().zip(from_lanes(&shared)).enumerate() {
        to_bytes::<RADIX>(Order::Big, &digits, task.shared);
        digits.zeroize();
        task.done = good >> lane & 1 == 1;
    }
    private.zeroize();
    shared.zeroize();
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn public_value<C: Curve<D>, const D: usize, const N: usize, const S: usize>(tasks: &mut [PublicValueTask<'_, N, S>]) {
    let mut private = read::<RADIX, D>(Order::Big, per_lane(tasks, |task| &task.private[..]));
    let (point, negated) = C::comb().multiply(&private);
    let point = point.affine().negate_where(negated);
    let numbers = from_lanes(&point.x.plain()).into_iter().zip(from_lanes(&point.y.plain()));
    for (task, (x, y)) in tasks.iter_mut().zip(numbers) {
        to_bytes::<RADIX>(Order::Big, &x, &mut task.public[..N]);
        to_bytes::<RADIX>(Order::Big, &y, &mut task.public[N..]);
    }
    private.zeroize();
}

#[cfg(test)]
mod tests;
