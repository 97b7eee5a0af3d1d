//! The broker's half of a region: requests taken, copied, validated and answered.

use crate::descriptor::{Corrupt, DESCRIPTOR_WORDS, Descriptor, Job, Outcome, Span};
use crate::layout::{AT_ASLEEP, AT_COMPLETED, AT_WATCHERS, DESCRIPTOR_AT};
use crate::region::Region;
use crate::wait::{sleep_on, spin_until, wake, wake_few};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, fence};
use std::sync::Arc;
use std::time::Duration;

// A slot's state word. SUBMITTED and RUNNING differ in one bit, so that taking a request keeps WAITED with a single `fetch_or`.
pub(crate) const FREE: u32 = 0;
pub(crate) const CLAIMED: u32 = 1;
pub(crate) const SUBMITTED: u32 = 2;
pub(crate) const RUNNING: u32 = 3;
pub(crate) const DONE: u32 = 4;
pub(crate) const STATE: u32 = 0xff;
/// Someone sleeps on the state word.
pub(crate) const WAITED: u32 = 0x100;

/// What any of the broker's threads may do with a region: copy, answer, wake.
pub struct BrokerRing {
    region: Region,
    /// Which slots the broker is working on; private, so that a slot is never worked on twice.
    running: Box<[AtomicBool]>,
    in_flight: AtomicU32,
    interrupted: AtomicBool,
}

/// The submission ring's one reader.
pub struct Intake {
    ring: Arc<BrokerRing>,
    head: u32,
    idle_rings: u32,
}

/// A request taken out of the ring; to be answered once, by [`BrokerRing::complete`].
#[derive(Debug)]
#[must_use = "the client waits for an answer"]
pub struct Taken {
    slot: u32,
    /// What is asked: ranges and direction checked, session and lengths not.
    pub job: Job,
}

/// Wake-ups in a row without a request after which a client is held to be hostile.
const IDLE_RINGS_MAX: u32 = 10_000;

impl BrokerRing {
    /// Takes a region over that [`Region::create`] has made.
    pub fn new(region: Region) -> (Intake, Arc<Self>) {
        let running = (0..region.geometry().slots).map(|_| AtomicBool::new(false)).collect();
        let ring = Arc::new(Self { region, running, in_flight: AtomicU32::new(0), interrupted: AtomicBool::new(false) });
        (Intake { ring: ring.clone(), head: 0, idle_rings: 0 }, ring)
    }

    /// The region, for its counters and its trace ring.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Requests taken and not yet answered.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Copies from the arena; `into` has the span's length.
    pub fn read(&self, span: Span, into: &mut [u8]) {
        assert!(into.len() == span.len() && span.offset() + span.len() <= self.region.geometry.arena_bytes as usize);
        self.region.map.read(self.region.geometry.arena() + span.offset(), into);
    }

    /// Copies into the arena, from the span's first byte; `from` is no longer than the span.
    pub fn write(&self, span: Span, from: &[u8]) {
        assert!(from.len() <= span.len() && span.offset() + span.len() <= self.region.geometry.arena_bytes as usize);
        self.region.map.write(self.region.geometry.arena() + span.offset(), from);
    }

    /// Answers a request and wakes whoever sleeps on it. Output has been written before.
    pub fn complete(&self, taken: Taken, outcome: Outcome) {
        let at = self.region.geometry.slot(taken.slot);
        self.region.map.u32_at(at + 4).store(outcome.verdict as u32, Relaxed);
        self.region.map.u32_at(at + 8).store(outcome.written, Relaxed);
        self.running[taken.slot as usize].store(false, Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
        let state = self.region.map.u32_at(at);
        if state.swap(DONE, AcqRel) & WAITED != 0 {
            wake_few(state);
        }
        let completed = self.region.map.u32_at(AT_COMPLETED);
        completed.fetch_add(1, SeqCst);
        if self.region.map.u32_at(AT_WATCHERS).load(SeqCst) != 0 {
            wake_few(completed);
        }
    }

    /// Lets go of the arena's pages while the client is idle; what it holds stays.
    pub fn release_pages(&self) {
        self.region.map.release_pages(self.region.geometry.arena(), self.region.geometry.arena_bytes as usize);
    }

    /// Ends the intake's waiting for good, from any thread.
    pub fn interrupt(&self) {
        self.interrupted.store(true, SeqCst);
        let asleep = self.region.map.u32_at(AT_ASLEEP);
        asleep.store(0, SeqCst);
        wake(asleep);
    }

    /// Whether [`interrupt`](Self::interrupt) was called.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }
}

impl Intake {
    /// The other half.
    pub fn ring(&self) -> &Arc<BrokerRing> {
        &self.ring
    }

