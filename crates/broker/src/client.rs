//! A client as the broker knows it.

use crate::accounts::{Account, Claimed, Served, claimed};
use crate::recorder::Recorder;
use crate::sessions::Sessions;
use crate::stats::{ClientStats, WorkStats};
use bywash_core::trace::Whose;
use bywash_protocol::trace_ring::TraceCursor;
use bywash_protocol::{BrokerRing, ControlSocket, Peer};
use std::sync::{Arc, Mutex, PoisonError};

/// Stack of the broker's threads. Address space only; pages are used as they are touched.
pub(crate) const STACK_BYTES: usize = 256 << 10;

pub(crate) struct Client {
    pub(crate) number: u32,
    /// Who speaks: what it may do goes by this.
    pub(crate) peer: Peer,
    /// The process that is computed for, by the kernel's word and its own: what is counted goes by this.
    pub(crate) whose: Arc<Whose>,
    pub(crate) run: Option<String>,
    pub(crate) socket: ControlSocket,
    pub(crate) sessions: Sessions,
    pub(crate) account: Account,
    /// None for observers.
    pub(crate) ring: Option<Arc<BrokerRing>>,
    pub(crate) trace: Mutex<TraceCursor>,
}

impl Client {
    pub(crate) fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Who speaks, for people: the command, and for which process, if that is another.
    pub(crate) fn speaker(&self) -> String {
        let Whose { pid, program, .. } = &*self.whose;
        if *pid == self.peer.pid { program.clone() } else { format!("{program} (for process {pid})") }
    }

    /// What was served, and what it claims to have done in place.
    pub(crate) fn work(&self) -> (Served, Claimed) {
        let claims = self.ring.as_ref().map(|ring| claimed(ring.region()));
        (self.account.view(), claims.unwrap_or_default())
    }

    pub(crate) fn stats(&self, work: Vec<WorkStats>) -> ClientStats {
        ClientStats {
            client: self.number,
            pid: self.whose.pid,
            uid: self.whose.uid,
            comm: self.whose.program.clone(),
            run: self.run.clone(),
            sessions: self.sessions.len(),
            in_flight: self.ring.as_ref().map_or(0, |ring| ring.in_flight()),
            work,
        }
    }

    /// Forgets what is in the trace ring: it is older than the recording that begins.
    pub(crate) fn skip_trace(&self) {
        if let Some(ring) = &self.ring {
            *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = ring.region().trace_now();
        }
    }

    /// Hands what is new in the trace ring to the recorder.
    pub(crate) fn drain_trace(&self, recorder: &Recorder) {
        if let Some(ring) = &self.ring {
            let mut cursor = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
            let lost = ring.region().drain_trace(&mut cursor, |entry| recorder.note_claimed(self.number, &self.whose, entry));
            recorder.note_lost(lost);
        }
    }

    /// The same for the last time, at the end of the recording or of the client: what it has begun and not finished is lost.
    pub(crate) fn end_trace(&self, recorder: &Recorder) {
        self.drain_trace(recorder);
        recorder.note_lost(self.trace.lock().unwrap_or_else(PoisonError::into_inner).give_up());
    }
}
