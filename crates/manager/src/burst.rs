//! How many requests a thread hands over one after the other, before it waits for any. Whoever has few of them had best compute them himself, where the processor is as good; many are worth a
//! launch, and only who knows that they follow begins it with the first.
//!
//! What a thread computes itself is done when it has been handed over, so that such requests may go on without end and tell nothing. How many there are before the thread waits is learnt from
//! those that others compute. So there are trials: of many that a thread computed itself, one is said to be followed by many, and it is looked how many do; and of many that others computed,
//! some are said to be alone, so that it is seen what they take here. They become rarer and rarer, but those of the second kind only as far as they cost time: what is computed here for the first
//! time in a while is in no cache, and slow, and who never looked again would not find out how fast it goes on.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// What comes so soon after the last was handed over belongs to the same burst. To sleep and be woken takes at least as long.
const PAUSE: Duration = Duration::from_micros(10);
/// A burst of so many counts for two thirds of the length that is believed: a thread that is kept from running in the midst of one seems to have several, and the longest of them tells most.
const MEMORY: f32 = 4096.0;
/// But no more is believed than so many times the mean of about so many bursts: who had many is soon believed to have few.
const RECENT_TIMES: f32 = 4.0;
const RECENT_GAIN: f32 = 1.0 / 8.0;
/// What one counts for at least that was a trial.
const TRIAL_GAIN: f32 = 0.5;
/// After so many requests that a thread computed itself the first trial is made, and after so many times as many the first of the other kind; each later one after twice as many, up to the most,
/// if it is not seen how dear they are.
const FIRST_TRIAL: u32 = 64;
const LEFT_TIMES: u32 = 16;
const LAST_TRIAL: u32 = 1 << 16;
/// The same where it is seen.
const DEAREST_TRIAL: u32 = 1 << 20;
/// What a trial says of a burst.
const TRIAL_MORE: u32 = 1024;
/// So many are computed in the other kind of trial; of the second half of them it is looked how long they take.
const COMPUTED: u32 = 128;
/// What that kind of trial may cost of the time between two of them.
const TRIAL_COST: f32 = 1.0 / 128.0;
/// Who has more than so many at a time gains much by knowing where a burst begins, beside what a look at the clock takes.
const MANY: f32 = 64.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    None,
    /// To leave a burst to others.
    Leave,
    /// To compute its first.
    Compute,
}

/// When the next trial of a kind is due.
#[derive(Clone, Copy)]
struct Due {
    /// How many there were of the other kind since the last.
    since: u32,
    after: u32,
}

impl Due {
    fn is_now(self) -> bool {
        self.since >= self.after
    }

    fn begin(&mut self) {
        *self = Self { since: 0, after: (2 * self.after).min(LAST_TRIAL) };
    }

    /// A trial took so many times as long as what it was tried instead of, of which bursts are so long.
    fn cost(&mut self, times: f32, burst: f32) {
        let requests = COMPUTED as f32 * (times - 1.0).max(0.0) / TRIAL_COST;
        // A burst of which the beginning is computed tells nothing of its length.
        let least = LEFT_TIMES as f32 * burst.max(FIRST_TRIAL as f32);
        self.after = (requests.max(least) as u32).min(DEAREST_TRIAL);
    }
}

/// The bursts of a thread.
#[derive(Clone, Copy)]
struct Bursts {
    /// When the clock was looked at last, mostly as a request had been handed over; and how many those were.
    last: Option<Instant>,
    looked: u32,
    /// Whether it waited for something, or woke somebody, since then.
    was_delayed: bool,
    /// How many of this burst were handed over, and how many of them the thread computed.
    count: u32,
    computed: u32,
    /// Whether it computed the first.
    began_own: bool,
    /// When it began, or the second half of a trial did.
    began: Option<Instant>,
    trial: Trial,
    /// What each request takes that is left to others, until the thread goes on after it has waited for them, in nanoseconds.
    left_ns: f32,
    /// The length that most requests' bursts had, and the mean length of those lately.
    usual: f32,
    recent: f32,
    leave: Due,
    compute: Due,
}

