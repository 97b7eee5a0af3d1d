//! The header: what a file is sealed with, and the slots that open it. Every byte read is taken for hostile.

use crate::aead::Aead;
use crate::armor::is_armored;
use crate::error::{Error, Result};
use crate::geometry::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, Geometry};
use crate::kdf::{FileKeys, KEY_BYTES, mac, mac_is};
use crate::lock::{Lock, check_costs};
use crate::slot::{SLOTS_MAX, Slot};
use aws_lc_rs::digest;
use std::io::{ErrorKind, Read};

/// The first bytes of every file. The first is no ASCII, the last a line end, so that text conversions are noticed.
pub const MAGIC: [u8; 8] = *b"\x89BYWASH\n";
/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;
/// Bytes before the slots.
pub const PREFIX_BYTES: usize = 52;
/// Where in it the salt is.
pub(crate) const SALT: core::ops::Range<usize> = 20..52;
/// Check sum and MAC after the slots.
const TAIL_BYTES: usize = CHECK_BYTES + KEY_BYTES;
const CHECK_BYTES: usize = 8;
/// Longest header in bytes; a reader refuses more before it makes room.
pub const HEADER_BYTES_MAX: usize = 1 << 16;

/// A file's header, its form checked; that it is authentic only a key can say ([`Header::is_authentic`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    aead: Aead,
    chunk_size: usize,
    salt: [u8; KEY_BYTES],
    slots: Vec<Slot>,
    /// As it stands in the file.
    bytes: Vec<u8>,
}

