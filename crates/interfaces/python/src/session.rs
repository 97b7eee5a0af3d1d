//! An algorithm with a key.

use crate::bytes::bytes_with;
use crate::engines::client;
use crate::error::detached;
use crate::keys::bytes_of;
use crate::numbers;
use bywash_core::{Algorithm, Data, Direction, Key, Kind, Operation, SessionParams};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Deref;
use zeroize::Zeroizing;

/// No algorithm has a longer tag.
const TAG_BYTES_MAX: u64 = 16;

#[pyclass(frozen, module = "bywash")]
pub(crate) struct Session {
    session: bywash_client::Session,
    tag_len: usize,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (algorithm, key=None, *, tag_len=None, engine=None))]
    fn new(
        py: Python<'_>,
        algorithm: &str,
        key: Option<Bound<'_, PyAny>>,
        tag_len: Option<Bound<'_, PyAny>>,
        engine: Option<&str>,
    ) -> PyResult<Self> {
        let key = key.map(|key| bytes_of(&key)).transpose()?;
        let tag_len = tag_len.map(|given| numbers::whole("tag_len", &given, 0..=TAG_BYTES_MAX)).transpose()?;
        detached(py, || {
            let algorithm: Algorithm = algorithm.parse()?;
            let key = key.as_ref().map_or(Key::None, |key| Key::Symmetric(key[..].into()));
            let mut params = SessionParams::new(algorithm, key)?;
            if let Some(tag_len) = tag_len {
                params = params.with_tag_len(tag_len as usize)?;
            }
            let tag_len = params.tag_len();
            Ok(Self { session: client(engine)?.session(params)?, tag_len })
        })
    }

    #[getter]
    fn algorithm(&self) -> &'static str {
        self.session.params().algorithm().name()
    }

    #[getter]
    fn tag_len(&self) -> usize {
        self.tag_len
    }

    #[pyo3(signature = (data, nonce=None, aad=None))]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        nonce: Option<&Bound<'py, PyAny>>,
        aad: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (nonce, aad, input) = (optional(nonce)?, optional(aad)?, Input::of(data)?);
        bytes_with(py, input.len() + self.tag_len, |output| {
            let (output, tag) = output.split_at_mut(input.len());
            self.run(Direction::Encrypt, &nonce, &aad, Data::Copy { input: &input, output }, tag)
        })
    }

    #[pyo3(signature = (data, nonce=None, aad=None))]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        nonce: Option<&Bound<'py, PyAny>>,
        aad: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (nonce, aad) = (optional(nonce)?, optional(aad)?);
        let sealed = Input::of(data)?;
        let Some((input, tag)) = sealed.len().checked_sub(self.tag_len).map(|len| sealed.split_at(len)) else {
            return Err(crate::error::exception(py, "AuthenticationFailed", "authentication failed".to_owned()));
        };
        let mut tag = tag.to_vec();
        bytes_with(py, input.len(), |output| {
            let outcome = self.run(Direction::Decrypt, &nonce, &aad, Data::Copy { input, output: &mut *output }, &mut tag);
            outcome.inspect_err(|_| output.fill(0))
        })
    }

    fn compute<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let input = Input::of(data)?;
        let algorithm = self.session.params().algorithm();
        let len = match algorithm.kind() {
            Kind::Digest { .. } | Kind::Mac { .. } => algorithm.output_len(input.len()),
            _ => {
                return Err(crate::error::exception(py, "BadArgument", format!("{algorithm} does not compute: call encrypt or decrypt")));
            }
        };
        bytes_with(py, len, |output| self.run(Direction::Compute, &[], &[], Data::Copy { input: &input, output }, &mut []))
    }

    fn __repr__(&self) -> String {
        format!("<bywash.Session: {}>", self.algorithm())
    }
}

impl Session {
    fn run(&self, direction: Direction, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> crate::error::Result<()> {
        self.session.run(&mut Operation { direction, iv, aad, data, tag })?;
        Ok(())
    }
}

/// What comes in.
enum Input<'a> {
    /// Nobody writes to bytes.
    Bytes(&'a [u8]),
    /// Copied before Python is let go of: its owner may write to it from another thread. Wiped when it is dropped.
    Copy(Zeroizing<Vec<u8>>),
}

impl<'a> Input<'a> {
    fn of(data: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes()));
        }
        let wrong = |_| PyTypeError::new_err("data is bytes, or whatever has a buffer of them");
        bytes_of(data).map(Self::Copy).map_err(wrong)
    }
}

impl Deref for Input<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Copy(bytes) => bytes,
        }
    }
}

fn optional(data: Option<&Bound<'_, PyAny>>) -> PyResult<Zeroizing<Vec<u8>>> {
    data.map_or_else(|| Ok(Zeroizing::default()), |data| Ok(Zeroizing::new(Input::of(data)?.to_vec())))
}
