//! The clock that what a computation costs is read from.

use rustix::time::{ClockId, clock_gettime};

/// This thread's processor time in nanoseconds: what an operation costs must not depend on who else wants the processor.
pub fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
