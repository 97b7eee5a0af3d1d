//! Recordings: requests as CSV lines ([`bywash_core::trace`]), in the order in which they ended.
//!
//! A recording never holds a request up: lines go through a bounded queue to a thread of its own, and what does not fit is counted.

use bywash_core::trace::{HEADER, Record, Served, Whose, lost_line};
use bywash_core::{Error, Result, Time};
use bywash_manager::Observation;
use bywash_protocol::TraceEntry;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Records written.
    pub written: u64,
    /// Records lost, because the writer or the trace rings did not keep up.
    pub dropped: u64,
}

/// Lines that may wait for the writer.
const QUEUE_MAX: usize = 1 << 16;
/// How often the clients' trace rings are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// How long the last lines may take to be written.
const END_BOUND: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Recorder(Arc<State>);

#[derive(Default)]
struct State {
    /// Not any more, once nothing more can be written; whose recording it is learns why when it ends it.
    active: AtomicBool,
    running: Mutex<Option<Running>>,
}

struct Running {
    owner: u32,
    sender: SyncSender<Record>,
    end: Receiver<std::io::Result<u64>>,
    /// Of this recording alone, by which its thread knows whether it still runs.
    dropped: Arc<AtomicU64>,
    /// When it began, on the manager's clock and on the machine's.
    zero: Time,
    zero_ns: u64,
}

impl Running {
    fn note(&self, record: Record) {
        if self.sender.try_send(record).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

/// Empties the clients' trace rings. Calls back after each of them, for what was in one to be written: the queue has room for the fullest, and not for those of all.
pub(crate) type Drain = Box<dyn Fn(&mut dyn FnMut()) + Send>;

/// What is to be done when a recording cannot be written any more: soon, for requests that end wait for it.
pub(crate) type Failed = Box<dyn FnOnce() + Send>;

impl State {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What counts `dropped` cannot be written any more; whether that runs. If its owner has given it up, it may be another that does now.
    fn fail(&self, dropped: &Arc<AtomicU64>, failed: Failed) -> bool {
        let running = self.running();
        let is_running = running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.dropped, dropped));
        if is_running {
            self.active.store(false, Relaxed);
            failed();
        }
        is_running
    }
}

impl Recorder {
    /// Whether a recording runs.
    pub(crate) fn is_active(&self) -> bool {
        self.0.active.load(Relaxed)
    }

    /// Begins. `owner` is the client that asked, 0 for this process; `drain` is called until it is over; `failed`
    /// once nothing more can be written, unless it has been ended by then.
    pub(crate) fn start(&self, owner: u32, zero: Time, into: Box<dyn Write + Send>, drain: Drain, failed: Failed) -> Result<()> {
        let mut running = self.0.running();
        if let Some(other) = &*running {
            let who = if other.owner == 0 { "this broker's owner".to_owned() } else { format!("client {}", other.owner) };
            return Err(Error::Unavailable { what: format!("a recording for {who} is running already; end it first") });
        }
        let (sender, lines) = sync_channel(QUEUE_MAX);
        let (ended, end) = sync_channel(1);
        let thread = std::thread::Builder::new().name("bywash-record".into()).stack_size(crate::client::STACK_BYTES);
        let dropped = Arc::<AtomicU64>::default();
        // Weakly: the thread ends when the recorder does.
        let (lost, state) = (dropped.clone(), Arc::downgrade(&self.0));
        self.0.active.store(true, Relaxed);
        let body = move || {
            let written = write_all(BufWriter::new(into), &lines, &drain, &lost);
            if written.is_err()
                && let Some(state) = state.upgrade()
                && state.fail(&lost, failed)
            {
                // With no lock held, for the log may be where the recording was.
                tracing::warn!(owner, "a recording cannot be written any more");
            }
            // Whoever ended it may have had no patience.
            drop(ended.send(written));
        };
        thread.spawn(body).map_err(|error| {
            self.0.active.store(false, Relaxed);
            Error::Unavailable { what: format!("cannot start the recorder's thread: {error}") }
        })?;
        *running = Some(Running { owner, sender, end, dropped, zero, zero_ns: bywash_protocol::monotonic_ns() });
        Ok(())
    }

