//! AES-CBC encryptions side by side.

use super::text;
use crate::chains::{self, Gain};
use crate::failed;
use crate::modes::block_of;
use bywash_bulk::cbc;
use bywash_core::{Algorithm, Task};

/// A block of one message takes 11 ns, one of each of sixteen 14 to 20; a lane takes 25 ns to set up (AES-128, 2 shared cores with VAES-512, 2026-11-22).
const GAIN: Gain = Gain { messages: 3, bytes: 128 };
/// Messages for which there is room side by side.
const LANES: usize = 16;

/// How many encryptions gain from going together.
pub(crate) fn chains(algorithm: Algorithm) -> usize {
    use Algorithm as A;
    if matches!(algorithm, A::Aes128Cbc | A::Aes192Cbc | A::Aes256Cbc) { LANES } else { 1 }
}

/// Takes the encryptions that gain from it out of a batch and runs them side by side.
pub(crate) fn encrypt_together(tasks: &mut Vec<&mut Task<'_>>) {
    let mut taken = chains::take::<cbc::Key>(tasks, &GAIN);
    let mut ivs: Vec<_> = taken.iter().map(|(_, task)| block_of(task.operation.iv)).collect();
    let message = |((key, task), chain)| {
        let (key, task): (&cbc::Key, &mut &mut Task<'_>) = (key, task);
        Some(cbc::Task { key, chain, text: text(task.operation.data.reborrow())? })
    };
    let messages: Option<Vec<_>> = taken.iter_mut().map(|(key, task)| (*key, task)).zip(&mut ivs).map(message).collect();
    let done = messages.is_some_and(|mut messages| cbc::encrypt_many(&mut messages).is_ok());
    for (_, task) in taken {
        task.outcome = if done { Ok(task.operation.data.input_len()) } else { Err(failed("the texts")) };
    }
}
