//! The field of GHASH (SP 800-38D s6.3) by multiplications with holes, as `kernels/ghash.h` has it.

/// An element: big-endian words, the coefficient of x^0 first.
pub(crate) type Element = [u32; 4];

/// How many blocks or sums a lane of the kernels takes together.
pub(crate) const ITEMS: usize = 16;
/// Levels of sums: 16^6 blocks are 256 MiB, more than a launch holds.
pub(crate) const LEVELS: usize = 6;

const HOLES: [u64; 4] = [0x1111_1111_1111_1111, 0x2222_2222_2222_2222, 0x4444_4444_4444_4444, 0x8888_8888_8888_8888];

/// Without carries: at most eight products meet in one place, whose sum needs the four bits there are.
fn clmul(x: u32, y: u32) -> u64 {
    let (x, y) = (u64::from(x), u64::from(y));
    (0..4).fold(0, |sum, place| sum | (0..4).fold(0, |z, i| z ^ ((x & HOLES[i]) * (y & HOLES[(place + 4 - i) % 4]))) & HOLES[place])
}

/// The block as an element.
pub(crate) fn element(block: &[u8; 16]) -> Element {
    let (words, _) = block.as_chunks();
    core::array::from_fn(|i| u32::from_be_bytes(words[i]))
}

/// The element as a block.
pub(crate) fn block(element: Element) -> [u8; 16] {
    let mut block = [0; 16];
    let (words, _) = block.as_chunks_mut();
    words.iter_mut().zip(element).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    block
}

/// `a * b`.
pub(crate) fn multiply(a: Element, b: Element) -> Element {
    // Words of the product, least significant first: word i of an element stands for degree 32 * (3 - i) of the reflected polynomial.
    let mut z = [0u32; 8];
    for i in 0..4 {
        for j in 0..4 {
            let product = clmul(a[3 - i], b[3 - j]);
            z[i + j] ^= product as u32;
            z[i + j + 1] ^= (product >> 32) as u32;
        }
    }
    let mut v: [u32; 8] = core::array::from_fn(|i| z[i] << 1 | if i > 0 { z[i - 1] >> 31 } else { 0 });
    for i in 0..4 {
        let low = v[i];
        v[i + 4] ^= low ^ low >> 1 ^ low >> 2 ^ low >> 7;
        v[i + 3] ^= low << 31 ^ low << 30 ^ low << 25;
    }
    [v[7], v[6], v[5], v[4]]
}

fn add(a: Element, b: Element) -> Element {
    core::array::from_fn(|i| a[i] ^ b[i])
}

/// A key, with the powers that the kernels want.
#[derive(Clone, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub(crate) struct Powers {
    /// H to the power 16^n, for each level of sums.
    levels: [Element; LEVELS],
    /// H to H^16, for the blocks of a text.
    of_text: [Element; ITEMS],
}

/// Words of the levels' factors: the text's follow them.
pub(crate) const LEVEL_WORDS: usize = 4 * LEVELS;
/// Words of both.
pub(crate) const WORDS: usize = LEVEL_WORDS + 4 * ITEMS;

impl Powers {
    /// From H.
    pub(crate) fn new(h: Element) -> Self {
        let sixteenth = |x: Element| (0..4).fold(x, |x, _| multiply(x, x));
        let mut of_text = [h; ITEMS];
        for i in 1..ITEMS {
            of_text[i] = multiply(of_text[i - 1], h);
        }
        let mut levels = [h; LEVELS];
        levels[1] = of_text[ITEMS - 1];
        for level in 2..LEVELS {
            levels[level] = sixteenth(levels[level - 1]);
        }
        Self { levels, of_text }
    }

    /// The [`WORDS`] that the kernels have in the control buffer.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        self.levels.iter().chain(&self.of_text).flatten().copied()
    }

    fn h(&self) -> Element {
        self.levels[0]
    }

    /// H to the power `n`; the time depends on `n`, which is a length.
    fn power(&self, mut n: usize) -> Element {
        let mut result = [1 << 31, 0, 0, 0];
        for level in self.levels {
            for _ in 0..n % ITEMS {
                result = multiply(result, level);
            }
            n /= ITEMS;
        }
        result
    }

    /// The sum of what came before, and of `blocks` more whose own sum is known.
    pub(crate) fn append(&self, before: Element, blocks: usize, sum: Element) -> Element {
        add(multiply(before, self.power(blocks)), sum)
    }

    /// The sum with these bytes after it, the last block filled with zeros.
    pub(crate) fn hash(&self, sum: Element, bytes: &[u8]) -> Element {
        bytes.chunks(16).fold(sum, |sum, chunk| {
            let mut filled = [0; 16];
            filled[..chunk.len()].copy_from_slice(chunk);
            multiply(add(sum, element(&filled)), self.h())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of the GCM specification: H, a block and their product.
    #[test]
    fn the_specifications_example_and_powers() {
        let h = element(&0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2eu128.to_be_bytes());
        let text = 0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78u128.to_be_bytes();
        let powers = Powers::new(h);
        let sum = powers.hash([0; 4], &text);
        assert_eq!(block(sum), 0x5e2e_c746_9170_6288_2c85_b068_5353_deb7u128.to_be_bytes());
        let zeros = [0; 16 * 300];
        assert_eq!(powers.append(sum, 300, [0; 4]), powers.hash(sum, &zeros));
    }
}
