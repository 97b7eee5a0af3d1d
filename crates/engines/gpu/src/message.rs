//! One operation on its way over the device: cut into parts, summed up again, finished on the host.

use crate::device::{Kernel, Lies, Stream};
use crate::host::aes::Block;
use crate::host::{chacha, ghash, poly1305, xts};
use crate::launch::{COUNTER_OF_32_BITS, CipherRecord, Filling, Place};
use crate::session::{Material, Session};
use bywash_core::secret::constant_time_eq;
use bywash_core::{Data, Direction, Error, Operation, Result};
use zeroize::{Zeroize, Zeroizing};

/// What a mode carries from part to part.
enum State {
    Ctr { counter: u128 },
    Gcm { counter: u128, mask: Block, sum: ghash::Element },
    Xts { tweak: xts::Tweak },
    ChaCha { start: Zeroizing<chacha::State>, powers: Box<poly1305::Powers>, s: u128, sum: poly1305::Number },
}

impl Drop for State {
    fn drop(&mut self) {
        match self {
            State::Gcm { mask, sum, .. } => (mask.zeroize(), sum.zeroize()),
            State::ChaCha { s, sum, .. } => (s.zeroize(), sum.zeroize()),
            _ => ((), ()),
        };
    }
}

/// An operation and how far it is.
pub(crate) struct Message<'s> {
    session: &'s Session,
    state: State,
    decrypts: bool,
    /// Bytes of text that the device computes: all but what XTS steals at the end.
    pub(crate) on_device: usize,
    /// Bytes that were given to the device.
    pub(crate) given: usize,
    /// Bytes that came back.
    taken: usize,
    /// Whether the device writes to where its output goes by itself.
    imported: bool,
    aad: usize,
}

impl<'s> Message<'s> {
    pub(crate) fn new(session: &'s Session, operation: &Operation<'_>) -> Self {
        let len = operation.data.input_len();
        let mut on_device = len;
        let state = match &session.material {
            Material::Ctr(_) => State::Ctr { counter: big_endian(operation.iv) },
            Material::Gcm(schedule, powers) => {
                let first = match <[u8; 12]>::try_from(operation.iv) {
                    Ok(iv) => big_endian(&[&iv[..], &[0, 0, 0, 1]].concat()),
                    Err(_) => {
                        let sum = powers.hash([0; 4], operation.iv);
                        u128::from_be_bytes(ghash::block(powers.hash(sum, &bits(0, operation.iv.len()))))
                    }
                };
                let sum = powers.hash([0; 4], operation.aad);
                State::Gcm { counter: next(first, 1), mask: schedule.encrypt(first.to_be_bytes()), sum }
            }
            Material::Xts(_, tweaks) => {
                if !len.is_multiple_of(16) {
                    on_device = (len / 16 - 1) * 16;
                }
                let mut iv = [0; 16];
                iv.copy_from_slice(operation.iv);
                State::Xts { tweak: u128::from_le_bytes(tweaks.encrypt(iv)) }
            }
            Material::ChaCha(key) => {
                let start = Zeroizing::new(chacha::state(key, operation.iv, 0));
                let keys = Zeroizing::new(chacha::block(&start));
                let half = |at: usize| (0..4).fold(0, |sum, i| sum | u128::from(keys[at + i]) << (32 * i));
                let powers = Box::new(poly1305::Powers::new(half(0)));
                let sum = powers.hash(poly1305::Number::default(), operation.aad);
                State::ChaCha { start, powers, s: half(4), sum }
            }
        };
        Self {
            session,
            state,
            decrypts: operation.direction == Direction::Decrypt,
            on_device,
            given: 0,
            taken: 0,
            imported: false,
            aad: operation.aad.len(),
        }
    }

    /// Words of the control buffer that a part takes beside its records and tweaks.
    pub(crate) fn words(&self) -> usize {
        match self.session.material {
            Material::ChaCha(_) => 16 + 10 * ghash::LEVELS,
            _ => self.session.words.len(),
        }
    }

