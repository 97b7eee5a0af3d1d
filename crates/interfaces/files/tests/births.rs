//! Power cuts at every step while files are born, rewritten, cut to nothing and settled in a folder that is mounted: each is as it was after some write since
//! its last sync, or empty as it was born, and never damaged.

use bywash_client::{Client, Config};
use bywash_files::births::{self, Births, Fate};
use bywash_files::disk::Disk;
use bywash_files::power::World;
use bywash_files::{Aead, Container, Error, FileKeys, Header, Keyring, Lock, Result, fsck};
use std::sync::Arc;

const CHUNK: usize = 4096;
const SECRET: &[u8] = b"attack at dawn!!";
const NAMES: [&str; 3] = ["a", "b", "c"];

struct Folder {
    client: Client,
    locks: [Lock; 1],
    keyring: Keyring,
    world: Arc<World>,
    births: Births,
}

impl Folder {
    fn open(world: &Arc<World>) -> Result<Self> {
        let (locks, mut keyring) = ([Lock::key_file(&[1; 32])], Keyring::new());
        keyring.add_key_file(&[1; 32]);
        let births = Births::open(world.open("births"), &[2; 32])?;
        Ok(Self { client: Client::new(Config::default()), locks, keyring, world: world.clone(), births })
    }

    fn disk(&self, name: &str) -> Arc<dyn Disk> {
        self.world.open(name)
    }

    /// Makes a byte another one.
    fn flip(&self, name: &str, offset: u64) {
        let (disk, mut byte) = (self.disk(name), [0]);
        assert_eq!(disk.read_at(&mut byte, offset).unwrap(), 1);
        disk.write_at(&[!byte[0]], offset).unwrap();
    }

    fn make(&self) -> Result<(Header, FileKeys)> {
        let (keys, slots) = self.births.new_file(&self.locks)?;
        Ok((Header::new(Aead::Aes256Gcm, CHUNK, slots, &keys)?, keys))
    }

    /// What a mount does first.
    fn recover(&self) -> Result<Vec<Fate>> {
        let mut fates = Vec::new();
        if self.births.is_unsettled() {
            for name in NAMES {
                let open = |header: &Header| self.keyring.open(header);
                fates.push(self.births.recover(&self.client, &self.disk(name), &self.world.journals(), open, || self.make())?);
                self.disk(name).sync()?;
            }
            self.births.end()?;
        }
        self.births.begin()?;
        Ok(fates)
    }

    fn be_born(&self, name: &str) -> Result<Container> {
        births::clear(&*self.disk(name))?;
        let (header, keys) = self.make()?;
        let container = Container::create(&self.client, &header, keys, self.disk(name), self.world.journals())?;
        Ok(container.with_gathered_max(2 * CHUNK))
    }

    fn header(&self, name: &str) -> Result<(Header, FileKeys)> {
        let mut bytes = vec![0; 200];
        let got = self.disk(name).read_at(&mut bytes, 0)?;
        let header = Header::parse(&bytes[..got])?;
        let keys = self.keyring.open(&header)?;
        Ok((header, keys))
    }

    fn open_rw(&self, name: &str) -> Result<Container> {
        let (header, keys) = self.header(name)?;
        Container::open_rw(&self.client, &header, keys, self.disk(name), self.world.journals())
    }

    fn text(&self, name: &str) -> Result<Vec<u8>> {
        let (header, keys) = self.header(name)?;
        let container = Container::open(&self.client, &header, keys, self.disk(name), &*self.world.journals())?;
        let mut text = vec![0; container.len() as usize];
        container.read_at(&mut text, 0)?;
        Ok(text)
    }

