//! Operations that a caller has together.

use crate::session::Session;
use bywash_core::{Operation, Result, Task};
use bywash_protocol::monotonic_ns;
use std::collections::VecDeque;

/// Runs operations of any sessions of one client to their ends, and answers for each, in their order, what [`Session::run`] would.
///
/// Those that the routing table keeps in place go to the engine as one batch: public-key operations and CBC encryptions then run side by side
/// ([`Engine::together`](bywash_core::Engine::together)). Those for a broker are all handed over before the first of them is waited for, so that an engine there finds them together.
pub fn run_many(operations: &mut [(&Session, Operation<'_>)]) -> Vec<Result<usize>> {
    let Some((first, _)) = operations.first() else { return Vec::new() };
    let engine = first.client().engine();
    let start_ns = monotonic_ns();
    let mut outcomes = Vec::with_capacity(operations.len());
    let mut batch = Vec::with_capacity(operations.len());
    let (mut handed, mut waiting) = (Vec::new(), VecDeque::new());
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
            None => match waiting.is_empty().then(|| session.hand_over_borrowed(operation)).flatten() {
                Some(ticket) => handed.push((place, ticket)),
                None => waiting.push_back(place),
            },
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
    // What found no room beside the others finds it when they are done.
    loop {
        for (place, ticket) in handed.drain(..) {
            let (session, operation) = &mut operations[place];
            outcomes[place] = session.take_back(ticket, operation);
        }
        while let Some(&place) = waiting.front() {
            let (session, operation) = &mut operations[place];
            match session.hand_over_borrowed(operation) {
                Some(ticket) => handed.push((place, ticket)),
                None if handed.is_empty() => outcomes[place] = session.run(operation),
                None => break,
            }
            waiting.pop_front();
        }
        if handed.is_empty() {
            return outcomes;
        }
    }
}
