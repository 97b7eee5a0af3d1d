//! Copies of messages read and write within what they were given. A process of its own: all the library's memory is between pages that may not be touched.

use bywash_core::{Algorithm, Data, Direction, Engine, Key, SessionParams, Stream};
use bywash_engine_cpu::CpuEngine;
use core::ffi::{c_char, c_int, c_void};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::null_mut;

const PAGE: usize = 4096;

/// Memory that ends where a page begins that may not be touched; its length stands a page before the one in which it begins.
extern "C" fn guarded(len: usize, _: *const c_char, _: c_int) -> *mut c_void {
    let room = len.next_multiple_of(PAGE);
    let all = PAGE + room + PAGE;
    // SAFETY: a new mapping is nobody else's; what is written, closed and given away is within it.
    unsafe {
        let Ok(map) = mmap_anonymous(null_mut(), all, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) else { return null_mut() };
        map.cast::<usize>().write(len);
        mprotect(map.byte_add(PAGE + room), PAGE, MprotectFlags::empty()).expect("the page after");
        // Structures are aligned; what is shorter has bytes alone, or is as long as it is aligned.
        let unused = if len < 16 { room - len } else { (room - len) / 16 * 16 };
        map.byte_add(PAGE + unused)
    }
}

/// Where the mapping begins, and the length of what was given.
fn origin(memory: *mut c_void) -> (*mut c_void, usize) {
    let map = ((memory as usize / PAGE - 1) * PAGE) as *mut c_void;
    // SAFETY: what `guarded` gave begins in the second page of its mapping, or, of no length, right behind that.
    (map, unsafe { map.cast::<usize>().read() })
}

extern "C" fn release(memory: *mut c_void, _: *const c_char, _: c_int) {
    let (map, len) = origin(memory);
    // SAFETY: the whole mapping, which its owner does not use any more.
    unsafe { munmap(map, len.next_multiple_of(PAGE) + 2 * PAGE).expect("a mapping") }
}

extern "C" fn replace(memory: *mut c_void, len: usize, file: *const c_char, line: c_int) -> *mut c_void {
    let new = guarded(len, file, line);
    if !memory.is_null() && !new.is_null() {
        // SAFETY: both have so many bytes, and are not the same.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(memory.cast(), origin(memory).1.min(len)) };
        release(memory, file, line);
    }
    new
}

fn tag(stream: &mut dyn Stream) -> [u8; 16] {
    stream.update(Data::InPlace(&mut [3; 40])).expect("text");
    stream.finish().expect("a tag")
}

#[test]
fn copies_have_room_for_every_iv() {
    // SAFETY: three functions that go together, before anything has been allocated.
    assert_eq!(unsafe { aws_lc_sys::CRYPTO_set_mem_functions(Some(guarded), Some(replace), Some(release)) }, 1);
    let params = SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric(vec![7; 32].into())).expect("a key");
    let keyed = CpuEngine::without_lanes().open(&params).expect("a session");
    for lens in [[128, 1, 16], [17, 1, 16], [17, 12, 17], [16, 1, 16], [64, 32, 128]] {
        let [longest, short, last] = lens.map(|len| vec![9; len]);
        let mut stream = keyed.stream(Direction::Encrypt, &longest).expect("a stream");
        stream.start(&short).expect("a shorter IV");
        let mut copy = stream.duplicate().expect("a copy");
        copy.start(&last).expect("a longer IV");
        let mut other = copy.duplicate().expect("a copy of the copy");
        let mut alone = keyed.stream(Direction::Encrypt, &last).expect("a stream");
        let expected = tag(&mut *alone);
        assert_eq!((tag(&mut *copy), tag(&mut *other)), (expected, expected), "{lens:?}");
    }
}
