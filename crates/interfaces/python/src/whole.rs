//! `encrypt` and `decrypt`: from bytes, a file or a file object to bytes, a file or a file object.
//!
//! File objects are called by the thread that called us, as Python's own functions do: one may be bound to it, and Ctrl-C ends a call into it. Else that thread
//! looks for Ctrl-C between groups of chunks, or where it writes them.

use crate::bytes::bytes_with;
use crate::engines::client;
use crate::error::{At, Failure, Result, detached};
use crate::keys::{Keys, bytes_of};
use crate::memory;
use crate::numbers;
use crate::objects::{Reader, Writer};
use crate::watch::{Watched, watch};
use bywash_client::Client;
use bywash_files::disk::{Access, Disk, FolderJournals, Journals};
use bywash_files::geometry::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use bywash_files::place::{Draft, Spot, complete, open_regular, sync_folder_of};
use bywash_files::{Aead, FileKeys, Header, NonceSource, Sealer, Whole, new_file};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zeroize::Zeroizing;

/// Threads of one file at most.
const THREADS_MAX: u64 = u16::MAX as u64;

/// Where a text comes from.
enum Source {
    Memory(Zeroizing<Vec<u8>>),
    Path(Named),
    Object(Reader),
}

/// Where it goes.
enum Target {
    Path(Named),
    Object(Writer),
}

/// A file's path, and the folder that was named if it was found below it: no link is followed from there on.
struct Named {
    path: PathBuf,
    below: Option<PathBuf>,
}

impl Named {
    fn new(path: PathBuf, below: Option<PathBuf>) -> PyResult<Self> {
        // As Python's own functions say it.
        match path.as_os_str().as_bytes().contains(&0) {
            true => Err(PyValueError::new_err("embedded null byte")),
            false => Ok(Self { path, below }),
        }
    }

    fn spot(&self) -> Spot<'_> {
        Spot { path: &self.path, below: self.below.as_deref() }
    }

    fn open(&self) -> Result<(File, Metadata)> {
        open_regular(self.spot(), self.below.is_none()).at(&self.path)
    }

    /// What its writer has left is looked at by who may write.
    fn refuse_if_interrupted(&self, header: &Header) -> Result<()> {
        match FolderJournals::beside(self.spot()).and_then(|journals| journals.find(header.salt())).at(&self.path)? {
            Some(_) => {
                let why = "its writer was interrupted and left a journal; bywash.open(path, \"r+b\") recovers it";
                Err(Failure::Named("Damaged", format!("{}: {why}", self.path.display())))
            }
            None => Ok(()),
        }
    }
}

/// How files are written.
#[derive(Clone, Copy)]
struct Writing<'a> {
    threads: usize,
    overwrite: bool,
    verify: bool,
    /// Whose files are not replaced.
    keys: &'a Keys,
    /// Called before a result gets its name: what fails earlier has left nothing there.
    publishing: Option<&'a Py<PyAny>>,
}

