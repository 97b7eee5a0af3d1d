//! The journal: what makes a rewritten chunk old or new after a power cut, never torn.
//!
//! Two records of fixed length, A and B in turn, say how long the text is, and in which area the chunks are that are to stand in the file, sealed exactly as they go there. A batch
//! of chunks goes behind those of the batches before, and its record speaks of all of them, until the file was synced: then an area begins anew, in another place. A record counts if its MAC
//! and that of its area are right; of two that count, the later. So while one is written the one before stays whole. FORMAT.md argues this step by step.

use crate::disk::{Access, Disk, Journals};
use crate::error::{Error, Result};
use crate::geometry::{Geometry, OVERHEAD};
use crate::header::Header;
use crate::kdf::{FileKeys, KEY_BYTES, Mac, mac, mac_is};
use core::ops::Range;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"\x89BYWJRN\n";
/// Bytes of a record.
const RECORD_BYTES: usize = 5 * 8 + KEY_BYTES + KEY_BYTES;
/// Where records A and B begin, and where areas may: each on a page of its own, so that writing one does not tear another.
const RECORDS_AT: [u64; 2] = [0, 4096];
const AREAS_AT: u64 = 8192;
/// Areas, and batches in them, begin at multiples of this, so that writing one does not tear another.
const PAGE_BYTES: u64 = 4096;
/// Before an entry: the number of its chunk and its length.
const HEAD_BYTES: usize = 16;
/// In place of a chunk's number: what follows fills a page. No chunk has it.
const FILLER: u64 = u64::MAX;

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
    number: u64,
    /// Length of the text.
    pub(crate) len: u64,
    record: [u8; RECORD_BYTES],
    start: u64,
    area: Vec<u8>,
    /// Where in the area the chunks are.
    chunks: Vec<(u64, Range<usize>)>,
}

impl Recovered {
    /// Its chunks, as they are to stand in the file.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.chunks.iter().map(|(chunk, range)| (*chunk, &self.area[range.clone()]))
    }

    /// Returns when the journal says so after a power cut too. What was read may be in memory alone, if its writer died and the machine did not; and where a sync has failed another does not write what
    /// that one did not: all of it is written once more.
    pub(crate) fn make_durable(&self, disk: &dyn Disk) -> io::Result<()> {
        if !self.area.is_empty() {
            disk.write_at(&self.area, self.start)?;
        }
        disk.write_at(&self.record, record_at(self.number))?;
        disk.sync()
    }
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

    /// Makes it end where a page does.
    fn fill_page(&mut self) {
        let page = PAGE_BYTES as usize;
        if self.bytes.len().is_multiple_of(page) {
            return;
        }
        let end = (self.bytes.len() + HEAD_BYTES).next_multiple_of(page);
        let rest = end - self.bytes.len() - HEAD_BYTES;
        self.bytes.extend_from_slice(&FILLER.to_le_bytes());
        self.bytes.extend_from_slice(&(rest as u64).to_le_bytes());
        self.bytes.resize(end, 0);
    }

    /// Its chunks, as they go into the file.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.chunks.iter().map(|(chunk, range)| (*chunk, &self.bytes[range.clone()]))
    }
}

/// A journal that is being written.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    /// Number of the latest record.
    number: u64,
    /// Where that record's chunks are.
    area: Range<u64>,
    /// Of what is in the area.
    mac: Box<Mac>,
    /// Whether the file has for good what is in the area: the next batch begins another one.
    is_settled: bool,
    /// Whether a record may be there whose writing failed.
    is_uncertain: bool,
}

impl Journal {
    /// Writes the first record on an empty disk, which says how long the text is now.
    pub(crate) fn begin(disk: Arc<dyn Disk>, keys: &FileKeys, len: u64) -> Result<Self> {
        let area = AREAS_AT..AREAS_AT;
        let mut journal = Self { disk, number: 0, area, mac: area_mac(keys), is_settled: true, is_uncertain: false };
        journal.write(keys, len, &mut Batch::new())?;
        Ok(journal)
    }

