//! Waiting for what is to come.

use std::time::{Duration, Instant};

/// Far longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// Waits until something is so; fails loudly if it never is.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
