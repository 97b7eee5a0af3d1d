//! Reading and writing `OSSL_PARAM` arrays that the program's libcrypto hands us, with type and length checked.

use super::abi::{INTEGER, OCTET_PTR, OCTET_STRING, Param, UNSIGNED_INTEGER, UTF8_PTR, UTF8_STRING};
use super::names;
use core::ffi::{CStr, c_void};
use core::{ptr, slice, str};

/// A parameter array that is read.
#[derive(Clone, Copy)]
pub struct Params<'a> {
    entries: &'a [Param],
    whole: *const Param,
}

/// How many entries an array can have before it is taken for one without end.
const ENTRIES_MAX: usize = 4096;

/// Counts the entries before the end.
///
/// # Safety
/// `params` is null or a valid array.
unsafe fn count(params: *const Param) -> usize {
    if params.is_null() {
        return 0;
    }
    // SAFETY: the array is valid up to and with the entry whose key is null, and we stop there.
    (0..ENTRIES_MAX).find(|&index| unsafe { (*params.add(index)).key.is_null() }).unwrap_or(ENTRIES_MAX)
}

impl<'a> Params<'a> {
    /// Wraps an array.
    ///
    /// # Safety
    /// `params` is null or a valid array that outlives `'a`.
    #[inline]
    pub unsafe fn new(params: *const Param) -> Self {
        // SAFETY: passed on from the caller.
        let entries = unsafe { count(params) };
        // SAFETY: so many entries are there.
        let entries = if entries == 0 { &[] } else { unsafe { slice::from_raw_parts(params, entries) } };
        Self { entries, whole: params }
    }

    /// The first entry of that name.
    pub fn get(&self, key: &CStr) -> Option<&'a Param> {
        self.entries.iter().find(|param| param.is(key))
    }

    /// The array as libcrypto gave it, to be handed on.
    pub fn as_ptr(&self) -> *const Param {
        self.whole
    }

    /// Every entry.
    pub fn iter(&self) -> slice::Iter<'a, Param> {
        self.entries.iter()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A number, if it is all there is.
    #[inline]
    pub fn only_size(&self, key: &CStr) -> Option<usize> {
        match self.entries {
            [param] if param.is(key) => param.size(),
            _ => None,
        }
    }
}

/// A parameter array that is filled in.
pub struct ParamsMut<'a> {
    entries: &'a mut [Param],
    whole: *mut Param,
}

impl<'a> ParamsMut<'a> {
    /// Wraps an array.
    ///
    /// # Safety
    /// `params` is null or a valid array that nothing else uses during `'a`.
    pub unsafe fn new(params: *mut Param) -> Self {
        // SAFETY: passed on from the caller.
        let entries = unsafe { count(params) };
        // SAFETY: so many entries are there.
        let entries = if entries == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(params, entries) } };
        Self { entries, whole: params }
    }

    /// The first entry of that name.
    pub fn get(&mut self, key: &CStr) -> Option<&mut Param> {
        self.entries.iter_mut().find(|param| param.is(key))
    }

    /// The entry of that name, if it is all there is.
    #[inline]
    pub fn only(&mut self, key: &CStr) -> Option<&mut Param> {
        match self.entries {
            [param] if param.is(key) => Some(param),
            _ => None,
        }
    }

    /// Sets the entry of that name, if it is asked for; false only if it is and does not take the value.
    pub fn answer(&mut self, key: &CStr, set: impl FnOnce(&mut Param) -> bool) -> bool {
        self.get(key).is_none_or(set)
    }

    /// Answers a number, if it is asked for.
    pub fn answer_number(&mut self, key: &CStr, value: u64) -> bool {
        self.answer(key, |param| param.set_number(value))
    }

    /// The array as libcrypto gave it, to be handed on.
    pub fn as_mut_ptr(&mut self) -> *mut Param {
        self.whole
    }

    /// Every entry.
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, Param> {
        self.entries.iter_mut()
    }
}

impl Param {
    /// The entry of an array that has but one.
    ///
    /// # Safety
    /// `params` is null or a valid array.
    #[inline(always)]
    pub unsafe fn only(params: *const Self) -> Option<*const Self> {
        // SAFETY: the array is valid up to and with the entry whose key is null.
        (!params.is_null() && unsafe { !(*params).key.is_null() && (*params.add(1)).key.is_null() }).then_some(params)
    }

