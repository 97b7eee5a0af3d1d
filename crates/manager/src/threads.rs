//! The manager's own threads: workers of an engine, and one timer. None exists before it is needed; none wakes without a reason.

use crate::inner::{Inner, Role};
use crate::request::{Batch, Ended};
use crate::state::{Job, State};
use bywash_core::{Error, Time};
use bywash_policy::EngineId;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Enough for an engine's frames; memory is only touched where it is used.
const STACK_BYTES: usize = 512 * 1024;
/// What takes less than waking so many threads is left to one that was just woken, which wakes the next; one that was woken longer ago may be long in coming.
const BRIEF_WAKES: f64 = 10.0;
/// But nothing longer, in nanoseconds.
const BRIEF_NS: f64 = 50_000.0;
/// Each thread wakes at most so many others at a time, which go on doing so.
const WAKES_AT_ONCE: usize = 2;
/// Threads that may be started in place of stuck ones.
const STUCK_MAX: usize = 16;

/// Sees to it that the job last put before an engine's threads is picked up.
pub(crate) fn ring(inner: &Arc<Inner>, state: &mut State, now: Time, id: EngineId, ended: &mut Vec<Ended>) {
    if state.engine(id).ready.len() <= state.engine(id).idle {
        if !(one_comes(inner, state, now, id) && is_brief(inner, state, id)) {
            call(state, now, id);
        }
        return;
    }
    let engine = state.engine(id);
    if engine.threads >= engine.workers + engine.stuck.min(STUCK_MAX) {
        return; // One of them takes it next.
    }
    let name = format!("bw-{}-{}", engine.name, engine.threads);
    let for_thread = inner.clone();
    match spawn(name, move || work(&for_thread, id)) {
        Ok(()) => engine.threads += 1,
        Err(_) if engine.threads > engine.stuck => {}
        Err(error) => {
            let what = format!("cannot start a thread for engine '{}': {error}; see `ulimit -u`", engine.name);
            match engine.ready.back() {
                Some(&Job::Run(Batch { number, .. })) => state.give_up(now, number, Some(Error::Unavailable { what }), ended),
                Some(Job::Load(_)) => {
                    engine.ready.pop_back();
                    state.end_loading(now, id, &[], false);
                }
                _ => {}
            }
        }
    }
}

/// What is brief here.
fn brief_ns(inner: &Inner) -> f64 {
    BRIEF_NS.min(BRIEF_WAKES * inner.wakes.ns())
}

/// Whether a thread would have to be woken, or made, for a job of an engine's.
pub(crate) fn would_wake(inner: &Inner, state: &State, now: Time, id: EngineId) -> bool {
    let engine = &state.engines[usize::from(id.0)];
    !one_comes(inner, state, now, id) && (engine.idle > engine.coming || engine.threads < engine.workers)
}

/// Whether a thread is on its way that was woken a short while ago. It wakes the next, so who hands over many requests does not pay for waking every thread.
fn one_comes(inner: &Inner, state: &State, now: Time, id: EngineId) -> bool {
    let engine = &state.engines[usize::from(id.0)];
    engine.coming > 0 && (now.since_ns(engine.called) as f64) < brief_ns(inner)
}

/// Whether the job last put before an engine's threads takes so little that it can wait until one thread after the other is run.
fn is_brief(inner: &Inner, state: &State, id: EngineId) -> bool {
    let bound_ns = brief_ns(inner);
    matches!(state.engines[usize::from(id.0)].ready.back(), Some(Job::Run(batch)) if state.takes_less(batch, bound_ns))
}

