//! A file opened in place: read and written anywhere, like a file.
//!
//! Writes are gathered in memory, chunk by chunk, and go to the disk as *batches*: when [`Container::sync`] is called, when too many are gathered, and at
//! the end. A batch counts from when it is in the journal (`journal.rs`); then it is written where it belongs, and the file itself is synced every now and then. Many chunks beyond the last
//! committed end are written where they belong at once. After a power cut the file is as after some batch, the last synced one or a later one.

use crate::disk::{Access, Disk, Journals};
use crate::error::{Damage, Error, Result};
use crate::geometry::{Geometry, LENGTH_MAX, OVERHEAD};
use crate::header::Header;
use crate::journal::{self, Journal};
use crate::kdf::FileKeys;
use crate::nonce::NonceSource;
use crate::sealer::{Place, Sealer};
use bywash_client::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

mod batch;
mod recovery;
mod stream;
mod text;
pub use recovery::{is_changed_by_journal, recover};
use text::Text;

/// Bytes of text gathered before a batch is written, where nothing else is asked for.
pub const GATHERED_BYTES: usize = 8 << 20;
/// Bytes of batches in the journal after which the file is synced, where nothing else is asked for.
pub const JOURNALED_BYTES: u64 = 1 << 20;

/// An encrypted file opened in place. Shared by threads: reads go side by side, writes one after the other.
pub struct Container {
    disk: Arc<dyn Disk>,
    journals: Option<Arc<dyn Journals>>,
    sealer: Sealer,
    geometry: Geometry,
    gathered_max: usize,
    journaled_max: u64,
    state: RwLock<State>,
}

/// What the file may lose in a power cut of what was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unsynced {
    Nothing,
    /// What the journal has for good.
    Journaled,
    /// What is nowhere else.
    Written,
}

struct State {
    /// Length of the text as readers see it.
    len: u64,
    /// Length that the disk recovers to, but for what was not synced; none before a new file is first complete. Chunks up to its last are the journal's affair.
    committed: Option<u64>,
    /// Texts of chunks that differ from the disk's, or are only in the journal.
    gathered: BTreeMap<u64, Text>,
    journal: Option<Journal>,
    /// Whether its file was made, and not removed.
    has_journal: bool,
    unsynced: Unsynced,
    /// Whether it is new and was never synced: a power cut may leave any part of it, so it needs no journal.
    is_newborn: bool,
    /// Of a newborn file, how many chunks were written. They are not written again as long as it is one: the old and the new of a chunk would both be authentic there.
    written: u64,
    /// Why nothing can be written any more.
    poison: Option<String>,
}

impl State {
    /// Of a file that is complete and has so much text.
    fn at(len: u64) -> Self {
        Self {
            len,
            committed: Some(len),
            gathered: BTreeMap::new(),
            journal: None,
            has_journal: false,
            unsynced: Unsynced::Nothing,
            is_newborn: false,
            written: 0,
            poison: None,
        }
    }
}

impl Container {
    /// Opens a file for reading. A journal that a crash left is read, and left as it is.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Damaged`] if its last chunk is not its last; the operating system's.
    pub fn open(client: &Client, header: &Header, keys: FileKeys, disk: Arc<dyn Disk>, journals: &dyn Journals) -> Result<Self> {
        disk.lock(Access::Read)?;
        let sealer = Sealer::new(client, header.aead(), keys, Arc::new(NonceSource::new()));
        let recovered = match journal::of(header, journals, Access::Read)? {
            Some(journal) => journal::read(&*journal, sealer.keys(), &header.geometry())?,
            None => None,
        };
        let len = match &recovered {
            Some(recovered) => recovered.len,
            None => header.geometry().text_len_of_file(disk.len()?)?,
        };
        let container = Self::new(header, sealer, disk, None, State::at(len));
        for (chunk, stored) in recovered.iter().flat_map(journal::Recovered::chunks) {
            let mut text = Text::default();
            text.resize(stored.len() - OVERHEAD);
            let place = Place::last_if(chunk == container.geometry.last_chunk(len));
            if !container.sealer.open_into(chunk, place, stored, text.bytes())? {
                return Err(Error::DamagedHeader { what: "its journal is authentic and a chunk in it is not" });
            }
            container.write_state().gathered.insert(chunk, text);
        }
        container.check_end()?;
        Ok(container)
    }

