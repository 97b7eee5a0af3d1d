//! The board page: what the broker announces to all clients, written by it alone.
//!
//! | offset | what |
//! |---|---|
//! | 0 | magic, layout version, number of algorithms, number of size classes |
//! | 64 | flags: bit 0 recording, bit 1 draining |
//! | 128 | routing table, one byte an entry, as [`bywash_core::route::route_index`] has it |
//!
//! Sealed against future writable mappings, so that no client can speak to the others through it.

use crate::layout::LAYOUT_VERSION;
use crate::mapping::{Access, Mapping};
use crate::region::{check_sealed, failed, sealed, unusable};
use bywash_core::route::{ROUTES, keeps, look_up};
use bywash_core::{Algorithm, Place, Result, SizeClass};
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::SealFlags;

const MAGIC: u32 = 0x4259_5742;
const AT_FLAGS: usize = 64;
const AT_ROUTES: usize = 128;
const BYTES: usize = 4096;
const RECORDING: u32 = 1;
const DRAINING: u32 = 2;
const _: () = assert!(AT_ROUTES + ROUTES <= BYTES);

/// The broker's side.
pub struct Board(Mapping, OwnedFd);

impl Board {
    /// A page that sends everything *here*.
    ///
    /// # Errors
    /// [`Error::Unavailable`](bywash_core::Error::Unavailable) with what the kernel said.
    pub fn create() -> Result<Self> {
        let (map, file) = sealed("bywash-board", BYTES, SealFlags::FUTURE_WRITE)?;
        for (index, value) in [MAGIC, LAYOUT_VERSION, Algorithm::COUNT as u32, SizeClass::COUNT as u32].into_iter().enumerate() {
            map.u32_at(index * 4).store(value, Relaxed);
        }
        Ok(Self(map, file))
    }

    /// The descriptor that clients are given.
    pub fn file(&self) -> &OwnedFd {
        &self.1
    }

    /// Publishes a routing table in the order of [`bywash_core::route::route_index`].
    pub fn set_routes(&self, routes: &[Place]) {
        for (entry, place) in self.0.bytes_at(AT_ROUTES, ROUTES).iter().zip(routes) {
            entry.store(*place as u8, Relaxed);
        }
    }

    /// Asks clients to fill their trace rings, or to stop.
    pub fn set_recording(&self, on: bool) {
        self.set(RECORDING, on);
    }

    /// Asks clients to send nothing more, and run in place.
    pub fn set_draining(&self, on: bool) {
        self.set(DRAINING, on);
    }

    fn set(&self, flag: u32, on: bool) {
        let flags = self.0.u32_at(AT_FLAGS);
        if on {
            flags.fetch_or(flag, SeqCst)
        } else {
            flags.fetch_and(!flag, SeqCst)
        };
    }
}

/// A client's side: read-only.
pub struct BoardView(Mapping);

impl BoardView {
    /// Checks and maps a board page received.
    ///
    /// # Errors
    /// [`Error::Unavailable`](bywash_core::Error::Unavailable), naming what does not fit.
    pub fn open(file: impl AsFd) -> Result<Self> {
        if check_sealed(&file, "board page")? != BYTES as u64 {
            return Err(unusable("the board page has a wrong size"));
        }
        let map = Mapping::of_file(file, BYTES, Access::ReadOnly).map_err(|error| failed("map the board page", error))?;
        let head: [u32; 4] = core::array::from_fn(|index| map.u32_at(index * 4).load(Relaxed));
        if head != [MAGIC, LAYOUT_VERSION, Algorithm::COUNT as u32, SizeClass::COUNT as u32] {
            return Err(unusable("the board page is of another version; use client and broker of one release"));
        }
        Ok(Self(map))
    }

    /// Where an operation of this size is to run: one load.
    #[inline]
    pub fn place(&self, algorithm: Algorithm, bytes: usize) -> Place {
        look_up(self.0.bytes_at(AT_ROUTES, ROUTES), algorithm, bytes)
    }

    /// Whether operations of this algorithm run in place whatever their size.
    #[inline]
    pub fn keeps(&self, algorithm: Algorithm) -> bool {
        keeps(self.0.bytes_at(AT_ROUTES, ROUTES), algorithm)
    }

    /// Whether in-place requests are to be traced.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.0.u32_at(AT_FLAGS).load(Relaxed) & RECORDING != 0
    }

    /// Whether the broker wants no more requests.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.0.u32_at(AT_FLAGS).load(Acquire) & DRAINING != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::route::route_index;

    #[test]
    fn what_is_announced_is_read_and_nobody_else_writes() {
        let board = Board::create().unwrap();
        let view = BoardView::open(board.file()).unwrap();
        assert_eq!(view.place(Algorithm::Rsa2048Private, 256), Place::Here);
        let mut routes = vec![Place::Here; ROUTES];
        routes[route_index(Algorithm::Rsa2048Private, 256)] = Place::Queue;
        board.set_routes(&routes);
        assert_eq!(view.place(Algorithm::Rsa2048Private, 256), Place::Queue);
        assert!(!view.is_recording() && !view.is_draining());
        board.set_recording(true);
        board.set_draining(true);
        board.set_recording(false);
        assert!(!view.is_recording() && view.is_draining());
        assert!(Mapping::of_file(board.file(), BYTES, Access::Shared).is_err(), "sealed against writers");
    }
}
