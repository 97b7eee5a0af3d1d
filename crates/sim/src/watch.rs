//! What is seen of a run while it lasts: for plots, and for tests of what must hold of every run.

use bywash_policy::reload::{Circuit, Circuits};

/// One request, served. Times are nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When it arrived.
    pub arrival: u64,
    /// When its service began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// The core that could compute it.
    pub core: Circuit,
    /// Whether that core did, and not the processor.
    pub on_circuit: bool,
}

/// Looks on.
pub trait Watch {
    /// A request has been served; in the order in which requests arrive.
    fn served(&mut self, served: &Served);

    /// A load: when it begins, when it is there, what is held then.
    fn loads(&mut self, begin: u64, there: u64, set: Circuits);
}

/// Nobody looks.
impl Watch for () {
    #[inline]
    fn served(&mut self, _: &Served) {}
    #[inline]
    fn loads(&mut self, _: u64, _: u64, _: Circuits) {}
}
