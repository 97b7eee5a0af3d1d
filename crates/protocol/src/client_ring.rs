//! The client's half of a region: slots claimed, requests submitted, answers awaited.

use crate::arena::ArenaAllocator;
use crate::broker_ring::{CLAIMED, DONE, FREE, STATE, SUBMITTED, WAITED};
use crate::descriptor::{Descriptor, Outcome};
use crate::layout::{AT_ASLEEP, AT_COMPLETED, AT_TAIL, AT_WATCHERS, DESCRIPTOR_AT};
use crate::region::Region;
use crate::wait::{monotonic_ns, sleep_on, spin_until, wake};
use bywash_core::{Data, Operation};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The client's half: shared by all threads of the process, never by two processes. A forked child makes its own connection, and
/// *forgets* what it inherited (`core::mem::forget`): dropping the parent's tickets would free the parent's slots.
pub struct ClientRing {
    region: Region,
    /// One bit a slot, set while it is free. Private, so that a lying broker cannot hand out a slot twice.
    free: Box<[AtomicU64]>,
    arena: ArenaAllocator,
    abandoned: Mutex<Vec<Held>>,
}

/// A slot and its place in the arena.
struct Held {
    slot: u32,
    offset: u32,
    len: usize,
    /// Where input and output lie, and how long the longer of them is.
    text: (u32, u32),
}

impl ClientRing {
    /// Takes a region over that [`Region::open`] has checked.
    pub fn new(region: Region) -> Arc<Self> {
        let slots = region.geometry().slots as usize;
        let free =
            (0..slots.div_ceil(64)).map(|word| AtomicU64::new(if slots - word * 64 >= 64 { u64::MAX } else { (1 << (slots % 64)) - 1 }));
        let arena = ArenaAllocator::new(region.geometry().arena_bytes);
        Arc::new(Self { region, free: free.collect(), arena, abandoned: Mutex::default() })
    }

    /// The region, for its counters and its trace ring.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Copies an operation into the arena and submits it. `None` when slots or arena are used up (or the operation is larger than the arena is):
    /// then run it in place, or wait for others to finish.
    pub fn begin(self: &Arc<Self>, session: u32, operation: &Operation<'_>) -> Option<Ticket> {
        self.reap();
        let plan = Plan::of(operation)?;
        let slot = self.claim()?;
        let Some(offset) = self.arena.take(plan.len) else {
            self.unclaim(slot);
            return None;
        };
        let descriptor = plan.descriptor(offset, session, operation);
        self.copy_in(&descriptor, operation);
        self.submit(slot, &descriptor);
        let text = (descriptor.output.0, descriptor.output.1.max(descriptor.input.1));
        Some(Ticket { ring: self.clone(), descriptor, held: Some(Held { slot, offset, len: plan.len, text }) })
    }

    /// Whether the arena holds an operation, were it empty: one for which it does not can wait as long as it likes.
    pub fn holds(&self, operation: &Operation<'_>) -> bool {
        Plan::of(operation).is_some_and(|plan| plan.len <= self.region.geometry.arena_bytes as usize)
    }

    /// Sleeps until any request completes after `seen` (a value that this returned; 0 at first), for as long as `timeout`. Look at your
    /// tickets after it returns, whatever the reason. For a thread that serves many asynchronous requests.
    pub fn wait_any(&self, seen: u32, timeout: Duration) -> u32 {
        let completed = self.region.map.u32_at(AT_COMPLETED);
        let watchers = self.region.map.u32_at(AT_WATCHERS);
        watchers.fetch_add(1, SeqCst);
        if completed.load(SeqCst) == seen {
            sleep_on(completed, seen, timeout);
        }
        watchers.fetch_sub(1, SeqCst);
        completed.load(SeqCst)
    }

    /// Wakes everyone in [`wait_any`](Self::wait_any).
    pub fn wake_watchers(&self) {
        wake(self.region.map.u32_at(AT_COMPLETED));
    }

    fn state(&self, slot: u32) -> &AtomicU32 {
        self.region.map.u32_at(self.region.geometry.slot(slot))
    }