thread_local! {
    static BURSTS: Cell<Bursts> = const { Cell::new(Bursts::NONE) };
}

impl Bursts {
    const NONE: Self = Self {
        last: None,
        looked: 0,
        was_delayed: false,
        count: 0,
        computed: 0,
        began_own: false,
        began: None,
        trial: Trial::None,
        left_ns: 0.0,
        usual: 1.0,
        recent: 1.0,
        leave: Due { since: 0, after: FIRST_TRIAL },
        compute: Due { since: 0, after: LEFT_TIMES * FIRST_TRIAL },
    };

    /// One more is handed over; how many are believed to follow.
    fn next(&mut self, clock: impl Fn() -> Instant) -> u32 {
        let believed = self.believed();
        let is_settled = self.trial == Trial::None && believed < MANY && (self.count as f32 >= believed || !self.asks_again());
        // Whoever computes few need not know more; and a look at the clock is a good part of what a small one takes.
        if self.computes_all() && is_settled && !self.leave.is_now() {
            self.count = self.count.saturating_add(1);
            return 0;
        }
        let now = clock();
        let unseen = (self.count - self.looked).max(1);
        if self.last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE * unseen) {
            self.see_left(now);
            self.end();
        }
        self.see_trial(now);
        if self.leave.is_now() && self.trial != Trial::Compute {
            self.end();
            self.leave.begin();
            self.trial = Trial::Leave;
        } else if self.count == 0 && self.compute.is_now() {
            self.compute.begin();
            self.trial = Trial::Compute;
        }
        if self.count == 0 {
            self.began = Some(now);
        }
        let is_asked = !self.computes_all() || self.asks_again();
        self.count = self.count.saturating_add(1);
        (self.last, self.looked, self.was_delayed) = (Some(now), self.count, false);
        let left = (self.believed() - self.count as f32).max(0.0) as u32;
        match self.trial {
            Trial::Compute if self.count <= COMPUTED => 0,
            Trial::Leave => left.max(TRIAL_MORE),
            // Whoever was to compute all of them until now is asked again when there were twice as many.
            _ if !is_asked => 0,
            // Where there were more than usual, as many again.
            _ if left == 0 && !self.began_own => self.count - 1,
            _ => left,
        }
    }

    /// A burst has ended, nearly all of which was left to others, and its thread goes on.
    fn see_left(&mut self, now: Instant) {
        if let Some(began) = self.began.filter(|_| self.count > 0 && self.computed <= self.count / 4) {
            let each_ns = now.saturating_duration_since(began).as_nanos() as f32 / self.count as f32;
            let gain = if self.left_ns > 0.0 { RECENT_GAIN } else { 1.0 };
            self.left_ns += gain * (each_ns - self.left_ns);
        }
    }

    /// Half of a trial may have been computed, or all of it.
    fn see_trial(&mut self, now: Instant) {
        if self.trial != Trial::Compute {
            return;
        }
        if self.count == COMPUTED / 2 {
            self.began = Some(now);
        } else if self.count >= COMPUTED {
            // A thread that computes all waits for nothing: the next would seem to be of the same burst.
            self.end();
        }
    }

    /// A trial ends, after as many as there were: what is looked at is the second half, or all of a short one.
    fn end_trial(&mut self) {
        let seen = if self.count > COMPUTED / 2 { self.count - COMPUTED / 2 } else { self.count };
        if let (Some(began), Some(last)) = (self.began, self.last)
            && self.computes_all()
            && self.left_ns > 0.0
        {
            let each_ns = last.saturating_duration_since(began).as_nanos() as f32 / seen as f32;
            self.compute.cost(each_ns / self.left_ns, self.believed());
        }
        self.trial = Trial::None;
    }

    fn believed(&self) -> f32 {
        self.usual.min(RECENT_TIMES * self.recent)
    }

    /// Whether the thread computed all of this burst until now.
    fn computes_all(&self) -> bool {
        self.computed == self.count && self.count > 0
    }

    fn asks_again(&self) -> bool {
        self.count.saturating_add(1).is_power_of_two()
    }

    /// A burst has ended. One that others began tells how many there are before the thread waits, but where it computed some of them, at least: it might have waited sooner.
    fn end(&mut self) {
        if self.trial == Trial::Compute {
            self.end_trial();
        }
        let count = self.count as f32;
        if self.count > 0 && !self.began_own && (self.computed == 0 || count > self.usual) {
            let is_trial = self.trial == Trial::Leave;
            let gain = (1.0 - (-count / MEMORY).exp()).max(if is_trial { TRIAL_GAIN } else { 0.0 });
            self.usual += gain * (count - self.usual);
            self.recent += RECENT_GAIN * (count - self.recent);
            if is_trial {
                self.recent = self.recent.max(count);
            }
        }
        (self.count, self.looked, self.computed, self.began_own, self.trial) = (0, 0, 0, false, Trial::None);
    }

    /// The last request has been handed over; whether the thread computed it.
    fn handed(&mut self, is_own: bool, clock: impl Fn() -> Instant) {
        let other = if is_own { &mut self.leave } else { &mut self.compute };
        other.since = other.since.saturating_add(1);
        if is_own {
            self.began_own |= self.count <= 1;
            self.computed = self.computed.saturating_add(1);
        }
        // What is left to others takes no time, as a rule, since it was looked; and what takes as little as is computed here takes none that counts, but in a trial.
        let took = if is_own { self.trial == Trial::Compute } else { self.was_delayed || self.looked != self.count };
        if took {
            (self.last, self.looked, self.was_delayed) = (Some(clock()), self.count, false);
        }
    }
}

