//! What is told to the log, for tests that look.

use std::fmt::Debug;
use std::sync::{Mutex, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on it is kept.
pub(crate) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Log).unwrap());
}

/// The lines that have these words.
pub(crate) fn lines(words: &str) -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|line| line.contains(words)).cloned().collect()
}

struct Log;

struct Message;

impl Visit for Message {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
