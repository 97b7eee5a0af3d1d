//! Intel's ipsec-mb 1.x, by the functions for processors with VAES: those that its manager calls there, without its indirection.

use crate::rivals::{Pointer, symbol};
use crate::{Mode, Work};
use libloading::Library;
use std::hint::black_box;
use std::ptr::null;
use std::sync::OnceLock;

pub(crate) fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: the library's initialisers have no requirements.
    LIBRARY.get_or_init(|| unsafe { Library::new("libIPSec_MB.so.1").ok() }).as_ref()
}

/// None where the library is not installed, or has no code for the mode.
pub(crate) fn of(mode: Mode, key: &[u8]) -> Option<Work> {
    match mode {
        Mode::Gcm => gcm(key),
        Mode::Ctr | Mode::CbcDecrypt | Mode::CbcStreams => burst(mode, key),
        _ => None,
    }
}

/// `IMB_JOB` of 1.3: what a cipher without a hash reads, and room for the rest.
#[repr(C)]
#[derive(Clone, Copy)]
struct Job {
    encrypt: *const Room,
    decrypt: *const Room,
    key_len: u64,
    source: *const u8,
    destination: *mut u8,
    offset: u64,
    len: u64,
    hash: [u64; 2],
    iv: *const u8,
    iv_len: u64,
    rest: [u64; 14],
}

/// Whole blocks of a stream that are side by side with others, whose lengths the library counts in 16 bits.
const STREAM_MAX: usize = (1 << 16) - 16;

/// A burst of jobs of one mode under one key: the library's way to compute many without a queue.
fn burst(mode: Mode, key: &[u8]) -> Option<Work> {
    type Expand = unsafe extern "C" fn(*const u8, *mut Room, *mut Room);
    type Burst = unsafe extern "C" fn(Pointer, *mut Job, u32, u32, u32, u64) -> u32;
    const ENCRYPT: u32 = 1;
    const DECRYPT: u32 = 2;
    let (number, direction) = match mode {
        Mode::Ctr => (2, ENCRYPT),
        Mode::CbcDecrypt => (1, DECRYPT),
        _ => (1, ENCRYPT),
    };
    let library = library()?;
    // SAFETY: the types are those of intel-ipsec-mb.h; the manager lives as long as the program.
    let (expand, run, manager) = unsafe {
        let allocate: unsafe extern "C" fn(u64) -> Pointer = symbol(library, c"alloc_mb_mgr");
        let initialise: unsafe extern "C" fn(Pointer) = symbol(library, c"init_mb_mgr_avx512");
        let expand: Expand = symbol(library, if key.len() == 16 { c"aes_keyexp_128_avx512" } else { c"aes_keyexp_256_avx512" });
        let run: Burst = symbol(library, c"submit_cipher_burst_nocheck_avx512_t2");
        let manager = allocate(0);
        initialise(manager);
        (expand, run, manager)
    };
    let (mut encrypt, mut decrypt) = (Box::new(Room([0; 8192])), Box::new(Room([0; 8192])));
    // SAFETY: the key has the function's length; the room suffices.
    unsafe { expand(key.as_ptr(), &mut *encrypt, &mut *decrypt) };
    let (key_len, iv) = (key.len() as u64, Box::new([1u8; 16]));
    let mut texts = vec![Vec::new(); if mode == Mode::CbcStreams { mode.messages() } else { 0 }];
    Some(Box::new(move |buffer| {
        texts.iter_mut().for_each(|text| text.resize(buffer.len(), 0));
        let lone = texts.is_empty().then_some(buffer.as_mut_ptr());
        let starts: Vec<*mut u8> = lone.into_iter().chain(texts.iter_mut().map(|text| text.as_mut_ptr())).collect();
        let most = if mode == Mode::CbcStreams { STREAM_MAX } else { buffer.len() };
        for at in (0..buffer.len()).step_by(most.max(1)) {
            let job = |&start: &*mut u8| {
                let text = start.wrapping_add(at);
                Job {
                    encrypt: &raw const *encrypt,
                    decrypt: &raw const *decrypt,
                    key_len,
                    source: text,
                    destination: text,
                    offset: 0,
                    len: (buffer.len() - at).min(most) as u64,
                    hash: [0; 2],
                    // What goes on is chained to the block before.
                    iv: if at == 0 { iv.as_ptr() } else { text.wrapping_sub(16) },
                    iv_len: 16,
                    rest: [0; 14],
                }
            };
            let mut jobs: Vec<Job> = starts.iter().map(job).collect();
            // SAFETY: the jobs are as the library's header has them, and read and write `len` bytes of their texts.
            let done = unsafe { run(manager, jobs.as_mut_ptr(), jobs.len() as u32, number, direction, key_len) };
            assert_eq!(done as usize, jobs.len(), "a burst is done when the call returns");
            black_box(&mut jobs);
        }
    }))
}

/// A place for the library's key data and contexts, larger and better aligned than they ask.
#[repr(align(64))]
struct Room(#[allow(dead_code, reason = "the library's")] [u8; 8192]);

/// The function for processors with VAES, without the manager's indirection.
fn gcm(key: &[u8]) -> Option<Work> {
    type Prepare = unsafe extern "C" fn(*const u8, *mut Room);
    type Encrypt = unsafe extern "C" fn(*const Room, *mut Room, *mut u8, *const u8, u64, *const u8, *const u8, u64, *mut u8, u64);
    let names = match key.len() {
        16 => (c"aes_gcm_pre_128_vaes_avx512", c"aes_gcm_enc_128_vaes_avx512"),
        _ => (c"aes_gcm_pre_256_vaes_avx512", c"aes_gcm_enc_256_vaes_avx512"),
    };
    let library = library()?;
    // SAFETY: the types are those of intel-ipsec-mb.h.
    let (prepare, encrypt): (Prepare, Encrypt) = unsafe { (symbol(library, names.0), symbol(library, names.1)) };
    let (mut data, mut context) = (Box::new(Room([0; 8192])), Box::new(Room([0; 8192])));
    // SAFETY: the key has the function's length; the room suffices.
    unsafe { prepare(key.as_ptr(), &mut *data) };
    let (iv, mut tag) = ([1u8; 12], [0u8; 16]);
    Some(Box::new(move |buffer| {
        let (text, len) = (buffer.as_mut_ptr(), buffer.len() as u64);
        // SAFETY: the function reads 12 bytes of IV, and reads and writes `len` bytes of text and 16 of tag.
        unsafe { encrypt(&*data, &mut *context, text, text, len, iv.as_ptr(), null(), 0, tag.as_mut_ptr(), 16) };
        black_box(&mut tag);
    }))
}
