//! What the processor's multipliers can do at most.

use crate::fastest;
use std::arch::asm;
use std::fmt;

/// Instructions of one turn of each loop below.
const BLOCK: f64 = 16.0;
const TURNS: u64 = 10_000;

/// The cost of the multiply-and-add of 52 bits in eight lanes, in nanoseconds: it rises and falls with the clock, like the kernels.
pub(crate) struct Processor {
    /// From one to the next of independent ones: the reciprocal of the throughput.
    pub(crate) apart: f64,
    /// From operand to result.
    latency: f64,
}

impl Processor {
    pub(crate) fn measure() -> Self {
        let [apart, latency] = fastest([&mut independent, &mut dependent]).map(|turn| turn / (TURNS as f64 * BLOCK));
        Self { apart, latency }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { apart, latency } = self;
        write!(f, "vpmadd52 of 512 bits: one each {apart:.3} ns, result after {latency:.3} ns ({:.1} in flight)", latency / apart)
    }
}

/// Sixteen accumulators.
fn independent() {
    // SAFETY: register arithmetic on declared registers; `main` has asked the processor for the instruction.
    unsafe {
        asm!(
            "2:",
            ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "vpmadd52luq zmm\\n, zmm16, zmm17",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            turns = inout(reg) TURNS => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            options(nomem, nostack),
        );
    }
}

/// One accumulator.
fn dependent() {
    // SAFETY: as above.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "vpmadd52luq zmm0, zmm16, zmm17",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            turns = inout(reg) TURNS => _,
            out("zmm0") _,
            options(nomem, nostack),
        );
    }
}