    /// Ends the recording of this owner; the caller has emptied the trace rings for the last time.
    pub(crate) fn stop(&self, owner: u32) -> Result<RecordingEnd> {
        let mut running = self.0.running();
        if running.as_ref().is_none_or(|running| running.owner != owner) {
            return Err(Error::Unavailable { what: "no recording of yours is running".into() });
        }
        self.0.active.store(false, Relaxed);
        let Some(Running { sender, end, dropped, .. }) = running.take() else { return Ok(RecordingEnd::default()) };
        drop((sender, running));
        match end.recv_timeout(END_BOUND) {
            Ok(Ok(written)) => Ok(RecordingEnd { written, dropped: dropped.load(Relaxed) }),
            Ok(Err(error)) => Err(Error::Unavailable { what: format!("the recording could not be written: {error}") }),
            Err(_) => Err(Error::Timeout { from: "the recording's file".into(), waited_ms: END_BOUND.as_millis() as u64 }),
        }
    }

    /// Whose recording runs.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.0.running().as_ref().map(|running| running.owner)
    }

    /// A request that the broker served.
    pub(crate) fn note_served(&self, seen: &Observation<'_>, whose: &Arc<Whose>) {
        self.with(|running| {
            let since = |time: Time| Time(time.since_ns(running.zero));
            running.note(Record {
                arrival: since(seen.arrival),
                client: seen.request.client,
                session: seen.request.session,
                algorithm: seen.request.algorithm,
                direction: seen.direction,
                bytes: seen.request.bytes,
                engine: seen.engine.to_owned(),
                start: since(seen.start),
                done: since(seen.done),
                served: Some(Served {
                    request: seen.request.id.0,
                    dispatched: since(seen.dispatched),
                    deadline: seen.request.deadline.map(since),
                    switched: seen.switched,
                    failed: seen.outcome.is_err(),
                    reason: seen.reason.map_or("", |reason| reason.word()).to_owned(),
                }),
                whose: Some(whose.clone()),
                calls: 1,
            });
        });
    }

    /// A request that a client says it ran in place.
    pub(crate) fn note_claimed(&self, client: u32, whose: &Arc<Whose>, entry: TraceEntry) {
        self.with(|running| {
            let since = |ns: u64| Time(ns.saturating_sub(running.zero_ns));
            running.note(Record {
                arrival: since(entry.arrival_ns),
                client,
                session: entry.session,
                algorithm: entry.algorithm,
                direction: entry.direction,
                bytes: entry.bytes,
                engine: "here".to_owned(),
                start: since(entry.start_ns),
                // By its own word, which may be anything; no request ends before it comes.
                done: since(entry.done_ns.max(entry.arrival_ns)),
                served: None,
                whose: Some(whose.clone()),
                calls: entry.calls,
            });
        });
    }

    /// Entries of a trace ring that were overwritten before they were read.
    pub(crate) fn note_lost(&self, lost: u64) {
        self.with(|running| {
            // A client may claim any number.
            let _ = running.dropped.fetch_update(Relaxed, Relaxed, |dropped| Some(dropped.saturating_add(lost)));
        });
    }

    fn with(&self, then: impl FnOnce(&Running)) {
        if let Some(running) = &*self.0.running() {
            then(running);
        }
    }
}

