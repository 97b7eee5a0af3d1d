//! Against RustCrypto's ciphers, with the modes written out anew: every length, in both forms, in pieces.

mod forms;

use bywash_legacy::des::{Des, Stream, StreamKey, TripleDes, encrypt_cbc_streams};
use bywash_legacy::modes::{Cbc, Ctr};
use bywash_legacy::{BlockCipher, Camellia, Rc6, Serpent, Twofish};
use cipher::consts::{U16, U20, U24, U32};
use cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use fastrand::Rng;
use forms::forms;

fn bytes(random: &mut Rng, len: usize) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

/// A block, encrypted or decrypted.
type OneBlock = Box<dyn Fn(&[u8], bool) -> Vec<u8>>;

/// The other implementation, one block after the other. In all modes what comes out for a part is the beginning of what comes out for all.
struct Oracle {
    block_len: usize,
    block: OneBlock,
}

impl Oracle {
    fn new<T: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit + 'static>(key: &[u8]) -> Self {
        let cipher = T::new_from_slice(key).expect("a key of the cipher");
        let block = move |block: &[u8], encrypt: bool| {
            let mut block = Block::<T>::try_from(block).expect("a block");
            match encrypt {
                true => cipher.encrypt_block(&mut block),
                false => cipher.decrypt_block(&mut block),
            }
            block.to_vec()
        };
        Self { block_len: T::block_size(), block: Box::new(block) }
    }

    fn ecb(&self, data: &[u8], encrypt: bool) -> Vec<u8> {
        data.chunks(self.block_len).flat_map(|block| (self.block)(block, encrypt)).collect()
    }

    fn cbc_encrypt(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let mut chained = iv.to_vec();
        let mut next = |block: &[u8]| {
            chained = (self.block)(&xor(block, &chained), true);
            chained.clone()
        };
        data.chunks(self.block_len).flat_map(&mut next).collect()
    }

    fn ctr(&self, first: &[u8], data: &[u8]) -> Vec<u8> {
        let mut counter = first.to_vec();
        let mut next = |piece: &[u8]| {
            let stream = (self.block)(&counter, true);
            for byte in counter.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
            xor(piece, &stream)
        };
        data.chunks(self.block_len).flat_map(&mut next).collect()
    }
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Runs `work` on a copy of the data that does not begin at a multiple of anything.
fn unaligned(data: &[u8], offset: usize, work: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut buffer = vec![0xa5; offset + data.len() + 64];
    buffer[offset..][..data.len()].copy_from_slice(data);
    work(&mut buffer[offset..][..data.len()]);
    assert!(buffer[..offset].iter().chain(&buffer[offset + data.len()..]).all(|byte| *byte == 0xa5), "wrote beyond its buffer");
    buffer[offset..][..data.len()].to_vec()
}

/// Every number of blocks from none to `blocks`, every mode and direction.
fn every_length<C: BlockCipher>(blocks: usize, oracle: impl Fn(&[u8]) -> Oracle) {
    let mut random = Rng::with_seed(1 + C::BLOCK as u64);
    for (form, key_len) in forms().flat_map(|form| C::KEYS.iter().map(move |len| (form, *len))) {
        let (key, iv, data) = (bytes(&mut random, key_len), bytes(&mut random, C::BLOCK), bytes(&mut random, blocks * C::BLOCK));
        let (ours, theirs) = (C::with_form(&key, form).expect("a key"), oracle(&key));
        let expected = [theirs.ecb(&data, true), theirs.ecb(&data, false), theirs.ctr(&iv, &data), theirs.cbc_encrypt(&iv, &data)];
        let blocks = if form.is_vector() { blocks } else { blocks.min(150) };
        for len in (0..=blocks * C::BLOCK).step_by(C::BLOCK) {
            let at = format!("{} {key_len}, {len} bytes, {form:?}", C::NAME);
            let (data, [encrypted, decrypted, counted, chained]) = (&data[..len], expected.each_ref().map(|all| &all[..len]));
            let offset = random.usize(..64);
            assert!(unaligned(data, offset, |data| ours.encrypt_blocks(data)) == encrypted, "ECB encryption: {at}");
            assert!(unaligned(data, offset, |data| ours.decrypt_blocks(data)) == decrypted, "ECB decryption: {at}");
            assert!(unaligned(data, offset, |data| Ctr::new(&iv).apply(&ours, data)) == counted, "CTR: {at}");
            assert!(unaligned(chained, offset, |data| Cbc::new(&iv).decrypt(&ours, data)) == data, "CBC decryption: {at}");
        }
        let some = data.len().min(33 * C::BLOCK);
        let mut output = data[..some].to_vec();
        Cbc::new(&iv).encrypt(&ours, &mut output);
        assert!(output == expected[3][..some], "CBC encryption: {} {key_len}, {form:?}", C::NAME);
    }
}