    /// Whether a batch would make the area larger than that; a first batch may.
    pub(crate) fn is_full(&self, batch: &Batch, most: u64) -> bool {
        !self.is_settled && !self.area.is_empty() && self.area.end - self.area.start + batch.bytes.len() as u64 > most
    }

    /// Whether the latest record speaks of no chunk.
    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Whether a record may be there whose writing failed: nothing may be changed that it could speak of.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// The file was synced since the last batch was written into it.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// Writes a batch and the record for it and those before, which counts from when the journal is synced. After an error it may be written again.
    pub(crate) fn write(&mut self, keys: &FileKeys, len: u64, batch: &mut Batch) -> Result<()> {
        batch.fill_page();
        let size = batch.bytes.len() as u64;
        let (start, at, mut mac) = match self.is_settled {
            // The area of the record before stays as it is.
            true if AREAS_AT + size <= self.area.start => (AREAS_AT, AREAS_AT, area_mac(keys)),
            true => (self.area.end, self.area.end, area_mac(keys)),
            false => (self.area.start, self.area.end, self.mac.clone()),
        };
        if size > 0 {
            self.disk.write_at(&batch.bytes, at)?;
        }
        mac.update(&batch.bytes);
        let (number, area) = (self.number + 1, start..at + size);
        let mut record = Vec::with_capacity(RECORD_BYTES);
        record.extend_from_slice(&MAGIC);
        for value in [number, len, area.start, area.end - area.start] {
            record.extend_from_slice(&value.to_le_bytes());
        }
        record.extend_from_slice(&mac.value());
        record.extend_from_slice(&self::mac(&keys.journal, &[b"record", &record]));
        // One that finds no room is not there.
        let written = self.disk.write_at(&record, record_at(number));
        self.is_uncertain = written.as_ref().is_err_and(|error| !is_full(error));
        written?;
        (self.number, self.area, self.mac, self.is_settled) = (number, area, mac, false);
        Ok(())
    }

    /// Returns when the latest record counts.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
}

/// Whether there was no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Where the record of that number is.
fn record_at(number: u64) -> u64 {
    RECORDS_AT[(number % 2) as usize]
}

