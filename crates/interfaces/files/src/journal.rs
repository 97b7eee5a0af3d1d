//! The journal: what makes a rewritten chunk old or new after a power cut, never torn.
//!
//! Two records of fixed length, A and B in turn, say how long the text is, and which chunks are to stand in the file; those, sealed exactly as they go there,
//! follow in areas that do not overlap. A record counts if its MAC and that of its area are right; of two that count, the later. So while one is written the one before
//! stays whole. FORMAT.md argues this step by step.

use crate::disk::{Access, Disk, Journals};
use crate::error::{Error, Result};
use crate::geometry::{Geometry, OVERHEAD};
use crate::header::Header;
use crate::kdf::{FileKeys, KEY_BYTES, mac, mac_is};
use core::ops::Range;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"\x89BYWJRN\n";
/// Bytes of a record.
const RECORD_BYTES: usize = 5 * 8 + KEY_BYTES + KEY_BYTES;
/// Where records A and B begin, and where areas may: each on a page of its own, so that writing one does not tear another.
const RECORDS_AT: [u64; 2] = [0, 4096];
const AREAS_AT: u64 = 8192;
/// Areas begin at multiples of this.
const PAGE_BYTES: u64 = 4096;

/// A file's journal, if it has one that is no other's: not that of a copy which somebody has open, and none of which nobody could tell whose it is.
pub(crate) fn of(header: &Header, journals: &dyn Journals, access: Access) -> Result<Option<Arc<dyn Disk>>> {
    let journal = journals.find(header.salt())?;
    if let Some(journal) = &journal {
        journal.lock(access)?;
        let owners = journals.owners(header.salt())?;
        if owners.len() > 1 {
            return Err(Error::WhoseJournal { owners: owners.iter().map(|path| path.display().to_string()).collect() });
        }
    }
    Ok(journal)
}

/// What a journal says of its file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Number of the record.
    pub(crate) number: u64,
    /// Length of the text.
    pub(crate) len: u64,
    /// Chunks as they are to stand in the file.
    pub(crate) chunks: Vec<(u64, Vec<u8>)>,
}

/// A batch of sealed chunks on its way into the journal.
pub(crate) struct Batch {
    bytes: Vec<u8>,
    chunks: Vec<(u64, Range<usize>)>,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), chunks: Vec::new() }
    }

    /// Adds a chunk; `fill` seals it in the room given.
    pub(crate) fn push(&mut self, chunk: u64, stored_len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        self.bytes.extend_from_slice(&chunk.to_le_bytes());
        self.bytes.extend_from_slice(&(stored_len as u64).to_le_bytes());
        let at = self.bytes.len();
        self.bytes.resize(at + stored_len, 0);
        self.chunks.push((chunk, at..at + stored_len));
        fill(&mut self.bytes[at..])
    }

    /// Its chunks, as they go into the file.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.chunks.iter().map(|(chunk, range)| (*chunk, &self.bytes[range.clone()]))
    }
}

