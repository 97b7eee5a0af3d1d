//! What every area works with: the engine, a generator, the report, and ways to run one operation.

use crate::random::Random;
use crate::report::{Area, Report};
use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, Result, SecretBytes, SessionParams};

/// One area's run over one engine.
pub(crate) struct Checker<'e> {
    pub(crate) engine: &'e dyn Engine,
    pub(crate) random: Random,
    area: Area,
    report: Report,
}

impl<'e> Checker<'e> {
    pub(crate) fn new(engine: &'e dyn Engine, area: Area, seed: u64) -> Self {
        // Each area has its own stream of numbers, so that one area alone reproduces what the whole suite did.
        let random = Random::new(seed ^ ((area as u64) << 48));
        Self { engine, random, area, report: Report::new(engine.name(), seed) }
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }

    /// Counts a check, and records it in words if it does not hold.
    pub(crate) fn check(&mut self, algorithm: Algorithm, holds: bool, what: impl FnOnce() -> String) {
        self.check_engine(Some(algorithm), holds, what);
    }

    pub(crate) fn check_engine(&mut self, algorithm: Option<Algorithm>, holds: bool, what: impl FnOnce() -> String) {
        self.report.count(self.area, algorithm);
        if !holds {
            self.report.fail(self.area, algorithm, what);
        }
    }

    pub(crate) fn skip(&mut self, algorithm: Option<Algorithm>, reason: impl Into<String>) {
        self.report.skip(self.area, algorithm, reason.into());
    }

    /// Whether the engine does it; if not, that is recorded as skipped.
    pub(crate) fn supports(&mut self, algorithm: Algorithm) -> bool {
        let supported = self.engine.supports(algorithm);
        if !supported {
            self.skip(Some(algorithm), "not among the engine's capabilities");
        }
        supported
    }

    /// Whether anything of it has been checked.
    pub(crate) fn has_checked(&self, algorithm: Algorithm) -> bool {
        self.report.checks_of(self.area, algorithm) > 0
    }

    /// Those of `algorithms` that the engine does.
    pub(crate) fn supported(&mut self, algorithms: &[Algorithm]) -> Vec<Algorithm> {
        algorithms.iter().copied().filter(|&algorithm| self.supports(algorithm)).collect()
    }

    /// Opens a session that must open; `None`, with a failure recorded, if it does not.
    pub(crate) fn open(&mut self, algorithm: Algorithm, key: Key, what: &str) -> Option<Session> {
        let params = SessionParams::new(algorithm, key);
        self.open_params(algorithm, params, what)
    }

    pub(crate) fn open_params(&mut self, algorithm: Algorithm, params: Result<SessionParams>, what: &str) -> Option<Session> {
        let opened = params.and_then(|params| Ok(Session { keyed: self.engine.open(&params)?, params }));
        match opened {
            Ok(session) => Some(session),
            Err(error) => {
                self.check(algorithm, false, || format!("{what}: the session does not open: {error}"));
                None
            }
        }
    }

    /// Runs an operation in both layouts and checks output and tag.
    pub(crate) fn expect(&mut self, session: &Session, spec: &Spec<'_>, text: &[u8], tag: &[u8], what: &dyn Fn() -> String) {
        let algorithm = session.params.algorithm();
        for layout in layouts(algorithm, spec.input.len()) {
            let got = session.run(spec, layout);
            let holds = got.as_ref().is_ok_and(|got| got.text == text && got.tag == tag);
            self.check(algorithm, holds, || format!("{}, {:?}, {layout:?}: {}", what(), spec.direction, difference(&got, text, tag)));
        }
    }

    /// Runs an operation in both layouts and checks that it is refused as `wanted`, with nothing of `secret` left in the output.
    pub(crate) fn expect_refused(&mut self, session: &Session, spec: &Spec<'_>, wanted: &Error, secret: &[u8], what: &dyn Fn() -> String) {
        let algorithm = session.params.algorithm();
        for layout in layouts(algorithm, spec.input.len()) {
            let (got, left) = session.run_keeping(spec, layout);
            let got = got.map(|_| ());
            self.check(algorithm, got.as_ref() == Err(wanted), || format!("{}, {layout:?}: expected '{wanted}', got {got:?}", what()));
            // Zeros are what an output that was wiped shows.
            if secret.iter().any(|&byte| byte != 0) {
                self.check(algorithm, !shows(&left, secret), || format!("{}, {layout:?}: plaintext is left in the output", what()));
            }
        }
    }
}

fn difference(got: &Result<Output>, text: &[u8], tag: &[u8]) -> String {
    match got {
        Err(error) => format!("refused: {error}"),
        Ok(got) if got.text != text => {
            let at = got.text.iter().zip(text).position(|(a, b)| a != b).unwrap_or(0);
            format!("wrong output, first at byte {at} of {}", text.len())
        }
        Ok(got) => format!("wrong tag: {:02x?} for {tag:02x?}", got.tag),
    }
}

