//! XTS in mid-unit. Its blocks have the tweaks `T`, `T a`, `T a^2` and so on, `T` being the enciphered number of the data unit and `a` the element `x` of GF(2^128) (IEEE 1619 s5.3). A
//! part that begins with block `j` is the data unit whose number is `T a^j` deciphered: a number like any other to whoever computes it.

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;
/// `x^128 = x^7 + x^2 + x + 1`, the first byte being the lowest.
const REDUCED: u128 = 0x87;

/// The tweak `power` blocks on.
pub(super) fn advanced(tweak: [u8; BLOCK], power: u64) -> [u8; BLOCK] {
    times(u128::from_le_bytes(tweak), x_to(power)).to_le_bytes()
}

/// `x` to this power, which is no secret.
fn x_to(power: u64) -> u128 {
    (0..u64::BITS - power.leading_zeros()).rev().fold(1, |product, bit| {
        let square = times(product, product);
        if power >> bit & 1 == 1 { doubled(square) } else { square }
    })
}

fn doubled(element: u128) -> u128 {
    element << 1 ^ (REDUCED & 0u128.wrapping_sub(element >> 127))
}

/// The product, without a branch on either.
fn times(a: u128, b: u128) -> u128 {
    (0..128).rev().fold(0, |sum, bit| doubled(sum) ^ (a & 0u128.wrapping_sub(b >> bit & 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_so_many_doublings() {
        let tweak = core::array::from_fn(|i| (i * 37 + 129) as u8);
        let mut doubled_ones = u128::from_le_bytes(tweak);
        for power in 0..1000 {
            assert_eq!(advanced(tweak, power), doubled_ones.to_le_bytes(), "{power}");
            doubled_ones = doubled(doubled_ones);
        }
        // Far on, in one step and in two.
        assert_eq!(advanced(tweak, u64::MAX), advanced(advanced(tweak, u64::MAX / 2), u64::MAX / 2 + 1));
    }

    #[test]
    fn the_first_byte_is_the_lowest() {
        // IEEE 1619 s5.2: bit 7 of the last byte carries into the first as 0x87.
        let mut high = [0; BLOCK];
        high[15] = 0x80;
        assert_eq!(advanced(high, 1)[..2], [0x87, 0]);
        assert_eq!(advanced([1; BLOCK], 1), [2; BLOCK]);
    }
}
