//! What the host hands over, as Rust has it.

use crate::abi::{Octets, Properties, Sequence};
use crate::fault::{Fault, Outcome};
use core::ffi::{CStr, c_char};

/// What a sequence has; nothing for none, or for one without a buffer.
///
/// # Safety
/// Null, or a sequence whose buffer is null or has as many elements as it says, all of which hold for the call.
pub(crate) unsafe fn elements<'a, T>(sequence: *const Sequence<T>) -> &'a [T] {
    // SAFETY: as the caller says.
    match unsafe { sequence.as_ref() } {
        Some(sequence) if !sequence.buffer.is_null() && sequence.length > 0 => {
            // SAFETY: as the caller says.
            unsafe { core::slice::from_raw_parts(sequence.buffer, sequence.length as usize) }
        }
        _ => &[],
    }
}

/// Bytes that there must be.
///
/// # Safety
/// That of [`elements`].
pub(crate) unsafe fn bytes<'a>(octets: *const Octets) -> Outcome<&'a [u8]> {
    // SAFETY: as the caller says.
    let bytes = unsafe { elements(octets) };
    if bytes.is_empty() { Err(Fault::argument("Invalid argument: no bytes")) } else { Ok(bytes) }
}

/// A text; none for null and for what is not UTF-8.
///
/// # Safety
/// Null, or a text that ends and holds for the call.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// A participant's or endpoint's properties.
pub(crate) struct Property<'a>(&'a [crate::abi::Property]);

impl<'a> Property<'a> {
    /// # Safety
    /// That of [`elements`]; names and values are null or texts.
    pub(crate) unsafe fn of(properties: *const Properties) -> Self {
        // SAFETY: as the caller says.
        Self(unsafe { elements(properties) })
    }

    /// The value of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&'a str> {
        // SAFETY: names and values are null or texts, as whoever made this said.
        let is_it = |property: &&crate::abi::Property| unsafe { text(property.name) } == Some(name);
        // SAFETY: likewise.
        self.0.iter().find(is_it).and_then(|property| unsafe { text(property.value) })
    }
}
