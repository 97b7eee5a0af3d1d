//! What a reconfigurable engine should hold: which circuits to load, when, and where a request runs meanwhile.
//!
//! An engine of this kind (an FPGA card; anything with a costly switch) holds a few [`Circuits`] at a time, as many as [`Fit`]. Loading others takes thousands of
//! times as long as a request, and while it lasts requests run in software. A [`Reload`] policy sees every request as it begins
//! and answers with a [`Step`]: where this one runs, and what is to be loaded from now on.
//!
//! | module | what it loads |
//! |---|---|
//! | [`fixed`] | nothing, ever: the circuits that were there at the start (niwa2005's Software, Fix5 and Fix-All); or one set, once |
//! | [`lru`] | what the request at hand needs, which waits for it (niwa2005's Hardware) |
//! | [`overlap`] | what a [`Predictor`](overlap::Predictor) expects next, when a request finds its circuit missing (niwa2005 figure 6: Nopredict, Predict, Oracle) |
//! | [`bigram`] | that paper's predictor: the table of what follows what |
//! | [`saved`] | what would have saved the most seconds lately |
//! | [`tuned`] | the same, its two settings chosen by copies that run beside it |
//!
//! Like every policy these are pure: no clock, no randomness from outside. The same objects run live and in the simulator.

pub mod bigram;
mod circuits;
mod fit;
pub mod fixed;
pub mod lru;
pub mod overlap;
pub mod saved;
pub mod tuned;
pub mod window;

pub use circuits::{CIRCUITS_MAX, Circuit, Circuits};
pub use fit::Fit;

/// A request as it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The circuit that computes it.
    pub circuit: Circuit,
    /// Bytes of input.
    pub bytes: u32,
    /// Nanoseconds that it takes in software.
    pub software_ns: u64,
    /// Nanoseconds that it takes on its circuit, once loaded.
    pub hardware_ns: u64,
}

impl Asked {
    /// Nanoseconds that its circuit would save; negative where software is faster.
    pub fn saved_ns(&self) -> i64 {
        self.software_ns as i64 - self.hardware_ns as i64
    }
}

/// What the engine holds when a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// The circuits that can compute now.
    pub loaded: Circuits,
    /// Whether others are being loaded: none may be asked for until they are there.
    pub loading: bool,
}

/// Where a request runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// On the processor.
    Software,
    /// On its circuit. If that is not loaded, the request waits until it is: the step must load it.
    Hardware,
}

/// What a policy answers to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it runs.
    pub place: Where,
    /// What is to be loaded instead of what is: at once, or after this request if that runs on a circuit loaded now.
    pub load: Option<Circuits>,
}

impl Step {
    /// In software, loading nothing.
    pub const SOFTWARE: Self = Self { place: Where::Software, load: None };
    /// On its circuit, loading nothing.
    pub const HARDWARE: Self = Self { place: Where::Hardware, load: None };
}

/// A policy for what a reconfigurable engine holds.
pub trait Reload: Send {
    /// The name by which it is chosen.
    fn name(&self) -> &'static str;

    /// A request begins. Called for every request, in the order in which they begin.
    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step;
}
