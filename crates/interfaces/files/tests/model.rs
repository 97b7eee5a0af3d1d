//! Containers against a vector of bytes, and what damage does to them.

use bywash_client::{Client, Config};
use bywash_files::power::World;
use bywash_files::{Aead, Container, DamageKind, Error, FileKeys, Header, Lock, fsck, new_file};
use proptest::prelude::*;
use std::sync::Arc;

const CHUNK: usize = 4096;

struct Setting {
    client: Client,
    header: Header,
    keys: FileKeys,
    world: Arc<World>,
}

impl Setting {
    fn new(aead: Aead) -> Self {
        let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
        let header = Header::new(aead, CHUNK, slots, &keys).unwrap();
        Self { client: Client::new(Config::default()), header, keys, world: World::new(b"") }
    }

    fn keys(&self) -> FileKeys {
        FileKeys::new(self.keys.file_key().clone(), *self.header.salt()).unwrap()
    }

    fn create(&self, gathered: usize) -> Container {
        let made = Container::create(&self.client, &self.header, self.keys(), self.world.open("file"), self.world.journals());
        made.unwrap().with_gathered_max(gathered)
    }

    fn open_rw(&self, gathered: usize) -> Container {
        let opened = Container::open_rw(&self.client, &self.header, self.keys(), self.world.open("file"), self.world.journals());
        opened.unwrap().with_gathered_max(gathered)
    }

    fn open(&self) -> bywash_files::Result<Container> {
        let journals = self.world.journals();
        Container::open(&self.client, &self.header, self.keys(), self.world.open("file"), &*journals)
    }

    /// The file with other bytes, read or checked.
    fn with(&self, bytes: &[u8]) -> Self {
        let world = World::new(b"");
        world.open("file").write_at(bytes, 0).unwrap();
        Self { client: self.client.clone(), header: self.header.clone(), keys: self.keys(), world }
    }

    fn damages(&self) -> Vec<(u64, DamageKind)> {
        let mut found = Vec::new();
        let report = |damage: bywash_files::Damage| {
            found.push((damage.chunk, damage.kind));
            std::ops::ControlFlow::Continue(())
        };
        fsck::check(&self.client, &self.header, self.keys(), &*self.world.open("file"), report).unwrap();
        found
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, usize),
    Length(u64),
    AtLeast(u64),
    Read(u64, usize),
    Sync,
    Settle,
    Reopen,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..60_000u64, (0..14u64).prop_map(|chunk| chunk * CHUNK as u64), (1..14u64).prop_map(|chunk| chunk * CHUNK as u64 - 1)]
}

