//! Texts that are cut while others use them, without a kernel's mount.

use crate::native::Native;
use crate::node::ROOT;
use crate::tree::{Caller, Tree};
use crate::volume::{Options, Volume};
use crate::{mount, open_root};
use bywash_client::{Client, Config};
use bywash_files::Lock;
use core::mem::replace;
use std::os::fd::AsFd;
use std::sync::Arc;

const CHUNK: usize = 4096;
const CALLER: Caller = Caller { uid: 0, gid: 0 };

#[test]
fn who_reads_what_is_cut_meanwhile_reads_what_is_there_then() {
    let (client, folder) = (Client::new(Config { socket: Some("none".into()), ..Config::default() }), tempfile::tempdir().unwrap());
    let options = Options { chunk_size: CHUNK, ..Options::default() };
    let volume = Volume::init(&client, folder.path(), &[Lock::key_file(&[7; 32])], &options).unwrap();
    let root = open_root(folder.path()).unwrap();
    let native = Native::new(&client, &volume, root.as_fd(), false).unwrap();
    let tree = Tree::new(root, Arc::new(native), false, mount::TURN, 16).unwrap();

    let file = tree.create(CALLER, ROOT, b"file", 0o600, 1).unwrap();
    let node = tree.nodes.get(file.ino.0).unwrap();
    tree.with_file(&node, true, |file| file.write_at(&[1; 3 * CHUNK], 0)).unwrap();
    // Then its text is in the lower file alone.
    tree.release(&node);
    let (mut is_cut, mut text) = (false, [0; 3 * CHUNK]);
    let read = tree.with_file(&node, false, |file| {
        if !replace(&mut is_cut, true) {
            tree.set_len(&node, 0)?;
            tree.with_file(&node, true, |file| file.write_at(b"another", 0))?;
        }
        file.read_at(&mut text, 0)
    });
    assert_eq!(&text[..read.unwrap()], b"another");
    tree.end().unwrap();
}