impl Header {
    /// A new header, ready to be written.
    ///
    /// # Errors
    /// [`Error::BadKey`] without a slot or with too many, or for a chunk size that is no power of two from 4 KiB to 1 MiB.
    pub fn new(aead: Aead, chunk_size: usize, slots: Vec<Slot>, keys: &FileKeys) -> Result<Self> {
        if !chunk_size.is_power_of_two() || !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_size) {
            let what = format!("a chunk size is a power of two from {CHUNK_BYTES_MIN} to {CHUNK_BYTES_MAX}, not {chunk_size}");
            return Err(Error::BadKey { what });
        }
        let len = PREFIX_BYTES + slots.iter().map(Slot::encoded_len).sum::<usize>() + TAIL_BYTES;
        if slots.is_empty() || slots.len() > SLOTS_MAX || len > HEADER_BYTES_MAX {
            let what =
                format!("a file has 1 to {SLOTS_MAX} slots in {HEADER_BYTES_MAX} bytes, not {} in {len}: name fewer keys", slots.len());
            return Err(Error::BadKey { what });
        }
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&aead.number().to_le_bytes());
        bytes.extend_from_slice(&[chunk_size.trailing_zeros() as u8, slots.len() as u8, 0, 0]);
        bytes.extend_from_slice(&(len as u32).to_le_bytes());
        bytes.extend_from_slice(&keys.salt);
        slots.iter().for_each(|slot| slot.write(&mut bytes));
        bytes.extend_from_slice(&check_sum(&bytes));
        bytes.extend_from_slice(&mac(&keys.header, &[&bytes]));
        Ok(Self { aead, chunk_size, salt: keys.salt, slots, bytes })
    }

    /// A header of the same file with other slots: those at `removed` go, and the locks' come where the first of them was, or behind the others. Keys, salt and chunks stay what they are, so
    /// whoever has the file key, or an older header and what opened it, goes on opening the file.
    ///
    /// # Errors
    /// As [`new`](Self::new), such as if no slot would be left; [`Error::BadKey`] for a slot that is not there, and if the passphrases together cost more than a reader computes.
    pub fn with_slots(&self, keys: &FileKeys, removed: &[usize], locks: &[&Lock]) -> Result<Self> {
        if let Some(absent) = removed.iter().find(|at| **at >= self.slots.len()) {
            let what = format!("it has no slot {}: it has {} (`bywash info` lists them)", absent + 1, self.slots.len());
            return Err(Error::BadKey { what });
        }
        let kept = |at: usize| (!removed.contains(&at)).then(|| self.slots[at].clone());
        let place = removed.iter().min().copied().unwrap_or(self.slots.len());
        let mut slots: Vec<_> = (0..place).filter_map(kept).collect();
        let behind: Vec<_> = (place..self.slots.len()).filter_map(kept).collect();
        for lock in locks {
            let slot = lock.slot(keys)?;
            // A key file's is the same each time.
            if !slots.contains(&slot) && !behind.contains(&slot) {
                slots.push(slot);
            }
        }
        slots.extend(behind);
        if slots.is_empty() {
            return Err(Error::BadKey { what: "nobody could open it: no slot would be left".into() });
        }
        check_costs(&slots)?;
        Self::new(self.aead, self.chunk_size, slots, keys)
    }

    /// Reads one from where `reader` stands, and no byte more.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse); the reader's.
    pub fn read(mut reader: impl Read) -> Result<Self> {
        let mut bytes = vec![0; PREFIX_BYTES];
        let got = read_up_to(&mut reader, &mut bytes)?;
        let len = header_len(&bytes[..got])?;
        bytes.resize(len, 0);
        let more = read_up_to(&mut reader, &mut bytes[PREFIX_BYTES..])?;
        bytes.truncate(PREFIX_BYTES + more);
        Self::parse(&bytes)
    }

    /// Parses the header that `bytes` begin with.
    ///
    /// # Errors
    /// [`Error::NotEncrypted`], [`Error::Armored`], [`Error::UnknownVersion`], [`Error::UnknownAead`], [`Error::Truncated`], [`Error::DamagedHeader`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let len = header_len(bytes)?;
        let bytes = bytes.get(..len).ok_or_else(|| Error::Truncated { place: format!("in its header of {len} bytes") })?;
        let (checked, tail) = bytes.split_at(len - TAIL_BYTES);
        if check_sum(checked) != tail[..CHECK_BYTES] {
            return Err(Error::DamagedHeader { what: "its check sum is another's" });
        }
        let number = u16::from_le_bytes([bytes[10], bytes[11]]);
        let aead = Aead::from_number(number).ok_or(Error::UnknownAead { number })?;
        let chunk_size = 1usize.checked_shl(u32::from(bytes[12])).unwrap_or(0);
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_size) {
            return Err(Error::DamagedHeader { what: "the chunk size is not from 4 KiB to 1 MiB" });
        }
        if bytes[14..16] != [0, 0] {
            return Err(Error::DamagedHeader { what: "flags are set that this version does not have" });
        }
        let mut salt = [0; KEY_BYTES];
        salt.copy_from_slice(&bytes[SALT]);
        let slots = read_slots(&checked[PREFIX_BYTES..], bytes[13])?;
        Ok(Self { aead, chunk_size, salt, slots, bytes: bytes.to_vec() })
    }

    /// Whether it is as it was written by somebody who had the file's key.
    pub fn is_authentic(&self, keys: &FileKeys) -> bool {
        let (signed, mac) = self.bytes.split_at(self.bytes.len() - KEY_BYTES);
        mac_is(&keys.header, &[signed], mac)
    }

    /// As it stands in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the chunks are sealed with.
    pub fn aead(&self) -> Aead {
        self.aead
    }

    /// The file's salt, which is also its identity: 32 random bytes.
    pub fn salt(&self) -> &[u8; KEY_BYTES] {
        &self.salt
    }

    /// The ways to open it.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Where the chunks lie.
    pub fn geometry(&self) -> Geometry {
        Geometry::new(self.bytes.len(), self.chunk_size)
    }
}

/// Checks the first bytes as far as they are needed to know how long the header is.
fn header_len(bytes: &[u8]) -> Result<usize> {
    if !bytes.starts_with(&MAGIC) {
        return Err(if is_armored(bytes) { Error::Armored } else { Error::NotEncrypted });
    }
    if bytes.len() < PREFIX_BYTES {
        return Err(Error::Truncated { place: format!("in its header, of which {} bytes are left", bytes.len()) });
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if version != VERSION {
        return Err(Error::UnknownVersion { version });
    }
    let len = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) as usize;
    if !(PREFIX_BYTES + TAIL_BYTES..=HEADER_BYTES_MAX).contains(&len) {
        return Err(Error::DamagedHeader { what: "its length cannot be" });
    }
    Ok(len)
}

