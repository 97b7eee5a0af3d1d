//! A child of fork and the device that its parent opened, by what Vulkan finds here.
//!
//! One test alone in its process: a fork copies one thread only.

use bywash_core::{Algorithm, Data, Direction, Engine, Error, HostMemory, Key, Keyed, Operation, Result, SessionParams};
use bywash_engine_gpu::{Backend, GpuEngine};
use core::ffi::c_int;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn alarm(seconds: u32) -> u32;
    fn _exit(status: c_int) -> !;
}

const LEN: usize = 300_000;

fn open(engine: &GpuEngine) -> Result<Box<dyn Keyed>> {
    engine.open(&SessionParams::new(Algorithm::Aes256Ctr, Key::Symmetric((&[1; 32]).into()))?)
}

fn encrypt(keyed: &dyn Keyed, text: &mut [u8]) -> Result<usize> {
    keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &[2; 16], aad: &[], data: Data::InPlace(text), tag: &mut [] })
}

/// What is wrong with a child's life, by number.
fn child(engine: GpuEngine, keyed: Box<dyn Keyed>, sealed: &[u8], mut inherited: HostMemory) -> c_int {
    let is_refused = |outcome: Result<usize>| {
        outcome.is_err_and(|error| matches!(&error, Error::EngineFailed { .. }) && error.to_string().contains("before a fork"))
    };
    // From memory that is copied, and from memory that its parent imported.
    if !is_refused(encrypt(&*keyed, &mut [0; LEN])) || !is_refused(encrypt(&*keyed, &mut inherited)) {
        return 1;
    }
    if !is_refused(open(&engine).map(|_| 0)) {
        return 2;
    }
    drop((engine, keyed, inherited));
    let Ok(own) = Backend::Vulkan.open() else { return 3 };
    let mut text = HostMemory::zeroed(LEN);
    if !open(&own).is_ok_and(|keyed| encrypt(&*keyed, &mut text) == Ok(LEN)) || text[..] != *sealed {
        return 4;
    }
    42
}

#[test]
fn a_child_opens_its_own_and_leaves_its_parents_alone() {
    let engine = match Backend::Vulkan.open() {
        Ok(engine) => engine,
        Err(absent) => return eprintln!("skipped: {}", absent.reason),
    };
    let keyed = open(&engine).unwrap();
    let (mut sealed, mut memory) = (vec![0; LEN], HostMemory::zeroed(LEN));
    assert_eq!([encrypt(&*keyed, &mut sealed), encrypt(&*keyed, &mut memory)], [Ok(LEN), Ok(LEN)]);
    assert!(memory[..] == sealed);
    // SAFETY: the child runs the function alone and leaves by `_exit`, which runs no destructor of the parent's.
    let process = unsafe { fork() };
    if process == 0 {
        // SAFETY: ends this process after a minute.
        unsafe { alarm(60) };
        let status = child(engine, keyed, &sealed, memory);
        // SAFETY: ends this process at once.
        unsafe { _exit(status) };
    }
    let mut status = 0;
    // SAFETY: our own child, and room for its status.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    assert_eq!((status & 0x7f, status >> 8), (0, 42), "the signal and the number of what is wrong in the child");
    let mut again = HostMemory::zeroed(LEN);
    assert_eq!([encrypt(&*keyed, &mut again), encrypt(&*keyed, &mut memory)], [Ok(LEN), Ok(LEN)], "the parent goes on");
    assert!(again[..] == sealed && memory.iter().all(|byte| *byte == 0));
}