/// Whether any 8 bytes of the secret stand at their place.
fn shows(left: &[u8], secret: &[u8]) -> bool {
    let width = secret.len().min(8);
    left.windows(width).zip(secret.windows(width)).any(|(a, b)| a == b)
}

/// Where buffers lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    InPlace,
    /// Input and output apart, both this many bytes off a fresh allocation, with guard bytes on both sides of the output.
    Apart {
        shift: usize,
    },
}

fn layouts(algorithm: Algorithm, len: usize) -> Vec<Layout> {
    use bywash_core::Kind::{Aead, Cipher};
    let apart = Layout::Apart { shift: len % 17 };
    if matches!(algorithm.kind(), Cipher { .. } | Aead { .. }) { vec![Layout::InPlace, apart] } else { vec![apart] }
}

/// An operation, without its buffers.
#[derive(Clone)]
pub(crate) struct Spec<'a> {
    pub(crate) direction: Direction,
    pub(crate) iv: &'a [u8],
    pub(crate) aad: &'a [u8],
    pub(crate) input: &'a [u8],
    /// Read by decryption and verification, ignored by encryption.
    pub(crate) tag: &'a [u8],
}

impl<'a> Spec<'a> {
    pub(crate) fn compute(input: &'a [u8]) -> Self {
        Self { direction: Direction::Compute, iv: &[], aad: &[], input, tag: &[] }
    }

    pub(crate) fn cipher(direction: Direction, iv: &'a [u8], input: &'a [u8]) -> Self {
        Self { direction, iv, aad: &[], input, tag: &[] }
    }
}

/// What an operation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) text: Vec<u8>,
    pub(crate) tag: Vec<u8>,
}

/// A session on the engine under test, with its parameters.
pub(crate) struct Session {
    pub(crate) params: SessionParams,
    pub(crate) keyed: Box<dyn Keyed>,
}

/// What a byte of a fresh output is, so that what was never written can be told.
const BLANK: u8 = 0xA5;
const GUARD: usize = 24;

impl Session {
    /// Runs one operation through the same check as the manager's, and looks for writing outside the output.
    pub(crate) fn run(&self, spec: &Spec<'_>, layout: Layout) -> Result<Output> {
        self.run_keeping(spec, layout).0
    }

    /// The same, and what the output buffer holds afterwards, whatever happened.
    fn run_keeping(&self, spec: &Spec<'_>, layout: Layout) -> (Result<Output>, Vec<u8>) {
        let mut tag = vec![0; self.params.tag_len()];
        if spec.direction != Direction::Encrypt {
            tag = spec.tag.to_vec();
        }
        match layout {
            Layout::InPlace => {
                let mut buffer = spec.input.to_vec();
                let done = self.checked(spec, Data::InPlace(&mut buffer), &mut tag);
                let output = done.map(|len| Output { text: buffer[..len.min(buffer.len())].to_vec(), tag });
                (output, buffer)
            }
            Layout::Apart { shift } => self.run_apart(spec, shift, tag),
        }
    }

    fn run_apart(&self, spec: &Spec<'_>, shift: usize, mut tag: Vec<u8>) -> (Result<Output>, Vec<u8>) {
        let room = self.params.algorithm().output_len(spec.input.len());
        let mut input = vec![0; shift];
        input.extend_from_slice(spec.input);
        let mut output = vec![BLANK; shift + room + GUARD];
        // Half of the guard is room that the engine is given and must not use, half is beyond the slice.
        let data = Data::Copy { input: &input[shift..], output: &mut output[shift..shift + room + GUARD / 2] };
        let done = self.checked(spec, data, &mut tag).and_then(|len| if len == room { Ok(()) } else { Err(wrote(len, room)) });
        let outside = output[..shift].iter().chain(&output[shift + room..]).any(|&byte| byte != BLANK);
        let text = output[shift..shift + room].to_vec();
        let result = match done {
            Ok(()) if outside => Err(failed("it wrote outside its output")),
            Ok(()) => Ok(Output { text: text.clone(), tag }),
            Err(error) => Err(error),
        };
        (result, text)
    }

    fn checked(&self, spec: &Spec<'_>, data: Data<'_>, tag: &mut [u8]) -> Result<usize> {
        let Spec { direction, iv, aad, .. } = *spec;
        let mut operation = Operation { direction, iv, aad, data, tag };
        self.params.check(&operation)?;
        self.keyed.run(&mut operation)
    }
}

fn wrote(got: usize, expected: usize) -> Error {
    failed(&format!("it says that it wrote {got} bytes, not {expected}"))
}

fn failed(reason: &str) -> Error {
    Error::EngineFailed { engine: "under test".into(), reason: reason.to_owned() }
}

/// A symmetric key.
pub(crate) fn symmetric(key: &[u8]) -> Key {
    Key::Symmetric(SecretBytes::from(key))
}
