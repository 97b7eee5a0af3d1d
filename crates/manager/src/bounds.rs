//! Bounds: what is done about engines that fail or stall, and about requests that wait too long.

use crate::request::Ended;
use crate::state::{EngineState, Job, Loading, Running, State};
use bywash_core::{Algorithm, Error, Time};
use bywash_policy::{EngineId, Event};

/// Figures that do not change while a manager lives, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) stall_ns: u64,
    pub(crate) request_ns: u64,
    pub(crate) probation_ns: u64,
    pub(crate) failures_max: u32,
}

/// An engine slower than 10 MB/s counts as stalled.
const STALL_NS_PER_BYTE: u64 = 100;
/// Loading may take so many times as long as the device's sheet says, and a second.
const LOADING_TIMES: u64 = 4;
const LOADING_NS: u64 = 1_000_000_000;
/// Probation does not grow beyond a minute.
const PROBATION_NS_MAX: u64 = 60_000_000_000;
/// A timer that is later than this was held up itself, and judges nobody.
const LATE_NS: u64 = 200_000_000;

impl Bounds {
    /// How long a batch may run before it counts as stalled.
    pub(crate) fn batch_ns(&self, bytes: u64) -> u64 {
        self.stall_ns.saturating_add(bytes.saturating_mul(STALL_NS_PER_BYTE))
    }

    /// The same of loading, which the sheet, if there is one, says to take so long.
    pub(crate) fn loading_ns(&self, sheet_ns: Option<u64>) -> u64 {
        sheet_ns.map_or(self.stall_ns, |ns| ns.saturating_mul(LOADING_TIMES).saturating_add(LOADING_NS))
    }
}

impl State {
    /// Keeps the score of an engine's failures.
    pub(crate) fn judge(&mut self, now: Time, engine: EngineId, faulty: bool) {
        let Bounds { failures_max, probation_ns, .. } = self.bounds;
        let state = self.engine(engine);
        if !faulty {
            state.failures = 0;
            state.probation_ns = probation_ns;
            return;
        }
        state.faults += 1;
        state.failures = state.failures.saturating_add(1);
        if state.failures >= failures_max {
            self.take_down(now, engine);
        }
    }

    /// Takes an engine down, unless it is the last one up: errors from that one are better than silence.
    fn take_down(&mut self, now: Time, engine: EngineId) {
        let up = self.engines.iter().filter(|engine| engine.up).count();
        let failures_max = self.bounds.failures_max;
        let state = self.engine(engine);
        if !state.up || up == 1 {
            return;
        }
        state.up = false;
        state.up_at = now + state.probation_ns;
        state.probation_ns = (state.probation_ns * 2).min(PROBATION_NS_MAX);
        // Back from probation, the first failure takes it down again.
        state.failures = failures_max.max(1) - 1;
        let up_at = state.up_at;
        self.policy.event(now, Event::EngineDown(engine));
        self.scan_by(up_at);
    }

    /// Enforces every bound that has been reached by now.
    pub(crate) fn enforce(&mut self, now: Time, ended: &mut Vec<Ended>) {
        if self.scan.take().is_some_and(|scan| now.since_ns(scan) > LATE_NS) {
            self.begin_bounds_anew(now);
        }
        let stalled: Vec<u64> = self.running.iter().filter(|(_, run)| run.deadline <= now).map(|(&number, _)| number).collect();
        for number in stalled {
            self.give_up(now, number, None, ended);
        }
        for id in self.ids() {
            if matches!(self.engine(id).loading, Loading::Under { deadline, .. } if deadline <= now) {
                self.give_up_loading(now, id);
            }
        }
        self.expire(now, ended);
        for id in self.ids() {
            let engine = self.engine(id);
            if engine.returns_at().is_some_and(|at| at <= now) {
                engine.up = true;
                self.policy.event(now, Event::EngineUp(id));
            }
        }
        self.schedule_scan();
    }

    /// Circuits are to be loaded, which the device's sheet, if there is one, says to take so long. Where earlier loading is stuck it has failed at once: false.
    pub(crate) fn begin_loading(&mut self, now: Time, id: EngineId, circuits: Vec<Algorithm>, sheet_ns: Option<u64>) -> bool {
        let bound_ns = self.bounds.loading_ns(sheet_ns);
        let deadline = now + bound_ns;
        let engine = self.engine(id);
        if engine.loading != Loading::No {
            self.policy.event(now, Event::LoadFailed(id));
            return false;
        }
        engine.loading = Loading::Under { bound_ns, deadline };
        engine.ready.push_back(Job::Load(circuits));
        self.scan_by(deadline);
        true
    }

