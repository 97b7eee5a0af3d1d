//! The CUDA kernels' text as C++ on the host, under the whole engine and the conformance suite: their arithmetic and the launches' layout are tested where no GPU is.
//!
//! `g++` compiles `kernels.cu` with `BYWASH_TWIN` defined, for which `dialect.h` has other words; what remains untested are CUDA's own words in it.

use super::compile::{INCLUDED, NAMES, SOURCE};
use crate::device::{Device, Kernel, Launch, Layout, Lies, Stream, Transfer, Waited, Window};
use crate::engine::GpuEngine;
use bywash_conformance::{Area, Options};
use bywash_core::memory::{Imported, Region};
use libloading::Library;
use std::process::Command;
use std::sync::Arc;

type Lanes = unsafe extern "C" fn(*const u32, *const u8, *mut u8, u32, u32, u32);

pub(crate) struct Twin {
    library: Arc<Library>,
    layout: Layout,
}

/// Compiles it; the reason if there is no compiler.
pub(crate) fn twin(text: usize) -> Result<Twin, String> {
    let folder = std::env::temp_dir().join(format!("bywash-twin-{}-{text}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in INCLUDED.iter().chain([&("kernels.cu", SOURCE)]) {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let library = folder.join("twin.so");
    let arguments =
        ["-std=c++17", "-O1", "-Wall", "-Wno-unused", "-fPIC", "-shared", "-DBYWASH_TWIN", "-x", "c++", "kernels.cu", "-o", "twin.so"];
    let output = Command::new("g++").args(arguments).current_dir(&folder).output().map_err(|error| format!("g++: {error}"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: it has no initialisers.
    let library = unsafe { Library::new(library) }.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(Twin { library: Arc::new(library), layout: Layout::new(text) })
}

struct TwinStream {
    library: Arc<Library>,
    control: Vec<u32>,
    input: Vec<u128>,
    output: Vec<u128>,
}

impl Device for Twin {
    fn describe(&self) -> String {
        "CUDA's kernels as C++ on the host".into()
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn streams(&self) -> usize {
        2
    }

    fn imports(&self) -> bool {
        true
    }

    fn import(&self, region: &Region) -> Option<Window> {
        Some(Window { handle: region.address() as u64, computes: false, hold: Box::new(Nothing) })
    }

    fn stream(&self) -> Result<Box<dyn Stream>, String> {
        let Layout { text, control, .. } = self.layout;
        let blocks = |bytes: usize| vec![0; bytes.div_ceil(16)];
        Ok(Box::new(TwinStream {
            library: self.library.clone(),
            control: vec![0; control],
            input: blocks(text),
            output: blocks(self.layout.output()),
        }))
    }
}

/// A region is reached by its address, and nothing else is needed.
struct Nothing;

impl Imported for Nothing {
    fn hangs(&self) -> bool {
        false
    }
}

/// Where the bytes lie that a device would copy by itself; `None` if they are staged.
fn elsewhere(transfer: &Transfer) -> Option<*mut u8> {
    match transfer.host {
        Lies::Staged => None,
        Lies::Imported { handle, offset, .. } => Some(core::ptr::with_exposed_provenance_mut(handle as usize + offset)),
    }
}

/// The bytes of numbers.
fn bytes(numbers: &mut [u128]) -> &mut [u8] {
    // SAFETY: every byte of a number is a byte.
    unsafe { core::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), 16 * numbers.len()) }
}

impl Stream for TwinStream {
    fn control(&mut self) -> &mut [u32] {
        &mut self.control
    }

    fn input(&mut self) -> &mut [u8] {
        bytes(&mut self.input)
    }

    fn output(&mut self) -> &mut [u8] {
        bytes(&mut self.output)
    }

    fn start(&mut self, launch: &Launch) -> Result<(), String> {
        for input in &launch.inputs {
            let to = &mut bytes(&mut self.input)[input.at..][..input.bytes];
            if let Some(from) = elsewhere(input) {
                // SAFETY: the region is borrowed with the text, and has these bytes.
                unsafe { from.copy_to(to.as_mut_ptr(), to.len()) };
            }
        }
        for step in &launch.steps {
            let (control, input, output) = (self.control.as_ptr(), self.input.as_ptr().cast(), self.output.as_mut_ptr().cast());
            // SAFETY: the function is the kernel's; records name places within the buffers, which is what is tested.
            unsafe {
                let lanes = self.library.get::<Lanes>(NAMES[step.kernel.index()].to_bytes()).unwrap();
                lanes(control, input, output, step.records, step.count, step.lanes);
            }
        }
        for output in &launch.outputs {
            let from = &bytes(&mut self.output)[output.at..][..output.bytes];
            if let Some(to) = elsewhere(output) {
                // SAFETY: as above.
                unsafe { to.copy_from(from.as_ptr(), from.len()) };
            }
        }
        self.control[..launch.control].fill(0);
        Ok(())
    }

    fn resident(&mut self, _: &Launch, _: u32, _: &std::sync::Barrier) -> Result<core::ops::Range<std::time::Instant>, String> {
        Err("a twin has no speed of its own".into())
    }

    fn start_copies(&mut self, _: bool, _: u32) -> Result<(), String> {
        Err("a twin has no speed of its own".into())
    }

    fn wait(&mut self) -> Result<Waited, String> {
        Ok(Waited::Ended)
    }

    fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
        (self.control.clone(), bytes(&mut self.output).to_vec())
    }
}

/// Streams of 8 KiB, so that nearly every text is cut; and of 1 MiB, for longer sums.
#[test]
fn the_kernels_pass_the_suite_as_cpp() {
    use Area::{AeadVectors, Aeads, Batches, CipherVectors, Ciphers, Counters, Forgeries};
    for (text, areas) in [(8 << 10, vec![CipherVectors, AeadVectors, Ciphers, Counters, Forgeries, Batches]), (1 << 20, vec![Aeads])] {
        let twin = match twin(text) {
            Ok(twin) => twin,
            Err(reason) => return eprintln!("skipped: {reason}"),
        };
        let engine = GpuEngine::new("gpu-twin", Box::new(twin));
        bywash_conformance::run(&engine, &Options { areas, ..Options::default() }).assert_passed();
    }
    assert_eq!(NAMES.len(), Kernel::ALL.len());
}
