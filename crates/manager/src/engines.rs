//! Which engines this machine has.

use bywash_core::{Absent, Engine};
use bywash_engine_cpu::CpuEngine;
use std::sync::{Arc, OnceLock};

/// What a look around found.
#[derive(Clone)]
pub struct Engines {
    /// The engines that are here, the CPU first.
    pub present: Vec<Arc<dyn Engine>>,
    /// Those that are not, and what would mend it.
    pub absent: Vec<Absent>,
}

/// Looks for engines. Cheap: nothing is measured, no thread started, no device opened for longer than the look.
pub fn probe() -> Engines {
    Engines { present: vec![here()], absent: Vec::new() }
}

/// The CPU engine of this process, for work in the caller's own place.
pub fn here() -> Arc<dyn Engine> {
    static HERE: OnceLock<Arc<CpuEngine>> = OnceLock::new();
    HERE.get_or_init(|| Arc::new(CpuEngine::new())).clone()
}
