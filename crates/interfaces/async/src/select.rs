//! `select` and `pselect`. Their sets have no length of their own: the kernel touches as many 64-bit words as hold the descriptors counted, and so do we,
//! for a program may give no more (Perl's four-argument `select`).

use crate::real;
use crate::thread::{Thread, fire, with};
use crate::waits::{AT_ONCE, Wait, is_zero, wait};
use bywash_async_link::Moment;
use core::ffi::c_int;
use core::ptr;
use libc::{fd_set, sigset_t, timespec, timeval};

const WORD_BITS: usize = 64;

/// Words of the longest set that is copied: that of libc's type. The kernel quietly ends a longer one at the process's highest descriptor, so that the
/// program's memory may end there too.
const COPIED_WORDS: usize = libc::FD_SETSIZE / WORD_BITS;

#[derive(Clone, Copy)]
enum Select {
    Select { timeout: *mut timeval },
    Pselect { timeout: *const timespec, mask: *const sigset_t },
}

struct SelectCall {
    count: c_int,
    /// To read, to write, exceptions: the server's, which are asked and answered in place.
    sets: [*mut fd_set; 3],
    /// What was asked, once it has been.
    asked: Option<[[u64; COPIED_WORDS]; 3]>,
    kind: Select,
}

impl SelectCall {
    fn new(count: c_int, sets: [*mut fd_set; 3], kind: Select) -> Self {
        Self { count, sets, asked: None, kind }
    }

    /// Words of each set.
    fn words(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0).div_ceil(WORD_BITS)
    }

    fn is_copied(&self) -> bool {
        self.words() <= COPIED_WORDS
    }

    fn call(&self, kind: Select) -> c_int {
        let [read, write, except] = self.sets;
        // SAFETY: the server's arguments.
        unsafe {
            match kind {
                Select::Select { timeout } => real::select(self.count, read, write, except, timeout),
                Select::Pselect { timeout, mask } => real::pselect(self.count, read, write, except, timeout, mask),
            }
        }
    }

    /// The sets as the server has given them, whatever an earlier call has answered in them.
    fn ask(&mut self) {
        let words = if self.is_copied() { self.words() } else { return };
        let is_first = self.asked.is_none();
        let asked = self.asked.get_or_insert_default();
        for (set, asked) in self.sets.into_iter().zip(asked).filter(|(set, _)| !set.is_null()) {
            // SAFETY: the server's set has so many words, the copy has room for more.
            unsafe {
                if is_first {
                    ptr::copy_nonoverlapping(set.cast::<u8>(), asked.as_mut_ptr().cast(), 8 * words);
                } else {
                    ptr::copy_nonoverlapping(asked.as_ptr().cast(), set.cast::<u8>(), 8 * words);
                }
            }
        }
    }

    /// The word of the server's set to read in which this descriptor is, and its bit there.
    fn place(&self, fd: c_int) -> Option<(*mut u64, u64)> {
        let number = usize::try_from(fd).ok().filter(|_| fd < self.count && !self.sets[0].is_null())?;
        Some((self.sets[0].cast::<u64>().wrapping_add(number / WORD_BITS), 1 << (number % WORD_BITS)))
    }

    /// Whether the server wants to know when this open descriptor is readable.
    fn asks(&self, fd: c_int) -> bool {
        let Some((word, bit)) = self.place(fd) else { return false };
        match &self.asked {
            Some(asked) => asked[0][fd as usize / WORD_BITS] & bit != 0,
            // SAFETY: the kernel reads the words of all open descriptors below the count.
            None => unsafe { word.read_unaligned() & bit != 0 },
        }
    }

    /// Makes these readable, too.
    fn report(&self, fds: impl Iterator<Item = c_int>, found: c_int) -> c_int {
        let mut all = found;
        for (word, bit) in fds.filter_map(|fd| self.place(fd)) {
            // SAFETY: as in `asks`, and the kernel writes them, too.
            unsafe {
                let before = word.read_unaligned();
                all += c_int::from(before & bit == 0);
                word.write_unaligned(before | bit);
            }
        }
        all
    }
}

impl Wait for SelectCall {
    fn look(&mut self) -> c_int {
        self.ask();
        let mut nothing = timeval { tv_sec: 0, tv_usec: 0 };
        self.call(match self.kind {
            Select::Select { .. } => Select::Select { timeout: &raw mut nothing },
            Select::Pselect { mask, .. } => Select::Pselect { timeout: &AT_ONCE, mask },
        })
    }

    fn wait(&mut self) -> c_int {
        if self.asked.is_some() {
            self.ask();
        }
        self.call(self.kind)
    }

    fn blocks(&self) -> bool {
        match self.kind {
            // SAFETY: null or the caller's.
            Select::Select { timeout } => !unsafe { timeout.as_ref() }.is_some_and(|timeout| timeout.tv_sec == 0 && timeout.tv_usec == 0),
            Select::Pselect { timeout, .. } => !is_zero(timeout),
        }
    }

    fn add(&mut self, thread: &mut Thread, found: c_int) -> c_int {
        self.report(thread.woken().map(|(fd, _)| fd).filter(|&fd| self.asks(fd)), found)
    }

    fn note(&mut self, thread: &mut Thread) {
        // What is asked of the kernel in a longer set is never suspended: it counts as not waited for.
        let words = if self.sets[0].is_null() || !self.is_copied() { 0 } else { self.words() };
        let first = self.sets[0].cast::<u64>();
        let asked = (0..words).flat_map(|index| {
            // SAFETY: the server's set has so many words.
            let word = unsafe { first.add(index).read_unaligned() };
            (0..WORD_BITS).filter(move |bit| word >> bit & 1 != 0).map(move |bit| (index * WORD_BITS + bit) as c_int)
        });
        thread.registry.waits_for(asked.filter(|&fd| fd < self.count));
    }

    fn wait_in_one(&mut self) -> Option<c_int> {
        if self.is_copied() {
            return None;
        }
        while fire(Moment::Blocking, 0) {}
        let told = with(|thread| thread.woken().map(|(fd, _)| fd).filter(|&fd| self.asks(fd)).collect::<Vec<c_int>>()).unwrap_or_default();
        if told.is_empty() {
            return Some(self.wait());
        }
        let found = self.look();
        Some(if found < 0 { found } else { self.report(told.into_iter(), found) })
    }
}

/// `select(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int {
    wait(&mut SelectCall::new(count, [read, write, except], Select::Select { timeout }))
}

/// `pselect(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    wait(&mut SelectCall::new(count, [read, write, except], Select::Pselect { timeout, mask }))
}
