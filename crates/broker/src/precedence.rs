//! Which of the broker's threads go before other programs' on the processor.
//!
//! All take short turns. The thread of an engine that computes for one session at a time is what everybody waits for, and it mostly sleeps: it goes first
//! ([`First`]), where the kernel lets it and the operator has not said no. No other thread does: those of rings spin, and a client decides how much they have to do.
//!
//! A thread that goes first and has too much to do itself, as that of a model which is faster than the processor that stands in for it, would keep the processor from all
//! programs. So it is looked at, and steps back while it uses most of one.

use bywash_core::Engine;
use bywash_protocol::turns::{First, take_short_turns};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks, at least: what a thread does for less than that is forgiven.
const LOOK: Duration = Duration::from_millis(200);
/// A thread that has used more than this part of a processor steps back, and goes first again once it has used less than half of that.
const USE_MAX: f64 = 0.7;

/// What came of it, by engine (index in the manager's list).
pub(crate) struct Precedence {
    /// Whether the operator wants it.
    wanted: bool,
    engines: Vec<(String, Mutex<State>)>,
}

#[derive(Debug, Default)]
enum State {
    /// It has no thread yet, or is none that would go first.
    #[default]
    None,
    AsOthers,
    First(Watched),
}

#[derive(Debug)]
struct Watched {
    thread: First,
    used: Duration,
    at: Instant,
    stepped_back: bool,
}

impl Precedence {
    /// Of engines of these names.
    pub(crate) fn new(names: Vec<String>, wanted: bool) -> Self {
        Self { wanted, engines: names.into_iter().map(|name| (name, Mutex::default())).collect() }
    }

    /// For the calling thread, which will serve this engine, or keep time.
    pub(crate) fn begin(&self, engine: Option<&dyn Engine>) {
        // It may have been started by a thread that goes first, and inherits nothing of that.
        take_short_turns();
        let Some(engine) = engine.filter(|engine| engine.switches().is_some()) else { return };
        let Some((name, state)) = self.engines.iter().find(|(name, _)| name == engine.name()) else { return };
        let next = match self.wanted.then(First::begin) {
            None => State::AsOthers,
            Some(Ok(thread)) => {
                State::First(Watched { used: thread.used().unwrap_or_default(), thread, at: Instant::now(), stepped_back: false })
            }
            Some(Err(why)) => {
                if matches!(*lock(state), State::None) {
                    tracing::info!("the thread of engine '{name}' does not go before other programs, and may be late beside them: {why}");
                }
                State::AsOthers
            }
        };
        *lock(state) = next;
    }

    /// Looks at what those that go first have used, now and then. One that could not be told to step back is tried again.
    pub(crate) fn look(&self) {
        for (name, state) in &self.engines {
            let mut state = lock(state);
            let State::First(watched) = &mut *state else { continue };
            if watched.at.elapsed() < LOOK {
                continue;
            }
            // A thread that has ended, in the place of which another one will begin.
            let Some(part) = watched.part() else { continue };
            if !watched.stepped_back && part > USE_MAX && watched.thread.step_back().is_ok() {
                watched.stepped_back = true;
                tracing::warn!(
                    "the thread of engine '{name}' uses {:.0} % of a processor: it goes no more before other programs meanwhile",
                    part * 100.0
                );
            } else if watched.stepped_back && part < USE_MAX / 2.0 && watched.thread.go().is_ok() {
                watched.stepped_back = false;
            }
        }
    }

    /// Whether an engine's thread goes first; `None` before it has begun, and of engines of which none ever does.
    pub(crate) fn of(&self, place: usize) -> Option<bool> {
        match &*lock(&self.engines.get(place)?.1) {
            State::None => None,
            State::AsOthers => Some(false),
            State::First(watched) => Some(!watched.stepped_back),
        }
    }
}

impl Watched {
    /// The part of a processor that the thread has used since the last look.
    fn part(&mut self) -> Option<f64> {
        let (used, now) = (self.thread.used()?, Instant::now());
        let part = used.saturating_sub(self.used).as_secs_f64() / (now - self.at).as_secs_f64();
        (self.used, self.at) = (used, now);
        Some(part)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
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
    fn a_thread_that_runs_away_steps_back_until_it_rests() {
        const RUN: u8 = 0;
        const REST: u8 = 1;
        const END: u8 = 2;
        let precedence = Precedence::new(vec!["cpu".into(), "module".into()], true);
        let orders = AtomicU8::new(RUN);
        let until = |first| {
            let begun = Instant::now();
            while precedence.of(1) != Some(first) {
                assert!(begun.elapsed() < Duration::from_secs(60), "its thread does not become {first}");
                std::thread::sleep(LOOK / 4);
                precedence.look();
            }
        };
        std::thread::scope(|scope| {
            let (tell, begun) = std::sync::mpsc::channel();
            let (precedence, orders) = (&precedence, &orders);
            scope.spawn(move || {
                precedence.begin(Some(&Module));
                tell.send(precedence.of(1)).unwrap();
                while orders.load(SeqCst) != END {
                    if orders.load(SeqCst) == REST
                        || precedence.of(1) == Some(false)
                            && precedence.engines[1].1.lock().is_ok_and(|state| matches!(*state, State::AsOthers))
                    {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
            if begun.recv().unwrap() == Some(false) {
                println!("skipped: this process may have no thread go first");
            } else {
                until(false);
                orders.store(REST, SeqCst);
                until(true);
            }
            orders.store(END, SeqCst);
        });
    }
}
