//! Checks what answers at `/dev/crypto`: the same over every way that leads there.
//!
//! Each [`Check`] opens the device anew, asks it a thing or two and compares the answer with what Linux's cryptodev module answers, or, where Bywash
//! deviates on purpose, with what it documents; such a check says so. They go through a [`Port`], so that a dispatcher can be
//! checked without a device; [`kernel::Kernel`] is the one of a process that really opens `/dev/crypto`.
//!
//! The checks named `crash/` are those on which the module for the kernel crashes: they are not for a machine with that module.

pub mod kernel;
pub mod port;
pub mod program;

mod checks;
mod pages;
mod vectors;

pub use checks::all;
pub use port::{Handle, Port};

/// How a check came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The answer was another.
    Differs {
        /// What should have been answered.
        expected: String,
        /// What was.
        got: String,
    },
    /// It could not be asked.
    Skipped(String),
}

/// How a check came out.
pub type Outcome = Result<(), Wrong>;

impl From<i32> for Wrong {
    /// An error where none should have been.
    fn from(errno: i32) -> Self {
        Self::Differs { expected: "success".into(), got: port::errno_name(errno) }
    }
}

/// What a check does.
type Run = Box<dyn Fn(&dyn Port) -> Outcome>;

/// One question with its answer.
pub struct Check {
    /// Its name, unique: `cipher/aes-cbc-128/encrypt`.
    pub name: String,
    /// Where the module answers otherwise: how, and why Bywash does not.
    pub deviation: Option<&'static str>,
    run: Run,
}

impl Check {
    fn new(name: impl Into<String>, run: impl Fn(&dyn Port) -> Outcome + 'static) -> Self {
        Self { name: name.into(), deviation: None, run: Box::new(run) }
    }

    fn deviating(self, how: &'static str) -> Self {
        Self { deviation: Some(how), ..self }
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Wrong`].
    pub fn run(&self, port: &dyn Port) -> Outcome {
        (self.run)(port)
    }
}

/// How all the checks came out. Printed, it is the line with which the probe ends.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many hold.
    pub good: usize,
    /// How many could not be asked.
    pub skipped: usize,
    /// Those that do not hold, each with what it expected and got.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Asks everything.
    pub fn of(port: &dyn Port) -> Self {
        let mut tally = Self::default();
        for check in all() {
            tally.add(&check.name, &check.run(port));
        }
        tally
    }

    /// Counts one more.
    pub fn add(&mut self, name: &str, outcome: &Result<(), Wrong>) {
        match outcome {
            Ok(()) => self.good += 1,
            Err(Wrong::Skipped(_)) => self.skipped += 1,
            Err(Wrong::Differs { expected, got }) => self.wrong.push(format!("{name}: expected {expected}, got {got}")),
        }
    }
}

impl core::fmt::Display for Tally {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ok, {} not ok, {} skipped", self.good, self.wrong.len(), self.skipped)
    }
}

/// Compares.
fn same<T: PartialEq + core::fmt::Debug>(expected: T, got: T) -> Outcome {
    if expected == got { Ok(()) } else { Err(Wrong::Differs { expected: format!("{expected:?}"), got: format!("{got:?}") }) }
}

/// Compares bytes, and shows them in hexadecimal digits.
fn same_bytes(expected: &[u8], got: &[u8]) -> Outcome {
    if expected == got { Ok(()) } else { Err(Wrong::Differs { expected: hex(expected), got: hex(got) }) }
}

/// The answer should be this error.
fn refused<T>(errno: i32, got: Result<T, i32>) -> Outcome {
    let name = port::errno_name;
    match got {
        Err(got) if got == errno => Ok(()),
        Err(got) => Err(Wrong::Differs { expected: name(errno), got: name(got) }),
        Ok(_) => Err(Wrong::Differs { expected: name(errno), got: "success".into() }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    digits.as_bytes().chunks(2).filter_map(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The bytes of an input: see `vectors`.
fn bytes(length: usize, start: usize) -> Vec<u8> {
    (0..length).map(|index| (7 * index + start) as u8).collect()
}
