//! The memory of a stopped program: read and written by the kernel on our behalf, so that a bad address is an error and no crash.

use crate::pieces::{Late, Piece, wipe};
use bywash_cryptodev::{Errno, Memory};
use bywash_cryptodev_abi::Layout;
use bywash_cryptodev_abi::linux::{CryptOp, EALG_MAX_BLOCK_LEN};
use bywash_stopped::listener::Listener;
use bywash_stopped::thread::{read_parts, write_parts};
use libc::{EFAULT, ESRCH};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What lies around a request's argument is fetched with it: programs keep the structure, the IV and short texts close together, on one stack.
/// A look at the program costs half a microsecond, however little is read.
const BEFORE: u64 = 256;
const AFTER: u64 = 768;
const AROUND: usize = (BEFORE + AFTER) as usize;
/// What a CIOCCRYPT points to elsewhere is fetched by a second look, its IV together with so much of its text; or by the first, where the last two pointed to the same.
const TEXT: usize = 2048;
const PAGE: u64 = 4096;
/// Most that is written after one look whether the call still waits.
const WRITE: usize = 64 << 10;

/// The memory of the program that a stopped call belongs to, for as long as it is stopped.
///
/// The number of a thread that is killed passes on: at once to another thread of its process that executes a program, later to anybody. So every write checks, before it
/// writes, that the call still waits; and, but for CIOCCRYPT, which ends by a write, so does the first read, after it has read. What else is read of a stranger is only
/// worked with, if it names a session of this description at all, and written nowhere.
pub(crate) struct StoppedMemory<'a> {
    listener: &'a Listener,
    id: u64,
    thread: u32,
    /// The address of a `struct crypt_op`, if the request is of one.
    crypt: Option<u64>,
    guess: &'a Guess,
    seen: Mutex<Seen>,
}

/// Where the next CIOCCRYPT of a description may have its text and its IV: programs use the same buffers again and again.
#[derive(Default)]
pub(crate) struct Guess(Mutex<Guessed>);

#[derive(Clone, Copy, Default)]
struct Guessed {
    places: Places,
    /// How often in a row they were the same.
    repeated: u32,
}

/// What a request points to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Places {
    text: u64,
    length: usize,
    iv: u64,
}

impl Guess {
    fn places(&self) -> Option<Places> {
        let guessed = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (guessed.repeated > 0 && guessed.places.text != 0).then_some(guessed.places)
    }

    /// What it was this time.
    fn learn(&self, places: Places) {
        let mut guessed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let repeated = if guessed.places == places { guessed.repeated.saturating_add(1) } else { 0 };
        *guessed = Guessed { places, repeated };
    }
}

/// What has been fetched, and whether the call was still waiting afterwards.
#[derive(Default)]
struct Seen {
    around: Piece<AROUND>,
    text: Piece<TEXT>,
    iv: Piece<EALG_MAX_BLOCK_LEN>,
    late: Late,
    /// What could not be written of what was held back, when it was too late for the dispatcher to say so.
    unwritten: Option<Unwritten>,
    checked: bool,
}

/// Bytes that could not be written, by the name of the field that points to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwritten {
    what: &'static str,
    address: u64,
    length: usize,
}

impl core::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { what, address, length } = self;
        write!(f, "CIOCCRYPT: {what}: the {length} bytes at {address:#x} cannot be written; give the address of memory that can (EFAULT)")
    }
}

impl<'a> StoppedMemory<'a> {
    /// `crypt` is the address of a `struct crypt_op`, if the request is of one, and `guess` that of its description.
    pub(crate) fn new(listener: &'a Listener, id: u64, thread: u32, crypt: Option<u64>, guess: &'a Guess) -> Self {
        Self { listener, id, thread, crypt, guess, seen: Mutex::default() }
    }

    /// Reads what is there up to the first byte that is not; at least one byte.
    pub(crate) fn read_some(&self, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.read_parts([(address, into)])
    }

    /// The same of several ranges, one after the other.
    fn read_parts<const N: usize>(&self, parts: [(u64, &mut [u8]); N]) -> Result<usize, Errno> {
        read_parts(self.thread, parts).map_err(errno)
    }

    /// Whether the call still waits for its answer.
    fn check(&self) -> Result<(), Errno> {
        if self.listener.is_waiting(self.id) { Ok(()) } else { Err(Errno(ESRCH)) }
    }

    /// Whether it did after the first read. A CIOCCRYPT ends by writing, and is checked then.
    fn check_once(&self, seen: &mut Seen) -> Result<(), Errno> {
        if !seen.checked && self.crypt.is_none() {
            self.check()?;
            seen.checked = true;
        }
        Ok(())
    }

    /// Writes what has been held back.
    ///
    /// # Errors
    /// A part of it cannot be written: [`unwritten`](Self::unwritten) says which. Those before it have been.
    pub(crate) fn flush(&self) -> Result<(), Errno> {
        self.write_late(&mut self.seen())
    }

    /// What was held back and then could not be written.
    pub(crate) fn unwritten(&self) -> Option<Unwritten> {
        self.seen().unwritten
    }

    fn write_late(&self, seen: &mut Seen) -> Result<(), Errno> {
        let late = &mut seen.late;
        if late.count == 0 {
            return Ok(());
        }
        self.check()?;
        let written = write_parts(self.thread, &late.bytes[..late.length], late.parts).map_err(errno);
        let (whole, failed) = (late.length, late.part_at(written.unwrap_or(0)));
        late.clear();
        match written {
            Ok(written) if written == whole => return Ok(()),
            Ok(_) | Err(Errno(EFAULT)) => {}
            Err(other) => return Err(other),
        }
        if let Some((address, length)) = failed {
            seen.unwritten = Some(Unwritten { what: self.name_of(seen, address), address, length });
        }
        Err(Errno(EFAULT))
    }

