//! Two exponentiations in turn: one multiplies while the other carries.

use super::program::{BASES, Layout, Step};
use super::table::{Reader, Row, WINDOW};
use super::tile::{Memory, run};
use super::{Modulus, Workspace};
use crate::vector::V;

/// One of the two: its modulus and the factors. What is computed replaces `x`.
pub(crate) struct Side<'a, const K: usize> {
    pub(crate) modulus: &'a Modulus<K>,
    pub(crate) x: &'a mut [V; K],
    pub(crate) y: &'a mut [V; K],
}

/// What is computed on both sides, without a pause between them, for all that is begun anew costs as much as a tenth of the smallest product.
pub(crate) struct Pair<const K: usize> {
    square: Vec<Step>,
    multiply: Vec<Step>,
    read: Vec<Step>,
    window: Vec<Step>,
}

impl<const K: usize> Pair<K> {
    pub(crate) fn new() -> Self {
        let layout = Layout::new(K);
        Self { square: layout.products(true), multiply: layout.products(false), read: layout.window(0), window: layout.window(WINDOW) }
    }

    /// `x = x * x / R`, as [`Modulus::multiply`].
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self, workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2]) {
        execute(&self.square, workspace, sides, &[]);
    }

    /// `x = x * y / R`.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2]) {
        execute(&self.multiply, workspace, sides, &[]);
    }

    /// `y` becomes the power of each lane's index.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn read(&self, workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2], tables: [&[Row; K]; 2], indices: [V; 2]) {
        execute(&self.read, workspace, sides, &[Reader::new(tables[0], indices[0]), Reader::new(tables[1], indices[1])]);
    }

    /// The same, and then `x` becomes `x^(2^WINDOW) * y`, in Montgomery form.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn window(&self, workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2], tables: [&[Row; K]; 2], indices: [V; 2]) {
        execute(&self.window, workspace, sides, &[Reader::new(tables[0], indices[0]), Reader::new(tables[1], indices[1])]);
    }
}

#[allow(unsafe_code)]
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn execute<const K: usize>(program: &[Step], workspace: &mut Workspace<K>, sides: [Side<'_, K>; 2], readers: &[Reader<'_>]) {
    let [one, other] = sides;
    let bases: [*mut V; BASES] = [
        one.x.as_mut_ptr(),
        one.y.as_mut_ptr(),
        one.modulus.place.as_ptr().cast_mut(),
        workspace.place.as_mut_ptr(),
        other.x.as_mut_ptr(),
        other.y.as_mut_ptr(),
        other.modulus.place.as_ptr().cast_mut(),
    ];
    // SAFETY: this function asks for the features as well. Each base is as long as programs for its digits reach. They write to `x`, `y` and
    // the workspace only. Those that read are given a reader for each side.
    unsafe { run(program, &mut Memory::new(bases, readers)) };
}
