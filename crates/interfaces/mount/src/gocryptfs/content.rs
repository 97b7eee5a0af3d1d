//! A file of a gocryptfs volume: 2 bytes of version and 16 of identity, then blocks of 4096 bytes of text, each sealed by itself. A block that is missing (zeros
//! throughout) is one of zeros; a file without text has no bytes at all.
//!
//! A block is changed where it lies, as gocryptfs does it: a power cut can tear one, which then does not open.

use super::blocks::{BlockCipher, ID_BYTES};
use crate::format::{Content, Looked, Rest, damaged};
use bywash_core::SecretVec;
use bywash_files::disk::{Access, Disk};
use bywash_files::nonce::random;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const HEADER_BYTES: u64 = 2 + ID_BYTES as u64;
const VERSION: [u8; 2] = [0, 2];
/// Bytes of text in every block but the last.
const BLOCK_BYTES: usize = 4096;
/// Blocks read or written at once.
const BLOCKS_AT_ONCE: u64 = 256;

/// Length of the text in a lower file of that length. For lengths that no file has it is, as in gocryptfs, that of the nearest: what is wrong shows when it is read.
pub(super) fn text_len(lower_len: u64, overhead: usize) -> u64 {
    let Some(body) = lower_len.checked_sub(HEADER_BYTES).filter(|body| *body > 0) else { return 0 };
    let stored = (BLOCK_BYTES + overhead) as u64;
    let tail = (body % stored).max(if body.is_multiple_of(stored) { 0 } else { overhead as u64 + 1 });
    body / stored * BLOCK_BYTES as u64 + tail.saturating_sub(overhead as u64)
}

/// An open file.
pub(super) struct Blocks {
    file: Arc<File>,
    cipher: Arc<BlockCipher>,
    access: Access,
    state: RwLock<State>,
}

struct State {
    /// None as long as there is no text.
    id: Option<[u8; ID_BYTES]>,
    len: u64,
}

impl Blocks {
    pub(super) fn open(file: Arc<File>, cipher: Arc<BlockCipher>, access: Access) -> io::Result<Self> {
        let lower_len = Disk::len(&*file)?;
        let len = text_len(lower_len, cipher.overhead());
        let id = if lower_len == 0 { None } else { Some(read_header(&file)?) };
        Ok(Self { file, cipher, access, state: RwLock::new(State { id, len }) })
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writable(&self) -> io::Result<RwLockWriteGuard<'_, State>> {
        match self.access {
            Access::Write => Ok(self.state.write().unwrap_or_else(PoisonError::into_inner)),
            Access::Read => Err(Errno::ROFS.into()),
        }
    }

    fn stored_bytes(&self) -> usize {
        BLOCK_BYTES + self.cipher.overhead()
    }

    fn offset(&self, block: u64) -> u64 {
        HEADER_BYTES + block * self.stored_bytes() as u64
    }

    /// The text of consecutive blocks from the first on, as many as fit; `text` ends where the file does or a block does.
    fn open_blocks(&self, state: &State, first: u64, text: &mut [u8]) -> io::Result<()> {
        let Some(id) = &state.id else {
            text.fill(0);
            return Ok(());
        };
        let overhead = self.cipher.overhead();
        let mut stored = vec![0; text.len() + text.len().div_ceil(BLOCK_BYTES) * overhead];
        let got = Disk::read_at(&*self.file, &mut stored, self.offset(first))?;
        let mut sealed = &stored[..];
        for (number, text) in (first..).zip(text.chunks_mut(BLOCK_BYTES)) {
            let (block, rest) = sealed.split_at(text.len() + overhead);
            let end = stored.len() - rest.len();
            if got < end {
                return Err(damaged(format!("block {number} at offset {} is cut off", self.offset(number))));
            }
            if block.len() == self.stored_bytes() && block.iter().all(|byte| *byte == 0) {
                text.fill(0);
            } else if !self.cipher.open(number, Some(id), block, text).map_err(io::Error::other)? {
                return Err(damaged(format!("block {number} at offset {} is not authentic", self.offset(number))));
            }
            sealed = rest;
        }
        Ok(())
    }

    /// The text of one block, with room for a whole one.
    fn load(&self, state: &State, block: u64) -> io::Result<SecretVec> {
        let mut text = SecretVec::with_capacity(BLOCK_BYTES);
        text.resize((state.len - block * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64) as usize, 0);
        self.open_blocks(state, block, &mut text)?;
        Ok(text)
    }

    /// Every block, one by one.
    pub(super) fn look(&self) -> Looked {
        let (state, size) = (self.read_state(), BLOCK_BYTES as u64);
        let mut looked = Looked::default();
        for block in 0..state.len.div_ceil(size) {
            match self.load(&state, block) {
                Ok(text) => looked.good_bytes += text.len() as u64,
                Err(error) if error.raw_os_error().is_none() => looked.damages.push(format!("{error} (text from {})", block * size)),
                Err(error) => {
                    let (offset, text) = (self.offset(block), block * size);
                    looked.damages.push(format!("block {block} at offset {offset} cannot be read: {error} (text from {text})"));
                }
            }
        }
        looked
    }

