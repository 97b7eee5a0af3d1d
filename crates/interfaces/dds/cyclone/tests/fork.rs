//! A forked child has its parent's keys: neither its nonces nor its random bytes may be the parent's.
#![allow(clippy::undocumented_unsafe_blocks, reason = "fork and pipe, in a test with one thread")]

use bywash_dds::{BLOCKS_MAX, KeyMaterial, Kind, Sender, random};

/// Nonces and random bytes, as this process would use them.
fn drawn(sender: &Sender) -> Vec<u8> {
    let nonces = (0..4).flat_map(|_| sender.next(100).unwrap().0.iv());
    nonces.chain(random::bytes::<48>().unwrap()).collect()
}

#[test]
fn a_child_draws_its_own() {
    let sender = Sender::new(KeyMaterial::generate(Kind::Aes256Gcm, 1).unwrap(), BLOCKS_MAX).unwrap();
    // So that there is a store, and a session under way.
    drawn(&sender);
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    let mine = drawn(&sender);
    if child == 0 {
        let written = unsafe { libc::write(ends[1], mine.as_ptr().cast(), mine.len()) };
        unsafe { libc::_exit(i32::from(written != mine.len() as isize)) };
    }
    let mut theirs = vec![0; mine.len()];
    let read = unsafe { libc::read(ends[0], theirs.as_mut_ptr().cast(), theirs.len()) };
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!((read, status), (mine.len() as isize, 0));
    for (place, (mine, theirs)) in mine.chunks(12).zip(theirs.chunks(12)).enumerate() {
        assert_ne!(mine, theirs, "{place}");
    }
}
