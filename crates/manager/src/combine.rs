//! Flat combining: threads that block on an operation each, on an engine with lanes, form batches among themselves, with no thread beside them.
//!
//! A thread puts its operation where all can see it. Whoever makes a batch full computes it at once, for all. Else one of those who wait *leads*: it yields the
//! processor, so that threads on their way here come first, and when a turn brings nobody it asks the [policy](bywash_policy::firing) what to
//! compute. Everybody else sleeps until the result is there. On an idle machine a yield returns at once: a lone operation pays less than a microsecond. On
//! a loaded one batches fill by themselves.
//!
//! ```text
//!            arrives                        full                        computes, tells all
//!  thread ------------> [ waiting ] -----------------------------> [ running ] ------------> leaves
//!                         |    ^                                        |
//!                  nobody |    | others came           another leads,   |
//!                   leads v    | by a yield            if some wait     v
//!                        [ leads ] ----- quiet, or overdue ---------> ...
//! ```
//!
//! # Invariant
//!
//! Whenever something waits and another batch may run, exactly one thread leads, or has been told to. As many batches run at one time as the engine has workers:
//! on one core, operations that arrive while a batch is computed wait for its end and then go together.
//!
//! # When a thread is lost
//!
//! A thread that leads or computes can vanish in another language's ways (`pthread_cancel`, `longjmp` out of a signal handler). Those who wait for it stop
//! waiting after [`LOST`], compute for themselves, and the combiner is not used again. A panic of the engine is caught, and is that batch's failure alone. A forked
//! child must make itself a new combiner and [`forget`](core::mem::forget) this one: its locks may be held by threads that do not exist there.

use crate::clock::thread_ns;
use bywash_core::{Algorithm, Time};
use bywash_policy::firing::{Firing, Moment, Shot};
use bywash_policy::yielding::Yielding;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread waits for another that does not come back, before it computes for itself.
pub const LOST: Duration = Duration::from_secs(10);
/// A waiter looks so often; a process that was stopped for long has missed one look, not all.
const LOOKS: u32 = 20;

/// What a combiner computes.
pub trait Compute: Send + Sync {
    /// One operation with its buffers and, afterwards, its outcome. Until it has been computed it must read as failed, for a panic leaves it so.
    type Work: Send;

    /// Computes one batch of operations of one algorithm. What nobody waits for is told here as well. False if another thread computes them: then this
    /// one's clock says nothing of what they take.
    fn compute(&self, algorithm: Algorithm, batch: &mut [Self::Work]) -> bool;
}

/// Where threads meet. See the [module](self).
pub struct Combiner<C: Compute> {
    compute: C,
    state: Mutex<State<C::Work>>,
    lost: AtomicBool,
    lost_after: Duration,
    origin: Instant,
    /// Batches that may run at one time.
    slots: usize,
}

struct State<W> {
    firing: Firing,
    yielding: Yielding,
    /// By algorithm number, oldest first, as the policy counts them.
    waiting: Vec<VecDeque<Entry<W>>>,
    count: usize,
    /// Operations that ever arrived.
    arrivals: u64,
    /// By algorithm number.
    formed: Vec<Formed>,
    running: usize,
    /// Some thread leads, or has been told to.
    led: bool,
}

/// What a combiner has formed of one algorithm's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formed {
    /// Operations that were computed or are being computed.
    pub operations: u64,
    /// In so many batches; an operation by itself counts as one.
    pub batches: u64,
}

struct Entry<W> {
    /// Running number of arrivals: says who waits longest.
    order: u64,
    work: W,
    /// Who sleeps on it; none for work that was lent a thread.
    waiter: Option<Arc<Waiter<W>>>,
}

struct Batch<W> {
    shot: Shot,
    entries: Vec<Entry<W>>,
}

/// What the thread that has just added an operation is to do.
enum Turn<W> {
    Compute(Batch<W>),
    Lead,
    Wait,
}

struct Waiter<W> {
    post: Mutex<Post<W>>,
    bell: Condvar,
    /// Its operation is in a batch.
    taken: AtomicBool,
}