/// Messages in pieces, CTR at any byte, CBC at any block; counters that wrap around in the middle.
fn pieces_and_wraps<C: BlockCipher>(oracle: impl Fn(&[u8]) -> Oracle) {
    let mut random = Rng::with_seed(77 + C::BLOCK as u64);
    let key = bytes(&mut random, C::KEYS[C::KEYS.len() - 1]);
    let theirs = oracle(&key);
    for form in forms() {
        let ours = C::with_form(&key, form).expect("a key");
        for round in 0..60 {
            let mut iv = vec![0xff; C::BLOCK];
            match round % 4 {
                // The low 32 bits overflow; the low 64; all; none.
                0 => iv[..C::BLOCK - 4].fill(7),
                1 => iv[..C::BLOCK - 8].fill(9),
                2 => {}
                _ => iv = bytes(&mut random, C::BLOCK),
            }
            let last = &mut iv[C::BLOCK - 1];
            *last -= (random.usize(..200) as u8).min(*last);
            let len = C::BLOCK * (1 + random.usize(..700)) + random.usize(..C::BLOCK);
            let data = bytes(&mut random, len);
            let cut = |random: &mut Rng, data: &mut [u8], unit: usize, work: &mut dyn FnMut(&mut [u8])| {
                let mut rest = data;
                while !rest.is_empty() {
                    let most = if random.usize(..2) == 0 { 3 } else { 600 };
                    let (piece, after) = rest.split_at_mut((unit * random.usize(..most)).min(rest.len()));
                    work(piece);
                    rest = after;
                }
            };
            let (mut counted, mut counter) = (data.clone(), Ctr::new(&iv));
            cut(&mut random, &mut counted, 1 + round % 3, &mut |piece| counter.apply(&ours, piece));
            assert!(counted == theirs.ctr(&iv, &data), "CTR of {} in pieces, round {round}, {form:?}", C::NAME);

            let whole = &data[..data.len() / C::BLOCK * C::BLOCK];
            let (mut chained, mut cbc) = (theirs.cbc_encrypt(&iv, whole), Cbc::new(&iv));
            cut(&mut random, &mut chained, C::BLOCK, &mut |piece| cbc.decrypt(&ours, piece));
            assert!(chained == whole, "CBC decryption of {} in pieces, round {round}, {form:?}", C::NAME);
        }
    }
}

