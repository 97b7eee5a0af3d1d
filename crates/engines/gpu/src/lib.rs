//! AES and ChaCha20 on GPUs: those on the SoC, those on cards.
//!
//! What it is for: data that a processor without instructions for AES would take long over, data of a machine whose processor has other work
//! (takeda section 4.2: 2 % lost under load where the processor's own path loses 43 %), and many small files at once. It is not for a lone request of a
//! few kilobytes, for which a launch costs more than any processor's computing; the manager knows that from measurement.
//!
//! # How a batch travels
//!
//! 1. [`GpuEngine`] takes a batch of operations, of any sessions, algorithms and lengths. Each becomes a `Message`: what is needed once is computed on the host
//!    (`host`): the first counter, the mask of a tag, associated data.
//! 2. Texts are cut into parts and laid side by side into a stream's buffers (`launch`). A record of 16 words says of each part where it lies, under which key it is
//!    computed, and which lanes (invocations) of the launch are its own. So many small operations are one launch, and one large operation is spread over several streams.
//! 3. Kernels run in stages: sums of what is deciphered, ciphers, sums of what is enciphered, then the sums' sums, sixteen at a time.
//! 4. While a stream computes, the next is filled. Results are taken in order; the host appends the parts' sums and ends the tags.
//!
//! # What is secret
//!
//! No memory is indexed by a secret and nothing branches on one, on the device or on the host: AES is a circuit on bit planes, GHASH integer multiplications with holes,
//! Poly1305 limbs of 13 bits. Keys and the sums of lower levels are on the device for the time of a launch and zeroed by its
//! last commands, and so is all that a launch used of a card's own memory. The sums of parts, which reveal a hash's key to whoever knows the text, are zeroed in staging memory when they were taken. Texts stay
//! in staging memory until others take their place or the stream is closed. After a launch that failed, closing wipes staging memory; a device that hangs
//! keeps what it has.
//!
//! That is so in the kernels' text; what a driver's compiler makes of it is not looked at.
//!
//! # Back ends
//!
//! One text of arithmetic, `src/kernels/*.h`, is compiled as GLSL into SPIR-V, which is checked in (`src/vulkan/spirv`, made by `scripts/shaders`), as CUDA C when a device
//! is opened, and as C++ in tests. Vulkan and CUDA are loaded at run time; where one is missing, [`find`] says why.
#![warn(missing_docs)]

mod cuda;
mod device;
mod engine;
mod host;
#[cfg(test)]
mod imported;
mod launch;
mod measure;
mod message;
mod owner;
mod selftest;
mod session;
mod vulkan;

pub use engine::GpuEngine;
pub use measure::Resident;

use bywash_core::{Absent, Probe};
use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

/// What was found by a back end.
pub(crate) struct Found<D> {
    pub(crate) device: D,
    /// Whether it is a processor in a GPU's clothes.
    pub(crate) is_software: bool,
}

/// An interface to GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// CUDA: NVIDIA's GPUs.
    Cuda,
    /// Vulkan compute: GPUs of SoCs and cards of any maker.
    Vulkan,
}

impl Backend {
    /// All of them, the one that is preferred first.
    pub const ALL: [Self; 2] = [Self::Cuda, Self::Vulkan];

