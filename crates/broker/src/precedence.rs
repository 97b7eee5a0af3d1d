//! Which of the broker's threads go before other programs' on the processor.
//!
//! All take short turns. The thread of an engine that computes for one session at a time is what everybody waits for, and it mostly sleeps: it goes first
//! ([`First`]), where the kernel lets it and the operator has not said no. No other thread does: those of rings spin, and a client decides how much they have to do.
//!
//! A thread that goes first and has too much to do itself, as that of a model which is faster than the processor that stands in for it, would keep the processor from all
//! programs. So it is looked at, and steps back once it uses most of one, for longer each time.

use bywash_core::Engine;
use bywash_protocol::turns::{First, take_short_turns};
use rustix::io::Errno;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at threads that have been seen at work.
const LOOK: Duration = Duration::from_millis(200);
/// Between two looks at threads that rest.
const LOOK_AT_RESTING: Duration = Duration::from_secs(2);
/// A thread that uses less than this part of a processor rests.
const REST: f64 = 0.05;
/// A thread that has used more than this part of a processor steps back.
const USE_MAX: f64 = 0.7;
/// How long a thread that has stepped back stays there, at first. What it uses meanwhile says little: it may be the others that keep it from more.
const BACK: Duration = Duration::from_secs(1);
/// And at most: twice as long each time that it had to step back again before it had gone first for as long.
const BACK_MAX: Duration = Duration::from_secs(256);

/// What came of it, by engine (index in the manager's list).
pub(crate) struct Precedence {
    /// Whether the operator wants it.
    wanted: bool,
    engines: Vec<(String, Mutex<State>)>,
    /// When to look.
    next: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether it has had a thread that does not go first, for good.
    as_others: bool,
    /// Those that do, or have stepped back. A batch that is stuck has its engine begin another.
    threads: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    thread: First,
    used: Duration,
    at: Instant,
    /// Since when it goes first, or has stepped back.
    since: Instant,
    stepped_back: bool,
    /// How long it steps back the next time.
    back: Duration,
}

impl Precedence {
    /// Of engines of these names.
    pub(crate) fn new(names: Vec<String>, wanted: bool) -> Self {
        Self { wanted, engines: names.into_iter().map(|name| (name, Mutex::default())).collect(), next: Mutex::new(None) }
    }

    /// For the calling thread, which will serve this engine, or keep time.
    pub(crate) fn begin(&self, engine: Option<&dyn Engine>) {
        // It may have been started by a thread that goes first, and inherits nothing of that.
        take_short_turns();
        let Some(engine) = engine.filter(|engine| engine.switches().is_some()) else { return };
        let Some((name, state)) = self.engines.iter().find(|(name, _)| name == engine.name()) else { return };
        match self.wanted.then(First::begin) {
            None => lock(state).as_others = true,
            Some(Ok(thread)) => {
                lock(state).threads.push(Watched::new(thread));
                lock(&self.next).get_or_insert_with(Instant::now);
            }
            Some(Err(why)) => {
                if !std::mem::replace(&mut lock(state).as_others, true) {
                    tracing::info!("the thread of engine '{name}' does not go before other programs, and may be late beside them: {why}");
                }
            }
        }
    }

    /// How long until there is something to [look](Self::look) at.
    pub(crate) fn until_next(&self) -> Duration {
        lock(&self.next).map_or(Duration::MAX, |next| next.saturating_duration_since(Instant::now()))
    }

    /// Looks at what those that go first have used.
    pub(crate) fn look(&self) {
        let (mut is_any, mut at_work) = (false, false);
        for (name, state) in &self.engines {
            // One that has ended is gone.
            lock(state).threads.retain_mut(|watched| {
                let Some(part) = watched.part() else { return false };
                is_any = true;
                at_work |= part > REST || watched.stepped_back;
                if let Err(error) = watched.judge(name, part) {
                    tracing::error!("the thread of engine '{name}' cannot be told when to go before other programs: {error}");
                }
                true
            });
        }
        let after = if at_work { LOOK } else { LOOK_AT_RESTING };
        *lock(&self.next) = is_any.then(|| Instant::now() + after);
    }

    /// Whether an engine's threads go first; `None` before any has begun, and of engines of which none ever does.
    pub(crate) fn of(&self, place: usize) -> Option<bool> {
        let state = lock(&self.engines.get(place)?.1);
        let any = state.as_others || !state.threads.is_empty();
        any.then(|| !state.threads.is_empty() && state.threads.iter().all(|watched| !watched.stepped_back))
    }
}

