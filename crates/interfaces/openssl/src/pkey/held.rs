//! Contexts as libcrypto holds them: by a pointer, made by us, used by one thread at a time, freed once.

use crate::ffi::guard;
use core::ffi::c_void;
use core::ptr;

/// A context of ours.
pub(super) trait Held: Sized {
    /// A copy with everything that was set.
    fn duplicate(&self) -> Option<Self>;

    /// Gives it to libcrypto.
    fn give(self) -> *mut c_void {
        Box::into_raw(Box::new(self)).cast()
    }

    /// Runs something on a context; `missing` where there is none.
    ///
    /// # Safety
    /// `ctx` is null or one of [`Held::give`]'s, used by this thread alone, as libcrypto promises.
    unsafe fn with<T: Copy>(ctx: *mut c_void, missing: T, run: impl FnOnce(&mut Self) -> T) -> T {
        // SAFETY: passed on from the caller.
        guard(missing, || unsafe { ctx.cast::<Self>().as_mut() }.map_or(missing, run))
    }
}

pub(super) unsafe extern "C" fn freectx<C: Held>(ctx: *mut c_void) {
    guard((), || {
        if !ctx.is_null() {
            // SAFETY: given by `give`, freed once.
            drop(unsafe { Box::from_raw(ctx.cast::<C>()) });
        }
    });
}

pub(super) unsafe extern "C" fn dupctx<C: Held>(ctx: *mut c_void) -> *mut c_void {
    // SAFETY: our context.
    unsafe { C::with(ctx, ptr::null_mut(), |context| context.duplicate().map_or(ptr::null_mut(), C::give)) }
}
