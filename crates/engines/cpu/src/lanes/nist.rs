//! P-256 and P-384 through the kernels.

use super::{Kernel, nonce};
use crate::curve::{Session, first, front};
use crate::hash::apart;
use bywash_core::{Error, Keyed, Operation, Result};
use zeroize::Zeroizing;

/// First byte of an uncompressed point, SEC 1 s2.3.3.
const UNCOMPRESSED: u8 = 4;

macro_rules! curve {
    ($(#[$doc:meta])* $curve:ident, $scalar:literal, $order:expr) => {
        $(#[$doc])*
        pub(super) mod $curve {
            use super::*;
            use bywash_ifma::$curve as kernel;

            const N: usize = $scalar;

            /// The order n.
            pub(in crate::lanes) const ORDER: [u8; N] = $order;

            /// ECDSA signatures.
            pub(in crate::lanes) enum Sign {}

            /// A signature to be made; `nonce` is drawn when the batch runs.
            pub(in crate::lanes) struct SignLane<'t> {
                private: &'t [u8; N],
                digest: &'t [u8],
                signature: &'t mut [u8; 2 * N],
                nonce: Zeroizing<[u8; N]>,
                /// With a nonce that was drawn, and with neither r nor s zero.
                done: bool,
            }

            impl Kernel for Sign {
                type Lane<'t> = SignLane<'t>;

                fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<SignLane<'t>>> {
                    let Some((session, private)) = Session::with_private(keyed) else { return Ok(None) };
                    let algorithm = session.algorithm();
                    let (digest, output) = apart(algorithm, &mut operation.data)?;
                    let signature = front(algorithm, output)?;
                    Ok(Some(SignLane { private, digest, signature, nonce: Zeroizing::new([0; N]), done: false }))
                }

                fn run(lanes: &mut [SignLane<'_>]) {
                    for SignLane { private, digest, nonce, done, .. } in lanes.iter_mut() {
                        // Without a nonce the library says what is the matter.
                        *done = nonce::draw(nonce, &ORDER, private, digest).is_some();
                    }
                    let mut tasks: Vec<_> = lanes
                        .iter_mut()
                        .map(|SignLane { private, digest, signature, nonce, .. }| kernel::SignTask {
                            private,
                            nonce,
                            digest,
                            signature,
                            done: false,
                        })
                        .collect();
                    kernel::sign(&mut tasks);
                    let done: Vec<bool> = tasks.iter().map(|task| task.done).collect();
                    lanes.iter_mut().zip(done).for_each(|(lane, done)| lane.done &= done);
                }

                fn leave(lane: &SignLane<'_>) -> Option<Result<usize>> {
                    lane.done.then_some(Ok(lane.signature.len()))
                }
            }

            /// Shared secrets.
            pub(in crate::lanes) enum Agree {}

            impl Kernel for Agree {
                type Lane<'t> = kernel::AgreeTask<'t>;

                fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<kernel::AgreeTask<'t>>> {
                    let Some((session, private)) = Session::with_private(keyed) else { return Ok(None) };
                    let algorithm = session.algorithm();
                    let (peer, output) = apart(algorithm, &mut operation.data)?;
                    let Some((&UNCOMPRESSED, peer)) = peer.split_first() else { return Err(Error::Authentication) };
                    let Ok(peer) = peer.try_into() else { return Err(Error::Authentication) };
                    Ok(Some(kernel::AgreeTask { private, peer, shared: front(algorithm, output)?, done: false }))
                }

                fn run(lanes: &mut [kernel::AgreeTask<'_>]) {
                    kernel::agree(lanes);
                }

                fn leave(lane: &kernel::AgreeTask<'_>) -> Option<Result<usize>> {
                    Some(if lane.done { Ok(lane.shared.len()) } else { Err(Error::Authentication) })
                }
            }

            /// Public values.
            pub(in crate::lanes) enum Public {}

            impl Kernel for Public {
                type Lane<'t> = kernel::PublicValueTask<'t>;

                fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<kernel::PublicValueTask<'t>>> {
                    let Some((session, private)) = Session::with_private(keyed) else { return Ok(None) };
                    let algorithm = session.algorithm();
                    let (_, output) = apart(algorithm, &mut operation.data)?;
                    let (form, output) = first(algorithm, output)?;
                    *form = UNCOMPRESSED;
                    Ok(Some(kernel::PublicValueTask { private, public: front(algorithm, output)? }))
                }

                fn run(lanes: &mut [kernel::PublicValueTask<'_>]) {
                    kernel::public_value(lanes);
                }

                fn leave(lane: &kernel::PublicValueTask<'_>) -> Option<Result<usize>> {
                    Some(Ok(1 + lane.public.len()))
                }
            }
        }
    };
}

curve!(
    /// SP 800-186 s3.2.1.3.
    p256,
    32,
    [
        0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84,
        0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]
);
curve!(
    /// SP 800-186 s3.2.1.4.
    p384,
    48,
    [
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0xC7, 0x63, 0x4D, 0x81, 0xF4, 0x37, 0x2D, 0xDF, 0x58, 0x1A, 0x0D, 0xB2, 0x48, 0xB0, 0xA7, 0x7A, 0xEC, 0xEC, 0x19, 0x6A,
        0xCC, 0xC5, 0x29, 0x73,
    ]
);