    /// Loading has come back; if it was given up, after its failure was told.
    pub(crate) fn end_loading(&mut self, now: Time, id: EngineId, circuits: &[Algorithm], well: bool) {
        if core::mem::replace(&mut self.engine(id).loading, Loading::No) == Loading::Lost {
            return self.loading_returned(now, id, circuits, well);
        }
        self.judge(now, id, !well);
        self.policy.event(now, if well { Event::Loaded(id) } else { Event::LoadFailed(id) });
    }

    /// Loading that was given up has come back. Its engine answers again: if all went well it is tried at once, whatever probation is left.
    fn loading_returned(&mut self, now: Time, id: EngineId, circuits: &[Algorithm], well: bool) {
        let engine = self.engine(id);
        engine.stuck = engine.stuck.saturating_sub(1);
        if well {
            engine.up_at = engine.up_at.min(now);
        }
        if let Some(at) = engine.returns_at() {
            self.scan_by(at);
        }
        if well {
            self.policy.event(now, Event::LoadReturned(id, circuits));
        }
    }

    /// Gives loading up that stalled: the engine is down until it comes back.
    fn give_up_loading(&mut self, now: Time, id: EngineId) {
        let engine = self.engine(id);
        engine.faults += 1;
        let is_stuck = engine.give_up(|job| matches!(job, Job::Load(_)));
        engine.loading = if is_stuck { Loading::Lost } else { Loading::No };
        self.policy.event(now, Event::LoadFailed(id));
        self.take_down(now, id);
    }

    /// Whoever enforces bounds was held up (the process stopped, the machine overloaded), and with it, likely, those who are bound.
    fn begin_bounds_anew(&mut self, now: Time) {
        for run in self.running.values_mut() {
            run.deadline = now + run.bound_ns;
        }
        for engine in &mut self.engines {
            if let Loading::Under { bound_ns, deadline } = &mut engine.loading {
                *deadline = now + *bound_ns;
            }
        }
        for entry in self.entries.values_mut() {
            entry.expires = now + self.bounds.request_ns;
        }
    }

    /// Gives a batch up: it stalled, or (with a `reason`) it could not be begun. Should it come back, it is ignored.
    pub(crate) fn give_up(&mut self, now: Time, number: u64, reason: Option<Error>, ended: &mut Vec<Ended>) {
        let Some(Running { engine, requests, lent, start, .. }) = self.running.remove(&number) else { return };
        let service_ns = now.since_ns(start);
        let state = self.engine(engine);
        state.busy -= 1;
        state.faults += 1;
        state.give_up(|job| matches!(job, Job::Run(batch) if batch.number == number));
        let from = format!("engine '{}'", state.name);
        let error = reason.unwrap_or(Error::Timeout { from, waited_ms: service_ns / 1_000_000 });
        self.policy.event(now, Event::Finished { engine, batch: &requests, service_ns: None });
        for id in requests.into_iter().filter(|&id| Some(id) != lent) {
            self.retry(now, id, engine, error.clone(), ended);
        }
        self.take_down(now, engine);
    }

    /// Ends the requests that have waited too long to be dispatched.
    fn expire(&mut self, now: Time, ended: &mut Vec<Ended>) {
        let bound = self.bounds.request_ns;
        for id in self.queued(|entry| entry.expires <= now) {
            self.policy.event(now, Event::Cancelled(id));
            let error = Error::Timeout { from: "the manager's queue: its engines are busy or down".into(), waited_ms: bound / 1_000_000 };
            self.end(id, Err(error), ended);
        }
    }

