//! The vectors of `VOLUME.md`.

use crate::format::Format;
use crate::native::Native;
use crate::volume::Volume;
use bywash_client::{Client, Config};
use bywash_core::SecretBytes;
use std::os::fd::AsFd;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_specification_has_what_is_computed() {
    let specification = include_str!("../VOLUME.md");
    let mut text = b"BYWASHVL\x01\0\x01\0\x10\0\0\0".to_vec();
    text.extend(0..32);
    let volume = Volume::parse(SecretBytes::from(&text[..])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(crate::native::FOLDER_FILE), [0; 16]).unwrap();
    let root = crate::open_root(folder.path()).unwrap();
    let client = Client::new(Config { socket: Some("none".into()), ..Config::default() });
    let native = Native::new(&client, &volume, root.as_fd(), false).unwrap();
    let identity: [u8; 16] = core::array::from_fn(|at| 0x40 + at as u8);
    let long = native.seal_name(&identity, &[b'a'; 160]).unwrap();
    let values = [
        ("key `files`", hex(&volume.key("files").unwrap())),
        ("key `names`", hex(&volume.key("names").unwrap())),
        ("name `a`", native.seal_name(&identity, b"a").unwrap().name.into_string().unwrap()),
        ("name of 160 `a`", long.name.into_string().unwrap()),
        ("attribute `user.a`", native.seal_attribute_name(b"user.a").unwrap().into_string().unwrap()),
    ];
    let missing: Vec<_> =
        values.iter().map(|(what, value)| format!("| {what} | `{value}` |")).filter(|line| !specification.contains(line)).collect();
    assert!(missing.is_empty(), "VOLUME.md lacks\n{}", missing.join("\n"));
}