/// The MAC of an area, of which nothing came yet.
fn area_mac(keys: &FileKeys) -> Box<Mac> {
    let mut mac = Box::new(Mac::new(&keys.journal));
    mac.update(b"chunks");
    mac
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
            latest = Some(Recovered { number, len, record, start, area: bytes, chunks });
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

/// Where in an area its chunks are, of each the last; nothing if it contradicts itself or the length of the text.
fn split(area: &[u8], len: u64, geometry: &Geometry) -> Option<Vec<(u64, Range<usize>)>> {
    let (mut chunks, mut at) = (BTreeMap::new(), 0);
    while at < area.len() {
        let (head, rest) = area[at..].split_at_checked(HEAD_BYTES)?;
        let (chunk, stored_len) = (word(head, 0), usize::try_from(word(head, 8)).ok()?);
        rest.get(..stored_len)?;
        at += HEAD_BYTES + stored_len;
        if chunk != FILLER {
            chunks.insert(chunk, at - stored_len..at);
        }
    }
    let is_right = |chunk: &u64, stored: &Range<usize>| {
        *chunk <= geometry.last_chunk(len) && stored.len() == OVERHEAD + geometry.text_len(*chunk, len)
    };
    chunks.iter().all(|(chunk, stored)| is_right(chunk, stored)).then(|| chunks.into_iter().collect())
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
        Journal::begin(disk.clone(), &keys, 4000).unwrap();
        assert_eq!(read(&*disk, &keys, &geometry).unwrap().unwrap().len, 4000);
        disk.write_at(&[7], 4096 + 20).unwrap();
        let error = read(&*disk, &keys, &geometry).unwrap_err().to_string();
        assert!(error.contains("no record is whole"), "{error}");
    }

    fn batch(chunks: &[(u64, usize, u8)]) -> Batch {
        let mut batch = Batch::new();
        for &(chunk, text_len, fill) in chunks {
            let fill = |stored: &mut [u8]| {
                stored.fill(fill);
                Ok(())
            };
            batch.push(chunk, OVERHEAD + text_len, fill).unwrap();
        }
        batch
    }

    fn setting() -> (FileKeys, Geometry, Arc<dyn Disk>, Journal) {
        let keys = FileKeys::new((&[1; KEY_BYTES]).into(), [2; KEY_BYTES]).unwrap();
        let disk = World::new(b"").open("journal");
        let journal = Journal::begin(disk.clone(), &keys, 5000).unwrap();
        (keys, Geometry::new(144, 4096), disk, journal)
    }

    fn fills(recovered: &Recovered) -> Vec<(u64, usize, u8)> {
        recovered.chunks().map(|(chunk, stored)| (chunk, stored.len() - OVERHEAD, stored[0])).collect()
    }

    #[test]
    fn an_area_goes_on_on_a_page_of_its_own_and_of_each_chunk_the_last_counts() {
        let (keys, geometry, disk, mut journal) = setting();
        journal.write(&keys, 5000, &mut batch(&[(0, 4096, 3), (1, 904, 4)])).unwrap();
        let first = journal.area.clone();
        assert_eq!((first.start, first.end), (8192, 8192 + 2 * 4096));
        let mut before = vec![0; 4096 * 2];
        disk.read_at(&mut before, first.start).unwrap();
        journal.write(&keys, 6000, &mut batch(&[(1, 1904, 5)])).unwrap();
        assert_eq!(journal.area, first.start..first.end + 4096);
        let mut after = before.clone();
        disk.read_at(&mut after, first.start).unwrap();
        assert!(before == after, "a record that counts speaks of it");
        let recovered = read(&*disk, &keys, &geometry).unwrap().unwrap();
        assert_eq!((recovered.number, recovered.len, fills(&recovered)), (3, 6000, vec![(0, 4096, 3), (1, 1904, 5)]));
        // Without the record of the second, the first counts.
        disk.write_at(&[0], RECORDS_AT[1]).unwrap();
        let recovered = read(&*disk, &keys, &geometry).unwrap().unwrap();
        assert_eq!((recovered.number, recovered.len, fills(&recovered)), (2, 5000, vec![(0, 4096, 3), (1, 904, 4)]));
    }

    #[test]
    fn a_new_area_leaves_the_one_before_and_comes_back_to_the_beginning() {
        let (keys, geometry, disk, mut journal) = setting();
        let mut begun = Vec::new();
        for fill in 1..=4 {
            let before = journal.area.clone();
            journal.settle();
            journal.write(&keys, 5000, &mut batch(&[(1, 904, fill)])).unwrap();
            assert!(journal.area.end <= before.start || journal.area.start >= before.end);
            assert_eq!(fills(&read(&*disk, &keys, &geometry).unwrap().unwrap()), [(1, 904, fill)]);
            begun.push(journal.area.start);
        }
        assert_eq!(begun, [8192, 12288, 8192, 12288]);
    }

    #[test]
    fn an_area_that_contradicts_the_length_is_refused() {
        for chunks in [&[(2, 904, 1)][..], &[(1, 903, 1)], &[(1, 904, 1), (1, 905, 2)], &[(0, 4095, 1)]] {
            let (keys, geometry, disk, mut journal) = setting();
            journal.write(&keys, 5000, &mut batch(chunks)).unwrap();
            let error = read(&*disk, &keys, &geometry).unwrap_err().to_string();
            assert!(error.contains("contradicts itself"), "{error}");
        }
    }
}
