//! Sessions as a program holds them.

use crate::client::{Client, Fate};
use crate::config::Route;
use crate::counted::Counted;
use crate::crowd;
use crate::link::Link;
use crate::pending::{Pending, Promise, pair};
use crate::readiness::Readiness;
use crate::reaper::Entry;
use crate::remote::Remote;
use crate::traced::Traced;
use crate::upstream::{Queue, View};
use arc_swap::ArcSwapOption;
use bywash_core::{Direction, Error, Hashing, Key, Keyed, Kind, Operation, OwnedOperation, Place, Result, SessionParams, Stream};
use bywash_protocol::keys::key_error;
use bywash_protocol::{Ticket, TraceEntry, monotonic_ns};
use once_cell::race::OnceBox;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How long a broker that holds a key may take to come back, if it was there a moment ago.
const RETURN_BOUND: Duration = Duration::from_secs(2);
/// Attempts that are made without a wait: a session that was ended is opened again, a connection that was cut is made anew.
const AT_ONCE: u32 = 3;
/// The wait between later attempts.
const RETRY: Duration = Duration::from_millis(20);

/// An operation that was handed over to a broker; dropped, it is given up.
pub(crate) struct Handed {
    remote: Arc<Remote>,
    ticket: Ticket,
}

/// An algorithm bound to a key. Cheap to clone, shared by threads, survives fork.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    client: Client,
    params: SessionParams,
    /// The key in this process; none if a broker's vault has it.
    keyed: Option<Box<dyn Keyed>>,
    /// Whether operations in place are run each by itself: the engine has no lanes for several. And not all go to the queue.
    is_single: bool,
    /// Whether its broker has lately answered, so that it is worth waiting for it to come back.
    steady: AtomicBool,
    /// This process's number for it, in traces.
    number: u32,
    /// The session as the queue holds it, once an operation went there. Most sessions of a server never have one, and the place for it costs more than
    /// opening the session. No lock, so that a fork finds none held.
    remote: OnceBox<ArcSwapOption<Remote>>,
}

impl Session {
    pub(crate) fn new(client: Client, params: SessionParams, keyed: Option<Box<dyn Keyed>>, number: u32) -> Self {
        let is_single = client.config().route != Route::Queue && client.engine().lanes(params.algorithm()) < 2;
        Self(Arc::new(Inner { client, params, keyed, is_single, steady: AtomicBool::new(false), number, remote: OnceBox::new() }))
    }

    /// The session's parameters.
    pub fn params(&self) -> &SessionParams {
        &self.0.params
    }

