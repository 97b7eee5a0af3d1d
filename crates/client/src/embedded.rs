//! A manager in this process, for what is queued where there is no broker.

use bywash_core::{Data, Error, Operation, Result, SessionParams};
use bywash_manager::{Completion, Costs, Manager, ManagerConfig, SessionId, probe};
use bywash_protocol::Generation;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The one client number of an embedded manager.
const CLIENT: u32 = 0;

/// A manager that this process made for itself.
pub(crate) struct Embedded {
    manager: Option<Arc<Manager>>,
    process: Generation,
    usable: AtomicBool,
}

impl Embedded {
    /// Makes one over all engines of this machine. Costs are learnt as requests run, for a caller waits for this.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let config = ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) };
        Ok(Arc::new(Self { manager: Some(Manager::new(config)?), process: Generation::current(), usable: AtomicBool::new(true) }))
    }

    pub(crate) fn is_mine(&self) -> bool {
        self.process.is_current()
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Relaxed)
    }

    /// For a forked child: the threads of this manager are the parent's, and do not exist here.
    pub(crate) fn disown(&self) {
        self.usable.store(false, Relaxed);
    }

    pub(crate) fn open(self: &Arc<Self>, params: &SessionParams) -> Result<EmbeddedSession> {
        let id = self.manager()?.open(CLIENT, params.clone())?;
        Ok(EmbeddedSession { embedded: self.clone(), id })
    }

    fn manager(&self) -> Result<&Arc<Manager>> {
        self.manager.as_ref().ok_or_else(|| Error::Unavailable { what: "this process's manager is gone".into() })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // A child must not even end its parent's manager: a lock in it may be held by a thread that does not exist here.
        if !self.is_mine() {
            core::mem::forget(self.manager.take());
        }
    }
}

/// A session of an embedded manager; closed on drop.
pub(crate) struct EmbeddedSession {
    embedded: Arc<Embedded>,
    id: SessionId,
}

impl EmbeddedSession {
    pub(crate) fn is_usable(&self) -> bool {
        self.embedded.is_usable()
    }

    /// Runs it; `None` if it has to be run outside of the manager.
    pub(crate) fn run(&self, operation: &mut Operation<'_>) -> Option<Result<usize>> {
        let outcome = self.embedded.manager().and_then(|manager| manager.run(self.id, operation));
        match outcome {
            Ok(done) => Some(Ok(done.written)),
            // What was worked on in place may be destroyed by an engine that failed half-way: then the error is all there is.
            Err(error) if is_managers_fault(&error) && matches!(operation.data, Data::Copy { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Hands it over; `done` is given the operation back, and `None` if it has to be run outside of the manager.
    pub(crate) fn submit(
        &self,
        operation: bywash_core::OwnedOperation,
        done: impl FnOnce(Option<Result<usize>>, bywash_core::OwnedOperation) + Send + 'static,
    ) {
        let Ok(manager) = self.embedded.manager() else { return done(None, operation) };
        let on_done = move |Completion { operation, outcome, .. }: Completion| match outcome {
            Err(error) if is_managers_fault(&error) => done(None, operation),
            outcome => done(Some(outcome.map(|done| done.written)), operation),
        };
        manager.submit(self.id, operation, Box::new(on_done));
    }
}

fn is_managers_fault(error: &Error) -> bool {
    matches!(
        error,
        Error::EngineFailed { .. }
            | Error::NotRun
            | Error::Unsupported { .. }
            | Error::Unavailable { .. }
            | Error::Timeout { .. }
            | Error::NoSession { .. }
    )
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        if self.embedded.is_mine()
            && let Ok(manager) = self.embedded.manager()
        {
            // It fails only for a session that the manager has dropped already.
            let _ = manager.close(self.id);
        }
    }
}
