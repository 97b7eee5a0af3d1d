//! A policy of disciplines: one for each engine, and a route that says which engine a request waits for.

use super::{Choice, Discipline, Module, News, Owner};
use crate::workers::Workers;
use crate::{Decision, EngineId, EngineInfo, EngineSet, Event, Policy, Reason, Request, RequestId};
use bywash_core::Time;

/// Which engine a request waits for.
pub trait Route: Send {
    /// One of the engines of `up`, which are those of the request that are up; `None` only if there is none. `modules` has all of the driver's engines in its order.
    fn route(&mut self, now: Time, request: &Request, up: EngineSet, modules: &[&Module]) -> Option<EngineId>;

    /// A batch has ended, or one of its requests has come back because the engine failed it.
    fn ended(&mut self, _now: Time, _engine: EngineId, _well: bool) {}
}

/// Disciplines as a [`Policy`]. See the [module](super).
pub struct Modules {
    name: &'static str,
    workers: Workers,
    engines: Vec<Scheduled>,
    route: Box<dyn Route>,
    /// Requests none of whose engines is up, and when they came.
    stranded: Vec<(Request, Time)>,
    /// Why the last dispatch was as it was.
    reason: Option<Reason>,
    /// What failed last, until it comes back or something else ends.
    failed: Vec<(RequestId, EngineId)>,
}

struct Scheduled {
    module: Module,
    discipline: Box<dyn Discipline>,
}

impl Scheduled {
    fn tell(&mut self, now: Time, news: News<'_>) {
        self.discipline.tell(now, news, &self.module);
    }
}

impl Modules {
    /// Under this name; `discipline` makes one for each engine.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines.
    pub fn new(
        name: &'static str,
        engines: &[EngineInfo],
        route: Box<dyn Route>,
        discipline: impl Fn(&EngineInfo) -> Box<dyn Discipline>,
    ) -> Self {
        let scheduled = |engine: &EngineInfo| Scheduled { module: Module::new(engine), discipline: discipline(engine) };
        let (workers, engines) = (Workers::new(engines), engines.iter().map(scheduled).collect());
        Self { name, workers, engines, route, stranded: Vec::new(), reason: None, failed: Vec::new() }
    }

    fn tell_all(&mut self, now: Time, news: News<'_>) {
        self.engines.iter_mut().for_each(|engine| engine.tell(now, news));
    }

    fn arrived(&mut self, now: Time, request: Request) {
        if let Some(place) = self.failed.iter().position(|&(id, _)| id == request.id) {
            let (_, engine) = self.failed.swap_remove(place);
            self.route.ended(now, engine, false);
        }
        self.admit(now, request, now);
    }

    fn admit(&mut self, now: Time, request: Request, arrived: Time) {
        let up = request.engines.and(self.workers.up());
        let modules: Vec<&Module> = self.engines.iter().map(|engine| &engine.module).collect();
        match self.route.route(now, &request, up, &modules) {
            Some(engine) => {
                up.without(engine).iter().for_each(|other| self.engines[usize::from(other.0)].module.pass(now, &request));
                let engine = &mut self.engines[usize::from(engine.0)];
                if engine.module.line.push(request, arrived) {
                    engine.tell(now, News::Arrived(&request));
                }
            }
            None => self.stranded.push((request, arrived)),
        }
    }

    fn cancelled(&mut self, now: Time, id: RequestId) {
        self.stranded.retain(|(request, _)| request.id != id);
        for engine in &mut self.engines {
            if let Some(entry) = engine.module.line.remove(id) {
                engine.tell(now, News::Gone(&entry.request));
            }
        }
    }

    fn finished(&mut self, now: Time, id: EngineId, batch: &[RequestId], service_ns: Option<u64>) {
        self.workers.give(id);
        self.failed.clear();
        match service_ns {
            Some(_) => self.route.ended(now, id, true),
            None => self.failed.extend(batch.iter().map(|&request| (request, id))),
        }
        let engine = &mut self.engines[usize::from(id.0)];
        if let Some(news) = engine.module.end(now, batch, service_ns) {
            engine.tell(now, news);
        }
    }

    fn set_up(&mut self, now: Time, id: EngineId, up: bool) {
        self.workers.set_up(id, up);
        if up {
            for (request, arrived) in std::mem::take(&mut self.stranded) {
                self.admit(now, request, arrived);
            }
            return;
        }
        let engine = &mut self.engines[usize::from(id.0)];
        let moved = engine.module.line.drain();
        moved.iter().for_each(|entry| engine.tell(now, News::Gone(&entry.request)));
        moved.iter().for_each(|entry| self.admit(now, entry.request, entry.arrived));
    }
}

impl Policy for Modules {
    fn name(&self) -> &'static str {
        self.name
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => self.arrived(now, request),
            Event::Cancelled(id) => self.cancelled(now, id),
            Event::Finished { engine, batch, service_ns } => self.finished(now, engine, batch, service_ns),
            Event::EngineUp(engine) => self.set_up(now, engine, true),
            Event::EngineDown(engine) => self.set_up(now, engine, false),
            Event::ClientJoined { client, tenant } => self.tell_all(now, News::Joined(client, tenant)),
            Event::ClientLeft(client) => self.tell_all(now, News::Left(client)),
            Event::SessionClosed { client, session } => self.tell_all(now, News::Closed(Owner { client, session })),
            _ => {}
        }
    }

    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        let mut wake: Option<Time> = None;
        for id in self.workers.ready().iter() {
            let engine = &mut self.engines[usize::from(id.0)];
            if engine.module.line.is_empty() {
                continue;
            }
            match engine.discipline.choose(now, &engine.module) {
                Choice::Serve(owner) => {
                    let alone = engine.module.line.len() == 1;
                    self.reason = Some(if alone { Reason::Only } else { engine.discipline.reason(owner, &engine.module) });
                    if let Some(news) = engine.module.begin(now, owner, batch) {
                        engine.discipline.tell(now, news, &engine.module);
                        self.workers.take(id);
                        return Decision::Dispatch(id);
                    }
                }
                Choice::WaitUntil(until) => wake = Some(wake.map_or(until, |wake| wake.min(until)).max(now + 1)),
                Choice::Nothing => {}
            }
        }
        wake.map_or(Decision::Idle, Decision::WaitUntil)
    }

    fn reason(&self) -> Option<Reason> {
        self.reason
    }

    fn demoted(&self) -> u64 {
        self.engines.iter().map(|engine| engine.discipline.demoted()).sum()
    }
}