/// Streams of different keys and lengths, more of them than there are lanes, taken up again where they ended.
fn streams<C: StreamKey>(numbers: &[usize], oracle: impl Fn(&[u8]) -> Oracle) {
    let mut random = Rng::with_seed(5);
    for (form, number) in forms().flat_map(|form| numbers.iter().map(move |number| (form, *number))) {
        let mut inputs = Vec::new();
        for _ in 0..number {
            let key_len = C::KEYS[random.usize(..C::KEYS.len())];
            let key = bytes(&mut random, key_len);
            let blocks = if random.usize(..8) == 0 { 0 } else { random.usize(..40) };
            inputs.push((key, bytes(&mut random, 8), bytes(&mut random, 8 * blocks)));
        }
        let keys: Vec<C> = inputs.iter().map(|(key, ..)| C::with_form(key, form).expect("a key")).collect();
        let mut outputs: Vec<Vec<u8>> = inputs.iter().map(|(_, _, data)| data.clone()).collect();
        let mut work: Vec<Stream<'_, C>> = Vec::new();
        let mut rests = Vec::new();
        for ((key, (_, iv, _)), data) in keys.iter().zip(&inputs).zip(&mut outputs) {
            let middle = data.len() / 16 * 8;
            let (data, rest) = data.split_at_mut(middle);
            work.push(Stream { key, chained: iv.as_slice().try_into().expect("a block"), data });
            rests.push(rest);
        }
        encrypt_cbc_streams(&mut work);
        let mut work: Vec<_> = work.into_iter().zip(rests).map(|(half, data)| Stream { data, ..half }).collect();
        encrypt_cbc_streams(&mut work);
        for (i, ((key, iv, data), output)) in inputs.iter().zip(&outputs).enumerate() {
            assert!(*output == oracle(key).cbc_encrypt(iv, data), "{} stream {i} of {number}, {form:?}", C::NAME);
        }
    }
}

fn triple_des(key: &[u8]) -> Oracle {
    match key.len() {
        16 => Oracle::new::<des::TdesEde2>(key),
        _ => Oracle::new::<des::TdesEde3>(key),
    }
}

#[test]
fn des_at_every_length() {
    every_length::<Des>(1100, Oracle::new::<des::Des>);
}

#[test]
fn des_in_pieces() {
    pieces_and_wraps::<Des>(Oracle::new::<des::Des>);
    pieces_and_wraps::<TripleDes>(Oracle::new::<des::TdesEde3>);
}

#[test]
fn triple_des_at_every_length() {
    every_length::<TripleDes>(1030, triple_des);
}

#[test]
fn des_streams_side_by_side() {
    streams::<Des>(&[0, 1, 2, 63, 64, 65, 511, 512, 513, 1300], Oracle::new::<des::Des>);
    streams::<TripleDes>(&[1, 65, 700], triple_des);
}

#[test]
fn serpent_as_another() {
    every_length::<Serpent>(150, Oracle::new::<serpent::Serpent>);
    pieces_and_wraps::<Serpent>(Oracle::new::<serpent::Serpent>);
}

fn rc6(key: &[u8]) -> Oracle {
    match key.len() {
        16 => Oracle::new::<rc6::RC6<u32, U20, U16>>(key),
        24 => Oracle::new::<rc6::RC6<u32, U20, U24>>(key),
        _ => Oracle::new::<rc6::RC6<u32, U20, U32>>(key),
    }
}

#[test]
fn rc6_as_another() {
    every_length::<Rc6>(150, rc6);
    pieces_and_wraps::<Rc6>(rc6);
}

#[test]
fn twofish_as_another() {
    every_length::<Twofish>(150, Oracle::new::<twofish::Twofish>);
    pieces_and_wraps::<Twofish>(Oracle::new::<twofish::Twofish>);
}

fn camellia(key: &[u8]) -> Oracle {
    match key.len() {
        16 => Oracle::new::<camellia::Camellia128>(key),
        24 => Oracle::new::<camellia::Camellia192>(key),
        _ => Oracle::new::<camellia::Camellia256>(key),
    }
}

#[test]
fn camellia_as_another() {
    every_length::<Camellia>(150, camellia);
    pieces_and_wraps::<Camellia>(camellia);
}

#[test]
fn keys_of_other_lengths_are_refused_in_words() {
    assert_eq!(Des::new(&[0; 7]).err().expect("refused").to_string(), "a key of DES has 8 bytes, not 7");
    assert_eq!(TripleDes::new(&[0; 8]).err().expect("refused").to_string(), "a key of 3DES has 16 or 24 bytes, not 8");
}

#[test]
#[should_panic(expected = "no whole number of blocks")]
fn part_of_a_block_is_refused() {
    Des::new(&[0; 8]).expect("a key").encrypt_blocks(&mut [0; 12]);
}
