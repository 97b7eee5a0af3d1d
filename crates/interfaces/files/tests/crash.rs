//! Power cuts at every step of random workloads: the file is as after some write since the last sync, whole, and never in the clear.

use bywash_client::{Client, Config};
use bywash_files::disk::Disk;
use bywash_files::power::World;
use bywash_files::{Aead, Container, FileKeys, Header, Lock, container, fsck, new_file};
use std::sync::Arc;

const CHUNK: usize = 4096;
/// In every block that is written, so that none reaches the disk unseen.
const SECRET: &[u8] = b"attack at dawn!!";

struct Setting {
    client: Client,
    header: Header,
    keys: FileKeys,
    journaled_max: u64,
}

impl Setting {
    fn new() -> Self {
        let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
        let header = Header::new(Aead::Aes256Gcm, CHUNK, slots, &keys).unwrap();
        Self { client: Client::new(Config::default()), header, keys, journaled_max: 16 * CHUNK as u64 }
    }

    fn bounded(&self, container: Container) -> Container {
        container.with_gathered_max(3 * CHUNK).with_journaled_max(self.journaled_max)
    }

    fn keys(&self) -> FileKeys {
        FileKeys::new(self.keys.file_key().clone(), *self.header.salt()).unwrap()
    }

    fn create(&self, world: &Arc<World>) -> bywash_files::Result<Container> {
        let container = Container::create(&self.client, &self.header, self.keys(), world.open("file"), world.journals())?;
        Ok(self.bounded(container))
    }

    fn open_rw(&self, world: &Arc<World>) -> bywash_files::Result<Container> {
        let container = Container::open_rw(&self.client, &self.header, self.keys(), world.open("file"), world.journals())?;
        Ok(self.bounded(container))
    }

    /// A file that was written with a [`block`], and closed.
    fn written(&self, len: usize, number: usize) -> Arc<World> {
        let world = World::new(SECRET);
        let container = self.create(&world).unwrap();
        container.write_at(&block(len, number), 0).unwrap();
        container.close().unwrap();
        world
    }

    fn text(&self, world: &Arc<World>) -> bywash_files::Result<Vec<u8>> {
        let journals = world.journals();
        let container = Container::open(&self.client, &self.header, self.keys(), world.open("file"), &*journals)?;
        let mut text = vec![0; container.len() as usize];
        assert_eq!(container.read_at(&mut text, 0)?, text.len());
        Ok(text)
    }

    fn assert_clean(&self, world: &Arc<World>, what: &str) {
        let disk: Arc<dyn Disk> = world.open("file");
        let checked = fsck::check(&self.client, &self.header, self.keys(), &*disk, |damage| panic!("{what}: {damage}")).unwrap();
        assert_eq!(checked.damaged, 0);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, usize),
    Length(u64),
    Sync,
    Reopen,
}

fn steps(random: &mut fastrand::Rng) -> Vec<Step> {
    let step = |random: &mut fastrand::Rng| match random.u32(..10) {
        0..5 => Step::Write(random.u64(..12 * CHUNK as u64), random.usize(1..3 * CHUNK)),
        5 => Step::Write(random.u64(..8) * CHUNK as u64, CHUNK * random.usize(1..3)),
        6 | 7 => Step::Length(*random.choice(&[0, 1, CHUNK as u64, CHUNK as u64 + 1, 9 * CHUNK as u64, 30_001]).unwrap()),
        8 => Step::Sync,
        _ => Step::Reopen,
    };
    (0..14).map(|_| step(random)).collect()
}

/// As a database or a log writes: little, here and there and at the end, and a sync after each.
fn commits(random: &mut fastrand::Rng) -> Vec<Step> {
    let mut end = 10_000;
    let mut steps = Vec::new();
    for _ in 0..9 {
        let (at, len) = match random.u32(..8) {
            0..3 => (random.u64(..end), random.usize(1..200)),
            3..6 => (end, random.usize(1..2 * CHUNK)),
            6 => (end + random.u64(..CHUNK as u64), random.usize(1..CHUNK)),
            _ => {
                end = random.u64(..end);
                steps.push(Step::Length(end));
                continue;
            }
        };
        end = end.max(at + len as u64);
        steps.extend([Step::Write(at, len), Step::Sync]);
    }
    steps
}