fn read_slots(mut bytes: &[u8], count: u8) -> Result<Vec<Slot>> {
    let damaged = Error::DamagedHeader { what: "its slots do not fill it" };
    if count == 0 || usize::from(count) > SLOTS_MAX {
        return Err(damaged);
    }
    match (0..count).map(|_| Slot::read(&mut bytes)).collect::<Option<Vec<_>>>() {
        Some(slots) if bytes.is_empty() => Ok(slots),
        _ => Err(damaged),
    }
}

/// The first 8 bytes of SHA-256: tells damage from a wrong key, nothing more.
fn check_sum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut sum = [0; CHECK_BYTES];
    sum.copy_from_slice(&digest::digest(&digest::SHA256, bytes).as_ref()[..CHECK_BYTES]);
    sum
}

/// Reads until the buffer is full or there is no more; how much came.
pub(crate) fn read_up_to(mut reader: impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotKind;

    fn header() -> (Header, FileKeys) {
        let keys = FileKeys::new((&[5; 32]).into(), [4; 32]).unwrap();
        let slot = Slot::wrap(SlotKind::KeyFile, vec![], &[3; 32], &keys.salt, keys.file_key()).unwrap();
        (Header::new(Aead::Aegis256, 1 << 12, vec![slot.clone(), slot], &keys).unwrap(), keys)
    }

    #[test]
    fn headers_round_trip() {
        let (header, keys) = header();
        let longer = [header.bytes(), b"chunks"].concat();
        let mut reader = &longer[..];
        let read = Header::read(&mut reader).unwrap();
        assert_eq!((reader, &read), (&b"chunks"[..], &header));
        assert!(read.is_authentic(&keys));
    }

    /// A changed byte is an error of the right kind; what the check sum is made to fit, the MAC refuses.
    #[test]
    fn every_changed_byte_is_noticed() {
        let (header, keys) = header();
        for at in 0..header.bytes().len() {
            let mut bytes = header.bytes().to_vec();
            bytes[at] ^= 1;
            let mac_at = bytes.len() - KEY_BYTES;
            match Header::parse(&bytes) {
                Err(Error::NotEncrypted) => assert!(at < 8),
                Err(Error::UnknownVersion { version }) => assert!((8..10).contains(&at) && version != VERSION),
                Err(Error::DamagedHeader { .. } | Error::Truncated { .. }) => assert!((10..mac_at).contains(&at)),
                Ok(parsed) => assert!(at >= mac_at && !parsed.is_authentic(&keys)),
                Err(other) => panic!("{at}: {other}"),
            }
            if (PREFIX_BYTES..mac_at - CHECK_BYTES).contains(&at) || (20..PREFIX_BYTES).contains(&at) {
                let sum = check_sum(&bytes[..mac_at - CHECK_BYTES]);
                bytes[mac_at - CHECK_BYTES..mac_at].copy_from_slice(&sum);
                assert!(Header::parse(&bytes).map_or(true, |parsed| !parsed.is_authentic(&keys)), "{at}");
            }
        }
    }

    #[test]
    fn a_header_cut_anywhere_is_truncated() {
        let (header, _) = header();
        for len in 0..header.bytes().len() {
            let error = Header::read(&header.bytes()[..len]).unwrap_err();
            assert!(matches!(error, Error::Truncated { .. }) || (len < 8 && matches!(error, Error::NotEncrypted)), "{len}: {error}");
        }
    }

    #[test]
    fn headers_that_cannot_be_are_not_made() {
        let (header, keys) = header();
        let slots = |count| vec![header.slots()[0].clone(); count];
        assert!(Header::new(Aead::Aes256Gcm, 4095, slots(1), &keys).is_err());
        assert!(Header::new(Aead::Aes256Gcm, 1 << 21, slots(1), &keys).is_err());
        assert!(Header::new(Aead::Aes256Gcm, 1 << 16, slots(0), &keys).is_err());
        assert!(Header::new(Aead::Aes256Gcm, 1 << 16, slots(SLOTS_MAX + 1), &keys).is_err());
        assert!(Header::new(Aead::Aes256Gcm, 1 << 16, slots(SLOTS_MAX), &keys).is_ok());
    }
}