/// Has one of an engine's threads woken once the lock is given back, if any sleeps that was not told yet.
fn call(state: &mut State, now: Time, id: EngineId) {
    let called = state.after.calls.iter().filter(|&&called| called == id).count();
    let engine = state.engine(id);
    if engine.idle > engine.coming && called < WAKES_AT_ONCE {
        engine.coming += 1;
        engine.called = now;
        state.after.calls.push(id);
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // A name is a sheet's, which may have any characters in it; the system takes all but one.
    std::thread::Builder::new().name(name.replace('\0', "?")).stack_size(STACK_BYTES).spawn(body).map(drop)
}

fn work(inner: &Arc<Inner>, id: EngineId) {
    inner.begin(Some(inner.engine(id)));
    let mut state = inner.lock();
    loop {
        match state.engine(id).ready.pop_front() {
            Some(job) => {
                for _ in 0..WAKES_AT_ONCE {
                    if state.engine(id).ready.len() > state.engine(id).coming {
                        call(&mut state, inner.now(), id);
                    }
                }
                inner.unlock(state);
                do_job(inner, id, job);
                state = inner.lock();
            }
            None if state.stopping => break,
            None => {
                state.engine(id).idle += 1;
                state = inner.bells[usize::from(id.0)].wait(state).unwrap_or_else(PoisonError::into_inner);
                let engine = state.engine(id);
                engine.idle -= 1;
                // Whoever it was that was told; at worst one is woken too many.
                engine.coming = engine.coming.saturating_sub(1).min(engine.idle);
            }
        }
    }
    state.engine(id).threads -= 1;
    inner.farewell();
}

fn do_job(inner: &Arc<Inner>, id: EngineId, job: Job) {
    match job {
        Job::Run(batch) => {
            let mut mine = Some(batch);
            while let Some(batch) = mine {
                mine = inner.cycle(batch, &mut Role::Worker(id));
            }
        }
        Job::Lead => inner.lead(),
        Job::Load(circuits) => {
            let loaded = crate::execute::load(inner.engine(id), &circuits);
            let mut state = inner.lock();
            let now = inner.now();
            state.end_loading(now, id, &circuits, loaded.is_ok());
            ask_again(inner, state, now);
        }
    }
}

/// Asks the policy what is to be done, in a thread that runs no batch.
pub(crate) fn ask_again(inner: &Arc<Inner>, mut state: std::sync::MutexGuard<'_, State>, now: Time) {
    let mut ended = Vec::new();
    inner.pump(&mut state, now, &Role::Nobody, None, &mut ended);
    inner.leave(state, ended);
}

/// Makes sure that the timer wakes by the time that something is due.
pub(crate) fn arm(inner: &Arc<Inner>, state: &mut State) {
    let Some(due) = state.due() else { return };
    if state.stopping && !state.timer_lives {
        return;
    }
    if !state.timer_lives {
        let for_thread = inner.clone();
        // Without a timer bounds are late, not absent: the next request tries again.
        state.timer_lives = spawn("bw-timer".into(), move || keep_time(&for_thread)).is_ok();
    } else if state.timer_sleeps_until.is_none_or(|until| due < until) {
        state.timer_sleeps_until = Some(due);
        state.after.calls_timer = true;
    }
}

fn keep_time(inner: &Arc<Inner>) {
    // A policy that waits a little for the same session must not wait 50 us longer. Should that not be granted, it does.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    inner.begin(None);
    let mut state = inner.lock();
    while !(state.stopping && state.is_quiet()) {
        let now = inner.now();
        let due = state.due();
        state.timer_sleeps_until = due;
        match due {
            Some(due) if due <= now => {
                tick(inner, state, now);
                state = inner.lock();
            }
            None => state = inner.timer.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(due) => {
                let nap = Duration::from_nanos(due.since_ns(now));
                state = inner.timer.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
    state.timer_lives = false;
    inner.farewell();
}

fn tick(inner: &Arc<Inner>, mut state: std::sync::MutexGuard<'_, State>, now: Time) {
    let mut ended = Vec::new();
    if state.scan.is_some_and(|scan| scan <= now) {
        state.enforce(now, &mut ended);
    }
    inner.pump(&mut state, now, &Role::Nobody, None, &mut ended);
    inner.leave(state, ended);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_started_whatever_the_engine_is_called() {
        spawn("bw-a\0b-0".into(), || ()).unwrap();
    }
}