fn block(len: usize, number: usize) -> Vec<u8> {
    let mut block: Vec<u8> = SECRET.iter().copied().cycle().take(len).collect();
    // Where two writes of the same place are to be told apart.
    block.iter_mut().step_by(61).for_each(|byte| *byte = number as u8);
    block
}

fn apply(model: &mut Vec<u8>, step: &Step, number: usize) {
    match *step {
        Step::Write(offset, len) => {
            let offset = offset as usize;
            model.resize(model.len().max(offset + len), 0);
            model[offset..offset + len].copy_from_slice(&block(len, number));
        }
        Step::Length(len) => model.resize(len as usize, 0),
        Step::Sync | Step::Reopen => {}
    }
}

/// Runs a workload on a file that is there; `states` gets the text after each step, `synced` the number of those that are certain.
fn run(setting: &Setting, world: &Arc<World>, steps: &[Step], states: &mut Vec<Vec<u8>>, synced: &mut usize) -> bywash_files::Result<()> {
    let mut container = setting.open_rw(world)?;
    for (number, step) in steps.iter().enumerate() {
        let mut next = states.last().unwrap().clone();
        apply(&mut next, step, number);
        states.push(next);
        match *step {
            Step::Write(offset, len) => container.write_at(&block(len, number), offset)?,
            Step::Length(len) => container.set_len(len)?,
            Step::Sync => container.sync()?,
            Step::Reopen => {
                container.close()?;
                *synced = states.len() - 1;
                container = setting.open_rw(world)?;
            }
        }
        if let Step::Sync = step {
            *synced = states.len() - 1;
        }
    }
    container.close()?;
    *synced = states.len() - 1;
    Ok(())
}

