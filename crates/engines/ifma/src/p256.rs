//! P-256 (secp256r1), eight operations at once.

use crate::elliptic;
use crate::field::{Field, Power, Prime, hex};
use crate::scalar_mult::Comb;
use crate::weierstrass::Curve;
use once_cell::race::OnceBox;

/// Digits of 52 bits in a number.
const D: usize = 5;
/// Bytes in a number.
const N: usize = 32;

/// Stack that a multiple of any point needs, in widths of a register.
pub(crate) const POINT: usize = 640;

elliptic::doors!(P256, crate::stack::SMALL, POINT);

/// The curve of SP 800-186, section 3.2.1.3.
pub(crate) enum P256 {}

/// Its field.
#[derive(Clone, Copy)]
pub(crate) enum P256Field {}

/// Its order.
#[derive(Clone, Copy)]
pub(crate) enum P256Order {}

impl Prime<D> for P256Field {
    const MODULUS: [u64; D] = hex("ffffffff00000001 0000000000000000 00000000ffffffff ffffffffffffffff");
}

impl Field<D> for P256Field {
    const BITS: u32 = 8 * N as u32;
    const FOLD: &'static [Power] = &[
        Power { place: 4, shift: 16, negative: false },
        Power { place: 3, shift: 36, negative: true },
        Power { place: 1, shift: 44, negative: true },
        Power { place: 0, shift: 0, negative: false },
    ];
}

impl Prime<D> for P256Order {
    const MODULUS: [u64; D] = hex("ffffffff00000000 ffffffffffffffff bce6faada7179e84 f3b9cac2fc632551");
}

impl Curve<D> for P256 {
    type Field = P256Field;
    type Order = P256Order;
    const B: [u64; D] = hex("5ac635d8aa3a93e7 b3ebbd55769886bc 651d06b0cc53b0f6 3bce3c3e27d2604b");
    const BASE: [[u64; D]; 2] = [
        hex("6b17d1f2e12c4247 f8bce6e563a440f2 77037d812deb33a0 f4a13945d898c296"),
        hex("4fe342e2fe1a7f9b 8ee7eb4a7c0f9e16 2bce33576b315ece cbb6406837bf51f5"),
    ];

    fn comb() -> &'static Comb<Self, D> {
        static COMB: OnceBox<Comb<P256, D>> = OnceBox::new();
        #[allow(unsafe_code)]
        // SAFETY: only kernels ask for the table.
        COMB.get_or_init(|| Box::new(unsafe { Comb::new() }))
    }
}
