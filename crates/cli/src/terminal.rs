//! Colour only where somebody looks, and numbers as people read them.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A line on stderr; a reader that has gone away (`2>&1 | head`) is no failure, where `eprintln!` would panic and change the exit code.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use say;

/// Whether to colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For text on stdout.
    pub(crate) fn of_stdout() -> Self {
        Self { colour: wanted() && std::io::stdout().is_terminal() }
    }

    /// For text on stderr.
    pub(crate) fn of_stderr() -> Self {
        Self { colour: colour_on_stderr() }
    }

    /// What is well.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What deserves a look.
    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// What is broken.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// What stands out.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether stderr takes colour.
pub(crate) fn colour_on_stderr() -> bool {
    wanted() && std::io::stderr().is_terminal()
}

/// <https://no-color.org>: set and not empty means none.
fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A bar with what is under way and how many steps of it are done.
pub(crate) fn bar_style() -> ProgressStyle {
    // The template is a constant that indicatif accepts; a plain bar would do as well.
    ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// How long work of minutes says nothing where nobody looks, in a log.
const SILENCE: Duration = Duration::from_secs(10);

/// How far work of minutes has come: a bar on a terminal, elsewhere a line now and then.
pub(crate) struct Told {
    bar: ProgressBar,
    said: Option<Instant>,
}

impl Told {
    /// Something is under way, and moves by itself.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner().with_message("measuring");
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, said: None }
    }

    /// The next part of the work, of so many steps.
    pub(crate) fn begin(&mut self, what: String, steps: u64) {
        self.bar.set_style(bar_style());
        self.bar.reset();
        self.bar.set_length(steps);
        self.bar.set_message(what);
        self.said = None;
        self.say_how_far();
    }

    /// A step of it is done.
    pub(crate) fn step(&mut self) {
        self.bar.inc(1);
        self.say_how_far();
    }

    /// Something that is under way has another name now.
    pub(crate) fn rename(&mut self, what: String) {
        self.bar.set_message(what);
        self.say_how_far();
    }

    /// A line beside it.
    pub(crate) fn note(&self, what: &str) {
        self.bar.suspend(|| say!("bywash: {what}"));
    }

    /// All is done.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }

    fn say_how_far(&mut self) {
        if self.bar.is_hidden() && self.said.is_none_or(|said| said.elapsed() >= SILENCE) {
            say!("bywash: {}: {} of {}", self.bar.message(), self.bar.position(), self.bar.length().unwrap_or(0));
            self.said = Some(Instant::now());
        }
    }
}

/// `12345` as `12,345`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something: `1 file`, `12,345 files`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Bytes in decimal units, as throughput is given: `1.2 GB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut value = number as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([0, 999, 1000, 12345, 1234567].map(thousands), ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([0, 999, 1000, 999_940, 999_960, 1_230_000_000].map(bytes), ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.2 GB"]);
        assert_eq!([0, 1, 1234].map(|number| counted(number, "file")), ["0 files", "1 file", "1,234 files"]);
        assert_eq!(bytes(u64::MAX), "18446.7 PB");
    }
}
