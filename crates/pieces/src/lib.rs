//! Secret bytes in pieces that several threads write at the same time, and that are whole again without a copy.
//!
//! A request that is cut is computed by several engines side by side, each of which writes a part of one output. Where every part had memory of its own, putting them together would take
//! longer than the fastest of engines do. So the output itself is [cut](Piece::cut) into [pieces](Piece), each of which owns its bytes and no others, and [joined](Piece::join) when all are back.
//! A piece that does not come back, because an engine hangs that may still write to it, keeps the whole from being joined; its memory stays as long as the piece does.
//!
//! This is a crate of its own because the language has no safe way to say it: all of its `unsafe` is here.

use bywash_core::SecretBytes;
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// What was cut. Nobody looks at `bytes` while there are pieces.
struct Whole {
    bytes: UnsafeCell<SecretBytes>,
    /// Where they begin: they do not move, for what holds them does not.
    begin: *mut u8,
    len: usize,
}

// SAFETY: all that threads reach by a shared `Whole` are the bytes at `begin`, and of those each piece its own, which no other has; the pointer is never changed.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

/// A piece of some bytes that is written by whoever has it.
pub struct Piece {
    whole: Arc<Whole>,
    range: Range<usize>,
}

impl Piece {
    /// Cuts bytes at these places, each behind the one before: pieces from the beginning to the first, from there to the next, and from the last to the end. Gives the bytes back if
    /// those are no such places.
    pub fn cut(bytes: SecretBytes, places: &[usize]) -> Result<Vec<Self>, SecretBytes> {
        let len = bytes.len();
        if !places.is_sorted() || places.last().is_some_and(|&last| last > len) {
            return Err(bytes);
        }
        let mut whole = Arc::new(Whole { bytes: UnsafeCell::new(bytes), begin: core::ptr::null_mut(), len });
        if let Some(whole) = Arc::get_mut(&mut whole) {
            whole.begin = whole.bytes.get_mut().as_mut_ptr();
        }
        let begins = core::iter::once(0).chain(places.iter().copied());
        let ends = places.iter().copied().chain(core::iter::once(len));
        Ok(begins.zip(ends).map(|(begin, end)| Self { whole: whole.clone(), range: begin..end }).collect())
    }

    /// Puts pieces together that are all of what was cut; else gives them back.
    pub fn join(mut pieces: Vec<Self>) -> Result<SecretBytes, Vec<Self>> {
        let Some(last) = pieces.pop() else { return Err(pieces) };
        // Pieces do not overlap, so those that are as long as the whole are all of it that has bytes.
        let is_all = pieces.iter().all(|piece| Arc::ptr_eq(&piece.whole, &last.whole))
            && pieces.iter().map(|piece| piece.len()).sum::<usize>() + last.len() == last.whole.len
            && Arc::strong_count(&last.whole) == pieces.len() + 1;
        if !is_all {
            pieces.push(last);
            return Err(pieces);
        }
        drop(pieces);
        let Self { whole, range } = last;
        // Nobody else can have got one meanwhile: pieces are not cloned.
        Arc::try_unwrap(whole).map(|whole| whole.bytes.into_inner()).map_err(|whole| vec![Self { whole, range }])
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes of `range` are there, initialised, as long as `whole` is, which this holds; only this piece reaches them, and who writes them has it by `&mut`.
        unsafe { core::slice::from_raw_parts(self.whole.begin.add(self.range.start), self.range.len()) }
    }
}

impl DerefMut for Piece {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has this piece.
        unsafe { core::slice::from_raw_parts_mut(self.whole.begin.add(self.range.start), self.range.len()) }
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret, {} of {} bytes]", self.len(), self.whole.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> SecretBytes {
        SecretBytes::from((0..len).map(|i| i as u8).collect::<Vec<_>>())
    }

    #[test]
    fn threads_write_their_pieces_and_the_whole_has_them_all() {
        for places in [&[][..], &[0], &[1000], &[300, 300, 512], &[1, 2, 3, 999]] {
            let mut pieces = Piece::cut(bytes(1000), places).unwrap();
            assert_eq!(pieces.len(), places.len() + 1);
            std::thread::scope(|scope| {
                for piece in &mut pieces {
                    scope.spawn(|| piece.iter_mut().for_each(|byte| *byte = !*byte));
                }
            });
            pieces.reverse();
            let whole = Piece::join(pieces).unwrap();
            assert!(whole.iter().enumerate().all(|(i, &byte)| byte == !(i as u8)));
        }
    }

    #[test]
    fn places_out_of_order_or_beyond_the_end_give_the_bytes_back() {
        for places in [&[11][..], &[5, 4]] {
            assert_eq!(Piece::cut(bytes(10), places).unwrap_err(), bytes(10));
        }
    }

    #[test]
    fn what_is_missing_or_another_s_is_not_joined() {
        let mut one = Piece::cut(bytes(10), &[4]).unwrap();
        let mut other = Piece::cut(bytes(10), &[4]).unwrap();
        let kept = one.remove(0);
        let left = Piece::join(one).unwrap_err();
        assert_eq!(left[0][..], [4, 5, 6, 7, 8, 9]);
        other.push(kept);
        other.remove(0);
        assert_eq!(Piece::join(other).unwrap_err().len(), 2, "as long as a whole, of two");
        assert!(Piece::join(Vec::new()).is_err());
    }

    #[test]
    fn a_piece_without_bytes_that_is_kept_keeps_the_whole() {
        let mut pieces = Piece::cut(bytes(10), &[10]).unwrap();
        let empty = pieces.pop();
        let left = Piece::join(pieces).unwrap_err();
        drop(empty);
        assert_eq!(Piece::join(left).unwrap(), bytes(10));
    }
}
