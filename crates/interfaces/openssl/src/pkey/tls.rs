//! The premaster secret of RSA key exchange, taken out of its padding without an oracle (RFC 5246 s7.4.7.1).

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Length of a premaster secret.
pub(super) const PREMASTER: usize = 48;

/// Whether two bytes are this protocol version.
fn is_version(bytes: &[u8], version: u32) -> Choice {
    bytes[0].ct_eq(&((version >> 8) as u8)) & bytes[1].ct_eq(&(version as u8))
}

/// The premaster secret in a decrypted block, or `random` if anything is wrong with padding or version, in time that depends on the block's length
/// alone. `negotiated`, unless 0, is a version tolerated beside the one the client offered (`SSL_OP_TLS_ROLLBACK_BUG`).
///
/// `encoded` has at least 59 bytes; every modulus taken natively has four times as many.
pub(super) fn premaster(encoded: &[u8], random: &[u8; PREMASTER], offered: u32, negotiated: u32) -> Option<[u8; PREMASTER]> {
    let (padding, secret) = encoded.split_at_checked(encoded.len().checked_sub(PREMASTER)?)?;
    let [zero, two, filling @ .., end] = padding else { return None };
    if filling.len() < 8 {
        return None;
    }
    let mut good = zero.ct_eq(&0) & two.ct_eq(&2) & end.ct_eq(&0);
    for byte in filling {
        good &= !byte.ct_eq(&0);
    }
    let tolerated = is_version(secret, negotiated) & Choice::from(u8::from(negotiated > 0));
    good &= is_version(secret, offered) | tolerated;
    let mut chosen = *random;
    chosen.iter_mut().zip(secret).for_each(|(to, from)| to.conditional_assign(from, good));
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [u8; PREMASTER] = [0xEE; PREMASTER];

    fn block() -> Vec<u8> {
        let mut block = vec![0x55; 256];
        (block[0], block[1], block[207], block[208], block[209]) = (0, 2, 0, 3, 3);
        block
    }

    #[test]
    fn a_good_block_gives_its_secret() {
        assert_eq!(premaster(&block(), &RANDOM, 0x0303, 0).unwrap(), block()[208..]);
    }

    #[test]
    fn each_flaw_alone_gives_the_random_one() {
        for (place, value) in [(0, 1), (1, 1), (2, 0), (100, 0), (206, 0), (207, 9), (208, 2), (209, 1)] {
            let mut block = block();
            block[place] = value;
            assert_eq!(premaster(&block, &RANDOM, 0x0303, 0).unwrap(), RANDOM, "{place}");
        }
    }

    #[test]
    fn the_negotiated_version_is_tolerated_only_when_asked_for() {
        assert_eq!(premaster(&block(), &RANDOM, 0x0304, 0).unwrap(), RANDOM);
        assert_eq!(premaster(&block(), &RANDOM, 0x0304, 0x0303).unwrap(), block()[208..]);
        let mut zero = block();
        (zero[208], zero[209]) = (0, 0);
        assert_eq!(premaster(&zero, &RANDOM, 0x0304, 0).unwrap(), RANDOM);
    }

    #[test]
    fn too_short_a_block_is_refused() {
        assert!(premaster(&[0; 58], &RANDOM, 0x0303, 0).is_none());
        assert!(premaster(&[0; 59], &RANDOM, 0x0303, 0).is_some());
    }
}
