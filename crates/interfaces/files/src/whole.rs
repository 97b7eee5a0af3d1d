//! Whole files sealed and opened, from end to end: by several threads where both sides are files, in a pipeline where one is a stream.
//!
//! Chunks go in groups. A group is read straight to where its texts belong among nonces and tags, sealed in place and written in one piece, so each byte
//! is touched by the kernel's two copies and by the cipher, while it is still in the processor's cache.

use crate::disk::{Access, Disk};
use crate::error::{Damage, DamageKind, Error, Result};
use crate::geometry::{Geometry, NONCE_BYTES, OVERHEAD};
use crate::header::{Header, read_up_to};
use crate::sealer::{Place, Sealer};
use bywash_core::SecretVec;
use rustix::io::{preadv, pwritev, retry_on_intr};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;

/// Bytes of text in a group: with its overhead it fits into a core's second cache.
const GROUP_BYTES: usize = 512 << 10;
/// Groups on their way between the threads of a stream.
const GROUPS_AHEAD: usize = 4;

type Buffer = SecretVec;

/// One file sealed or opened as a whole.
pub struct Whole<'a> {
    sealer: &'a Sealer,
    header: &'a Header,
    geometry: Geometry,
    threads: usize,
    /// Bytes of text done, for who shows progress.
    progress: &'a AtomicU64,
    /// Asked between groups, by the thread that called.
    watch: Option<&'a Watch<'a>>,
}

/// What is asked whether to go on; an error ends the work.
type Watch<'a> = dyn Fn() -> Result<()> + Sync + 'a;

/// Reads a group, and says how many bytes it got.
type ReadGroup<'a> = dyn Fn(&mut dyn Read, &mut Buffer) -> Result<usize> + Sync + 'a;

/// Is given each group with the number of its first chunk, what [`ReadGroup`] returned, and whether nothing follows.
type WorkOnGroup<'a> = dyn FnMut(u64, usize, bool, &mut [u8]) -> Result<()> + 'a;

/// The chunks of one group, and where its text begins.
#[derive(Clone, Copy)]
struct Group {
    first: u64,
    text_at: u64,
    text_len: usize,
}

impl<'a> Whole<'a> {
    /// By at most so many threads. `progress` counts bytes of text as they are done.
    pub fn new(sealer: &'a Sealer, header: &'a Header, threads: usize, progress: &'a AtomicU64) -> Self {
        Self { sealer, header, geometry: header.geometry(), threads: threads.max(1), progress, watch: None }
    }

