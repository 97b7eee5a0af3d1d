//! Computing for other processes: whoever answers their requests has a client for each of them, so that a broker tells them apart.

use crate::client::Client;
use crate::config::Config;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process that is computed for.
#[derive(Debug)]
pub struct Behalf {
    process: OwnedFd,
    program: String,
}

impl Behalf {
    /// The process that a thread belongs to, and that process's number; `None` if it is none of those that this one can see.
    pub fn of(thread: u32) -> Option<(u32, Self)> {
        let number = process_of(thread)?;
        let process = pidfd_open(Pid::from_raw(number.cast_signed())?, PidfdFlags::empty()).ok()?;
        // Asked again, since the number may have passed on to another process before the descriptor was there.
        (process_of(thread) == Some(number)).then(|| (number, Self { process, program: program_of(number) }))
    }

    /// Its command.
    pub fn program(&self) -> &str {
        &self.program
    }
}

impl AsFd for Behalf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// The command of a process, by its number or `self`.
pub(crate) fn program_of(process: impl core::fmt::Display) -> String {
    let comm = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}

fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The clients of the processes that this one computes for: each has one, which ends with it.
///
/// Without a broker there is nobody who would tell them apart, and all share one.
pub struct Clients {
    config: Config,
    shared: Client,
    of: Mutex<HashMap<u32, (Arc<Behalf>, Client)>>,
    ends: OwnedFd,
    stop: OwnedFd,
}

/// What `ends` tells of when it is no process.
const STOP: u64 = u64::MAX;

impl Clients {
    /// None yet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(config: Config) -> Result<Self, Errno> {
        let (ends, stop) = (epoll::create(epoll::CreateFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
        epoll::add(&ends, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        Ok(Self { shared: Client::new(config.clone()), config, of: Mutex::default(), ends, stop })
    }

    /// The client of the process that a thread belongs to. One that has executed another program since gets another; what it opened before stays with the old one.
    ///
    /// That of all, if the thread's process cannot be told, as one outside of this namespace.
    pub fn of(&self, thread: u32) -> Client {
        if self.config.socket.is_none() {
            return self.shared.clone();
        }
        self.own(thread).unwrap_or_else(|| self.shared.clone())
    }

    fn own(&self, thread: u32) -> Option<Client> {
        let (number, behalf) = Behalf::of(thread)?;
        let mut of = self.lock();
        if let Some((known, client)) = of.get(&number)
            && known.program == behalf.program
            && !has_ended(known)
        {
            return Some(client.clone());
        }
        // Told once: who has a session of that client keeps the descriptor open, and it would be told of again and again.
        epoll::add(&self.ends, &behalf, epoll::EventData::new_u64(number.into()), epoll::EventFlags::IN | epoll::EventFlags::ONESHOT)
            .ok()?;
        let behalf = Arc::new(behalf);
        let client = Client::new(Config { behalf: Some(behalf.clone()), ..self.config.clone() });
        of.insert(number, (behalf, client.clone()));
        Some(client)
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
            let mut of = self.lock();
            let is_over = events.iter().any(|event| event.data.u64() == STOP);
            // Connections end after the lock is given back.
            let ended: Vec<_> = of.extract_if(|_, (behalf, _)| is_over || has_ended(behalf)).collect();
            drop(of);
            drop(ended);
            if is_over {
                return;
            }
        }
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

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, (Arc<Behalf>, Client)>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_ended(behalf: &Behalf) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(behalf, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
