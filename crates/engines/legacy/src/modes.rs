//! Modes of operation over any [`BlockCipher`]: CTR and both directions of CBC (SP 800-38A). ECB is the cipher itself.
//!
//! A mode borrows the keyed cipher, so that one key schedule serves any number of messages, and takes a message in any number of pieces.

use crate::cipher::{BlockCipher, Form, assert_whole};
use crate::word::{Word, Zmm};
use core::arch::x86_64::*;
use core::hint::black_box;
use zeroize::Zeroize;

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

impl<C> Drop for Ctr<'_, C> {
    fn drop(&mut self) {
        self.open.zeroize();
    }
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
        let length = data.len();
        let mut stream = [0; CHUNK];
        for piece in data.chunks_mut(CHUNK) {
            let whole = piece.len().next_multiple_of(C::BLOCK);
            self.fill(&mut stream, whole);
            xor(piece, &stream);
            self.unused = whole - piece.len();
            self.open[..C::BLOCK].copy_from_slice(&stream[whole - C::BLOCK..whole]);
        }
        let used = stream.len().min(length.next_multiple_of(C::BLOCK));
        stream[..used].fill(0);
        black_box(&mut stream); // so that the compiler does not leave that out
    }

    /// The same from one buffer into another of the same length.
    pub fn apply_into(&mut self, data: &[u8], output: &mut [u8]) {
        output.copy_from_slice(data);
        self.apply(output);
    }

    /// The next blocks of key stream, so many bytes.
    fn fill(&mut self, stream: &mut [u8; CHUNK], used: usize) {
        self.counter = match C::BLOCK {
            8 => count::<8>(stream, used, self.counter),
            _ => count::<16>(stream, used, self.counter),
        };
        self.cipher.encrypt_blocks(&mut stream[..used]);
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

/// Fills the stream with counters and gives the one after them.
fn count<const BLOCK: usize>(stream: &mut [u8; CHUNK], used: usize, counter: u128) -> u128 {
    let number = used / BLOCK;
    let carries = BLOCK == 16 && (counter as u64).checked_add(number as u64 + 3).is_none();
    match Form::best().is_vector() && !carries {
        // SAFETY: the form says that the processor has been asked.
        true => unsafe { count_avx512::<BLOCK>(&mut stream[..used.next_multiple_of(64)], counter) },
        false => count_each::<BLOCK>(&mut stream[..used], counter),
    }
    counter.wrapping_add(number as u128)
}

fn count_each<const BLOCK: usize>(stream: &mut [u8], counter: u128) {
    for (i, block) in stream.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        *block = *counter.wrapping_add(i as u128).to_be_bytes().last_chunk().expect("no block is longer");
    }
}

/// Whole registers of counters whose low 64 bits do not carry.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn count_avx512<const BLOCK: usize>(stream: &mut [u8], counter: u128) {
    let (high, low) = ((counter >> 64) as u64, counter as u64);
    let (first, steps) = match BLOCK {
        8 => ([low; 8], [0, 1, 2, 3, 4, 5, 6, 7]),
        _ => ([high, low, high, low, high, low, high, low], [0, 0, 0, 1, 0, 2, 0, 3]),
    };
    let step = if BLOCK == 8 { [8; 8] } else { [0, 4, 0, 4, 0, 4, 0, 4] };
    let of = |words: [u64; 8]| <Zmm as Word>::load_lanes(&words).0;
    let reverse = _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    let mut counters = _mm512_add_epi64(of(first), of(steps));
    for bytes in stream.as_chunks_mut::<64>().0 {
        Zmm(_mm512_shuffle_epi8(counters, reverse)).store(bytes);
        counters = _mm512_add_epi64(counters, of(step));
    }
}

fn xor(data: &mut [u8], with: &[u8]) {
    match Form::best().is_vector() {
        // SAFETY: the form says that the processor has been asked.
        true => unsafe { xor_avx512(data, with) },
        false => xor_bytes(data, with),
    }
}

/// The loop below, compiled for wide registers.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn xor_avx512(data: &mut [u8], with: &[u8]) {
    xor_bytes(data, with);
}

#[inline(always)]
fn xor_bytes(data: &mut [u8], with: &[u8]) {
    for (byte, other) in data.iter_mut().zip(with) {
        *byte ^= other;
    }
}