    /// Seals consecutive blocks from the first on and writes them; `text` ends where the file will or a block does.
    fn seal_blocks(&self, state: &mut State, first: u64, text: &[u8]) -> io::Result<()> {
        let id = match state.id {
            Some(id) => id,
            None => self.write_header(state)?,
        };
        let mut stored = vec![0; text.len() + text.len().div_ceil(BLOCK_BYTES) * self.cipher.overhead()];
        let mut room = &mut stored[..];
        for (number, text) in (first..).zip(text.chunks(BLOCK_BYTES)) {
            let (block, rest) = room.split_at_mut(text.len() + self.cipher.overhead());
            self.cipher.seal(number, Some(&id), text, block)?;
            room = rest;
        }
        // A disk that is full must say so before a block that is there already is overwritten in part.
        Disk::reserve(&*self.file, self.offset(first)..self.offset(first) + stored.len() as u64)?;
        Disk::write_at(&*self.file, &stored, self.offset(first))
    }

    fn write_header(&self, state: &mut State) -> io::Result<[u8; ID_BYTES]> {
        let mut id = [0; ID_BYTES];
        random(&mut id).map_err(io::Error::other)?;
        Disk::write_at(&*self.file, &[&VERSION[..], &id].concat(), 0)?;
        state.id = Some(id);
        Ok(id)
    }

    /// Zeros to `len`: the last block's rest and, if it is not whole, the new last block are written; whole ones between are left out.
    fn extend(&self, state: &mut State, len: u64) -> io::Result<()> {
        let size = BLOCK_BYTES as u64;
        let block = state.len / size;
        if !state.len.is_multiple_of(size) {
            let mut text = self.load(state, block)?;
            text.resize((len - block * size).min(size) as usize, 0);
            self.seal_blocks(state, block, &text)?;
            state.len = block * size + text.len() as u64;
        }
        let (last, rest) = (len / size, (len % size) as usize);
        if len > state.len && rest > 0 {
            self.seal_blocks(state, last, &[0; BLOCK_BYTES][..rest])?;
        } else if len > state.len {
            if state.id.is_none() {
                self.write_header(state)?;
            }
            Disk::set_len(&*self.file, self.offset(last))?;
        }
        state.len = len;
        Ok(())
    }
}

impl Content for Blocks {
    fn len(&self) -> u64 {
        self.read_state().len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.read_state();
        let (size, wanted) = (BLOCK_BYTES as u64, state.len.saturating_sub(offset).min(buffer.len() as u64));
        let mut buffer = &mut buffer[..wanted as usize];
        let (mut at, end) = (offset, offset + wanted);
        while at < end {
            let (block, within) = (at / size, (at % size) as usize);
            // Whole blocks, or those to the end of the file, go where they are wanted; parts by another way.
            let whole_end = if end == state.len { end } else { end / size * size };
            let count = if within == 0 && at < whole_end {
                let count = (whole_end - at).min(BLOCKS_AT_ONCE * size) as usize;
                self.open_blocks(&state, block, &mut buffer[..count])?;
                count
            } else {
                let text = self.load(&state, block)?;
                let count = (text.len() - within).min(buffer.len());
                buffer[..count].copy_from_slice(&text[within..within + count]);
                count
            };
            buffer = &mut buffer[count..];
            at += count as u64;
        }
        Ok(wanted as usize)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let size = BLOCK_BYTES as u64;
        let mut state = self.writable()?;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= i64::MAX as u64 / 2).ok_or(Errno::FBIG)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if offset > state.len {
            self.extend(&mut state, offset)?;
        }
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (block, within) = (at / size, (at % size) as usize);
            let whole_end = if end >= state.len { end } else { end / size * size };
            let count = if within == 0 && at < whole_end {
                let count = (whole_end - at).min(BLOCKS_AT_ONCE * size) as usize;
                self.seal_blocks(&mut state, block, &rest[..count])?;
                count
            } else {
                let mut text = if block * size < state.len { self.load(&state, block)? } else { SecretVec::with_capacity(BLOCK_BYTES) };
                let count = (BLOCK_BYTES - within).min(rest.len());
                let text_len = text.len().max(within + count);
                text.resize(text_len, 0);
                text[within..within + count].copy_from_slice(&rest[..count]);
                self.seal_blocks(&mut state, block, &text)?;
                count
            };
            rest = &rest[count..];
            at += count as u64;
            state.len = state.len.max(at);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let size = BLOCK_BYTES as u64;
        let mut state = self.writable()?;
        if len > state.len {
            return self.extend(&mut state, len);
        }
        if len == state.len {
            return Ok(());
        }
        if len == 0 {
            Disk::set_len(&*self.file, 0)?;
            *state = State { id: None, len: 0 };
            return Ok(());
        }
        let (block, rest) = (len / size, (len % size) as usize);
        let text = if rest > 0 { Some(self.load(&state, block)?) } else { None };
        Disk::set_len(&*self.file, self.offset(block))?;
        state.len = block * size;
        if let Some(text) = text {
            self.seal_blocks(&mut state, block, &text[..rest])?;
            state.len = len;
        }
        Ok(())
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        let mut state = self.writable()?;
        if len > state.len { self.extend(&mut state, len) } else { Ok(()) }
    }

    fn write_out(&self) -> io::Result<Rest> {
        Ok(Rest::Nothing)
    }

    fn sync(&self) -> io::Result<()> {
        Disk::sync(&*self.file)
    }

    fn settle(&self) -> io::Result<()> {
        self.sync()
    }

    fn discard(&self, _is_certain: bool) {}
}