    /// By which field of the request an address was given.
    fn name_of(&self, seen: &Seen, address: u64) -> &'static str {
        let argument = self.crypt.unwrap_or(0);
        let op = seen.around.part(argument, CryptOp::SIZE).map(|part| CryptOp::from_bytes(&seen.around.bytes[part]));
        match op {
            Some(op) if op.dst == address => "dst",
            Some(op) if op.mac == address => "mac",
            Some(op) if op.iv == address => "iv",
            _ => "the argument",
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // What a panicking thread left there is bytes and lengths that were within bounds.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches what lies around the first thing that is asked for, and what a cipher's request points to.
    fn look_around(&self, seen: &mut Seen, address: u64, length: usize) -> Result<(), Errno> {
        let start = address.saturating_sub(BEFORE).max(address & !(PAGE - 1));
        // No further than the page in which what is asked for ends, so that nothing is touched that the program did not name.
        let wanted = address.checked_add(length as u64).ok_or(Errno(EFAULT))?;
        let page_end = wanted.checked_next_multiple_of(PAGE).ok_or(Errno(EFAULT))?;
        let end = page_end.min(start + AROUND as u64).max(wanted);
        let guess = if self.crypt == Some(address) { self.guess.places() } else { None };
        let whole = (end - start) as usize;
        let Seen { around, text, iv, .. } = seen;
        let read = match guess {
            Some(Places { text: at, length, iv: iv_at }) => {
                self.read_parts([(start, &mut around.bytes[..whole]), (at, &mut text.bytes[..length]), (iv_at, &mut iv.bytes[..])])?
            }
            None => self.read_some(start, &mut around.bytes[..whole])?,
        };
        match guess {
            Some(places) if read == whole + places.length + EALG_MAX_BLOCK_LEN => {
                (text.start, text.length) = (places.text, places.length);
                (iv.start, iv.length) = (places.iv, EALG_MAX_BLOCK_LEN);
            }
            Some(_) => wipe(&mut text.bytes),
            None => {}
        }
        let read = read.min(whole);
        if start + (read as u64) < wanted {
            wipe(&mut around.bytes);
            return Err(Errno(EFAULT));
        }
        (around.start, around.length) = (start, read);
        if self.crypt == Some(address)
            && let Some(part) = around.part(address, CryptOp::SIZE)
        {
            let op = CryptOp::from_bytes(&around.bytes[part]);
            self.look_at(seen, &op);
        }
        Ok(())
    }

    /// Fetches text and IV, if they are elsewhere and the text is short. What cannot be read is found out when it is needed.
    fn look_at(&self, seen: &mut Seen, op: &CryptOp) {
        let Seen { around, text, iv, .. } = seen;
        let (length, iv_length) = (op.len as usize, EALG_MAX_BLOCK_LEN);
        let has_text = op.src != 0 && around.part(op.src, length).is_none();
        let has_iv = op.iv != 0 && around.part(op.iv, iv_length).is_none();
        if !has_text || !has_iv || length > TEXT {
            return self.guess.learn(Places::default());
        }
        self.guess.learn(Places { text: op.src, length, iv: op.iv });
        if text.part(op.src, length).is_some() && iv.part(op.iv, iv_length).is_some() {
            return;
        }
        // What was guessed wrong is fetched over, and is not taken for anything meanwhile.
        wipe(&mut text.bytes[..text.length]);
        (text.length, iv.length) = (0, 0);
        if self.read_parts([(op.src, &mut text.bytes[..length]), (op.iv, &mut iv.bytes[..])]) == Ok(length + iv_length) {
            (text.start, text.length) = (op.src, length);
            (iv.start, iv.length) = (op.iv, iv_length);
        } else {
            wipe(&mut text.bytes);
        }
    }
}

impl Seen {
    fn get(&self, address: u64, length: usize) -> Option<&[u8]> {
        let Self { around, text, iv, .. } = self;
        let around = around.part(address, length).map(|part| &around.bytes[part]);
        let text = || text.part(address, length).map(|part| &text.bytes[part]);
        let iv = || iv.part(address, length).map(|part| &iv.bytes[part]);
        around.or_else(text).or_else(iv)
    }
}

impl Memory for StoppedMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        if into.is_empty() {
            return Ok(());
        }
        let mut seen = self.seen();
        if seen.around.length == 0 && into.len() <= AFTER as usize {
            self.look_around(&mut seen, address, into.len())?;
            self.check_once(&mut seen)?;
        }
        if let Some(bytes) = seen.get(address, into.len()) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        // It may be of what has just been written.
        self.write_late(&mut seen)?;
        let mut done = 0;
        while done < into.len() {
            done += match self.read_some(address.checked_add(done as u64).ok_or(Errno(EFAULT))?, &mut into[done..])? {
                0 => return Err(Errno(EFAULT)),
                read => read,
            };
        }
        self.check_once(&mut seen)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        if from.is_empty() {
            return Ok(());
        }
        let mut seen = self.seen();
        let mut done = 0;
        if self.crypt.is_some() && seen.late.put(address, from) {
            done = from.len();
        } else {
            self.write_late(&mut seen)?;
        }
        while done < from.len() {
            let part = &from[done..from.len().min(done + WRITE)];
            let start = address.checked_add(done as u64).ok_or(Errno(EFAULT))?;
            self.check()?;
            done += match write_parts(self.thread, part, [(start, part.len())]).map_err(errno)? {
                0 => return Err(Errno(EFAULT)),
                written => written,
            };
        }
        seen.around.take_over(address, from);
        seen.text.take_over(address, from);
        seen.iv.take_over(address, from);
        Ok(())
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno(error.raw_os_error())
}
