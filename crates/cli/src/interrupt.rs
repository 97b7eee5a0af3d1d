//! Signals that end a process: what is done so far is kept and shown, or what was changed is put back first.

use crate::failure::Failure;
use bywash_protocol::process::read;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, unregister};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// What users, the system and a closed terminal end a process with.
pub(crate) const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// What a process exits with that SIGINT ended, as shells count.
const CODE: u8 = 130;

/// `timeout -s INT` tells a process and then its whole group: that is not somebody who grows impatient.
const ONE_AND_THE_SAME: Duration = Duration::from_millis(300);

/// Whether the user has had enough.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT from now on; one that comes a while after the first ends the process at once.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let mut signals = watch(&[SIGINT])?;
        let caught = Arc::new(AtomicBool::new(false));
        let came = caught.clone();
        std::thread::spawn(move || {
            let mut first = None;
            for _ in &mut signals {
                came.store(true, Ordering::Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() >= ONE_AND_THE_SAME {
                    std::process::exit(CODE.into());
                }
            }
        });
        Ok(Self(caught))
    }

    /// Whether it came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What a process then exits with.
    pub(crate) fn exit_code() -> ExitCode {
        ExitCode::from(CODE)
    }
}

/// What is [held](Held): as well what a terminal sends for `Ctrl-\`.
const HELD: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// A signal that has had a handler keeps one: whether that does what would be done without it, by the order of [`HELD`].
static ENDS: LazyLock<[Arc<AtomicBool>; HELD.len()]> = LazyLock::new(|| std::array::from_fn(|_| Arc::new(AtomicBool::new(true))));

/// Whoever handles these signals from now on says so here: they may have been [held](Held) before, and would end the process.
pub(crate) fn take_over(signals: &[i32]) {
    HELD.iter().zip(&*ENDS).filter(|(signal, _)| signals.contains(signal)).for_each(|(_, ends)| ends.store(false, Ordering::Relaxed));
}

/// What is said where signals cannot be heard.
pub(crate) fn unwatched(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot watch for signals: {error}; see ulimit -n"))
}

/// Takes these over, to be waited for.
pub(crate) fn watch(signals: &[i32]) -> Result<Signals, Failure> {
    let watched = Signals::new(signals).map_err(|error| unwatched(&error))?;
    take_over(signals);
    Ok(watched)
}

/// The same of [`ENDING`], but for those that this process was started with ignored: whoever is ended by one gets what he holds on the disk first.
pub(crate) fn watch_ending() -> Result<Signals, Failure> {
    let is_ignored = ignored();
    let ending: Vec<i32> = ENDING.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    watch(&ending)
}

