//! The suite that every engine passes.

bywash_conformance::suite!(bywash_engine_cpu::CpuEngine::new());
