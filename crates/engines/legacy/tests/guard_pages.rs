//! Buffers between pages that may not be touched: a kernel that reads or writes one byte beside its buffer ends the test by a signal.

mod forms;

use bywash_legacy::des::{Des, Stream, TripleDes, encrypt_cbc_streams};
use bywash_legacy::modes::{Cbc, Ctr};
use bywash_legacy::{BlockCipher, Camellia, Rc6, Serpent, Twofish};
use forms::forms;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::null_mut;

const PAGE: usize = 4096;
/// More than a group of the widest kernel, and the blocks of some more.
const ROOM: usize = 3 * PAGE;

/// Room with a page on either side that may not be touched.
struct Guarded(*mut u8);

impl Guarded {
    fn new() -> Self {
        // SAFETY: a new mapping is nobody else's; the pages that are closed are within it.
        unsafe {
            let all = mmap_anonymous(null_mut(), ROOM + 2 * PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE).expect("memory");
            mprotect(all, PAGE, MprotectFlags::empty()).expect("the page before");
            mprotect(all.byte_add(PAGE + ROOM), PAGE, MprotectFlags::empty()).expect("the page after");
            Self(all.cast::<u8>().add(PAGE))
        }
    }

    /// So many bytes right before the page after the room, or right after the one before it.
    fn bytes(&mut self, len: usize, at_end: bool) -> &mut [u8] {
        assert!(len <= ROOM);
        let offset = if at_end { ROOM - len } else { 0 };
        // SAFETY: the room is mapped, and borrowed with its owner.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(offset), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nobody borrows any more.
        unsafe { munmap(self.0.sub(PAGE).cast(), ROOM + 2 * PAGE).expect("a mapping") }
    }
}

fn check<C: BlockCipher>(room: &mut Guarded) {
    let (key, iv) = (vec![7; C::KEYS[0]], vec![9; C::BLOCK]);
    for form in forms() {
        let cipher = C::with_form(&key, form).expect("a key");
        for blocks in (0..70).chain([255, 256, 257, 511, 512, 513, 600]) {
            for at_end in [false, true] {
                let data = room.bytes(blocks * C::BLOCK, at_end);
                cipher.encrypt_blocks(data);
                cipher.decrypt_blocks(data);
                Cbc::new(&iv).decrypt(&cipher, data);
                if blocks < 10 {
                    Cbc::new(&iv).encrypt(&cipher, data);
                }
                let part = blocks * C::BLOCK / 2 + blocks % C::BLOCK;
                Ctr::new(&iv).apply(&cipher, room.bytes(part, at_end));
            }
        }
    }
}

#[test]
fn nothing_beside_the_buffer_is_touched() {
    let mut room = Guarded::new();
    check::<Des>(&mut room);
    check::<TripleDes>(&mut room);
    check::<Serpent>(&mut room);
    check::<Twofish>(&mut room);
    check::<Camellia>(&mut room);
    check::<Rc6>(&mut room);
    for form in forms() {
        let key = Des::with_form(&[7; 8], form).expect("a key");
        for (blocks, at_end) in [(1, false), (1, true), (9, false), (9, true)] {
            let data = room.bytes(8 * blocks, at_end);
            encrypt_cbc_streams(&mut [Stream { key: &key, chained: [0; 8], data }]);
        }
    }
}
