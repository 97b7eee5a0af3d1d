//! The boundary to engines: nothing beyond it can bring a thread down.

use bywash_core::{Algorithm, Data, Engine, Error, Keyed, Result, SessionParams, Task};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Opens a session on an engine; a panic is an engine's failure.
pub(crate) fn open(engine: &dyn Engine, params: &SessionParams) -> Result<Box<dyn Keyed>> {
    catch_unwind(AssertUnwindSafe(|| engine.open(params))).unwrap_or_else(|_| Err(panicked(engine)))
}

/// Runs a batch. After a panic in the processor's own code its tasks are run one by one, so that one does not make others fail; those that work in place, of which the input may be lost, and
/// every task of another engine, count as failed.
pub(crate) fn run(engine: &dyn Engine, tasks: &mut [Task<'_>]) {
    if catch_unwind(AssertUnwindSafe(|| engine.run(tasks))).is_ok() {
        return;
    }
    let again = engine.is_local() && tasks.len() > 1;
    for task in tasks {
        match &task.operation.data {
            Data::Copy { .. } if again => run(engine, core::slice::from_mut(task)),
            _ => task.outcome = Err(panicked(engine)),
        }
    }
}

/// Loads circuits; a panic is an engine's failure.
pub(crate) fn load(engine: &dyn Engine, circuits: &[Algorithm]) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| engine.load(circuits))).unwrap_or_else(|_| Err(panicked(engine)))
}

fn panicked(engine: &dyn Engine) -> Error {
    Error::EngineFailed { engine: engine.name().to_owned(), reason: "it panicked".into() }
}

/// Whether another engine may do better: the error is not the caller's and not the data's.
pub(crate) fn is_engine_fault(error: &Error) -> bool {
    // Keys are checked when a session is opened; one that a further engine refuses is that engine's own limit.
    blames_engine(error) || matches!(error, Error::Unsupported { .. } | Error::BadKey { .. })
}

/// Whether the error counts against the engine's health.
pub(crate) fn blames_engine(error: &Error) -> bool {
    matches!(error, Error::EngineFailed { .. } | Error::NotRun | Error::Unavailable { .. } | Error::Timeout { .. })
}
