//! The text of a volume's file: a container.

use super::plain;
use crate::format::{Content, Rest};
use bywash_files::disk::{Disk, FolderJournals, Journals};
use bywash_files::{Container, Room};
use core::ops::Range;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A file of a volume: no lock for each, since the volume's keeps others away, and a file may be opened anew while its last reader is not done.
pub(super) struct Unlocked(pub(super) Arc<File>);

impl Disk for Unlocked {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Disk::read_at(&*self.0, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Disk::write_at(&*self.0, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Disk::len(&*self.0)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Disk::set_len(&*self.0, len)
    }

    fn sync(&self) -> io::Result<()> {
        Disk::sync(&*self.0)
    }

    fn reserve(&self, range: Range<u64>) -> io::Result<bool> {
        Disk::reserve(&*self.0, range)
    }
}

/// A container, and how to forget its journal.
pub(super) struct Text {
    pub(super) container: Container,
    pub(super) salt: [u8; 32],
    pub(super) journals: Arc<FolderJournals>,
}

impl Content for Text {
    fn is_newborn(&self) -> bool {
        self.container.is_newborn()
    }

    fn len(&self) -> u64 {
        self.container.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.container.read_at(buffer, offset).map_err(plain)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.container.write_at(bytes, offset).map_err(plain)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.container.set_len(len).map_err(plain)
    }

    fn reserve(&self) -> io::Result<Room> {
        self.container.reserve().map_err(plain)
    }

    fn write_out(&self) -> io::Result<Rest> {
        if !self.container.is_newborn() {
            return Ok(Rest::Settle);
        }
        self.container.finish().map(|()| Rest::Nothing).map_err(plain)
    }

    fn sync(&self) -> io::Result<()> {
        self.container.sync().map_err(plain)
    }

    fn settle(&self) -> io::Result<()> {
        self.container.settle().map_err(plain)
    }

    fn discard(&self) {
        // One that stays does no harm but to take room: no file has its salt any more.
        if let Err(error) = self.journals.remove(&self.salt) {
            tracing::warn!("the journal of a file that is gone cannot be removed: {error}");
        }
    }
}
