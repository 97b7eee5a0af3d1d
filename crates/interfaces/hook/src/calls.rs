//! Calls on a descriptor of ours that neither move bytes nor are about its number.

use crate::file::{File, Folder, What};
use crate::memory::Memory;
use crate::refuse::{Outcome, refused};
use crate::server::Server;
use crate::stat::{stat, statfs};
use bywash_mount::direct::Reference;
use bywash_stopped::listener::Notification;
use rustix::io::Errno;

/// Most bytes that one reading of a folder gives.
const FOLDER_BYTES_MAX: usize = 1 << 16;

impl Server {
    /// Gives what the call returns. What is not known here is refused: nothing passes through to the stand-in.
    pub(crate) fn file_call(&self, call: &Notification, memory: &Memory<'_>, file: &File) -> Outcome<i64> {
        let [_, second, third, fourth, ..] = call.arguments;
        match call.call {
            // What was opened with O_PATH may be looked at.
            other if matches!(file.what, What::Link(_)) && !is_look(other) => Err(Errno::BADF.into()),
            libc::SYS_lseek => match &file.what {
                What::Folder(folder) => seek_folder(folder, second as i64, third as i32),
                _ => self.seek(file.as_text()?, second as i64, third as i32),
            },
            libc::SYS_fstat => {
                memory.write(second, &stat(&file.status(&self.volume)?, &self.volume))?;
                Ok(0)
            }
            libc::SYS_fstatfs => {
                memory.write(second, &statfs(&self.volume.statistics()?))?;
                Ok(0)
            }
            libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs | libc::SYS_sync_file_range => {
                match &file.what {
                    What::Folder(folder) => self.volume.sync_folder(folder.ino())?,
                    _ => file.as_text()?.open.sync()?,
                }
                Ok(0)
            }
            libc::SYS_ftruncate => {
                file.as_text().map_err(|_| Errno::INVAL)?;
                if !file.writes() {
                    return Err(Errno::INVAL.into());
                }
                self.volume.set_len(file.ino(), u64::try_from(second as i64).map_err(|_| Errno::INVAL)?)?;
                Ok(0)
            }
            libc::SYS_fallocate => self.allocate(file, second as i32, third as i64, fourth as i64),
            libc::SYS_getdents64 => self.read_folder(memory, file, second, (third & 0xffff_ffff) as usize),
            libc::SYS_fchmod => self.volume.set_mode(file.ino(), second as u32).map(|()| 0).map_err(Into::into),
            libc::SYS_fchown => self.set_owner(file.ino(), second, third).map(|()| 0),
            libc::SYS_shutdown => Err(Errno::NOTSOCK.into()),
            // Advice.
            libc::SYS_fadvise64 | libc::SYS_readahead => Ok(0),
            // As file systems without them say.
            libc::SYS_fgetxattr | libc::SYS_flistxattr | libc::SYS_fremovexattr => Err(Errno::OPNOTSUPP.into()),
            libc::SYS_fsetxattr => no_attribute(memory, second),
            libc::SYS_fchdir => match &file.what {
                What::Folder(folder) => self.enter(call, &folder.itself),
                _ => Err(Errno::NOTDIR.into()),
            },
            libc::SYS_execveat => refused(Errno::ACCESS, "programs in a volume cannot be started"),
            _ => refused(Errno::OPNOTSUPP, "this call is not known"),
        }
    }

    /// The working folder is the kernel's to know, and it knows of the volume its own folder only.
    pub(crate) fn enter(&self, call: &Notification, folder: &Reference) -> Outcome<i64> {
        let is_there = std::fs::read_link(format!("/proc/{}/cwd", call.thread)).is_ok_and(|now| now == self.root.now());
        match folder.is_root() && is_there {
            true => Ok(0),
            false => refused(Errno::ACCESS, "folders in a volume cannot be entered, but the volume's own by its path"),
        }
    }

    /// Room cannot be had in advance; the length can.
    fn allocate(&self, file: &File, mode: i32, offset: i64, length: i64) -> Outcome<i64> {
        let text = file.as_text()?;
        if !file.writes() {
            return Err(Errno::BADF.into());
        } else if mode != 0 {
            return Err(Errno::OPNOTSUPP.into());
        }
        let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
        if offset < 0 || length <= 0 {
            return Err(Errno::INVAL.into());
        }
        self.volume.extend(&text.open, end as u64)?;
        Ok(0)
    }

    pub(crate) fn set_owner(&self, ino: u64, uid: u64, gid: u64) -> Outcome<()> {
        let asked = |id: u64| (id as u32 != u32::MAX).then_some(id as u32);
        Ok(self.volume.set_owner(ino, asked(uid), asked(gid))?)
    }

    /// `struct linux_dirent64`, one after the other.
    fn read_folder(&self, memory: &Memory<'_>, file: &File, address: u64, room: usize) -> Outcome<i64> {
        let What::Folder(folder) = &file.what else { return Err(Errno::NOTDIR.into()) };
        let mut reading = folder.reading();
        if reading.entries.is_none() {
            let above = self.volume.parent(&folder.itself)?.map_or(folder.ino(), |above| above.ino());
            let own = |name: &[u8], ino| (name.to_vec(), self.volume.shown_number(ino), libc::DT_DIR);
            let mut entries = vec![own(b".", folder.ino()), own(b"..", above)];
            entries.extend(self.volume.list(folder.ino())?);
            reading.entries = Some(entries);
        }
        let room = room.min(FOLDER_BYTES_MAX);
        let (mut bytes, mut at) = (Vec::new(), reading.at);
        for (name, ino, kind) in reading.entries.iter().flatten().skip(at) {
            // Number, next place, length of this record, kind, name with a zero.
            let length = (19 + name.len() + 1).next_multiple_of(8);
            if bytes.len() + length > room {
                break;
            }
            at += 1;
            let end = bytes.len() + length;
            bytes.extend_from_slice(&ino.to_ne_bytes());
            bytes.extend_from_slice(&(at as u64).to_ne_bytes());
            bytes.extend_from_slice(&(length as u16).to_ne_bytes());
            bytes.push(*kind);
            bytes.extend_from_slice(name);
            bytes.resize(end, 0);
        }
        if bytes.is_empty() && at < reading.entries.as_ref().map_or(0, Vec::len) {
            return Err(Errno::INVAL.into());
        }
        memory.write(address, &bytes)?;
        reading.at = at;
        Ok(bytes.len() as i64)
    }
}

fn is_look(call: i64) -> bool {
    matches!(call, libc::SYS_fstat | libc::SYS_fstatfs | libc::SYS_fchdir)
}

/// Attributes of the kernel's own, access control lists for one, are not kept, as by file systems without them; programs look. Those of a user would be lost.
pub(crate) fn no_attribute<T>(memory: &Memory<'_>, name: u64) -> Outcome<T> {
    match memory.path(name)?.starts_with(b"user.") {
        true => refused(Errno::OPNOTSUPP, "extended attributes"),
        false => Err(Errno::OPNOTSUPP.into()),
    }
}

fn seek_folder(folder: &Folder, to: i64, whence: i32) -> Outcome<i64> {
    let mut reading = folder.reading();
    match whence {
        libc::SEEK_SET if to == 0 => (reading.entries, reading.at) = (None, 0),
        libc::SEEK_SET => reading.at = usize::try_from(to).map_err(|_| Errno::INVAL)?,
        libc::SEEK_CUR if to == 0 => {}
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(reading.at as i64)
}
