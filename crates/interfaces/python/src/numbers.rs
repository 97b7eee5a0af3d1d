//! Numbers as Python gives them, which may be of any size.

use crate::error::exception;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use std::ops::RangeInclusive;

/// The whole number that an argument is, within its range. PyO3 by itself says of one that does not fit neither whose it is nor what would.
pub(crate) fn whole(name: &str, given: &Bound<'_, PyAny>, range: RangeInclusive<u64>) -> PyResult<u64> {
    match given.extract() {
        Ok(number) if range.contains(&number) => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(given.py()) => Err(named(name, given.py(), error)),
        _ => Err(bad(given, format!("{name}: {given} is not from {} to {}", range.start(), range.end()))),
    }
}

/// The number that an argument is, with a fraction or not.
pub(crate) fn real(name: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    given.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(given.py()) {
        true => bad(given, format!("{name}: it is not from {:e} to {:e}", f64::MIN, f64::MAX)),
        false => named(name, given.py(), error),
    })
}

fn bad(given: &Bound<'_, PyAny>, why: String) -> PyErr {
    exception(given.py(), "BadArgument", why)
}

/// What is no number is an error of its type, as PyO3 says it of the arguments that it looks at.
fn named(name: &str, py: Python<'_>, error: PyErr) -> PyErr {
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(format!("argument '{name}': {}", error.value(py))),
        false => error,
    }
}
