//! Two products in turn: one multiplies while the other carries. Both are one program, for all that is begun anew costs as much as a tenth of the
//! smallest product.

use super::program::{BASES, Layout};
use super::programs::Program;
use super::table::{Reader, Row};
use super::tile::{Memory, run};
use super::{Modulus, Workspace};
use crate::vector::V;
use core::ptr::null_mut;

/// One of the two: its modulus and the factors. What is computed replaces `x`.
pub(crate) struct Side<'a, const K: usize> {
    pub(crate) modulus: &'a Modulus<K>,
    pub(crate) x: &'a mut [V; K],
    pub(crate) y: &'a mut [V; K],
}

impl<const K: usize> Side<'_, K> {
    /// Where programs find modulus and factors.
    fn bases(self) -> [*mut V; 3] {
        [self.x.as_mut_ptr(), self.y.as_mut_ptr(), self.modulus.place.as_ptr().cast_mut()]
    }
}

/// `x = x * x / R` on both sides, as [`Modulus::multiply`].
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn square<const K: usize>(workspace: &mut Workspace<K>, sides: [(&Modulus<K>, &mut [V; K]); 2]) {
    let bases = sides.map(|(modulus, x)| [x.as_mut_ptr(), null_mut(), modulus.place.as_ptr().cast_mut()]);
    execute(Program::Squares, workspace, bases, &[]);
}

/// `x = x * y / R`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiply<const K: usize>(workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2]) {
    execute(Program::Multiplies, workspace, sides.map(Side::bases), &[]);
}

/// `y` becomes the power of each lane's index.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn read<const K: usize>(workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2], tables: [&[Row; K]; 2], indices: [V; 2]) {
    let readers = [Reader::new(tables[0], indices[0]), Reader::new(tables[1], indices[1])];
    execute(Program::Read, workspace, sides.map(Side::bases), &readers);
}

/// The same, and then `x` becomes `x^(2^WINDOW) * y`, in Montgomery form.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn window<const K: usize>(workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2], tables: [&[Row; K]; 2], indices: [V; 2]) {
    let readers = [Reader::new(tables[0], indices[0]), Reader::new(tables[1], indices[1])];
    execute(Program::Window, workspace, sides.map(Side::bases), &readers);
}

#[allow(unsafe_code)]
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn execute<const K: usize>(program: Program, workspace: &mut Workspace<K>, sides: [[*mut V; 3]; 2], readers: &[Reader<'_>]) {
    let [[x, y, modulus], [other_x, other_y, other_modulus]] = sides;
    let bases: [*mut V; BASES] = [x, y, modulus, workspace.place.as_mut_ptr(), other_x, other_y, other_modulus];
    // SAFETY: this function asks for the features as well. Each base is as long as programs for its digits reach, or null where they do not. They write to `x`, `y`
    // and the workspace only. Those that read are given a reader for each side.
    unsafe { run(Layout::new(K).program(program), &mut Memory::new(bases, readers)) };
}