#[pyfunction]
#[pyo3(signature = (source, target, keys, aead, chunk_size, threads, overwrite, verify, engine, source_below=None, target_below=None, publishing=None))]
#[expect(clippy::too_many_arguments, reason = "the options of the function that Python's users see")]
pub(crate) fn encrypt(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    target: Option<&Bound<'_, PyAny>>,
    keys: &Bound<'_, Keys>,
    aead: &str,
    chunk_size: &Bound<'_, PyAny>,
    threads: &Bound<'_, PyAny>,
    overwrite: bool,
    verify: bool,
    engine: Option<&str>,
    source_below: Option<PathBuf>,
    target_below: Option<PathBuf>,
    publishing: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let keys = keys.get();
    let chunk_size = numbers::whole("chunk_size", chunk_size, CHUNK_BYTES_MIN as u64..=CHUNK_BYTES_MAX as u64)? as usize;
    let threads = numbers::whole("threads", threads, 1..=THREADS_MAX)? as usize;
    let make = || -> Result<(Header, Sealer)> {
        let aead: Aead = aead.parse().map_err(|why| Failure::Named("BadArgument", why))?;
        let (file_keys, slots) = new_file(&keys.locks()?)?;
        let header = Header::new(aead, chunk_size, slots, &file_keys)?;
        Ok((header, sealer(&client(engine)?, aead, file_keys)))
    };
    let Some(target) = target else {
        return in_memory(source, |text| {
            let (header, sealer) = detached(py, make)?;
            let len = memory::sealed_len(&header, text).map_err(|failure| failure.into_exception(py))?;
            bytes_with(py, len, |sealed| memory::seal(&sealer, &header, text, sealed))
        });
    };
    let (source, target) = (source_of(source, source_below)?, target_of(target, target_below)?);
    let writing = Writing { threads, overwrite, verify, keys, publishing: publishing.as_ref() };
    let bytes = detached(py, || {
        let (header, sealer) = make()?;
        match (source, target) {
            (Source::Path(source), Target::Path(target)) => seal_file(&header, &sealer, &source, &target, writing),
            (source, target) => {
                let progress = AtomicU64::new(0);
                let whole = Whole::new(&sealer, &header, 1, &progress);
                to(target, writing, |target| {
                    Ok(match opened(source)? {
                        Opened::Ours(source) => whole.seal_stream(source, target)?,
                        Opened::Pythons(source) => whole.seal_stream_in_turn(source, target)?,
                    })
                })
            }
        }
    })?;
    Ok(bytes.into_pyobject(py)?.into_any().unbind())
}

#[pyfunction]
#[pyo3(signature = (source, target, keys, threads, overwrite, verify, engine, source_below=None, target_below=None, publishing=None))]
#[expect(clippy::too_many_arguments, reason = "the options of the function that Python's users see")]
pub(crate) fn decrypt(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    target: Option<&Bound<'_, PyAny>>,
    keys: &Bound<'_, Keys>,
    threads: &Bound<'_, PyAny>,
    overwrite: bool,
    verify: bool,
    engine: Option<&str>,
    source_below: Option<PathBuf>,
    target_below: Option<PathBuf>,
    publishing: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let keys = keys.get();
    let threads = numbers::whole("threads", threads, 1..=THREADS_MAX)? as usize;
    let unlock = |header: &Header| -> Result<Sealer> { Ok(sealer(&client(engine)?, header.aead(), keys.keyring().open(header)?)) };
    let Some(target) = target else {
        return in_memory(source, |sealed| {
            let made = || {
                let header = Header::parse(sealed)?;
                let sealer = unlock(&header)?;
                let len = memory::text_len(&header, sealed)?;
                Ok((header, sealer, len))
            };
            let (header, sealer, len) = detached(py, made)?;
            bytes_with(py, len, |text| memory::open(&sealer, &header, sealed, text))
        });
    };
    let (source, target) = (source_of(source, source_below)?, target_of(target, target_below)?);
    let writing = Writing { threads, overwrite, verify, keys, publishing: publishing.as_ref() };
    let bytes = detached(py, || match (source, target) {
        (Source::Path(source), Target::Path(target)) => open_file(unlock, &source, &target, writing),
        (source, target) => {
            let (header, sealer, source) = match source {
                Source::Path(named) => {
                    let mut file = locked(&named)?;
                    let header = Header::read(&mut file).at(&named.path)?;
                    let sealer = unlock(&header).at(&named.path)?;
                    named.refuse_if_interrupted(&header)?;
                    (header, sealer, Opened::Ours(Box::new(file)))
                }
                source => {
                    let mut source = opened(source)?;
                    let header = match &mut source {
                        Opened::Ours(source) => Header::read(source),
                        Opened::Pythons(source) => Header::read(source),
                    }?;
                    let sealer = unlock(&header)?;
                    (header, sealer, source)
                }
            };
            let progress = AtomicU64::new(0);
            let whole = Whole::new(&sealer, &header, 1, &progress);
            to(target, writing, |target| {
                Ok(match source {
                    Opened::Ours(source) => whole.open_stream(source, target)?,
                    Opened::Pythons(source) => whole.open_stream_in_turn(source, target)?,
                })
            })
        }
    })?;
    Ok(bytes.into_pyobject(py)?.into_any().unbind())
}

