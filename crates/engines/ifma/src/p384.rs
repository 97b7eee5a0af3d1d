//! P-384 (secp384r1), eight operations at once.

use crate::elliptic;
use crate::field::{Field, Power, Prime, hex};
use crate::scalar_mult::Comb;
use crate::weierstrass::Curve;
use once_cell::race::OnceBox;

/// Digits of 52 bits in a number.
const D: usize = 8;
/// Bytes in a number.
const N: usize = 48;

/// Stack that a multiple of the base point needs, in widths of a register.
pub(crate) const BASE: usize = 384;
/// That of any point.
pub(crate) const POINT: usize = 1088;

elliptic::doors!(P384, BASE, POINT);

/// The curve of SP 800-186, section 3.2.1.4.
pub(crate) enum P384 {}

/// Its field.
#[derive(Clone, Copy)]
pub(crate) enum P384Field {}

/// Its order.
#[derive(Clone, Copy)]
pub(crate) enum P384Order {}

impl Prime<D> for P384Field {
    const MODULUS: [u64; D] = hex("ffffffffffffffff ffffffffffffffff ffffffffffffffff fffffffffffffffe ffffffff00000000 00000000ffffffff");
    const POWERS: &'static [Power] = &[
        Power { place: 7, shift: 20, negative: false },
        Power { place: 2, shift: 24, negative: true },
        Power { place: 1, shift: 44, negative: true },
        Power { place: 0, shift: 32, negative: false },
        Power { place: 0, shift: 0, negative: true },
    ];
}

impl Field<D> for P384Field {
    const BITS: u32 = 8 * N as u32;
    const FOLD: &'static [Power] = &[
        Power { place: 2, shift: 24, negative: false },
        Power { place: 1, shift: 44, negative: false },
        Power { place: 0, shift: 32, negative: true },
        Power { place: 0, shift: 0, negative: false },
    ];
}

impl Prime<D> for P384Order {
    const MODULUS: [u64; D] = hex("ffffffffffffffff ffffffffffffffff ffffffffffffffff c7634d81f4372ddf 581a0db248b0a77a ecec196accc52973");
}

impl Curve<D> for P384 {
    type Field = P384Field;
    type Order = P384Order;
    const B: [u64; D] = hex("b3312fa7e23ee7e4 988e056be3f82d19 181d9c6efe814112 0314088f5013875a c656398d8a2ed19d 2a85c8edd3ec2aef");
    const BASE: [[u64; D]; 2] = [
        hex("aa87ca22be8b0537 8eb1c71ef320ad74 6e1d3b628ba79b98 59f741e082542a38 5502f25dbf55296c 3a545e3872760ab7"),
        hex("3617de4a96262c6f 5d9e98bf9292dc29 f8f41dbd289a147c e9da3113b5f0b8c0 0a60b1ce1d7e819d 7a431d7c90ea0e5f"),
    ];

    fn comb() -> &'static Comb<Self, D> {
        static COMB: OnceBox<Comb<P384, D>> = OnceBox::new();
        #[allow(unsafe_code)]
        // SAFETY: only kernels ask for the table.
        COMB.get_or_init(|| Box::new(unsafe { Comb::new() }))
    }
}