impl Watched {
    fn new(thread: First) -> Self {
        let (used, now) = (thread.used().unwrap_or_default(), Instant::now());
        Self { thread, used, at: now, since: now, stepped_back: false, back: BACK }
    }

    /// The part of a processor that the thread has used since the last look; `None` once it has ended.
    fn part(&mut self) -> Option<f64> {
        let (used, now) = (self.thread.used()?, Instant::now());
        let part = used.saturating_sub(self.used).as_secs_f64() / (now - self.at).as_secs_f64();
        (self.used, self.at) = (used, now);
        Some(part)
    }

    /// Has a thread that has used this part of a processor go first or step back. What fails is tried again at the next look.
    fn judge(&mut self, name: &str, part: f64) -> Result<(), Errno> {
        let since = self.since.elapsed();
        if !self.stepped_back {
            if since > self.back {
                self.back = BACK;
            }
            if part > USE_MAX {
                self.thread.step_back()?;
                (self.stepped_back, self.since) = (true, self.at);
                let (percent, seconds) = (part * 100.0, self.back.as_secs());
                tracing::warn!(
                    "the thread of engine '{name}' uses {percent:.0} % of a processor: for {seconds} s it does not go before other programs"
                );
            }
        } else if since > self.back && part < USE_MAX {
            self.thread.go()?;
            (self.stepped_back, self.since, self.back) = (false, self.at, (2 * self.back).min(BACK_MAX));
        }
        Ok(())
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::{Algorithm, Keyed, Result, SessionParams};
    use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

    struct Module;

    impl Engine for Module {
        fn name(&self) -> &str {
            "module"
        }
        fn describe(&self) -> String {
            String::new()
        }
        fn switches(&self) -> Option<u64> {
            Some(0)
        }
        fn capabilities(&self) -> &[Algorithm] {
            &[]
        }
        fn workers(&self) -> usize {
            1
        }
        fn open(&self, _: &SessionParams) -> Result<Box<dyn Keyed>> {
            unreachable!("nobody opens a session in this test")
        }
    }

    #[test]
    fn nobody_goes_first_where_the_operator_does_not_want_it() {
        let precedence = Precedence::new(vec!["module".into()], false);
        assert_eq!(precedence.of(0), None);
        std::thread::scope(|scope| scope.spawn(|| precedence.begin(Some(&Module))).join()).unwrap();
        assert_eq!((precedence.of(0), precedence.of(1)), (Some(false), None));
    }

    #[test]
    fn a_thread_that_runs_away_steps_back_and_the_longer_the_oftener() {
        const WORK: u8 = 0;
        const REST: u8 = 1;
        const END: u8 = 2;
        let precedence = Precedence::new(vec!["cpu".into(), "module".into()], true);
        assert_eq!(precedence.until_next(), Duration::MAX, "there is nobody to look at");
        let orders = AtomicU8::new(WORK);
        let until = |first| {
            let begun = Instant::now();
            while precedence.of(1) != Some(first) {
                assert!(begun.elapsed() < Duration::from_secs(60), "its thread does not become {first}");
                std::thread::sleep(LOOK / 4);
                precedence.look();
            }
        };
        let back = || lock(&precedence.engines[1].1).threads[0].back;
        std::thread::scope(|scope| {
            let (tell, begun) = std::sync::mpsc::channel();
            let (precedence, orders) = (&precedence, &orders);
            scope.spawn(move || {
                precedence.begin(Some(&Module));
                tell.send(precedence.of(1)).unwrap();
                while orders.load(SeqCst) != END {
                    if orders.load(SeqCst) == REST || lock(&precedence.engines[1].1).as_others {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
            if begun.recv().unwrap() == Some(false) {
                println!("skipped: this process may have no thread go first");
            } else {
                until(false);
                assert_eq!(back(), BACK);
                orders.store(REST, SeqCst);
                until(true);
                assert_eq!(back(), 2 * BACK);
                orders.store(WORK, SeqCst);
                until(false);
                assert!(back() <= 2 * BACK);
                orders.store(REST, SeqCst);
                until(true);
            }
            orders.store(END, SeqCst);
        });
        // It has ended: nobody is left to look at, and of what it was nothing is.
        let begun = Instant::now();
        while precedence.until_next() != Duration::MAX {
            assert!(begun.elapsed() < Duration::from_secs(60), "a thread that has ended is still looked at");
            precedence.look();
        }
    }
}
