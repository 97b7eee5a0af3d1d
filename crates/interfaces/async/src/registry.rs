//! Which descriptors a thread waits for, and how it wants to hear of them.

use crate::descriptors;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{EPOLLET, EPOLLIN, EPOLLONESHOT};

/// Descriptors past this number are nobody's here: what a program passes to `poll` need not be open, and the table is as long as the highest.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// How an epoll set was told to watch a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) set: c_int,
    pub(crate) events: u32,
    /// What the server finds in `epoll_event.u64`.
    pub(crate) data: u64,
}

impl Registration {
    /// Whether a connection whose operation is done is to be reported: an edge once, a level until it is gone.
    pub(crate) fn is_due(&self, told: bool) -> bool {
        !(told && self.events & EPOLLET as u32 != 0)
    }

    /// Whether readability is reported, again and again: not once and then never until asked anew, as several threads on one set need it.
    fn hears_input(&self) -> bool {
        self.events & EPOLLIN as u32 != 0 && self.events & EPOLLONESHOT as u32 == 0
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    epoll: Option<Registration>,
    /// As was found when it was first registered.
    is_pipe: Option<bool>,
    /// In the arguments of the thread's last `poll` or `select`, by the number of that call.
    polled: u64,
    /// A handshake was to be suspended when nobody waited for it.
    is_early: bool,
    /// This thread heard of it, and has itself taken it out of its set since.
    is_put_aside: bool,
}

/// What this thread has told the kernel. By descriptor, for they are small and dense.
#[derive(Default)]
pub(crate) struct Registry {
    entries: Vec<Entry>,
    /// Epoll sets that this thread has put a descriptor into, or waited on.
    sets: Vec<Set>,
    /// Number of the last `poll` or `select`.
    polls: u64,
    /// The last connection for which nobody waited at its handshake was waited for here afterwards, so that the next one will be, too (haproxy).
    registers_late: bool,
}

/// An epoll set.
struct Set {
    fd: c_int,
    /// This thread has waited on it.
    is_waited_on: bool,
    /// How many descriptors that are no pipes this thread has put into it.
    peers: usize,
}

impl Entry {
    /// Whether it says anything of the descriptor, which has to be forgotten when that is closed.
    fn says_anything(&self) -> bool {
        self.epoll.is_some() || self.polled != 0 || self.is_early || self.is_put_aside || self.is_pipe.is_some()
    }

