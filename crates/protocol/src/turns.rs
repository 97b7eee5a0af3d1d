//! How soon a thread that has just woken gets a processor that others are using.

use core::mem::size_of;
use rustix::io::Errno;
use rustix::thread::gettid;
use std::time::Duration;

/// How long a turn of a thread that serves others is: some requests' worth.
const TURN_NS: u64 = 100_000;

/// `SCHED_FLAG_RESET_ON_FORK`: what a thread that goes first starts does not.
const RESET_ON_FORK: u64 = 1;

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
    set(0, &attributes).is_ok()
}

/// A thread that goes before all of the usual kind: `SCHED_FIFO`, at its lowest priority, so that whatever else is of that class goes before it.
///
/// To be asked for threads that others wait for and that sleep most of the time. One that spins would take a processor from all programs but for the twentieth
/// that the kernel keeps for them, so whoever asks for this looks at what the thread [has used](Self::used) and has it [step back](Self::step_back).
#[derive(Debug)]
pub struct First {
    thread: libc::pid_t,
    /// What it had before.
    nice: i32,
}

/// Why a thread does not go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFirst {
    /// The system's word.
    #[error(
        "{0}; CAP_SYS_NICE or a limit of real-time priority (ulimit -r, LimitRTPRIO) of 1 is needed, and no control group without real-time runtime"
    )]
    Refused(Errno),
    /// The kernel keeps nothing for the others.
    #[error(
        "kernel.sched_rt_runtime_us is -1 or no less than kernel.sched_rt_period_us: the kernel would keep no processor time for other programs; sysctl kernel.sched_rt_runtime_us=950000"
    )]
    Unbounded,
}

impl First {
    /// Has the calling thread go first from now on; threads that it starts do not.
    ///
    /// # Errors
    /// [`NotFirst`]
    pub fn begin() -> Result<Self, NotFirst> {
        let setting = |name| std::fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.trim().parse::<i64>().ok();
        if let (Some(runtime), Some(period)) = (setting("runtime"), setting("period"))
            && !(0..period).contains(&runtime)
        {
            return Err(NotFirst::Unbounded);
        }
        let nice = attributes().map_or(0, |attributes| attributes.nice);
        let first = Self { thread: gettid().as_raw_nonzero().get(), nice };
        // Who may not step back must not begin.
        first.step_back().and_then(|()| first.go()).map_err(NotFirst::Refused)?;
        Ok(first)
    }

    /// Has the thread go first again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn go(&self) -> Result<(), Errno> {
        set(self.thread, &Attributes { policy: libc::SCHED_FIFO as u32, flags: RESET_ON_FORK, priority: 1, ..Attributes::default() })
    }

    /// Has the thread take short turns, as others do. What it starts takes none, for who has no `CAP_SYS_NICE` may not take back that its place is not inherited.
    ///
    /// # Errors
    /// The operating system's.
    pub fn step_back(&self) -> Result<(), Errno> {
        let (policy, nice) = (libc::SCHED_OTHER as u32, self.nice);
        set(self.thread, &Attributes { policy, flags: RESET_ON_FORK, nice, runtime: TURN_NS, ..Attributes::default() })
    }

    /// Processor time that the thread has had; `None` once it has ended.
    pub fn used(&self) -> Option<Duration> {
        // `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` (linux/posix-timers_types.h): the clock of a thread of this process.
        let clock = (!self.thread) << 3 | 6;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure outlives the call, which fills it or says that there is no such clock.
        let known = unsafe { libc::clock_gettime(clock, &raw mut time) == 0 };
        known.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

fn set(thread: libc::pid_t, attributes: &Attributes) -> Result<(), Errno> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..*attributes };
    // SAFETY: the structure has the size that it says, and outlives the call, which only reads it.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
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

    #[test]
    fn a_thread_goes_first_steps_back_and_those_that_it_starts_do_not() {
        let policy = || attributes().map(|attributes| attributes.policy as i32);
        let before = policy();
        std::thread::spawn(move || {
            let first = match First::begin() {
                Ok(first) => first,
                Err(why) => return println!("skipped: {why}"),
            };
            assert_eq!(attributes().map(|all| (all.policy as i32, all.priority)), Some((libc::SCHED_FIFO, 1)));
            assert_eq!(std::thread::spawn(policy).join().unwrap(), Some(libc::SCHED_OTHER));
            first.step_back().unwrap();
            assert_eq!(policy(), Some(libc::SCHED_OTHER));
            first.go().unwrap();
            assert_eq!(policy(), Some(libc::SCHED_FIFO));
        })
        .join()
        .unwrap();
        assert_eq!(policy(), before, "of the thread that did not ask");
    }

    #[test]
    fn what_a_thread_has_used_is_known_until_it_ends() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(5) {}
            tell.send(First { thread: gettid().as_raw_nonzero().get(), nice: 0 }).unwrap();
            let _ = may_end.recv();
        });
        let first = told.recv().unwrap();
        assert!(first.used().is_some_and(|used| !used.is_zero()));
        drop(end);
        thread.join().unwrap();
        // Joined, it may take the kernel a moment to forget it.
        let begun = std::time::Instant::now();
        while first.used().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(20), "a thread that has ended still has a clock");
            std::thread::yield_now();
        }
    }
}
