//! Attributes as the kernel has them.

use crate::open::OpenFile;
use fuser::{FileAttr, FileType, INodeNo};
use rustix::fs::{FileType as LowerType, Stat, Timespec};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kind of an entry.
pub(crate) fn kind(lower: LowerType) -> FileType {
    match lower {
        LowerType::Directory => FileType::Directory,
        LowerType::Symlink => FileType::Symlink,
        LowerType::Fifo => FileType::NamedPipe,
        LowerType::Socket => FileType::Socket,
        LowerType::CharacterDevice => FileType::CharDevice,
        LowerType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanos: u32) -> SystemTime {
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, nanos),
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + Duration::from_nanos(nanos.into()),
    }
}

/// What the kernel is told of a node: the lower one's attributes, and the length of its text.
pub(crate) fn attributes(ino: u64, stat: &Stat, size: u64, open: Option<&OpenFile>) -> FileAttr {
    let modified = match open.and_then(OpenFile::modified) {
        Some(Timespec { tv_sec, tv_nsec }) => time(tv_sec, tv_nsec as u32),
        None => time(stat.st_mtime, stat.st_mtime_nsec as u32),
    };
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec as u32),
        mtime: modified,
        ctime: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        crtime: UNIX_EPOCH,
        kind: kind(LowerType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: device_number(stat.st_rdev),
        blksize: 1 << 16,
        flags: 0,
    }
}

/// A device's number as the kernel's messages have it, in 32 bits.
fn device_number(device: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// The device for a number of the kernel's messages.
pub(crate) fn device(number: u32) -> u64 {
    rustix::fs::makedev(number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00)
}