    /// Its name.
    pub fn name(&self) -> &CStr {
        // SAFETY: an entry within a valid array has a name that ends in NUL; it lives as long as the array.
        unsafe { CStr::from_ptr(self.key) }
    }

    /// Whether that is its name.
    #[inline(always)]
    pub fn is(&self, key: &CStr) -> bool {
        // SAFETY: an entry within a valid array has a name that ends in NUL.
        unsafe { names::is(self.key, key) }
    }

    /// The value's bytes as they lie there, whatever their type.
    fn bytes(&self) -> &[u8] {
        // EVP_CTRL_AEAD_SET_IV_FIXED passes a size of -1, which is no size: see `octets_of`.
        if self.data.is_null() || self.data_size == 0 || self.data_size > isize::MAX as usize {
            return &[];
        }
        // SAFETY: a valid entry has `data_size` bytes at `data`.
        unsafe { slice::from_raw_parts(self.data.cast::<u8>(), self.data_size) }
    }

    /// An unsigned number of up to 64 bits; none if it is of another type, negative or longer.
    #[inline]
    pub fn number(&self) -> Option<u64> {
        if self.data.is_null() || !matches!(self.data_type, INTEGER | UNSIGNED_INTEGER) {
            return None;
        }
        match (self.data_type, self.data_size) {
            // SAFETY: a valid entry has `data_size` bytes at `data`.
            (UNSIGNED_INTEGER, 8) => Some(unsafe { self.data.cast::<u64>().read_unaligned() }),
            // SAFETY: as above.
            (UNSIGNED_INTEGER, 4) => Some(unsafe { self.data.cast::<u32>().read_unaligned() }.into()),
            _ => self.number_of_any_length(),
        }
    }

    fn number_of_any_length(&self) -> Option<u64> {
        let bytes = self.bytes();
        let (most, least) = if cfg!(target_endian = "little") { (bytes.last()?, 0) } else { (bytes.first()?, bytes.len() - 1) };
        if self.data_type == INTEGER && most & 0x80 != 0 {
            return None;
        }
        // Least significant byte first, whichever end that is.
        let byte = |index: usize| u64::from(bytes[least.abs_diff(index)]);
        if (8..bytes.len()).any(|index| byte(index) != 0) {
            return None;
        }
        Some((0..bytes.len().min(8)).rev().fold(0, |number, index| number << 8 | byte(index)))
    }

