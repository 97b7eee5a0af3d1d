//! AES-CCM (SP 800-38C) where there is no kernel: the library's CBC and CTR put together.

use crate::aead::{Aead, KeyedAead, NoPieces};
use crate::failed;
use crate::ffi::aes::{AesKey, Counter};
use crate::ffi::{Refused, wipe};
use bywash_core::secret::constant_time_eq;
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Result};

const BLOCK: usize = 16;
/// Bytes that go into the MAC at once.
const PIECE: usize = 64 * BLOCK;

struct Ccm(AesKey);

pub(crate) fn open(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = AesKey::new(key, Direction::Encrypt).map_err(|_| failed("the key"))?;
    Ok(KeyedAead::boxed(algorithm, Ccm(key)))
}

/// Of a longer text the first block would not have the whole length, nor the last ones counters of their own (SP 800-38C appendix A.1): as the kernel does, it refuses one.
fn check_len(nonce: &[u8], len: usize) -> Result<()> {
    let counted = BLOCK.saturating_sub(1 + nonce.len());
    if counted < 8 && len as u64 >> (8 * counted) > 0 { Err(failed("a text of that length with a nonce of that length")) } else { Ok(()) }
}

impl Aead for Ccm {
    type Pieces = NoPieces;

    fn seal(&self, iv: &[u8], aad: &[u8], mut data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        check_len(iv, data.input_len())?;
        let (mask, counter) = self.counters(iv);
        let mut run = || {
            let mac = self.mac(iv, aad, data.input(), tag.len())?;
            self.0.ctr(&mut Counter::at(counter), data.reborrow())?;
            Ok(mac)
        };
        let mac = run().map_err(|Refused| failed("to encrypt"))?;
        tag.iter_mut().zip(mac.iter().zip(mask)).for_each(|(tag, (mac, mask))| *tag = mac ^ mask);
        Ok(())
    }

    fn open(&self, iv: &[u8], aad: &[u8], mut data: Data<'_>, tag: &[u8]) -> Result<()> {
        check_len(iv, data.input_len())?;
        let (mut expected, counter) = self.counters(iv);
        let mut run = || {
            self.0.ctr(&mut Counter::at(counter), data.reborrow())?;
            self.mac(iv, aad, data.output(), tag.len())
        };
        let mut mac = run().map_err(|Refused| failed("to decrypt"))?;
        expected.iter_mut().zip(mac).for_each(|(mask, mac)| *mask ^= mac);
        let is_equal = constant_time_eq(&expected[..tag.len()], tag);
        // Of a forgery the tag is what the forger wants to know.
        [&mut expected, &mut mac].into_iter().for_each(|secret| wipe(secret));
        if is_equal {
            return Ok(());
        }
        data.output().fill(0);
        Err(Error::Authentication)
    }

    fn begin(&self, _: &[u8], _: Direction) -> Result<NoPieces> {
        Err(failed("a message in pieces"))
    }
}

/// Flags, nonce and a number behind them (appendix A).
fn block(flags: usize, nonce: &[u8], number: u64) -> [u8; BLOCK] {
    let mut block = u128::from(number).to_be_bytes();
    block[0] = flags as u8;
    block[1..=nonce.len()].copy_from_slice(nonce);
    block
}

impl Ccm {
    /// What masks the MAC, and the text's first counter block.
    fn counters(&self, nonce: &[u8]) -> ([u8; BLOCK], [u8; BLOCK]) {
        let flags = BLOCK - 2 - nonce.len();
        let mut mask = block(flags, nonce, 0);
        self.0.encrypt_block(&mut mask);
        (mask, block(flags, nonce, 1))
    }

    fn mac(&self, nonce: &[u8], aad: &[u8], text: &[u8], tag_len: usize) -> core::result::Result<[u8; BLOCK], Refused> {
        let flags = usize::from(!aad.is_empty()) << 6 | (tag_len - 2) << 2 | (BLOCK - 2 - nonce.len());
        let mut mac = Mac { key: &self.0, chain: [0; BLOCK], buffer: [0; PIECE], used: 0 };
        mac.update(&block(flags, nonce, text.len() as u64))?;
        match aad.len() as u64 {
            0 => {}
            len @ ..0xFF00 => mac.update(&(len as u16).to_be_bytes())?,
            len @ ..0x1_0000_0000 => mac.update(&(0xFFFE_u64 << 32 | len).to_be_bytes()[2..])?,
            len => mac.update(&(0xFFFF_u128 << 64 | u128::from(len)).to_be_bytes()[6..])?,
        }
        mac.update(aad)?;
        mac.pad();
        mac.update(text)?;
        mac.pad();
        mac.flush()?;
        Ok(mac.chain)
    }
}

/// CBC-MAC: the last block of a CBC encryption, whose others nobody sees.
struct Mac<'a> {
    key: &'a AesKey,
    chain: [u8; BLOCK],
    buffer: [u8; PIECE],
    used: usize,
}

impl Mac<'_> {
    fn update(&mut self, mut bytes: &[u8]) -> core::result::Result<(), Refused> {
        while !bytes.is_empty() {
            if self.used == PIECE {
                self.flush()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.used));
            self.buffer[self.used..][..now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Fills up the last block with zeros.
    fn pad(&mut self) {
        let end = self.used.next_multiple_of(BLOCK);
        self.buffer[self.used..end].fill(0);
        self.used = end;
    }

    /// Whole blocks.
    fn flush(&mut self) -> core::result::Result<(), Refused> {
        let used = core::mem::take(&mut self.used);
        self.key.cbc(&mut self.chain, Data::InPlace(&mut self.buffer[..used]))
    }
}

impl Drop for Mac<'_> {
    fn drop(&mut self) {
        wipe(&mut self.buffer);
        wipe(&mut self.chain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_its_nonce_leaves_bytes_for() {
        for (nonce, most) in [(13, (1 << 16) - 1), (12, (1 << 24) - 1), (11, (1 << 32) - 1)] {
            assert!(check_len(&[0; 13][..nonce], most).is_ok() && check_len(&[0; 13][..nonce], most + 1).is_err(), "{nonce}");
        }
        assert!(check_len(&[0; 7], usize::MAX).is_ok());
    }
}
