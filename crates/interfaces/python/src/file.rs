//! Containers read and written in place.

use crate::bytes::bytes_with;
use crate::engines::client;
use crate::error::{At, Failure, Result, detached};
use crate::keys::{Keys, bytes_of};
use bywash_client::Generation;
use bywash_files::disk::FolderJournals;
use bywash_files::place::{open_locked, open_regular};
use bywash_files::{Container, Header};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// An encrypted file, as `bywash.open` has it under its buffers.
#[pyclass(frozen, module = "bywash._native")]
pub(crate) struct File {
    path: PathBuf,
    chunk_size: usize,
    /// The process that writes to it. A child of fork has a copy of its length and of what is gathered, by which it would undo what its parent writes meanwhile.
    writer: Option<Generation>,
    /// None once it is closed.
    container: Mutex<Option<Arc<Container>>>,
}

#[pymethods]
impl File {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, writable: bool, keys: &Bound<'_, Keys>, engine: Option<&str>) -> PyResult<Self> {
        let keys = keys.get();
        detached(py, || {
            let (file, _) = if writable { open_locked(&path, true, true) } else { open_regular(&path, true) }.at(&path)?;
            let header = Header::read(&file).at(&path)?;
            let file_keys = keys.keyring().open(&header).at(&path)?;
            let (client, journals) = (client(engine)?, FolderJournals::beside(&path).at(&path)?);
            let container = match writable {
                true => Container::open_rw(&client, &header, file_keys, Arc::new(file), Arc::new(journals)),
                false => Container::open(&client, &header, file_keys, Arc::new(file), &journals),
            };
            let container = Mutex::new(Some(Arc::new(container.at(&path)?)));
            let writer = writable.then(Generation::current);
            Ok(Self { path, chunk_size: header.geometry().chunk_size(), writer, container })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || self.get().map(|container| container.len() as usize))
    }

    /// Bytes that are sealed together.
    #[getter]
    fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    /// At most `size` bytes from `offset` on; fewer at the end only.
    fn read_at<'py>(&self, py: Python<'py>, size: usize, offset: u64) -> PyResult<Bound<'py, PyBytes>> {
        let container = self.get().map_err(|failure| failure.into_exception(py))?;
        let size = container.len().saturating_sub(offset).min(size as u64) as usize;
        let mut got = 0;
        let read = bytes_with(py, size, |into| {
            got = container.read_at(into, offset).at(&self.path)?;
            Ok(())
        })?;
        // Somebody cut the file meanwhile.
        if got < size { Ok(PyBytes::new(py, &read.as_bytes()[..got])) } else { Ok(read) }
    }

    fn write_at(&self, py: Python<'_>, data: &Bound<'_, PyAny>, offset: u64) -> PyResult<usize> {
        let data = bytes_of(data)?;
        detached(py, || self.get()?.write_at(&data, offset).at(&self.path))?;
        Ok(data.len())
    }

    fn set_len(&self, py: Python<'_>, len: u64) -> PyResult<()> {
        detached(py, || self.get()?.set_len(len).at(&self.path))
    }

    /// Returns when all that was written survives a power cut.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.get()?.sync().at(&self.path))
    }

    /// Whether this is a child of the process that writes to it.
    #[getter]
    fn is_parents(&self) -> bool {
        self.writer.is_some_and(|writer| !writer.is_current())
    }

    /// Writes what is gathered, syncs, removes the journal. A child of fork lets go of what it has of its parent's file, and of its lock.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            if self.is_parents() {
                // Another thread of the parent's may have been at it, which is not here; then it goes with the object.
                drop(self.container.try_lock().map(|mut container| container.take()));
                return Ok(());
            }
            let container = self.container.lock().unwrap_or_else(PoisonError::into_inner).take();
            match container.filter(|_| self.writer.is_some()) {
                Some(container) => container.settle().at(&self.path),
                None => Ok(()),
            }
        })
    }
}

impl File {
    fn get(&self) -> Result<Arc<Container>> {
        if self.is_parents() {
            let why = "it was opened to be written before a fork, and is the parent process's; open it anew once that has closed it";
            return Err(Failure::Named("BadArgument", format!("{}: {why}", self.path.display())));
        }
        let container = self.container.lock().unwrap_or_else(PoisonError::into_inner);
        container.clone().ok_or_else(|| Failure::Named("BadArgument", format!("{}: it is closed", self.path.display())))
    }
}
