//! Nothing is ever loaded: what the engine holds at the start serves, the rest is software.
//!
//! With no circuit that is niwa2005's Software, with the five smallest its Fix5, with all of them its Fix-All (s6).

use super::{Asked, Holds, Reload, Step};

/// Holds what it has. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Reload for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        if holds.loaded.contains(asked.circuit) { Step::HARDWARE } else { Step::SOFTWARE }
    }
}
