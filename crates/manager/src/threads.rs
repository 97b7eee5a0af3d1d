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
/// What takes less, in nanoseconds, takes no more than waking some threads does; a thread that was woken longer ago may be long in coming.
const BRIEF_NS: f64 = 50_000.0;
/// Threads that may be started in place of stuck ones.
const STUCK_MAX: usize = 16;

/// Sees to it that the job last put before an engine's threads is picked up.
pub(crate) fn ring(inner: &Arc<Inner>, state: &mut State, now: Time, id: EngineId, ended: &mut Vec<Ended>) {
    if state.engine(id).ready.len() <= state.engine(id).idle {
        return wake(inner, state, now, id);
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

/// Wakes one of an engine's threads for the job last put before them. For what is brief, unless one that was just woken is still to come: that one wakes the next, so who hands over
/// many requests does not pay for waking every thread. What takes longer does not wait for one thread after the other to be run, and nothing does for long.
fn wake(inner: &Inner, state: &mut State, now: Time, id: EngineId) {
    let engine = &state.engines[usize::from(id.0)];
    let comes = engine.waking.is_some_and(|told| (now.since_ns(told) as f64) < BRIEF_NS);
    let is_brief = || matches!(engine.ready.back(), Some(Job::Run(batch)) if state.takes_less(batch, BRIEF_NS));
    if !(comes && is_brief()) {
        state.engine(id).waking = Some(now);
        inner.bells[usize::from(id.0)].notify_one();
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
                let engine = state.engine(id);
                if !engine.ready.is_empty() && engine.idle > 0 {
                    wake(inner, &mut state, inner.now(), id);
                }
                drop(state);
                do_job(inner, id, job);
                state = inner.lock();
            }
            None if state.stopping => break,
            None => {
                state.engine(id).idle += 1;
                state = inner.bells[usize::from(id.0)].wait(state).unwrap_or_else(PoisonError::into_inner);
                let engine = state.engine(id);
                engine.idle -= 1;
                // Others may be on their way too; at worst one is woken too many.
                engine.waking = None;
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
        inner.timer.notify_one();
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