/// Tells of a signal whether this process was started with it ignored, as by nohup or in a shell's background; of none if the system does not say.
pub(crate) fn ignored() -> impl Fn(i32) -> bool {
    // Looked at once: who takes one over for a while does not give it back.
    static MASK: LazyLock<u64> = LazyLock::new(|| {
        let status = read("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0)
    });
    |signal| *MASK >> (signal - 1) & 1 == 1
}

/// Whether somebody is asked for something, and sees to Ctrl-Z himself.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// Stops the process as Ctrl-Z does, and returns when it goes on. SIGTSTP has a handler, and what stops by another of the terminal's signals `sudo` continues at once.
fn stop() {
    if !is_orphaned() {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Whether there is no shell that could continue this process's group; the system does not stop those either (POSIX.1-2024, 2.4.3).
fn is_orphaned() -> bool {
    // proc_pid_stat(5): behind the name, which may have anything in it, state, parent, group, session.
    let of = |process: &str| {
        let stat = read(&format!("/proc/{process}/stat"))?;
        let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(1).map_while(|number| number.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?, numbers.next()?))
    };
    let Some((mut parent, group, session)) = of("self") else { return true };
    while let Some((next, its_group, its_session)) = of(&parent.to_string()) {
        if its_group != group {
            return its_session != session;
        }
        parent = next;
    }
    true
}

/// A signal that has had a handler keeps one: from the first question on this does what Ctrl-Z does without.
fn stop_when_told() -> io::Result<()> {
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if !IS_WATCHED.swap(true, Ordering::Relaxed) {
        let mut signals = Signals::new([SIGTSTP])?;
        let watch = move || signals.forever().filter(|_| !IS_ASKING.load(Ordering::Relaxed)).for_each(|_| stop());
        std::thread::Builder::new().name("stopper".into()).spawn(watch)?;
    }
    Ok(())
}

/// Keeps the signals of [`HELD`] from ending the process until this is dropped; one that came meanwhile ends it then.
pub(crate) struct Held {
    ids: Vec<SigId>,
    which: Arc<AtomicUsize>,
    /// Whether it is to be stopped; whether it was, and went on.
    stops: Arc<AtomicBool>,
    went_on: Arc<AtomicBool>,
    /// It can be read from once one came, or the process is to be stopped, or was and went on, so that it can be waited for.
    came: UnixStream,
    /// Of [`ENDS`], before.
    ended: [bool; HELD.len()],
}

impl Held {
    /// From now on.
    ///
    /// # Errors
    /// The operating system's: too many descriptors.
    pub(crate) fn hold() -> io::Result<Self> {
        let (came, tell) = UnixStream::pair()?;
        let ended = std::array::from_fn(|at| ENDS[at].swap(false, Ordering::Relaxed));
        came.set_nonblocking(true)?;
        let mut held = Self { ids: Vec::new(), which: Arc::default(), stops: Arc::default(), went_on: Arc::default(), came, ended };
        let is_ignored = ignored();
        for signal in HELD.into_iter().filter(|signal| !is_ignored(*signal)) {
            held.ids.push(signal_hook::flag::register_usize(signal, held.which.clone(), signal as usize)?);
            held.ids.push(signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?);
        }
        held.ids.push(signal_hook::flag::register(SIGCONT, held.went_on.clone())?);
        held.ids.push(signal_hook::low_level::pipe::register(SIGCONT, tell.try_clone()?)?);
        if !is_ignored(SIGTSTP) {
            stop_when_told()?;
            IS_ASKING.store(true, Ordering::Relaxed);
            held.ids.push(signal_hook::flag::register(SIGTSTP, held.stops.clone())?);
            held.ids.push(signal_hook::low_level::pipe::register(SIGTSTP, tell)?);
        }
        Ok(held)
    }

    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        self.which.load(Ordering::Relaxed) != 0
    }

    /// Whether the process was stopped since this was asked last, and goes on. If it is to be stopped, it is here, after `before`.
    pub(crate) fn was_stopped(&self, before: impl FnOnce()) -> bool {
        // What is told while this is read is told again.
        let _ = (&self.came).read(&mut [0; 64]);
        let stops = self.stops.swap(false, Ordering::Relaxed);
        if stops {
            before();
            stop();
        }
        self.went_on.swap(false, Ordering::Relaxed) || stops
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let is_ignored = ignored();
        for ((signal, ends), ended) in HELD.into_iter().zip(&*ENDS).zip(self.ended) {
            if !is_ignored(signal) {
                // If that fails the signal does nothing, as if it were ignored.
                let _ = signal_hook::flag::register_conditional_default(signal, ends.clone());
            }
            ends.store(ended, Ordering::Relaxed);
        }
        IS_ASKING.store(false, Ordering::Relaxed);
        self.ids.drain(..).for_each(|id| _ = unregister(id));
        if self.stops.swap(false, Ordering::Relaxed) {
            stop();
        }
        if self.came() {
            let _ = emulate_default_handler(self.which.load(Ordering::Relaxed) as i32);
        }
    }
}

/// Has something said when SIGINT comes, before that ends the process.
pub(crate) fn say_at_interrupt(last_words: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    if ignored()(SIGINT) {
        return Ok(());
    }
    let mut signals = watch(&[SIGINT])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            last_words();
            let _ = emulate_default_handler(SIGINT);
        }
    });
    Ok(())
}

/// Ends the process without a word, as other tools end once nobody reads their stdout any more (`| head`), unless it was started with that signal ignored.
pub(crate) fn end_unread() {
    if !bywash_protocol::ignored_sigpipe() {
        let _ = emulate_default_handler(SIGPIPE);
    }
}
