//! Python's file objects as streams. Python is held for as long as one call into the object takes.

use crate::keys::bytes_of;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, ErrorKind, Read, Write};

/// Something with `read(size)` that returns bytes.
pub(crate) struct Reader(Py<PyAny>);

/// Something with `write(bytes)`.
pub(crate) struct Writer(Py<PyAny>);

impl Reader {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Self {
        Self(object.clone().unbind())
    }
}

impl Writer {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Self {
        Self(object.clone().unbind())
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            // So that Ctrl-C ends it: an object that is not written in Python does not look itself.
            py.check_signals()?;
            let read = self.0.bind(py).call_method1("read", (buffer.len(),))?;
            if read.is_none() {
                return Err(io::Error::new(ErrorKind::WouldBlock, "the source has nothing just now; give one that blocks"));
            }
            if let Ok(bytes) = read.cast::<PyBytes>() {
                return taken(buffer, bytes.as_bytes());
            }
            taken(buffer, &bytes_of(&read)?)
        })
    }
}

fn taken(buffer: &mut [u8], bytes: &[u8]) -> io::Result<usize> {
    let into = buffer.get_mut(..bytes.len()).ok_or_else(|| io::Error::other("the source gave more than it was asked for"))?;
    into.copy_from_slice(bytes);
    Ok(bytes.len())
}

impl Write for Writer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            // So that Ctrl-C ends it.
            py.check_signals()?;
            let written = self.0.bind(py).call_method1("write", (PyBytes::new(py, buffer),))?;
            if !written.is_none() {
                let count = written.extract::<usize>()?;
                return if count <= buffer.len() {
                    Ok(count)
                } else {
                    Err(io::Error::other("the target says that it took more than it was given"))
                };
            }
            // Of a raw file it means that nothing was written; objects that only have such a method mean nothing by it.
            let raw = py.import("io")?.getattr("RawIOBase")?;
            match self.0.bind(py).is_instance(&raw)? {
                true => Err(io::Error::new(ErrorKind::WouldBlock, "the target would block; make it a blocking one")),
                false => Ok(buffer.len()),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| {
            let object = self.0.bind(py);
            if object.hasattr("flush")? {
                object.call_method0("flush")?;
            }
            Ok(())
        })
    }
}
