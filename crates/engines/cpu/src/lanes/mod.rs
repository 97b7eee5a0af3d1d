//! Public-key operations eight at a time, by the kernels of `bywash-ifma`.
//!
//! A batch is sorted by algorithm. Of each, eight at a time go through its kernel; what is left over goes through it too if it is as many as
//! [`break_even`] says, and else through the library one by one: a kernel takes as long for one as for eight. Sessions, keys and sizes of digests
//! may differ from lane to lane.
//!
//! A lane that comes back without a result (an RSA result that was not verified, an ECDSA nonce that gave r or s of 0) or cannot be taken (an
//! RSA key that the kernels refuse) is computed by the library. Nothing is handed out that was not verified.

mod blindings;
mod edwards;
mod nist;
mod nonce;
mod rsa;

pub(crate) use edwards::Form as Ed25519Form;
pub(crate) use rsa::{PrivateForm as RsaPrivateForm, PublicForm as RsaPublicForm};

use crate::{alone, curve, rsa as library};
use bywash_core::{Algorithm, Direction, Keyed, Operation, Result, Task};
use bywash_ifma::LANES;

/// Whether the kernels can run here.
pub(crate) fn is_supported() -> bool {
    bywash_ifma::is_supported()
}

/// How many operations gain from going together: all lanes, or 1 where there is no kernel that gains.
pub(crate) fn count(algorithm: Algorithm) -> usize {
    if break_even(algorithm).is_some() { LANES } else { 1 }
}

/// From how many operations on a kernel is faster than the library; `None` if it never is, or if there is none.
///
/// The time of a batch of eight over that of one by the library, rounded up, by `bywash bench ALG --cpu` on 2 shared cores with AVX-512 IFMA and VAES
/// (2026-11-22): 0.8 to 1.9 for what is 2 here, 2.0 to 2.8 for 3, 3.4 for 4, 4.1 to 4.5 for 5. AWS-LC's own RSA of 2048 bits and more computes the
/// two halves of one operation side by side with the same instructions, so that lanes have less to gain there.
const fn break_even(algorithm: Algorithm) -> Option<usize> {
    use Algorithm as A;
    match algorithm {
        A::Rsa1024Private | A::Rsa3072Public | A::Rsa4096Public => Some(2),
        A::Rsa1024Public | A::Rsa2048Public => Some(3),
        A::Rsa2048Private => Some(4),
        A::Rsa3072Private | A::Rsa4096Private => Some(5),
        A::EcdsaP256Sign | A::EcdhP256 | A::EcdhP256Public | A::EcdsaP384Sign | A::EcdhP384 | A::EcdhP384Public => Some(2),
        A::X25519 | A::X25519Public => Some(2),
        A::Ed25519Sign => Some(3),
        _ => None,
    }
}

/// Runs a batch of tasks of this engine.
pub(crate) fn run(batch: Vec<&mut Task<'_>>) {
    let mut tasks: Vec<_> = batch.into_iter().map(|task| (kernel_of(task), task)).collect();
    tasks.sort_by_key(|(algorithm, _)| *algorithm);
    for group in tasks.chunk_by_mut(|(a, _), (b, _)| a == b) {
        for part in group.chunks_mut(LANES) {
            match part[0].0 {
                Some(algorithm) if break_even(algorithm).is_some_and(|least| part.len() >= least) => together(algorithm, part),
                _ => part.iter_mut().for_each(|(_, task)| alone(task)),
            }
        }
    }
}

/// The algorithm whose kernel can take the operation.
fn kernel_of(task: &Task<'_>) -> Option<Algorithm> {
    if task.operation.direction != Direction::Compute {
        return None;
    }
    let session = task.keyed.as_any();
    let rsa = session.downcast_ref::<library::KeyedRsa>().map(library::KeyedRsa::algorithm);
    rsa.or_else(|| session.downcast_ref::<curve::Session>().map(curve::Session::algorithm))
        .filter(|&algorithm| break_even(algorithm).is_some())
}

/// A task with the algorithm that it was sorted by.
type Sorted<'b, 't> = (Option<Algorithm>, &'b mut Task<'t>);

fn together(algorithm: Algorithm, tasks: &mut [Sorted<'_, '_>]) {
    use Algorithm as A;
    match algorithm {
        A::Rsa1024Private | A::Rsa2048Private | A::Rsa3072Private | A::Rsa4096Private => side_by_side::<rsa::Private>(tasks),
        A::Rsa1024Public | A::Rsa2048Public | A::Rsa3072Public | A::Rsa4096Public => side_by_side::<rsa::Public>(tasks),
        A::EcdsaP256Sign => side_by_side::<nist::p256::Sign>(tasks),
        A::EcdhP256 => side_by_side::<nist::p256::Agree>(tasks),
        A::EcdhP256Public => side_by_side::<nist::p256::Public>(tasks),
        A::EcdsaP384Sign => side_by_side::<nist::p384::Sign>(tasks),
        A::EcdhP384 => side_by_side::<nist::p384::Agree>(tasks),
        A::EcdhP384Public => side_by_side::<nist::p384::Public>(tasks),
        A::X25519 => side_by_side::<edwards::Agree>(tasks),
        A::X25519Public => side_by_side::<edwards::Public>(tasks),
        A::Ed25519Sign => side_by_side::<edwards::Sign>(tasks),
        _ => tasks.iter_mut().for_each(|(_, task)| alone(task)),
    }
}

/// A kernel as this engine uses it.
trait Kernel {
    /// One operation's part of a batch.
    type Lane<'t>;

    /// Makes a lane of an operation; `None` if it is the library's to compute.
    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<Self::Lane<'t>>>;

    /// Computes one to eight.
    fn run(lanes: &mut [Self::Lane<'_>]);

    /// What came of a lane; `None` if the library is to compute it again.
    fn leave(lane: &Self::Lane<'_>) -> Option<Result<usize>>;
}

fn side_by_side<K: Kernel>(tasks: &mut [Sorted<'_, '_>]) {
    let mut lanes = Vec::with_capacity(LANES);
    let mut ended: Vec<Option<Result<usize>>> = Vec::with_capacity(LANES);
    let mut places = Vec::with_capacity(LANES);
    for (place, (_, task)) in tasks.iter_mut().enumerate() {
        let Task { keyed, operation, .. } = &mut **task;
        ended.push(None);
        match K::enter(*keyed, operation) {
            Ok(Some(lane)) => {
                lanes.push(lane);
                places.push(place);
            }
            Ok(None) => {}
            Err(error) => ended[place] = Some(Err(error)),
        }
    }
    if !lanes.is_empty() {
        K::run(&mut lanes);
    }
    for (lane, place) in lanes.iter().zip(places) {
        ended[place] = K::leave(lane);
    }
    drop(lanes);
    for ((_, task), ended) in tasks.iter_mut().zip(ended) {
        task.outcome = ended.unwrap_or_else(|| task.keyed.run(&mut task.operation));
    }
}
