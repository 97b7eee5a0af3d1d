//! Which operations can be cut into parts that are computed apart, and with what each part begins.
//!
//! A part is an operation like any other, of the same session: other bytes, another IV. That is so where a block's result depends on nothing but the blocks before it that are
//! *given*: counter mode (the counter is known), ECB, the decryption of CBC (the ciphertext before is there), and XTS, where it takes two blocks of the block cipher to find the number
//! of a data unit that begins with the tweak in mid-text. It is not so of CBC encryption, which is a chain, and of AEADs, whose one tag is over all of the text.

mod tweak;

use crate::algorithm::{Algorithm, Kind};
use crate::operation::Direction;
use once_cell::race::OnceBox;

/// How a mode goes on in mid-text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Counter,
    Codebook,
    Chained,
    Tweaked,
}

/// The block cipher under that half of an XTS key by which tweaks are made (the second): enciphers or deciphers a block. `None` if it cannot.
pub type TweakCipher<'a> = dyn Fn(Direction, [u8; 16]) -> Option<[u8; 16]> + 'a;

/// How an algorithm goes on, and at multiples of how many bytes.
type Cut = Option<(Mode, usize)>;

/// By the algorithm's number and the direction's: asked of every request, so it is found once. Nobody waits for who finds it: that thread may be missing, in a child of fork.
static CUTS: OnceBox<[[Cut; 3]; Algorithm::COUNT]> = OnceBox::new();

fn cuts() -> Box<[[Cut; 3]; Algorithm::COUNT]> {
    let directions = [Direction::Encrypt, Direction::Decrypt, Direction::Compute];
    Box::new(core::array::from_fn(|number| directions.map(|direction| named(Algorithm::ALL[number], direction))))
}

fn named(algorithm: Algorithm, direction: Direction) -> Cut {
    let Kind::Cipher { iv, block, .. } = algorithm.kind() else { return None };
    match (algorithm.name().rsplit('-').next()?, direction) {
        ("CTR", _) => Some((Mode::Counter, iv)),
        ("ECB", _) => Some((Mode::Codebook, block)),
        ("CBC", Direction::Decrypt) => Some((Mode::Chained, block)),
        ("XTS", _) => Some((Mode::Tweaked, tweak::BLOCK)),
        _ => None,
    }
}

fn mode(algorithm: Algorithm, direction: Direction) -> Cut {
    CUTS.get_or_init(cuts)[usize::from(algorithm.number())][direction as usize]
}

/// A cut may be made at multiples of so many bytes; `None` for what cannot be cut.
pub fn grain(algorithm: Algorithm, direction: Direction) -> Option<usize> {
    mode(algorithm, direction).map(|(_, grain)| grain)
}

/// The IV of the part that begins at `from` bytes of the input, which is a multiple of the [`grain`]; `None` for what cannot be cut, or not there. Only XTS asks for its block cipher, and only
/// past the beginning.
pub fn iv_at(
    algorithm: Algorithm,
    direction: Direction,
    iv: &[u8],
    input: &[u8],
    from: usize,
    cipher: &TweakCipher<'_>,
) -> Option<Vec<u8>> {
    let (mode, grain) = mode(algorithm, direction)?;
    if !from.is_multiple_of(grain) || from > input.len() {
        return None;
    }
    Some(match mode {
        _ if from == 0 => iv.to_vec(),
        Mode::Counter => advanced(iv, (from / grain) as u64),
        Mode::Codebook => Vec::new(),
        Mode::Chained => input[from - grain..from].to_vec(),
        // The last part has a whole block at least, from which one that is not whole steals.
        Mode::Tweaked if input.len() - from < grain => return None,
        Mode::Tweaked => {
            let first = cipher(Direction::Encrypt, iv.try_into().ok()?)?;
            cipher(Direction::Decrypt, tweak::advanced(first, (from / grain) as u64))?.to_vec()
        }
    })
}

/// A counter block so many blocks on: a big-endian number as long as the block.
fn advanced(counter: &[u8], blocks: u64) -> Vec<u8> {
    let mut carry = u128::from(blocks);
    let mut counter = counter.to_vec();
    for byte in counter.iter_mut().rev() {
        carry += u128::from(*byte);
        *byte = carry as u8;
        carry >>= 8;
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_cut_and_where() {
        use Direction::{Compute, Decrypt, Encrypt};
        let cuts = [
            (Algorithm::Aes128Ctr, Encrypt, Some(16)),
            (Algorithm::DesCtr, Decrypt, Some(8)),
            (Algorithm::Aes256Ecb, Encrypt, Some(16)),
            (Algorithm::Aes256Cbc, Decrypt, Some(16)),
            (Algorithm::BlowfishCbc, Decrypt, Some(8)),
            (Algorithm::Aes256Cbc, Encrypt, None),
            (Algorithm::Aes128Xts, Encrypt, Some(16)),
            (Algorithm::Aes256Xts, Decrypt, Some(16)),
            (Algorithm::Aes128Gcm, Encrypt, None),
            (Algorithm::Aes128Ofb, Encrypt, None),
            (Algorithm::Sha256, Compute, None),
            (Algorithm::X25519, Compute, None),
        ];
        for (algorithm, direction, wanted) in cuts {
            assert_eq!(grain(algorithm, direction), wanted, "{algorithm}");
        }
    }

    #[test]
    fn a_counter_carries_and_wraps() {
        let at =
            |iv: &[u8; 16], from: usize| iv_at(Algorithm::Aes128Ctr, Direction::Encrypt, iv, &[0; 1 << 13], from, &|_, _| None).unwrap();
        let mut iv = [0; 16];
        iv[15] = 255;
        assert_eq!(at(&iv, 16)[14..], [1, 0]);
        assert_eq!(at(&iv, 4096)[14..], [1, 255]);
        assert_eq!(at(&[255; 16], 32), {
            let mut one = vec![0; 16];
            one[15] = 1;
            one
        });
        assert_eq!(at(&iv, 0), iv);
    }

    #[test]
    fn a_chain_goes_on_with_the_ciphertext_before() {
        let input: Vec<u8> = (0..64).collect();
        let at = |from| iv_at(Algorithm::Aes128Cbc, Direction::Decrypt, &[7; 16], &input, from, &|_, _| None);
        assert_eq!((at(0), at(32)), (Some(vec![7; 16]), Some((16..32).collect())));
        assert_eq!((at(8), at(80)), (None, None), "not at a block's edge; beyond the end");
    }

    #[test]
    fn a_data_unit_goes_on_with_the_number_of_its_tweak() {
        // A cipher that adds one to the first byte.
        let cipher = |direction, mut block: [u8; 16]| {
            block[0] = if direction == Direction::Encrypt { block[0].wrapping_add(1) } else { block[0].wrapping_sub(1) };
            Some(block)
        };
        let at = |from, len: usize, cipher: &TweakCipher<'_>| {
            iv_at(Algorithm::Aes128Xts, Direction::Encrypt, &[7; 16], &vec![0; len], from, cipher)
        };
        let mut second = [14; 16];
        second[0] = 15;
        assert_eq!(at(0, 100, &cipher), Some(vec![7; 16]));
        assert_eq!(at(16, 100, &cipher), Some(second.into()));
        assert_eq!((at(96, 100, &cipher), at(32, 100, &|_, _| None)), (None, None), "less than a block; no cipher");
        assert!(at(96, 112, &cipher).is_some());
    }
}