    /// Opens a file for reading and writing, recovering it first if a crash left a journal.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_rw(client: &Client, header: &Header, keys: FileKeys, disk: Arc<dyn Disk>, journals: Arc<dyn Journals>) -> Result<Self> {
        recover(header, &keys, &*disk, &*journals)?;
        let len = header.geometry().text_len_of_file(disk.len()?)?;
        let sealer = Sealer::new(client, header.aead(), keys, Arc::new(NonceSource::new()));
        // Who finished it before may not have synced it.
        let state = State { unsynced: Unsynced::Written, ..State::at(len) };
        let container = Self::new(header, sealer, disk, Some(journals), state);
        container.check_end()?;
        Ok(container)
    }

    /// Makes the file of an empty text on an empty disk and opens it. It is complete once [`sync`](Self::sync) or [`close`](Self::close) has returned; a power cut
    /// before leaves a file that is refused, so who needs more makes it under another name.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create(client: &Client, header: &Header, keys: FileKeys, disk: Arc<dyn Disk>, journals: Arc<dyn Journals>) -> Result<Self> {
        let sealer = Sealer::new(client, header.aead(), keys, Arc::new(NonceSource::new()));
        disk.lock(Access::Write)?;
        disk.write_at(header.bytes(), 0)?;
        let state = State { committed: None, unsynced: Unsynced::Written, is_newborn: true, ..State::at(0) };
        let container = Self::new(header, sealer, disk, Some(journals), state);
        container.write_state().gathered.insert(0, Text::default());
        Ok(container)
    }

    /// Says after how many bytes of gathered text a batch is written; at least one chunk's.
    pub fn with_gathered_max(mut self, bytes: usize) -> Self {
        self.gathered_max = bytes;
        self
    }

    /// Says after how many bytes of batches in the journal the file is synced.
    pub fn with_journaled_max(mut self, bytes: u64) -> Self {
        self.journaled_max = bytes;
        self
    }

    /// Draws nonces from a source that it shares with other files, each of which has keys of its own. Before anything is written.
    pub fn with_nonces(mut self, nonces: Arc<NonceSource>) -> Self {
        self.sealer = self.sealer.with_nonces(nonces);
        self
    }

    fn new(header: &Header, sealer: Sealer, disk: Arc<dyn Disk>, journals: Option<Arc<dyn Journals>>, state: State) -> Self {
        let (geometry, state) = (header.geometry(), RwLock::new(state));
        Self { disk, journals, sealer, geometry, gathered_max: GATHERED_BYTES, journaled_max: JOURNALED_BYTES, state }
    }

    /// Only the last chunk says that the length is right.
    fn check_end(&self) -> Result<()> {
        let state = self.read_state();
        self.load(&state, self.geometry.last_chunk(state.len)).map(|_| ())
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> u64 {
        self.read_state().len
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads text at an offset; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`]; the operating system's.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let state = self.read_state();
        let wanted = state.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            let (chunk, within) = self.at(offset + done as u64);
            if within == 0 {
                let read = self.load_run(&state, chunk, &mut buffer[done..wanted])?;
                done += read;
                if read > 0 {
                    continue;
                }
            }
            let text_len = self.geometry.text_len(chunk, state.len);
            let count = (text_len - within).min(wanted - done);
            let into = &mut buffer[done..done + count];
            if let Some(text) = state.gathered.get(&chunk) {
                into.copy_from_slice(&text[within..within + count]);
            } else if count == text_len {
                self.load_into(&state, chunk, into)?;
            } else {
                into.copy_from_slice(&self.load(&state, chunk)?[within..within + count]);
            }
            done += count;
        }
        Ok(wanted)
    }

    /// Writes text at an offset; a gap before it becomes zeros.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::TooLong`], [`Error::Poisoned`], [`Error::Damaged`] where part of a damaged chunk is to stay; the operating
    /// system's, such as no space left.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= LENGTH_MAX);
        let end = end.ok_or(Error::TooLong { asked: offset.saturating_add(bytes.len() as u64) })?;
        let mut state = self.writable()?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.reopen_birth(&mut state, self.at(offset).0)?;
        // After a failure (no space left) nothing more is gathered before what there is has gone.
        self.spill(&mut state, true)?;
        if offset > state.len {
            self.extend(&mut state, offset, false)?;
        }
        let mut done = 0;
        while done < bytes.len() {
            let (chunk, within) = self.at(offset + done as u64);
            let streamed = self.stream(&mut state, &bytes[done..], offset + done as u64)?;
            done += streamed;
            if streamed > 0 {
                continue;
            }
            let count = (self.geometry.chunk_size() - within).min(bytes.len() - done);
            let (old_len, new_end) = (self.geometry.text_len(chunk, state.len), within + count);
            self.gather(&mut state, chunk, within == 0 && new_end >= old_len)?;
            let text = state.gathered.entry(chunk).or_default();
            if text.len() < new_end {
                text.resize(new_end);
            }
            text.bytes()[within..new_end].copy_from_slice(&bytes[done..done + count]);
            done += count;
            state.len = state.len.max(offset + done as u64);
            self.spill(&mut state, done == bytes.len())?;
        }
        debug_assert!(state.len >= end);
        Ok(())
    }

    /// Cuts the text, or extends it with zeros. Zeros are stored: there are no holes, since whoever writes the medium could make some.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.resize(len, true)
    }

    /// Extends the text with zeros to a length, unless it is as long already: what others write behind that meanwhile stays.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn grow(&self, len: u64) -> Result<()> {
        self.resize(len, false)
    }

    fn resize(&self, len: u64, cuts: bool) -> Result<()> {
        if len > LENGTH_MAX {
            return Err(Error::TooLong { asked: len });
        }
        let mut state = self.writable()?;
        if len <= state.len && !cuts {
            return Ok(());
        }
        self.reopen_birth(&mut state, self.geometry.last_chunk(len))?;
        if len > state.len {
            self.extend(&mut state, len, true)?;
        } else if len < state.len {
            self.end_text(&mut state, len)?;
        }
        Ok(())
    }

    /// Returns when all that was written survives a power cut.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Poisoned`]; the operating system's, after which nothing more can be written to this container.
    pub fn sync(&self) -> Result<()> {
        let mut state = self.writable()?;
        self.make_durable(&mut state)
    }

    /// Writes what is gathered, syncs, and removes the journal: the file is then complete by itself. Dropping without this loses what was not synced, and
    /// leaves the journal to the next who opens the file.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn close(self) -> Result<()> {
        if self.journals.is_some() { self.settle() } else { Ok(()) }
    }

    /// Writes what is gathered and hands the journal back, but goes on: for who keeps many files open.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn settle(&self) -> Result<()> {
        let mut state = self.writable()?;
        self.make_durable(&mut state)?;
        self.cut_tail(&mut state)?;
        self.sync_disk(&mut state)?;
        self.drop_journal(&mut state)
    }

    /// Writes what is gathered; that of a new file without a sync or a journal until [`sync`](Self::sync) was called once. A power cut may leave such a file incomplete: this
    /// is for those that [`births`](crate::births) watches over. Any other is [settled](Self::settle).
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn finish(&self) -> Result<()> {
        let mut state = self.writable()?;
        if state.is_newborn {
            return self.commit(&mut state);
        }
        drop(state);
        self.settle()
    }

    /// Whether [`finish`](Self::finish) would be quick: the file is new, and no sync has followed.
    pub fn is_newborn(&self) -> bool {
        self.read_state().is_newborn
    }

    /// A new file that was finished, and of which nobody was promised anything, is incomplete again when it is written on. If chunks from `first` on that were written
    /// are to change, or to go, it is synced first and no newborn from then on; but for the last one, of which the old and the new differ in length or in place.
    fn reopen_birth(&self, state: &mut State, first: u64) -> Result<()> {
        if !state.is_newborn {
            return Ok(());
        }
        let last = self.geometry.last_chunk(state.len);
        if first < last.min(state.written) {
            self.make_durable(state)?;
        } else if let Some(len) = state.committed {
            let last = self.geometry.last_chunk(len);
            let text = self.load(state, last)?;
            state.gathered.insert(last, text);
            state.committed = None;
        }
        Ok(())
    }

    /// Whether it has made a journal beside the file, which that may need.
    pub fn has_journal(&self) -> bool {
        self.read_state().has_journal
    }

    fn drop_journal(&self, state: &mut State) -> Result<()> {
        if let (true, Some(journals)) = (state.has_journal, &self.journals) {
            journals.remove(&self.sealer.keys().salt)?;
            (state.journal, state.has_journal) = (None, false);
        }
        Ok(())
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writable(&self) -> Result<RwLockWriteGuard<'_, State>> {
        let state = self.write_state();
        match &state.poison {
            _ if self.journals.is_none() => Err(Error::ReadOnly),
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
            None => Ok(state),
        }
    }

    /// After a failed sync or a failed write of what the journal holds it is not known what the disk holds: nothing more is written.
    fn poisoned<T>(state: &mut State, outcome: std::io::Result<T>) -> Result<T> {
        outcome.map_err(|error| {
            state.poison = Some(error.to_string());
            error.into()
        })
    }

    /// The first chunk that is written where it belongs without a journal: no record speaks of it.
    fn first_free(&self, state: &State) -> u64 {
        state.committed.map_or(0, |len| self.geometry.last_chunk(len) + 1)
    }

    /// Whether a chunk is the last as the disk has it.
    fn stored_place(&self, state: &State, chunk: u64) -> Place {
        Place::last_if(chunk + 1 == self.first_free(state))
    }

    /// The chunk at an offset of the text, and where in it.
    fn at(&self, offset: u64) -> (u64, usize) {
        let size = self.geometry.chunk_size() as u64;
        (offset / size, (offset % size) as usize)
    }

    /// A chunk's text from the disk, if it is not gathered.
    fn load(&self, state: &State, chunk: u64) -> Result<Text> {
        if let Some(text) = state.gathered.get(&chunk) {
            return Ok(text.clone());
        }
        let mut text = Text::default();
        text.resize(self.stored_text_len(state, chunk));
        self.load_into(state, chunk, text.bytes())?;
        Ok(text)
    }

    /// How long the text of a chunk is that lies on the disk: chunks behind the committed end were full when they were written.
    fn stored_text_len(&self, state: &State, chunk: u64) -> usize {
        match state.committed {
            Some(len) if chunk < self.first_free(state) => self.geometry.text_len(chunk, len),
            _ => self.geometry.chunk_size(),
        }
    }

    fn load_into(&self, state: &State, chunk: u64, text: &mut [u8]) -> Result<()> {
        let (offset, place) = (self.geometry.offset(chunk), self.stored_place(state, chunk));
        let damaged = |kind| Error::Damaged(Damage { chunk, offset, text_offset: self.geometry.text_offset(chunk), kind });
        Self::with_stored(text.len(), |stored| {
            if self.disk.read_at(stored, offset)? < stored.len() {
                return Err(Error::Truncated { place: format!("within chunk {chunk} at offset {offset}") });
            }
            if self.sealer.open_into(chunk, place, stored, text)? {
                return Ok(());
            }
            Err(damaged(self.sealer.explain(chunk, place, stored, text)?))
        })
    }

    /// Brings a chunk's text into memory to be changed; not from the disk if all of it is replaced or it is new.
    fn gather(&self, state: &mut State, chunk: u64, is_replaced: bool) -> Result<()> {
        let is_new = state.len == 0 || chunk > self.geometry.last_chunk(state.len);
        if !is_replaced && !is_new && !state.gathered.contains_key(&chunk) {
            let text = self.load(state, chunk)?;
            state.gathered.insert(chunk, text);
        }
        if is_replaced || is_new {
            state.gathered.entry(chunk).or_default();
        }
        Ok(())
    }

    /// Adds zeros up to a length. If they cannot be stored the text ends where it did.
    fn extend(&self, state: &mut State, len: u64, is_complete: bool) -> Result<()> {
        let before = state.len;
        let extended = self.add_zeros(state, len, is_complete);
        if extended.is_err() && state.len > before && state.poison.is_none() {
            // Should that fail too it is said of the write, and the zeros stay.
            let _ = self.take_zeros_back(state, before);
        }
        extended
    }

    fn take_zeros_back(&self, state: &mut State, len: u64) -> Result<()> {
        let last = self.geometry.last_chunk(len);
        self.end_text(state, len)?;
        if state.is_newborn {
            if state.written > last {
                self.take_back(state, last);
                (state.committed, state.written) = (None, last);
            }
            return Ok(());
        }
        // Their room is needed for what fits.
        if last >= self.first_free(state) {
            return self.cut_behind(state, self.geometry.offset(last));
        }
        self.cut_tail(state)
    }

    /// Ends the text earlier: the chunk that is the last then is gathered.
    fn end_text(&self, state: &mut State, len: u64) -> Result<()> {
        let last = self.geometry.last_chunk(len);
        let text_len = self.geometry.text_len(last, len);
        self.gather(state, last, text_len == 0)?;
        state.gathered.split_off(&(last + 1));
        state.gathered.entry(last).or_default().resize(text_len);
        state.len = len;
        Ok(())
    }

    fn add_zeros(&self, state: &mut State, len: u64, is_complete: bool) -> Result<()> {
        while state.len < len {
            let chunk = if state.len == 0 { 0 } else { self.at(state.len).0 };
            let within = self.geometry.text_len(chunk, state.len);
            self.gather(state, chunk, within == 0)?;
            state.len = len.min(self.geometry.text_offset(chunk + 1));
            let text_len = self.geometry.text_len(chunk, state.len);
            state.gathered.entry(chunk).or_default().resize(text_len);
            self.spill(state, is_complete && state.len == len)?;
        }
        Ok(())
    }

    /// Writes what is gathered when it is too much: appended chunks where they belong, all if that is not enough and a caller's write is complete.
    fn spill(&self, state: &mut State, is_complete: bool) -> Result<()> {
        let chunks_max = (self.gathered_max / self.geometry.chunk_size()).max(1);
        if state.gathered.len() <= chunks_max {
            return Ok(());
        }
        self.write_appended(state)?;
        // A write that is a multiple of the bound is committed in parts, as it would be by a disk.
        let most = if is_complete { chunks_max } else { 4 * chunks_max };
        if state.gathered.len() > most { self.commit(state) } else { Ok(()) }
    }
}
