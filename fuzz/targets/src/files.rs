//! Encrypted files: their headers, and what follows.

use bywash_client::{Client, Config};
use bywash_files::armor::Armor;
use bywash_files::power::World;
use bywash_files::ssh::SshKey;
use bywash_files::{Aead, Container, FileKeys, Header, Identity, KEY_BYTES, Keyring, Lock, Recipient, armor, fsck, new_file};
use std::io::{Read, Write};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];
static CLIENT: LazyLock<Client> = LazyLock::new(|| Client::new(Config::default()));

/// A file from anybody. What opens is read as far as it goes, and what is read whole has no damage.
pub fn encrypted_file(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    assert_eq!(Header::parse(header.bytes()).expect("its own bytes"), header);
    let mut keyring = Keyring::new();
    keyring.add_key_file(&KEY);
    let Ok(keys) = keyring.open(&header) else { return };
    let again = || FileKeys::new(keys.file_key().clone(), *header.salt()).expect("a file key");
    let world = World::new(b"");
    let disk = world.open("file");
    disk.write_at(bytes, 0).expect("there is room");
    let mut found = 0;
    let count = |_| {
        found += 1;
        std::ops::ControlFlow::Continue(())
    };
    let checked = fsck::check(&CLIENT, &header, again(), &*disk, count).expect("an engine");
    assert_eq!(checked.damaged, found);
    let saved = world.open("saved");
    let (of_saved, runs) = fsck::salvage(&CLIENT, &header, again(), &*disk, &*saved, &AtomicU64::new(0)).expect("room for a text");
    assert_eq!((of_saved, runs.iter().map(|run| run.chunks).sum()), (checked, found));
    // Another lock, and the file goes on being what it is.
    if let Ok(other) = header.with_slots(&again(), &[0], &[&Lock::key_file(&[9; KEY_BYTES])]) {
        assert!(other.is_authentic(&keys) && Header::parse(other.bytes()).expect("its own bytes") == other);
    }
    let Ok(container) = Container::open(&CLIENT, &header, again(), disk, &*world.journals()) else {
        assert!(found > 0, "what does not open is damaged");
        return;
    };
    let mut text = vec![0; usize::try_from(container.len()).expect("no longer than the file")];
    assert!(text.len() < bytes.len());
    assert_eq!(container.read_at(&mut text, 0).is_ok(), found == 0);
}

/// An encrypted file as text: what reads as bytes becomes text again that reads as the same.
pub fn armor(bytes: &[u8]) {
    let read = |text: &[u8]| {
        let mut decoded = Vec::new();
        let read = armor::reader(text).and_then(|mut reader| reader.read_to_end(&mut decoded));
        read.map(|_| decoded)
    };
    let Ok(decoded) = read(bytes) else { return };
    let mut text = Vec::new();
    let mut armor = Armor::new(&mut text);
    armor.write_all(&decoded).and_then(|()| armor.finish()).expect("memory");
    assert!(armor::is_armored(&text[..]) && read(&text).expect("its own text") == decoded);
}

/// A line that is meant as a recipient, as others send them: what is taken can be encrypted for, and written again. And an SSH private key.
pub fn recipient(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    drop(SshKey::parse(text).map(|key| key.recipient().is_ok()));
    let Ok(recipient) = text.parse::<Recipient>() else { return };
    assert_eq!(recipient.to_string().parse::<Recipient>().expect("its own text"), recipient);
    // A key of a small order is refused only here.
    drop(Lock::recipient(&recipient));
}

pub(crate) fn recipient_seeds() -> Vec<Vec<u8>> {
    let made = [false, true].map(|hybrid| Identity::generate(hybrid).expect("randomness").recipient().to_string().into_bytes());
    let ssh: [&[u8]; 3] = [
        include_bytes!("../../../crates/interfaces/files/tests/ssh/id_ed25519.pub"),
        include_bytes!("../../../crates/interfaces/files/tests/ssh/id_ed25519"),
        include_bytes!("../../../crates/interfaces/files/tests/ssh/encrypted"),
    ];
    made.into_iter().chain(ssh.map(<[u8]>::to_vec)).collect()
}

pub(crate) fn armor_seeds() -> Vec<Vec<u8>> {
    let seed = |bytes: Vec<u8>| {
        let mut text = Vec::new();
        let mut armor = Armor::new(&mut text);
        armor.write_all(&bytes).and_then(|()| armor.finish()).expect("memory");
        text
    };
    seeds().into_iter().map(seed).collect()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let sizes = [0, 100, 4096, 9000];
    let seed = |len: usize| {
        let locks = [Lock::key_file(&KEY), Lock::key_file(&[8; KEY_BYTES])];
        let (keys, slots) = new_file(&locks).expect("randomness");
        let header = Header::new(Aead::Aes256Gcm, 4096, slots, &keys).expect("a header");
        let world = World::new(b"");
        let container = Container::create(&CLIENT, &header, keys, world.open("file"), world.journals()).expect("a file");
        container.write_at(&vec![1; len], 0).and_then(|()| container.close()).expect("there is room");
        world.bytes("file").expect("a file")
    };
    sizes.map(seed).to_vec()
}
