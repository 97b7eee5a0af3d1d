//! Sessions as a program holds them.

use crate::client::{Client, Fate};
use crate::link::Link;
use crate::pending::{Pending, Promise, pair};
use crate::readiness::Readiness;
use crate::reaper::Entry;
use crate::remote::Remote;
use crate::traced::Traced;
use crate::upstream::Queue;
use arc_swap::ArcSwapOption;
use bywash_core::{Direction, Keyed, Operation, OwnedOperation, Place, Result, SessionParams, Stream};
use bywash_protocol::{TraceEntry, monotonic_ns};
use std::sync::Arc;

/// An algorithm bound to a key. Cheap to clone, shared by threads, survives fork.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    client: Client,
    params: SessionParams,
    keyed: Box<dyn Keyed>,
    /// This process's number for it, in traces.
    number: u32,
    /// The session as the queue holds it, once an operation went there.
    remote: ArcSwapOption<Remote>,
}

impl Session {
    pub(crate) fn new(client: Client, params: SessionParams, keyed: Box<dyn Keyed>, number: u32) -> Self {
        Self(Arc::new(Inner { client, params, keyed, number, remote: ArcSwapOption::empty() }))
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
        if self.place(operation) == Place::Queue
            && let Some(result) = self.run_queued(operation)
        {
            return result;
        }
        self.run_here(operation)
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
        Ok(Box::new(Traced::new(self.clone(), self.0.keyed.stream(direction, iv)?, direction)))
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

    /// Whether the routing table keeps a (public-key) operation of this session in place.
    pub(crate) fn is_here(&self) -> bool {
        let algorithm = self.0.params.algorithm();
        self.0.client.place(algorithm, algorithm.output_len(0)) == Place::Here
    }

    pub(crate) fn keyed(&self) -> &dyn Keyed {
        &*self.0.keyed
    }

    fn place(&self, operation: &Operation<'_>) -> Place {
        self.0.client.place(self.0.params.algorithm(), operation.data.input_len())
    }

    /// Runs a checked operation here, and counts it.
    pub(crate) fn run_here(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (upstream, bytes) = (self.0.client.upstream(), operation.data.input_len() as u64);
        let arrival_ns = if upstream.is_recording() { monotonic_ns() } else { 0 };
        let written = self.0.client.run_here(self, operation)?;
        let algorithm = self.0.params.algorithm();
        upstream.count(algorithm, 1, bytes);
        if arrival_ns != 0 {
            let (session, direction) = (self.0.number, operation.direction);
            upstream.trace(TraceEntry { arrival_ns, start_ns: arrival_ns, done_ns: monotonic_ns(), bytes, session, algorithm, direction });
        }
        Ok(written)
    }

    /// Counts an operation that was run here as one of a batch, begun at `start_ns`.
    pub(crate) fn count_here(&self, operation: &OwnedOperation, start_ns: u64) {
        let (upstream, bytes, algorithm) = (self.0.client.upstream(), operation.input.len() as u64, self.0.params.algorithm());
        upstream.count(algorithm, 1, bytes);
        if upstream.is_recording() {
            let (session, direction) = (self.0.number, operation.direction);
            upstream.trace(TraceEntry { arrival_ns: start_ns, start_ns, done_ns: monotonic_ns(), bytes, session, algorithm, direction });
        }
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
                self.0.remote.store(Some(remote.clone()));
                Some(remote)
            }
        }
    }

    fn valid_remote(&self) -> Option<Arc<Remote>> {
        self.0.remote.load_full().filter(|remote| remote.is_valid())
    }

    fn open_at(&self, link: &Arc<Link>) -> Option<Arc<Remote>> {
        let keep = |remote: Remote| {
            let remote = Arc::new(remote);
            self.0.remote.store(Some(remote.clone()));
            remote
        };
        let opened = link.open(&self.0.params, || self.valid_remote(), |session| keep(Remote::Broker(session)));
        Some(opened.unwrap_or_else(|_| keep(Remote::refused(link.clone()))))
    }

    fn hand_over(&self, mut operation: OwnedOperation, readiness: Option<Readiness>) -> Pending {
        let (promise, pending) = pair(readiness);
        let checked = self.0.params.check(&operation.borrow());
        let queue = checked.is_ok() && self.place(&operation.borrow()) == Place::Queue;
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