struct Post<W> {
    lead: bool,
    done: Option<W>,
}

enum Woken<W> {
    Lead,
    Done(W),
}

impl<W> Waiter<W> {
    fn new() -> Arc<Self> {
        Arc::new(Self { post: Mutex::new(Post { lead: false, done: None }), bell: Condvar::new(), taken: AtomicBool::new(false) })
    }

    fn tell(&self, change: impl FnOnce(&mut Post<W>)) {
        change(&mut self.post.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.notify_one();
    }

    /// Sleeps until there is something to do; `None` if nobody comes back to this operation.
    fn wait(&self, lost_after: Duration) -> Option<Woken<W>> {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        for look in 0..=LOOKS {
            // Leadership first: who leaves with it would leave the others alone.
            if core::mem::take(&mut post.lead) {
                return Some(Woken::Lead);
            }
            if let Some(work) = post.done.take() {
                return Some(Woken::Done(work));
            }
            if look == LOOKS {
                break;
            }
            let idle = |post: &mut Post<W>| !post.lead && post.done.is_none();
            post = self.bell.wait_timeout_while(post, lost_after / LOOKS, idle).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

impl<C: Compute> Combiner<C> {
    /// For an engine that gains from `lanes` operations in one batch and has so many `workers`.
    pub fn new(compute: C, lanes: usize, workers: usize) -> Self {
        let state = State {
            firing: Firing::among_threads(lanes),
            yielding: Yielding::default(),
            waiting: Algorithm::ALL.iter().map(|_| VecDeque::new()).collect(),
            count: 0,
            arrivals: 0,
            formed: vec![Formed::default(); Algorithm::COUNT],
            running: 0,
            led: false,
        };
        Self {
            compute,
            state: Mutex::new(state),
            lost: AtomicBool::new(false),
            lost_after: LOST,
            origin: Instant::now(),
            slots: workers.max(1),
        }
    }

    /// What was formed so far of this kind.
    pub fn formed(&self, algorithm: Algorithm) -> Formed {
        self.lock().formed[usize::from(algorithm.number())]
    }

    /// Whether an operation of this kind gains by company, as far as is known. One that does not is better computed by its own thread.
    pub fn is_worth_joining(&self, algorithm: Algorithm) -> bool {
        const COMPANY: usize = 2;
        self.lock().firing.is_worth_waiting(algorithm, COMPANY)
    }

    /// An operation that did not join took so long.
    pub fn observe_alone(&self, algorithm: Algorithm, took_ns: u64) {
        self.lock().firing.observe_alone(algorithm, took_ns);
    }

    /// Runs an operation to its end, in whichever thread. `None` if that thread was lost: the caller has to compute it otherwise.
    pub fn run(&self, algorithm: Algorithm, work: C::Work) -> Option<C::Work> {
        if self.lost.load(Relaxed) {
            return None;
        }
        let waiter = Waiter::new();
        let mut turn = self.arrive(algorithm, work, Some(waiter.clone()));
        loop {
            while self.take_turn(turn, Some(&waiter)) {
                turn = Turn::Lead;
            }
            match waiter.wait(self.lost_after) {
                Some(Woken::Done(work)) => return Some(work),
                Some(Woken::Lead) => turn = Turn::Lead,
                None => {
                    self.lost.store(true, Relaxed);
                    return None;
                }
            }
        }
    }

    /// Adds an operation that nobody sleeps on, and lends this thread for one batch at most. True if further ones wait that have no thread of their own: then
    /// some thread must [`lead_on`](Self::lead_on).
    #[must_use = "operations wait for a thread"]
    pub fn lend(&self, algorithm: Algorithm, work: C::Work) -> bool {
        let turn = self.arrive(algorithm, work, None);
        self.take_turn(turn, None)
    }

    /// Leads for one batch, where [`lend`](Self::lend) or this asked for it; true if it has to be called again.
    #[must_use = "operations wait for a thread"]
    pub fn lead_on(&self) -> bool {
        self.take_turn(Turn::Lead, None)
    }

    /// True if somebody has to lead and nobody sleeps who could.
    fn take_turn(&self, turn: Turn<C::Work>, me: Option<&Waiter<C::Work>>) -> bool {
        let batch = match turn {
            Turn::Compute(batch) => Some(batch),
            Turn::Lead => self.lead(me),
            Turn::Wait => None,
        };
        batch.is_some_and(|batch| self.fire(batch))
    }

    fn lock(&self) -> MutexGuard<'_, State<C::Work>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn arrive(&self, algorithm: Algorithm, work: C::Work, waiter: Option<Arc<Waiter<C::Work>>>) -> Turn<C::Work> {
        let now = self.now();
        let mut state = self.lock();
        state.push(now, algorithm, work, waiter);
        if let Some(batch) = state.take(now, Moment::Arrived, self.slots) {
            // What is left, if nobody looks after it, is looked after at this batch's end.
            return Turn::Compute(batch);
        }
        if state.led || state.running >= self.slots {
            return Turn::Wait;
        }
        state.led = true;
        Turn::Lead
    }

    /// Yields until there is something to compute, which is returned, or until somebody else looks after what waits.
    fn lead(&self, me: Option<&Waiter<C::Work>>) -> Option<Batch<C::Work>> {
        loop {
            let mut state = self.lock();
            if state.count == 0 || state.running >= self.slots {
                state.led = false;
                return None;
            }
            if me.is_some_and(|me| me.taken.load(Relaxed)) && state.hand_over(None) {
                return None;
            }
            let now = self.now();
            let batch = match state.take(now, Moment::Busy, self.slots) {
                Some(batch) => Some(batch),
                None => {
                    let seen = state.arrivals;
                    let worth = state.yielding.is_worth_it();
                    drop(state);
                    if worth {
                        std::thread::yield_now();
                    }
                    let later = self.now();
                    state = self.lock();
                    let company = state.arrivals - seen;
                    if worth {
                        state.yielding.learn(later.since_ns(now), company);
                    }
                    (company == 0).then(|| state.take(later, Moment::Blocking, self.slots)).flatten()
                }
            };
            if batch.is_some() {
                state.led = false;
                if state.count > 0 && state.running < self.slots {
                    state.hand_over(me);
                }
                return batch;
            }
        }
    }

    /// Computes a batch and tells everybody, once all results are there, so that they come back together. True if this thread has to lead now.
    fn fire(&self, batch: Batch<C::Work>) -> bool {
        let Batch { shot, entries } = batch;
        let (mut works, waiters): (Vec<_>, Vec<_>) = entries.into_iter().map(|Entry { work, waiter, .. }| (work, waiter)).unzip();
        // By the thread's own clock: others that run meanwhile would make a batch, which takes longer, look dearer than operations one by one.
        let began_ns = thread_ns();
        // A panic leaves works that read as failed.
        let computed_here = catch_unwind(AssertUnwindSafe(|| self.compute.compute(shot.algorithm, &mut works))).unwrap_or(false);
        let took_ns = thread_ns().saturating_sub(began_ns);
        for (work, waiter) in works.into_iter().zip(waiters) {
            if let Some(waiter) = waiter {
                waiter.tell(|post| post.done = Some(work));
            }
        }
        let mut state = self.lock();
        state.running -= 1;
        if computed_here {
            state.firing.observe(shot, Some(took_ns));
        }
        if state.led || state.count == 0 || state.hand_over(None) {
            return false;
        }
        state.led = true;
        true
    }
}

impl<W> State<W> {
    fn push(&mut self, now: Time, algorithm: Algorithm, work: W, waiter: Option<Arc<Waiter<W>>>) {
        self.arrivals += 1;
        self.count += 1;
        self.firing.arrived(now, algorithm);
        self.waiting[usize::from(algorithm.number())].push_back(Entry { order: self.arrivals, work, waiter });
    }

    /// Asks the policy, if another batch may run.
    fn take(&mut self, now: Time, moment: Moment, slots: usize) -> Option<Batch<W>> {
        if self.running >= slots || self.count == 0 {
            return None;
        }
        let shot = self.firing.decide(now, moment)?;
        let entries: Vec<_> = self.waiting[usize::from(shot.algorithm.number())].drain(..shot.count).collect();
        for waiter in entries.iter().filter_map(|entry| entry.waiter.as_ref()) {
            waiter.taken.store(true, Relaxed);
        }
        let formed = &mut self.formed[usize::from(shot.algorithm.number())];
        formed.operations += entries.len() as u64;
        formed.batches += if shot.side_by_side { 1 } else { entries.len() as u64 };
        self.count -= entries.len();
        self.running += 1;
        Some(Batch { shot, entries })
    }

    /// Makes the sleeper lead who waits longest, but for this one. False if nobody sleeps.
    fn hand_over(&mut self, but: Option<&Waiter<W>>) -> bool {
        let is_other = |waiter: &Arc<Waiter<W>>| !but.is_some_and(|but| core::ptr::eq(but, &**waiter));
        let asleep = |entry: &Entry<W>| entry.waiter.clone().filter(is_other).map(|waiter| (entry.order, waiter));
        let oldest = self.waiting.iter().filter_map(|queue| queue.iter().find_map(asleep)).min_by_key(|&(order, _)| order);
        let Some((_, next)) = oldest else { return false };
        self.led = true;
        next.tell(|post| post.lead = true);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Algorithm::{Rsa2048Private as Rsa, X25519};
    use std::sync::atomic::AtomicUsize;

    /// Doubles numbers, in batches that it keeps a record of; stands still while its gate is shut.
    #[derive(Default)]
    struct Doubler {
        sizes: Mutex<Vec<usize>>,
        shut: Mutex<bool>,
        gate: Condvar,
        inside: AtomicUsize,
        inside_max: AtomicUsize,
        panics_every: usize,
    }

    struct Number {
        given: usize,
        doubled: Option<usize>,
    }

    impl Compute for Arc<Doubler> {
        type Work = Number;

        fn compute(&self, _: Algorithm, batch: &mut [Number]) -> bool {
            let inside = self.inside.fetch_add(1, Relaxed) + 1;
            self.inside_max.fetch_max(inside, Relaxed);
            self.sizes.lock().unwrap().push(batch.len());
            drop(self.gate.wait_while(self.shut.lock().unwrap(), |shut| *shut).unwrap());
            self.inside.fetch_sub(1, Relaxed);
            let count = self.sizes.lock().unwrap().len();
            assert!(!count.is_multiple_of(self.panics_every), "as the test wants it");
            batch.iter_mut().for_each(|number| number.doubled = Some(2 * number.given));
            true
        }
    }

    impl Doubler {
        fn set_shut(&self, shut: bool) {
            *self.shut.lock().unwrap() = shut;
            self.gate.notify_all();
        }
    }

    fn combiner(doubler: Doubler, slots: usize) -> (Combiner<Arc<Doubler>>, Arc<Doubler>) {
        let doubler = Arc::new(doubler);
        (Combiner::new(doubler.clone(), 8, slots), doubler)
    }

    fn number(given: usize) -> Number {
        Number { given, doubled: None }
    }

    fn wait_until(what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came to that");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_lone_thread_computes_its_own() {
        let (combiner, doubler) = combiner(Doubler::default(), 1);
        for given in 0..100 {
            assert_eq!(combiner.run(Rsa, number(given)).unwrap().doubled, Some(2 * given));
        }
        assert_eq!(*doubler.sizes.lock().unwrap(), [1; 100]);
    }

    #[test]
    fn what_arrives_during_a_batch_goes_together_after_it() {
        let (combiner, doubler) = combiner(Doubler::default(), 1);
        doubler.set_shut(true);
        std::thread::scope(|scope| {
            for given in 0..17 {
                scope.spawn({
                    let combiner = &combiner;
                    move || assert_eq!(combiner.run(Rsa, number(given)).unwrap().doubled, Some(2 * given))
                });
                // The first must be under way before the others come, or they go together with it.
                wait_until(|| combiner.lock().arrivals == given as u64 + 1 && doubler.inside.load(Relaxed) == 1);
            }
            doubler.set_shut(false);
        });
        assert_eq!(*doubler.sizes.lock().unwrap(), [1, 8, 8]);
        assert_eq!(combiner.formed(Rsa), Formed { operations: 17, batches: 3 });
        assert_eq!(doubler.inside_max.load(Relaxed), 1);
    }

    #[test]
    fn lent_work_is_computed_by_whoever_leads() {
        let (combiner, doubler) = combiner(Doubler::default(), 1);
        doubler.set_shut(true);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| combiner.lend(Rsa, number(0)));
            wait_until(|| doubler.inside.load(Relaxed) == 1);
            for given in 1..12 {
                assert!(!combiner.lend(Rsa, number(given)), "the first looks after them");
            }
            assert!(!combiner.lend(X25519, number(9)));
            assert_eq!(combiner.lock().count, 12, "they came back at once");
            doubler.set_shut(false);
            assert!(first.join().unwrap(), "one batch each, and more wait");
        });
        assert!(!combiner.lend(X25519, number(10)), "it finds a full batch and computes one, but another was asked to lead");
        let rounds = std::iter::repeat_with(|| combiner.lead_on()).take_while(|&again| again).count();
        assert_eq!(combiner.lock().count, 0);
        let sizes = doubler.sizes.lock().unwrap().clone();
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (rounds + 3, 14), "{sizes:?}");
        // Whatever has waited for 2 ms goes before what is full, so that the eight may come later.
        assert!(sizes[0] == 1 && sizes.iter().filter(|&&size| size == 8).count() == 1, "{sizes:?}");
    }

