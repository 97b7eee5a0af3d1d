//! The memory of a stopped program: read and written by the kernel on our behalf, so that a bad address is an error and no crash.

use crate::listener::Listener;
use bywash_cryptodev::{Errno, Memory};
use libc::{EFAULT, ESRCH, iovec, pid_t};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroize;

/// What lies around a request's argument is fetched with it: programs keep the structure, the IV and short texts close together, on one stack.
/// A look at the program costs half a microsecond, however little is read.
const BEFORE: u64 = 256;
const AFTER: u64 = 768;
const PAGE: u64 = 4096;

/// The memory of the program that a stopped call belongs to, for as long as it is stopped.
///
/// The first read checks, after it has read, that the call still waits: until then the thread's number could have passed to another program.
pub(crate) struct StoppedMemory<'a> {
    listener: &'a Listener,
    id: u64,
    thread: pid_t,
    window: Mutex<Window>,
}

struct Window {
    start: u64,
    length: usize,
    bytes: [u8; (BEFORE + AFTER) as usize],
    /// Whether the call was still waiting after something had been read.
    checked: bool,
}

impl<'a> StoppedMemory<'a> {
    pub(crate) fn new(listener: &'a Listener, id: u64, thread: u32) -> Self {
        let window = Window { start: 0, length: 0, bytes: [0; (BEFORE + AFTER) as usize], checked: false };
        Self { listener, id, thread: thread as pid_t, window: Mutex::new(window) }
    }

    /// Reads what is there up to the first byte that is not; at least one byte.
    pub(crate) fn read_some(&self, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let local = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the local part is one exclusive slice; the other address is the other program's, and the kernel checks it.
        let read = unsafe { libc::process_vm_readv(self.thread, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(read).map_err(|_| last_errno())
    }

    /// Whether the call still waits for its answer.
    fn check(&self, window: &mut Window) -> Result<(), Errno> {
        if !window.checked {
            if !self.listener.is_waiting(self.id) {
                return Err(Errno(ESRCH));
            }
            window.checked = true;
        }
        Ok(())
    }

    fn window(&self) -> std::sync::MutexGuard<'_, Window> {
        // What a panicking thread left there is bytes and a length that was within bounds.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills the window around the first thing that is asked for.
    fn look_around(&self, window: &mut Window, address: u64, length: usize) -> Result<(), Errno> {
        let start = address.saturating_sub(BEFORE).max(address & !(PAGE - 1));
        // No further than the page in which what is asked for ends, so that nothing is touched that the program did not name.
        let wanted = address.checked_add(length as u64).ok_or(Errno(EFAULT))?;
        let page_end = wanted.checked_next_multiple_of(PAGE).ok_or(Errno(EFAULT))?;
        let end = page_end.min(start + BEFORE + AFTER).max(wanted);
        let room = usize::try_from(end - start).map_err(|_| Errno(EFAULT))?;
        let read = self.read_some(start, &mut window.bytes[..room])?;
        if start + (read as u64) < wanted {
            return Err(Errno(EFAULT));
        }
        (window.start, window.length) = (start, read);
        Ok(())
    }
}

impl Window {
    /// Where `length` bytes from `address` lie in the window, if they do.
    fn part(&self, address: u64, length: usize) -> Option<core::ops::Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(length)?;
        (to <= self.length).then_some(from..to)
    }

    /// Takes over what is written where the window and `address` overlap.
    fn take_over(&mut self, address: u64, from: &[u8]) {
        let end = address.saturating_add(from.len() as u64).min(self.start + self.length as u64);
        let start = address.max(self.start);
        if start < end {
            let length = (end - start) as usize;
            let (into, at) = ((start - self.start) as usize, (start - address) as usize);
            self.bytes[into..into + length].copy_from_slice(&from[at..at + length]);
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.bytes[..self.length].zeroize();
    }
}

impl Memory for StoppedMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        if into.is_empty() {
            return Ok(());
        }
        let mut window = self.window();
        if window.length == 0 && into.len() <= AFTER as usize {
            self.look_around(&mut window, address, into.len())?;
            self.check(&mut window)?;
        }
        if let Some(part) = window.part(address, into.len()) {
            into.copy_from_slice(&window.bytes[part]);
            return Ok(());
        }
        let mut done = 0;
        while done < into.len() {
            done += match self.read_some(address.checked_add(done as u64).ok_or(Errno(EFAULT))?, &mut into[done..])? {
                0 => return Err(Errno(EFAULT)),
                read => read,
            };
        }
        self.check(&mut window)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        if from.is_empty() {
            return Ok(());
        }
        let mut window = self.window();
        self.check(&mut window)?;
        let mut done = 0;
        while done < from.len() {
            let part = &from[done..];
            let start = address.checked_add(done as u64).ok_or(Errno(EFAULT))?;
            let local = iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
            let remote = iovec { iov_base: start as *mut libc::c_void, iov_len: part.len() };
            // SAFETY: the kernel only reads the local part, a slice; the other address is the other program's, and the kernel checks it.
            let written = unsafe { libc::process_vm_writev(self.thread, &raw const local, 1, &raw const remote, 1, 0) };
            done += match usize::try_from(written).map_err(|_| last_errno())? {
                0 => return Err(Errno(EFAULT)),
                written => written,
            };
        }
        window.take_over(address, from);
        Ok(())
    }
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
