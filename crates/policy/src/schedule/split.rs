//! Each size where it is done soonest: small operations on one engine, large ones on the other, from a learnt size on.
//!
//! An engine with a small hand-over and slow bytes and one with a dear hand-over and fast bytes meet at some size, by algorithm. Here nobody has to know
//! it: each engine's [`Estimate`](crate::Estimate) says what an operation of this size takes there, learns from every operation, and the request waits for the one where it takes less.
//! [`threshold`] says where the estimates cross at the moment. What waits is not looked at, which is the point: a small operation never queues behind large ones. Nor does
//! it when its engine is busy and the other is not; [`soonest`](super::soonest) is for that. An engine that is given nothing of a size learns nothing of it, and is
//! believed to be as its sheet says.

use super::{Module, Route};
use crate::{EngineId, EngineSet, Request};
use bywash_core::Time;
use bywash_core::route::SizeClass;

/// By size. See the [module](self).
pub struct Split;

impl Route for Split {
    fn route(&mut self, _now: Time, request: &Request, up: EngineSet, modules: &[&Module]) -> Option<EngineId> {
        let takes = |engine: &EngineId| modules[usize::from(engine.0)].service_ns(request);
        up.iter().min_by(|a, b| takes(a).total_cmp(&takes(b)))
    }
}

/// From how many bytes on a request like this one is done sooner on `large` than on `small`: the least size of a size class; `None` if that is so at no size.
pub fn threshold(request: &Request, small: &Module, large: &Module) -> Option<u64> {
    let sizes = SizeClass::all().map(|class| class.bytes_min() as u64);
    sizes.into_iter().find(|&bytes| {
        let sized = Request { bytes, ..*request };
        large.service_ns(&sized) < small.service_ns(&sized)
    })
}
