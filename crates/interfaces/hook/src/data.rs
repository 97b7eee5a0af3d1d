//! Calls that read and write a file's text.

use crate::file::{File, Text};
use crate::memory::{Memory, PIECE, Range, cut, with_buffer};
use crate::refuse::{Outcome, refused};
use crate::server::Server;
use bywash_stopped::listener::Notification;
use rustix::io::Errno;

/// Where a call reads or writes.
#[derive(Clone, Copy)]
enum Offset {
    /// At the file's own, which it moves.
    Own,
    At(i64),
}

impl Server {
    /// The read and write family; none for any other call. Gives how many bytes were moved.
    pub(crate) fn move_bytes(&self, call: &Notification, memory: &Memory<'_>, file: &File) -> Outcome<Option<i64>> {
        let [_, second, third, fourth, _, sixth] = call.arguments;
        let one = || cut(core::iter::once(Range { address: second, length: third }));
        let many = || memory.ranges(second, third & 0xffff_ffff);
        let reads = match call.call {
            libc::SYS_read => (one(), Offset::Own),
            libc::SYS_pread64 => (one(), Offset::At(fourth as i64)),
            libc::SYS_readv => (many()?, Offset::Own),
            libc::SYS_preadv => (many()?, Offset::At(fourth as i64)),
            libc::SYS_preadv2 => (many()?, own_if(fourth, sixth)?),
            _ => {
                let writes = match call.call {
                    libc::SYS_write => (one(), Offset::Own),
                    libc::SYS_pwrite64 => (one(), Offset::At(fourth as i64)),
                    libc::SYS_writev => (many()?, Offset::Own),
                    libc::SYS_pwritev => (many()?, Offset::At(fourth as i64)),
                    libc::SYS_pwritev2 => (many()?, own_if(fourth, sixth)?),
                    _ => return Ok(None),
                };
                return self.write(memory, file, &writes.0, writes.1).map(Some);
            }
        };
        self.read(memory, file, &reads.0, reads.1).map(Some)
    }

    fn read(&self, memory: &Memory<'_>, file: &File, ranges: &[Range], offset: Offset) -> Outcome<i64> {
        let text = file.as_text()?;
        if !file.reads() {
            return Err(Errno::BADF.into());
        }
        with_offset(text, offset, |at| {
            moved(ranges, |range, length| {
                with_buffer(length, |buffer| {
                    let read = text.open.read_at(buffer, *at)?;
                    memory.write(range.address, &buffer[..read])?;
                    *at += read as u64;
                    Ok(read)
                })
            })
        })
    }

    fn write(&self, memory: &Memory<'_>, file: &File, ranges: &[Range], offset: Offset) -> Outcome<i64> {
        let text = file.as_text().map_err(|_| Errno::BADF)?;
        if !file.writes() {
            return Err(Errno::BADF.into());
        }
        let appends = file.appends();
        let written = with_offset(text, offset, |at| {
            // One call is one append, of however many pieces: who reads lines that several programs put there finds them whole.
            let _appending = appends.then(|| text.open.appends());
            moved(ranges, |range, length| {
                with_buffer(length, |buffer| {
                    memory.read(range.address, buffer)?;
                    // Only now is it sure that these are the program's bytes.
                    memory.check()?;
                    if appends {
                        *at = self.volume.append(&text.open, buffer)?;
                    } else {
                        i64::try_from(at.saturating_add(length as u64)).map_err(|_| Errno::FBIG)?;
                        text.open.write_at(buffer, *at)?;
                        *at += length as u64;
                    }
                    Ok(length)
                })
            })
        })?;
        if file.syncs() && written > 0 {
            text.open.sync()?;
        }
        Ok(written)
    }

    /// `lseek` of a regular file.
    pub(crate) fn seek(&self, text: &Text, by: i64, whence: i32) -> Outcome<i64> {
        let mut offset = text.offset();
        let len = || text.open.len().map(|len| len as i64);
        let wanted = match whence {
            libc::SEEK_SET => Some(by),
            libc::SEEK_CUR => (*offset as i64).checked_add(by),
            libc::SEEK_END => len()?.checked_add(by),
            // There are no holes: all is data up to the end.
            libc::SEEK_DATA | libc::SEEK_HOLE if by < 0 || by >= len()? => return Err(Errno::NXIO.into()),
            libc::SEEK_DATA => Some(by),
            libc::SEEK_HOLE => Some(len()?),
            _ => None,
        };
        let wanted = wanted.filter(|wanted| *wanted >= 0).ok_or(Errno::INVAL)?;
        *offset = wanted as u64;
        Ok(wanted)
    }
}

/// The offset of preadv2 and pwritev2, of which -1 means the file's own.
fn own_if(offset: u64, flags: u64) -> Outcome<Offset> {
    if flags != 0 {
        return refused(Errno::OPNOTSUPP, "flags of a read or write");
    }
    Ok(if offset == u64::MAX { Offset::Own } else { Offset::At(offset as i64) })
}

fn with_offset(text: &Text, offset: Offset, work: impl FnOnce(&mut u64) -> Outcome<i64>) -> Outcome<i64> {
    match offset {
        Offset::Own => work(&mut text.offset()),
        Offset::At(at) => work(&mut u64::try_from(at).map_err(|_| Errno::INVAL)?),
    }
}

/// Piece after piece; what was moved before an error counts, and the error is heard of the next time.
fn moved(ranges: &[Range], mut piece: impl FnMut(Range, usize) -> Outcome<usize>) -> Outcome<i64> {
    let mut moved = 0;
    for range in ranges {
        let mut done = 0;
        while done < range.length {
            let length = (range.length - done).min(PIECE as u64) as usize;
            let part = Range { address: range.address.checked_add(done).ok_or(Errno::FAULT)?, length: length as u64 };
            match piece(part, length) {
                Ok(count) => {
                    done += count as u64;
                    moved += count as i64;
                    if count < length {
                        return Ok(moved);
                    }
                }
                Err(_) if moved > 0 => return Ok(moved),
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(moved)
}
