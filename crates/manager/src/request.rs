//! Requests on their way: what is kept of one, how it is handed to a thread, how its end is told.

use crate::parts::Whole;
use crate::session::Session;
use bywash_core::{Data, Direction, Error, Operation, OwnedOperation, Result, SecretBytes, Time};
use bywash_pieces::Piece;
use bywash_policy::{EngineId, Reason, Request, RequestId};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How a request went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes of output, the tag not counted.
    pub written: usize,
    /// Which engine did it; [`Manager::engine_name`](crate::Manager::engine_name) has its name.
    pub engine: EngineId,
    /// When it was given to the engine, since the manager was made.
    pub dispatched: Time,
    /// When the engine began.
    pub start: Time,
    /// When the result was there.
    pub done: Time,
}

/// The end of a submitted request. There is exactly one for each.
#[derive(Debug)]
pub struct Completion {
    /// Which request.
    pub id: RequestId,
    /// Its buffers, the output filled if all went well.
    pub operation: OwnedOperation,
    /// How it went.
    pub outcome: Result<Done>,
}

/// What is called when a submitted request has ended: in one of the manager's threads, in a blocked caller's, or in the one that hands it over, before that returns. So it must be
/// short and must not wait for another request.
pub type OnDone = Box<dyn FnOnce(Completion) + Send>;

/// What an engine reads of a text.
#[derive(Clone)]
enum Text {
    All(SecretBytes),
    /// A part of another's.
    Part(Arc<Inputs>, core::ops::Range<usize>),
}

/// What an engine reads. Shared, so that a stalled engine can go on reading while another computes the same request.
pub(crate) struct Inputs {
    direction: Direction,
    iv: Vec<u8>,
    aad: Vec<u8>,
    input: Text,
    tag: Vec<u8>,
    room: usize,
}

/// Where an engine writes a text.
pub(crate) enum Output {
    All(SecretBytes),
    /// A piece of the whole's, of which this is a part.
    Piece(Piece),
}

impl Output {
    fn text_mut(&mut self) -> &mut [u8] {
        match self {
            Self::All(bytes) => bytes,
            Self::Piece(piece) => piece,
        }
    }
}

/// What an engine writes. Each attempt has its own, so that a late one cannot spoil another's.
pub(crate) struct Outputs {
    pub(crate) output: Output,
    tag: Vec<u8>,
}

impl Outputs {
    /// Without a tag.
    pub(crate) fn of(output: Output) -> Self {
        Self { output, tag: Vec::new() }
    }

    /// Cuts what is whole; gives it back if it is not, or cannot be cut at these places.
    pub(crate) fn cut(self, places: &[usize]) -> core::result::Result<Vec<Piece>, Self> {
        let Self { output, tag } = self;
        match output {
            Output::All(bytes) => Piece::cut(bytes, places).map_err(|bytes| Self { output: Output::All(bytes), tag }),
            Output::Piece(_) => Err(Self { output, tag }),
        }
    }
}

impl Inputs {
    pub(crate) fn split(operation: OwnedOperation) -> (Arc<Self>, Outputs) {
        let OwnedOperation { direction, iv, aad, input, output, tag } = operation;
        let inputs = Self { direction, iv, aad, input: Text::All(input), room: output.len(), tag: tag.clone() };
        (Arc::new(inputs), Outputs { output: Output::All(output), tag })
    }

    /// The whole operation again.
    pub(crate) fn join(self: Arc<Self>, outputs: Option<Outputs>) -> OwnedOperation {
        let Outputs { output, tag } = outputs.unwrap_or_else(|| self.fresh());
        let Self { direction, iv, aad, input, .. } = Arc::unwrap_or_clone(self);
        let input = match input {
            Text::All(input) => input,
            Text::Part(whole, range) => SecretBytes::from(&whole.text()[range]),
        };
        let output = match output {
            Output::All(output) => output,
            Output::Piece(piece) => SecretBytes::from(&*piece),
        };
        OwnedOperation { direction, iv, aad, input, output, tag }
    }

    pub(crate) fn fresh(&self) -> Outputs {
        Outputs { output: Output::All(SecretBytes::zeroed(self.room)), tag: self.tag.clone() }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    pub(crate) fn iv(&self) -> &[u8] {
        &self.iv
    }

    pub(crate) fn text(&self) -> &[u8] {
        match &self.input {
            Text::All(input) => input,
            Text::Part(whole, range) => &whole.text()[range.clone()],
        }
    }

    /// Bytes of room for output.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// A part of these.
    pub(crate) fn part_of(whole: &Arc<Self>, iv: Vec<u8>, range: core::ops::Range<usize>) -> Self {
        let room = range.len();
        Self { direction: whole.direction, iv, aad: Vec::new(), input: Text::Part(whole.clone(), range), tag: Vec::new(), room }
    }
}

impl Clone for Inputs {
    fn clone(&self) -> Self {
        let Self { direction, iv, aad, input, tag, room } = self;
        Self { direction: *direction, iv: iv.clone(), aad: aad.clone(), input: input.clone(), tag: tag.clone(), room: *room }
    }
}

/// A request that the manager keeps until its end.
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) session: Arc<Session>,
    pub(crate) arrival: Time,
    /// When it ends with a time-out if it is still queued.
    pub(crate) expires: Time,
    pub(crate) inputs: Arc<Inputs>,
    /// Absent while a batch has them.
    pub(crate) outputs: Option<Outputs>,
    pub(crate) end: End,
    /// The batch it is in, once dispatched.
    pub(crate) batch: Option<u64>,
    /// Whether its engine had to change its session for it.
    pub(crate) switched: bool,
    /// Why it was dispatched when it was, if that was asked.
    pub(crate) reason: Option<Reason>,
}

