//! Batches: how what is gathered becomes the file's content, by its journal. FORMAT.md, "Writing in place", argues the order of the steps.

use super::{Container, State, Unsynced};
use crate::error::{Error, Result};
use crate::geometry::OVERHEAD;
use crate::journal::{Batch, Journal, is_full};
use crate::sealer::Place;

/// Of the bytes that the journal may have, this part of a batch may be appended chunks, which could be written where they belong: more would be written twice to save a sync that takes less.
const APPENDED_SHARE: u64 = 8;

impl Container {
    /// Writes full chunks beyond the committed end, which no journal need hold: before the next record counts, nobody looks there.
    pub(super) fn write_appended(&self, state: &mut State) -> Result<()> {
        let (first, last) = (self.first_free(state), self.geometry.last_chunk(state.len));
        if first >= last || state.gathered.range(first..last).next().is_none() {
            return Ok(());
        }
        if state.committed.is_some() {
            self.ensure_journal(state)?;
        }
        self.write_gathered(state, first..last)
    }

    /// Writes the last chunk where it belongs.
    fn write_last(&self, chunk: u64, text: &[u8]) -> Result<()> {
        Self::with_stored(text.len(), |stored| {
            self.sealer.seal_from(chunk, Place::Last, text, stored)?;
            Ok(self.disk.write_at(stored, self.geometry.offset(chunk))?)
        })
    }

    /// A journal whose record says how long the file is now: from here on what lies behind that can be told from what belongs to it.
    fn ensure_journal(&self, state: &mut State) -> Result<()> {
        if state.journal.is_some() {
            return Ok(());
        }
        let Some(journals) = &self.journals else { return Err(Error::ReadOnly) };
        // What was written before must be there before a record says so.
        self.sync_disk(state)?;
        // One that could not be begun and not be removed.
        self.drop_journal(state)?;
        let salt = &self.sealer.keys().salt;
        let disk = journals.create(salt)?;
        let begun = Journal::begin(disk.clone(), self.sealer.keys(), state.committed.unwrap_or_default());
        // While it is locked, so that it is nobody else's yet.
        state.has_journal = begun.is_ok() || journals.remove(salt).is_err();
        drop(disk);
        let journal = begun?;
        Self::poisoned(state, journal.sync())?;
        state.journal = Some(journal);
        Ok(())
    }

    /// Makes what is gathered the file's content: a batch.
    pub(super) fn commit(&self, state: &mut State) -> Result<()> {
        if state.gathered.is_empty() && Some(state.len) == state.committed {
            return Ok(());
        }
        let new_last = self.geometry.last_chunk(state.len);
        let Some(old_last) = state.committed.map(|len| self.geometry.last_chunk(len)) else { return self.complete(state, new_last) };
        // What was the last chunk and is not, and the other way round, is sealed anew.
        if old_last != new_last {
            for chunk in [old_last.min(new_last), new_last] {
                if !state.gathered.contains_key(&chunk) {
                    let text = self.load(state, chunk)?;
                    state.gathered.insert(chunk, text);
                }
            }
        }
        self.ensure_journal(state)?;
        if new_last < old_last {
            // What the journal has of chunks that go must not come back if others take their place.
            self.sync_disk(state)?;
        }
        // A few chunks that are appended go into the journal with the others: that saves a sync.
        let appended = new_last.saturating_sub(old_last).saturating_mul(self.geometry.stored_size() as u64);
        let is_in_journal = state.unsynced < Unsynced::Written && appended <= self.journaled_max / APPENDED_SHARE;
        if !is_in_journal {
            self.write_appended(state)?;
            if new_last > old_last
                && let Some(text) = state.gathered.get(&new_last)
            {
                self.write_last(new_last, text)?;
                state.unsynced = Unsynced::Written;
            }
            // What was appended counts only when it is there.
            self.sync_disk(state)?;
        }
        let mut batch = Batch::new();
        for (&chunk, text) in state.gathered.range(..=if is_in_journal { new_last } else { old_last }) {
            let place = Place::last_if(chunk == new_last);
            batch.push(chunk, text.len() + OVERHEAD, |stored| self.sealer.seal_from(chunk, place, text, stored))?;
        }
        self.write_beyond(state, &batch)?;
        self.write_batch(state, &mut batch)?;
        self.apply(state, &batch)
    }

    /// Writes what of a batch lies behind the committed end, where nobody looks yet: that there is no room for it must be known before the batch counts.
    fn write_beyond(&self, state: &State, batch: &Batch) -> Result<()> {
        let end = self.committed_end(state);
        for (chunk, stored) in batch.chunks() {
            let (within, beyond) = self.split_at_end(chunk, stored, end);
            if !beyond.is_empty() {
                self.disk.write_at(beyond, self.geometry.offset(chunk) + within.len() as u64)?;
            }
        }
        Ok(())
    }

