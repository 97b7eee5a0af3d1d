//! Overwriting of secrets.

/// Overwrites key material in a way that the compiler does not leave out, a register's width at a time.
pub(crate) fn wipe<T: Copy + Default>(places: &mut [T]) {
    wipe_as(places, T::default());
}

/// The same for what has no default, such as registers.
pub(crate) fn wipe_as<T: Copy>(places: &mut [T], empty: T) {
    places.fill(empty);
    // SAFETY: no instruction at all; but the compiler has to assume that it reads what lies there.
    unsafe { core::arch::asm!("/* {} */", in(reg) places.as_ptr(), options(nostack, preserves_flags, readonly)) };
}

/// Overwrites a value with zeros, and what lies between its fields: where it was made on the stack, what lay there before came along.
///
/// # Safety
/// Zeros are a value of the type.
pub(crate) unsafe fn wipe_whole<T>(value: &mut T) {
    let place = core::ptr::from_mut(value);
    // SAFETY: one value's bytes, and zeros are a value as the caller says. The compiler has to assume that the instruction after it, which is none, reads them.
    unsafe {
        place.write_bytes(0, 1);
        core::arch::asm!("/* {} */", in(reg) place, options(nostack, preserves_flags, readonly));
    }
}