    fn claim(&self) -> Option<u32> {
        for (index, word) in self.free.iter().enumerate() {
            let mut bits = word.load(Relaxed);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                match word.compare_exchange_weak(bits, bits & !(1 << bit), Acquire, Relaxed) {
                    Ok(_) => return Some(index as u32 * 64 + bit),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    fn unclaim(&self, slot: u32) {
        self.free[slot as usize / 64].fetch_or(1 << (slot % 64), Release);
    }

    fn copy_in(&self, descriptor: &Descriptor, operation: &Operation<'_>) {
        for ((offset, _), bytes) in [
            (descriptor.iv, operation.iv),
            (descriptor.aad, operation.aad),
            (descriptor.tag, operation.tag),
            (descriptor.input, operation.data.input()),
        ] {
            self.region.map.write(self.region.geometry.arena() + offset as usize, bytes);
        }
    }

    fn submit(&self, slot: u32, descriptor: &Descriptor) {
        let at = self.region.geometry.slot(slot);
        self.state(slot).store(CLAIMED, Relaxed);
        for (index, word) in descriptor.to_words().into_iter().enumerate() {
            self.region.map.u32_at(at + DESCRIPTOR_AT + index * 4).store(word, Relaxed);
        }
        self.state(slot).store(SUBMITTED, Release);
        let ticket = self.region.map.u32_at(AT_TAIL).fetch_add(1, Relaxed);
        self.region.map.u32_at(self.region.geometry.ring_cell(ticket)).store(slot + 1, Release);
        self.ring_doorbell();
    }

    /// Wakes the broker if it sleeps, though there may be nothing for it: harmless now and then, and held to be hostile in numbers.
    pub fn nudge(&self) {
        self.ring_doorbell();
    }

    /// Publish, then look whether the broker sleeps: the broker does it the other way round, so one of the two sees the other.
    fn ring_doorbell(&self) {
        fence(SeqCst);
        let asleep = self.region.map.u32_at(AT_ASLEEP);
        if asleep.load(Relaxed) != 0 && asleep.swap(0, AcqRel) != 0 {
            wake(asleep);
        }
    }

    fn poll(&self, slot: u32) -> Option<Outcome> {
        if self.state(slot).load(Acquire) & STATE != DONE {
            return None;
        }
        let word = |index: usize| self.region.map.u32_at(self.region.geometry.slot(slot) + index * 4).load(Relaxed);
        Some(Outcome::from_words(word(1), word(2)))
    }

    fn wait(&self, slot: u32, spin: Duration, timeout: Duration) -> Option<Outcome> {
        if let Some(outcome) = spin_until(spin, || self.poll(slot)) {
            return Some(outcome);
        }
        let deadline = monotonic_ns().saturating_add(timeout.as_nanos() as u64);
        let state = self.state(slot);
        loop {
            if let Some(outcome) = self.poll(slot) {
                return Some(outcome);
            }
            let left = deadline.saturating_sub(monotonic_ns());
            if left == 0 {
                return None;
            }
            let now = state.load(Relaxed);
            let marked = now | WAITED;
            if now & STATE != DONE && (now == marked || state.compare_exchange(now, marked, AcqRel, Relaxed).is_ok()) {
                sleep_on(state, marked, Duration::from_nanos(left));
            }
        }
    }

    /// Wipes and frees a request's place; the broker is done with it.
    fn release(&self, held: &Held) {
        self.wipe(held.text);
        self.state(held.slot).store(FREE, Relaxed);
        self.arena.give_back(held.offset, held.len);
        self.unclaim(held.slot);
    }

    /// Overwrites short texts: keys, shared secrets and decrypted premaster secrets are short. Bulk stays until it is overwritten: the
    /// region belongs to this process and the broker alone.
    fn wipe(&self, (offset, len): (u32, u32)) {
        const ZEROS: [u8; 1024] = [0; 1024];
        let len = (len as usize).min(ZEROS.len());
        self.region.map.write(self.region.geometry.arena() + offset as usize, &ZEROS[..len]);
    }

    /// Takes back what dropped tickets left to the broker, as far as the broker is done with it.
    fn reap(&self) {
        if let Ok(mut abandoned) = self.abandoned.try_lock() {
            abandoned.retain(|held| {
                let done = self.poll(held.slot).is_some();
                if done {
                    self.release(held);
                }
                !done
            });
        }
    }
}

/// How an operation is laid out in one range of the arena: IV, associated data, tag, then text.
struct Plan {
    aad: u32,
    tag: u32,
    input: u32,
    output: u32,
    len: usize,
}

impl Plan {
    fn of(operation: &Operation<'_>) -> Option<Self> {
        let after = |at: u32, len: usize| u32::try_from(len).ok()?.checked_add(at)?.checked_next_multiple_of(16);
        let aad = after(0, operation.iv.len())?;
        let tag = after(aad, operation.aad.len())?;
        let input = after(tag, operation.tag.len())?.checked_next_multiple_of(64)?;
        let (output, end) = match &operation.data {
            Data::InPlace(buffer) => (input, after(input, buffer.len())?),
            // The output takes its input's place where it is no longer: the broker reads all before it writes any.
            Data::Copy { input: text, output } => (input, after(input, text.len().max(output.len()))?),
        };
        Some(Self { aad, tag, input, output, len: end as usize })
    }

    fn descriptor(&self, base: u32, session: u32, operation: &Operation<'_>) -> Descriptor {
        let at = |offset: u32, len: usize| (base + offset, len as u32);
        Descriptor {
            session,
            direction: operation.direction as u32,
            iv: at(0, operation.iv.len()),
            aad: at(self.aad, operation.aad.len()),
            tag: at(self.tag, operation.tag.len()),
            input: at(self.input, operation.data.input_len()),
            output: at(self.output, operation.data.output_len()),
        }
    }
}

/// A submitted request. Dropping it before it is done leaves slot and range to the broker until it is.
pub struct Ticket {
    ring: Arc<ClientRing>,
    descriptor: Descriptor,
    held: Option<Held>,
}

impl Ticket {
    /// Its slot's number, for messages.
    pub fn slot(&self) -> u32 {
        self.held.as_ref().map_or(u32::MAX, |held| held.slot)
    }

    /// The answer, if it is there.
    pub fn poll(&self) -> Option<Outcome> {
        self.ring.poll(self.held.as_ref()?.slot)
    }

    /// Waits for the answer, spinning for `spin`, then sleeping for at most `timeout`.
    pub fn wait(&self, spin: Duration, timeout: Duration) -> Option<Outcome> {
        self.ring.wait(self.held.as_ref()?.slot, spin, timeout)
    }

    /// Once there is an answer, which the caller has looked at: copies output and tag into the operation that was submitted (or one of its lengths), wipes and frees the
    /// range. `None`, and nothing is copied, if the lengths are not the submitted ones.
    pub fn finish(mut self, outcome: Outcome, operation: &mut Operation<'_>) -> Option<()> {
        self.poll()?;
        let base = self.ring.region.geometry.arena();
        let map = &self.ring.region.map;
        if operation.data.output_len() != self.descriptor.output.1 as usize || operation.tag.len() != self.descriptor.tag.1 as usize {
            return None;
        }
        if outcome.verdict == crate::descriptor::Verdict::Done {
            let output: &mut [u8] = match &mut operation.data {
                Data::InPlace(buffer) => buffer,
                Data::Copy { output, .. } => output,
            };
            let written = (outcome.written as usize).min(output.len());
            map.read(base + self.descriptor.output.0 as usize, &mut output[..written]);
            if operation.direction == bywash_core::Direction::Encrypt {
                map.read(base + self.descriptor.tag.0 as usize, operation.tag);
            }
        }
        if let Some(held) = self.held.take() {
            self.ring.release(&held);
        }
        Some(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if self.ring.poll(held.slot).is_some() {
            self.ring.release(&held);
        } else {
            self.ring.abandoned.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        }
    }
}
