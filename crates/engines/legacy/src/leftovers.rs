//! What is left of an expanded key on the stack on which it was made.

use crate::cipher::{BlockCipher, Form};
use corosensei::on_stack;
use corosensei::stack::{DefaultStack, Stack};
use std::collections::HashSet;

const STACK: usize = 64 << 10;
const PAGE: usize = 4096;
/// More than a register, which a function keeps on its stack while it calls another.
const WINDOW: usize = 64;

/// Asserts that no part of what is in a cipher's box is still on the stack of the call that made it.
pub(crate) fn assert_none<C: BlockCipher, T>(in_box: impl Fn(&C) -> &T) {
    for form in [Form::PORTABLE, Form::best()] {
        for len in C::KEYS {
            let key: Vec<u8> = (0..*len as u8).map(|i| i.wrapping_mul(151) ^ 0x5A).collect();
            let mut stack = DefaultStack::new(STACK).expect("a stack");
            let cipher = on_stack(&mut stack, || C::with_form(&key, form)).expect("a key");
            let kept = in_box(&cipher);
            // SAFETY: keys are numbers with nothing between them. The stack is mapped from its guard page on, and nobody runs on it.
            let (kept, left) = unsafe {
                let lowest = (stack.limit().get() + PAGE) as *const u8;
                let len = stack.base().get() - lowest as usize;
                (std::slice::from_raw_parts(std::ptr::from_ref(kept).cast::<u8>(), size_of::<T>()), std::slice::from_raw_parts(lowest, len))
            };
            // Zeros tell nothing.
            let telling = |window: &&[u8]| window.iter().filter(|&&byte| byte != 0).count() >= WINDOW / 8;
            let kept: HashSet<&[u8]> = kept.windows(WINDOW).filter(telling).collect();
            assert!(!kept.is_empty());
            assert!(!left.windows(WINDOW).any(|window| kept.contains(window)), "{}, a key of {len} bytes, {form:?}", C::NAME);
        }
    }
}