    fn schedule_scan(&mut self) {
        let stalls = self.running.values().map(|run| run.deadline);
        let queue = self.entries.values().filter(|entry| entry.batch.is_none()).map(|entry| entry.expires).min();
        let probations = self.engines.iter().filter_map(EngineState::returns_at);
        let loading = self.engines.iter().filter_map(|engine| match engine.loading {
            Loading::Under { deadline, .. } => Some(deadline),
            Loading::No | Loading::Lost => None,
        });
        self.scan = stalls.chain(queue).chain(probations).chain(loading).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Deliver;
    use crate::session::Table;
    use bywash_core::{CostSheet, Direction, Key, OwnedOperation, SecretBytes, SessionParams};
    use bywash_policy::estimate::Estimate;
    use bywash_policy::{EngineInfo, EngineSet, Lanes};

    const BOUNDS: Bounds = Bounds { stall_ns: 1_000_000_000, request_ns: 5_000_000_000, probation_ns: 1_000, failures_max: 2 };

    /// Two engines of one worker each, and four requests of 1 byte.
    fn state() -> State {
        state_with_lanes(1)
    }

    fn state_with_lanes(lanes: usize) -> State {
        let info = || EngineInfo { workers: 1, lanes: Lanes::same(lanes), costs: CostSheet::empty("x") };
        let engine = |name| EngineState::new(name, 1, Estimate::of(&info()), &BOUNDS);
        let policy = bywash_policy::by_name("fifo", &[info(), info()]).unwrap();
        let mut state = State::new(policy, vec![engine("a"), engine("b")], BOUNDS);
        let params = SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[1; 16]).into())).unwrap();
        let session = Table::default().insert(1, params, EngineSet(0b11), 2).unwrap();
        for _ in 0..4 {
            let byte = || SecretBytes::zeroed(1);
            let (iv, aad, tag) = (vec![0; 16], vec![], vec![]);
            let operation = OwnedOperation { direction: Direction::Encrypt, iv, aad, input: byte(), output: byte(), tag };
            let request = session.request(state.number(), Time::ZERO, Direction::Compute, 1, EngineSet(0b11));
            state.admit(Time(0), request, session.clone(), &[], operation, Deliver::Call(Box::new(|_| {})));
        }
        state
    }

    fn dispatch(state: &mut State, now: Time) -> usize {
        let mut count = 0;
        loop {
            let mut requests = vec![];
            let bywash_policy::Decision::Dispatch(engine) = state.policy.decide(now, &mut requests) else { return count };
            state.batch(now, engine, requests, None, None);
            count += 1;
        }
    }

    #[test]
    fn a_stall_on_every_engine_ends_requests_and_expiry_the_rest() {
        let mut state = state();
        assert_eq!(dispatch(&mut state, Time(0)), 2);
        let mut ended = vec![];
        let due = state.due().unwrap();
        assert_eq!(due, Time(BOUNDS.stall_ns + STALL_NS_PER_BYTE));
        state.enforce(due, &mut ended);
        assert!(ended.is_empty(), "each has the other engine left");
        assert_eq!(state.engines.iter().filter(|engine| engine.up).count(), 1, "the last one up stays up");
        assert_eq!(state.engines.iter().map(|engine| engine.stuck).sum::<usize>(), 2);
        while let Some(due) = state.due() {
            state.enforce(due, &mut ended);
        }
        assert_eq!(ended.len(), 4);
        assert!(ended.iter().all(|end| matches!(end.outcome, Err(Error::Timeout { .. }))));
        assert!(state.is_quiet());
    }

    #[test]
    fn a_timer_that_was_held_up_judges_nobody() {
        let mut state = state();
        dispatch(&mut state, Time(0));
        let mut ended = vec![];
        let much_later = Time(3_600_000_000_000);
        state.enforce(much_later, &mut ended);
        assert!(ended.is_empty());
        assert!(state.engines.iter().all(|engine| engine.up && engine.busy == 1 && engine.faults == 0));
        assert_eq!(state.due().unwrap(), much_later + state.bounds.batch_ns(1));
        state.enforce(much_later + much_later.0, &mut ended);
        assert_eq!(state.due().unwrap(), much_later + much_later.0 + state.bounds.batch_ns(1), "nor is it more patient each time");
    }

    #[test]
    fn loading_that_does_not_come_back_takes_its_engine_down_until_it_does() {
        let (mut state, device) = (state(), EngineId(1));
        const SHEET_NS: u64 = 60_000_000;
        assert!(state.begin_loading(Time(0), device, vec![Algorithm::DesEcb], Some(SHEET_NS)));
        assert!(matches!(state.engines[1].ready.pop_front(), Some(Job::Load(_))), "a thread takes it");
        let due = state.due().unwrap();
        assert_eq!(due, Time(LOADING_TIMES * SHEET_NS + LOADING_NS));
        let mut ended = vec![];
        state.enforce(due, &mut ended);
        let figures = |state: &State| (state.engines[1].up, state.engines[1].stuck, state.engines[1].faults);
        assert_eq!(figures(&state), (false, 1, 1));
        assert_eq!(dispatch(&mut state, due), 1, "the other engine goes on, alone");
        assert!(!state.begin_loading(due, device, vec![Algorithm::DesEcb], None), "no second thread is lost");
        let later = due + 100 * BOUNDS.probation_ns;
        state.enforce(later, &mut ended);
        assert_eq!(figures(&state), (false, 1, 1), "its probation is over, and it hangs");
        state.end_loading(later, device, &[], false);
        state.enforce(later, &mut ended);
        assert_eq!(figures(&state), (true, 0, 1));
        assert!(ended.is_empty() && state.begin_loading(later, device, vec![Algorithm::DesEcb], None));
    }

    #[test]
    fn loading_that_comes_back_well_after_all_ends_its_engines_probation() {
        for well in [true, false] {
            let (mut state, device, circuits) = (state(), EngineId(1), [Algorithm::DesEcb]);
            state.bounds.probation_ns = 60_000_000_000;
            state.engines[1].probation_ns = state.bounds.probation_ns;
            state.begin_loading(Time(0), device, circuits.to_vec(), None);
            state.engines[1].ready.pop_front();
            let due = state.due().unwrap();
            state.enforce(due, &mut vec![]);
            assert!(!state.engines[1].up);
            state.end_loading(due + 1, device, &circuits, well);
            state.enforce(due + 1, &mut vec![]);
            assert_eq!(state.engines[1].up, well, "what failed late has its probation before it");
        }
    }

    #[test]
    fn loading_that_no_thread_began_is_given_up_and_nothing_is_stuck() {
        let mut state = state();
        assert!(state.begin_loading(Time(0), EngineId(1), vec![Algorithm::DesEcb], None));
        let due = state.due().unwrap();
        assert_eq!(due, Time(BOUNDS.stall_ns), "an engine without a sheet has what a batch has");
        state.enforce(due, &mut vec![]);
        assert!(state.engines[1].ready.is_empty() && state.engines[1].stuck == 0);
        assert_eq!((state.engines[1].up, state.engines[1].loading), (false, Loading::No));
    }

    #[test]
    fn what_fails_teaches_no_time() {
        let mut state = state();
        let believed = |state: &State| state.engines[0].estimate.batch_ns(Algorithm::Aes128Ctr, 1, 1);
        let at_first = believed(&state);
        for well in [false, true] {
            let mut requests = vec![];
            while state.policy.decide(Time(0), &mut requests) != bywash_policy::Decision::Dispatch(EngineId(0)) {
                requests.clear();
            }
            let mut batch = state.batch(Time(0), EngineId(0), requests, None, None);
            batch.items[0].outcome = if well { Ok(1) } else { Err(Error::NotRun) };
            state.finish(batch, crate::state::Span { start: Time(0), done: Time(9_000_000), imports: false }, None, &mut vec![]);
            assert_eq!(believed(&state) != at_first, well);
        }
    }

    #[test]
    fn getting_to_know_memory_teaches_no_time_unless_it_is_the_rule() {
        for (before, imports, teaches) in [(0, false, true), (0, true, false), (63, true, false), (64, true, true)] {
            let mut state = state();
            let believed = |state: &State| state.engines[0].estimate.batch_ns(Algorithm::Aes128Ctr, 1, 1);
            let at_first = believed(&state);
            state.engines[0].imports = before;
            let mut requests = vec![];
            assert_eq!(state.policy.decide(Time(0), &mut requests), bywash_policy::Decision::Dispatch(EngineId(0)));
            let mut batch = state.batch(Time(0), EngineId(0), requests, None, None);
            batch.items[0].outcome = Ok(1);
            state.finish(batch, crate::state::Span { start: Time(0), done: Time(9_000_000), imports }, None, &mut vec![]);
            assert_eq!(believed(&state) != at_first, teaches, "{before} {imports}");
        }
    }

    #[test]
    fn a_batch_teaches_its_time_whatever_clients_did_wrong_in_part_of_it() {
        let (good, forged, failed) = (|| Ok(1), || Err(Error::Authentication), || Err(Error::NotRun));
        for (outcomes, teaches) in [([good(), forged()], true), ([forged(), forged()], false), ([good(), failed()], false)] {
            let mut state = state_with_lanes(2);
            let believed = |state: &State| state.engines[0].estimate.batch_ns(Algorithm::Aes128Ctr, 1, 1);
            let at_first = believed(&state);
            let mut requests = vec![];
            assert_eq!(state.policy.decide(Time(0), &mut requests), bywash_policy::Decision::Dispatch(EngineId(0)));
            let mut batch = state.batch(Time(0), EngineId(0), requests, None, None);
            batch.items.iter_mut().zip(&outcomes).for_each(|(item, outcome)| item.outcome = outcome.clone());
            state.finish(batch, crate::state::Span { start: Time(0), done: Time(9_000_000), imports: false }, None, &mut vec![]);
            assert_eq!(believed(&state) != at_first, teaches, "{outcomes:?}");
            assert_eq!(state.engines[0].faults > 0, outcomes.contains(&failed()));
        }
    }

    #[test]
    fn probation_doubles_and_success_forgives() {
        let mut state = state();
        let engine = EngineId(0);
        let fail_until_down = |state: &mut State, now: u64| {
            let count = (1..).find(|_| {
                state.judge(Time(now), engine, true);
                !state.engines[0].up
            });
            (count, state.engines[0].up_at.0 - now)
        };
        let back_up = |state: &mut State, now: u64| state.enforce(Time(now), &mut vec![]);
        assert_eq!(fail_until_down(&mut state, 0), (Some(2), 1_000));
        back_up(&mut state, 1_000);
        assert_eq!(fail_until_down(&mut state, 2_000), (Some(1), 2_000), "at once, and for longer");
        back_up(&mut state, 4_000);
        state.judge(Time(5_000), engine, false);
        assert_eq!(fail_until_down(&mut state, 6_000), (Some(2), 1_000));
    }
}