/// This thread hands over a request. How many more are believed to follow without a pause.
pub(crate) fn begin() -> u32 {
    let mut bursts = BURSTS.get();
    let more = bursts.next(Instant::now);
    BURSTS.set(bursts);
    more
}

/// It has handed it over, and computed it or not.
pub(crate) fn handed(is_own: bool) {
    let mut bursts = BURSTS.get();
    bursts.handed(is_own, Instant::now);
    BURSTS.set(bursts);
}

/// This thread waited for something, or woke another: to hand over took longer than it does.
pub(crate) fn delayed() {
    let bursts = BURSTS.get();
    BURSTS.set(Bursts { was_delayed: true, ..bursts });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread and its clock.
    struct Thread {
        bursts: Bursts,
        now: Instant,
        looks: Cell<u32>,
        /// What it takes to compute one.
        own: Duration,
    }

    impl Thread {
        fn new() -> Self {
            Self { bursts: Bursts::NONE, now: Instant::now(), looks: Cell::new(0), own: Duration::ZERO }
        }

        /// Hands over so many, a microsecond apart, and waits. What it was told of the first.
        fn burst(&mut self, count: u32, is_own: bool) -> u32 {
            let told: Vec<u32> = (0..count).map(|_| self.one(is_own)).collect();
            self.now += Duration::from_micros(50);
            told[0]
        }

        /// So many bursts of so many that others compute.
        fn bursts(&mut self, times: usize, count: u32) {
            for _ in 0..times {
                self.burst(count, false);
            }
        }

        fn one(&mut self, is_own: bool) -> u32 {
            self.one_if(|_| is_own)
        }

        fn one_if(&mut self, is_own: impl Fn(u32) -> bool) -> u32 {
            let clock = |now| {
                self.looks.set(self.looks.get() + 1);
                now
            };
            let more = self.bursts.next(|| clock(self.now));
            let is_own = is_own(more);
            self.now += if is_own { self.own } else { Duration::ZERO };
            self.bursts.handed(is_own, || clock(self.now));
            self.now += Duration::from_micros(1);
            more
        }
    }

    #[test]
    fn bursts_are_believed_to_be_as_long_as_they_were() {
        let mut thread = Thread::new();
        thread.bursts(10, 4096);
        let told: Vec<u32> = (0..20).map(|_| thread.burst(4096, false)).collect();
        // Some are trials.
        assert!(told.iter().filter(|&&more| more > 3500 && more < 4096).count() >= 15, "{told:?}");
        thread.bursts(20_000, 4);
        assert!(thread.burst(4, false) < 5);
    }

    #[test]
    fn as_many_again_follow_as_there_were() {
        let mut thread = Thread::new();
        for _ in 0..500 {
            thread.one(false);
        }
        assert!((400..600).contains(&thread.one(false)));
    }

    #[test]
    fn a_thread_that_is_kept_from_running_has_one_long_burst_more_than_short_ones() {
        let mut thread = Thread::new();
        for _ in 0..20 {
            for count in [1500, 3, 1, 900, 40, 1600] {
                thread.burst(count, false);
            }
        }
        assert!(thread.bursts.usual > 700.0, "{}", thread.bursts.usual);
    }

    #[test]
    fn who_computes_all_is_asked_now_and_then_how_many_there_are() {
        let mut thread = Thread::new();
        let mut trials = 0;
        for _ in 0..1_000_000 {
            if thread.one_if(|more| more < TRIAL_MORE) == TRIAL_MORE {
                trials += 1;
                // Others compute this burst, and its thread has to wait after 32.
                (0..31).for_each(|_| assert_eq!(thread.one(false), TRIAL_MORE));
                thread.now += Duration::from_micros(200);
            }
        }
        assert!((15..40).contains(&trials), "{trials}");
        assert!(thread.looks.get() < 20_000, "the clock was looked at {} times", thread.looks.get());
    }

    #[test]
    fn a_trial_tells_how_long_bursts_are() {
        let mut thread = Thread::new();
        (0..FIRST_TRIAL).for_each(|_| assert!(thread.one(true) < TRIAL_MORE));
        assert_eq!(thread.burst(300, false), TRIAL_MORE);
        assert!((100..300).contains(&thread.burst(300, false)));
    }

    #[test]
    fn who_leaves_all_computes_some_now_and_then() {
        let mut thread = Thread::new();
        let mut alone = 0;
        for _ in 0..10_000 {
            alone += (0..64).filter(|_| thread.one(false) == 0).count();
            thread.now += Duration::from_micros(100);
        }
        assert!((64 * 5..64 * 40).contains(&alone), "{alone}");
    }

    #[test]
    fn trials_are_as_frequent_as_they_are_cheap() {
        // How many trials there are among bursts of 64, of which each takes so many microseconds here, and three if it is left to others.
        let trials = |own_us: u64| {
            let mut thread = Thread::new();
            thread.bursts(30, 64);
            thread.own = Duration::from_micros(own_us);
            let mut computed = 0;
            for _ in 0..10_000 {
                let own = (0..64).filter(|_| thread.one_if(|more| more == 0) == 0).count();
                // The last of a burst is told that none follows.
                if own > 1 {
                    computed += own;
                } else {
                    thread.now += Duration::from_micros(64 * 3);
                }
            }
            computed / COMPUTED as usize
        };
        let [cheap, dear] = [trials(2), trials(30)];
        assert!(cheap > 150, "{cheap}");
        // Each of the dear ones costs as long as a thousand requests, of 640,000.
        assert!((3..12).contains(&dear), "{dear}");
    }

    #[test]
    fn who_had_many_is_soon_believed_to_have_one() {
        let mut thread = Thread::new();
        thread.bursts(30, 4096);
        let singles = (0..1_000).filter(|_| thread.burst(1, false) > 64).count();
        assert!(singles < 100, "{singles}");
    }

    #[test]
    fn a_burst_is_seen_to_begin_by_who_computes_much_of_it_too() {
        let mut thread = Thread::new();
        thread.bursts(30, 2000);
        // The device was busy.
        for round in 0..20 {
            let told = thread.burst(2000, true);
            assert!(told > 1000 || told == 0, "{round}: {told}");
        }
        assert!(thread.burst(2000, true).max(thread.burst(2000, true)) > 1000);
    }

    #[test]
    fn a_length_that_is_believed_too_short_is_made_good() {
        let mut thread = Thread::new();
        thread.bursts(30, 600);
        for _ in 0..30 {
            for _ in 0..4096 {
                thread.one_if(|more| more < 200);
            }
            thread.now += Duration::from_micros(50);
        }
        assert!(thread.bursts.usual > 2500.0, "{}", thread.bursts.usual);
    }
}
