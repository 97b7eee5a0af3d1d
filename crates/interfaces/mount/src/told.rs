//! What the log was told: each trouble once, however often it is met again, and once that it is over.

use std::io;

/// How a file is named in the log, where its name is nobody's business.
pub(crate) fn file(ino: u64) -> String {
    format!("file {ino} (find -inum {ino})")
}

/// The same of a folder.
pub(crate) fn folder(ino: u64) -> String {
    format!("folder {ino} (find -inum {ino})")
}

/// So many troubles are known at a time; of one more it is told again.
const TROUBLES_MAX: usize = 8;

/// The troubles of one thing that last.
#[derive(Default)]
pub(crate) struct Told(Vec<String>);

impl Told {
    /// Tells of one, unless it was told of: the same words, for the same reason.
    pub(crate) fn error(&mut self, what: impl Into<String>, error: &io::Error) {
        let line = format!("{}: {error}", what.into());
        if !self.0.contains(&line) {
            tracing::error!("{line}");
            self.0.truncate(TROUBLES_MAX - 1);
            self.0.insert(0, line);
        }
    }

    /// All is well; that is told if anything else was.
    pub(crate) fn end(&mut self, what: impl FnOnce() -> String) {
        if !self.0.is_empty() {
            tracing::warn!("{}", what());
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Keeps the words of all that is told.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl tracing::field::Visit for Lines {
        fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn each_trouble_is_told_once_and_its_end_once() {
        let lines = Lines::default();
        let (full, broken) = (io::Error::other("full"), io::Error::other("broken"));
        tracing::subscriber::with_default(lines.clone(), || {
            let mut told = Told::default();
            told.end(|| "it was well all along".into());
            for _ in 0..3 {
                told.error(file(7), &full);
                told.error(file(7), &broken);
            }
            (0..2).for_each(|_| told.end(|| "it is stored now".into()));
            told.error(file(7), &full);
        });
        let wanted = ["file 7 (find -inum 7): full", "file 7 (find -inum 7): broken", "it is stored now", "file 7 (find -inum 7): full"];
        assert_eq!(*lines.0.lock().unwrap(), wanted);
    }
}
