//! Operations that wait for company in one thread, and are computed side by side.

use crate::session::Session;
use bywash_core::{Algorithm, Error, Operation, OwnedOperation, Result, Task, Time};
use bywash_manager::thread_ns;
use bywash_policy::firing::{self, Firing, Shot};
use bywash_protocol::monotonic_ns;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A batch where the engine has no lanes and operations are put off all the same.
const ALWAYS_LANES: usize = 8;

/// The last ticket. One count for all threads: who is resumed by another thread than it was put off in finds no other's operation under its ticket there.
static LAST: AtomicU64 = AtomicU64::new(0);

/// An operation in a [`Gather`]; no other has the same in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// When a [`Gather`] is asked to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An operation was added: full batches are computed.
    Arrived,
    /// The thread has found other work: full batches are computed, and what has waited too long.
    Busy,
    /// The thread is about to block: one batch or one operation is computed; then it should look for other work again.
    Blocking,
    /// Somebody insists on this operation.
    Demanded(Ticket),
}

/// Operations that one thread has put off, and the policy that says when to compute them ([`bywash_policy::firing`]).
///
/// It owns its operations; inputs and outputs are zeroised when they are dropped. Nothing is computed but in [`fire`](Self::fire).
#[derive(Default)]
pub struct Gather {
    firing: Option<Firing>,
    /// In the order of arrival.
    waiting: Vec<Entry>,
    done: Vec<(Ticket, Result<OwnedOperation>)>,
    has_put_off: bool,
    untimed: u32,
    always: bool,
}

struct Entry {
    ticket: Ticket,
    session: Session,
    operation: OwnedOperation,
}

impl Entry {
    fn algorithm(&self) -> Algorithm {
        self.session.params().algorithm()
    }
}

impl Gather {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that puts every operation off, gain or not: for tests, and for machines whose engine has no lanes.
    pub fn putting_all_off() -> Self {
        Self { always: true, ..Self::default() }
    }

    /// The policy, for the engine of the first session that comes. All sessions of a process have the same kind of engine.
    fn firing(&mut self, session: &Session) -> &mut Firing {
        let least = if self.always { ALWAYS_LANES } else { 1 };
        self.firing.get_or_insert_with(|| Firing::new(session.client().engine().batch_max().max(least)))
    }

    /// Whether an operation of this session is better put off, where so many connections are busy.
    pub fn is_worth_waiting(&mut self, session: &Session, company: usize) -> bool {
        if self.always {
            return session.is_here();
        }
        session.may_gather() && self.firing(session).is_worth_waiting(session.params().algorithm(), company)
    }

    /// How many operations wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Puts an operation off. It is not computed before [`fire`](Self::fire) says so.
    ///
    /// # Errors
    /// Those of [`SessionParams::check`](bywash_core::SessionParams::check); [`Error::WrongOperation`] for a key that only a broker has.
    pub fn add(&mut self, session: &Session, mut operation: OwnedOperation) -> Result<Ticket> {
        session.params().check(&operation.borrow())?;
        if session.keyed().is_none() {
            return Err(Error::WrongOperation { algorithm: session.params().algorithm(), what: "wait for company with a key of a vault" });
        }
        self.has_put_off = true;
        let ticket = Ticket(LAST.fetch_add(1, Relaxed));
        self.firing(session).arrived(now(), session.params().algorithm());
        self.waiting.push(Entry { ticket, session: session.clone(), operation });
        Ok(ticket)
    }

    /// Computes what the policy thinks best at this moment; answers what is done.
    pub fn fire(&mut self, moment: Moment) -> Vec<Ticket> {
        let mut done = Vec::new();
        while let Some(shot) = self.decide(moment) {
            self.compute(shot, &mut done);
            if moment == Moment::Blocking {
                break;
            }
        }
        done
    }

    fn decide(&mut self, moment: Moment) -> Option<Shot> {
        if self.waiting.is_empty() {
            return None;
        }
        let moment = match moment {
            Moment::Arrived => firing::Moment::Arrived,
            Moment::Busy => firing::Moment::Busy,
            Moment::Blocking => firing::Moment::Blocking,
            Moment::Demanded(ticket) => firing::Moment::Demanded(self.waiting.iter().find(|entry| entry.ticket == ticket)?.algorithm()),
        };
        self.firing.as_mut()?.decide(now(), moment)
    }

    fn compute(&mut self, shot: Shot, done: &mut Vec<Ticket>) {
        let mut left = shot.count;
        let mut chosen: Vec<Entry> = self
            .waiting
            .extract_if(.., |entry| {
                let is_chosen = left > 0 && entry.algorithm() == shot.algorithm;
                left -= usize::from(is_chosen);
                is_chosen
            })
            .collect();
        let start = self.firing.as_mut().is_some_and(|firing| firing.is_timed(shot)).then(thread_ns);
        let outcomes = if shot.side_by_side { side_by_side(&mut chosen) } else { one_by_one(&mut chosen) };
        if let Some(firing) = &mut self.firing {
            firing.observe(shot, start.map(|start| thread_ns().saturating_sub(start)));
        }
        for (entry, outcome) in chosen.into_iter().zip(outcomes) {
            done.push(entry.ticket);
            self.done.push((entry.ticket, outcome.map(|_| entry.operation)));
        }
    }