/// Cuts a workload at every step, and looks at what is there afterwards. How many cuts that were, and after how many there was more than what was synced.
fn cut_everywhere(setting: &Setting, steps: &[Step], what: &str) -> (usize, usize) {
    let (mut points, mut newer) = (0, 0);
    let start = setting.written(10_000, 99);
    for cut in 0.. {
        let world = start.restart(0);
        world.cut_at(cut);
        let (mut states, mut synced) = (vec![block(10_000, 99)], 0);
        let outcome = run(setting, &world, steps, &mut states, &mut synced);
        assert!(!world.was_secret_written(), "{what}, cut {cut}: text on the disk");
        if let Ok(()) = outcome {
            assert!(&setting.text(&world).unwrap() == states.last().unwrap(), "{what}, uncut");
            setting.assert_clean(&world, "uncut");
            break;
        }
        assert!(world.is_off(), "{what}, cut {cut}: {outcome:?}");
        for chance in 0..3 {
            let what = format!("{what}, cut {cut}, chance {chance}, {steps:?}");
            let after = world.restart(chance);
            // Readers see what recovery will make of it.
            let text = setting.text(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
            let state = states[synced..].iter().position(|state| *state == text);
            newer += usize::from(state.unwrap_or_else(|| panic!("{what}: a text that never was; {synced} are synced")) > 0);
            recover_with_cuts(setting, &after, &text, &what);
            points += 1;
        }
    }
    (points, newer)
}

fn cut_workloads(workload: impl Fn(&mut fastrand::Rng) -> Vec<Step>) {
    let mut setting = Setting::new();
    let (mut points, mut newer) = (0, 0);
    for seed in 0..12 {
        setting.journaled_max = [16, 32, 64][seed as usize % 3] * CHUNK as u64;
        let more = cut_everywhere(&setting, &workload(&mut fastrand::Rng::with_seed(seed)), &format!("seed {seed}"));
        (points, newer) = (points + more.0, newer + more.1);
    }
    assert!(points >= 1000 && newer > 100, "{points} points, of which {newer} kept unsynced writes");
    eprintln!("{points} power cuts, after {newer} of which more than what was synced was there");
}

#[test]
fn a_cut_at_every_step_leaves_the_file_old_or_new() {
    cut_workloads(steps);
}

#[test]
fn a_cut_at_every_step_of_many_commits_leaves_the_file_old_or_new() {
    cut_workloads(commits);
}

/// A workload in which a write or a sync fails, each in turn; whoever ran it dies then, or closes the file.
fn fail_everywhere(setting: &Setting, steps: &[Step], what: &str) -> usize {
    let start = setting.written(10_000, 99);
    for fail in 0.. {
        let what = format!("{what}, failure {fail}, {steps:?}");
        let world = start.restart(0);
        world.fail_at(fail);
        let (mut states, mut synced) = (vec![block(10_000, 99)], 0);
        let outcome = run(setting, &world, steps, &mut states, &mut synced);
        if !world.has_failed() {
            return fail as usize;
        }
        if outcome.is_ok() {
            // Such as that of the removal of a journal.
            synced = states.len() - 1;
        }
        let is_there = |world: &Arc<World>, when: &str| {
            let text = setting.text(world).unwrap_or_else(|error| panic!("{what}, {when}: {error}"));
            assert!(states[synced..].contains(&text), "{what}, {when}: a text that never was; {synced} are synced");
        };
        is_there(&world, "in the same machine");
        for chance in 0..3 {
            is_there(&world.restart(chance), "after a power cut");
        }
        // It is recovered in the same machine, whose memory may know more than the disk, until the power goes; or after that.
        for cut in 0.. {
            world.cut_at(cut);
            let is_done = setting.open_rw(&world).is_ok();
            for chance in 0..3 {
                is_there(&world.restart(chance), "after a power cut during or after recovery");
            }
            if is_done {
                break;
            }
            // What it has done by then is done.
            world.cut_at(u64::MAX - 1);
        }
    }
    unreachable!("it does not end")
}

#[test]
fn a_failure_at_every_step_leaves_the_file_old_or_new() {
    let mut setting = Setting::new();
    let mut points = 0;
    for seed in 0..12 {
        setting.journaled_max = [16, 32, 64][seed as usize % 3] * CHUNK as u64;
        let random = &mut fastrand::Rng::with_seed(seed);
        let steps = if seed % 2 == 0 { steps(random) } else { commits(random) };
        points += fail_everywhere(&setting, &steps, &format!("seed {seed}"));
    }
    assert!(points > 500, "{points}");
}

/// What fails at the end of a file leaves nothing behind it when it is closed.
#[test]
fn a_file_that_is_closed_after_a_failed_write_is_whole() {
    let setting = Setting::new();
    for (fail, again) in (0..10).flat_map(|fail| [(fail, false), (fail, true)]) {
        let world = World::new(SECRET);
        let container = setting.create(&world).unwrap();
        container.write_at(&block(8 * CHUNK, 1), 0).unwrap();
        container.sync().unwrap();
        container.write_at(b"so that there is a journal", 0).unwrap();
        container.sync().unwrap();
        if again {
            container.write_at(&block(5 * CHUNK, 2), 8 * CHUNK as u64).unwrap();
        }
        world.fail_at(fail);
        let _ = container.write_at(&block(5 * CHUNK, 3), 8 * CHUNK as u64);
        let mut text = vec![0; container.len() as usize];
        container.read_at(&mut text, 0).unwrap_or_else(|error| panic!("failure {fail}, {again}: {error}"));
        let is_closed = container.close().is_ok();
        let text = setting.text(&world).unwrap_or_else(|error| panic!("failure {fail}: {error}"));
        let mut synced = block(8 * CHUNK, 1);
        synced[..26].copy_from_slice(b"so that there is a journal");
        assert!(text.starts_with(&synced));
        if is_closed {
            setting.assert_clean(&world, "closed");
            drop(setting.open_rw(&world).unwrap());
        }
    }
}

/// However much room is left, what finds none says so, and goes on where there is room.
#[test]
fn a_file_that_found_no_room_goes_on_when_there_is_some() {
    let setting = Setting { journaled_max: 40_000, ..Setting::new() };
    let mut refused = 0;
    for room in (30_000..130_000).step_by(1000) {
        let world = World::new(SECRET);
        let container = setting.create(&world).unwrap();
        container.write_at(&block(20_000, 1), 0).unwrap();
        container.sync().unwrap();
        world.limit_room(Some(room));
        let mut text = block(20_000, 1);
        for number in 0..12 {
            let (at, block) = ([3000, text.len()][number % 2], block(2000, number));
            text.resize(text.len().max(at + block.len()), 0);
            text[at..at + block.len()].copy_from_slice(&block);
            if container.write_at(&block, at as u64).and_then(|()| container.sync()).is_err() {
                refused += 1;
                world.limit_room(None);
                container
                    .write_at(&block, at as u64)
                    .and_then(|()| container.sync())
                    .unwrap_or_else(|error| panic!("room {room}: {error}"));
                world.limit_room(Some(room));
            }
        }
        world.limit_room(None);
        container.close().unwrap();
        assert!(setting.text(&world).unwrap() == text, "room {room}");
    }
    assert!(refused > 50, "{refused}");
}

/// After the first a commit waits for one sync, of the journal, as long as that has room.
#[test]
fn a_commit_is_one_sync() {
    let setting = Setting { journaled_max: container::JOURNALED_BYTES, ..Setting::new() };
    let world = setting.written(10 * CHUNK, 1);
    let container = setting.open_rw(&world).unwrap();
    let commit = |number: usize| {
        container.write_at(&block(100, number), [5 * CHUNK, 10 * CHUNK + 1000 * number][number % 2] as u64).unwrap();
        container.sync().unwrap();
    };
    commit(0);
    let before = world.syncs();
    (1..=50).for_each(commit);
    assert_eq!(world.syncs() - before, 50);
}

/// Recovery itself is cut at every step.
fn recover_with_cuts(setting: &Setting, world: &Arc<World>, text: &[u8], what: &str) {
    for cut in 0.. {
        let again = world.restart(0);
        again.cut_at(cut);
        let journals = again.journals();
        let is_done = container::recover(&setting.header, &setting.keys, &*again.open("file"), &*journals).is_ok();
        let after = if is_done { again.clone() } else { again.restart(cut) };
        assert!(setting.text(&after).unwrap() == text, "{what}: recovery cut at {cut}");
        if is_done {
            after.cut_at(u64::MAX - 1);
            setting.assert_clean(&after, what);
            let container = setting.open_rw(&after).unwrap();
            container.write_at(b"goes on", 5000).unwrap();
            container.close().unwrap();
            setting.assert_clean(&after, what);
            return;
        }
    }
}

/// A writer dies, whose writes the machine still has; then the power goes while its file is recovered.
#[test]
fn a_cut_during_recovery_from_a_journal_that_was_never_synced() {
    let setting = Setting::new();
    let (old, new) = (block(30_000, 1), block(30_000, 2));
    let start = setting.written(30_000, 1);
    let mut points = 0;
    for crash in 0.. {
        let dies = || {
            let world = start.restart(0);
            world.cut_at(crash);
            let container = setting.open_rw(&world).map(|container| container.with_gathered_max(20 * CHUNK));
            let outcome = container.and_then(|container| {
                container.write_at(&new, 0)?;
                container.sync()
            });
            (world, outcome.is_ok())
        };
        if dies().1 {
            break;
        }
        for cut in 0.. {
            let (world, _) = dies();
            world.cut_at(cut);
            if container::recover(&setting.header, &setting.keys, &*world.open("file"), &*world.journals()).is_ok() {
                break;
            }
            for chance in 0..10 {
                let text = setting.text(&world.restart(chance)).unwrap_or_else(|error| panic!("crash {crash}, cut {cut}: {error}"));
                assert!(text == old || text == new, "crash {crash}, cut {cut}, chance {chance}");
                points += 1;
            }
        }
    }
    assert!(points > 100, "{points}");
}

#[test]
fn a_new_file_that_was_cut_is_complete_or_refused() {
    let setting = Setting::new();
    let text = block(40_000, 7);
    for cut in 0.. {
        let world = World::new(SECRET);
        world.cut_at(cut);
        let made = setting.create(&world).and_then(|container| {
            container.write_at(&text, 0)?;
            container.close()
        });
        assert!(!world.was_secret_written());
        if made.is_ok() {
            assert!(setting.text(&world).unwrap() == text);
            assert!(cut > 5);
            return;
        }
        for chance in 0..20 {
            if let Ok(read) = setting.text(&world.restart(chance)) {
                assert!(read == text, "cut {cut}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_said_and_costs_nothing_that_was_synced() {
    for journaled_max in [4, 16] {
        fill_the_disk(&Setting { journaled_max: journaled_max * CHUNK as u64, ..Setting::new() });
    }
}

fn fill_the_disk(setting: &Setting) {
    let world = World::new(SECRET);
    let container = setting.create(&world).unwrap();
    container.write_at(&block(20_000, 1), 0).unwrap();
    container.sync().unwrap();
    world.limit_room(Some(30_000));
    let outcome = container.write_at(&block(60_000, 2), 20_000);
    assert!(outcome.unwrap_err().to_string().contains("no storage space"));
    assert!(container.sync().unwrap_err().to_string().contains("no storage space"));
    for chance in 0..20 {
        let after = world.restart(chance);
        let container = setting.open_rw(&after).unwrap();
        assert_eq!(container.len(), 20_000);
        drop(container);
        setting.assert_clean(&after, "full");
    }
    // What is written in place finds room as long as that of the batches before is enough.
    world.limit_room(Some(45_000));
    for number in 0..20 {
        container.set_len(20_000).unwrap();
        container.write_at(&block(5000, number), 3000).unwrap();
        container.sync().unwrap();
    }
    // With room again, the very same container goes on.
    world.limit_room(None);
    container.write_at(&block(60_000, 2), 20_000).unwrap();
    container.sync().unwrap();
    let mut text = [block(20_000, 1), block(60_000, 2)].concat();
    text[3000..8000].copy_from_slice(&block(5000, 19));
    assert!(setting.text(&world).unwrap() == text);
}

#[test]
fn zeros_that_do_not_fit_leave_the_text_as_long_as_it_was() {
    // New and never synced; closed before; synced, and written on without a sync.
    for (begun, synced, more) in [
        (true, 0, 1000),
        (true, 0, 3 * CHUNK + 1),
        (true, 0, 30 * CHUNK),
        (false, 1000, 0),
        (false, 2 * CHUNK, 0),
        (true, 20_000, 9 * CHUNK),
    ] {
        let setting = Setting::new();
        let world = if begun { World::new(SECRET) } else { setting.written(synced, 1) };
        let container = if begun { setting.create(&world).unwrap() } else { setting.open_rw(&world).unwrap() };
        if begun && synced > 0 {
            container.write_at(&block(synced, 1), 0).unwrap();
            container.sync().unwrap();
        }
        container.write_at(&block(more, 2), synced as u64).unwrap();
        let len = (synced + more) as u64;
        let what = format!("new: {begun}, {synced} bytes synced, {more} more");
        for room in [len as usize + 20_000, len as usize + 100_000] {
            world.limit_room(Some(room));
            assert!(container.set_len(len + 200_000).is_err(), "{what}");
            assert_eq!(container.len(), len, "{what}");
            assert!(container.write_at(b"far away", len + 200_000).is_err(), "{what}");
            assert_eq!(container.len(), len, "{what}");
        }
        // What fits can be written, without more room than there was, and is all there is.
        world.limit_room(Some(len as usize + 100_000));
        container.write_at(&block(500, 3), len).unwrap_or_else(|error| panic!("{what}: {error}"));
        container.sync().unwrap_or_else(|error| panic!("{what}: {error}"));
        let text = [block(synced, 1), block(more, 2), block(500, 3)].concat();
        assert!(setting.text(&world.restart(1)).unwrap() == text, "{what}");
        container.close().unwrap();
        assert!(setting.text(&world).unwrap() == text, "{what}");
        setting.assert_clean(&world, &what);
    }
}
