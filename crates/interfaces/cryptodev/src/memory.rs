//! The memory of the program that asks.

use crate::errno::Errno;
use crate::refusal::Refusal;
use bywash_cryptodev_abi::Layout;

/// The memory of the program that asks, which may be another process, and may change while it is read.
pub trait Memory: Send + Sync {
    /// Copies bytes out of it.
    ///
    /// # Errors
    /// [`Errno::EFAULT`] if not all of them can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno>;

    /// Copies bytes into it.
    ///
    /// # Errors
    /// [`Errno::EFAULT`] if not all of them can be written; some may have been.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno>;
}

/// The program's memory as this crate uses it: nothing is asked for a length of 0, no range wraps around, and what is wrong is said by name.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a>(pub(crate) &'a dyn Memory);

impl Program<'_> {
    /// Reads the argument, or a part of it, that has this layout.
    pub(crate) fn take<T: Layout, const SIZE: usize>(self, address: u64) -> Result<T, Refusal> {
        const { assert!(SIZE == T::SIZE) };
        let mut bytes = [0; SIZE];
        self.read("the argument", address, &mut bytes)?;
        Ok(T::from_bytes(&bytes))
    }

    /// Writes the argument.
    pub(crate) fn give<T: Layout, const SIZE: usize>(self, address: u64, value: &T) -> Result<(), Refusal> {
        const { assert!(SIZE == T::SIZE) };
        let mut bytes = [0; SIZE];
        value.put_bytes(&mut bytes);
        self.write("the argument", address, &bytes)
    }

    pub(crate) fn take_u32(self, address: u64) -> Result<u32, Refusal> {
        let mut bytes = [0; 4];
        self.read("the argument", address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub(crate) fn give_u32(self, address: u64, value: u32) -> Result<(), Refusal> {
        self.write("the argument", address, &value.to_ne_bytes())
    }

    #[inline]
    pub(crate) fn read(self, what: &str, address: u64, into: &mut [u8]) -> Result<(), Refusal> {
        if into.is_empty() {
            return Ok(());
        }
        match in_range(address, into.len()) {
            true => self.0.read(address, into).map_err(|errno| unreachable_memory(errno, what, address, into.len(), "read")),
            false => Err(unreachable_memory(Errno::EFAULT, what, address, into.len(), "read")),
        }
    }

    #[inline]
    pub(crate) fn write(self, what: &str, address: u64, from: &[u8]) -> Result<(), Refusal> {
        if from.is_empty() {
            return Ok(());
        }
        match in_range(address, from.len()) {
            true => self.0.write(address, from).map_err(|errno| unreachable_memory(errno, what, address, from.len(), "written")),
            false => Err(unreachable_memory(Errno::EFAULT, what, address, from.len(), "written")),
        }
    }

    /// Looks whether the first and the last byte can be read, before anything is allocated for what a length claims.
    pub(crate) fn probe(self, what: &str, address: u64, length: usize) -> Result<(), Refusal> {
        if length == 0 {
            return Ok(());
        }
        if !in_range(address, length) {
            return Err(unreachable_memory(Errno::EFAULT, what, address, length, "read"));
        }
        let last = address + (length as u64 - 1);
        self.read(what, last, &mut [0])?;
        self.read(what, address, &mut [0])
    }
}

/// Whether a range lies below the end of the address space and above the null pointer.
fn in_range(address: u64, length: usize) -> bool {
    address != 0 && address.checked_add(length as u64).is_some()
}

#[cold]
fn unreachable_memory(errno: Errno, what: &str, address: u64, length: usize, done: &str) -> Refusal {
    let why = match address {
        0 => format!("{what} is a null pointer; give the address of {length} bytes"),
        _ => format!("{what}: the {length} bytes at {address:#x} cannot be {done}; give the address of memory that can"),
    };
    Refusal::new(errno, why)
}