fn sealer(client: &Client, aead: Aead, keys: FileKeys) -> Sealer {
    // Of each thread: a lock that all share would be held for ever in a child of fork if another thread held it just then.
    thread_local! {
        static NONCES: Arc<NonceSource> = Arc::new(NonceSource::new());
    }
    Sealer::new(client, aead, keys, NONCES.with(Arc::clone))
}

/// Something from bytes to bytes. Those of `bytes` never change and are used where they are; others are copied, since other threads may write to them.
fn in_memory<'py>(source: &Bound<'py, PyAny>, work: impl FnOnce(&[u8]) -> PyResult<Bound<'py, PyBytes>>) -> PyResult<Py<PyAny>> {
    if let Ok(bytes) = source.cast::<PyBytes>() {
        return Ok(work(bytes.as_bytes())?.into_any().unbind());
    }
    let no_bytes = || PyTypeError::new_err("a target is needed where the source is a file: give a path or a file object");
    let copy = match source_of(source, None)? {
        Source::Memory(copy) => copy,
        Source::Path(_) => return Err(no_bytes()),
        // A memory map can be read from like a file, and has a buffer: without a target it is the bytes that it maps.
        Source::Object(_) => bytes_of(source).map_err(|_| no_bytes())?,
    };
    Ok(work(&copy)?.into_any().unbind())
}

fn source_of(given: &Bound<'_, PyAny>, below: Option<PathBuf>) -> PyResult<Source> {
    if let Ok(path) = given.extract::<PathBuf>() {
        return Ok(Source::Path(Named::new(path, below)?));
    }
    if given.hasattr("read")? {
        return Ok(Source::Object(Reader::new(given)));
    }
    let wrong = |_| PyTypeError::new_err("a source is bytes (or whatever has a buffer of them), a path, or an object with read()");
    bytes_of(given).map(Source::Memory).map_err(wrong)
}

fn target_of(given: &Bound<'_, PyAny>, below: Option<PathBuf>) -> PyResult<Target> {
    if let Ok(path) = given.extract::<PathBuf>() {
        return Ok(Target::Path(Named::new(path, below)?));
    }
    match given.hasattr("write")? {
        true => Ok(Target::Object(Writer::new(given))),
        false => Err(PyTypeError::new_err("a target is a path or an object with write(); leave it out for bytes")),
    }
}

/// A source that is open.
enum Opened {
    /// Read by a thread of its own.
    Ours(Box<dyn Read + Send>),
    /// Read by the thread that called.
    Pythons(Reader),
}

fn opened(source: Source) -> Result<Opened> {
    Ok(match source {
        Source::Memory(bytes) => Opened::Ours(Box::new(Cursor::new(Wiped(bytes)))),
        Source::Object(reader) => Opened::Pythons(reader),
        Source::Path(named) => Opened::Ours(Box::new(locked(&named)?)),
    })
}

/// Open, and nobody writes to it meanwhile who asks for it.
fn locked(named: &Named) -> Result<File> {
    let (file, _) = named.open()?;
    Disk::lock(&file, Access::Read).at(&named.path)?;
    Ok(file)
}

