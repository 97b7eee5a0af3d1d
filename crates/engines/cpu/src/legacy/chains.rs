//! CBC encryptions of DES and 3DES side by side.

use super::Cbc;
use crate::chains::{self, Gain};
use crate::failed;
use bywash_core::{Algorithm, Data, Task};
use bywash_legacy::des::{Des, Stream, StreamKey, TripleDes, encrypt_cbc_streams};

/// 256 messages take as long as 13 one after the other (2 shared cores with AVX-512, 2026-11-22).
const GAIN: Gain = Gain { messages: 14, bytes: 64 };
/// Messages for which there is room side by side in half registers, which take half the time.
const LANES: usize = 256;

/// How many encryptions gain from going together.
pub(crate) fn chains(algorithm: Algorithm) -> usize {
    if matches!(algorithm, Algorithm::DesCbc | Algorithm::TripleDesCbc) { LANES } else { 1 }
}

/// Takes the encryptions that gain from it out of a batch and runs them side by side.
pub(crate) fn encrypt_together(tasks: &mut Vec<&mut Task<'_>>) {
    encrypt::<Des>(tasks);
    encrypt::<TripleDes>(tasks);
}

fn encrypt<C: StreamKey + Send + Sync + 'static>(tasks: &mut Vec<&mut Task<'_>>) {
    let mut taken = chains::take::<Cbc<C>>(tasks, &GAIN);
    let streams: Option<Vec<_>> = taken.iter_mut().map(|(key, task)| stream(&key.0, task)).collect();
    let done = streams.map(|mut streams| encrypt_cbc_streams(&mut streams));
    for (_, task) in taken {
        task.outcome = done.map(|()| task.operation.data.input_len()).ok_or_else(|| failed("the texts"));
    }
}

/// `None` if the output is shorter than the input.
fn stream<'s, C>(key: &'s C, task: &'s mut Task<'_>) -> Option<Stream<'s, C>> {
    let chained = task.operation.iv.try_into().ok()?;
    let data = match task.operation.data.reborrow() {
        Data::InPlace(buffer) => buffer,
        Data::Copy { input, output } => {
            let output = output.get_mut(..input.len())?;
            output.copy_from_slice(input);
            output
        }
    };
    Some(Stream { key, chained, data })
}