    /// The set in which it may be a connection, or bring one.
    fn peer_of(&self) -> Option<c_int> {
        self.epoll.filter(|_| self.is_pipe != Some(true)).map(|registration| registration.set)
    }
}

/// Whether a descriptor that is being registered is a pipe; one that has just been accepted is none, and the kernel need not be asked.
fn is_pipe(fd: c_int) -> bool {
    if descriptors::is_new(fd) {
        return false;
    }
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for the answer, which is looked at only where there is one.
    unsafe { libc::fstat(fd, found.as_mut_ptr()) == 0 && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFIFO }
}

impl Registry {
    fn entry(&mut self, fd: c_int) -> Option<&mut Entry> {
        let index = usize::try_from(fd).ok().filter(|&index| index < DESCRIPTORS_MAX)?;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, Entry::default());
        }
        self.entries.get_mut(index)
    }

    /// What stands here of a descriptor, if it ever did.
    fn known(&self, fd: c_int) -> Option<&Entry> {
        self.entries.get(usize::try_from(fd).ok()?)
    }

    fn known_mut(&mut self, fd: c_int) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(fd).ok()?)
    }

    fn set(&mut self, fd: c_int) -> &mut Set {
        let index = self.sets.iter().position(|set| set.fd == fd).unwrap_or_else(|| {
            self.sets.push(Set { fd, is_waited_on: false, peers: 0 });
            self.sets.len() - 1
        });
        &mut self.sets[index]
    }

    fn count(&mut self, was_peer_of: Option<c_int>, is_peer_of: Option<c_int>) {
        if let Some(set) = was_peer_of {
            self.set(set).peers -= 1;
        }
        if let Some(set) = is_peer_of {
            self.set(set).peers += 1;
        }
    }

    pub(crate) fn register(&mut self, fd: c_int, registration: Option<Registration>) {
        let is_put_aside = registration.is_none() && self.hears(fd);
        let Some(entry) = self.entry(fd) else { return };
        let was_peer_of = entry.peer_of();
        if registration.is_some() {
            entry.is_pipe.get_or_insert_with(|| is_pipe(fd));
        }
        entry.is_put_aside = is_put_aside || registration.is_none() && entry.is_put_aside;
        entry.epoll = registration;
        let (is_peer_of, is_early) = (entry.peer_of(), entry.is_early);
        self.count(was_peer_of, is_peer_of);
        if is_early && registration.is_some() {
            self.registers_late = self.hears(fd);
        }
    }

    /// A handshake goes on: what its server does with the descriptor from now on says nothing about how it waits for those that are suspended.
    pub(crate) fn goes_on(&mut self, fd: c_int) {
        if let Some(entry) = self.known_mut(fd) {
            entry.is_early = false;
        }
    }

    /// How many connections at most this set can tell this thread of. Not counted are pipes, the output of a program that the server has started (CGI):
    /// its two ends would pass for company, and a thread with one connection would wait for nobody. Nor are those that it has put into sets of other
    /// threads, as Apache's do.
    pub(crate) fn peers(&self, set: c_int) -> usize {
        self.sets.iter().find(|known| known.fd == set).map_or(0, |set| set.peers)
    }

    /// The descriptor is closed; so is the set, if it was one, and what was in it is in no set any more.
    pub(crate) fn forget(&mut self, fd: c_int) {
        if let Some(entry) = self.known_mut(fd) {
            let was_peer_of = entry.peer_of();
            *entry = Entry::default();
            self.count(was_peer_of, None);
        }
        if let Some(index) = self.sets.iter().position(|set| set.fd == fd) {
            self.sets.swap_remove(index);
            self.entries.iter_mut().for_each(|entry| entry.epoll = entry.epoll.filter(|registration| registration.set != fd));
        }
    }

    /// Whether it stands here at all, as a descriptor or as a set.
    pub(crate) fn knows(&self, fd: c_int) -> bool {
        self.known(fd).is_some_and(Entry::says_anything) || self.sets.iter().any(|set| set.fd == fd)
    }

    /// The thread waits on an epoll set.
    pub(crate) fn waits_on(&mut self, set: c_int) {
        self.set(set).is_waited_on = true;
    }

    /// The thread waits for these descriptors to become readable, in `poll` or `select`.
    pub(crate) fn waits_for(&mut self, fds: impl Iterator<Item = c_int>) {
        self.polls += 1;
        let now = self.polls;
        for fd in fds {
            let Some(entry) = self.entry(fd) else { continue };
            entry.polled = now;
            let is_early = entry.is_early;
            self.registers_late |= is_early;
        }
    }

    /// Whether this thread will hear that a descriptor has become readable.
    pub(crate) fn hears(&self, fd: c_int) -> bool {
        let Some(entry) = self.known(fd) else { return false };
        let polled = entry.polled != 0 && entry.polled == self.polls;
        polled || entry.epoll.is_some_and(|registration| registration.hears_input() && self.hears_of(registration.set))
    }

    /// Whether this thread waits on a set itself, and not for the set to become readable, which it does not when an operation is done.
    fn hears_of(&self, set: c_int) -> bool {
        let is_polled = || usize::try_from(set).ok().and_then(|index| self.entries.get(index)).is_some_and(|entry| entry.polled != 0);
        self.sets.iter().any(|known| known.fd == set && known.is_waited_on) && !descriptors::is_registered(set) && !is_polled()
    }

    /// Whether this thread will hear of a descriptor whose handshake is to be suspended now: it does already, or the connection is new and this thread is
    /// known to turn to such afterwards. `comes_back` says that the server is one that takes connections out of its set while it deals with them, and
    /// afterwards asks again or puts them back (haproxy).
    pub(crate) fn will_hear(&mut self, fd: c_int, comes_back: bool) -> bool {
        if self.hears(fd) {
            return true;
        }
        let registers_late = self.registers_late;
        let Some(entry) = self.entry(fd) else { return false };
        entry.is_early = entry.epoll.is_none() && (descriptors::is_new(fd) || comes_back && entry.is_put_aside);
        entry.is_early && registers_late
    }

    /// How this set is to report a descriptor as readable, if it is to.
    pub(crate) fn of(&self, set: c_int, fd: c_int) -> Option<Registration> {
        self.known(fd)?.epoll.filter(|registration| registration.set == set && registration.hears_input())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::EPOLLOUT;
    use std::os::fd::AsRawFd;

    const INPUT: Registration = Registration { set: 3, events: EPOLLIN as u32, data: 7 };

    #[test]
    fn only_what_this_thread_waits_for_is_heard() {
        let mut registry = Registry::default();
        registry.register(5, Some(INPUT));
        assert!(!registry.hears(5), "the thread has not waited on set 3");
        registry.waits_on(3);
        assert!(registry.hears(5) && !registry.hears(6) && !registry.hears(-1));
        assert_eq!(registry.of(3, 5), Some(INPUT));
        assert_eq!(registry.of(4, 5), None);
        registry.register(5, Some(Registration { events: EPOLLOUT as u32, ..INPUT }));
        assert!(!registry.hears(5));
        registry.register(5, Some(Registration { events: INPUT.events | EPOLLONESHOT as u32, ..INPUT }));
        assert!(!registry.hears(5), "told once, it would not be told again");
    }

    #[test]
    fn pipes_are_nobody_to_wait_for() {
        let ((socket, other), (from, to)) = (std::os::unix::net::UnixStream::pair().unwrap(), std::io::pipe().unwrap());
        let mut registry = Registry::default();
        for fd in [from.as_raw_fd(), to.as_raw_fd()] {
            registry.register(fd, Some(INPUT));
            assert_eq!(registry.peers(3), 0);
        }
        for _ in 0..2 {
            registry.register(socket.as_raw_fd(), Some(INPUT));
            registry.register(other.as_raw_fd(), Some(INPUT));
            assert_eq!(registry.peers(3), 2, "changed, not added");
        }
        registry.register(socket.as_raw_fd(), None);
        registry.forget(other.as_raw_fd());
        registry.forget(from.as_raw_fd());
        assert_eq!(registry.peers(3), 0);
        registry.register(from.as_raw_fd(), Some(INPUT));
        registry.forget(socket.as_raw_fd());
        assert_eq!(registry.peers(3), 0);
        registry.register(from.as_raw_fd(), None);
        assert!(registry.knows(from.as_raw_fd()), "the next of its number may be no pipe");
    }

    #[test]
    fn what_is_in_one_set_is_no_company_in_another() {
        let (socket, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut registry = Registry::default();
        registry.register(socket.as_raw_fd(), Some(INPUT));
        registry.register(other.as_raw_fd(), Some(Registration { set: 4, ..INPUT }));
        assert_eq!((registry.peers(3), registry.peers(4), registry.peers(5)), (1, 1, 0));
        registry.register(other.as_raw_fd(), Some(INPUT));
        assert_eq!((registry.peers(3), registry.peers(4)), (2, 0), "moved");
        registry.forget(3);
        registry.waits_on(3);
        assert_eq!(registry.peers(3), 0, "another set of the same number");
        assert!(!registry.hears(socket.as_raw_fd()), "which nobody has put it into");
        registry.forget(socket.as_raw_fd());
        assert_eq!(registry.peers(3), 0);
    }

    #[test]
    fn a_set_within_a_set_is_not_heard() {
        const SET: c_int = 60_001;
        let mut registry = Registry::default();
        registry.waits_on(SET);
        registry.register(5, Some(Registration { set: SET, ..INPUT }));
        assert!(registry.hears(5));
        registry.waits_for([SET].into_iter());
        assert!(!registry.hears(5), "the thread waits for the set by poll");
        registry.forget(SET);
        registry.waits_on(SET);
        assert!(!registry.hears(5), "it was in the one that is gone");
        registry.register(5, Some(Registration { set: SET, ..INPUT }));
        assert!(registry.hears(5));
        descriptors::registered(SET);
        assert!(!registry.hears(5), "some thread waits for the set by another");
    }

    #[test]
    fn new_connections_count_where_they_are_known_to_be_waited_for_later() {
        const FDS: [c_int; 5] = [60_002, 60_003, 60_004, 60_005, 60_006];
        let mut registry = Registry::default();
        registry.waits_on(3);
        FDS.into_iter().for_each(descriptors::accepted);
        assert!(!registry.will_hear(FDS[0], false), "nothing is known yet");
        registry.register(FDS[0], Some(INPUT));
        assert!(registry.will_hear(FDS[1], false));
        descriptors::registered(FDS[2]);
        assert!(!registry.will_hear(FDS[2], false), "another thread has registered it");
        descriptors::closed(FDS[3]);
        assert!(!registry.will_hear(FDS[3], false), "it was not accepted");
        registry.register(FDS[1], Some(Registration { events: INPUT.events | EPOLLONESHOT as u32, ..INPUT }));
        assert!(!registry.will_hear(FDS[4], false), "the server does otherwise now");
        registry.waits_for([FDS[4]].into_iter());
        assert!(registry.registers_late, "it is waited for by poll");
    }

    #[test]
    fn connections_that_a_server_has_put_aside_count_where_it_comes_back_to_them() {
        const FDS: [c_int; 4] = [60_010, 60_011, 60_012, 60_013];
        let mut registry = Registry::default();
        registry.waits_on(3);
        FDS.into_iter().for_each(descriptors::accepted);
        assert!(!registry.will_hear(FDS[0], true));
        registry.register(FDS[0], Some(INPUT));
        descriptors::registered(FDS[0]);
        registry.register(FDS[0], None);
        assert!(registry.will_hear(FDS[0], true) && !registry.will_hear(FDS[0], false));
        registry.register(FDS[0], Some(Registration { set: 4, ..INPUT }));
        assert!(!registry.will_hear(FDS[0], true), "it is in a set that this thread does not wait on");
        registry.register(FDS[0], None);
        assert!(!registry.will_hear(FDS[0], true), "it was not heard when it was taken out");
        registry.register(FDS[1], Some(INPUT));
        descriptors::registered(FDS[1]);
        registry.register(FDS[1], None);
        assert!(registry.knows(FDS[1]), "else it would not be forgotten when it is closed");
        registry.forget(FDS[1]);
        descriptors::closed(FDS[1]);
        assert!(!registry.will_hear(FDS[1], true), "it is closed");
        descriptors::registered(FDS[2]);
        assert!(!registry.will_hear(FDS[2], true), "another thread has registered it");
    }

    #[test]
    fn closed_descriptors_are_forgotten() {
        let mut registry = Registry::default();
        registry.waits_on(3);
        registry.register(5, Some(INPUT));
        registry.forget(5);
        assert!(!registry.hears(5));
        registry.register(5, Some(INPUT));
        registry.forget(3);
        assert!(!registry.hears(5), "the set is gone");
    }

    #[test]
    fn polled_descriptors_count_until_the_next_call() {
        let mut registry = Registry::default();
        registry.waits_for([4, 9].into_iter());
        assert!(registry.hears(4) && registry.hears(9) && !registry.hears(5));
        registry.waits_for([9].into_iter());
        assert!(!registry.hears(4) && registry.hears(9));
    }
}