struct Wiped(Zeroizing<Vec<u8>>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a stream to an object, or under a name once all of it is there.
fn to(target: Target, writing: Writing<'_>, write: impl FnOnce(&mut dyn Write) -> Result<u64>) -> Result<u64> {
    match target {
        Target::Object(mut writer) => write(&mut writer),
        Target::Path(named) => {
            refuse_if_there(&named.path, writing)?;
            let draft = Draft::new(named.spot()).at(&named.path)?;
            let bytes = write(&mut Watched::new(&draft.file)).map_err(|failure| match failure {
                Failure::Files(error) if is_of_target(&error) => Failure::At(named.path.clone(), error),
                other => other,
            })?;
            publish(draft, &named, writing)?;
            Ok(bytes)
        }
    }
}

/// Whether an error is one of writing, where something is read from one file and written to another.
fn is_of_target(error: &bywash_files::Error) -> bool {
    use io::ErrorKind as Kind;
    let kind = if let bywash_files::Error::Io(error) = error { error.kind() } else { return false };
    matches!(kind, Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge | Kind::ReadOnlyFilesystem)
}

/// The file that an error is of.
fn blamed<'a>(error: &bywash_files::Error, source: &'a Named, target: &'a Named) -> &'a Path {
    if is_of_target(error) { &target.path } else { &source.path }
}

fn seal_file(header: &Header, sealer: &Sealer, source: &Named, target: &Named, writing: Writing<'_>) -> Result<u64> {
    refuse_if_there(&target.path, writing)?;
    let (file, metadata) = source.open()?;
    let (progress, len, watch) = (AtomicU64::new(0), metadata.len(), watch());
    let whole = Whole::new(sealer, header, writing.threads, &progress).watched(&watch);
    let draft = Draft::new(target.spot()).at(&target.path)?;
    let sealed = whole.seal(&file, len, &draft.file);
    let sealed = sealed.and_then(|()| complete(&file, &metadata, &draft.file, writing.verify, || whole.is_text_of(&draft.file, &file)));
    sealed.map_err(|error| Failure::At(blamed(&error, source, target).to_owned(), error))?;
    publish(draft, target, writing)?;
    Ok(len)
}

fn open_file(unlock: impl FnOnce(&Header) -> Result<Sealer>, source: &Named, target: &Named, writing: Writing<'_>) -> Result<u64> {
    refuse_if_there(&target.path, writing)?;
    let (file, metadata) = source.open()?;
    let header = Header::read(&file).at(&source.path)?;
    let sealer = unlock(&header).at(&source.path)?;
    Disk::lock(&file, Access::Read).at(&source.path)?;
    source.refuse_if_interrupted(&header)?;
    let (progress, watch) = (AtomicU64::new(0), watch());
    let whole = Whole::new(&sealer, &header, writing.threads, &progress).watched(&watch);
    let draft = Draft::new(target.spot()).at(&target.path)?;
    let opened = whole.open(&file, &draft.file);
    let opened = opened
        .and_then(|len| complete(&file, &metadata, &draft.file, writing.verify, || whole.is_text_of(&file, &draft.file)).map(|()| len));
    let len = opened.map_err(|error| Failure::At(blamed(&error, source, target).to_owned(), error))?;
    publish(draft, target, writing)?;
    Ok(len)
}

/// Before any work is done; what comes there meanwhile is not replaced either. A file of the keys that were given never is: without it nothing opens any more.
fn refuse_if_there(target: &Path, writing: Writing<'_>) -> Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(target) else { return Ok(()) };
    if !writing.overwrite {
        return Err(io::Error::from(rustix::io::Errno::EXIST)).at(target);
    }
    match writing.keys.is_file_of(&metadata) {
        true => Err(Failure::Named(
            "BadArgument",
            format!("{}: it holds one of the keys given, and is not replaced; choose another target", target.display()),
        )),
        false => Ok(()),
    }
}

fn publish(draft: Draft, target: &Named, writing: Writing<'_>) -> Result<()> {
    refuse_if_there(&target.path, writing)?;
    draft.file.sync_all().at(&target.path)?;
    if let Some(publishing) = writing.publishing {
        Python::attach(|py| publishing.call0(py))?;
    }
    let published = draft.publish(&target.path, writing.overwrite);
    published.and_then(|()| sync_folder_of(target.spot())).at(&target.path)
}