    #[test]
    fn a_hundred_threads_and_an_engine_that_panics() {
        for slots in [1, 2] {
            let (combiner, doubler) = combiner(Doubler { panics_every: 7, ..Doubler::default() }, slots);
            let failed = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for thread in 0..100 {
                    let (combiner, failed) = (&combiner, &failed);
                    scope.spawn(move || {
                        for round in 0..50 {
                            let given = thread * 50 + round;
                            let algorithm = if (thread + round) % 3 == 0 { X25519 } else { Rsa };
                            match combiner.run(algorithm, number(given)).unwrap().doubled {
                                Some(doubled) => assert_eq!(doubled, 2 * given),
                                None => drop(failed.fetch_add(1, Relaxed)),
                            }
                        }
                    });
                }
            });
            let sizes = doubler.sizes.lock().unwrap();
            assert_eq!(sizes.iter().sum::<usize>(), 5000, "each is computed once");
            assert!(sizes.iter().all(|&size| (1..=8).contains(&size)));
            let spoilt: usize = sizes.iter().enumerate().filter(|(index, _)| (index + 1) % 7 == 0).map(|(_, size)| size).sum();
            // With two at a time, which batch is the seventh depends on who looks first.
            assert!(if slots == 1 { failed.load(Relaxed) == spoilt } else { failed.load(Relaxed) > 0 });
            assert!(doubler.inside_max.load(Relaxed) <= slots);
            let state = combiner.lock();
            assert_eq!((state.count, state.running, state.led), (0, 0, false));
        }
    }

    #[test]
    fn those_who_wait_for_a_lost_thread_help_themselves() {
        let (mut combiner, doubler) = combiner(Doubler::default(), 1);
        combiner.lost_after = Duration::from_millis(100);
        doubler.set_shut(true);
        std::thread::scope(|scope| {
            scope.spawn(|| combiner.run(Rsa, number(1)));
            wait_until(|| doubler.inside.load(Relaxed) == 1);
            assert!(combiner.run(Rsa, number(2)).is_none());
            assert!(combiner.run(Rsa, number(3)).is_none(), "at once, for it is not used again");
            doubler.set_shut(false);
        });
    }
}