impl Entry {
    pub(crate) fn end(self, id: RequestId, outcome: Result<Done>) -> Ended {
        let Self { request, session, arrival, inputs, outputs, end, switched, reason, .. } = self;
        let direction = inputs.direction();
        Ended { way: Way { request, direction, arrival, switched, reason }, id, session, end, inputs, outputs, outcome }
    }
}

/// What is told of a request beside how it ended.
pub(crate) struct Way {
    pub(crate) request: Request,
    pub(crate) direction: Direction,
    pub(crate) arrival: Time,
    pub(crate) switched: bool,
    pub(crate) reason: Option<Reason>,
}

/// A request that has ended and whose end is still to be told, without any lock.
pub(crate) struct Ended {
    pub(crate) way: Way,
    pub(crate) id: RequestId,
    pub(crate) session: Arc<Session>,
    pub(crate) end: End,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Option<Outputs>,
    pub(crate) outcome: Result<Done>,
}

/// Whose end is told.
pub(crate) enum End {
    /// The request's own.
    Whole(Deliver),
    /// That of the whole of which it is a part, from so many bytes on, when all its parts have ended.
    Part(Arc<Whole>, usize),
}

/// Whom to tell.
pub(crate) enum Deliver {
    /// A callback.
    Call(OnDone),
    /// A caller who waits.
    Wake(Arc<Waiter>),
}

/// One request of a batch, as a thread runs it.
pub(crate) struct Item {
    pub(crate) id: RequestId,
    pub(crate) session: Arc<Session>,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Outputs,
    pub(crate) outcome: Result<usize>,
}

impl Item {
    pub(crate) fn new(id: RequestId, session: Arc<Session>, inputs: Arc<Inputs>, outputs: Outputs) -> Self {
        Self { id, session, inputs, outputs, outcome: Err(Error::NotRun) }
    }

    /// The operation, and the rest of the item beside it.
    pub(crate) fn parts(&mut self) -> (&Session, Operation<'_>, &mut Result<usize>) {
        let Self { session, inputs, outputs, outcome, .. } = self;
        let data = Data::Copy { input: inputs.text(), output: outputs.output.text_mut() };
        let operation = Operation { direction: inputs.direction, iv: &inputs.iv, aad: &inputs.aad, data, tag: &mut outputs.tag };
        (session, operation, outcome)
    }
}

/// A batch that a policy dispatched, to be run by one thread.
pub(crate) struct Batch {
    pub(crate) number: u64,
    pub(crate) engine: EngineId,
    /// All its requests; one of them may be lent by its caller and is then in no item.
    pub(crate) requests: Vec<RequestId>,
    pub(crate) items: Vec<Item>,
    /// How often its engine changes its session for it.
    pub(crate) switches: u32,
    /// Why it was dispatched, if that was asked.
    pub(crate) reason: Option<Reason>,
}

/// Where a blocked caller sleeps: until its request is done, or until it is handed a batch to run itself.
#[derive(Default)]
pub(crate) struct Waiter {
    post: Mutex<Post>,
    bell: Condvar,
}

#[derive(Default)]
struct Post {
    /// The caller runs a batch and cannot take another.
    busy: bool,
    batch: Option<Batch>,
    completion: Option<Completion>,
}

/// Why a waiter woke.
pub(crate) enum Woken {
    /// To run this.
    Run(Batch),
    /// Its request has ended.
    Done(Completion),
}

impl Waiter {
    /// Hands over a batch, unless the caller is busy with another: then it comes back.
    pub(crate) fn assign(&self, batch: Batch) -> Option<Batch> {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        if post.busy || post.batch.is_some() || post.completion.is_some() {
            return Some(batch);
        }
        post.batch = Some(batch);
        self.bell.notify_one();
        None
    }

    /// The caller has a batch to run.
    pub(crate) fn begin(&self) {
        self.post.lock().unwrap_or_else(PoisonError::into_inner).busy = true;
    }

    pub(crate) fn complete(&self, completion: Completion) {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        post.completion = Some(completion);
        self.bell.notify_one();
    }

    /// Sleeps; the manager's timer sees to it that this ends.
    pub(crate) fn wait(&self) -> Woken {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        post.busy = false;
        loop {
            if let Some(batch) = post.batch.take() {
                post.busy = true;
                return Woken::Run(batch);
            }
            if let Some(completion) = post.completion.take() {
                return Woken::Done(completion);
            }
            post = self.bell.wait(post).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
