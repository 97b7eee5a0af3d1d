//! Requests that the policy has cut: their parts are requests of their own, and what they compute is put together here, with no lock of the manager held.
//!
//! Each part writes its piece of the whole's own output, so there is nothing to copy. Each has the session's engines to fall back on, so a part whose engine fails is computed elsewhere like
//! any request; if that engine hangs, and so may write to its piece still, the part has memory of its own next time, and the whole too. The whole ends when all its parts have; with the error
//! of one that failed, if any did.

use crate::request::{Completion, Deliver, Done, End, Inputs, Output, Outputs, Way};
use crate::session::Session;
use bywash_core::{Result, SecretBytes, Time, divide};
use bywash_pieces::Piece;
use bywash_policy::{EngineId, Request, RequestId};
use std::sync::{Arc, Mutex, PoisonError};

/// A request that was cut.
pub(crate) struct Whole {
    request: Request,
    arrival: Time,
    state: Mutex<Progress>,
}

struct Progress {
    deliver: Option<Deliver>,
    inputs: Option<Arc<Inputs>>,
    /// Parts that have not ended.
    left: usize,
    /// Where parts begin, and what they computed.
    pieces: Vec<(usize, Output)>,
    outcome: Option<Result<Done>>,
    /// Whether an engine had to change its session for any of them.
    switched: bool,
}

/// A part as it is admitted.
pub(crate) struct Part {
    pub(crate) engine: EngineId,
    pub(crate) bytes: usize,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Outputs,
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
    if begin != inputs.text().len() || begin > inputs.room() || cuts.len() < 2 {
        return Err((inputs, outputs, deliver));
    }
    let places: Vec<usize> = cuts.iter().skip(1).map(|(_, range, _)| range.start).collect();
    let pieces = match outputs.cut(&places) {
        Ok(pieces) => pieces,
        Err(outputs) => return Err((inputs, outputs, deliver)),
    };
    let state = Progress {
        deliver: Some(deliver),
        inputs: Some(inputs.clone()),
        left: cuts.len(),
        pieces: Vec::new(),
        outcome: None,
        switched: false,
    };
    let whole = Arc::new(Whole { request: *request, arrival: now, state: Mutex::new(state) });
    let part = |((engine, range, iv), piece): ((EngineId, core::ops::Range<usize>, Vec<u8>), Piece)| {
        let (begin, bytes) = (range.start, range.len());
        let inputs = Arc::new(Inputs::part_of(&inputs, iv, range));
        Part { engine, bytes, inputs, outputs: Outputs::of(Output::Piece(piece)), end: End::Part(whole.clone(), begin) }
    };
    Ok(cuts.into_iter().zip(pieces).map(part).collect())
}

impl Whole {
    /// Whether it is that request.
    pub(crate) fn is(&self, id: RequestId) -> bool {
        self.request.id == id
    }

    /// A part has ended, with what it was to write if that came back; with the last one the whole has.
    pub(crate) fn take(
        self: Arc<Self>,
        begin: usize,
        way: &Way,
        outputs: Option<Outputs>,
        outcome: Result<Done>,
    ) -> Option<(Way, Deliver, Completion)> {
        let (deliver, inputs, pieces, outcome, switched) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pieces.extend(outputs.map(|outputs| (begin, outputs.output)));
            state.outcome = Some(match (state.outcome.take(), outcome) {
                (None, outcome) => outcome,
                (Some(Ok(one)), Ok(other)) => Ok(both(one, other)),
                (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            });
            state.switched |= way.switched;
            state.left -= 1;
            if state.left > 0 {
                return None;
            }
            (state.deliver.take()?, state.inputs.take()?, core::mem::take(&mut state.pieces), state.outcome.take()?, state.switched)
        };
        let output = together(pieces, inputs.room());
        let id = self.request.id;
        let whole = Way { request: self.request, arrival: self.arrival, switched, direction: way.direction, reason: way.reason };
        let operation = inputs.join(Some(Outputs::of(Output::All(output))));
        Some((whole, deliver, Completion { id, operation, outcome }))
    }
}

/// What parts have written: the whole's own output, if all of its pieces are back, or a copy with so much room.
fn together(parts: Vec<(usize, Output)>, room: usize) -> SecretBytes {
    let (mut pieces, mut others) = (Vec::with_capacity(parts.len()), Vec::new());
    for (begin, output) in parts {
        match output {
            Output::Piece(piece) => pieces.push((begin, piece)),
            Output::All(bytes) => others.push((begin, bytes)),
        }
    }
    let (begins, pieces): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
    Piece::join(pieces).unwrap_or_else(|pieces| {
        let mut output = SecretBytes::zeroed(room);
        let pieces = begins.iter().zip(&pieces).map(|(&begin, piece)| (begin, &**piece));
        for (begin, text) in pieces.chain(others.iter().map(|(begin, bytes)| (*begin, &**bytes))) {
            output[begin..begin + text.len()].copy_from_slice(text);
        }
        output
    })
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
