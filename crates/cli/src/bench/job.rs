//! What is measured: an operation that succeeds each time it is run, in either direction.

use bywash_core::{Algorithm, Direction, Error, Kind, OwnedOperation, Result, SecretBytes, SessionParams};
use bywash_manager::calibrate;

/// One algorithm at one size, one way.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) params: SessionParams,
    pub(crate) operation: OwnedOperation,
}

impl Job {
    /// An operation of about `bytes` bytes.
    pub(crate) fn new(algorithm: Algorithm, direction: Direction, bytes: usize) -> Result<Self> {
        let (params, operation) = operation(algorithm, direction, bytes, 0)?;
        Ok(Self { params, operation })
    }
}

/// The directions that an algorithm has.
pub(crate) fn directions(algorithm: Algorithm) -> &'static [Direction] {
    match algorithm.kind() {
        Kind::Cipher { .. } | Kind::Aead { .. } => &[Direction::Encrypt, Direction::Decrypt],
        _ => &[Direction::Compute],
    }
}

/// A session and an operation for it; what is to be decrypted has been encrypted, so that its tag is right.
pub(crate) fn operation(algorithm: Algorithm, direction: Direction, bytes: usize, aad: usize) -> Result<(SessionParams, OwnedOperation)> {
    let (params, mut operation) = calibrate::sample(algorithm, bytes)?;
    if matches!(algorithm.kind(), Kind::Aead { .. }) {
        operation.aad = vec![3; aad];
    }
    if direction == Direction::Decrypt {
        bywash_manager::here().open(&params)?.run(&mut operation.borrow())?;
        operation.input = std::mem::replace(&mut operation.output, SecretBytes::zeroed(operation.input.len()));
        operation.direction = Direction::Decrypt;
    }
    Ok((params, operation))
}

/// An algorithm's sample may carry a signature that is not a valid one, which costs as much to find out.
pub(crate) fn tolerate(outcome: Result<usize>, algorithm: Algorithm) -> Result<()> {
    match outcome {
        Err(Error::Authentication) if matches!(algorithm.kind(), Kind::EcdsaVerify { .. }) => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_can_be_run_in_its_directions_again_and_again() {
        let here = bywash_manager::here();
        for &algorithm in Algorithm::ALL {
            if !here.supports(algorithm) {
                println!("skipped: {algorithm} is not computed on this processor");
                continue;
            }
            for &direction in directions(algorithm) {
                let Job { params, mut operation } = Job::new(algorithm, direction, 100).unwrap();
                params.check(&operation.borrow()).unwrap();
                let session = here.open(&params).unwrap();
                for _ in 0..2 {
                    let outcome = session.run(&mut operation.borrow());
                    tolerate(outcome, algorithm).unwrap_or_else(|error| panic!("{algorithm} {direction:?}: {error}"));
                }
            }
        }
    }
}
