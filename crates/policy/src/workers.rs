//! Which engines have a free worker.

use crate::{ENGINES_MAX, EngineId, EngineInfo, EngineSet};

/// Counts free workers and keeps the set of engines that could start a batch now.
pub(crate) struct Workers {
    free: Vec<usize>,
    up: EngineSet,
    ready: EngineSet,
}

impl Workers {
    pub(crate) fn new(engines: &[EngineInfo]) -> Self {
        assert!(engines.len() <= ENGINES_MAX, "{} engines; a policy handles at most {ENGINES_MAX}", engines.len());
        let up = (0..engines.len() as u8).fold(EngineSet::default(), |set, engine| set.with(EngineId(engine)));
        let mut workers = Self { free: engines.iter().map(|engine| engine.workers).collect(), up, ready: up };
        for engine in up.iter() {
            workers.refresh(engine);
        }
        workers
    }

    /// Engines that are up and have a free worker.
    pub(crate) fn ready(&self) -> EngineSet {
        self.ready
    }

    /// Engines that are up.
    pub(crate) fn up(&self) -> EngineSet {
        self.up
    }

    pub(crate) fn take(&mut self, engine: EngineId) {
        self.free[usize::from(engine.0)] -= 1;
        self.refresh(engine);
    }

    pub(crate) fn give(&mut self, engine: EngineId) {
        self.free[usize::from(engine.0)] += 1;
        self.refresh(engine);
    }

    pub(crate) fn set_up(&mut self, engine: EngineId, up: bool) {
        self.up = if up { self.up.with(engine) } else { self.up.without(engine) };
        self.refresh(engine);
    }

    fn refresh(&mut self, engine: EngineId) {
        let ready = self.up.contains(engine) && self.free[usize::from(engine.0)] > 0;
        self.ready = if ready { self.ready.with(engine) } else { self.ready.without(engine) };
    }
}
