//! The calls of the driver, without a GPU: `g++` compiles functions that stand in for `libcuda`'s, keep a thread's contexts as it does, and refuse whatever needs one where there is none.

use super::functions::{Driver, NOT_READY};
use super::*;
use crate::device::{Launch, Lies, Transfer, Waited};
use crate::engine::GpuEngine;
use bywash_core::HostMemory;
use libloading::Library;
use std::process::Command;

const SOURCE: &str = r#"
#include <cstdlib>
#include <cstddef>
typedef unsigned int u;
static thread_local void *stack[16];
static thread_local int depth;
static int queried = 0, calls = 0;
#define CURRENT() do { calls++; if (!depth) return 201; } while (0)
extern "C" {
int test_depth() { return depth; }
int test_calls() { return calls; }
int test_queried(int status) { queried = status; return 0; }
int cuInit(u) { return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int) { *d = 0; return 0; }
int cuDeviceGetName(char *, int, int) { return 0; }
int cuDeviceGetAttribute(int *v, int, int) { *v = 1; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int) { *c = &queried; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { calls++; for (int i = 0; i < depth; i++) if (stack[i] == &queried) abort(); return 0; }
int cuCtxPushCurrent_v2(void *c) { if (depth == 16) return 2; stack[depth++] = c; return 0; }
int cuCtxPopCurrent_v2(void **c) { CURRENT(); *c = stack[--depth]; return 0; }
int cuModuleLoadData(void **m, const void *code) { CURRENT(); if (*(const char *)code != 0) return 200; *m = &depth; return 0; }
int cuModuleUnload(void *) { CURRENT(); return 0; }
int cuModuleGetFunction(void **, void *, const void *) { CURRENT(); return 0; }
int cuMemAlloc_v2(unsigned long long *a, size_t) { CURRENT(); *a = 4096; return 0; }
int cuMemFree_v2(unsigned long long) { CURRENT(); return 0; }
int cuMemHostAlloc(void **m, size_t n, u) { CURRENT(); *m = aligned_alloc(4096, (n + 4095) / 4096 * 4096); return 0; }
int cuMemFreeHost(void *m) { CURRENT(); free(m); return 0; }
int cuMemHostRegister_v2(void *, size_t, u) { CURRENT(); return 0; }
int cuMemHostUnregister(void *) { CURRENT(); return 0; }
int cuStreamCreate(void **s, u) { CURRENT(); *s = &depth; return 0; }
int cuStreamDestroy_v2(void *) { CURRENT(); return 0; }
int cuStreamQuery(void *) { CURRENT(); return queried; }
int cuMemcpyHtoDAsync_v2(unsigned long long, const void *, size_t, void *) { CURRENT(); return 0; }
int cuMemcpyDtoHAsync_v2(void *, unsigned long long, size_t, void *) { CURRENT(); return 0; }
int cuMemsetD8Async(unsigned long long, unsigned char, size_t, void *) { CURRENT(); return 0; }
int cuLaunchKernel(void *, u, u, u, u, u, u, u, void *, void **, void **) { CURRENT(); return 0; }
int cuGetErrorString(int, const char **text) { *text = "an error"; return 0; }
}
"#;

/// A device of those functions, and the library once more to ask it; `None` without a compiler.
fn stand_in(test: &str) -> Option<(Cuda, Library)> {
    let (context, library) = stand_in_with(test, vec![Ok(vec![0])])?;
    Some((Cuda { context: Arc::new(context.unwrap()), layout: Layout::new(64 << 10), streams: 2 }, library))
}

/// What becomes of a device for which there are these codes, of which the driver takes those that begin with 0.
fn stand_in_with(test: &str, codes: Vec<Result<Vec<u8>, String>>) -> Option<(Result<Context, String>, Library)> {
    let folder = std::env::temp_dir().join(format!("bywash-driver-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("driver.cpp"), SOURCE).unwrap();
    let arguments = ["-std=c++17", "-fPIC", "-shared", "driver.cpp", "-o", "driver.so"];
    let Ok(output) = Command::new("g++").args(arguments).current_dir(&folder).output() else {
        eprintln!("skipped: g++ is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: it has no initialisers, and the functions' types are those of cuda.h.
    let (driver, library) = unsafe {
        let load = || Library::new(folder.join("driver.so")).unwrap();
        (Driver::of(load(), "driver.so").unwrap(), load())
    };
    std::fs::remove_dir_all(&folder).unwrap();
    Some((Context::of(driver, 0, "stand-in".into(), codes.into_iter()), library))
}

/// What one of the library's own functions says.
fn ask(library: &Library, name: &str) -> c_int {
    // SAFETY: such functions take nothing.
    unsafe { library.get::<unsafe extern "C" fn() -> c_int>(name).unwrap()() }
}

/// What a stream says from now on of what is under way.
fn answer(library: &Library, status: c_int) {
    // SAFETY: the function's type.
    unsafe { library.get::<unsafe extern "C" fn(c_int) -> c_int>("test_queried").unwrap()(status) };
}

fn launch(imported: bool) -> Launch {
    let host = if imported { Lies::Imported { handle: 0, offset: 0, computes: false } } else { Lies::Staged };
    let inputs = vec![Transfer { at: 0, bytes: 16, host }];
    Launch { control: 4, text: 16, inputs, outputs: Vec::new(), sums: 0..0, scratch: 0..0, steps: Vec::new() }
}

/// Of several releases of NVRTC one may not know the device, and the driver may not know another's code.
#[test]
fn what_one_compiler_does_not_do_the_next_one_is_asked_for() {
    let (unknown, newer, good) = (|| Err("NVRTC: error 5".to_owned()), || Ok(vec![1]), || Ok(vec![0]));
    for (place, codes) in [vec![unknown(), good()], vec![newer(), good()], vec![good(), unknown()]].into_iter().enumerate() {
        let Some((context, library)) = stand_in_with(&format!("codes-{place}"), codes) else { return };
        assert!(context.is_ok_and(|context| !context.module.is_null()), "{place}");
        assert_eq!(ask(&library, "test_depth"), 0);
    }
    let told = |test, codes| stand_in_with(test, codes).and_then(|(context, _)| context.err()).unwrap();
    assert_eq!(told("none", vec![]), "libnvrtc.so cannot be loaded");
    assert_eq!(told("all", vec![unknown(), newer(), unknown()]), "NVRTC: error 5; cuModuleLoadData: error 200, an error");
}

/// A caller's thread may use CUDA for itself, and has the context that it had, or none.
#[test]
fn a_thread_keeps_the_context_that_it_had() {
    let Some((cuda, library)) = stand_in("contexts") else { return };
    let depth = || ask(&library, "test_depth");
    assert_eq!(depth(), 0, "opened");
    let mut stream = cuda.stream().unwrap();
    let memory = HostMemory::zeroed(100_000);
    let region = bywash_core::memory::region(&memory).unwrap();
    let window = cuda.import(&region);
    assert!(window.is_some() && depth() == 0);
    stream.start(&launch(false)).unwrap();
    assert_eq!((stream.wait(), depth()), (Ok(Waited::Ended), 0));
    stream.start_copies(true, 2).unwrap();
    assert_eq!((stream.wait(), depth()), (Ok(Waited::Ended), 0));
    let took = stream.resident(&launch(false), 2, &std::sync::Barrier::new(1));
    assert!(took.is_ok() && depth() == 0);
    answer(&library, 700);
    stream.start(&launch(false)).unwrap();
    assert!(stream.wait().is_err() && depth() == 0);
    drop((stream, window));
    assert_eq!(depth(), 0, "closed");
}

/// The context is no thread's any more when it is released, which the stand-in looks at.
#[test]
fn all_is_given_back() {
    let Some((cuda, library)) = stand_in("end") else { return };
    drop((cuda.stream().unwrap(), cuda));
    assert_eq!(ask(&library, "test_depth"), 0);
}

#[test]
fn what_reaches_memory_of_others_is_late_and_hangs_nothing() {
    let Some((cuda, library)) = stand_in("late") else { return };
    let mut stream = stream::CudaStream::new(cuda.context.clone(), cuda.layout).unwrap();
    stream.start(&launch(true)).unwrap();
    answer(&library, NOT_READY);
    stream.hurry();
    assert_eq!([stream.wait(), stream.wait()], [Ok(Waited::Late), Ok(Waited::Late)]);
    assert!(!cuda.context.hangs.load(Ordering::Relaxed));
    answer(&library, 0);
    assert_eq!(stream.wait(), Ok(Waited::Ended));
}

#[test]
fn a_child_of_fork_asks_the_driver_for_nothing() {
    let Some((cuda, library)) = stand_in("fork") else { return };
    let (stream, engine) = (cuda.stream().unwrap(), GpuEngine::new("gpu-inherited", Box::new(cuda)));
    engine.0.give_back(stream);
    let calls = ask(&library, "test_calls");
    let mut engine = Some(engine);
    assert!(crate::tests::in_a_child(|| {
        let is_refused = engine.as_ref().is_some_and(|engine| engine.copies(1).is_err() && engine.limits().is_none());
        drop(engine.take());
        is_refused && ask(&library, "test_calls") == calls
    }));
    drop(engine);
    assert!(ask(&library, "test_calls") > calls, "the parent gives back what it opened");
}
