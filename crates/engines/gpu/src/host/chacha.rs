//! One block of ChaCha20 (RFC 8439 s2.3), for the key of a message's Poly1305.

/// The state before the rounds: constants, key, counter, nonce.
pub(crate) type State = [u32; 16];

/// The state for a key of 32 bytes and a nonce of 12, at a block's number.
pub(crate) fn state(key: &[u8], nonce: &[u8], counter: u32) -> State {
    let mut words = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574, 0, 0, 0, 0, 0, 0, 0, 0, counter, 0, 0, 0];
    let (key, nonce) = (key.as_chunks().0, nonce.as_chunks().0);
    words[4..12].iter_mut().zip(key).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    words[13..].iter_mut().zip(nonce).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    words
}

/// Its 64 bytes of key stream, as words.
pub(crate) fn block(state: &State) -> State {
    let mut x = *state;
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for (turn_d, turn_b) in [(16, 12), (8, 7)] {
            x[a] = x[a].wrapping_add(x[b]);
            x[d] = (x[d] ^ x[a]).rotate_left(turn_d);
            x[c] = x[c].wrapping_add(x[d]);
            x[b] = (x[b] ^ x[c]).rotate_left(turn_b);
        }
    };
    for _ in 0..10 {
        (0..4).for_each(|i| quarter(i, 4 + i, 8 + i, 12 + i));
        (0..4).for_each(|i| quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4));
    }
    core::array::from_fn(|i| x[i].wrapping_add(state[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439 s2.3.2.
    #[test]
    fn the_standards_example() {
        let key: Vec<u8> = (0..32).collect();
        let stream = block(&state(&key, &[0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0], 1));
        assert_eq!((stream[0], stream[1], stream[15]), (0xe4e7_f110, 0x1559_3bd1, 0x4e3c_50a2));
    }
}
