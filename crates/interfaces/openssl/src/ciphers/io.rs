//! The program's buffers of one call, behind a safe face: every access is checked against the lengths that came with the pointers.

use super::dispatch::{Outcome, fail};
use crate::errors::Reason;
use bywash_core::Data;
use core::{ptr, slice};
use zeroize::Zeroizing;

/// Input and output of one call. Both move forward as they are used.
pub(crate) struct Io {
    output: *mut u8,
    room: usize,
    input: *const u8,
    len: usize,
}

impl Io {
    /// Wraps the buffers.
    ///
    /// # Safety
    /// `input` is null or has `len` bytes, `output` is null or has room for `room` bytes, and both stay valid as long as this lives.
    #[inline]
    pub(crate) unsafe fn new(output: *mut u8, room: usize, input: *const u8, len: usize) -> Self {
        Self { output, room: if output.is_null() { 0 } else { room }, input, len: if input.is_null() { 0 } else { len } }
    }

    /// Bytes of input left.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
    /// Room for output left.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room
    }
    #[inline]
    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_null()
    }
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_null()
    }
    /// Whether output replaces input.
    pub(crate) fn is_in_place(&self) -> bool {
        ptr::eq(self.output, self.input)
    }

    /// All of the input, to be read only.
    pub(crate) fn input(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `len` bytes are there, and nothing is written while `self` is borrowed.
        unsafe { slice::from_raw_parts(self.input, self.len) }
    }

    /// All of the room, where nothing is to be read any more.
    pub(crate) fn output(&mut self) -> &mut [u8] {
        if self.room == 0 {
            return &mut [];
        }
        // SAFETY: so much room is there, and no other reference to it lives while `self` is borrowed.
        unsafe { slice::from_raw_parts_mut(self.output, self.room) }
    }

    /// Refuses output that does not fit.
    #[inline(always)]
    pub(crate) fn need_room(&self, len: usize) -> Outcome {
        if self.room < len { fail(Reason::OutputBufferTooSmall, "the output does not fit into the buffer") } else { Ok(()) }
    }

    /// Input and as much output, if there are both and they are one buffer or apart.
    #[inline(always)]
    pub(crate) fn straight(&mut self) -> Option<Data<'_>> {
        let Self { output, room, input, len } = *self;
        if len == 0 || room < len {
            return None;
        }
        if ptr::eq(output, input) {
            // SAFETY: `len` bytes are there to be read and written, and this is the only reference to them while `self` is borrowed.
            return Some(Data::InPlace(unsafe { slice::from_raw_parts_mut(output, len) }));
        }
        let apart = output as usize + len <= input as usize || input as usize + len <= output as usize;
        // SAFETY: `len` bytes are there in both places, which do not overlap.
        apart.then(|| unsafe { Data::Copy { input: slice::from_raw_parts(input, len), output: slice::from_raw_parts_mut(output, len) } })
    }

    /// Whether output would overwrite input before it is read. `lag` bytes of earlier input come out before this input does, so output that lies
    /// exactly that far ahead of the input never catches up with it.
    #[inline(always)]
    pub(crate) fn is_tangled(&self, lag: usize) -> bool {
        let (input, output) = (self.input as usize, self.output as usize);
        output + lag != input && output < input + self.len && input < output + self.len + lag && self.len > 0 && self.has_output()
    }

    /// Takes the input from a copy, which makes any overlap harmless. The copy is to outlive this.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub(crate) fn untangle(&mut self) -> Zeroizing<Vec<u8>> {
        let copy = Zeroizing::new(self.input().to_vec());
        self.input = copy.as_ptr();
        copy
    }

    /// Takes input away into a buffer.
    pub(crate) fn read(&mut self, into: &mut [u8]) {
        let len = into.len();
        into.copy_from_slice(&self.input()[..len]);
        self.advance_input(len);
    }

    fn advance_input(&mut self, len: usize) {
        assert!(len <= self.len);
        // SAFETY: still inside the input, or one past it.
        self.input = unsafe { self.input.add(len) };
        self.len -= len;
    }

    fn advance_output(&mut self, len: usize) {
        assert!(len <= self.room);
        // SAFETY: still inside the output, or one past it.
        self.output = unsafe { self.output.add(len) };
        self.room -= len;
    }

    /// Puts bytes out.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.need_room(bytes.len())?;
        self.output()[..bytes.len()].copy_from_slice(bytes);
        self.advance_output(bytes.len());
        Ok(())
    }

    /// Hands `len` bytes of input and as much room to `run`, then moves past both. They must not be [tangled](Io::is_tangled).
    #[inline(always)]
    pub(crate) fn transform<T>(&mut self, len: usize, run: impl FnOnce(Data<'_>) -> Outcome<T>) -> Outcome<T> {
        self.need_room(len)?;
        assert!(len <= self.len);
        let data = if len == 0 {
            Data::InPlace(&mut [])
        } else if self.is_in_place() {
            // SAFETY: `len` bytes are there to be read and written, and this is the only reference to them.
            Data::InPlace(unsafe { slice::from_raw_parts_mut(self.output, len) })
        } else {
            assert!(self.output as usize + len <= self.input as usize || self.input as usize + len <= self.output as usize);
            // SAFETY: `len` bytes are there in both places, which do not overlap, as was just checked.
            let (input, output) = unsafe { (slice::from_raw_parts(self.input, len), slice::from_raw_parts_mut(self.output, len)) };
            Data::Copy { input, output }
        };
        let done = run(data);
        self.advance_input(len);
        self.advance_output(len);
        done
    }

    /// The raw pointers, for the default provider's functions: output and its room, input and its length. It wants room for associated data, too.
    pub(crate) fn raw(&self) -> (*mut u8, usize, *const u8, usize) {
        (self.output, if self.has_output() { self.room } else { self.len }, self.input, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flip(data: Data<'_>) -> Outcome {
        match data {
            Data::InPlace(buffer) => buffer.iter_mut().for_each(|byte| *byte ^= 0xFF),
            Data::Copy { input, output } => output.iter_mut().zip(input).for_each(|(to, from)| *to = from ^ 0xFF),
        }
        Ok(())
    }

    #[test]
    fn every_overlap_gives_the_same_bytes() {
        for shift in 0..40_usize {
            let mut memory = [0_u8; 80];
            for (index, byte) in memory[20..40].iter_mut().enumerate() {
                *byte = index as u8;
            }
            let base = memory.as_mut_ptr();
            // SAFETY: both ranges lie inside `memory`, which is used through `base` alone until `io` is gone.
            let mut io = unsafe { Io::new(base.add(shift), 20, base.add(20), 20) };
            assert_eq!(io.is_tangled(0), (1..40).contains(&shift) && shift != 20, "shift {shift}");
            let _copy = io.is_tangled(0).then(|| io.untangle());
            assert!(io.transform(20, flip).is_ok());
            assert_eq!((io.len(), io.room()), (0, 0));
            for index in 0..20 {
                assert_eq!(memory[shift + index], index as u8 ^ 0xFF, "shift {shift}");
            }
        }
    }

    #[test]
    fn too_little_room_is_refused() {
        let mut room = [0_u8; 3];
        // SAFETY: as long as they are said to be.
        let mut io = unsafe { Io::new(room.as_mut_ptr(), 3, b"abcd".as_ptr(), 4) };
        assert!(io.transform(4, flip).is_err());
        assert!(io.write(b"abcd").is_err());
        assert!(io.write(b"abc").is_ok());
    }

    #[test]
    fn null_means_nothing_whatever_the_length() {
        // SAFETY: null is allowed.
        let io = unsafe { Io::new(ptr::null_mut(), 9, ptr::null(), 9) };
        assert_eq!((io.len(), io.room(), io.has_input(), io.has_output()), (0, 0, false, false));
    }
}