    fn assert_clean(&self, name: &str, what: &str) {
        let (header, keys) = self.header(name).unwrap();
        fsck::check(&self.client, &header, keys, &*self.disk(name), |damage| panic!("{what}: {name}: {damage}")).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A new file, or one that is cut to nothing and written anew.
    Born {
        file: usize,
        len: usize,
        is_synced: bool,
    },
    Rewritten {
        file: usize,
        offset: usize,
        len: usize,
    },
    /// A new epoch, and the end of those before.
    Turn,
}

fn steps(random: &mut fastrand::Rng) -> Vec<Step> {
    let file = |random: &mut fastrand::Rng| random.usize(..NAMES.len());
    let step = |random: &mut fastrand::Rng| match random.u32(..8) {
        0..4 => Step::Born { file: file(random), len: random.usize(..6 * CHUNK), is_synced: random.u32(..4) == 0 },
        4..7 => Step::Rewritten { file: file(random), offset: random.usize(..4 * CHUNK), len: random.usize(1..3 * CHUNK) },
        _ => Step::Turn,
    };
    (0..10).map(|_| step(random)).collect()
}

fn block(len: usize, number: usize) -> Vec<u8> {
    let mut block: Vec<u8> = SECRET.iter().copied().cycle().take(len).collect();
    block.iter_mut().step_by(61).for_each(|byte| *byte = number as u8);
    block
}

/// The texts a file may have, the certain one first: those after its last sync, and the empty one if it was born since.
type States = [Vec<Vec<u8>>; NAMES.len()];

fn run(folder: &Folder, steps: &[Step], states: &mut States) -> Result<()> {
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Born { file, len, is_synced } => {
                // Its time begins when it is cleared, which is certain only afterwards.
                states[file].push(Vec::new());
                let container = folder.be_born(NAMES[file])?;
                states[file] = vec![Vec::new(), block(len, number)];
                container.write_at(&block(len, number), 0)?;
                if is_synced {
                    container.sync()?;
                    states[file].remove(0);
                }
                container.finish()?;
                // Written on while it is open still: a new file's rest, or a change of a settled one.
                let mut text = block(len, number);
                let addition = block(3_000, number + 50);
                text.resize(len.max(4_000), 0);
                text[1_000..4_000].copy_from_slice(&addition);
                let written = text.clone();
                text.resize(len + 2_500, 0);
                states[file].extend([written, text.clone()]);
                container.write_at(&addition, 1_000)?;
                container.set_len(text.len() as u64)?;
                container.finish()?;
                if is_synced {
                    states[file] = vec![text];
                }
            }
            Step::Rewritten { file, offset, len } => {
                let container = folder.open_rw(NAMES[file])?;
                let mut text = states[file].last().unwrap().clone();
                text.resize(text.len().max(offset + len), 0);
                text[offset..offset + len].copy_from_slice(&block(len, number));
                states[file].push(text.clone());
                container.write_at(&block(len, number), offset as u64)?;
                container.finish()?;
                states[file] = vec![text];
            }
            Step::Turn => {
                folder.births.begin()?;
                for (name, states) in NAMES.iter().zip(states.iter_mut()) {
                    folder.disk(name).sync()?;
                    states.drain(..states.len() - 1);
                }
                folder.births.settle()?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_cut_at_every_step_leaves_every_file_old_or_new() {
    let (mut points, mut emptied) = (0, 0);
    for seed in 0..10 {
        let steps = steps(&mut fastrand::Rng::with_seed(seed));
        let start = World::new(SECRET);
        let folder = Folder::open(&start).unwrap();
        folder.recover().unwrap();
        for name in NAMES {
            folder.be_born(name).unwrap().close().unwrap();
        }
        folder.births.end().unwrap();
        for cut in 0.. {
            let world = start.restart(0);
            world.cut_at(cut);
            let mut states: States = Default::default();
            states.iter_mut().for_each(|states| states.push(Vec::new()));
            let outcome = Folder::open(&world).and_then(|folder| {
                folder.recover()?;
                run(&folder, &steps, &mut states)
            });
            assert!(!world.was_secret_written(), "seed {seed}, cut {cut}: text on the disk");
            if outcome.is_ok() {
                let folder = Folder::open(&world).unwrap();
                for (name, states) in NAMES.iter().zip(&states) {
                    assert!(folder.text(name).unwrap() == *states.last().unwrap(), "seed {seed}, uncut: {name}");
                }
                break;
            }
            assert!(world.is_off(), "seed {seed}, cut {cut}: {outcome:?}");
            for chance in 0..3 {
                let what = format!("seed {seed}, cut {cut}, chance {chance}, {steps:?}");
                let after = recovered_with_a_cut(&world.restart(chance), cut * 3 + chance);
                let folder = Folder::open(&after).unwrap();
                let fates = folder.recover().unwrap_or_else(|error| panic!("{what}: {error}"));
                emptied += fates.iter().filter(|fate| **fate == Fate::Emptied).count();
                for (name, states) in NAMES.iter().zip(&states) {
                    // An open recovers what a journal holds.
                    folder.open_rw(name).and_then(Container::close).unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
                    let text = folder.text(name).unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
                    assert!(states.contains(&text), "{what}: {name} has {} bytes that never were its text", text.len());
                    folder.assert_clean(name, &what);
                }
                points += 1;
            }
        }
    }
    assert!(points >= 1000 && emptied > 100, "{points} points, {emptied} files emptied");
    eprintln!("{points} power cuts, after which {emptied} files were emptied");
}

/// Recovery is cut itself, somewhere.
fn recovered_with_a_cut(world: &Arc<World>, cut: u64) -> Arc<World> {
    world.cut_at(cut % 23);
    let outcome = Folder::open(world).and_then(|folder| folder.recover());
    if world.is_off() || outcome.is_err() {
        return world.restart(cut);
    }
    world.cut_at(u64::MAX - 1);
    world.clone()
}

#[test]
fn what_no_birth_leaves_is_damage() {
    let world = World::new(b"");
    let folder = Folder::open(&world).unwrap();
    assert!(matches!(folder.make(), Err(Error::ReadOnly)), "born outside an epoch");
    folder.recover().unwrap();
    for name in NAMES {
        let container = folder.be_born(name).unwrap();
        container.write_at(&block(10_000, 1), 0).unwrap();
        container.finish().unwrap();
    }
    // A header that is another's is not one that never came.
    folder.disk("b").write_at(b"\x89BYWASH\n\x02", 0).unwrap();
    folder.flip("c", 100);
    let look = |name| {
        let open = |header: &Header| folder.keyring.open(header);
        folder.births.recover(&folder.client, &folder.disk(name), &folder.world.journals(), open, || folder.make())
    };
    assert!(matches!(look("a"), Ok(Fate::Whole)));
    assert!(matches!(look("b"), Err(Error::UnknownVersion { .. })));
    assert!(matches!(look("c"), Err(Error::DamagedHeader { .. })));
    // What is settled is not touched, whatever is wrong with it, as long as it can be told.
    folder.births.begin().unwrap();
    folder.births.settle().unwrap();
    folder.flip("a", 5000);
    assert!(matches!(look("a"), Ok(Fate::Settled)));
    assert!(folder.text("a").is_err());
    for len in [130, 100, 52] {
        folder.disk("a").set_len(len).unwrap();
        assert!(matches!(look("a"), Err(Error::Truncated { .. })), "cut to {len} bytes");
        assert_eq!(folder.disk("a").len().unwrap(), len);
    }
    folder.disk("a").set_len(51).unwrap();
    assert!(matches!(look("a"), Ok(Fate::Emptied)));
    assert_eq!(folder.text("a").unwrap(), b"");
}

#[test]
fn a_record_that_is_not_whole_is_refused_and_another_key_is_noticed() {
    let world = World::new(b"");
    let folder = Folder::open(&world).unwrap();
    assert!(!folder.births.is_unsettled());
    (0..16).for_each(|_| folder.births.begin().unwrap());
    assert!(folder.births.begin().unwrap_err().to_string().contains("16 epochs"));
    assert!(Births::open(world.open("births"), &[2; 32]).unwrap().is_unsettled());
    assert!(matches!(Births::open(world.open("births"), &[3; 32]), Err(Error::DamagedHeader { .. })));
    folder.births.end().unwrap();
    assert!(!Births::open(world.open("births"), &[2; 32]).unwrap().is_unsettled());
    // One of the two torn: the other counts. Both: nothing does.
    folder.disk("births").write_at(&[0; 8], 4096).unwrap();
    assert!(Births::open(world.open("births"), &[2; 32]).unwrap().is_unsettled());
    folder.disk("births").write_at(&[0; 8], 0).unwrap();
    assert!(matches!(Births::open(world.open("births"), &[2; 32]), Err(Error::DamagedHeader { .. })));
}
