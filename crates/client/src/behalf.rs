//! Computing for other processes: whoever answers their requests has a client for each of them, so that a broker tells them apart.

use crate::attempts::Times;
use crate::by_user::{Counted, Counts};
use crate::client::Client;
use crate::config::Config;
use bywash_protocol::process::{Process, read};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// So many processes have a client of their own at a time, and so many of one user; the others share one. A broker lends one user memory for 512 unless it is told otherwise, and a
/// process that goes on from program to program with descriptors of each would have all of them.
pub(crate) const MOST: usize = 384;
pub(crate) const MOST_OF_ONE: usize = 192;

/// A process that is computed for.
#[derive(Debug)]
pub struct Behalf {
    process: OwnedFd,
    uid: u32,
    /// What it executes, by its path: a process that executes another program becomes another client.
    executable: PathBuf,
    program: String,
    times: Arc<Times>,
    /// Its client counts for as long as somebody holds it.
    _counted: Counted,
}

impl Behalf {
    /// Its command.
    pub fn program(&self) -> &str {
        &self.program
    }

    pub(crate) fn times(&self) -> &Arc<Times> {
        &self.times
    }

    fn has_ended(&self) -> bool {
        let mut watched = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Behalf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// The command of a process, by its number or `self`.
pub(crate) fn program_of(process: impl core::fmt::Display) -> String {
    read(&format!("/proc/{process}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// What it executes; nothing, if that may not be known.
fn executable_of(process: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default()
}

/// The clients of the processes that this one computes for: each has one, which ends with it.
///
/// Without a broker there is nobody who would tell them apart, and all share one.
pub struct Clients {
    config: Config,
    shared: Client,
    of: Mutex<Processes>,
    counts: Arc<Counts>,
    times: Arc<Times>,
    ends: OwnedFd,
    stop: OwnedFd,
}

/// By its number.
type Processes = HashMap<u32, (Arc<Behalf>, Client)>;

/// What `ends` tells of when it is no process.
const STOP: u64 = u64::MAX;
/// Who has a session of a client keeps its descriptor open, and that would be told of again and again.
const TOLD_ONCE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ONESHOT);

/// A watch for the end of processes, which ends with this.
pub struct Watched<'a>(&'a Clients);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn of_process(number: u32) -> epoll::EventData {
    epoll::EventData::new_u64(number.into())
}

impl Clients {
    /// None yet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(config: Config) -> Result<Self, Errno> {
        let (ends, stop) = (epoll::create(epoll::CreateFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
        epoll::add(&ends, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        let (shared, of) = (Client::new(config.clone()), Mutex::default());
        Ok(Self { config, shared, of, counts: Counts::new(MOST, MOST_OF_ONE), times: Arc::default(), ends, stop })
    }

    /// The client of the process that a thread belongs to. One that has executed another program, or is another user's since, gets another; what it opened before stays with the old one.
    ///
    /// That of all, if the thread's process cannot be told, as one outside of this namespace, or if very many have one.
    pub fn of(&self, thread: u32) -> Client {
        if self.config.socket.is_none() {
            return self.shared.clone();
        }
        self.own(thread).unwrap_or_else(|| self.shared.clone())
    }

    fn own(&self, thread: u32) -> Option<Client> {
        let Process { pid: number, uid, .. } = Process::of(thread)?;
        let executable = executable_of(number);
        let is_same = |behalf: &Behalf| behalf.uid == uid && behalf.executable == executable && !behalf.has_ended();
        if let Some((_, client)) = self.lock().get(&number).filter(|(behalf, _)| is_same(behalf)) {
            return Some(client.clone());
        }
        let _counted = self.counts.enter(uid)?;
        let process = pidfd_open(Pid::from_raw(number.cast_signed())?, PidfdFlags::empty()).ok()?;
        let behalf = Behalf { process, uid, executable, program: program_of(number), times: self.times.clone(), _counted };
        // Asked again, since the number may have passed on to another process before the descriptor was there.
        if Process::of(thread).is_none_or(|now| (now.pid, now.uid) != (number, uid)) {
            return None;
        }
        let behalf = Arc::new(behalf);
        let client = Client::new(Config { behalf: Some(behalf.clone()), ..self.config.clone() });
        let mut of = self.lock();
        epoll::add(&self.ends, &*behalf, of_process(number), TOLD_ONCE).ok()?;
        let old = of.insert(number, (behalf, client.clone()));
        drop(of);
        self.forget(old);
        Some(client)
    }

    /// Has a thread of this scope [watch](Self::watch_ends), until what is given is dropped, by a panic too.
    pub fn watched<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>) -> Watched<'env> {
        scope.spawn(|| self.watch_ends());
        Watched(self)
    }

    /// Forgets the clients of processes that have ended, until [`stop`](Self::stop); then all.
    pub fn watch_ends(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.ends, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let mut is_over = false;
            for number in events.iter().map(|event| event.data.u64()) {
                is_over |= number == STOP;
                self.end(number);
            }
            if is_over {
                let all = core::mem::take(&mut *self.lock());
                return self.forget(all.into_values());
            }
        }
    }

    /// A process of that number has ended, unless another has it by now.
    fn end(&self, number: u64) {
        let mut of = self.lock();
        let ended = u32::try_from(number).ok().and_then(|number| match of.entry(number) {
            Entry::Occupied(entry) if entry.get().0.has_ended() => Some(entry.remove()),
            Entry::Occupied(entry) => {
                // Woken by something else; should it not be watched again, the next open finds that it has ended, or the end of the run.
                let _ = epoll::modify(&self.ends, &*entry.get().0, of_process(number), TOLD_ONCE);
                None
            }
            Entry::Vacant(_) => None,
        });
        drop(of);
        self.forget(ended);
    }

    /// Connections end here, which is not done with the list locked. What they had not told, the client of all tells.
    fn forget(&self, clients: impl IntoIterator<Item = (Arc<Behalf>, Client)>) {
        clients.into_iter().for_each(|(_, client)| client.upstream().leave_to(self.shared.upstream()));
    }

    /// Ends [`watch_ends`](Self::watch_ends).
    pub fn stop(&self) {
        // A counter that overflowed would be as readable.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// How many processes have one.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Processes> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_though_the_kernel_has_cut_a_letter_of_it() {
        let named = std::thread::spawn(|| {
            rustix::thread::set_name(c"\xd0\xbf\xd1").unwrap();
            program_of(rustix::thread::gettid().as_raw_nonzero())
        });
        assert_eq!(named.join().unwrap(), "\u{43f}\u{fffd}");
    }
}