    /// What of a stored chunk lies before an end of the file, and behind it.
    fn split_at_end<'a>(&self, chunk: u64, stored: &'a [u8], end: u64) -> (&'a [u8], &'a [u8]) {
        let within = end.saturating_sub(self.geometry.offset(chunk)).min(stored.len() as u64);
        stored.split_at(within as usize)
    }

    /// Where the file ends by the latest record.
    fn committed_end(&self, state: &State) -> u64 {
        state.committed.map_or(0, |len| self.geometry.file_len(len))
    }

    /// Cuts off what was written behind the committed end by what failed then.
    pub(super) fn cut_tail(&self, state: &mut State) -> Result<()> {
        self.cut_behind(state, self.committed_end(state))
    }

    /// Cuts the file off at an end, if it is longer.
    pub(super) fn cut_behind(&self, state: &mut State, end: u64) -> Result<()> {
        if self.disk.len()? > end {
            let cut = self.disk.set_len(end);
            Self::poisoned(state, cut)?;
            state.unsynced = Unsynced::Written;
        }
        Ok(())
    }

    /// Writes a batch into the journal; when this returns it counts.
    fn write_batch(&self, state: &mut State, batch: &mut Batch) -> Result<()> {
        if state.journal.as_ref().is_some_and(|journal| journal.is_full(batch, self.journaled_max)) {
            self.sync_disk(state)?;
        }
        let outcome = self.write_record(state, state.len, batch);
        let has_no_room = matches!(&outcome, Err(Error::Io(error)) if is_full(error));
        if !has_no_room || state.poison.is_some() || state.journal.as_ref().is_none_or(Journal::is_empty) {
            return outcome;
        }
        // There is the room of the batches before. A record without any makes it free.
        self.sync_disk(state)?;
        self.write_record(state, state.committed.unwrap_or_default(), &mut Batch::new())?;
        self.write_record(state, state.len, batch)
    }

    /// Writes a batch and the record for it into the journal.
    fn write_record(&self, state: &mut State, len: u64, batch: &mut Batch) -> Result<()> {
        let Some(journal) = &mut state.journal else { return Err(Error::ReadOnly) };
        let written = journal.write(self.sealer.keys(), len, batch);
        if let (Err(error), true) = (&written, journal.is_uncertain()) {
            state.poison = Some(error.to_string());
        }
        written?;
        let synced = journal.sync();
        Self::poisoned(state, synced)
    }

    /// Writes the rest of a new file, of which no journal need know anything.
    fn complete(&self, state: &mut State, last: u64) -> Result<()> {
        self.write_appended(state)?;
        let text = self.load(state, last)?;
        self.write_last(last, &text)?;
        state.unsynced = Unsynced::Written;
        state.written = state.written.max(last + 1);
        self.end_at(state)
    }

    /// Writes a batch that the journal holds into the file; what of it lies behind the committed end is there.
    fn apply(&self, state: &mut State, batch: &Batch) -> Result<()> {
        state.unsynced = state.unsynced.max(Unsynced::Journaled);
        let end = self.committed_end(state);
        for (chunk, stored) in batch.chunks() {
            let (within, _) = self.split_at_end(chunk, stored, end);
            let written = if within.is_empty() { Ok(()) } else { self.disk.write_at(within, self.geometry.offset(chunk)) };
            Self::poisoned(state, written)?;
        }
        self.end_at(state)
    }

    /// Ends the file where its text ends; what was gathered is then in it.
    fn end_at(&self, state: &mut State) -> Result<()> {
        let file_len = self.geometry.file_len(state.len);
        let cut = self.disk.len().and_then(|len| if len == file_len { Ok(()) } else { self.disk.set_len(file_len) });
        Self::poisoned(state, cut)?;
        state.gathered.clear();
        state.committed = Some(state.len);
        Ok(())
    }

    /// All that was written survives a power cut from here on.
    pub(super) fn make_durable(&self, state: &mut State) -> Result<()> {
        self.commit(state)?;
        if state.unsynced == Unsynced::Written {
            self.sync_disk(state)?;
        }
        state.is_newborn = false;
        Ok(())
    }

    /// The file has for good what was written to it, and needs nothing of the journal.
    pub(super) fn sync_disk(&self, state: &mut State) -> Result<()> {
        if state.unsynced > Unsynced::Nothing {
            Self::poisoned(state, self.disk.sync())?;
            state.unsynced = Unsynced::Nothing;
            state.journal.iter_mut().for_each(Journal::settle);
        }
        Ok(())
    }
}
