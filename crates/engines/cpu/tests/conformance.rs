//! The suite that every engine passes, with lanes where the processor has them, and without.

use bywash_engine_cpu::CpuEngine;

bywash_conformance::suite!(CpuEngine::new());

mod without_lanes {
    bywash_conformance::suite!(super::CpuEngine::without_lanes());
}
