//! Operations that a caller has together.

use crate::session::Session;
use bywash_core::{Operation, Result, Task};
use bywash_protocol::monotonic_ns;

/// Runs operations of any sessions of one client to their ends, and answers for each, in their order, what [`Session::run`] would.
///
/// Those that the routing table keeps in place go to the engine as one batch: public-key operations and CBC encryptions then run side by side
/// ([`Engine::together`](bywash_core::Engine::together)). The others are run where the table says, one after the other.
pub fn run_many(operations: &mut [(&Session, Operation<'_>)]) -> Vec<Result<usize>> {
    let Some((first, _)) = operations.first() else { return Vec::new() };
    let engine = first.client().engine();
    let start_ns = monotonic_ns();
    let mut outcomes = Vec::with_capacity(operations.len());
    let mut batch = Vec::with_capacity(operations.len());
    for (place, (session, operation)) in operations.iter_mut().enumerate() {
        outcomes.push(session.params().check(operation).map(|()| 0));
        if outcomes[place].is_err() {
            continue;
        }
        match session.keyed_for(operation) {
            Some(keyed) => {
                let facts = (place, *session, operation.direction, operation.work_len());
                batch.push((facts, Task::new(keyed, operation.reborrow())));
            }
            None => outcomes[place] = session.run(operation),
        }
    }
    let (facts, mut tasks): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    if !tasks.is_empty() {
        engine.run(&mut tasks);
    }
    for ((place, session, direction, bytes), task) in facts.into_iter().zip(tasks) {
        if task.outcome.is_ok() {
            session.count_here(direction, bytes, start_ns);
        }
        outcomes[place] = task.outcome;
    }
    outcomes
}
