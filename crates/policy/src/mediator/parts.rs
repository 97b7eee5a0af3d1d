//! Parts of a request that was [cut](super::cut): each waits for the engine that it is meant for.
//!
//! All ends with the last part, so one must not wait beside idle workers for an engine that hangs. A part is as patient with a busy engine as a whole request with one that is free;
//! then, or when its engine is gone, it goes wherever it may.

use super::{Kind, Mediator, PATIENCE};
use crate::placement::PATIENCE_NS;
use crate::{EngineId, Request};
use bywash_core::Time;

impl Mediator {
    /// All parts of a request arrive at one time, and are one arrival.
    pub(super) fn part_arrived(&mut self, now: Time, request: Request, meant: EngineId) {
        let gap = &mut self.gaps[usize::from(request.algorithm.number())];
        if !gap.is_last(now) {
            gap.arrival(now);
        }
        self.queue(now, request, Some(meant).filter(|&engine| self.workers.up().contains(engine)));
    }

    /// An engine is gone.
    pub(super) fn engine_down(&mut self, engine: EngineId) {
        self.workers.set_up(engine, false);
        for place in 0..self.busy.len() {
            let kind = self.busy[place];
            while self.kinds[usize::from(kind)].meant == Some(engine) && self.waiting.len(usize::from(kind)) > 0 {
                self.unbind(kind);
            }
        }
        self.settle();
    }

    /// Until when the oldest of a kind of parts is patient, if the engine that they are meant for is busy. An engine that does not end looks slower by the moment; that is no reason to wait
    /// longer for it.
    pub(super) fn patient_until(&self, now: Time, kind: u16) -> Option<Time> {
        let Kind { algorithm, meant, .. } = self.kinds[usize::from(kind)];
        let engine = meant.filter(|&engine| !self.workers.ready().contains(engine))?;
        let head = self.waiting.front(usize::from(kind))?;
        let takes = self.engine(engine).belief.batch_ns(now, self.host, algorithm, head.request.bytes, 1);
        Some(head.arrived + (PATIENCE * takes) as u64 + PATIENCE_NS)
    }

    /// Lets those go elsewhere whose patience has ended.
    pub(super) fn unbind_impatient(&mut self, now: Time) {
        let mut any = false;
        for place in 0..self.busy.len() {
            let kind = self.busy[place];
            while self.patient_until(now, kind).is_some_and(|until| until <= now) {
                self.unbind(kind);
                any = true;
            }
        }
        if any {
            self.settle();
        }
    }

    /// Its oldest may go anywhere from now on. It has waited since it arrived, and goes before what came later.
    fn unbind(&mut self, kind: u16) {
        if let Some(entry) = self.pop(kind) {
            let kind = self.kind_of(&entry.request, None);
            self.waiting.put_back(usize::from(kind), &entry);
            self.queued(kind, entry.request.bytes);
        }
    }
}
