//! The messages of `/dev/cuse`, byte by byte, as in `linux/fuse.h` (protocol 7). Numbers are in the machine's own order.

/// The protocol's major version.
pub const MAJOR: u32 = 7;
/// The oldest minor version whose messages are these: from 7.16 on the ranges of a retry are 64-bit.
pub const MINOR_MIN: u32 = 16;
/// The minor version that is answered.
pub const MINOR: u32 = 31;

/// Opcode: a file is opened.
pub const OPEN: u32 = 14;
/// Opcode: the last copy of a file is closed.
pub const RELEASE: u32 = 18;
/// Opcode: a request that waits has been interrupted.
pub const INTERRUPT: u32 = 36;
/// Opcode: a request to the device.
pub const IOCTL: u32 = 39;
/// Opcode: poll.
pub const POLL: u32 = 40;
/// Opcode: the first message.
pub const CUSE_INIT: u32 = 4096;

/// [`CUSE_INIT`]: requests need not say in their number how long their argument is, and may be sent again.
pub const UNRESTRICTED_IOCTL: u32 = 1;
/// [`IOCTL`]: of a 32-bit program.
pub const IOCTL_COMPAT: u32 = 1;
/// [`IOCTL`]: may be sent again.
pub const IOCTL_UNRESTRICTED: u32 = 2;
/// [`IOCTL`], answered: send again, with these ranges.
pub const IOCTL_RETRY: u32 = 4;
/// At most so many ranges in one answer.
pub const IOCTL_MAX_IOV: usize = 256;
/// [`POLL`]: tell when it changes.
pub const POLL_SCHEDULE_NOTIFY: u32 = 1;
/// What a message without a question says in the place of an error: poll has changed.
pub const NOTIFY_POLL: i32 = 1;

/// Most that an ioctl message carries either way, bytes (32 pages).
pub const DATA_MAX: usize = 128 << 10;

/// Bytes of the header of a message from the kernel.
pub const IN_HEADER: usize = 40;
/// Bytes of the header of a message to the kernel.
pub const OUT_HEADER: usize = 16;
/// Bytes of the fixed part of [`IOCTL`].
pub const IOCTL_IN: usize = 32;

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is about.
    pub opcode: u32,
    /// Its answer has this number.
    pub unique: u64,
    /// Whose thread it is. Of [`RELEASE`] it says nothing.
    pub uid: u32,
    /// The thread that waits.
    pub thread: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The fixed part of [`IOCTL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl<'a> {
    /// The file.
    pub fh: u64,
    /// `IOCTL_` bits.
    pub flags: u32,
    /// The request's number.
    pub request: u32,
    /// Its argument.
    pub argument: u64,
    /// How many bytes may be written to the ranges that were asked for.
    pub out_size: u32,
    /// What was read from the ranges that were asked for, one after the other.
    pub data: &'a [u8],
}

/// The fixed part of [`POLL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The file.
    pub fh: u64,
    /// By what the kernel wants to be told.
    pub kh: u64,
    /// [`POLL_SCHEDULE_NOTIFY`].
    pub flags: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl<'a> Message<'a> {
    /// Reads a message: `len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding`.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let length = u32_at(bytes, 0)? as usize;
        Some(Self {
            opcode: u32_at(bytes, 4)?,
            unique: u64_at(bytes, 8)?,
            uid: u32_at(bytes, 24)?,
            thread: u32_at(bytes, 32)?,
            body: bytes.get(IN_HEADER..length)?,
        })
    }
}

impl<'a> Ioctl<'a> {
    /// Reads `fh, flags, cmd, arg, in_size, out_size` and what follows.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let in_size = u32_at(body, 24)? as usize;
        Some(Self {
            fh: u64_at(body, 0)?,
            flags: u32_at(body, 8)?,
            request: u32_at(body, 12)?,
            argument: u64_at(body, 16)?,
            out_size: u32_at(body, 28)?,
            data: body.get(IOCTL_IN..)?.get(..in_size)?,
        })
    }
}

impl Poll {
    /// Reads `fh, kh, flags, events`.
    pub fn parse(body: &[u8]) -> Option<Self> {
        Some(Self { fh: u64_at(body, 0)?, kh: u64_at(body, 8)?, flags: u32_at(body, 16)? })
    }
}

/// The kernel's version, from the body of [`CUSE_INIT`]: `major, minor, unused, flags`.
pub fn version(body: &[u8]) -> Option<(u32, u32)> {
    Some((u32_at(body, 0)?, u32_at(body, 4)?))
}

/// The file that [`RELEASE`] is about: `fh, flags, release_flags, lock_owner`.
pub fn released(body: &[u8]) -> Option<u64> {
    u64_at(body, 0)
}

/// Begins a message to the kernel; [`finish`] ends it.
pub fn answer(unique: u64, error: i32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(error.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes
}

/// Writes a message's length into it.
pub fn finish(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Answers [`CUSE_INIT`]: `major, minor, unused, flags, max_read, max_write, dev_major, dev_minor, spare[10]`, and what the device is called.
pub fn init(unique: u64, name: &str) -> Vec<u8> {
    let mut bytes = answer(unique, 0);
    let numbers = [MAJOR, MINOR, 0, UNRESTRICTED_IOCTL, DATA_MAX as u32, DATA_MAX as u32, 0, 0];
    numbers.iter().chain(&[0; 10]).for_each(|number| bytes.extend(number.to_ne_bytes()));
    bytes.extend(b"DEVNAME=");
    bytes.extend(name.as_bytes());
    bytes.push(0);
    finish(bytes)
}

/// Answers [`OPEN`]: `fh, open_flags, padding`.
pub fn opened(unique: u64, fh: u64) -> Vec<u8> {
    let mut bytes = answer(unique, 0);
    bytes.extend(fh.to_ne_bytes());
    bytes.extend([0; 8]);
    finish(bytes)
}

/// Answers [`IOCTL`] with its result: `result, flags, in_iovs, out_iovs`, and what is written to the ranges that were asked for.
pub fn done(unique: u64, result: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = answer(unique, 0);
    // Room for all at once: growing would leave texts behind that nobody wipes.
    bytes.reserve_exact(16 + data.len());
    [result, 0, 0, 0].iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
    bytes.extend(data);
    finish(bytes)
}

/// Answers [`IOCTL`] with ranges, `base, len` each, that it is to come again with: some to read, some to write.
pub fn again(unique: u64, reads: &[(u64, u64)], writes: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = answer(unique, 0);
    [0, IOCTL_RETRY, reads.len() as u32, writes.len() as u32].iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
    for (base, length) in reads.iter().chain(writes) {
        bytes.extend(base.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
    }
    finish(bytes)
}

/// Answers [`POLL`]: `revents, padding`.
pub fn polled(unique: u64, events: u32) -> Vec<u8> {
    let mut bytes = answer(unique, 0);
    bytes.extend(events.to_ne_bytes());
    bytes.extend([0; 4]);
    finish(bytes)
}

/// Tells that poll has changed: `kh`.
pub fn poll_changed(kh: u64) -> Vec<u8> {
    let mut bytes = answer(0, NOTIFY_POLL);
    bytes.extend(kh.to_ne_bytes());
    finish(bytes)
}
