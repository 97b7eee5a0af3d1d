//! How soon a thread that has just woken gets a processor that others are using.

use core::mem::size_of;

/// How long a turn of a thread that serves others is: some requests' worth.
const TURN_NS: u64 = 100_000;

/// `struct sched_attr` of `linux/sched/types.h`, as Linux has it since 5.3.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

/// Gives the calling thread, and those that it starts from then on, short turns on the processor; whether the kernel was told so.
///
/// Linux's scheduler (EEVDF, `sched(7)`) lets who asks for shorter turns come sooner: where more threads want to run than there are processors, one that wakes goes
/// before another in the midst of a turn of milliseconds. Its share stays what its priority gives it, so this takes nothing from anybody and needs no right. Kernels before
/// 6.12 keep their own turns. A thread of another scheduling class than the usual ones stays as it is.
pub fn take_short_turns() -> bool {
    let Some(mut attributes) = attributes() else { return false };
    if !matches!(attributes.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
        return false;
    }
    attributes.runtime = TURN_NS;
    // SAFETY: the structure has the size that it says, and outlives the call, which only reads it; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

fn attributes() -> Option<Attributes> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>() as u32;
    // SAFETY: the call writes at most `size` bytes into the structure, whose fields are all integers.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0 };
    done.then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_turns_are_those_of_the_thread_and_of_the_threads_it_starts() {
        let turn = || attributes().map(|attributes| (attributes.runtime, attributes.nice));
        let Some((before, nice)) = turn() else { return println!("skipped: the kernel does not tell how long turns are") };
        std::thread::spawn(move || {
            assert!(take_short_turns(), "{}", std::io::Error::last_os_error());
            if turn() != Some((TURN_NS, nice)) {
                return println!("skipped: this kernel (before 6.12) keeps its own turns");
            }
            assert_eq!(std::thread::spawn(turn).join().unwrap(), Some((TURN_NS, nice)));
        })
        .join()
        .unwrap();
        assert_eq!(turn(), Some((before, nice)), "of the thread that did not ask");
    }
}
