//! EME (ECB-mix-ECB; Halevi and Rogaway, "A Parallelizable Enciphering Mode", 2003) with AES-256: a cipher whose block is as long as the name, so that each
//! byte of the result depends on each of the name, without room for a tag.

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use bywash_core::SecretBytes;
use zeroize::Zeroize;

/// Bytes of a block, of which a text has whole ones, and of the tweak.
pub(super) const BLOCK_BYTES: usize = 16;
/// Most blocks of a text: one for each bit of a block.
const BLOCKS_MAX: usize = 128;

/// Seals and opens with one key.
pub(super) struct Eme(Aes256);

impl Eme {
    /// With a key of 32 bytes.
    pub(super) fn new(key: &SecretBytes) -> Option<Self> {
        Aes256::new_from_slice(key).ok().map(Self)
    }

    /// Enciphers 1 to 128 blocks in place; `false`, and nothing done, for any other length.
    pub(super) fn seal(&self, tweak: &[u8; BLOCK_BYTES], text: &mut [u8]) -> bool {
        self.run(tweak, text, |block| self.encrypt(block))
    }

    /// Deciphers what [`seal`](Self::seal) made.
    pub(super) fn open(&self, tweak: &[u8; BLOCK_BYTES], text: &mut [u8]) -> bool {
        self.run(tweak, text, |block| {
            let mut bytes = block.to_le_bytes();
            self.0.decrypt_block((&mut bytes).into());
            u128::from_le_bytes(bytes)
        })
    }

    fn encrypt(&self, block: u128) -> u128 {
        let mut bytes = block.to_le_bytes();
        self.0.encrypt_block((&mut bytes).into());
        u128::from_le_bytes(bytes)
    }

    /// Both directions: they differ in that of the block cipher alone.
    fn run(&self, tweak: &[u8; BLOCK_BYTES], text: &mut [u8], cipher: impl Fn(u128) -> u128) -> bool {
        let (blocks, rest) = text.as_chunks_mut::<BLOCK_BYTES>();
        if !rest.is_empty() || !(1..=BLOCKS_MAX).contains(&blocks.len()) {
            return false;
        }
        let tweak = u128::from_le_bytes(*tweak);
        // What each block is masked with on both sides: 2^(i+1) times the enciphered zero.
        let first_mask = double(self.encrypt(0));
        let mut mixed: Vec<u128> =
            masks(first_mask).zip(&*blocks).map(|(mask, block)| cipher(mask ^ u128::from_le_bytes(*block))).collect();
        let mix_in = mixed.iter().fold(tweak, |sum, block| sum ^ block);
        let mix_out = cipher(mix_in);
        let mut mask = mix_in ^ mix_out;
        let mut sum = mix_out ^ tweak;
        for block in &mut mixed[1..] {
            mask = double(mask);
            *block ^= mask;
            sum ^= *block;
        }
        mixed[0] = sum;
        for ((mask, block), mixed) in masks(first_mask).zip(blocks).zip(&mixed) {
            *block = (mask ^ cipher(*mixed)).to_le_bytes();
        }
        mixed.zeroize();
        true
    }
}

fn masks(first: u128) -> impl Iterator<Item = u128> {
    core::iter::successors(Some(first), |mask| Some(double(*mask)))
}

/// Times x in GF(2^128), the first byte being the lowest.
fn double(value: u128) -> u128 {
    (value << 1) ^ ((value >> 127) * 0x87)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second implementation: the paper's figure, block by block, without anything folded together.
    fn reference(key: &[u8; 32], tweak: [u8; 16], text: &[u8], opens: bool) -> Vec<u8> {
        let aes = Aes256::new(key.into());
        let cipher = |block: [u8; 16], opens: bool| {
            let mut block = block.into();
            if opens {
                aes.decrypt_block(&mut block)
            } else {
                aes.encrypt_block(&mut block)
            }
            <[u8; 16]>::from(block)
        };
        let xor = |a: [u8; 16], b: [u8; 16]| core::array::from_fn(|at| a[at] ^ b[at]);
        let twice = |a: [u8; 16]| {
            let carry = |at: usize| if at == 0 { a[15] >> 7 } else { a[at - 1] >> 7 };
            let mut out: [u8; 16] = core::array::from_fn(|at| a[at] << 1 | if at == 0 { 0 } else { carry(at) });
            out[0] ^= 0x87 * carry(0);
            out
        };
        let blocks = text.as_chunks::<16>().0;
        let mut l = cipher([0; 16], false);
        let mut ls = Vec::new();
        let mut ppp = Vec::new();
        for block in blocks {
            l = twice(l);
            ls.push(l);
            ppp.push(cipher(xor(*block, l), opens));
        }
        let sp = ppp[1..].iter().fold([0; 16], |sum, block| xor(sum, *block));
        let mp = xor(xor(ppp[0], sp), tweak);
        let mc = cipher(mp, opens);
        let mut m = xor(mp, mc);
        let mut ccc = vec![[0; 16]];
        for block in &ppp[1..] {
            m = twice(m);
            ccc.push(xor(*block, m));
        }
        let sc = ccc[1..].iter().fold([0; 16], |sum, block| xor(sum, *block));
        ccc[0] = xor(xor(mc, sc), tweak);
        ccc.iter().zip(&ls).flat_map(|(block, l)| xor(cipher(*block, opens), *l)).collect()
    }

    #[test]
    fn seals_as_the_paper_says_and_opens_again() {
        let key: [u8; 32] = core::array::from_fn(|at| at as u8 * 7);
        let eme = Eme::new(&(&key).into()).unwrap();
        for blocks in 1..=BLOCKS_MAX {
            let tweak = [blocks as u8; 16];
            let text: Vec<u8> = (0..blocks * 16).map(|at| (at * at + blocks) as u8).collect();
            let mut sealed = text.clone();
            assert!(eme.seal(&tweak, &mut sealed));
            assert_eq!(sealed, reference(&key, tweak, &text, false), "{blocks} blocks");
            assert_eq!(reference(&key, tweak, &sealed, true), text);
            assert!(eme.open(&tweak, &mut sealed));
            assert_eq!(sealed, text);
            assert!(eme.seal(&[0; 16], &mut sealed) && sealed != text);
        }
    }

    #[test]
    fn lengths_that_have_no_whole_blocks_are_refused() {
        let eme = Eme::new(&(&[1; 32]).into()).unwrap();
        for len in [0, 1, 15, 17, 129 * 16] {
            assert!(!eme.seal(&[0; 16], &mut vec![0; len]), "{len}");
        }
        assert!(Eme::new(&(&[1; 16]).into()).is_none());
    }
}
