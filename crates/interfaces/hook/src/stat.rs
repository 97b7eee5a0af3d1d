//! `struct stat`, `struct statx` and `struct statfs`, as the program's memory has them.

use bywash_mount::direct::{Direct, Status};
use std::time::{SystemTime, UNIX_EPOCH};

/// What programs should read and write at a time, in bytes.
const BLOCK_BYTES: u32 = 1 << 18;
/// `STATX_BASIC_STATS`
const BASIC: u32 = 0x7ff;

/// Seconds and nanoseconds since 1970.
fn time(time: SystemTime) -> (i64, i64) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos().into()),
        Err(before) => {
            let before = before.duration();
            let (seconds, nanos) = (before.as_secs() as i64, i64::from(before.subsec_nanos()));
            if nanos == 0 { (-seconds, 0) } else { (-seconds - 1, 1_000_000_000 - nanos) }
        }
    }
}

/// `struct stat`
pub(crate) fn stat(status: &Status, volume: &Direct) -> Vec<u8> {
    // SAFETY: zeros are a value of this structure of integers.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    stat.st_dev = volume.device();
    stat.st_ino = volume.shown_number(status.ino);
    stat.st_mode = status.mode;
    stat.st_nlink = status.nlink as _;
    stat.st_uid = status.uid;
    stat.st_gid = status.gid;
    stat.st_size = status.size as i64;
    stat.st_blksize = BLOCK_BYTES as _;
    stat.st_blocks = status.blocks as i64;
    (stat.st_atime, stat.st_atime_nsec) = time(status.accessed);
    (stat.st_mtime, stat.st_mtime_nsec) = time(status.modified);
    (stat.st_ctime, stat.st_ctime_nsec) = time(status.changed);
    bytes_of(&stat)
}

/// `struct statx`
pub(crate) fn statx(status: &Status, volume: &Direct) -> Vec<u8> {
    // SAFETY: zeros are a value of this structure of integers.
    let mut stat: libc::statx = unsafe { core::mem::zeroed() };
    stat.stx_mask = BASIC;
    stat.stx_blksize = BLOCK_BYTES;
    stat.stx_nlink = status.nlink;
    stat.stx_uid = status.uid;
    stat.stx_gid = status.gid;
    stat.stx_mode = status.mode as u16;
    stat.stx_ino = volume.shown_number(status.ino);
    stat.stx_size = status.size;
    stat.stx_blocks = status.blocks;
    let of = |at| {
        let (seconds, nanos) = time(at);
        (seconds, nanos as u32)
    };
    (stat.stx_atime.tv_sec, stat.stx_atime.tv_nsec) = of(status.accessed);
    (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec) = of(status.modified);
    (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec) = of(status.changed);
    stat.stx_dev_major = rustix::fs::major(volume.device());
    stat.stx_dev_minor = rustix::fs::minor(volume.device());
    bytes_of(&stat)
}

/// `struct statfs`
pub(crate) fn statfs(lower: &rustix::fs::StatVfs) -> Vec<u8> {
    /// `FUSE_SUPER_MAGIC`: what a mount of the volume is.
    const KIND: u32 = 0x6573_5546;
    // SAFETY: zeros are a value of this structure of integers.
    let mut room: libc::statfs = unsafe { core::mem::zeroed() };
    room.f_type = KIND as _;
    (room.f_bsize, room.f_frsize) = (lower.f_bsize as _, lower.f_frsize as _);
    (room.f_blocks, room.f_bfree, room.f_bavail) = (lower.f_blocks, lower.f_bfree, lower.f_bavail);
    (room.f_files, room.f_ffree) = (lower.f_files, lower.f_ffree);
    room.f_namelen = 255;
    bytes_of(&room)
}

fn bytes_of<T>(value: &T) -> Vec<u8> {
    // SAFETY: the structures above were zeroed as a whole, so that every byte of them has a value, and they outlive the slice, which is copied.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }.to_vec()
}