    /// Has this asked before each group whether to go on, by the thread that calls; what it returns as an error ends the work, and is its error.
    pub fn watched(self, watch: &'a Watch<'a>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Seals `len` bytes of one file into another, which is empty.
    ///
    /// # Errors
    /// [`Error::Io`] with `UnexpectedEof` if the source is shorter; an engine's; the operating system's.
    pub fn seal(&self, source: &File, len: u64, target: &File) -> Result<()> {
        if len <= self.group_text() {
            return self.seal_small(source, len, target);
        }
        target.write_all_at(self.header.bytes(), 0)?;
        self.each_group(len, |group, stored| {
            self.read_texts(source, group, stored)?;
            self.seal_group(group, len, stored)?;
            Ok(target.write_all_at(stored, self.geometry.offset(group.first))?)
        })
    }

    /// Header and chunks of a small file in one write.
    fn seal_small(&self, source: &File, len: u64, target: &File) -> Result<()> {
        let group = self.group(0, len);
        let header = self.header.bytes();
        let mut all = Buffer::from(vec![0; header.len() + self.stored_len(group)]);
        let (front, stored) = all.split_at_mut(header.len());
        front.copy_from_slice(header);
        self.read_texts(source, group, stored)?;
        self.seal_group(group, len, stored)?;
        target.write_all_at(&all, 0)?;
        self.progress.fetch_add(len, Relaxed);
        Ok(())
    }

    /// Opens a file into another, which is empty; the length of the text.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Damaged`]; `ResourceBusy` if somebody writes to it; an engine's; the operating system's.
    pub fn open(&self, source: &File, target: &File) -> Result<u64> {
        Disk::lock(source, Access::Read)?;
        let len = self.geometry.text_len_of_file(source.metadata()?.len())?;
        let opened = self.each_group(len, |group, stored| {
            self.read_stored(source, group, stored)?;
            self.open_group(group, len, stored)?;
            write_texts(target, group, &self.geometry, stored)
        });
        opened.map(|()| len).map_err(|error| self.explained(source, len, error))
    }

    /// An error that says of a chunk what is wrong with it, where that can be told: it may be authentic, and the file be cut off behind it.
    fn explained(&self, source: &File, len: u64, error: Error) -> Error {
        let Error::Damaged(damage) = error else { return error };
        let mut text = Buffer::from(vec![0; self.geometry.text_len(damage.chunk, len)]);
        let mut stored = vec![0; text.len() + OVERHEAD];
        let place = Place::last_if(damage.chunk == self.geometry.last_chunk(len));
        let kind = match source.read_exact_at(&mut stored, damage.offset) {
            Ok(()) => self.sealer.explain(damage.chunk, place, &stored, &mut text).unwrap_or(damage.kind),
            Err(_) => DamageKind::Unreadable,
        };
        Error::Damaged(Damage { kind, ..damage })
    }

    /// An error that says of a stream's last chunk what is wrong with it.
    fn explained_end(&self, len: u64, last: Option<&[u8]>, error: Error) -> Error {
        match (error, last) {
            (Error::Damaged(damage), Some(stored)) if damage.chunk == self.geometry.last_chunk(len) => {
                let mut text = Buffer::from(vec![0; stored.len() - OVERHEAD]);
                let kind = self.sealer.explain(damage.chunk, Place::Last, stored, &mut text).unwrap_or(damage.kind);
                Error::Damaged(Damage { kind, ..damage })
            }
            (error, _) => error,
        }
    }

    /// Reads a sealed file back, and compares its text with another file's; `false` if they differ.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn is_text_of(&self, sealed: &File, plain: &File) -> Result<bool> {
        let len = self.geometry.text_len_of_file(sealed.metadata()?.len())?;
        let is_same = AtomicBool::new(plain.metadata()?.len() == len);
        let compare = |group: Group, stored: &mut [u8]| {
            self.read_stored(sealed, group, stored)?;
            self.open_group(group, len, stored)?;
            let mut text = Buffer::from(vec![0; group.text_len]);
            plain.read_exact_at(&mut text, group.text_at)?;
            let sealed_text = stored.chunks(self.geometry.stored_size()).zip(text.chunks(self.geometry.chunk_size()));
            if !sealed_text.into_iter().all(|(stored, text)| stored[NONCE_BYTES..][..text.len()] == *text) {
                is_same.store(false, Relaxed);
            }
            Ok(())
        };
        if is_same.load(Relaxed) {
            self.each_group(len, compare)?;
        }
        Ok(is_same.into_inner())
    }

    /// Seals a stream into another; bytes of text.
    ///
    /// # Errors
    /// An engine's; the operating system's.
    pub fn seal_stream(&self, source: impl Read + Send, target: impl Write) -> Result<u64> {
        self.seal_groups(target, |read, work| self.pipeline(source, read, work))
    }

    /// The same by the calling thread alone, for sources that are bound to it.
    ///
    /// # Errors
    /// As [`seal_stream`](Self::seal_stream).
    pub fn seal_stream_in_turn(&self, source: impl Read, target: impl Write) -> Result<u64> {
        self.seal_groups(target, |read, work| self.in_turn(source, read, work))
    }

    fn seal_groups(&self, mut target: impl Write, run: impl FnOnce(&ReadGroup<'_>, &mut WorkOnGroup<'_>) -> Result<()>) -> Result<u64> {
        target.write_all(self.header.bytes())?;
        let (chunk, mut done) = (self.geometry.chunk_size(), 0);
        // Text is read with room for nonces and tags left between.
        let read = |source: &mut dyn Read, buffer: &mut Buffer| {
            let mut text_len = 0;
            for stored in buffer.chunks_mut(self.geometry.stored_size()) {
                let got = read_up_to(&mut *source, &mut stored[NONCE_BYTES..NONCE_BYTES + chunk])?;
                text_len += got;
                if got < chunk {
                    break;
                }
            }
            Ok(text_len)
        };
        run(&read, &mut |first, text_len, is_last, stored| {
            let group = Group { first, text_at: done, text_len };
            let stored = &mut stored[..self.stored_len(group)];
            // A length that ends with this group, or goes on beyond it, says which chunk is the last.
            let len = group.text_at + text_len as u64 + u64::from(!is_last);
            self.seal_group(group, len, stored)?;
            done += text_len as u64;
            self.progress.fetch_add(text_len as u64, Relaxed);
            Ok(target.write_all(stored)?)
        })?;
        target.flush()?;
        Ok(done)
    }

