//! Threads that answer: one waits for the next call at a time, and gives that place away where a call takes long.
//!
//! All threads waiting at once would all be woken by every call. Handing each call to another thread would cost a wake-up per call, as much as
//! the call itself. So the one that waits also works, and while it works nobody waits. That is right for calls of microseconds. A call
//! that is expected to take long is preceded by passing the place on; one that turns out to take long has the place taken from it by a
//! thread that looks every half millisecond, and sleeps when nothing happens.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

/// At most so many calls are being answered at once.
const THREADS_MAX: usize = 64;
/// How long a call may hold up others before its place is taken.
const TICK: Duration = Duration::from_micros(500);
/// After so many looks at nothing the looking thread sleeps until there is something.
const LOOKS_AT_NOTHING: u32 = 40;

/// What the threads do.
pub trait Work: Send + Sync + 'static {
    /// A call that has been taken up.
    type Call;

    /// Waits for the next call; `None` when there will be none.
    fn next(&self) -> Option<Self::Call>;

    /// Whether it is likely to take long.
    fn is_slow(&self, call: &Self::Call) -> bool;

    /// Answers it.
    fn answer(&self, call: Self::Call);

    /// After the last.
    fn over(&self);
}

/// The threads and the place for which they take turns.
pub struct Pool<W: Work> {
    work: W,
    name: &'static str,
    state: Mutex<State>,
    vacant: Condvar,
    ended: Condvar,
    /// The number of the call that the thread in the place is answering; 0 if it waits, or the place has been taken from it.
    answering: AtomicU64,
    /// How many calls have been answered in the place.
    calls: AtomicU64,
    watch_sleeps: AtomicBool,
    watch: OnceLock<Thread>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a thread is in the place.
    taken: bool,
    /// How many want it.
    waiting: usize,
    threads: usize,
    over: bool,
}

impl<W: Work> Pool<W> {
    /// Starts answering, in threads of that name.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(name: &'static str, work: W) -> std::io::Result<Arc<Self>> {
        let pool = Arc::new(Self {
            work,
            name,
            state: Mutex::default(),
            vacant: Condvar::new(),
            ended: Condvar::new(),
            answering: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            watch_sleeps: AtomicBool::new(false),
            watch: OnceLock::new(),
        });
        let watching = Arc::clone(&pool);
        let watch = Builder::new().name(format!("{name}-watch")).spawn(move || watching.watch())?;
        // It is set once, here.
        let _ = pool.watch.set(watch.thread().clone());
        if let Err(error) = pool.spawn() {
            // The watching thread has the pool, and lets it go now.
            pool.end();
            return Err(error);
        }
        Ok(pool)
    }

    /// Waits until there are no more calls and none is being answered, or so long; whether it is so.
    pub fn wait(&self, at_most: Option<Duration>) -> bool {
        let going_on = |state: &mut State| !state.over || state.threads > 0;
        let (state, changed) = (self.state(), &self.ended);
        match at_most {
            None => drop(changed.wait_while(state, going_on).unwrap_or_else(PoisonError::into_inner)),
            Some(at_most) => {
                let waited = changed.wait_timeout_while(state, at_most, going_on).unwrap_or_else(PoisonError::into_inner);
                return !waited.1.timed_out();
            }
        }
        true
    }

    /// Whether there will be no more calls.
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// What they do.
    pub fn work(&self) -> &W {
        &self.work
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Self>) -> std::io::Result<()> {
        let pool = Arc::clone(self);
        self.state().threads += 1;
        let spawned = Builder::new().name(self.name.into()).spawn(move || pool.run());
        if spawned.is_err() {
            self.state().threads -= 1;
        }
        spawned.map(drop)
    }

    fn run(self: &Arc<Self>) {
        while self.take_place() {
            self.lead();
        }
        let mut state = self.state();
        state.threads -= 1;
        self.ended.notify_all();
    }

    /// Waits for the place; `false` when it is over.
    fn take_place(&self) -> bool {
        let mut state = self.state();
        state.waiting += 1;
        while state.taken && !state.over {
            state = self.vacant.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.taken = true;
        !state.over
    }

    /// In the place: call after call, until the place is given away or taken.
    fn lead(self: &Arc<Self>) {
        loop {
            let Some(call) = self.work.next() else { return self.end() };
            if self.work.is_slow(&call) {
                self.pass_on();
                return self.work.answer(call);
            }
            let mark = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
            self.answering.store(mark, Ordering::SeqCst);
            if self.watch_sleeps.load(Ordering::SeqCst)
                && let Some(watch) = self.watch.get()
            {
                watch.unpark();
            }
            self.work.answer(call);
            if self.answering.compare_exchange(mark, 0, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                return;
            }
        }
    }

    /// Leaves the place to another thread, a new one if all have work. With all threads at work it stays empty until one is done.
    fn pass_on(self: &Arc<Self>) {
        let mut state = self.state();
        state.taken = false;
        let another = state.waiting == 0 && state.threads < THREADS_MAX;
        drop(state);
        if another {
            // Where no thread can be had, this one comes back to the place when it is done.
            let _ = self.spawn();
        } else {
            self.vacant.notify_one();
        }
    }

    fn end(&self) {
        self.state().over = true;
        self.work.over();
        self.vacant.notify_all();
        self.ended.notify_all();
        if let Some(watch) = self.watch.get() {
            watch.unpark();
        }
    }

    fn watch(self: &Arc<Self>) {
        let (mut seen, mut nothing) = (0, 0);
        while !self.is_over() {
            thread::sleep(TICK);
            let now = self.answering.load(Ordering::SeqCst);
            if now != 0 && now == seen && self.answering.compare_exchange(now, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                self.pass_on();
            }
            nothing = if now == 0 { nothing + 1 } else { 0 };
            seen = now;
            if nothing == LOOKS_AT_NOTHING {
                nothing = 0;
                self.watch_sleeps.store(true, Ordering::SeqCst);
                if self.answering.load(Ordering::SeqCst) == 0 && !self.is_over() {
                    thread::park();
                }
                self.watch_sleeps.store(false, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Calls that take as long as the test likes.
    struct Slow {
        calls: Mutex<Receiver<(Receiver<()>, Sender<()>)>>,
    }

    impl Work for Slow {
        type Call = (Receiver<()>, Sender<()>);

        fn next(&self) -> Option<Self::Call> {
            self.calls.lock().unwrap().recv().ok()
        }

        fn is_slow(&self, _: &Self::Call) -> bool {
            false
        }

        fn answer(&self, (may_end, done): Self::Call) {
            may_end.recv().unwrap();
            done.send(()).unwrap();
        }

        fn over(&self) {}
    }

    #[test]
    fn a_call_that_takes_long_holds_up_nobody() {
        let (calls, received) = channel();
        let pool = Pool::start("slow", Slow { calls: Mutex::new(received) }).unwrap();
        let call = || {
            let (end, may_end) = channel();
            let (done, is_done) = channel();
            calls.send((may_end, done)).unwrap();
            (end, is_done)
        };
        let stuck: Vec<_> = (0..10).map(|_| call()).collect();
        for round in 0..200 {
            let (end, is_done) = call();
            end.send(()).unwrap();
            is_done.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("call {round} waits behind others"));
        }
        for (end, is_done) in stuck {
            end.send(()).unwrap();
            is_done.recv().unwrap();
        }
        drop(calls);
        pool.wait(None);
        assert!(pool.state().threads <= 13, "{} threads for 11 calls at once", pool.state().threads);
    }
}
