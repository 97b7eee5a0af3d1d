//! What a crash left of a file that was written in place.

use crate::disk::{Access, Disk, Journals};
use crate::error::Result;
use crate::header::Header;
use crate::journal;
use crate::kdf::FileKeys;
use std::io;

/// After a crash: what the journal holds goes into the file as it is, what was appended without a record goes out of it, and the journal is removed.
/// Done as often as it is interrupted. Whether there was a record to go by, which there is only of a file that was once complete on the disk.
///
/// # Errors
/// `ResourceBusy` if somebody has the file open (see [`Disk::lock`], as for all that opens containers). The operating system's; [`DamagedHeader`](crate::Error::DamagedHeader) for a journal that contradicts itself.
pub fn recover(header: &Header, keys: &FileKeys, disk: &dyn Disk, journals: &dyn Journals) -> Result<bool> {
    disk.lock(Access::Write)?;
    let Some(journal) = journal::of(header, journals, Access::Write)? else { return Ok(false) };
    let geometry = header.geometry();
    let recovered = journal::read(&*journal, keys, &geometry)?;
    if let Some(recovered) = &recovered {
        // It must outlive the chunks that are overwritten now.
        let durable = recovered.make_durable(&*journal);
        durable.map_err(|error| io::Error::new(error.kind(), format!("its journal cannot be written again: {error}")))?;
        for (chunk, stored) in recovered.chunks() {
            disk.write_at(stored, geometry.offset(chunk))?;
        }
        disk.set_len(geometry.file_len(recovered.len))?;
        disk.sync()?;
    }
    journals.remove(header.salt())?;
    Ok(recovered.is_some())
}

/// Whether a journal that a crash left says what a file is to be: one that does not was never used.
///
/// # Errors
/// As [`recover`]; nothing is changed.
pub fn is_changed_by_journal(header: &Header, keys: &FileKeys, journals: &dyn Journals) -> Result<bool> {
    let Some(journal) = journal::of(header, journals, Access::Read)? else { return Ok(false) };
    Ok(journal::read(&*journal, keys, &header.geometry())?.is_some())
}
