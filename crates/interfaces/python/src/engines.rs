//! Which engines there are, and clients for them.

use crate::error::{Result, detached};
use bywash_client::{Client, Config, Generation, Route};
use bywash_core::{Absent, Engine};
use bywash_manager::EngineName;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

/// What can compute here, and what is missing and why.
#[pyfunction]
pub(crate) fn engines(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = detached(py, || Ok(bywash_manager::look_around()))?;
    let (present, absent) = (PyList::empty(py), PyList::empty(py));
    for engine in &found.present {
        present.append(describe(py, &**engine)?)?;
    }
    for Absent { name, reason, remedy } in &found.absent {
        let described = PyDict::new(py);
        described.set_item("name", name)?;
        described.set_item("reason", reason)?;
        described.set_item("remedy", remedy)?;
        absent.append(described)?;
    }
    let all = PyDict::new(py);
    all.set_item("present", present)?;
    all.set_item("absent", absent)?;
    Ok(all)
}

fn describe<'py>(py: Python<'py>, engine: &dyn Engine) -> PyResult<Bound<'py, PyDict>> {
    let names = |legacy: bool| -> Vec<&str> {
        engine.capabilities().iter().filter(|algorithm| algorithm.is_legacy() == legacy).map(|algorithm| algorithm.name()).collect()
    };
    let described = PyDict::new(py);
    described.set_item("name", engine.name())?;
    described.set_item("description", engine.describe())?;
    described.set_item("modelled", engine.is_modelled())?;
    described.set_item("workers", engine.workers())?;
    described.set_item("batch_max", engine.batch_max())?;
    described.set_item("algorithms", names(false))?;
    described.set_item("legacy", names(true))?;
    Ok(described)
}

/// This process's client for an engine: as the environment says if none is named, else that engine and no other. Devices stay open, and are their process's alone: a child of fork opens its own.
pub(crate) fn client(engine: Option<&str>) -> Result<Client> {
    // No lock is held while one is made, for that takes long and a process that forks meanwhile would hold it for ever; none at all for the one that every call needs.
    static USUAL: OnceLock<Client> = OnceLock::new();
    static NAMED: Mutex<BTreeMap<(u32, String), Client>> = Mutex::new(BTreeMap::new());
    let Some(name) = engine else {
        return Ok(match USUAL.get() {
            Some(client) => client.clone(),
            None => {
                let client = Client::new(Config::from_env()?);
                USUAL.get_or_init(|| client).clone()
            }
        });
    };
    let key = (Generation::current().number(), name.to_owned());
    if let Some(client) = brief(&NAMED).and_then(|named| named.get(&key).cloned()) {
        return Ok(client);
    }
    let engines = bywash_manager::find(&[name.parse::<EngineName>()?])?;
    let config = Config { route: Route::Here, ..Config::default() };
    let client = Client::with_engine(config, engines.present[0].clone());
    Ok(match brief(&NAMED) {
        Some(mut named) => named.entry(key).or_insert(client).clone(),
        None => client,
    })
}

/// A lock that is held for a moment, or for ever: by a thread that a child of fork does not have, which does without what is remembered.
fn brief<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..1000 {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
