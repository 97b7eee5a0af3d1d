//! An algorithm with a key.

use crate::engines::client;
use crate::error::detached;
use crate::keys::secret;
use bywash_core::{Algorithm, Data, Direction, Key, Kind, Operation, SessionParams};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

#[pyclass(frozen, module = "bywash")]
pub(crate) struct Session {
    session: bywash_client::Session,
    tag_len: usize,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (algorithm, key=None, *, tag_len=None, engine=None))]
    fn new(py: Python<'_>, algorithm: &str, key: Option<Bound<'_, PyAny>>, tag_len: Option<usize>, engine: Option<&str>) -> PyResult<Self> {
        let key = key.map(|key| secret(&key)).transpose()?;
        detached(py, || {
            let algorithm: Algorithm = algorithm.parse()?;
            let key = key.as_ref().map_or(Key::None, |key| Key::Symmetric(key[..].into()));
            let mut params = SessionParams::new(algorithm, key)?;
            if let Some(tag_len) = tag_len {
                params = params.with_tag_len(tag_len)?;
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
        let (nonce, aad) = (optional(nonce)?, optional(aad)?);
        let input = Input::of(data)?;
        PyBytes::new_with(py, input.len() + self.tag_len, |output| {
            let (text, tag) = output.split_at_mut(input.len());
            input.copy_to(py, text)?;
            detached(py, || self.run(Direction::Encrypt, &nonce, &aad, Data::InPlace(text), tag))
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
        let mut sealed = bytes(data)?;
        let Some(len) = sealed.len().checked_sub(self.tag_len) else {
            return Err(crate::error::exception(py, "AuthenticationFailed", "authentication failed".to_owned()));
        };
        PyBytes::new_with(py, len, |output| {
            let (input, tag) = sealed.split_at_mut(len);
            let outcome = detached(py, || self.run(Direction::Decrypt, &nonce, &aad, Data::Copy { input, output }, tag));
            outcome.inspect_err(|_| output.fill(0))
        })
    }

    fn compute<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let input = bytes(data)?;
        let algorithm = self.session.params().algorithm();
        let len = match algorithm.kind() {
            Kind::Digest { .. } | Kind::Mac { .. } => algorithm.output_len(input.len()),
            // The engine's own words, for what runs in two directions.
            _ => input.len(),
        };
        PyBytes::new_with(py, len, |output| {
            detached(py, || self.run(Direction::Compute, &[], &[], Data::Copy { input: &input, output }, &mut []))
        })
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

/// What a buffer holds, before Python is let go of: its owner may write to it from another thread.
struct Input(PyBuffer<u8>);

impl Input {
    fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |_| PyTypeError::new_err("data is bytes, or whatever has a buffer of them in one piece");
        PyBuffer::get(data).map(Self).map_err(wrong)
    }

    fn len(&self) -> usize {
        self.0.len_bytes()
    }

    fn copy_to(&self, py: Python<'_>, to: &mut [u8]) -> PyResult<()> {
        self.0.copy_to_slice(py, to)
    }
}

fn bytes(data: &Bound<'_, PyAny>) -> PyResult<Zeroizing<Vec<u8>>> {
    Input::of(data)?.0.to_vec(data.py()).map(Zeroizing::new)
}

fn optional(data: Option<&Bound<'_, PyAny>>) -> PyResult<Zeroizing<Vec<u8>>> {
    data.map_or_else(|| Ok(Zeroizing::default()), bytes)
}