    /// Gives the next `bytes`, which lie there on the host before and afterwards, to a stream.
    pub(crate) fn give(
        &mut self,
        operation: &Operation<'_>,
        bytes: usize,
        (from, to): (Lies, Lies),
        filling: &mut Filling,
        stream: &mut dyn Stream,
    ) -> Place {
        let place = filling.place(bytes, from, to);
        if from == Lies::Staged {
            let text = &operation.data.input()[self.given..self.given + bytes];
            stream.input()[place.text..place.text + bytes].copy_from_slice(text);
        }
        self.imported |= to != Lies::Staged;
        let block = (self.given / 16) as u128;
        let mut record = CipherRecord { kernel: Kernel::Ctr, keys: 0, rounds: 0, flags: 0, counter: [0; 4], tweaks: 0 };
        match (&self.session.material, &mut self.state) {
            (Material::Ctr(schedule), State::Ctr { counter }) => {
                record.keys = filling.keys(stream, self.session.id, &self.session.words);
                record.rounds = schedule.rounds();
                record.counter = words(counter.wrapping_add(block));
            }
            (Material::Gcm(schedule, _), State::Gcm { counter, .. }) => {
                let keys = filling.keys(stream, self.session.id, &self.session.words);
                record.keys = keys;
                record.rounds = schedule.rounds();
                record.flags = COUNTER_OF_32_BITS;
                record.counter = words(next(*counter, block as u32));
                filling.sum(place, bytes, Kernel::Ghash, self.decrypts, keys + schedule.planes().len() as u32, 4);
            }
            (Material::Xts(schedule, _), State::Xts { tweak }) => {
                record.kernel = if self.decrypts { Kernel::XtsDecrypt } else { Kernel::XtsEncrypt };
                record.keys = filling.keys(stream, self.session.id, &self.session.words);
                record.rounds = schedule.rounds();
                let groups = bytes / 16 / xts::GROUP;
                let mut table = Zeroizing::new(Vec::with_capacity(4 * (groups + 1)));
                for _ in 0..groups {
                    table.extend_from_slice(&little(*tweak));
                    *tweak = xts::advance(*tweak, xts::GROUP);
                }
                table.extend_from_slice(&little(*tweak));
                *tweak = xts::advance(*tweak, bytes / 16 % xts::GROUP);
                record.tweaks = filling.words(stream, &table);
            }
            (Material::ChaCha(_), State::ChaCha { start, powers, .. }) => {
                record.kernel = Kernel::ChaCha20;
                record.keys = filling.words(stream, &**start);
                record.counter[0] = 1 + (self.given / 64) as u32;
                let factors = Zeroizing::new(powers.levels.map(poly1305::Number::to_kernel));
                let factors = filling.words(stream, factors.as_flattened());
                filling.sum(place, bytes, Kernel::Poly1305, self.decrypts, factors, 10);
            }
            _ => unreachable!("a message's state is made from its session's material"),
        }
        filling.cipher(place, bytes, &record);
        self.given += bytes;
        place
    }

    /// Takes a part's sum, in the order in which parts were given.
    pub(crate) fn take(&mut self, bytes: usize, sum: &[u8]) {
        let words = Zeroizing::new(core::array::from_fn::<u32, 8, _>(|i| u32::from_ne_bytes(sum.as_chunks().0[i])));
        let blocks = bytes.div_ceil(16);
        match (&self.session.material, &mut self.state) {
            // With nothing before it, which is no secret, there is nothing to multiply.
            (Material::Gcm(..), State::Gcm { sum, .. }) if self.aad == 0 && self.taken == 0 => *sum = core::array::from_fn(|i| words[i]),
            (Material::Gcm(_, powers), State::Gcm { sum, .. }) => *sum = powers.append(*sum, blocks, core::array::from_fn(|i| words[i])),
            (_, State::ChaCha { powers, sum, .. }) => *sum = powers.append(*sum, blocks, poly1305::Number::from_kernel(&*words)),
            _ => {}
        }
        self.taken += bytes;
    }

    /// Gives the operation up. What of an AEAD's text came back was never verified: it is wiped. So is what the device replaced in part: whoever enciphered it once more would decipher some of it.
    pub(crate) fn discard(&self, operation: &mut Operation<'_>) {
        let replaced = self.imported && matches!(operation.data, Data::InPlace(_));
        let unverified = self.decrypts && matches!(self.state, State::Gcm { .. } | State::ChaCha { .. });
        let taken = match operation.data {
            Data::InPlace(_) if replaced => self.given,
            Data::InPlace(_) => self.taken,
            Data::Copy { .. } => operation.data.input_len(),
        };
        if replaced || unverified {
            operation.data.output()[..taken].zeroize();
        }
    }

    /// Ends the operation, whose parts have all been taken: stolen ends, tags. Returns the bytes of output.
    pub(crate) fn finish(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let len = operation.data.input_len();
        let tag = match (&self.session.material, &self.state) {
            (Material::Gcm(_, powers), State::Gcm { mask, sum, .. }) => {
                let sum = ghash::block(powers.hash(*sum, &bits(self.aad, len)));
                core::array::from_fn(|i| sum[i] ^ mask[i])
            }
            (_, State::ChaCha { powers, sum, s, .. }) => {
                let lengths = (self.aad as u128 | (len as u128) << 64).to_le_bytes();
                powers.hash(*sum, &lengths).tag(*s)
            }
            (Material::Xts(schedule, _), State::Xts { tweak }) if self.on_device < len => {
                let mut end = [0; 31];
                let end = &mut end[..len - self.on_device];
                end.copy_from_slice(&operation.data.input()[self.on_device..]);
                xts::steal(schedule, !self.decrypts, *tweak, end, &mut operation.data.output()[self.on_device..]);
                end.zeroize();
                return Ok(len);
            }
            _ => return Ok(len),
        };
        let given = &mut *operation.tag;
        if !self.decrypts {
            given.copy_from_slice(&tag[..given.len()]);
        } else if !constant_time_eq(given, &tag[..given.len()]) {
            operation.data.output().zeroize();
            return Err(Error::Authentication);
        }
        Ok(len)
    }
}

fn big_endian(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// GCM's counter so many blocks on: its low 32 bits alone.
fn next(counter: u128, blocks: u32) -> u128 {
    (counter & !0xffff_ffff) | u128::from((counter as u32).wrapping_add(blocks))
}

fn words(number: u128) -> [u32; 4] {
    core::array::from_fn(|i| (number >> (96 - 32 * i)) as u32)
}

fn little(number: u128) -> [u32; 4] {
    core::array::from_fn(|i| (number >> (32 * i)) as u32)
}

/// GCM's block of two lengths in bits.
pub(crate) fn bits(aad: usize, text: usize) -> [u8; 16] {
    (((aad as u128) << 64 | text as u128) << 3).to_be_bytes()
}
