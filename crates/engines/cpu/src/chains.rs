//! CBC encryptions of a batch, side by side: in one message each block waits for the one before it, in several the blocks of different ones do not.

use crate::modes::{KeyedMode, Mode};
use bywash_core::{Direction, Keyed, Operation, Task};

/// From how many messages on, of how many bytes each, going together takes less time.
pub(crate) struct Gain {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// A message to be encrypted with its session's key.
pub(crate) type Message<'b, 't, M> = (&'t M, &'b mut Task<'t>);

/// Takes the encryptions by keys of one kind out of a batch, the longest first, so that none is left alone at the end; none of them if going together gains
/// nothing.
pub(crate) fn take<'b, 't, M: Mode>(tasks: &mut Vec<&'b mut Task<'t>>, gain: &Gain) -> Vec<Message<'b, 't, M>> {
    let gains = |task: &Task<'t>| {
        task.operation.data.input_len() >= gain.bytes && key::<M>(task.keyed).is_some_and(|key| is_whole(key, &task.operation))
    };
    if tasks.iter().filter(|task| gains(task)).count() < gain.messages {
        return Vec::new();
    }
    let taken = tasks.extract_if(.., |task| gains(task));
    let mut messages: Vec<_> = taken.filter_map(|task| Some((key(task.keyed)?.mode(), task))).collect();
    messages.sort_by_key(|(_, task)| core::cmp::Reverse(task.operation.data.input_len()));
    messages
}

fn key<M: Mode>(keyed: &dyn Keyed) -> Option<&KeyedMode<M>> {
    keyed.as_any().downcast_ref()
}

/// Whether it is an encryption of whole blocks with room for the result: what is not fails alone, and nothing beside it.
fn is_whole<M: Mode>(key: &KeyedMode<M>, Operation { direction, data, .. }: &Operation<'_>) -> bool {
    let len = data.input_len();
    *direction == Direction::Encrypt && len.is_multiple_of(key.block()) && data.output_len() >= len
}
