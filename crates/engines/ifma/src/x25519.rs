//! X25519 (RFC 7748): eight agreements or public values at once.

use crate::curve25519::edwards;
use crate::curve25519::field::{Fe, Raised, Wide};
use crate::digits::per_lane;
use crate::stack;
use crate::vector::V;
use crate::{LANES, assert_batch};
use zeroize::Zeroizing;

/// One agreement: a private key, the peer's public value, and where the shared secret goes.
pub struct AgreeTask<'a> {
    /// Our private key, any 32 bytes; clamped here (RFC 7748 section 5).
    pub private: &'a [u8; 32],
    /// The peer's u-coordinate, little-endian; any 32 bytes.
    pub peer: &'a [u8; 32],
    /// The shared secret, little-endian.
    pub shared: &'a mut [u8; 32],
    /// Set: the shared secret is not all zero. All zero means that the peer sent a point of small order (RFC 7748 section 6.1).
    pub nonzero: bool,
}

/// Bit of the highest step of the ladder: clamping sets bit 254 and clears bit 255.
const TOP_BIT: usize = 254;

/// The shared secret of each task; 1 to 8 tasks.
///
/// Call it only where [`crate::is_supported`] says yes; it panics elsewhere.
pub fn agree(tasks: &mut [AgreeTask<'_>]) {
    assert_batch(tasks.len());
    stack::wiped_apart::<{ stack::SMALL }, _>(|| {
        let scalars = Zeroizing::new(per_lane(tasks, |task| clamped(task.private)));
        let peers = per_lane(tasks, |task| task.peer.as_slice());
        // SAFETY: `assert_batch` has asked the processor.
        #[allow(unsafe_code)]
        let shared = Zeroizing::new(unsafe { ladder(&scalars, peers) });
        for (task, shared) in tasks.iter_mut().zip(shared.iter()) {
            *task.shared = *shared;
            task.nonzero = shared.iter().fold(0, |any, byte| any | byte) != 0;
        }
    });
}

/// One public value: that of a private key.
pub struct PublicValueTask<'a> {
    /// Any 32 bytes; clamped here (RFC 7748 section 5).
    pub private: &'a [u8; 32],
    /// The u-coordinate of its multiple of the base point, little-endian.
    pub public: &'a mut [u8; 32],
}

/// The public value of each task; 1 to 8 tasks.
///
/// The base point is the same for all, so this adds multiples out of a table (on the Edwards form of the curve) where [`agree`] climbs a ladder.
/// Call it only where [`crate::is_supported`] says yes; it panics elsewhere.
pub fn public_value(tasks: &mut [PublicValueTask<'_>]) {
    assert_batch(tasks.len());
    stack::wiped_apart::<{ stack::SMALL }, _>(|| {
        let scalars = Zeroizing::new(per_lane(tasks, |task| clamped(task.private)));
        // SAFETY: `assert_batch` has asked the processor.
        #[allow(unsafe_code)]
        let public = unsafe { edwards::multiples_of_base(&scalars).montgomery_u() };
        for (task, public) in tasks.iter_mut().zip(public) {
            *task.public = public;
        }
    });
}

/// RFC 7748 section 5, decodeScalar25519.
pub(crate) fn clamped(private: &[u8; 32]) -> [u8; 32] {
    let mut scalar = *private;
    scalar[0] &= 248;
    scalar[31] = (scalar[31] & 127) | 64;
    scalar
}

/// RFC 7748 section 5, with `scalars` clamped. Of the two points of the ladder the one that is doubled is kept first.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn ladder(scalars: &[[u8; 32]; LANES], peers: [&[u8]; LANES]) -> [[u8; 32]; LANES] {
    let words = scalar_words(scalars);
    let u = Fe::read(peers);
    let one = Fe::small(1);
    let mut state = State { a: one, b: one, x3: Fe::raised(&u), z3: Fe::wide(&one) };
    let mut previous = 0;
    for t in (0..=TOP_BIT).rev() {
        let bit = V::test(words[t / 64], V::splat(1 << (t % 64)));
        state = step(&u, bit ^ previous, state);
        previous = bit;
    }
    // Clamping clears bit 0, so the point that the scalar names was doubled last.
    // Twice X over twice Z.
    let (a, b) = (Fe::wide(&state.a), Fe::wide(&state.b));
    let (x, z) = (Fe::carry(Wide::add(a, b)), Fe::carry(Wide::sub(a, b)));
    Fe::write(&Fe::times(&x, &Fe::invert(&z)))
}

/// The two points of the ladder: of the first, which was doubled last, `a` = X + Z and `b` = X - Z; of the second X and Z.
#[derive(Clone, Copy)]
struct State {
    a: Fe,
    b: Fe,
    x3: Raised,
    z3: Wide,
}

/// One step: doubles the first point, or the second where `swap` is set, and adds both, whose difference has the u-coordinate `u`.
///
/// The names are those of RFC 7748. The sum is the same, up to a sign that is squared away, whichever point comes first, so only what
/// is doubled need be selected. The order keeps a product between another and its use, so that carries are done beside multiplications.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn step(u: &Fe, swap: u8, State { a, b, x3, z3 }: State) -> State {
    let (c, d) = (Fe::carry(Wide::add(x3.0, z3)), Fe::carry(Raised::less(x3, z3)));
    let (da, cb) = (Fe::mul_raised(&d, &a), Fe::mul(&c, &b));
    let (a, b) = (Fe::select(swap, &a, &c), Fe::select(swap, &b, &d));
    let (aa, bb) = (Fe::square_raised(&a), Fe::square(&b));
    let (sum, difference) = (Fe::carry(Wide::add(da.0, cb)), Fe::carry(Raised::less(da, cb)));
    let square = Fe::square(&difference);
    let e = Fe::carry(Raised::less(aa, bb));
    let f = Fe::carry(Wide::add_multiple(aa.0, &e, 121_665));
    let (x2, z2) = (Fe::mul_raised(&Fe::carry(aa.0), &Fe::carry(bb)), Fe::mul(&e, &f));
    let z3 = Fe::mul(u, &Fe::carry(square));
    let (a, b) = (Fe::carry(Wide::add(x2.0, z2)), Fe::carry(Raised::less(x2, z2)));
    let x3 = Fe::square_raised(&sum);
    State { a, b, x3, z3 }
}

/// Scalars as four words of 64 bits in lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn scalar_words(scalars: &[[u8; 32]; LANES]) -> [V; 4] {
    let mut words = [V::zero(); 4];
    for (i, word) in words.iter_mut().enumerate() {
        let mut lanes = [0; LANES];
        for (lane, scalar) in lanes.iter_mut().zip(scalars) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&scalar[8 * i..8 * i + 8]);
            *lane = u64::from_le_bytes(bytes);
        }
        *word = V::from_array(lanes);
    }
    words
}
