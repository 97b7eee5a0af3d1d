//! What the benchmarks share: an engine's session that computes nothing, and requests that are handed over together.

use bywash_core::{Algorithm, Direction, Key, Keyed, Operation, OwnedOperation, Result, SecretBytes, SessionParams};
use bywash_manager::{Manager, SessionId};
use std::any::Any;
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) struct NoKey;

impl Keyed for NoKey {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        Ok(black_box(operation.data.input_len()))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(crate) fn params() -> SessionParams {
    SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[1; 16]).into())).expect("a good key")
}

pub(crate) fn operation(bytes: usize) -> OwnedOperation {
    let text = || SecretBytes::from(&vec![5; bytes][..]);
    OwnedOperation { direction: Direction::Encrypt, iv: vec![0; 16], aad: vec![], output: text(), input: text(), tag: vec![] }
}

/// Hands requests over one after the other and then waits for them, as a program does that has many texts at once. They come back to be handed over again.
pub(crate) fn hand_over_together(manager: &Manager, session: SessionId, waiting: &mut Vec<OwnedOperation>) -> Duration {
    let (tell, told) = mpsc::channel();
    let begun = Instant::now();
    for operation in waiting.drain(..) {
        let tell = tell.clone();
        manager.submit(session, operation, Box::new(move |completion| drop(tell.send(completion))));
    }
    drop(tell);
    for completion in told {
        completion.outcome.expect("nothing can fail");
        waiting.push(completion.operation);
    }
    begun.elapsed()
}