/// The recorder's thread: ends when the recording does, or when writing fails. The last line says how many requests were lost, if any were.
fn write_all(
    mut into: BufWriter<Box<dyn Write + Send>>,
    lines: &Receiver<Record>,
    drain: &Drain,
    lost: &AtomicU64,
) -> std::io::Result<u64> {
    writeln!(into, "{HEADER}")?;
    let mut written = 0;
    let mut drained = std::time::Instant::now();
    loop {
        match lines.recv_timeout(DRAIN_EVERY) {
            Ok(record) => {
                writeln!(into, "{record}")?;
                written += 1;
            }
            Err(RecvTimeoutError::Timeout) => into.flush()?,
            Err(RecvTimeoutError::Disconnected) => {
                let lost = lost.load(Relaxed);
                if lost > 0 {
                    writeln!(into, "{}", lost_line(lost))?;
                }
                into.flush()?;
                return Ok(written);
            }
        }
        if drained.elapsed() >= DRAIN_EVERY {
            let mut written_too = Ok(());
            drain(&mut || {
                // As many as the queue has room for: what comes meanwhile waits until the next ring is empty.
                for record in lines.try_iter().take(QUEUE_MAX) {
                    if written_too.is_ok() {
                        written_too = writeln!(into, "{record}");
                        written += 1;
                    }
                }
            });
            written_too?;
            drained = std::time::Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::{Algorithm, Direction};

    /// What is written, to be looked at.
    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl Write for Text {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_recording_ends_with_what_it_lost_if_it_lost_any() {
        for lost in [0, 12, u64::MAX] {
            let (recorder, text) = (Recorder::default(), Text::default());
            recorder.start(0, Time::ZERO, Box::new(text.clone()), Box::new(|_| ()), Box::new(|| ())).unwrap();
            let (direction, algorithm) = (Direction::Compute, Algorithm::Sha256);
            let entry = TraceEntry { arrival_ns: 1, start_ns: 1, done_ns: 2, bytes: 9, session: 1, algorithm, direction, calls: 3 };
            recorder.note_claimed(7, &Arc::default(), entry);
            (0..2).for_each(|_| recorder.note_lost(lost / 2));
            recorder.note_lost(lost % 2 + u64::from(lost == u64::MAX));
            assert_eq!(recorder.stop(0).unwrap(), RecordingEnd { written: 1, dropped: lost });
            let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.last().copied().and_then(bywash_core::trace::lost), (lost > 0).then_some(lost), "{text}");
            let record: Record = lines[1].parse().unwrap();
            assert_eq!((lines[0], record.bytes, record.calls, lines.len()), (HEADER, 9, 3, 2 + usize::from(lost > 0)));
        }
    }

    /// A file that cannot be written.
    struct Failing<F>(F);

    impl<F: FnMut() -> std::io::Error> Write for Failing<F> {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_recording_that_cannot_be_written_is_active_no_more_and_says_why() {
        let recorder = Recorder::default();
        let (tell, told) = sync_channel(1);
        let full = Failing(|| std::io::ErrorKind::StorageFull.into());
        recorder.start(7, Time::ZERO, Box::new(full), Box::new(|_| ()), Box::new(move || tell.send(()).unwrap())).unwrap();
        told.recv().unwrap();
        assert!(!recorder.is_active());
        assert_eq!(recorder.owner(), Some(7), "its owner ends it");
        let error = recorder.stop(7).unwrap_err().to_string();
        assert!(error.contains("could not be written: no storage space"), "{error}");
        recorder.start(8, Time::ZERO, Box::new(Text::default()), Box::new(|_| ()), Box::new(|| ())).unwrap();
        assert!(recorder.is_active() && recorder.stop(8).is_ok(), "another begins");
    }

    #[test]
    fn one_that_was_given_up_and_fails_later_does_not_end_the_next() {
        let recorder = Recorder::default();
        let (hold, held) = sync_channel::<()>(0);
        let failed = Box::new(|| panic!("it is another that runs"));
        // Its disk hangs until the other end is gone.
        let hung = Failing(move || {
            let _ = held.recv();
            std::io::ErrorKind::TimedOut.into()
        });
        recorder.start(7, Time::ZERO, Box::new(hung), Box::new(|_| ()), failed).unwrap();
        // As `stop` does, without its patience.
        let Running { sender, end, .. } = recorder.0.running().take().unwrap();
        drop(sender);
        recorder.start(8, Time::ZERO, Box::new(Text::default()), Box::new(|_| ()), Box::new(|| ())).unwrap();
        drop(hold);
        assert!(end.recv().unwrap().is_err(), "it has failed by now");
        assert!(recorder.is_active() && recorder.stop(8).is_ok());
    }
}