fn step() -> impl Strategy<Value = Step> {
    let count = || prop_oneof![1..300usize, 1..20_000usize, (1..4usize).prop_map(|chunks| chunks * CHUNK)];
    prop_oneof![
        4 => (offset(), count()).prop_map(|(at, count)| Step::Write(at, count)),
        2 => offset().prop_map(Step::Length),
        1 => offset().prop_map(Step::AtLeast),
        4 => (offset(), count()).prop_map(|(at, count)| Step::Read(at, count)),
        1 => Just(Step::Sync),
        1 => Just(Step::Settle),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_container_is_a_vector_of_bytes(steps in prop::collection::vec(step(), 1..40), gathered in 1..6usize) {
        let setting = Setting::new(Aead::Aes256Gcm);
        let (mut container, mut model) = (setting.create(gathered * CHUNK), Vec::<u8>::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write(at, count) => {
                    let (at, bytes) = (at as usize, vec![number as u8 + 1; count]);
                    model.resize(model.len().max(at + count), 0);
                    model[at..at + count].copy_from_slice(&bytes);
                    container.write_at(&bytes, at as u64).unwrap();
                }
                Step::Length(len) => {
                    model.resize(len as usize, 0);
                    container.set_len(len).unwrap();
                }
                Step::AtLeast(len) => {
                    model.resize(model.len().max(len as usize), 0);
                    container.grow(len).unwrap();
                }
                Step::Read(at, count) => {
                    let mut read = vec![0xaa; count];
                    let got = container.read_at(&mut read, at).unwrap();
                    let expected = model.get(at as usize..).unwrap_or_default();
                    prop_assert_eq!(&read[..got], &expected[..count.min(expected.len())]);
                }
                Step::Sync => container.sync().unwrap(),
                Step::Settle => container.settle().unwrap(),
                Step::Reopen => {
                    container.close().unwrap();
                    container = setting.open_rw(gathered * CHUNK);
                }
            }
            prop_assert_eq!(container.len(), model.len() as u64);
        }
        container.close().unwrap();
        let (container, mut text) = (setting.open().unwrap(), vec![0; model.len()]);
        prop_assert_eq!(container.read_at(&mut text, 0).unwrap(), model.len());
        prop_assert!(text == model);
        prop_assert!(setting.damages().is_empty());
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

/// A file of four chunks, the last of 100 bytes.
fn four_chunks(aead: Aead) -> (Setting, Vec<u8>) {
    let setting = Setting::new(aead);
    let container = setting.create(1 << 20);
    container.write_at(&text(3 * CHUNK + 100), 0).unwrap();
    container.close().unwrap();
    let bytes = setting.world.bytes("file").unwrap();
    (setting, bytes)
}

#[test]
fn every_aead_reads_what_it_wrote() {
    for aead in Aead::ALL {
        let setting = Setting::new(aead);
        let container = setting.create(1 << 20);
        container.write_at(&text(20_000), 0).and_then(|()| container.close()).unwrap();
        let mut read = vec![0; 20_000];
        assert_eq!(setting.open().unwrap().read_at(&mut read, 0).unwrap(), 20_000);
        assert!(read == text(20_000), "{aead}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (setting, bytes) = four_chunks(Aead::Aes256Gcm);
    let header = setting.header.bytes().len();
    let ends = (0..4).map(|chunk| header + chunk * (CHUNK + 40)).chain((header..bytes.len()).step_by(97));
    for len in ends {
        let cut = setting.with(&bytes[..len]);
        assert!(matches!(cut.open(), Err(Error::Truncated { .. } | Error::Damaged(_))), "{len}");
        assert!(!cut.damages().is_empty(), "{len}");
    }
    let (_, end) = (0, header + 2 * (CHUNK + 40));
    assert_eq!(setting.with(&bytes[..end]).damages(), [(1, DamageKind::EndMissing)]);
}

#[test]
fn what_is_appended_moved_or_swapped_is_noticed() {
    let (setting, bytes) = four_chunks(Aead::Aes256Gcm);
    let (header, stored) = (setting.header.bytes().len(), CHUNK + 40);
    let chunk = |at: usize| &bytes[header + at * stored..(header + (at + 1) * stored).min(bytes.len())];
    let built = |chunks: &[&[u8]]| setting.with(&[&bytes[..header], &chunks.concat()].concat());

    let longer = built(&[chunk(0), chunk(1), chunk(2), chunk(3), &[0; 50]]);
    assert!(longer.open().is_err() && !longer.damages().is_empty());
    let swapped = built(&[chunk(1), chunk(0), chunk(2), chunk(3)]);
    assert_eq!(swapped.damages(), [(0, DamageKind::NotAuthentic), (1, DamageKind::NotAuthentic)]);
    let mut read = [0; CHUNK];
    assert!(matches!(swapped.open().unwrap().read_at(&mut read, 0), Err(Error::Damaged(damage)) if damage.chunk == 0));
    assert_eq!(built(&[chunk(0), chunk(2), chunk(3)]).damages().len(), 2, "one left out");
    assert_eq!(built(&[chunk(0), chunk(0), chunk(1), chunk(2), chunk(3)]).damages().len(), 4, "one doubled");

    // The same place in another file, under the same key file.
    let (other, _) = four_chunks(Aead::Aes256Gcm);
    let foreign = other.world.bytes("file").unwrap();
    let foreign = &foreign[header + stored..header + 2 * stored];
    assert_eq!(built(&[chunk(0), foreign, chunk(2), chunk(3)]).damages(), [(1, DamageKind::NotAuthentic)]);
}

#[test]
fn a_changed_byte_is_damage_of_its_chunk_alone() {
    let (setting, bytes) = four_chunks(Aead::ChaCha20Poly1305);
    let header = setting.header.bytes().len();
    for at in (header..bytes.len()).step_by(31) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x80;
        let chunk = ((at - header) / (CHUNK + 40)) as u64;
        // Of the last one nobody can tell whether it was changed or cut off.
        let kind = if chunk == 3 { DamageKind::NoEnd } else { DamageKind::NotAuthentic };
        assert_eq!(setting.with(&changed).damages(), [(chunk, kind)], "{at}");
    }
}

#[test]
fn a_file_opened_for_reading_is_not_written() {
    let (setting, bytes) = four_chunks(Aead::Aes256Gcm);
    let container = setting.open().unwrap();
    assert!(matches!(container.write_at(b"x", 0), Err(Error::ReadOnly)));
    assert!(matches!(container.set_len(0), Err(Error::ReadOnly)));
    assert!(matches!(container.grow(0), Err(Error::ReadOnly)));
    container.close().unwrap();
    assert_eq!(setting.world.bytes("file").unwrap(), bytes);
    assert!(matches!(setting.open_rw(CHUNK).set_len(u64::MAX), Err(Error::TooLong { .. })));
    assert!(matches!(setting.open_rw(CHUNK).write_at(b"x", u64::MAX), Err(Error::TooLong { .. })));
}