fn read_header(file: &File) -> io::Result<[u8; ID_BYTES]> {
    let mut header = [0; HEADER_BYTES as usize];
    let got = Disk::read_at(file, &mut header, 0)?;
    let (version, id) = header.split_at(VERSION.len());
    match id.try_into() {
        Ok(id) if got == header.len() && version == VERSION && id != [0; ID_BYTES] => Ok(id),
        _ => Err(damaged("its first 18 bytes are no header of gocryptfs")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Kind;
    use super::*;
    use bywash_client::{Client, Config};
    use bywash_core::SecretBytes;

    fn cipher(kind: Kind) -> Arc<BlockCipher> {
        let key = SecretBytes::from(&vec![7; kind.key_len()][..]);
        Arc::new(BlockCipher::new(&Client::new(Config::default()), kind, &key).unwrap())
    }

    /// Against a vector of bytes, and opened anew after each step.
    #[test]
    fn a_file_is_what_was_written_to_it() {
        let mut random = fastrand::Rng::with_seed(7);
        for kind in [Kind::Gcm, Kind::XChaCha, Kind::Siv] {
            let (cipher, file, mut model) = (cipher(kind), Arc::new(tempfile::tempfile().unwrap()), Vec::new());
            let open = || Blocks::open(file.clone(), cipher.clone(), Access::Write).unwrap();
            let mut blocks = open();
            for step in 0..150 {
                let near =
                    |random: &mut fastrand::Rng| *random.choice(&[0, 1, 4095, 4096, 4097, 8192, 12_288]).unwrap() + random.usize(..3);
                match random.u32(..5) {
                    0 => {
                        let len = near(&mut random);
                        blocks.set_len(len as u64).unwrap();
                        model.resize(len, 0);
                    }
                    1 => {
                        let len = near(&mut random);
                        blocks.grow(len as u64).unwrap();
                        model.resize(model.len().max(len), 0);
                    }
                    _ => {
                        let (at, bytes) = (near(&mut random), vec![step as u8 + 1; near(&mut random)]);
                        blocks.write_at(&bytes, at as u64).unwrap();
                        if !bytes.is_empty() {
                            model.resize(model.len().max(at + bytes.len()), 0);
                            model[at..at + bytes.len()].copy_from_slice(&bytes);
                        }
                    }
                }
                if random.bool() {
                    blocks = open();
                }
                assert_eq!(blocks.len(), model.len() as u64, "{kind:?} {step}");
                assert_eq!(text_len(Disk::len(&*file).unwrap(), cipher.overhead()), blocks.len());
                let (from, len) = (near(&mut random), near(&mut random));
                for (from, len) in [(0, model.len() + 5), (from, len)] {
                    let mut buffer = vec![0; len];
                    let got = blocks.read_at(&mut buffer, from as u64).unwrap();
                    let wanted = model.get(from..(from + len).min(model.len())).unwrap_or_default();
                    assert!(buffer[..got] == *wanted, "{kind:?} {step}");
                }
            }
        }
    }

    #[test]
    fn lengths_follow_gocryptfs() {
        for (lower, text) in
            [(0, 0), (1, 0), (18, 0), (18 + 33, 1), (18 + 20, 1), (18 + 4128, 4096), (18 + 4128 + 33, 4097), (18 + 4128 + 1, 4097)]
        {
            assert_eq!(text_len(lower, 32), text, "{lower}");
        }
    }

    #[test]
    fn damage_is_named_by_its_place() {
        let (cipher, file) = (cipher(Kind::Gcm), Arc::new(tempfile::tempfile().unwrap()));
        let open = |access| Blocks::open(file.clone(), cipher.clone(), access);
        open(Access::Write).unwrap().write_at(&[1; 10_000], 0).unwrap();
        let read = || open(Access::Read).unwrap().read_at(&mut [0; 10_000], 0).map_err(|error| error.to_string());
        assert_eq!(read(), Ok(10_000));
        assert_eq!(open(Access::Read).unwrap().write_at(b"x", 0).unwrap_err().raw_os_error(), Some(Errno::ROFS.raw_os_error()));
        Disk::write_at(&*file, &[9], 18 + 4128 + 100).unwrap();
        assert_eq!(read().unwrap_err(), "block 1 at offset 4146 is not authentic");
        let looked = open(Access::Read).unwrap().look();
        assert_eq!(looked.damages, ["block 1 at offset 4146 is not authentic (text from 4096)"]);
        assert_eq!(looked.good_bytes, 10_000 - 4096);
        Disk::write_at(&*file, &[9], 0).unwrap();
        assert!(open(Access::Read).err().unwrap().to_string().contains("no header"));
    }
}