    /// The name of its engine.
    pub const fn engine(self) -> &'static str {
        match self {
            Self::Cuda => "gpu-cuda",
            Self::Vulkan => "gpu-vulkan",
        }
    }

    /// The best device of this back end, be it a software one.
    ///
    /// # Errors
    /// What is missing and how to mend it.
    pub fn open(self) -> Result<GpuEngine, Absent> {
        self.look(None).map(|(engine, _)| engine)
    }

    /// The same with other streams than are usual for the device: so many bytes of text, a multiple of 4096 and at most 64 MiB, in each of so many. For benchmarks.
    ///
    /// # Errors
    /// As [`open`](Self::open), and for sizes that cannot be.
    pub fn open_with(self, text: usize, streams: usize) -> Result<GpuEngine, Absent> {
        self.look(Some((text, streams))).map(|(engine, _)| engine)
    }

    fn look(self, streams: Option<(usize, usize)>) -> Result<(GpuEngine, bool), Absent> {
        let absent = |reason, remedy: &str| Absent { name: self.engine().into(), reason, remedy: Some(remedy.into()) };
        if cfg!(target_endian = "big") {
            return Err(absent("kernels have the bytes of little-endian hosts".into(), "another engine"));
        }
        if streams.is_some_and(|(text, streams)| !(4096..=64 << 20).contains(&text) || text % 4096 != 0 || streams == 0) {
            return Err(absent(
                format!("no streams of {streams:?}"),
                "ask for a multiple of 4096 bytes, at most 64 MiB, in one stream or more",
            ));
        }
        let (engine, is_software) = match self {
            Self::Cuda => {
                let found = cuda::Cuda::open(streams)
                    .map_err(|reason| absent(reason, "install NVIDIA's driver, and libnvrtc of its CUDA toolkit"))?;
                (GpuEngine::new(self.engine(), Box::new(found.device)), found.is_software)
            }
            Self::Vulkan => {
                let remedy = "apt-get install libvulkan1 and the GPU's driver (mesa-vulkan-drivers for most)";
                let found = vulkan::Vulkan::open(None, streams).map_err(|reason| absent(reason, remedy))?;
                (GpuEngine::new(self.engine(), Box::new(found.device)), found.is_software)
            }
        };
        selftest::check(&engine).map_err(|reason| {
            let device = bywash_core::Engine::describe(&engine);
            absent(format!("{device}: {reason}"), "install another version of the GPU's driver")
        })?;
        Ok((engine, is_software))
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
        })
    }
}

impl FromStr for Backend {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|backend| backend.to_string() == name).ok_or(())
    }
}

/// Every back end: what it found, or why nothing. A software device counts as none, for the processor is faster without it; [`Backend::open`] and [`best`] use it
/// all the same.
pub fn find() -> Vec<Probe> {
    let software = |engine: &GpuEngine| Absent {
        name: bywash_core::Engine::name(engine).into(),
        reason: format!("no GPU, only {}", bywash_core::Engine::describe(engine)),
        remedy: Some("install the GPU's driver; --engine gpu uses the software one, for tests".into()),
    };
    let look = |backend: Backend| match backend.look(None) {
        Ok((engine, true)) => Probe::Absent(software(&engine)),
        Ok((engine, false)) => Probe::Present(Arc::new(engine)),
        Err(absent) => Probe::Absent(absent),
    };
    Backend::ALL.into_iter().map(look).collect()
}

/// The best device of all back ends: a GPU before a software one.
///
/// # Errors
/// Why each back end has none, in one.
pub fn best() -> Result<GpuEngine, Absent> {
    let (mut software, mut reasons, mut remedies) = (None, Vec::new(), Vec::new());
    for backend in Backend::ALL {
        match backend.look(None) {
            Ok((engine, false)) => return Ok(engine),
            Ok((engine, true)) => software = software.or(Some(engine)),
            Err(absent) => {
                reasons.push(format!("{backend}: {}", absent.reason));
                remedies.extend(absent.remedy);
            }
        }
    }
    software.ok_or_else(|| Absent { name: "gpu".into(), reason: reasons.join("; "), remedy: Some(remedies.join("; or ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::c_int;

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: c_int) -> !;
    }

    /// What a child of fork says, which has a minute and must not panic: another thread may have had the lock of what it would write to.
    pub(crate) fn in_a_child(says: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child runs the closure alone and leaves by `_exit`, which runs no destructor of the parent's.
        let child = unsafe { fork() };
        if child == 0 {
            // SAFETY: ends this process after a minute; `_exit` at once.
            unsafe {
                alarm(60);
                _exit(if says() { 42 } else { 1 })
            };
        }
        let mut status = 0;
        // SAFETY: our own child, and room for its status.
        child > 0 && unsafe { waitpid(child, &raw mut status, 0) } == child && status >> 8 == 42
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (text, streams) in [(0, 1), (4095, 1), (4097, 1), (128 << 20, 1), (4096, 0)] {
            assert!(Backend::Vulkan.open_with(text, streams).is_err_and(|absent| absent.reason.contains("no streams of")));
        }
    }
}
