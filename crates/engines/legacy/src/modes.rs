//! Modes of operation over any [`BlockCipher`]: CTR and both directions of CBC (SP 800-38A). ECB is the cipher itself.
//!
//! One key schedule serves any number of messages: what a mode holds is a message under way, which comes in any number of pieces.

pub use crate::cipher::BLOCK_MAX;
use crate::cipher::{BlockCipher, Form, assert_whole};
use crate::word::{Gates, Word, Zmm};
use core::arch::x86_64::*;
use core::hint::black_box;
use core::marker::PhantomData;
use zeroize::Zeroize;

/// Bytes that go through the cipher at a time: a group of the widest kernel, and small beside the first-level cache.
const CHUNK: usize = 4096;

/// Bytes on the stack at the beginning of a line of the cache: registers that straddle two of them take twice as long.
#[repr(align(64))]
struct Aligned<const LEN: usize>([u8; LEN]);

/// Counter mode: the whole block is a big-endian counter that wraps around. Encryption and decryption are the same.
pub struct Ctr<C> {
    /// The next block of key stream to be made. A shorter block's counter is the low bits.
    counter: u128,
    /// The last block of key stream, if its end is still unused.
    open: [u8; BLOCK_MAX],
    unused: usize,
    cipher: PhantomData<fn(&C)>,
}

impl<C> Clone for Ctr<C> {
    fn clone(&self) -> Self {
        Self { counter: self.counter, open: self.open, unused: self.unused, cipher: PhantomData }
    }
}

impl<C> Drop for Ctr<C> {
    fn drop(&mut self) {
        self.open.zeroize();
    }
}

impl<C: BlockCipher> Ctr<C> {
    /// From the first counter block. Panics unless it is a block long.
    pub fn new(first: &[u8]) -> Self {
        assert_eq!(first.len(), C::BLOCK, "the first counter block of {}", C::NAME);
        let counter = first.iter().fold(0, |counter, byte| counter << 8 | u128::from(*byte));
        Self { counter, open: [0; BLOCK_MAX], unused: 0, cipher: PhantomData }
    }

    /// The next bytes of the message, any number, always with the same cipher.
    pub fn apply(&mut self, cipher: &C, mut data: &mut [u8]) {
        let begun = self.unused.min(data.len());
        let from = C::BLOCK - self.unused;
        xor_bytes(&mut data[..begun], &self.open[from..from + begun]);
        self.unused -= begun;
        data = &mut data[begun..];
        cipher.xor_stream(self.counter, data, &mut self.open);
        self.counter = self.counter.wrapping_add(data.len().div_ceil(C::BLOCK) as u128);
        self.unused += data.len().next_multiple_of(C::BLOCK) - data.len();
    }

    /// The counter of the next block that has not been begun, in the first bytes.
    pub fn chained(&self) -> [u8; BLOCK_MAX] {
        let mut chained = [0; BLOCK_MAX];
        chained[..C::BLOCK].copy_from_slice(&self.counter.to_be_bytes()[BLOCK_MAX - C::BLOCK..]);
        chained
    }
}

/// [`BlockCipher::xor_stream`] by way of the counters as blocks in memory.
pub(crate) fn xor_stream<C: BlockCipher>(cipher: &C, mut counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
    let length = data.len();
    let mut aligned = Aligned([0; CHUNK]);
    let stream = &mut aligned.0;
    for piece in data.chunks_mut(CHUNK) {
        let (len, whole) = (piece.len(), piece.len().next_multiple_of(C::BLOCK));
        counter = match C::BLOCK {
            8 => count::<8>(stream, whole, counter),
            _ => count::<16>(stream, whole, counter),
        };
        cipher.encrypt_blocks(&mut stream[..whole]);
        xor(piece, stream);
        open[len % C::BLOCK..][..whole - len].copy_from_slice(&stream[len..whole]);
    }
    let used = stream.len().min(length.next_multiple_of(C::BLOCK));
    stream[..used].fill(0);
    black_box(stream); // so that the compiler does not leave that out
}

/// Cipher block chaining. A message goes one way from its first block to its last, always with the same cipher.
#[derive(Clone)]
pub struct Cbc {
    /// The last block of ciphertext, or the initialisation vector.
    chained: [u8; BLOCK_MAX],
}

impl Cbc {
    /// From the initialisation vector. Panics if it is longer than all blocks; that it is as long as the cipher's is the caller's to see to.
    pub fn new(iv: &[u8]) -> Self {
        let mut chained = [0; BLOCK_MAX];
        chained[..iv.len()].copy_from_slice(iv);
        Self { chained }
    }

    /// Encrypts the next blocks of the message. Panics unless their number is whole.
    ///
    /// Each block waits for the one before it, so one stream cannot fill the kernels. Many streams of DES or 3DES go side by side:
    /// [`crate::des::encrypt_cbc_streams`].
    pub fn encrypt<C: BlockCipher>(&mut self, cipher: &C, data: &mut [u8]) {
        assert_whole(data, C::BLOCK);
        for block in data.chunks_exact_mut(C::BLOCK) {
            xor_bytes(block, &self.chained);
            cipher.encrypt_blocks(block);
            self.chained[..C::BLOCK].copy_from_slice(block);
        }
    }

    /// Decrypts the next blocks of the message, which is block by block independent, so as fast as the cipher. Panics unless their number is whole.
    pub fn decrypt<C: BlockCipher>(&mut self, cipher: &C, data: &mut [u8]) {
        assert_whole(data, C::BLOCK);
        // The ciphertext of a piece with the block before it: what the deciphered blocks are to be combined with.
        let mut aligned = Aligned([0; BLOCK_MAX + CHUNK]);
        let before = &mut aligned.0[..C::BLOCK + data.len().min(CHUNK)];
        for piece in data.chunks_mut(CHUNK) {
            before[..C::BLOCK].copy_from_slice(&self.chained[..C::BLOCK]);
            before[C::BLOCK..][..piece.len()].copy_from_slice(piece);
            self.chained[..C::BLOCK].copy_from_slice(&before[piece.len()..][..C::BLOCK]);
            cipher.decrypt_blocks(piece);
            xor(piece, before);
        }
    }

    /// The last block of ciphertext, in the first bytes: what the message goes on from.
    pub fn chained(&self) -> [u8; BLOCK_MAX] {
        self.chained
    }
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

/// Whole registers, and the loop below for what is left.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn xor_avx512(data: &mut [u8], with: &[u8]) {
    let with = &with[..data.len()];
    let ((registers, rest), (others, other_rest)) = (data.as_chunks_mut::<64>(), with.as_chunks::<64>());
    for (register, other) in registers.iter_mut().zip(others) {
        Gates::xor(<Zmm as Word>::load(register), Word::load(other)).store(register);
    }
    xor_bytes(rest, other_rest);
}

#[inline(always)]
fn xor_bytes(data: &mut [u8], with: &[u8]) {
    for (byte, other) in data.iter_mut().zip(with) {
        *byte ^= other;
    }
}
