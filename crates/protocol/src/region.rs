//! A client's region: made and sealed by the broker, checked and mapped by the client.

use crate::descriptor::Corrupt;
use crate::layout::{AT_ARENA_BYTES, AT_MAGIC, AT_SLOTS, AT_TRACE_CELLS, AT_VERSION, Geometry, LAYOUT_VERSION, MAGIC};
use crate::mapping::{Access, Mapping};
use bywash_core::{Error, Result};
use core::sync::atomic::Ordering::Relaxed;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;

/// Seals without which a mapping could be pulled from under its user.
const FIXED_SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapped region and the sizes that it was made with, kept outside of it.
pub struct Region {
    pub(crate) map: Mapping,
    pub(crate) geometry: Geometry,
}

impl Region {
    /// Broker: makes, seals and maps a region; the descriptor is for the client.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with what the kernel said.
    pub fn create(geometry: Geometry) -> Result<(Self, OwnedFd)> {
        geometry.check().map_err(unusable)?;
        let (map, file) = sealed("bywash-region", geometry.region_bytes(), SealFlags::empty())?;
        for (at, value) in [
            (AT_MAGIC, MAGIC),
            (AT_VERSION, LAYOUT_VERSION),
            (AT_SLOTS, geometry.slots),
            (AT_ARENA_BYTES, geometry.arena_bytes),
            (AT_TRACE_CELLS, geometry.trace_cells),
        ] {
            map.u32_at(at).store(value, Relaxed);
        }
        Ok((Self { map, geometry }, file))
    }

    /// Client: checks seals, size and header of a region received, and maps it.
    ///
    /// # Errors
    /// [`Error::Unavailable`], naming what does not fit.
    pub fn open(file: impl AsFd) -> Result<Self> {
        let len = check_sealed(&file, "region")?;
        if len < 4096 {
            return Err(unusable("it is too short"));
        }
        let header = Mapping::of_file(&file, 4096, Access::ReadOnly).map_err(|error| failed("map the region's header", error))?;
        let word = |at| header.u32_at(at).load(Relaxed);
        if word(AT_MAGIC) != MAGIC || word(AT_VERSION) != LAYOUT_VERSION {
            return Err(unusable("it is of another version; use client and broker of one release"));
        }
        let geometry = Geometry { slots: word(AT_SLOTS), arena_bytes: word(AT_ARENA_BYTES), trace_cells: word(AT_TRACE_CELLS) };
        geometry.check().map_err(unusable)?;
        if geometry.region_bytes() as u64 != len {
            return Err(unusable(Corrupt::Geometry));
        }
        let map = Mapping::of_file(&file, geometry.region_bytes(), Access::Shared).map_err(|error| failed("map the region", error))?;
        Ok(Self { map, geometry })
    }

    /// The sizes that it was made with.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }
}

/// A mapped memfd of this size that can change its size no more, with further seals added after mapping.
pub(crate) fn sealed(name: &str, bytes: usize, more: SealFlags) -> Result<(Mapping, OwnedFd)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know NOEXEC_SEAL.
    let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        other => other,
    };
    let file = file.map_err(|error| failed("make shared memory", error))?;
    ftruncate(&file, bytes as u64).map_err(|error| failed("size shared memory", error))?;
    let map = Mapping::of_file(&file, bytes, Access::Shared).map_err(|error| failed("map shared memory", error))?;
    fcntl_add_seals(&file, FIXED_SIZE | more).map_err(|error| failed("seal shared memory", error))?;
    Ok((map, file))
}

/// The length of a file that is sealed against changing it.
pub(crate) fn check_sealed(file: impl AsFd, what: &str) -> Result<u64> {
    let seals = fcntl_get_seals(&file).map_err(|error| failed(&format!("read the seals of the {what}"), error))?;
    if !seals.contains(FIXED_SIZE) {
        return Err(unusable(format!("the {what} is not sealed")));
    }
    let stat = fstat(&file).map_err(|error| failed(&format!("read the size of the {what}"), error))?;
    u64::try_from(stat.st_size).map_err(|_| unusable("negative size"))
}

pub(crate) fn failed(what: &str, error: Errno) -> Error {
    Error::Unavailable { what: format!("cannot {what}: {error}") }
}

pub(crate) fn unusable(why: impl core::fmt::Display) -> Error {
    Error::Unavailable { what: format!("the broker's shared memory is unusable: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_opens_with_the_sizes_it_was_made_with() {
        let geometry = Geometry { slots: 16, arena_bytes: 1 << 16, trace_cells: 64 };
        let (_region, file) = Region::create(geometry).unwrap();
        assert_eq!(Region::open(&file).unwrap().geometry(), geometry);
        assert!(ftruncate(&file, 0).is_err(), "sealed");
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err(), "sealed against sealing");
    }

    #[test]
    fn an_unsealed_or_foreign_file_is_refused() {
        let file = memfd_create("foreign", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 1 << 20).unwrap();
        let error = Region::open(&file).err().unwrap().to_string();
        assert!(error.contains("not sealed"), "{error}");
        fcntl_add_seals(&file, FIXED_SIZE).unwrap();
        let error = Region::open(&file).err().unwrap().to_string();
        assert!(error.contains("another version"), "{error}");
        assert!(Region::open(std::fs::File::open("/dev/null").unwrap()).is_err());
    }

    #[test]
    fn a_header_that_promises_too_much_is_refused() {
        let (region, file) = Region::create(Geometry { slots: 8, arena_bytes: 4096, trace_cells: 64 }).unwrap();
        region.map.u32_at(AT_ARENA_BYTES).store(1 << 20, Relaxed);
        assert!(Region::open(&file).is_err());
    }
}