    /// Opens a stream, of which the header has been read, into another; bytes of text. What was written before an error was authentic, but not all.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_stream(&self, source: impl Read + Send, target: impl Write) -> Result<u64> {
        self.open_groups(target, |read, work| self.pipeline(source, read, work))
    }

    /// The same by the calling thread alone, for sources that are bound to it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_stream_in_turn(&self, source: impl Read, target: impl Write) -> Result<u64> {
        self.open_groups(target, |read, work| self.in_turn(source, read, work))
    }

    fn open_groups(&self, mut target: impl Write, run: impl FnOnce(&ReadGroup<'_>, &mut WorkOnGroup<'_>) -> Result<()>) -> Result<u64> {
        let mut done = 0;
        let read = |source: &mut dyn Read, buffer: &mut Buffer| read_up_to(source, buffer);
        run(&read, &mut |first, stored_len, is_last, stored| {
            let stored = &mut stored[..stored_len];
            let before = self.geometry.offset(first) - self.geometry.offset(0);
            let end = self.geometry.text_len_of_file(self.geometry.offset(0) + before + stored_len as u64)?;
            let group = Group { first, text_at: done, text_len: (end - done) as usize };
            // A chunk that does not open is gone, and of the last one it is to be told whether others came behind it once.
            let last = if is_last { stored.chunks(self.geometry.stored_size()).next_back().map(<[u8]>::to_vec) } else { None };
            self.open_group(group, end + u64::from(!is_last), stored).map_err(|error| self.explained_end(end, last.as_deref(), error))?;
            for stored in stored.chunks(self.geometry.stored_size()) {
                target.write_all(&stored[NONCE_BYTES..stored.len() - (OVERHEAD - NONCE_BYTES)])?;
            }
            done = end;
            self.progress.fetch_add(group.text_len as u64, Relaxed);
            Ok(())
        })?;
        target.flush()?;
        Ok(done)
    }

    /// Reads a group and works on the one before, which is the last if there is nothing in this.
    fn in_turn(&self, source: impl Read, read: &ReadGroup<'_>, work: &mut WorkOnGroup<'_>) -> Result<()> {
        let room = || Buffer::from(vec![0; self.group_room()]);
        let mut source = Ending { source, is_over: false };
        let (mut buffer, mut other, mut first) = (room(), room(), 0);
        let mut got = read(&mut source, &mut buffer)?;
        loop {
            let next = if got == 0 { 0 } else { read(&mut source, &mut other)? };
            work(first, got, next == 0, &mut buffer)?;
            if next == 0 {
                return Ok(());
            }
            first += self.chunks_per_group();
            got = next;
            core::mem::swap(&mut buffer, &mut other);
        }
    }

    /// Reads groups in a thread of its own, and works on them in this.
    fn pipeline(&self, source: impl Read + Send, read: &ReadGroup<'_>, work: &mut WorkOnGroup<'_>) -> Result<()> {
        let (per_group, room) = (self.chunks_per_group(), self.group_room());
        let mut source = Ending { source, is_over: false };
        std::thread::scope(|scope| {
            let (send, received) = sync_channel::<Result<(Buffer, usize)>>(GROUPS_AHEAD);
            let (give_back, returned) = sync_channel::<Buffer>(GROUPS_AHEAD + 2);
            scope.spawn(move || {
                loop {
                    let mut buffer = returned.try_recv().unwrap_or_else(|_| Buffer::from(vec![0; room]));
                    let got = read(&mut source, &mut buffer);
                    let is_over = !matches!(got, Ok(1..));
                    if send.send(got.map(|got| (buffer, got))).is_err() || is_over {
                        return;
                    }
                }
            });
            // What is read last is nothing; the group before that is the last.
            let mut next = received.recv().map_err(|_| ended())??;
            let mut first = 0;
            loop {
                let (mut buffer, got) = next;
                next = if got == 0 { (Buffer::default(), 0) } else { received.recv().map_err(|_| ended())?? };
                work(first, got, next.1 == 0, &mut buffer)?;
                if next.1 == 0 {
                    return Ok(());
                }
                first += per_group;
                // Where it is not taken, another is made.
                let _ = give_back.try_send(buffer);
            }
        })
    }

    fn chunks_per_group(&self) -> u64 {
        (GROUP_BYTES / self.geometry.chunk_size()).max(1) as u64
    }

    /// Bytes of a group's chunks with all overhead.
    fn group_room(&self) -> usize {
        self.chunks_per_group() as usize * self.geometry.stored_size()
    }

    fn group_text(&self) -> u64 {
        self.chunks_per_group() * self.geometry.chunk_size() as u64
    }

    fn group(&self, number: u64, len: u64) -> Group {
        let first = number * self.chunks_per_group();
        let text_at = self.geometry.text_offset(first);
        Group { first, text_at, text_len: (len - text_at).min(self.group_text()) as usize }
    }

    /// Bytes of a group with all overhead; a group without text has one empty chunk.
    fn stored_len(&self, group: Group) -> usize {
        group.text_len + group.text_len.div_ceil(self.geometry.chunk_size()).max(1) * OVERHEAD
    }

    /// Does something to each group, in as many threads as are worth it; the first error ends it.
    fn each_group(&self, len: u64, work: impl Fn(Group, &mut [u8]) -> Result<()> + Sync) -> Result<()> {
        let groups = len.div_ceil(self.group_text()).max(1);
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let run = |watch: Option<&Watch<'_>>| {
            let mut buffer = Buffer::default();
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= groups || is_over.load(Relaxed) {
                    return Ok(());
                }
                watch.map_or(Ok(()), |watch| watch()).inspect_err(|_| is_over.store(true, Relaxed))?;
                let group = self.group(number, len);
                buffer.resize(self.stored_len(group), 0);
                work(group, &mut buffer).inspect_err(|_| is_over.store(true, Relaxed))?;
                self.progress.fetch_add(group.text_len as u64, Relaxed);
            }
        };
        let threads = self.threads.min(usize::try_from(groups).unwrap_or(usize::MAX));
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| run(None))).collect();
            let outcome = run(self.watch);
            let joined = others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(ended())));
            // All are waited for before the first error is told.
            joined.fold(outcome, |first, other| first.and(other))
        })
    }

    fn seal_group(&self, group: Group, len: u64, stored: &mut [u8]) -> Result<()> {
        self.sealer.seal_all(group.first, self.place_of_end(group, len), stored.chunks_mut(self.geometry.stored_size()))
    }

    fn open_group(&self, group: Group, len: u64, stored: &mut [u8]) -> Result<()> {
        let stored = stored.chunks_mut(self.geometry.stored_size());
        match self.sealer.open_all(group.first, self.place_of_end(group, len), stored)? {
            None => Ok(()),
            Some(chunk) => {
                let (offset, text_offset) = (self.geometry.offset(chunk), self.geometry.text_offset(chunk));
                Err(Error::Damaged(Damage { chunk, offset, text_offset, kind: DamageKind::NotAuthentic }))
            }
        }
    }

    /// Of a group's last chunk, in a file with so many bytes of text.
    fn place_of_end(&self, group: Group, len: u64) -> Place {
        let chunks = group.text_len.div_ceil(self.geometry.chunk_size()).max(1) as u64;
        Place::last_if(group.first + chunks - 1 == self.geometry.last_chunk(len))
    }

    fn read_texts(&self, source: &File, group: Group, stored: &mut [u8]) -> Result<()> {
        let chunk = self.geometry.chunk_size();
        let texts = stored.chunks_mut(chunk + OVERHEAD).map(|stored| {
            let end = stored.len() - (OVERHEAD - NONCE_BYTES);
            IoSliceMut::new(&mut stored[NONCE_BYTES..end])
        });
        let mut texts: Vec<_> = texts.collect();
        // One call does it but where a file system gives less; what is missing is then read chunk by chunk.
        let got = retry_on_intr(|| preadv(source, &mut texts, group.text_at)).map_err(io::Error::from)?;
        if got < group.text_len {
            for (at, text) in (0..).zip(&mut texts) {
                source.read_exact_at(text, group.text_at + at * chunk as u64)?;
            }
        }
        Ok(())
    }

    fn read_stored(&self, source: &File, group: Group, stored: &mut [u8]) -> Result<()> {
        Ok(source.read_exact_at(stored, self.geometry.offset(group.first))?)
    }
}

fn write_texts(target: &File, group: Group, geometry: &Geometry, stored: &[u8]) -> Result<()> {
    let chunk = geometry.chunk_size();
    let texts = stored.chunks(chunk + OVERHEAD).map(|stored| &stored[NONCE_BYTES..stored.len() - (OVERHEAD - NONCE_BYTES)]);
    let slices: Vec<_> = texts.clone().map(IoSlice::new).collect();
    let written = retry_on_intr(|| pwritev(target, &slices, group.text_at)).map_err(io::Error::from)?;
    if written < group.text_len {
        for (at, text) in (0..).zip(texts) {
            target.write_all_at(text, group.text_at + at * chunk as u64)?;
        }
    }
    Ok(())
}

/// A source that has ended once stays so. A terminal, or a file that somebody appends to, gives nothing and then more; by then the group before has been sealed
/// as the last.
struct Ending<R> {
    source: R,
    is_over: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let got = self.source.read(buffer)?;
        self.is_over = got == 0 && !buffer.is_empty();
        Ok(got)
    }
}

fn ended() -> Error {
    Error::Io(io::Error::other("a thread of this run ended before its work was done"))
}
