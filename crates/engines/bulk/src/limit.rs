//! What the processor's AES unit can do at most.

use std::arch::asm;
use std::time::Duration;

/// Turns of the loop, each of which starts 16 rounds of 64 bytes.
const TURNS: u64 = 10_000;
/// Bytes that go through one round in the loop.
const BYTES: u64 = TURNS * 16 * 64;

/// Bytes that can go through one AES round in a nanosecond if nothing else is done: the fastest of some loops of independent `vaesenc` on
/// 512-bit registers, by the clock given. A cipher of `n` rounds can do an `n`-th of that; `None` on a processor without the instruction.
pub fn round_bytes_per_ns(now: impl Fn() -> Duration) -> Option<f64> {
    crate::is_supported().then(|| {
        let ns = |_| timed(&now).as_nanos() as f64;
        BYTES as f64 / (0..20).map(ns).fold(f64::INFINITY, f64::min).max(1.0)
    })
}

fn timed(now: impl Fn() -> Duration) -> Duration {
    let begun = now();
    // SAFETY: register arithmetic on declared registers; the caller has asked the processor for the instruction.
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
    now() - begun
}