    /// The same as a `usize`.
    pub fn size(&self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// A signed number of up to 64 bits.
    pub fn signed(&self) -> Option<i64> {
        let bytes = self.bytes();
        match (self.data_type, bytes.len()) {
            (INTEGER, 4) => Some(i64::from(i32::from_ne_bytes(bytes.try_into().ok()?))),
            (INTEGER, 8) => Some(i64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => self.number()?.try_into().ok(),
        }
    }

    /// An unsigned number of any length, big-endian, as long as it was given. It may be secret: wipe it.
    pub fn big_endian(&self) -> Option<Vec<u8>> {
        if self.data_type != UNSIGNED_INTEGER || self.data.is_null() {
            return None;
        }
        let mut bytes = self.bytes().to_vec();
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        Some(bytes)
    }

    /// An octet string.
    pub fn octets(&self) -> Option<&[u8]> {
        match self.data_type {
            OCTET_STRING => Some(self.bytes()),
            OCTET_PTR => self.pointed(),
            _ => None,
        }
    }

    /// An octet string whose length both sides know, whatever size is written beside it.
    ///
    /// # Safety
    /// At least `length` bytes are there.
    pub unsafe fn octets_of(&self, length: usize) -> Option<&[u8]> {
        if self.data.is_null() || self.data_type != OCTET_STRING {
            return None;
        }
        // SAFETY: passed on from the caller.
        Some(unsafe { slice::from_raw_parts(self.data.cast::<u8>(), length) })
    }

    /// A string without its NUL.
    pub fn utf8(&self) -> Option<&str> {
        let bytes = match self.data_type {
            UTF8_STRING => self.bytes(),
            UTF8_PTR => self.pointed()?,
            _ => return None,
        };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        str::from_utf8(&bytes[..end]).ok()
    }

    /// A string that lies in the entry itself, as far as its NUL, wherever that is: OpenSSL's own providers read names so.
    pub fn text(&self) -> Option<&str> {
        if self.data.is_null() || self.data_type != UTF8_STRING {
            return None;
        }
        // SAFETY: a valid string ends in NUL, within its size or just behind it.
        unsafe { CStr::from_ptr(self.data.cast()) }.to_str().ok()
    }

    fn pointed(&self) -> Option<&[u8]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: an entry of a pointer type holds a pointer at `data`, and `data_size` bytes are where that points.
        let target = unsafe { *self.data.cast::<*const u8>() };
        if target.is_null() || self.data_size > isize::MAX as usize {
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { slice::from_raw_parts(target, self.data_size) })
    }

    /// Writes a number, if the room is of a number's type and long enough. No room at all is a question for the size.
    #[inline]
    pub fn set_number(&mut self, value: u64) -> bool {
        let word = self.data.cast::<u64>();
        if self.data_type != UNSIGNED_INTEGER || self.data_size != 8 || word.is_null() || !word.is_aligned() {
            return self.set_number_of_any_length(value);
        }
        // SAFETY: a valid entry has room for `data_size` bytes at `data`, which is aligned.
        unsafe { word.write(value) };
        self.return_size = 8;
        true
    }

    fn set_number_of_any_length(&mut self, value: u64) -> bool {
        let needed = if value <= u64::from(u32::MAX >> u32::from(self.data_type == INTEGER)) { 4 } else { 8 };
        if !matches!(self.data_type, INTEGER | UNSIGNED_INTEGER) {
            return false;
        }
        if self.data.is_null() {
            self.return_size = needed;
            return true;
        }
        if self.data_size < needed {
            self.return_size = needed;
            return false;
        }
        self.set_big_endian(&value.to_be_bytes())
    }

    /// Writes an unsigned number of any length, given big-endian; the room is filled up with zeros.
    pub fn set_big_endian(&mut self, value: &[u8]) -> bool {
        if !matches!(self.data_type, INTEGER | UNSIGNED_INTEGER) {
            return false;
        }
        let value = &value[value.iter().position(|&byte| byte != 0).unwrap_or(value.len())..];
        let needed = value.len().max(1);
        if self.data.is_null() || self.data_size < needed {
            self.return_size = needed;
            return self.data.is_null();
        }
        // SAFETY: a valid entry has room for `data_size` bytes at `data`.
        let room = unsafe { slice::from_raw_parts_mut(self.data.cast::<u8>(), self.data_size) };
        room.fill(0);
        if cfg!(target_endian = "little") {
            room.iter_mut().zip(value.iter().rev()).for_each(|(to, from)| *to = *from);
        } else {
            room[self.data_size - value.len()..].copy_from_slice(value);
        }
        self.return_size = self.data_size;
        true
    }

    /// Writes an octet string, if there is room for all of it.
    pub fn set_octets(&mut self, value: &[u8]) -> bool {
        match self.data_type {
            OCTET_STRING => self.set_bytes(value, value.len()),
            OCTET_PTR => self.set_pointer(value.as_ptr().cast(), value.len()),
            _ => false,
        }
    }

    /// Points to octets that stay where they are as long as libcrypto may look at them.
    pub fn set_octet_pointer(&mut self, value: *const u8, length: usize) -> bool {
        self.data_type == OCTET_PTR && self.set_pointer(value.cast(), length)
    }

    /// Writes an octet string, whatever size is written beside the room.
    ///
    /// # Safety
    /// There is room for all of `value`.
    pub unsafe fn set_octets_trusting(&mut self, value: &[u8]) -> bool {
        if self.data_type != OCTET_STRING || self.data.is_null() {
            return false;
        }
        // SAFETY: passed on from the caller; `value` is not in the room.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), self.data.cast::<u8>(), value.len()) };
        self.return_size = value.len();
        true
    }

    /// Writes a string and its NUL, if there is room; the NUL may be left out where there is none for it, as OpenSSL does.
    pub fn set_utf8(&mut self, value: &'static CStr) -> bool {
        let bytes = value.to_bytes();
        match self.data_type {
            UTF8_STRING => self.set_bytes(value.to_bytes_with_nul(), bytes.len()),
            UTF8_PTR => self.set_pointer(value.as_ptr().cast(), bytes.len()),
            _ => false,
        }
    }

    fn set_bytes(&mut self, value: &[u8], reported: usize) -> bool {
        self.return_size = reported;
        if self.data.is_null() {
            return true;
        }
        if self.data_size < reported {
            return false;
        }
        let length = value.len().min(self.data_size);
        // SAFETY: a valid entry has room for `data_size` bytes at `data`, and `value` is not in it.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), self.data.cast::<u8>(), length) };
        true
    }

    fn set_pointer(&mut self, value: *const c_void, length: usize) -> bool {
        self.return_size = length;
        if !self.data.is_null() {
            // SAFETY: an entry of a pointer type has room for a pointer at `data`.
            unsafe { *self.data.cast::<*const c_void>() = value };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over<T>(data_type: u32, value: &mut T) -> Param {
        Param::new(c"x", data_type, ptr::from_mut(value).cast(), size_of::<T>())
    }

    #[test]
    fn numbers_are_read_by_type_and_size() {
        assert_eq!(over(UNSIGNED_INTEGER, &mut 7_u32).number(), Some(7));
        assert_eq!(over(UNSIGNED_INTEGER, &mut { u64::MAX }).number(), Some(u64::MAX));
        assert_eq!(over(INTEGER, &mut -1_i32).number(), None);
        assert_eq!(over(INTEGER, &mut -1_i32).signed(), Some(-1));
        assert_eq!(over(UNSIGNED_INTEGER, &mut (1_u128 << 64)).number(), None);
        assert_eq!(over(OCTET_STRING, &mut 7_u32).number(), None);
    }

    #[test]
    fn numbers_are_written_only_where_they_fit() {
        let mut room = 0_u32;
        assert!(over(UNSIGNED_INTEGER, &mut room).set_number(9));
        assert_eq!(room, 9);
        assert!(!over(UNSIGNED_INTEGER, &mut room).set_number(1 << 40));
        assert!(!over(INTEGER, &mut room).set_number(u64::from(u32::MAX)));
        let mut question = Param::new(c"x", UNSIGNED_INTEGER, ptr::null_mut(), 0);
        assert!(question.set_number(1));
        assert_eq!(question.return_size, 4);
    }

    #[test]
    fn long_numbers_change_byte_order() {
        let mut room = [0_u8; 6];
        assert!(over(UNSIGNED_INTEGER, &mut room).set_big_endian(&[0, 0, 1, 2, 3, 4]));
        assert_eq!(over(UNSIGNED_INTEGER, &mut room).big_endian().unwrap(), [0, 0, 1, 2, 3, 4]);
        assert!(!over(UNSIGNED_INTEGER, &mut [0_u8; 2]).set_big_endian(&[1, 2, 3]));
    }

    #[test]
    fn strings_and_octets_respect_the_room() {
        let mut room = [0xFF_u8; 4];
        assert!(over(OCTET_STRING, &mut room).set_octets(b"abcd"));
        assert_eq!(&room, b"abcd");
        assert!(!over(OCTET_STRING, &mut room).set_octets(b"abcde"));
        assert!(over(UTF8_STRING, &mut room).set_utf8(c"abc"));
        assert_eq!(over(UTF8_STRING, &mut room).utf8(), Some("abc"));
    }

    #[test]
    fn arrays_end_at_the_null_key() {
        let mut value = 5_u32;
        let array = [over(UNSIGNED_INTEGER, &mut value), Param::END];
        // SAFETY: the array ends as it must and outlives the wrapper.
        let params = unsafe { Params::new(array.as_ptr()) };
        assert_eq!(params.get(c"x").and_then(Param::number), Some(5));
        assert!(params.get(c"y").is_none());
        // SAFETY: null is allowed.
        assert!(unsafe { Params::new(ptr::null()) }.is_empty());
    }
}