    /// Whether a request (or something that claims to be one) is waiting.
    pub fn is_ready(&self) -> bool {
        self.cell().load(Acquire) != 0
    }

    /// The next request, in order of submission.
    ///
    /// # Errors
    /// [`Corrupt`]: drop this client.
    pub fn take(&mut self) -> Result<Option<Taken>, Corrupt> {
        let cell = self.cell();
        if cell.load(Relaxed) == 0 {
            return Ok(None);
        }
        let slots = self.ring.region.geometry.slots;
        let slot = match cell.swap(0, Acquire) {
            0 => return Ok(None),
            number if number <= slots => number - 1,
            number => return Err(Corrupt::Slot { slot: number - 1, slots }),
        };
        self.head = self.head.wrapping_add(1);
        self.idle_rings = 0;
        let at = self.ring.region.geometry.slot(slot);
        let state = self.ring.region.map.u32_at(at).fetch_or(RUNNING, AcqRel);
        if state & !WAITED != SUBMITTED || self.ring.running[slot as usize].swap(true, Relaxed) {
            return Err(Corrupt::State { slot, state });
        }
        self.ring.in_flight.fetch_add(1, Relaxed);
        let words: [u32; DESCRIPTOR_WORDS] =
            core::array::from_fn(|index| self.ring.region.map.u32_at(at + DESCRIPTOR_AT + index * 4).load(Relaxed));
        let job = Descriptor::from_words(&words).validate(self.ring.region.geometry.arena_bytes)?;
        Ok(Some(Taken { slot, job }))
    }

    /// Spins until a request is there or `spin` has passed; whether there may be one.
    pub fn spin(&self, spin: Duration) -> bool {
        spin_until(spin, || (self.is_ready() || self.ring.is_interrupted()).then_some(())).is_some()
    }

    /// Waits until a request is there: spins for `spin`, then sleeps for at most `timeout`. True if there may be one.
    ///
    /// # Errors
    /// [`Corrupt::Doorbell`] for a client that wakes the broker again and again for nothing.
    pub fn wait(&mut self, spin: Duration, timeout: Duration) -> Result<bool, Corrupt> {
        let ready = |intake: &Self| (intake.is_ready() || intake.ring.is_interrupted()).then_some(());
        if spin_until(spin, || ready(self)).is_some() {
            return Ok(self.is_ready());
        }
        let asleep = self.ring.region.map.u32_at(AT_ASLEEP);
        asleep.store(1, SeqCst);
        fence(SeqCst);
        if ready(self).is_none() {
            let before = std::time::Instant::now();
            sleep_on(asleep, 1, timeout);
            self.idle_rings = if ready(self).is_none() && before.elapsed() < timeout { self.idle_rings + 1 } else { 0 };
        }
        self.ring.region.map.u32_at(AT_ASLEEP).store(0, Relaxed);
        if self.idle_rings > IDLE_RINGS_MAX {
            return Err(Corrupt::Doorbell(self.idle_rings));
        }
        Ok(self.is_ready())
    }

    fn cell(&self) -> &AtomicU32 {
        self.ring.region.map.u32_at(self.ring.region.geometry.ring_cell(self.head))
    }
}
