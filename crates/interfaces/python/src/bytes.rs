//! Python's bytes, made while Python is let go of.
#![allow(unsafe_code, reason = "bytes whose memory is written before anybody has them")]

use crate::error::{Result, detached};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The address of memory that one thread writes to at a time.
struct Place(*mut u8);

// SAFETY: nobody else has the memory until `bytes_with` returns, which waits for who writes to it.
unsafe impl Send for Place {}

impl Place {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

/// `len` bytes that `work` fills, without Python: to make as many zeros first, as PyO3 does, keeps Python's other threads waiting while the system makes the memory.
pub(crate) fn bytes_with(py: Python<'_>, len: usize, work: impl FnOnce(&mut [u8]) -> Result<()> + Send) -> PyResult<Bound<'_, PyBytes>> {
    let too_long = || PyMemoryError::new_err("it is too long for this machine's memory");
    let size = ffi::Py_ssize_t::try_from(len).map_err(|_| too_long())?;
    // SAFETY: with no bytes to copy, an object of that length is made, or an exception raised.
    let made = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(core::ptr::null(), size))?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: it is bytes.
    let place = Place(unsafe { ffi::PyBytes_AsString(made.as_ptr()) }.cast());
    detached(py, move || {
        let place = place.get();
        // SAFETY: `len` bytes from there on are the object's, and this thread alone knows of it; they are zeros before they are read.
        let bytes = unsafe {
            place.write_bytes(0, len);
            core::slice::from_raw_parts_mut(place, len)
        };
        work(bytes)
    })?;
    Ok(made)
}
