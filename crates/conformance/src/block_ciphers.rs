//! The second implementation's block ciphers: RustCrypto's.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16, consts::U20, consts::U24, consts::U32};
use bywash_core::{Algorithm, Direction};

/// Encrypts or decrypts each block of a text by itself.
type Run = Box<dyn Fn(Direction, &mut [u8])>;

/// A keyed block cipher.
pub(crate) struct BlockCipher {
    /// Bytes in a block.
    pub(crate) block: usize,
    run: Run,
}

impl BlockCipher {
    /// The cipher of an algorithm, told by its name's beginning.
    pub(crate) fn of(algorithm: Algorithm, key: &[u8]) -> Self {
        let family = algorithm.name().split('-').next().expect("a name");
        match (family, key.len()) {
            ("AES", _) => Self::aes(key),
            ("Blowfish", _) => Self::new::<blowfish::Blowfish>(key),
            ("DES", 8) => Self::new::<des::Des>(key),
            ("DES", _) => Self::new::<des::TdesEde3>(key),
            ("Camellia", 16) => Self::new::<camellia::Camellia128>(key),
            ("Camellia", 24) => Self::new::<camellia::Camellia192>(key),
            ("Camellia", _) => Self::new::<camellia::Camellia256>(key),
            ("Serpent", _) => Self::new::<serpent::Serpent>(key),
            ("Twofish", _) => Self::new::<twofish::Twofish>(key),
            ("RC6", 16) => Self::new::<rc6::RC6<u32, U20, U16>>(key),
            ("RC6", 24) => Self::new::<rc6::RC6<u32, U20, U24>>(key),
            ("RC6", _) => Self::new::<rc6::RC6<u32, U20, U32>>(key),
            _ => panic!("{algorithm}: the suite has no second implementation of its cipher"),
        }
    }

    /// AES with any key length (FIPS 197).
    pub(crate) fn aes(key: &[u8]) -> Self {
        match key.len() {
            16 => Self::new::<aes::Aes128>(key),
            24 => Self::new::<aes::Aes192>(key),
            _ => Self::new::<aes::Aes256>(key),
        }
    }

    fn new<C: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit + 'static>(key: &[u8]) -> Self {
        let cipher = C::new_from_slice(key).expect("the caller's key has the algorithm's length");
        let run = move |direction, text: &mut [u8]| {
            let blocks = Array::slice_as_chunks_mut(text).0;
            if direction == Direction::Encrypt { cipher.encrypt_blocks(blocks) } else { cipher.decrypt_blocks(blocks) }
        };
        Self { block: C::block_size(), run: Box::new(run) }
    }

    /// Each block by itself.
    pub(crate) fn run(&self, direction: Direction, text: &mut [u8]) {
        (self.run)(direction, text);
    }

    /// One block of a cipher with blocks of 16 bytes.
    pub(crate) fn encrypt_block(&self, mut block: [u8; 16]) -> [u8; 16] {
        self.run(Direction::Encrypt, &mut block);
        block
    }
}
