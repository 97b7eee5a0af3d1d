//! Who writes hears whether there is room for it, before it is in the file.

use bywash_client::{Client, Config};
use bywash_files::disk::{Disk, Journals};
use bywash_files::power::World;
use bywash_files::{Aead, Container, Header, Lock, Room, new_file};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

const CHUNK: usize = 4096;

fn create(disk: Arc<dyn Disk>, journals: Arc<dyn Journals>) -> Container {
    let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
    let header = Header::new(Aead::Aes256Gcm, CHUNK, slots, &keys).unwrap();
    Container::create(&Client::new(Config::default()), &header, keys, disk, journals).unwrap()
}

fn taken(file: &File) -> u64 {
    file.metadata().unwrap().blocks() * 512
}

#[test]
fn a_new_text_of_several_chunks_has_its_room_before_it_is_in_the_file() {
    let file = Arc::new(tempfile::tempfile().unwrap());
    if !Disk::reserve(&*file, 0..1).unwrap() {
        return eprintln!("skipped: the file system of {} reserves no room", std::env::temp_dir().display());
    }
    let container = create(file.clone(), World::new(&[]).journals());
    container.write_at(&[7; 10 * CHUNK], 0).unwrap();
    let before = taken(&file);
    assert!(before < 10 * CHUNK as u64, "it is in the file already: {before}");
    assert_eq!(container.reserve().unwrap(), Room::Had);
    let reserved = taken(&file);
    assert!(reserved >= 10 * CHUNK as u64, "{reserved}");
    container.finish().unwrap();
    assert_eq!(taken(&file), reserved, "it took more, or less, than it had");
    assert_eq!(container.reserve().unwrap(), Room::Had, "all of it is in the file");
}

#[test]
fn a_short_new_text_is_worth_finishing_and_of_others_nobody_knows() {
    let world = World::new(&[]);
    let container = create(world.open("file"), world.journals());
    container.write_at(&[7; CHUNK], 0).unwrap();
    assert_eq!(container.reserve().unwrap(), Room::Short);
    container.finish().unwrap();
    assert_eq!(container.reserve().unwrap(), Room::Had);
    // A disk that cannot be asked.
    container.write_at(&[8; CHUNK], CHUNK as u64).unwrap();
    assert_eq!(container.reserve().unwrap(), Room::Unknown);
    // What was promised to somebody is changed by way of a journal.
    container.sync().unwrap();
    container.write_at(&[9; 10], 0).unwrap();
    assert_eq!(container.reserve().unwrap(), Room::Unknown);
}
