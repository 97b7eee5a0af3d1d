//! Where everything lies in a region; the crate docs have the same as a table.

use crate::descriptor::Corrupt;

/// First word of a region, so that a wrong descriptor is noticed.
pub const MAGIC: u32 = 0x4259_5752;
/// Version of the layout.
pub const LAYOUT_VERSION: u32 = 4;
/// Bytes of a slot: a state line and a descriptor line.
pub const SLOT_BYTES: usize = 128;
/// Room for algorithms in the usage counters.
pub const USAGE_ALGORITHMS: usize = 128;
/// Copies of the usage counters, so that threads seldom share a line.
pub const USAGE_STRIPES: usize = 8;

pub(crate) const AT_MAGIC: usize = 0;
pub(crate) const AT_VERSION: usize = 4;
pub(crate) const AT_SLOTS: usize = 8;
pub(crate) const AT_ARENA_BYTES: usize = 12;
pub(crate) const AT_TRACE_CELLS: usize = 16;
pub(crate) const AT_TAIL: usize = 64;
pub(crate) const AT_ASLEEP: usize = 128;
pub(crate) const AT_COMPLETED: usize = 192;
pub(crate) const AT_WATCHERS: usize = 256;
pub(crate) const AT_USAGE: usize = PAGE;
/// Bytes of the counters of one algorithm in one stripe.
pub(crate) const USAGE_BYTES: usize = 32;
pub(crate) const TRACE_CELL_BYTES: usize = 64;
pub(crate) const DESCRIPTOR_AT: usize = 64;
/// Where the submission ring begins.
pub const AT_RING: usize = AT_USAGE + USAGE_STRIPES * USAGE_ALGORITHMS * USAGE_BYTES;
const PAGE: usize = 4096;
const _: () = assert!(bywash_core::Algorithm::COUNT <= USAGE_ALGORITHMS);

/// The sizes that a region is made with. Untouched pages cost no memory, so a large arena is free while it is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Requests that can be in flight; a power of two from 8 to 4096.
    pub slots: u32,
    /// Bytes for texts; whole pages, at most 1 GiB.
    pub arena_bytes: u32,
    /// In-place requests that the trace ring holds; a power of two from 64 to 65536.
    pub trace_cells: u32,
}

impl Default for Geometry {
    /// 256 slots, 8 MiB for texts, 4096 trace cells.
    fn default() -> Self {
        Self { slots: 256, arena_bytes: 8 << 20, trace_cells: 4096 }
    }
}

impl Geometry {
    /// Checks the bounds given at the fields.
    ///
    /// # Errors
    /// [`Corrupt::Geometry`].
    pub fn check(&self) -> Result<(), Corrupt> {
        let two = |value: u32, min: u32, max: u32| value.is_power_of_two() && (min..=max).contains(&value);
        let arena = self.arena_bytes > 0 && self.arena_bytes <= 1 << 30 && (self.arena_bytes as usize).is_multiple_of(PAGE);
        if two(self.slots, 8, 4096) && arena && two(self.trace_cells, 64, 65536) { Ok(()) } else { Err(Corrupt::Geometry) }
    }

    /// Length of the whole region in bytes.
    pub const fn region_bytes(&self) -> usize {
        self.arena() + self.arena_bytes as usize
    }

    pub(crate) const fn ring_cell(&self, ticket: u32) -> usize {
        AT_RING + (ticket & (self.slots - 1)) as usize * 4
    }

    pub(crate) const fn slot(&self, slot: u32) -> usize {
        self.slots_at() + slot as usize * SLOT_BYTES
    }

    pub(crate) const fn trace_tail(&self) -> usize {
        (self.slots_at() + self.slots as usize * SLOT_BYTES).next_multiple_of(PAGE)
    }

    pub(crate) const fn trace_cell(&self, ticket: u64) -> usize {
        self.trace_tail() + PAGE + (ticket & (self.trace_cells as u64 - 1)) as usize * TRACE_CELL_BYTES
    }

    pub(crate) const fn arena(&self) -> usize {
        self.trace_tail() + PAGE + self.trace_cells as usize * TRACE_CELL_BYTES
    }

    const fn slots_at(&self) -> usize {
        (AT_RING + self.slots as usize * 4).next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_without_overlap() {
        for slots in [8, 256, 4096] {
            let g = Geometry { slots, ..Geometry::default() };
            g.check().unwrap();
            assert!(g.ring_cell(slots - 1) + 4 <= g.slot(0));
            assert_eq!(g.ring_cell(slots), g.ring_cell(0), "the ring wraps");
            assert!(g.slot(slots - 1) + SLOT_BYTES <= g.trace_tail());
            assert!(g.trace_tail() + 8 <= g.trace_cell(0));
            assert!(g.trace_cell(u64::from(g.trace_cells) - 1) + TRACE_CELL_BYTES <= g.arena());
            assert!(g.slot(1).is_multiple_of(64) && g.arena().is_multiple_of(64));
        }
    }

    #[test]
    fn silly_sizes_are_refused() {
        let fine = Geometry::default();
        for bad in [
            Geometry { slots: 0, ..fine },
            Geometry { slots: 100, ..fine },
            Geometry { slots: 8192, ..fine },
            Geometry { arena_bytes: 0, ..fine },
            Geometry { arena_bytes: 5000, ..fine },
            Geometry { arena_bytes: u32::MAX, ..fine },
            Geometry { trace_cells: 3, ..fine },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