    /// Runs one operation to its end, where the routing table says; returns bytes of output.
    ///
    /// Bounded: an operation that a broker does not answer (dead, hung, overloaded) is run here, from the caller's own input, which is only
    /// overwritten when there is a result. It counts itself: callers use [`Client::count`] for streams alone.
    ///
    /// # Errors
    /// Those of [`SessionParams::check`] and of [`Keyed::run`].
    pub fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        self.0.params.check(operation)?;
        let Some(keyed) = &self.0.keyed else { return self.run_at_vault(operation) };
        let upstream = self.0.client.upstream();
        if self.0.is_single && upstream.is_unlinked() {
            let bytes = operation.work_len() as u64;
            let written = keyed.run(operation)?;
            upstream.count_unlinked(self.0.params.algorithm(), 1, bytes);
            return Ok(written);
        }
        let (algorithm, view) = (self.0.params.algorithm(), upstream.view());
        let place = view.place(algorithm, operation.work_len());
        let company = if place == Place::Queue { None } else { self.0.client.company(algorithm) };
        if place == Place::Here || company.is_some() {
            return self.run_with(&**keyed, operation, &view, company);
        }
        drop(view);
        match self.run_queued(operation) {
            Some(result) => result,
            None => self.run_here(operation),
        }
    }

    /// Hands one operation over and returns at once; an operation that the routing table keeps in place is done when this returns.
    ///
    /// At a broker it is watched by one thread a connection, started by the first such operation; in this process's own manager it runs in
    /// the manager's threads.
    pub fn submit(&self, operation: OwnedOperation) -> Pending {
        self.hand_over(operation, None)
    }

    /// As [`submit`](Self::submit), and makes `readiness` readable when it is done: for callers that sleep in `epoll_wait`.
    pub fn submit_notifying(&self, operation: OwnedOperation, readiness: &Readiness) -> Pending {
        self.hand_over(operation, Some(readiness.clone()))
    }

    /// A message in pieces, in the caller's place. Whoever drives it tells [`Client::count`] of each message.
    ///
    /// # Errors
    /// Those of [`Keyed::stream`].
    pub fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        let algorithm = self.0.params.algorithm();
        let keyed = self.0.keyed.as_ref().ok_or(Error::WrongOperation { algorithm, what: "work in pieces with a key of a vault" })?;
        Ok(Box::new(Traced::new(self.clone(), keyed.stream(direction, iv)?, direction)))
    }

    /// A digest or MAC of messages in pieces, in the caller's place. Each message is counted when it is finished: callers do not use [`Client::count`].
    ///
    /// # Errors
    /// [`Error::WrongOperation`] for what is no digest or MAC; those of [`Keyed::hashing`].
    pub fn hashing(&self) -> Result<Box<dyn Hashing>> {
        Ok(Box::new(Counted::new(self.clone(), self.hashing_uncounted()?)))
    }

    /// As [`hashing`](Self::hashing), for messages whose length is a secret: neither counted nor traced. Who drives it tells [`Client::count`] of what may be known.
    ///
    /// # Errors
    /// As [`hashing`](Self::hashing).
    pub fn hashing_uncounted(&self) -> Result<Box<dyn Hashing>> {
        let algorithm = self.0.params.algorithm();
        let hashes = matches!(algorithm.kind(), Kind::Digest { .. } | Kind::Mac { .. });
        let keyed = self.0.keyed.as_ref().filter(|_| hashes).ok_or(Error::WrongOperation { algorithm, what: "hash" })?;
        keyed.hashing()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }

    /// Whether operations of this session may wait in a [`Gather`](crate::Gather): they are computed in place, by the engine's own key.
    pub fn may_gather(&self) -> bool {
        self.0.client.engine().lanes(self.0.params.algorithm()) > 1 && self.is_here()
    }

    /// Whether the routing table keeps a (public-key) operation of this session, which has company in this process, in place.
    pub(crate) fn is_here(&self) -> bool {
        let algorithm = self.0.params.algorithm();
        self.0.keyed.is_some() && self.0.client.place(algorithm, algorithm.output_len(0)) != Place::Queue
    }

    /// [`run`](Self::run) in a thread whose connections are its operations' company: what is in place goes to no other process.
    pub(crate) fn run_among_own(&self, operation: &mut Operation<'_>) -> Result<usize> {
        if !self.is_here() {
            return self.run(operation);
        }
        self.0.params.check(operation)?;
        self.run_here(operation)
    }

    /// The key, unless a vault has it.
    pub(crate) fn keyed(&self) -> Option<&dyn Keyed> {
        self.0.keyed.as_deref()
    }

    fn place(&self, operation: &Operation<'_>) -> Place {
        self.0.client.place(self.0.params.algorithm(), operation.work_len())
    }

    /// Runs a checked operation here, or at the vault that has its key.
    pub(crate) fn run_here(&self, operation: &mut Operation<'_>) -> Result<usize> {
        match &self.0.keyed {
            Some(keyed) => {
                let (client, algorithm) = (&self.0.client, self.0.params.algorithm());
                self.run_with(&**keyed, operation, &client.upstream().view(), client.company(algorithm))
            }
            None => self.run_at_vault(operation),
        }
    }

    /// Runs a checked operation with a key of this process, together with other threads' where that gains, and counts it.
    fn run_with(
        &self,
        keyed: &dyn Keyed,
        operation: &mut Operation<'_>,
        view: &View<'_>,
        company: Option<Arc<crowd::Place>>,
    ) -> Result<usize> {
        let bytes = operation.work_len() as u64;
        let arrival_ns = if view.is_recording() { monotonic_ns() } else { 0 };
        let together = company.and_then(|company| company.run(self, operation));
        let written = together.unwrap_or_else(|| keyed.run(operation))?;
        let algorithm = self.0.params.algorithm();
        view.count(algorithm, 1, bytes);
        if arrival_ns != 0 {
            let (session, direction) = (self.0.number, operation.direction);
            self.0.client.upstream().trace(TraceEntry {
                arrival_ns,
                start_ns: arrival_ns,
                done_ns: monotonic_ns(),
                bytes,
                session,
                algorithm,
                direction,
                calls: 1,
            });
        }
        Ok(written)
    }

    /// The key, if the routing table keeps the operation in place.
    pub(crate) fn keyed_for(&self, operation: &Operation<'_>) -> Option<&dyn Keyed> {
        self.keyed().filter(|_| self.place(operation) != Place::Queue)
    }

    /// Counts an operation on so many bytes that was run here as one of a batch, begun at `start_ns`.
    pub(crate) fn count_here(&self, direction: Direction, bytes: usize, start_ns: u64) {
        let (upstream, bytes, algorithm) = (self.0.client.upstream(), bytes as u64, self.0.params.algorithm());
        upstream.count(algorithm, 1, bytes);
        if upstream.is_recording() {
            let session = self.0.number;
            let (done_ns, calls) = (monotonic_ns(), 1);
            upstream.trace(TraceEntry { arrival_ns: start_ns, start_ns, done_ns, bytes, session, algorithm, direction, calls });
        }
    }

    /// Hands a checked operation over to a broker, from where [`take_back`](Self::take_back) has it; `None` if there is none that takes it now.
    pub(crate) fn hand_over_borrowed(&self, operation: &Operation<'_>) -> Option<Handed> {
        let remote = self.0.keyed.as_ref().and_then(|_| self.remote())?;
        let ticket = match &*remote {
            Remote::Broker(session) => session.begin(operation)?,
            Remote::Refused { .. } | Remote::Embedded(_) => return None,
        };
        Some(Handed { remote, ticket })
    }

    /// Waits for an operation that was handed over.
    pub(crate) fn take_back(&self, handed: Handed, operation: &mut Operation<'_>) -> Result<usize> {
        let Handed { remote, ticket } = handed;
        let Remote::Broker(session) = &*remote else { return self.run(operation) };
        self.fate_of(session.finish(&self.0.params, ticket, operation)).unwrap_or_else(|| self.run_here(operation))
    }

    /// `None` if the operation has to be run here.
    fn run_queued(&self, operation: &mut Operation<'_>) -> Option<Result<usize>> {
        let Some(remote) = self.remote() else { return self.fate(Fate::Overflow, None) };
        match &*remote {
            Remote::Refused { .. } => self.fate(Fate::Overflow, None),
            Remote::Embedded(session) => self.fate_of(session.run(operation)),
            Remote::Broker(session) => match session.begin(operation) {
                None => self.fate(Fate::Overflow, None),
                Some(ticket) => self.fate_of(session.finish(&self.0.params, ticket, operation)),
            },
        }
    }

    fn fate_of(&self, result: Option<Result<usize>>) -> Option<Result<usize>> {
        self.fate(if result.is_some() { Fate::Queued } else { Fate::Rerun }, result)
    }

    fn fate(&self, fate: Fate, result: Option<Result<usize>>) -> Option<Result<usize>> {
        self.0.client.note(fate);
        result
    }

    /// Runs an operation whose key a broker's vault has, at that broker and nowhere else. One that restarts is waited for, if it has lately
    /// answered; the operation is then sent again, which changes nothing: no key's state depends on how often it is used.
    fn run_at_vault(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let began_ns = monotonic_ns();
        for attempt in 1.. {
            let why = match self.try_at_vault(operation) {
                Ok(result) => return result,
                Err(why) => why,
            };
            let waited = Duration::from_nanos(monotonic_ns() - began_ns);
            let hopeful = self.0.steady.load(Relaxed) && waited < RETURN_BOUND;
            if attempt >= AT_ONCE && !hopeful {
                self.0.steady.store(false, Relaxed);
                self.0.client.note(Fate::Overflow);
                return Err(self.without_vault(&why));
            }
            if attempt >= AT_ONCE {
                std::thread::sleep(RETRY);
            }
        }
        Err(self.without_vault("it was tried too often"))
    }

    /// One attempt: the outcome, or why there was none.
    fn try_at_vault(&self, operation: &mut Operation<'_>) -> core::result::Result<Result<usize>, String> {
        if self.0.client.config().socket.is_none() {
            return Err("no broker is configured (BYWASH_SOCKET)".into());
        }
        let remote = self.remote().ok_or_else(|| self.0.client.upstream().why_alone())?;
        match &*remote {
            Remote::Refused { error, .. } => Ok(Err(error.clone())),
            Remote::Embedded(_) => Err("this process works without a broker".into()),
            Remote::Broker(session) => {
                let Some(ticket) = session.begin(operation) else {
                    if !session.link().ring.holds(operation) {
                        return Ok(Err(
                            self.without_vault("what is to be computed on is larger than the memory it shares with this process")
                        ));
                    }
                    // One that has drained and gone says so no more, and only a look at its socket tells.
                    session.link().life.check();
                    return Err("the broker takes no more requests just now".into());
                };
                let result = session.finish(&self.0.params, ticket, operation).ok_or("the broker did not answer")?;
                self.0.steady.store(true, Relaxed);
                self.0.client.note(Fate::Queued);
                Ok(result)
            }
        }
    }

    fn without_vault(&self, why: &str) -> Error {
        let name = match self.0.params.key() {
            Key::Vault(reference) => reference.name.as_str(),
            _ => "?",
        };
        key_error(name, format!("the broker that holds it cannot be asked: {why}"))
    }

    /// The session at the queue, opened there if it is not yet.
    fn remote(&self) -> Option<Arc<Remote>> {
        let upstream = self.0.client.upstream();
        upstream.settle_fork();
        if let Some(remote) = self.valid_remote() {
            return Some(remote);
        }
        match upstream.queue()? {
            Queue::Broker(link) => self.open_at(&link),
            Queue::Embedded(embedded) => {
                let remote = Arc::new(Remote::Embedded(embedded.open(&self.0.params).ok()?));
                self.keep(&remote);
                Some(remote)
            }
        }
    }

    fn valid_remote(&self) -> Option<Arc<Remote>> {
        self.0.remote.get()?.load_full().filter(|remote| remote.is_valid())
    }

    fn keep(&self, remote: &Arc<Remote>) {
        self.0.remote.get_or_init(|| Box::new(ArcSwapOption::empty())).store(Some(remote.clone()));
    }

    fn open_at(&self, link: &Arc<Link>) -> Option<Arc<Remote>> {
        let keep = |remote: Remote| {
            let remote = Arc::new(remote);
            self.keep(&remote);
            remote
        };
        let opened = link.open(&self.0.params, || self.valid_remote(), |session| keep(Remote::Broker(session)));
        Some(opened.unwrap_or_else(|error| keep(Remote::refused(link.clone(), error))))
    }

    fn hand_over(&self, mut operation: OwnedOperation, readiness: Option<Readiness>) -> Pending {
        let (promise, pending) = pair(readiness);
        let checked = self.0.params.check(&operation.borrow());
        let queue = checked.is_ok() && (self.0.keyed.is_none() || self.place(&operation.borrow()) == Place::Queue);
        match checked {
            Err(error) => promise.complete(Err(error)),
            Ok(()) if queue => self.submit_queued(operation, promise),
            Ok(()) => self.complete_here(operation, promise),
        }
        pending
    }

    fn submit_queued(&self, mut operation: OwnedOperation, promise: Promise) {
        match self.remote().as_ref().map(|remote| (remote, &**remote)) {
            Some((_, Remote::Embedded(at))) => {
                let session = self.clone();
                at.submit(operation, move |result, operation| session.end(result, operation, promise));
            }
            Some((remote, Remote::Broker(at))) => match at.begin(&operation.borrow()) {
                None => self.overflow(operation, promise),
                Some(ticket) => {
                    let (session, remote) = (self.clone(), remote.clone());
                    let entry = Entry { ticket, session, remote, operation, promise, began_ns: monotonic_ns() };
                    if let Err(entry) = at.link().reaper().admit(entry) {
                        self.overflow(entry.operation, entry.promise);
                    }
                }
            },
            _ => self.overflow(operation, promise),
        }
    }

    fn overflow(&self, operation: OwnedOperation, promise: Promise) {
        self.0.client.note(Fate::Overflow);
        self.complete_here(operation, promise);
    }

    /// Ends an asynchronous operation with what the queue answered, or here if it did not.
    pub(crate) fn end(&self, result: Option<Result<usize>>, operation: OwnedOperation, promise: Promise) {
        match self.fate_of(result) {
            Some(result) => promise.complete(result.map(|_| operation)),
            None => self.complete_here(operation, promise),
        }
    }

    fn complete_here(&self, mut operation: OwnedOperation, promise: Promise) {
        let result = self.run_here(&mut operation.borrow());
        promise.complete(result.map(|_| operation));
    }
}
