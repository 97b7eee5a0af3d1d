//! Asynchronous operations at a broker: one thread a connection, started by the first of them, waits for them all.

use crate::life::Life;
use crate::link::{SLICE, is_overdue};
use crate::pending::Promise;
use crate::remote::Remote;
use crate::session::Session;
use bywash_core::OwnedOperation;
use bywash_protocol::{ClientRing, Ticket, monotonic_ns};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The waiting room.
pub(crate) struct Reaper {
    room: Mutex<Room>,
    bell: Condvar,
    ring: Arc<ClientRing>,
    life: Arc<Life>,
    given_up: Mutex<GivenUp>,
}

/// What the broker will not answer, and whether a thread of its own runs it: that may take long, and for a key of a vault's it waits for the broker's return, while
/// others' answers come.
#[derive(Default)]
struct GivenUp {
    entries: VecDeque<Unanswered>,
    runs: bool,
}

/// An operation that no ticket waits for any more.
struct Unanswered {
    session: Session,
    operation: OwnedOperation,
    promise: Promise,
}

#[derive(Default)]
struct Room {
    entries: Vec<Entry>,
    runs: bool,
    closed: bool,
}

/// An operation under way.
pub(crate) struct Entry {
    pub(crate) ticket: Ticket,
    pub(crate) session: Session,
    pub(crate) remote: Arc<Remote>,
    pub(crate) operation: OwnedOperation,
    pub(crate) promise: Promise,
    pub(crate) began_ns: u64,
}

impl Entry {
    /// Ends it with its answer, if that is there.
    fn try_end(self) -> Option<Entry> {
        let Some(outcome) = self.ticket.poll() else { return Some(self) };
        let Entry { ticket, session, remote, mut operation, promise, .. } = self;
        let result = match &*remote {
            Remote::Broker(at) => at.settle(session.params(), ticket, outcome, &mut operation.borrow()),
            _ => None,
        };
        session.end(result, operation, promise);
        None
    }

    /// Waits no longer for its answer.
    fn give_up(self) -> Unanswered {
        let Entry { session, operation, promise, .. } = self;
        Unanswered { session, operation, promise }
    }
}

impl Unanswered {
    /// Ends it by running it here.
    fn end_here(self) {
        self.session.end(None, self.operation, self.promise);
    }
}

/// What panics in it, a waker of the program's or an engine, has completed its promise by that; the others are waited for further.
fn walled<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_default()
}

impl Reaper {
    pub(crate) fn new(ring: Arc<ClientRing>, life: Arc<Life>) -> Arc<Self> {
        Arc::new(Self { room: Mutex::default(), bell: Condvar::new(), ring, life, given_up: Mutex::default() })
    }

    /// Takes an operation over, or gives it back where no thread can be had.
    pub(crate) fn admit(self: &Arc<Self>, entry: Entry) -> Result<(), Box<Entry>> {
        let mut room = self.lock();
        if !room.runs {
            let reaper = self.clone();
            let builder = std::thread::Builder::new().name("bywash-reaper".into()).stack_size(256 << 10);
            if builder.spawn(move || reaper.serve()).is_err() {
                return Err(Box::new(entry));
            }
            room.runs = true;
        }
        room.entries.push(entry);
        self.bell.notify_one();
        Ok(())
    }

    /// Lets the thread end once it has nothing left to wait for.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>) {
        let (mut mine, mut seen) = (Vec::new(), 0);
        while self.collect(&mut mine) {
            let before = mine.len();
            mine = mine.into_iter().filter_map(|entry| walled(|| entry.try_end())).collect();
            if mine.len() < before {
                self.life.progress(monotonic_ns());
            } else {
                seen = self.ring.wait_any(seen, SLICE);
                self.give_up(&mut mine);
            }
        }
    }

    /// Adds what was submitted; with nothing to wait for, sleeps until there is. False when it is over.
    fn collect(&self, mine: &mut Vec<Entry>) -> bool {
        let mut room = self.lock();
        while mine.is_empty() && room.entries.is_empty() {
            if room.closed {
                return false;
            }
            room = self.bell.wait(room).unwrap_or_else(PoisonError::into_inner);
        }
        mine.append(&mut room.entries);
        true
    }

    /// Has run here what the broker will not answer: all of it once the broker is gone.
    fn give_up(self: &Arc<Self>, mine: &mut Vec<Entry>) {
        let alive = self.life.check();
        let (lost, kept) = mine.drain(..).partition(|entry| !alive || is_overdue(&self.life, entry.began_ns));
        *mine = kept;
        let lost: Vec<Entry> = lost;
        let lost: Vec<_> = lost.into_iter().filter_map(|entry| walled(|| entry.try_end())).map(Entry::give_up).collect();
        if lost.is_empty() {
            return;
        }
        let mut given_up = self.given_up();
        given_up.entries.extend(lost);
        if !given_up.runs {
            given_up.runs = true;
            drop(given_up);
            let reaper = self.clone();
            let builder = std::thread::Builder::new().name("bywash-rerun".into()).stack_size(256 << 10);
            if builder.spawn(move || reaper.end_given_up()).is_err() {
                self.end_given_up();
            }
        }
    }

    fn given_up(&self) -> MutexGuard<'_, GivenUp> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_given_up(&self) {
        loop {
            let mut given_up = self.given_up();
            let Some(one) = given_up.entries.pop_front() else {
                given_up.runs = false;
                return;
            };
            drop(given_up);
            let _: Option<()> = walled(|| {
                one.end_here();
                None
            });
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if self.life.is_mine() {
            return;
        }
        // In a forked child: tickets give their slots back when they are dropped, and these are the parent's.
        let room = self.room.get_mut().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut room.entries).into_iter().for_each(core::mem::forget);
    }
}
