//! Modes of operation over any [`BlockCipher`]: CTR and both directions of CBC (SP 800-38A). ECB is the cipher itself.
//!
//! A mode borrows the keyed cipher, so that one key schedule serves any number of messages, and takes a message in any number of pieces.

use crate::cipher::{BlockCipher, assert_whole};

/// Bytes that go through the cipher at a time: a group of the widest kernel, and small beside the first-level cache.
const CHUNK: usize = 4096;
/// The longest block of all ciphers.
const BLOCK_MAX: usize = 16;

/// Counter mode: the whole block is a big-endian counter that wraps around. Encryption and decryption are the same.
pub struct Ctr<'k, C> {
    cipher: &'k C,
    /// The next block of key stream to be made. A shorter block's counter is the low bits.
    counter: u128,
    /// The last block of key stream, if its end is still unused.
    open: [u8; BLOCK_MAX],
    unused: usize,
}

impl<'k, C: BlockCipher> Ctr<'k, C> {
    /// From the first counter block. Panics unless it is a block long.
    pub fn new(cipher: &'k C, first: &[u8]) -> Self {
        assert_eq!(first.len(), C::BLOCK, "the first counter block of {}", C::NAME);
        let counter = first.iter().fold(0, |counter, byte| counter << 8 | u128::from(*byte));
        Self { cipher, counter, open: [0; BLOCK_MAX], unused: 0 }
    }

    /// The next bytes of the message, any number.
    pub fn apply(&mut self, mut data: &mut [u8]) {
        let begun = self.unused.min(data.len());
        let from = C::BLOCK - self.unused;
        xor(&mut data[..begun], &self.open[from..from + begun]);
        self.unused -= begun;
        data = &mut data[begun..];
        let mut stream = [0; CHUNK];
        for piece in data.chunks_mut(CHUNK) {
            let whole = piece.len().next_multiple_of(C::BLOCK);
            self.fill(&mut stream[..whole]);
            xor(piece, &stream);
            self.unused = whole - piece.len();
            self.open[..C::BLOCK].copy_from_slice(&stream[whole - C::BLOCK..whole]);
        }
    }

    /// The same from one buffer into another of the same length.
    pub fn apply_into(&mut self, data: &[u8], output: &mut [u8]) {
        output.copy_from_slice(data);
        self.apply(output);
    }

    /// The next whole blocks of key stream.
    fn fill(&mut self, stream: &mut [u8]) {
        for block in stream.chunks_exact_mut(C::BLOCK) {
            block.copy_from_slice(&self.counter.to_be_bytes()[BLOCK_MAX - C::BLOCK..]);
            self.counter = self.counter.wrapping_add(1);
        }
        self.cipher.encrypt_blocks(stream);
    }
}

/// Cipher block chaining, decryption: block by block independent, so as fast as the cipher.
pub struct CbcDecrypt<'k, C> {
    cipher: &'k C,
    chained: [u8; BLOCK_MAX],
}

impl<'k, C: BlockCipher> CbcDecrypt<'k, C> {
    /// From the initialisation vector. Panics unless it is a block long.
    pub fn new(cipher: &'k C, iv: &[u8]) -> Self {
        Self { cipher, chained: first::<C>(iv) }
    }

    /// The next blocks of the message. Panics unless their number is whole.
    pub fn apply(&mut self, data: &mut [u8]) {
        assert_whole(data, C::BLOCK);
        // The ciphertext of a piece with the block before it: what the deciphered blocks are to be combined with.
        let mut before = [0; BLOCK_MAX + CHUNK];
        for piece in data.chunks_mut(CHUNK) {
            before[..C::BLOCK].copy_from_slice(&self.chained[..C::BLOCK]);
            before[C::BLOCK..][..piece.len()].copy_from_slice(piece);
            self.chained[..C::BLOCK].copy_from_slice(&before[piece.len()..][..C::BLOCK]);
            self.cipher.decrypt_blocks(piece);
            xor(piece, &before);
        }
    }

    /// The same from one buffer into another of the same length.
    pub fn apply_into(&mut self, data: &[u8], output: &mut [u8]) {
        output.copy_from_slice(data);
        self.apply(output);
    }
}

/// Cipher block chaining, encryption: each block waits for the one before it, so one stream cannot fill the kernels and pays for a whole
/// group with each block. Many streams of DES or 3DES go side by side: [`crate::des::encrypt_cbc_streams`].
pub struct CbcEncrypt<'k, C> {
    cipher: &'k C,
    chained: [u8; BLOCK_MAX],
}

impl<'k, C: BlockCipher> CbcEncrypt<'k, C> {
    /// From the initialisation vector. Panics unless it is a block long.
    pub fn new(cipher: &'k C, iv: &[u8]) -> Self {
        Self { cipher, chained: first::<C>(iv) }
    }

    /// The next blocks of the message. Panics unless their number is whole.
    pub fn apply(&mut self, data: &mut [u8]) {
        assert_whole(data, C::BLOCK);
        for block in data.chunks_exact_mut(C::BLOCK) {
            xor(block, &self.chained);
            self.cipher.encrypt_blocks(block);
            self.chained[..C::BLOCK].copy_from_slice(block);
        }
    }

    /// The same from one buffer into another of the same length.
    pub fn apply_into(&mut self, data: &[u8], output: &mut [u8]) {
        output.copy_from_slice(data);
        self.apply(output);
    }
}

fn first<C: BlockCipher>(iv: &[u8]) -> [u8; BLOCK_MAX] {
    assert_eq!(iv.len(), C::BLOCK, "the initialisation vector of {}", C::NAME);
    let mut chained = [0; BLOCK_MAX];
    chained[..C::BLOCK].copy_from_slice(iv);
    chained
}

fn xor(data: &mut [u8], with: &[u8]) {
    for (byte, other) in data.iter_mut().zip(with) {
        *byte ^= other;
    }
}