/// Writes a batch and the record for it, which counts from when the disk is synced. After an error it may be written again. `previous` is the area of the record
/// before, which stays as it is; returned is the new one's.
pub(crate) fn write(disk: &dyn Disk, keys: &FileKeys, number: u64, len: u64, batch: &Batch, previous: &Range<u64>) -> Result<Range<u64>> {
    let size = batch.bytes.len() as u64;
    let start = if AREAS_AT + size <= previous.start { AREAS_AT } else { previous.end.next_multiple_of(PAGE_BYTES).max(AREAS_AT) };
    if size > 0 {
        disk.write_at(&batch.bytes, start)?;
    }
    let mut record = Vec::with_capacity(RECORD_BYTES);
    record.extend_from_slice(&MAGIC);
    for value in [number, len, start, size] {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record.extend_from_slice(&mac(&keys.journal, &[b"chunks", &batch.bytes]));
    record.extend_from_slice(&mac(&keys.journal, &[b"record", &record]));
    disk.write_at(&record, RECORDS_AT[(number % 2) as usize])?;
    Ok(start..start + size)
}

/// What a journal says; nothing if it has no record yet, which is so before its first was synced.
///
/// # Errors
/// [`Error::DamagedHeader`] if there is something in it and no record counts: what it was to keep may be in no other place, so nobody may go on without it.
pub(crate) fn read(disk: &dyn Disk, keys: &FileKeys, geometry: &Geometry) -> Result<Option<Recovered>> {
    let mut latest: Option<Recovered> = None;
    let disk_len = disk.len()?;
    for offset in RECORDS_AT {
        let mut record = [0; RECORD_BYTES];
        if disk.read_at(&mut record, offset)? < RECORD_BYTES || !is_valid(&record, keys) {
            continue;
        }
        let [number, len, start, size] = [8, 16, 24, 32].map(|at| word(&record, at));
        if latest.as_ref().is_some_and(|known| known.number > number) {
            continue;
        }
        // More was never written; room for it is only made for a record whose MAC is right.
        if size > 0 && start.checked_add(size).is_none_or(|end| end > disk_len) {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let is_whole = size == 0 || disk.read_at(&mut bytes, start)? as u64 == size;
        if is_whole && mac_is(&keys.journal, &[b"chunks", &bytes], &record[40..40 + KEY_BYTES]) {
            let chunks =
                split(&bytes, len, geometry).ok_or(Error::DamagedHeader { what: "its journal is authentic and contradicts itself" })?;
            latest = Some(Recovered { number, len, chunks });
        }
    }
    if latest.is_none() && !is_unused(disk)? {
        let what =
            "it has a journal in which no record is whole; if the file is good without (look with a copy of it), move the journal away";
        return Err(Error::DamagedHeader { what });
    }
    Ok(latest)
}

/// Whether nothing but the first record was ever written, and that not for good: its room is zeros, or not there.
fn is_unused(disk: &dyn Disk) -> Result<bool> {
    let mut bytes = vec![0; AREAS_AT as usize];
    let end = RECORDS_AT[1] as usize + RECORD_BYTES;
    let got = disk.read_at(&mut bytes, 0)?;
    Ok(got <= end && bytes.iter().all(|byte| *byte == 0))
}

fn is_valid(record: &[u8; RECORD_BYTES], keys: &FileKeys) -> bool {
    let (signed, mac) = record.split_at(RECORD_BYTES - KEY_BYTES);
    record.starts_with(&MAGIC) && mac_is(&keys.journal, &[b"record", signed], mac)
}

fn word(record: &[u8], at: usize) -> u64 {
    record[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn split(mut bytes: &[u8], len: u64, geometry: &Geometry) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(16)?;
        let (chunk, stored_len) = (word(head, 0), usize::try_from(word(head, 8)).ok()?);
        let (stored, rest) = rest.split_at_checked(stored_len)?;
        if chunk > geometry.last_chunk(len) || stored_len != OVERHEAD + geometry.text_len(chunk, len) {
            return None;
        }
        chunks.push((chunk, stored.to_vec()));
        bytes = rest;
    }
    Some(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::World;

    #[test]
    fn a_journal_without_a_whole_record_is_refused_unless_it_was_never_used() {
        let keys = FileKeys::new((&[1; KEY_BYTES]).into(), [2; KEY_BYTES]).unwrap();
        let geometry = Geometry::new(144, 4096);
        let world = World::new(b"");
        let disk = world.open("journal");
        assert_eq!(read(&*disk, &keys, &geometry).unwrap(), None);
        disk.set_len(4096 + RECORD_BYTES as u64).unwrap();
        assert_eq!(read(&*disk, &keys, &geometry).unwrap(), None);
        write(&*disk, &keys, 1, 4000, &Batch::new(), &(0..0)).unwrap();
        assert_eq!(read(&*disk, &keys, &geometry).unwrap().unwrap().len, 4000);
        disk.write_at(&[7], 4096 + 20).unwrap();
        let error = read(&*disk, &keys, &geometry).unwrap_err().to_string();
        assert!(error.contains("no record is whole"), "{error}");
    }
}
