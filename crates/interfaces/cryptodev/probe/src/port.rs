//! The way to the device.

use bywash_cryptodev_abi::linux::*;

/// The way to the device: system calls, or a dispatcher called directly. Addresses are those of this process.
pub trait Port: Sync {
    /// Opens the device.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn open(&self) -> Result<i32, String>;

    /// What `ioctl` returns, or the error number.
    ///
    /// # Errors
    /// The error number.
    fn ioctl(&self, descriptor: i32, number: u32, argument: u64) -> Result<i32, i32>;

    /// Closes a descriptor.
    fn close(&self, descriptor: i32);

    /// Another descriptor of the same open file; none if this port has no such thing.
    fn duplicate(&self, descriptor: i32) -> Option<i32>;

    /// Whether it is readable and writable.
    fn poll(&self, descriptor: i32) -> (bool, bool);

    /// Whether a child of fork has the device too.
    fn forks(&self) -> bool;

    /// Whether whoever answers is asked requests of another letter than cryptodev's (`_IOC_TYPE`) too. Where not, the kernel answers them, and says `ENOTTY`.
    fn sees_other_letters(&self) -> bool {
        true
    }
}

/// An open descriptor, closed when dropped.
pub struct Handle<'a> {
    port: &'a dyn Port,
    descriptor: i32,
}

impl<'a> Handle<'a> {
    /// Opens the device.
    pub(crate) fn open(port: &'a dyn Port) -> Result<Self, crate::Wrong> {
        let descriptor = port.open().map_err(crate::Wrong::Skipped)?;
        Ok(Self { port, descriptor })
    }

    /// Takes a descriptor over.
    pub(crate) fn of(port: &'a dyn Port, descriptor: i32) -> Self {
        Self { port, descriptor }
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.descriptor
    }

    pub(crate) fn poll(&self) -> (bool, bool) {
        self.port.poll(self.descriptor)
    }

    /// A request whose argument is this structure.
    pub(crate) fn ask<T>(&self, number: u32, argument: &mut T) -> Result<i32, i32> {
        self.ask_at(number, core::ptr::from_mut(argument).addr() as u64)
    }

    /// A request whose argument is at an address.
    pub(crate) fn ask_at(&self, number: u32, address: u64) -> Result<i32, i32> {
        self.port.ioctl(self.descriptor, number, address)
    }

    /// Opens a session.
    pub(crate) fn session(&self, cipher: u32, key: &[u8], mac: u32, mackey: &[u8]) -> Result<u32, i32> {
        let mut asked = SessionOp {
            cipher,
            mac,
            keylen: key.len() as u32,
            key: at(key),
            mackeylen: mackey.len() as u32,
            mackey: at(mackey),
            ..SessionOp::default()
        };
        self.ask(CIOCGSESSION, &mut asked)?;
        Ok(asked.ses)
    }

    /// Opens a session of a cipher.
    pub(crate) fn cipher(&self, cipher: u32, key: &[u8]) -> Result<u32, i32> {
        self.session(cipher, key, 0, &[])
    }

    /// Opens a session of a hash.
    pub(crate) fn hash(&self, mac: u32, key: &[u8]) -> Result<u32, i32> {
        self.session(0, &[], mac, key)
    }

    /// Closes a session.
    pub(crate) fn finish(&self, session: u32) -> Result<i32, i32> {
        self.ask(CIOCFSESSION, &mut { session })
    }

    /// `CIOCCRYPT`.
    pub(crate) fn crypt(&self, mut asked: CryptOp) -> Result<CryptOp, i32> {
        self.ask(CIOCCRYPT, &mut asked)?;
        Ok(asked)
    }

    /// `CIOCAUTHCRYPT`.
    pub(crate) fn auth(&self, mut asked: CryptAuthOp) -> Result<CryptAuthOp, i32> {
        self.ask(CIOCAUTHCRYPT, &mut asked)?;
        Ok(asked)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        self.port.close(self.descriptor);
    }
}

/// The address of bytes to be read; null for none.
pub(crate) fn at(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.as_ptr().addr() as u64 }
}

/// The address of bytes to be written.
pub(crate) fn out(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr().expose_provenance() as u64
}

/// The name of an error number that the device answers.
pub(crate) fn errno_name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EIO, "EIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EDEADLK, "EDEADLK"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EBADMSG, "EBADMSG"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    ];
    known.iter().find(|(number, _)| *number == errno).map_or_else(|| format!("error {errno}"), |(_, name)| (*name).to_owned())
}