    /// Whether an operation's outcome can be taken.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.done.iter().any(|(done, _)| *done == ticket)
    }

    /// The outcome of an operation that is done.
    pub fn take(&mut self, ticket: Ticket) -> Option<Result<OwnedOperation>> {
        let index = self.done.iter().position(|(done, _)| *done == ticket)?;
        Some(self.done.swap_remove(index).1)
    }

    /// Withdraws an operation, done or not.
    pub fn withdraw(&mut self, ticket: Ticket) {
        drop(self.take(ticket));
        let Some(index) = self.waiting.iter().position(|entry| entry.ticket == ticket) else { return };
        let entry = self.waiting.remove(index);
        let place = self.waiting[..index].iter().filter(|before| before.algorithm() == entry.algorithm()).count();
        if let Some(firing) = &mut self.firing {
            firing.withdrawn(entry.algorithm(), place);
        }
    }

    /// [`Session::run`] for an operation that is not put off; now and then its time is taken, for the policy to compare with.
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub fn run(&mut self, session: &Session, operation: &mut Operation<'_>) -> Result<usize> {
        if !self.has_put_off {
            // Nothing was ever put off: this thread blocks, and other processes may be its operations' company.
            return session.run(operation);
        }
        self.untimed += 1;
        if self.untimed < firing::TIMED_EVERY || !session.may_gather() {
            return session.run_among_own(operation);
        }
        self.untimed = 0;
        let start = thread_ns();
        let result = session.run_among_own(operation);
        self.firing(session).observe_alone(session.params().algorithm(), thread_ns().saturating_sub(start));
        result
    }
}

fn now() -> Time {
    Time(monotonic_ns())
}

// Somebody waits for each of the operations below: should the engine have a bug, they learn that theirs was not run.

fn one_by_one(chosen: &mut [Entry]) -> Vec<Result<usize>> {
    let run = |entry: &mut Entry| entry.session.run_here(&mut entry.operation.borrow());
    chosen.iter_mut().map(|entry| catch_unwind(AssertUnwindSafe(|| run(entry))).unwrap_or_else(|_| Err(bug()))).collect()
}

fn side_by_side(chosen: &mut [Entry]) -> Vec<Result<usize>> {
    let Some(first) = chosen.first().map(|entry| entry.session.clone()) else { return Vec::new() };
    let start_ns = monotonic_ns();
    let lanes = chosen.len();
    let mut batch: Vec<Task<'_>> =
        chosen.iter_mut().filter_map(|Entry { session, operation, .. }| Some(Task::new(session.keyed()?, operation.borrow()))).collect();
    assert_eq!(batch.len(), lanes, "whoever waits here has a key here, so that each gets its own outcome");
    let run = catch_unwind(AssertUnwindSafe(|| first.client().engine().run(&mut batch)));
    let outcomes: Vec<Result<usize>> = batch.into_iter().map(|task| task.outcome).collect();
    let outcomes = if run.is_ok() { outcomes } else { outcomes.into_iter().map(|_| Err(bug())).collect() };
    first.client().note_batch(first.params().algorithm(), chosen.len() as u64);
    for entry in &*chosen {
        entry.session.count_here(entry.operation.direction, entry.operation.input.len(), start_ns);
    }
    outcomes
}

fn bug() -> Error {
    Error::EngineFailed { engine: "cpu".into(), reason: "a bug stopped the batch".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Config};
    use bywash_core::{Direction, Key, SecretBytes, SessionParams};

    #[test]
    fn a_ticket_of_one_thread_is_nobodys_in_another() {
        let private = Key::EcPrivate(SecretBytes::from(&[9; 32][..]));
        let session = Client::new(Config::default()).session(SessionParams::new(Algorithm::X25519Public, private).unwrap()).unwrap();
        let put_off = |gather: &mut Gather| {
            let (input, output) = (SecretBytes::zeroed(0), SecretBytes::zeroed(32));
            let operation =
                OwnedOperation { direction: Direction::Compute, iv: Vec::new(), aad: Vec::new(), input, output, tag: Vec::new() };
            gather.add(&session, operation).unwrap()
        };
        let (mut one, mut other) = (Gather::putting_all_off(), Gather::putting_all_off());
        let (ticket, others) = (put_off(&mut one), put_off(&mut other));
        assert_eq!(other.fire(Moment::Demanded(others)), [others]);
        assert!(!other.is_done(ticket) && other.take(ticket).is_none());
        other.withdraw(ticket);
        assert!(other.take(others).is_some_and(|outcome| outcome.is_ok()), "it is there still");
        assert_eq!(one.fire(Moment::Demanded(ticket)), [ticket]);
    }
}
