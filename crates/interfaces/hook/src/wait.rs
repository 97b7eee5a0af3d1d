//! `poll` and `select`. A file of the volume is always ready, as every regular file is, so that a wait for it is none: what the other descriptors are is asked of copies of them.

use crate::memory::Memory;
use crate::refuse::{Outcome, refused};
use crate::server::{Server, Shown};
use bywash_stopped::listener::{Notification, Verdict};
use bywash_stopped::thread::{copy_of, status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::{Errno, retry_on_intr};

/// Most descriptors that are looked at: more than a process can have open is the kernel's to refuse.
const FDS_MAX: u64 = 1 << 16;
/// So many numbers are in every table of descriptors (`NR_OPEN_DEFAULT`).
const TABLE_MIN: i32 = 64;
/// So many copies of descriptors are had at a time: this process may have few.
const COPIES: usize = 64;
/// What a regular file is, if it is asked for.
const READY: PollFlags = PollFlags::IN.union(PollFlags::OUT).union(PollFlags::RDNORM).union(PollFlags::WRNORM);
/// What makes a descriptor ready in each of `select`'s sets (`fs/select.c`).
const SETS: [PollFlags; 3] = [
    PollFlags::IN.union(PollFlags::RDNORM).union(PollFlags::RDBAND).union(PollFlags::HUP).union(PollFlags::ERR),
    PollFlags::OUT.union(PollFlags::WRNORM).union(PollFlags::WRBAND).union(PollFlags::ERR),
    PollFlags::PRI,
];

/// A descriptor and what is asked, or then said, of it.
type Asked = (i32, PollFlags);

impl Server {
    pub(crate) fn wait(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        #[cfg(target_arch = "x86_64")]
        let is_poll = matches!(call.call, libc::SYS_poll | libc::SYS_ppoll);
        #[cfg(not(target_arch = "x86_64"))]
        let is_poll = call.call == libc::SYS_ppoll;
        if is_poll { self.poll(call, memory, shown) } else { self.select(call, memory, shown) }
    }

    /// `struct pollfd`: the number, what is asked, what is said.
    fn poll(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        let [first, count, timeout, ..] = call.arguments;
        let mut bytes = vec![0; 8 * count.min(FDS_MAX) as usize];
        memory.read(first, &mut bytes)?;
        let asked = bytes.chunks_exact(8).map(|entry| {
            let fd = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
            (fd, PollFlags::from_bits_retain(u16::from_ne_bytes([entry[4], entry[5]])))
        });
        let Some(said) = self.ready(call, asked.collect(), shown)? else { return Ok(Verdict::Continue) };
        let ready = said.iter().filter(|(_, flags)| !flags.is_empty()).count();
        #[cfg(target_arch = "x86_64")]
        let is_now = if call.call == libc::SYS_poll { timeout as i32 == 0 } else { is_now(memory, timeout)? };
        #[cfg(not(target_arch = "x86_64"))]
        let is_now = is_now(memory, timeout)?;
        may_end(ready, is_now)?;
        for (entry, (_, flags)) in bytes.chunks_exact_mut(8).zip(&said) {
            entry[6..].copy_from_slice(&flags.bits().to_ne_bytes());
        }
        memory.write(first, &bytes)?;
        Ok(Verdict::Value(ready as i64))
    }

    /// Three sets of bits by number, each of which need not be there.
    fn select(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        let [count, addresses @ .., timeout, _] = call.arguments;
        let count = (count as i32).min(FDS_MAX as i32);
        let count = match count {
            ..0 => return Err(Errno::INVAL.into()),
            // Neither read nor written is more than what the kernel would of the sets, which need not be longer.
            TABLE_MIN.. => match status(call.thread, "FDSize:").and_then(|size| size.parse().ok()) {
                Some(size) => count.min(size),
                None => return Ok(Verdict::Continue),
            },
            _ => count,
        };
        let mut sets = [const { Vec::new() }; 3];
        for (set, address) in sets.iter_mut().zip(addresses).filter(|(_, address)| *address != 0) {
            *set = vec![0u8; (count as usize).div_ceil(64) * 8];
            memory.read(address, set)?;
        }
        let is_set = |set: &[u8], fd: i32| set.get(fd as usize / 8).is_some_and(|byte| byte >> (fd % 8) & 1 == 1);
        let asked = (0..count).filter_map(|fd| {
            let flags = sets.iter().zip(SETS).filter(|(set, _)| is_set(set, fd)).map(|(_, flags)| flags);
            flags.reduce(PollFlags::union).map(|flags| (fd, flags))
        });
        let Some(said) = self.ready(call, asked.collect(), shown)? else { return Ok(Verdict::Continue) };
        if said.iter().any(|(_, flags)| flags.contains(PollFlags::NVAL)) {
            return Err(Errno::BADF.into());
        }
        let mut ready = 0;
        for (set, flags) in sets.iter_mut().zip(SETS) {
            let was_set = std::mem::take(set);
            *set = vec![0; was_set.len()];
            for (fd, _) in said.iter().filter(|(fd, said)| said.intersects(flags) && is_set(&was_set, *fd)) {
                set[*fd as usize / 8] |= 1 << (fd % 8);
                ready += 1;
            }
        }
        may_end(ready, is_now(memory, timeout)?)?;
        for (set, address) in sets.iter().zip(addresses) {
            memory.write(address, set)?;
        }
        Ok(Verdict::Value(ready as i64))
    }

    /// What all of them are now; none if no file of the volume is among them.
    fn ready(&self, call: &Notification, asked: Vec<Asked>, shown: &mut Shown) -> Outcome<Option<Vec<Asked>>> {
        let ours: Vec<_> = asked.iter().map(|(fd, _)| self.found(call.thread, *fd)).collect();
        let Some(file) = ours.iter().flatten().find(|file| !file.value.is_gone()) else { return Ok(None) };
        shown.clone_from(&file.value.shown);
        let mut said: Vec<Asked> = asked.iter().map(|(fd, _)| (*fd, PollFlags::empty())).collect();
        let mut others = Vec::new();
        for (at, ((fd, flags), ours)) in asked.iter().zip(&ours).enumerate() {
            match ours {
                Some(file) if file.value.is_gone() => said[at].1 = PollFlags::NVAL,
                Some(_) => said[at].1 = flags.intersection(READY),
                None if *fd < 0 => {}
                None => others.push((at, *fd, *flags)),
            }
        }
        for others in others.chunks(COPIES) {
            let mut copies = Vec::with_capacity(others.len());
            for &(at, fd, flags) in others {
                match copy_of(call.thread, fd) {
                    Ok(copy) => copies.push((at, copy, flags)),
                    Err(Errno::BADF) => said[at].1 = PollFlags::NVAL,
                    Err(errno) => return Err(errno.into()),
                }
            }
            let mut polled: Vec<_> = copies.iter().map(|(_, copy, flags)| PollFd::from_borrowed_fd(copy.as_fd(), *flags)).collect();
            retry_on_intr(|| poll(&mut polled, Some(&Timespec::default())))?;
            copies.iter().zip(&polled).for_each(|((at, ..), polled)| said[*at].1 = polled.revents());
        }
        Ok(Some(said))
    }
}

/// Whether a time is none at all; without any a call waits for ever.
fn is_now(memory: &Memory<'_>, time: u64) -> Outcome<bool> {
    if time == 0 {
        return Ok(false);
    }
    let bytes: [u8; 16] = memory.read_array(time)?;
    Ok(bytes == [0; 16])
}

/// Nothing is ready: who is not asked for what it always is does not end a wait.
fn may_end(ready: usize, is_now: bool) -> Outcome<()> {
    if ready > 0 || is_now {
        Ok(())
    } else {
        refused(Errno::INVAL, "waiting for descriptors of which one is an encrypted file, and none is ready")
    }
}
