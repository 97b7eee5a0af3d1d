//! From C's pointers to references and slices, checked as far as a pointer can be.

use crate::status::{Failure, argument};
use core::ffi::{CStr, c_char};
use core::slice;

/// Whether `len` entries may begin at this pointer.
pub(crate) fn check<T>(pointer: *const T, len: usize, name: &str) -> Result<(), Failure> {
    if pointer.is_null() && len > 0 {
        return argument(format!("{name} is null but its length is {len}"));
    }
    let bytes = len.saturating_mul(size_of::<T>());
    if isize::try_from(bytes).is_err() || (pointer as usize).checked_add(bytes).is_none() {
        return argument(format!("{name}: {bytes} bytes are more than memory holds"));
    }
    Ok(())
}

/// A slice to read.
///
/// # Safety
/// A non-null pointer must be aligned and valid for reading `len` entries during `'a`, and nobody may write them meanwhile.
pub(crate) unsafe fn read<'a, T>(pointer: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    check(pointer, len, name)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null and not longer than the address space by the check; validity is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, len) })
}

/// A slice to write.
///
/// # Safety
/// A non-null pointer must be aligned and valid for reading and writing `len` entries during `'a`, and nobody else may touch them meanwhile.
pub(crate) unsafe fn write<'a, T>(pointer: *mut T, len: usize, name: &str) -> Result<&'a mut [T], Failure> {
    check(pointer.cast_const(), len, name)?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null and not longer than the address space by the check; validity is the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, len) })
}

/// Text to read.
///
/// # Safety
/// A non-null pointer must lead to a string that ends in a zero byte and is not written during `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return argument(format!("{name} is null"));
    }
    // SAFETY: not null; termination is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().or_else(|_| argument(format!("{name} is not UTF-8")))
}

/// What a pointer leads to.
///
/// # Safety
/// A non-null pointer must be valid during `'a`, and nobody may write what it leads to meanwhile.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: null is sorted out by `as_ref`; validity is the caller's promise.
    unsafe { pointer.as_ref() }.map_or_else(|| argument(format!("{name} is null")), Ok)
}

/// What a pointer leads to, to be changed.
///
/// # Safety
/// A non-null pointer must be valid during `'a`, and nobody else may touch what it leads to meanwhile.
pub(crate) unsafe fn borrow_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: null is sorted out by `as_mut`; validity is the caller's promise.
    unsafe { pointer.as_mut() }.map_or_else(|| argument(format!("{name} is null")), Ok)
}

/// Hands a handle out. The place is checked by [`place`] before the work is done, so that nothing is lost to a null pointer.
///
/// # Safety
/// `place` must be valid for writing one pointer.
pub(crate) unsafe fn hand_out<T>(place: *mut *mut T, value: T) {
    // SAFETY: the caller's promise; the old content is a plain pointer and needs no drop.
    unsafe { place.write(Box::into_raw(Box::new(value))) };
}

/// Checks the place for a handle.
pub(crate) fn place<T>(place: *mut *mut T, name: &str) -> Result<(), Failure> {
    if place.is_null() { argument(format!("{name} is null: there is no place for the handle")) } else { Ok(()) }
}

/// Takes a handle back and drops it; null is fine.
///
/// # Safety
/// A non-null pointer must come from [`hand_out`] and must not be used again.
pub(crate) unsafe fn take_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: it came from `Box::into_raw` and comes back once, by the caller's promise.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Whether two buffers share a byte.
pub(crate) fn overlap(a: (*const u8, usize), b: (*const u8, usize)) -> bool {
    let (a_start, b_start) = (a.0 as usize, b.0 as usize);
    a.1 > 0 && b.1 > 0 && a_start < b_start.saturating_add(b.1) && b_start < a_start.saturating_add(a.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_symmetric_and_empty_buffers_have_none() {
        let at = |address: usize, len| (address as *const u8, len);
        assert!(overlap(at(100, 10), at(109, 1)) && overlap(at(109, 1), at(100, 10)));
        assert!(!overlap(at(100, 10), at(110, 5)) && !overlap(at(110, 5), at(100, 10)));
        assert!(!overlap(at(100, 0), at(100, 5)));
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let byte = 0u8;
        // SAFETY: refused before anything is read.
        assert!(unsafe { read(&raw const byte, usize::MAX, "input") }.is_err());
        // SAFETY: as above; so many entries of two bytes are more than memory holds, so many bytes would not be.
        assert!(unsafe { read((&raw const byte).cast::<[u8; 2]>(), isize::MAX as usize / 2 + 1, "entries") }.is_err());
        // SAFETY: as above.
        assert!(unsafe { read(core::ptr::null::<u8>(), 1, "input") }.is_err());
        // SAFETY: nothing is read for length 0.
        assert!(unsafe { read(core::ptr::null::<u8>(), 0, "input") }.is_ok());
    }
}
