//! The suite that every engine passes, with lanes where the processor has them, and without.

use bywash_engine_cpu::CpuEngine;
#[cfg(target_arch = "x86_64")]
use bywash_engine_cpu::Path;

bywash_conformance::suite!(CpuEngine::new());

mod without_lanes {
    bywash_conformance::suite!(super::CpuEngine::without_lanes());
}

/// As on processors without 512-bit registers; where one lacks a path, its library's.
#[cfg(target_arch = "x86_64")]
mod on_paths {
    use super::{CpuEngine, Path};

    fn engine(path: Path) -> CpuEngine {
        match path.is_supported() {
            true => CpuEngine::on_path(path),
            false => {
                println!("skipped: {path:?}, which this processor has not");
                CpuEngine::without_lanes()
            }
        }
    }

    mod vaes_256 {
        bywash_conformance::suite!(super::engine(super::Path::Vaes256));
    }

    mod aes_ni {
        bywash_conformance::suite!(super::engine(super::Path::AesNi));
    }
}
