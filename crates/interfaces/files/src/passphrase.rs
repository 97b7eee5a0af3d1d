//! Passphrases from descriptors, and keys from passphrases: Argon2id (RFC 9106), its parameters in the slot and bounded when read.

use crate::error::{Error, Result};
use crate::kdf::KEY_BYTES;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use bywash_core::SecretBytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::io;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a passphrase slot's body.
pub(crate) const BODY_BYTES: usize = 28;
/// Most memory that a slot may ask for, in KiB: 1 GiB.
pub const MEMORY_KIB_MAX: u32 = 1 << 20;
/// Most memory times passes that a slot may ask for, and all slots of a file together, in KiB: some 10 s of a processor.
pub const WORK_KIB_MAX: u64 = 1 << 23;
/// Most lanes.
pub const LANES_MAX: u32 = 64;
/// Longest passphrase read from a descriptor, in bytes.
pub const LINE_BYTES_MAX: usize = 256 << 10;

/// What deriving a key from a passphrase costs. RFC 9106 s4 recommends the default where 2 GiB are too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    fn default() -> Self {
        Self { memory_kib: 64 << 10, passes: 3, lanes: 4 }
    }
}

impl Argon2Cost {
    /// Memory times passes, in KiB.
    fn work(self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    /// # Errors
    /// [`Error::BadKey`] for what is beyond the bounds of this module or the algorithm.
    fn params(self) -> Result<Params> {
        let Self { memory_kib, passes, lanes } = self;
        let work = self.work();
        let what = || {
            format!(
                "its passphrase slot asks for Argon2id with {memory_kib} KiB, {passes} passes and {lanes} lanes, beyond what is allowed"
            )
        };
        if memory_kib > MEMORY_KIB_MAX || work > WORK_KIB_MAX || lanes > LANES_MAX {
            return Err(Error::BadKey { what: what() });
        }
        Params::new(memory_kib, passes, lanes, Some(KEY_BYTES)).map_err(|_| Error::BadKey { what: what() })
    }
}

/// A slot's body: salt, memory in KiB, passes, lanes.
pub(crate) fn body(salt: &[u8; 16], cost: Argon2Cost) -> Vec<u8> {
    let numbers = [cost.memory_kib, cost.passes, cost.lanes].map(u32::to_le_bytes);
    [&salt[..], numbers.as_flattened()].concat()
}

/// What a slot's body asks for.
pub(crate) fn cost(body: &[u8]) -> Result<Argon2Cost> {
    if body.len() != BODY_BYTES {
        return Err(Error::DamagedHeader { what: "a passphrase slot's length cannot be" });
    }
    let number = |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    Ok(Argon2Cost { memory_kib: number(16), passes: number(20), lanes: number(24) })
}

/// What the passphrase slots of one file may cost together: a stranger's header has room for many.
#[derive(Default)]
pub(crate) struct Budget(u64);

impl Budget {
    /// Takes the cost of a slot with that body from it.
    ///
    /// # Errors
    /// [`Error::BadKey`] if that is too much; [`Error::DamagedHeader`] for a body that cannot be.
    pub(crate) fn spend(&mut self, body: &[u8]) -> Result<()> {
        self.0 = self.0.saturating_add(cost(body)?.work());
        match self.0 <= WORK_KIB_MAX {
            true => Ok(()),
            false => Err(Error::BadKey {
                what: "its passphrase slots together ask for more of Argon2id than is allowed; use fewer, or less memory".into(),
            }),
        }
    }
}

/// The key-encryption key for a passphrase and a slot's body.
pub(crate) fn derive(passphrase: &[u8], body: &[u8]) -> Result<SecretBytes> {
    let cost = cost(body)?;
    let params = cost.params()?;
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(params.block_count()).map_err(|_| {
        let what =
            format!("there is no memory for the {} KiB that its passphrase slot asks for; free some, or use another key", cost.memory_kib);
        Error::BadKey { what }
    })?;
    blocks.resize(params.block_count(), Block::default());
    let mut key = SecretBytes::zeroed(KEY_BYTES);
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let derived = argon.hash_password_into_with_memory(passphrase, &body[..16], &mut key, &mut blocks[..]);
    blocks.iter_mut().for_each(Zeroize::zeroize);
    derived.map_err(|error| Error::BadKey { what: format!("the passphrase cannot be used ({error}); it has at most 4 GiB") })?;
    Ok(key)
}

/// A second descriptor of what a descriptor is of that this process was started with: the two read on from one another. No program that is started from here inherits
/// either, but for the standard ones, which it is to have.
///
/// # Errors
/// `EBADF` if there is none; the operating system's.
#[allow(unsafe_code)]
pub fn inherited(number: u32) -> io::Result<OwnedFd> {
    let number = i32::try_from(number).map_err(|_| Errno::BADF)?;
    // SAFETY: it is not -1, and is given to the kernel alone, which says so where nothing is open under the number.
    let named = unsafe { BorrowedFd::borrow_raw(number) };
    let taken = fcntl_dupfd_cloexec(named, 3)?;
    if number > 2 {
        fcntl_setfd(named, FdFlags::CLOEXEC)?;
    }
    Ok(taken)
}

/// What comes next, up to the end of the line, which is not part of it. Nothing behind that is read: it is for others.
///
/// # Errors
/// For a line that is too long; the operating system's.
pub fn first_line(from: impl AsFd) -> io::Result<SecretBytes> {
    // All the room at once: a vector that grows leaves copies behind.
    let (mut line, mut byte) = (Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX)), Zeroizing::new([0]));
    loop {
        match rustix::io::read(&from, &mut byte[..]) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == LINE_BYTES_MAX => return Err(io::Error::other("the line is too long for a passphrase")),
            Ok(_) => line.push(byte[0]),
            Err(Errno::INTR) => {}
            // Whoever has it too may have it such that nobody waits.
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&from, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(line.strip_suffix(b"\r").unwrap_or(&line).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    fn taken(of: &impl AsRawFd) -> OwnedFd {
        inherited(of.as_raw_fd().try_into().unwrap()).unwrap()
    }

    #[test]
    fn a_line_is_read_from_where_a_descriptor_stands_and_what_follows_is_left() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"name\nreal secret\r\nrest").unwrap();
        file.seek(io::SeekFrom::Start(5)).unwrap();
        assert_eq!(first_line(taken(&file)).unwrap(), SecretBytes::from(b"real secret"));
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "rest");
        assert!(first_line(taken(&file)).unwrap().is_empty());
        assert_eq!(inherited(u32::MAX).unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
        assert_eq!(inherited(1_000_000).unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
    }

    #[test]
    fn a_line_of_a_socket_is_waited_for_and_one_without_an_end_is_refused() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        reader.set_nonblocking(true).unwrap();
        let line = std::thread::scope(|scope| {
            let read = scope.spawn(|| first_line(taken(&reader)));
            writer.write_all(b"sec").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            writer.write_all(b"ret\nrest").unwrap();
            read.join().unwrap()
        });
        assert_eq!(line.unwrap(), SecretBytes::from(b"secret"));
        let mut endless = tempfile::tempfile().unwrap();
        endless.write_all(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
        endless.rewind().unwrap();
        assert!(first_line(&endless).unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn costs_beyond_the_bounds_are_refused_before_anything_is_computed() {
        let cost = Argon2Cost::default();
        for cost in [
            Argon2Cost { memory_kib: u32::MAX, ..cost },
            Argon2Cost { passes: u32::MAX, ..cost },
            Argon2Cost { passes: 0, ..cost },
            Argon2Cost { lanes: 65, ..cost },
            Argon2Cost { lanes: 0, ..cost },
            Argon2Cost { memory_kib: 8, lanes: 2, passes: 1 },
        ] {
            assert!(matches!(derive(b"p", &body(&[0; 16], cost)), Err(Error::BadKey { .. })), "{cost:?}");
        }
        assert!(matches!(derive(b"p", &[0; 27]), Err(Error::DamagedHeader { .. })));
    }

    #[test]
    fn passphrase_salt_and_cost_each_matter() {
        let cost = Argon2Cost { memory_kib: 32, passes: 1, lanes: 1 };
        let key = |passphrase, salt, cost| derive(passphrase, &body(&[salt; 16], cost)).unwrap();
        let first = key(b"a", 0, cost);
        assert_eq!(first, key(b"a", 0, cost));
        for other in [key(b"b", 0, cost), key(b"a", 1, cost), key(b"a", 0, Argon2Cost { passes: 2, ..cost })] {
            assert_ne!(first, other);
        }
    }
}
