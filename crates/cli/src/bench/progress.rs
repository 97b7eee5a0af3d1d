//! How far a run has come, on stderr, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;

/// A step for each row. It moves between turns only: a thread that draws would be one more that disturbs.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The row under way.
    what: RefCell<String>,
}

impl Progress {
    /// Of so many rows.
    pub(crate) fn new(rows: usize) -> Self {
        let bar = ProgressBar::new(rows as u64);
        // The template is a constant that indicatif accepts; a plain bar would do as well.
        let template = "{bar:30} {pos}/{len} {elapsed} (left {eta}) {msg}";
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, what: RefCell::default() }
    }

    /// The next row, or the same once more.
    pub(crate) fn row(&self, what: String) {
        self.bar.set_message(what.clone());
        self.what.replace(what);
    }

    /// A turn of its round of that number is next.
    pub(crate) fn round(&self, number: usize) {
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{}, round {number}", self.what.borrow()));
        }
    }

    /// The row is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// While something else is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// All is done.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
