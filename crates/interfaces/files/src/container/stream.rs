//! Long runs of chunks: sealed one after the other into one buffer, and written, or read, with one call.

use super::text::Text;
use super::{Container, State, Unsynced};
use crate::error::{Damage, Error, Result};
use crate::geometry::OVERHEAD;
use crate::sealer::Place;
use core::cell::RefCell;
use core::ops::Range;

/// Bytes of stored chunks that go in one call: few calls, and what was sealed is still in the processor's cache when it is copied.
const CALL_BYTES: usize = 256 << 10;

thread_local! {
    /// Room for stored chunks, which are ciphertext.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Does something with room for stored chunks, whose content is undefined.
pub(super) fn with_room<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    // Taken out, so that who is called may do the same.
    let mut stored = STORED.take();
    if stored.len() < len {
        stored.resize(len, 0);
    }
    let done = work(&mut stored[..len]);
    STORED.set(stored);
    done
}

impl Container {
    /// How many chunks go in one call.
    fn at_once(&self) -> usize {
        (CALL_BYTES / self.geometry.chunk_size()).max(1)
    }

    /// Writes full chunks, none of them the last, one behind the other where they belong.
    fn write_run(&self, first: u64, texts: &[&[u8]]) -> Result<()> {
        let size = self.geometry.stored_size();
        with_room(texts.len() * size, |stored| {
            for ((chunk, text), stored) in (first..).zip(texts).zip(stored.chunks_exact_mut(size)) {
                self.sealer.seal_from(chunk, Place::Inner, text, stored)?;
            }
            Ok(self.disk.write_at(stored, self.geometry.offset(first))?)
        })
    }

    /// Writes what is gathered of those chunks, which are full and beyond the committed end: before the next record counts, nobody looks there.
    pub(super) fn write_gathered(&self, state: &mut State, chunks: Range<u64>) -> Result<()> {
        loop {
            let gathered = state.gathered.range(chunks.clone());
            let run: Vec<(u64, &[u8])> = gathered.take(self.at_once()).map(|(chunk, text)| (*chunk, &**text)).collect();
            let Some(&(first, _)) = run.first() else { return Ok(()) };
            let count = run.iter().zip(first..).take_while(|((chunk, _), wanted)| chunk == wanted).count();
            let texts: Vec<&[u8]> = run[..count].iter().map(|(_, text)| *text).collect();
            if let Err(error) = self.write_run(first, &texts) {
                self.take_back(state, first);
                return Err(error);
            }
            let end = first + count as u64;
            state.unsynced = Unsynced::Written;
            state.written = state.written.max(end);
            (first..end).for_each(|chunk| drop(state.gathered.remove(&chunk)));
        }
    }

    /// Writes the chunks that `bytes` begin with, as far as they are full and others follow, without gathering them: of a file that is being written from its beginning to its end, and
    /// already too long to be gathered. How many bytes that were. What a newborn file has on the disk is not written again, so nothing is if a chunk before is missing.
    pub(super) fn stream(&self, state: &mut State, bytes: &[u8], offset: u64) -> Result<usize> {
        let size = self.geometry.chunk_size();
        let (first, within) = self.at(offset);
        let is_streamed = if state.is_newborn { state.written > 0 && state.committed.is_none() } else { state.journal.is_some() };
        let end = offset + bytes.len() as u64;
        let last = self.geometry.last_chunk(state.len.max(end));
        let count = (bytes.len() / size).min(last.saturating_sub(first) as usize);
        if !is_streamed || within > 0 || count == 0 || first < self.first_free(state) || offset > state.len {
            return Ok(0);
        }
        if state.is_newborn && first > state.written {
            if offset < state.len {
                return Ok(0);
            }
            self.write_gathered(state, state.written..first)?;
            if first > state.written {
                return Ok(0);
            }
        }
        for (run, texts) in (first..).step_by(self.at_once()).zip(bytes[..count * size].chunks(self.at_once() * size)) {
            let texts: Vec<&[u8]> = texts.chunks_exact(size).collect();
            let end = run + texts.len() as u64;
            if let Err(error) = self.write_run(run, &texts) {
                self.take_back(state, run);
                self.keep(state, run, &texts);
                return Err(error);
            }
            (run..end).for_each(|chunk| drop(state.gathered.remove(&chunk)));
            state.unsynced = Unsynced::Written;
            state.written = state.written.max(end);
            state.len = state.len.max(self.geometry.text_offset(end));
        }
        Ok(count * size)
    }

    /// Chunks from `first` on that were written before may have been overwritten in part: of what belongs to the text and is not in memory, this is.
    fn keep(&self, state: &mut State, first: u64, texts: &[&[u8]]) {
        if state.len <= self.geometry.text_offset(first) {
            return;
        }
        for (chunk, text) in (first..=self.geometry.last_chunk(state.len)).zip(texts) {
            let text_len = self.geometry.text_len(chunk, state.len);
            state.gathered.entry(chunk).or_insert_with(|| Text::from(&text[..text_len]));
        }
    }

    /// Chunks of a newborn file from `first` on may be there in part, and others are to be written in their place: nothing of them may come back.
    pub(super) fn take_back(&self, state: &mut State, first: u64) {
        if !state.is_newborn {
            return;
        }
        let cut = self.disk.set_len(self.geometry.offset(first)).and_then(|()| self.disk.sync());
        // What could not be taken back stays poisoned, and the program is told of the write's error.
        let _ = Self::poisoned(state, cut);
    }

    /// Reads full chunks that are not gathered from `chunk` on, none of them the last, and how many: as many as `into` has room for, and go in one call.
    pub(super) fn load_run(&self, state: &State, chunk: u64, into: &mut [u8]) -> Result<usize> {
        let (size, stored_size) = (self.geometry.chunk_size(), self.geometry.stored_size());
        // The committed end's chunk says that it is the last, wherever the text ends meanwhile.
        let last = state.committed.map_or(u64::MAX, |_| self.first_free(state).saturating_sub(1));
        let most = (into.len() / size).min(self.at_once());
        let count = (chunk..).take(most).take_while(|chunk| *chunk != last && !state.gathered.contains_key(chunk)).count();
        if count < 2 {
            return Ok(0);
        }
        with_room(count * stored_size, |stored| {
            if self.disk.read_at(stored, self.geometry.offset(chunk))? < stored.len() {
                // Which one is missing is found out one by one.
                return Ok(0);
            }
            for ((chunk, text), stored) in (chunk..).zip(into.chunks_exact_mut(size)).zip(stored.chunks_exact(stored_size)) {
                if !self.sealer.open_into(chunk, Place::Inner, stored, text)? {
                    let kind = self.sealer.explain(chunk, Place::Inner, stored, text)?;
                    let (offset, text_offset) = (self.geometry.offset(chunk), self.geometry.text_offset(chunk));
                    return Err(Error::Damaged(Damage { chunk, offset, text_offset, kind }));
                }
            }
            Ok(count * size)
        })
    }

    /// Room for one stored chunk of so much text.
    pub(super) fn with_stored<T>(text_len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
        with_room(text_len + OVERHEAD, work)
    }
}
