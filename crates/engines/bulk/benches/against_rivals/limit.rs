//! What the processor's AES unit can do at most.

use crate::now;
use std::arch::asm;

const TURNS: u64 = 10_000;

/// Bytes enciphered in a nanosecond with so many rounds, if nothing else is done: the fastest of some measurements.
pub(crate) fn bytes_per_ns(rounds: usize) -> f64 {
    let ns = (0..20).map(|_| timed()).fold(f64::INFINITY, f64::min);
    // Each turn starts 16 rounds of 64 bytes.
    (TURNS * 16 * 64) as f64 / rounds as f64 / ns
}

fn timed() -> f64 {
    let start = now();
    // SAFETY: register arithmetic on declared registers; `main` has asked the processor for the instruction.
    unsafe {
        asm!(
            "2:",
            ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "vaesenc zmm\\n, zmm\\n, zmm16",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            turns = inout(reg) TURNS => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            options(nomem, nostack),
        );
    }
    (now() - start) as f64
}
