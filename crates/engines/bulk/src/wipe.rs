//! Overwriting of secrets.

/// Overwrites key material in a way that the compiler does not leave out, a register's width at a time.
pub(crate) fn wipe<T: Copy + Default>(places: &mut [T]) {
    places.fill(T::default());
    // SAFETY: no instruction at all; but the compiler has to assume that it reads what lies there.
    unsafe { core::arch::asm!("/* {} */", in(reg) places.as_ptr(), options(nostack, preserves_flags, readonly)) };
}
