//! Disks whose power is cut, for tests of whatever is to survive that: this crate's, and those of who builds on it.
//!
//! A [`World`] holds a few named files. It counts what changes them and goes off at the step that it is told; everything fails from then on.
//! [`World::restart`] is what a machine finds afterwards: of the writes that no sync followed each is there, or not, or in part (by sectors of 512 bytes), whatever
//! became of earlier ones. Removed files may be back.

use crate::disk::{Disk, Journals};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR_BYTES: usize = 512;

/// Some files on a disk whose power can be cut.
pub struct World(Mutex<Inner>);

struct Inner {
    files: BTreeMap<String, File>,
    steps: u64,
    syncs: u64,
    cut_at: Option<u64>,
    /// The step that fails, with others after it that do not.
    fail_at: Option<u64>,
    /// Bytes that must never be written.
    secret: Vec<u8>,
    was_secret_written: bool,
    /// Bytes that there is room for in all files together.
    room: Option<usize>,
}

#[derive(Clone, Default)]
struct File {
    /// As it survives for certain; none if it is not certain to be there.
    durable: Option<Vec<u8>>,
    /// What was changed since.
    pending: Vec<Change>,
    /// As programs see it; none if it was removed.
    now: Option<Vec<u8>>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>, mut keeps: impl FnMut() -> bool) {
        match self {
            Self::Length(len) if keeps() => to.resize(*len, 0),
            Self::Length(_) => {}
            Self::Write { offset, bytes } => {
                let mut at = 0;
                while at < bytes.len() {
                    let sector_end = (offset + at) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES;
                    let end = (sector_end - offset).min(bytes.len());
                    if keeps() {
                        to.resize(to.len().max(offset + end), 0);
                        to[offset + at..offset + end].copy_from_slice(&bytes[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
}

/// xorshift64*: tests must repeat, and this crate has no other use for pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }
}

impl World {
    /// One without files. `secret` is looked for in everything that is written; empty to look for nothing.
    pub fn new(secret: &[u8]) -> Arc<Self> {
        Arc::new(Self::of(BTreeMap::new(), secret.to_vec()))
    }

    fn of(files: BTreeMap<String, File>, secret: Vec<u8>) -> Self {
        Self(Mutex::new(Inner { files, steps: 0, syncs: 0, cut_at: None, fail_at: None, secret, was_secret_written: false, room: None }))
    }

    /// Cuts the power at the step of that number, counted from now: that change is under way, later ones fail.
    pub fn cut_at(&self, step: u64) {
        let mut inner = self.lock();
        (inner.steps, inner.cut_at, inner.fail_at) = (0, Some(step), None);
    }

    /// Lets the step of that number fail, counted from now. Of a write the first half is there then, in whole sectors; of a sync nobody knows what is on the disk, and the next one does not write it, as on Linux.
    pub fn fail_at(&self, step: u64) {
        let mut inner = self.lock();
        (inner.steps, inner.fail_at) = (0, Some(step));
    }

    /// Whether the step that was to fail has.
    pub fn has_failed(&self) -> bool {
        let inner = self.lock();
        inner.fail_at.is_some_and(|at| inner.steps > at)
    }

    /// Limits the room for all files together; writes beyond it fail as on a full disk.
    pub fn limit_room(&self, bytes: Option<usize>) {
        self.lock().room = bytes;
    }

    /// Whether the power has been cut.
    pub fn is_off(&self) -> bool {
        let inner = self.lock();
        inner.cut_at.is_some_and(|at| inner.steps > at)
    }

    /// Steps since the last [`cut_at`](Self::cut_at), or from the beginning.
    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Syncs that returned, from the beginning.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Whether the secret was ever in one write, or in a file as it stood after one.
    pub fn was_secret_written(&self) -> bool {
        self.lock().was_secret_written
    }

    /// What the machine finds after the cut; which of the uncertain changes are there hangs on `seed`.
    pub fn restart(&self, seed: u64) -> Arc<Self> {
        let inner = self.lock();
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1);
        // Few, half, or most of what is pending is there.
        let likely = [1, 8, 14, 15][(random.next() % 4) as usize];
        // Writes are torn, or each is there or not.
        let by_writes = random.next().is_multiple_of(2);
        let survives = |(name, file): (&String, &File)| {
            let mut bytes = file.durable.clone()?;
            let is_gone = file.now.is_none() && random.next().is_multiple_of(2);
            for change in &file.pending {
                let all_or_none = by_writes.then(|| random.next() % 16 < likely);
                change.apply(&mut bytes, || all_or_none.unwrap_or_else(|| random.next() % 16 < likely));
            }
            (!is_gone).then(|| (name.clone(), File { durable: Some(bytes.clone()), pending: Vec::new(), now: Some(bytes) }))
        };
        let files = inner.files.iter().filter_map(survives).collect();
        Arc::new(Self::of(files, inner.secret.clone()))
    }

    /// Opens a file, made if it is not there; that it was made is durable.
    pub fn open(self: &Arc<Self>, name: &str) -> Arc<dyn Disk> {
        let file = File { durable: Some(Vec::new()), pending: Vec::new(), now: Some(Vec::new()) };
        self.lock().files.entry(name.to_owned()).or_insert(file);
        Arc::new(Handle { world: self.clone(), name: name.to_owned() })
    }

    /// The bytes of a file as programs see them.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().files.get(name).and_then(|file| file.now.clone())
    }

    /// Journals of containers in this world.
    pub fn journals(self: &Arc<Self>) -> Arc<dyn Journals> {
        Arc::new(WorldJournals(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a step; the change of the step at which the power goes is still under way.
    fn step(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.lock();
        inner.steps += 1;
        match inner.cut_at {
            Some(at) if inner.steps > at + 1 => Err(off()),
            _ => Ok(inner),
        }
    }

    /// Whether the step just begun is the one that fails.
    fn fails(inner: &Inner) -> bool {
        inner.fail_at.is_some_and(|at| inner.steps == at + 1)
    }

    /// Says whether the step just done was the last.
    fn done(inner: &Inner) -> io::Result<()> {
        if inner.cut_at.is_some_and(|at| inner.steps > at) { Err(off()) } else { Ok(()) }
    }
}

fn off() -> io::Error {
    io::Error::other("the power is off")
}

fn failed() -> io::Error {
    io::Error::other("the disk has failed")
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

struct Handle {
    world: Arc<World>,
    name: String,
}

impl Handle {
    fn change(&self, mut change: Change) -> io::Result<()> {
        let mut inner = self.world.step()?;
        let fails = World::fails(&inner);
        match &mut change {
            Change::Write { offset, bytes } if fails => {
                let end = (*offset + bytes.len() / 2) / SECTOR_BYTES * SECTOR_BYTES;
                bytes.truncate(end.saturating_sub(*offset));
            }
            Change::Length(_) if fails => return Err(failed()),
            _ => {}
        }
        let used: usize = inner.files.values().filter_map(|file| file.now.as_ref()).map(Vec::len).sum();
        let file = inner.files.get_mut(&self.name).ok_or_else(gone)?;
        let now = file.now.as_mut().ok_or_else(gone)?;
        let end = match &change {
            Change::Write { offset, bytes } => offset + bytes.len(),
            Change::Length(len) => *len,
        };
        let grows = end.saturating_sub(now.len());
        if inner.room.is_some_and(|room| grows > 0 && used + grows > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = inner.files.get_mut(&self.name).ok_or_else(gone)?;
        let now = file.now.as_mut().ok_or_else(gone)?;
        change.apply(now, || true);
        file.pending.push(change.clone());
        if let Change::Write { bytes, .. } = &change {
            let secret = &inner.secret;
            let is_there = !secret.is_empty() && bytes.windows(secret.len()).any(|window| window == secret);
            inner.was_secret_written |= is_there;
        }
        if fails { Err(failed()) } else { World::done(&inner) }
    }
}

impl Disk for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.world.is_off() {
            return Err(off());
        }
        let inner = self.world.lock();
        let now = inner.files.get(&self.name).and_then(|file| file.now.as_ref()).ok_or_else(gone)?;
        let rest = now.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write { offset: offset as usize, bytes: bytes.to_vec() })
    }

    fn len(&self) -> io::Result<u64> {
        let inner = self.world.lock();
        inner.files.get(&self.name).and_then(|file| file.now.as_ref()).map(|now| now.len() as u64).ok_or_else(gone)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Length(len as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.world.step()?;
        // A sync that the cut interrupts has not returned: nothing is certain yet.
        World::done(&inner)?;
        inner.syncs += 1;
        let fails = World::fails(&inner);
        let mut random = Random(inner.steps | 1);
        let file = inner.files.get_mut(&self.name).ok_or_else(gone)?;
        let pending = core::mem::take(&mut file.pending);
        let durable = file.durable.get_or_insert_default();
        pending.iter().for_each(|change| change.apply(durable, || !fails || random.next().is_multiple_of(2)));
        if fails { Err(failed()) } else { Ok(()) }
    }
}

struct WorldJournals(Arc<World>);

impl WorldJournals {
    fn name(salt: &[u8; 32]) -> String {
        format!("journal {:02x?}", &salt[..4])
    }
}

impl Journals for WorldJournals {
    fn find(&self, salt: &[u8; 32]) -> io::Result<Option<Arc<dyn Disk>>> {
        let name = Self::name(salt);
        Ok(self.0.bytes(&name).is_some().then(|| self.0.open(&name)))
    }

    fn create(&self, salt: &[u8; 32]) -> io::Result<Arc<dyn Disk>> {
        let name = Self::name(salt);
        let mut inner = self.0.step()?;
        World::done(&inner)?;
        inner.files.insert(name.clone(), File { durable: Some(Vec::new()), pending: Vec::new(), now: Some(Vec::new()) });
        drop(inner);
        Ok(self.0.open(&name))
    }

    fn remove(&self, salt: &[u8; 32]) -> io::Result<()> {
        let mut inner = self.0.step()?;
        if let Some(file) = inner.files.get_mut(&Self::name(salt)) {
            file.now = None;
        }
        World::done(&inner)
    }
}
