//! Requests that the policy has cut: their parts are requests of their own, and what they compute is put together here, with no lock of the manager held.
//!
//! The first part writes into the whole's own output, from its beginning; the others' results are copied behind it. Each has the session's engines to fall back on, so a part whose engine
//! fails is computed elsewhere like any request. The whole ends when all its parts have; with the error of one that failed, if any did.

use crate::request::{Completion, Deliver, Done, End, Inputs, Outputs, Way};
use crate::session::Session;
use bywash_core::{Result, SecretBytes, Time, divide};
use bywash_policy::{EngineId, Request};
use std::sync::{Arc, Mutex, PoisonError};

/// A request that was cut.
pub(crate) struct Whole {
    request: Request,
    arrival: Time,
    inputs: Arc<Inputs>,
    state: Mutex<Progress>,
}

struct Progress {
    deliver: Option<Deliver>,
    /// Parts that have not ended.
    left: usize,
    /// Where parts begin, and what they computed.
    pieces: Vec<(usize, SecretBytes)>,
    outcome: Option<Result<Done>>,
    /// Whether an engine had to change its session for any of them.
    switched: bool,
}

/// A part as it is admitted.
pub(crate) struct Part {
    pub(crate) engine: EngineId,
    pub(crate) bytes: usize,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Option<Outputs>,
    pub(crate) end: End,
}

/// Cuts a request that arrives now as a policy said; gives everything back if that is no way to cut it.
#[allow(clippy::result_large_err, reason = "what came in")]
pub(crate) fn cut(
    now: Time,
    request: &Request,
    session: &Session,
    sizes: &[(EngineId, u64)],
    inputs: Arc<Inputs>,
    outputs: Outputs,
    deliver: Deliver,
) -> core::result::Result<Vec<Part>, (Arc<Inputs>, Outputs, Deliver)> {
    let cipher = |direction, block| session.tweak(direction, block);
    let mut begin = 0;
    let mut cuts = Vec::with_capacity(sizes.len());
    for &(engine, bytes) in sizes {
        let bytes = bytes as usize;
        let iv = divide::iv_at(request.algorithm, request.direction, inputs.iv(), inputs.text(), begin, &cipher);
        let (Some(iv), Some(end)) = (iv.filter(|_| bytes > 0), begin.checked_add(bytes).filter(|&end| end <= inputs.text().len())) else {
            return Err((inputs, outputs, deliver));
        };
        cuts.push((engine, begin..end, iv));
        begin = end;
    }
    if begin != inputs.text().len() || cuts.len() < 2 {
        return Err((inputs, outputs, deliver));
    }
    let state =
        Progress { deliver: Some(deliver), left: cuts.len(), pieces: Vec::with_capacity(cuts.len()), outcome: None, switched: false };
    let whole = Arc::new(Whole { request: *request, arrival: now, inputs, state: Mutex::new(state) });
    let mut outputs = Some(outputs);
    let part = |(engine, range, iv): (EngineId, core::ops::Range<usize>, Vec<u8>)| {
        let (begin, bytes) = (range.start, range.len());
        let inputs = Arc::new(Inputs::part_of(&whole.inputs, iv, range));
        Part { engine, bytes, inputs, outputs: outputs.take(), end: End::Part(whole.clone(), begin) }
    };
    Ok(cuts.into_iter().map(part).collect())
}

impl Whole {
    /// A part has ended; with the last one the whole has.
    pub(crate) fn take(self: Arc<Self>, begin: usize, way: &Way, part: Completion) -> Option<(Way, Deliver, Completion)> {
        let (deliver, mut pieces, outcome, switched) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pieces.push((begin, part.operation.output));
            state.outcome = Some(match (state.outcome.take(), part.outcome) {
                (None, outcome) => outcome,
                (Some(Ok(one)), Ok(other)) => Ok(both(one, other)),
                (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            });
            state.switched |= way.switched;
            state.left -= 1;
            if state.left > 0 {
                return None;
            }
            (state.deliver.take()?, core::mem::take(&mut state.pieces), state.outcome.take()?, state.switched)
        };
        pieces.sort_by_key(|(begin, _)| *begin);
        let mut pieces = pieces.into_iter();
        let (_, mut output) = pieces.next()?;
        for (begin, piece) in pieces.filter(|_| outcome.is_ok()) {
            output[begin..begin + piece.len()].copy_from_slice(&piece);
        }
        let id = self.request.id;
        let whole = Way { request: self.request, arrival: self.arrival, switched, direction: way.direction, reason: way.reason };
        let inputs = Arc::try_unwrap(self).map_or_else(|shared| shared.inputs.clone(), |whole| whole.inputs);
        let operation = inputs.join(Some(Outputs::of(output)));
        Some((whole, deliver, Completion { id, operation, outcome }))
    }
}

/// Of two parts: the engine of the longer one, and the time that both took.
fn both(one: Done, other: Done) -> Done {
    let longer = if other.written > one.written { other } else { one };
    Done {
        written: one.written + other.written,
        engine: longer.engine,
        dispatched: one.dispatched.min(other.dispatched),
        start: one.start.min(other.start),
        done: one.done.max(other.done),
    }
}
