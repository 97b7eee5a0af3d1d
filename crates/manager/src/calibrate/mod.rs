//! Calibration.
use bywash_core::{CostSheet, Engine};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for the measurement of one engine.
pub const BUDGET: Duration = Duration::from_millis(150);

/// Where cost sheets are kept: `$XDG_CACHE_HOME/bywash`, else `~/.cache/bywash`.
pub fn default_cache() -> Option<PathBuf> {
    None
}

/// The cost sheet of an engine.
pub fn load_or_measure(_cache: Option<&Path>, engine: &dyn Engine, _budget: Duration) -> (CostSheet, Vec<String>) {
    (engine.cost_sheet().unwrap_or_else(|| CostSheet::empty(engine.name())), Vec::new())
}
