//! What one process of the test does: each operation twice, on the volume and on the plain folder, and what comes back is compared.

use fastrand::Rng;
use rustix::fs::{CWD, FallocateFlags, OFlags, RenameFlags, fallocate, renameat_with};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NAMES: u64 = 6;
const HANDLES_MAX: usize = 6;
const LEN_MAX: u64 = 400_000;
const WRITE_MAX: usize = 150_000;
/// Bytes of the shared file in a row that are one process's.
const SHARE: usize = 1000;
const SHARED_BYTES: usize = 120_000;

/// One file, open on both sides.
struct Pair {
    upper: File,
    model: File,
    name: String,
}

struct Worker {
    upper: PathBuf,
    model: PathBuf,
    pairs: Vec<Pair>,
    random: Rng,
    /// The last operations, for who looks for what went wrong.
    done: Vec<String>,
}

/// Works in a folder of its own below both.
pub(crate) fn work(upper: &Path, model: &Path, number: u64, workers: u64, seed: u64, steps: u64) {
    let name = format!("worker-{number}");
    let place = |folder: &Path| {
        let place = folder.join(&name);
        fs::create_dir_all(&place).unwrap();
        place
    };
    let mut worker = Worker { upper: place(upper), model: place(model), pairs: Vec::new(), random: Rng::with_seed(seed), done: Vec::new() };
    let share = Share::open(upper, model, number as usize, workers as usize);
    for step in 0..steps {
        if let Err(what) = worker.step() {
            let done = worker.done.iter().rev().take(40).rev().map(String::as_str).collect::<Vec<_>>().join("\n  ");
            panic!("seed {seed}, step {step}: {what}; the last of what was done:\n  {done}");
        }
        if step % 4 == 0 {
            share.step(&mut worker.random).unwrap_or_else(|what| panic!("seed {seed}, step {step}: the shared file: {what}"));
        }
    }
}

type Outcome = Result<(), String>;

/// Both succeeded, or both failed with one number.
fn same<T>(upper: io::Result<T>, model: io::Result<T>) -> Result<Option<(T, T)>, String> {
    match (upper, model) {
        (Ok(upper), Ok(model)) => Ok(Some((upper, model))),
        (Err(upper), Err(model)) if upper.raw_os_error() == model.raw_os_error() => Ok(None),
        (Err(upper), Err(model)) => Err(format!("it fails with {upper}, the plain folder with {model}")),
        (Err(upper), Ok(_)) => Err(format!("it fails with {upper}, the plain folder does not")),
        (Ok(_), Err(model)) => Err(format!("it does not fail, the plain folder does with {model}")),
    }
}

impl Worker {
    fn said(&mut self, what: String) {
        self.done.push(what);
    }

    fn name(&mut self) -> String {
        format!("file-{}", self.random.u64(..NAMES))
    }

    fn both(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.upper.join(name), self.model.join(name))
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mark = self.random.u8(1..);
        (0..len).map(|at| mark ^ (at % 251) as u8).collect()
    }

    fn step(&mut self) -> Outcome {
        match self.random.u32(..26) {
            0..3 => self.open(),
            3 => self.close(),
            4 => self.rename(),
            5 => self.link(),
            6 => self.unlink(),
            7 => self.whole_file(),
            _ if self.pairs.is_empty() => self.open(),
            kind => {
                let at = self.random.usize(..self.pairs.len());
                let pair = self.pairs.swap_remove(at);
                let outcome = self.with_pair(&pair, kind).and_then(|()| self.check(&pair));
                self.pairs.push(pair);
                outcome
            }
        }
    }

    fn open(&mut self) -> Outcome {
        if self.pairs.len() >= HANDLES_MAX {
            return self.close();
        }
        let (name, kind) = (self.name(), self.random.u32(..8));
        self.said(format!("open {name} {kind}"));
        let mut options = OpenOptions::new();
        options.read(true);
        match kind {
            0..3 => options.write(true).create(true).truncate(false),
            3 => options.write(true).create(true).truncate(true),
            4 => options.append(true).create(true),
            5 => options.write(true).create_new(true),
            6 => options.write(true).custom_flags(OFlags::SYNC.bits() as i32),
            _ => &mut options,
        };
        let (upper, model) = self.both(&name);
        if let Some((upper, model)) = same(options.open(upper), options.open(model))? {
            let pair = Pair { upper, model, name };
            self.check(&pair)?;
            self.pairs.push(pair);
        }
        Ok(())
    }

    fn close(&mut self) -> Outcome {
        if !self.pairs.is_empty() {
            let at = self.random.usize(..self.pairs.len());
            let pair = self.pairs.swap_remove(at);
            self.said(format!("close {}", pair.name));
        }
        Ok(())
    }

    fn rename(&mut self) -> Outcome {
        let (from, to, kind) = (self.name(), self.name(), self.random.u32(..4));
        self.said(format!("rename {from} {to} {kind}"));
        let flags = match kind {
            0 => RenameFlags::NOREPLACE,
            1 => RenameFlags::EXCHANGE,
            _ => RenameFlags::empty(),
        };
        let ((upper, model), (new_upper, new_model)) = (self.both(&from), self.both(&to));
        let rename = |from, to| renameat_with(CWD, from, CWD, to, flags).map_err(io::Error::from);
        same(rename(upper, new_upper), rename(model, new_model)).map(drop)
    }

    fn link(&mut self) -> Outcome {
        let (from, to) = (self.name(), self.name());
        self.said(format!("link {from} {to}"));
        let ((upper, model), (new_upper, new_model)) = (self.both(&from), self.both(&to));
        same(fs::hard_link(upper, new_upper), fs::hard_link(model, new_model)).map(drop)
    }

    fn unlink(&mut self) -> Outcome {
        let name = self.name();
        self.said(format!("unlink {name}"));
        let (upper, model) = self.both(&name);
        same(fs::remove_file(upper), fs::remove_file(model)).map(drop)
    }

    /// By name: cut, or read.
    fn whole_file(&mut self) -> Outcome {
        let (name, len) = (self.name(), self.random.u64(..LEN_MAX));
        let (upper, model) = self.both(&name);
        if self.random.bool() {
            self.said(format!("truncate {name} {len}"));
            let cut = |path| File::options().write(true).open(path).and_then(|file| file.set_len(len));
            return same(cut(upper), cut(model)).map(drop);
        }
        self.said(format!("read {name}"));
        match same(fs::read(upper), fs::read(model))? {
            Some((upper, model)) if upper != model => Err(format!("contents of {name} differ: {}", difference(&upper, &model))),
            _ => Ok(()),
        }
    }

    fn with_pair(&mut self, pair: &Pair, kind: u32) -> Outcome {
        let len = pair.model.metadata().unwrap().len();
        // Near what is there, mostly.
        let offset = if self.random.u32(..8) == 0 { self.random.u64(..LEN_MAX) } else { self.random.u64(..=len) };
        let count = if self.random.bool() { self.random.usize(1..5000) } else { self.random.usize(1..WRITE_MAX) };
        let name = &pair.name;
        match kind {
            8..14 => {
                self.said(format!("write {name} {offset} {count}"));
                let bytes = self.bytes(count);
                same(pair.upper.write_all_at(&bytes, offset), pair.model.write_all_at(&bytes, offset)).map(drop)
            }
            14 => {
                self.said(format!("append {name} {count}"));
                let bytes = self.bytes(count);
                same((&pair.upper).write_all(&bytes), (&pair.model).write_all(&bytes)).map(drop)
            }
            15 | 16 => {
                let to = if self.random.u32(..6) == 0 { 0 } else { offset };
                self.said(format!("set_len {name} {to}"));
                same(pair.upper.set_len(to), pair.model.set_len(to)).map(drop)
            }
            17 | 18 => self.map(pair, offset, count),
            19 | 20 => {
                let flags = match self.random.u32(..4) {
                    0 => FallocateFlags::empty(),
                    1 => FallocateFlags::ZERO_RANGE,
                    2 => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
                    _ => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                };
                self.said(format!("fallocate {name} {flags:?} {offset} {count}"));
                let ask = |file: &File| fallocate(file, flags, offset, count as u64).map_err(io::Error::from);
                same(ask(&pair.upper), ask(&pair.model)).map(drop)
            }
            21 => {
                self.said(format!("fsync {name}"));
                same(pair.upper.sync_all(), pair.model.sync_all()).map(drop)
            }
            22 => {
                let (from, length) = (self.random.u64(..=len), self.random.usize(1..50_000));
                self.said(format!("copy_file_range {name} {from} {offset} {length}"));
                // Where the ranges meet it is refused.
                let copy = |file: &File| {
                    let (mut from, mut to) = (from, offset);
                    rustix::fs::copy_file_range(file, Some(&mut from), file, Some(&mut to), length).map_err(io::Error::from)
                };
                same(copy(&pair.upper), copy(&pair.model)).map(drop)
            }
            _ => {
                self.said(format!("read {name} {offset} {count}"));
                let read = |file: &File| {
                    let mut buffer = vec![0; count];
                    let got = file.read_at(&mut buffer, offset)?;
                    buffer.truncate(got);
                    Ok(buffer)
                };
                match same(read(&pair.upper), read(&pair.model))? {
                    Some((upper, model)) if upper != model => Err(format!("{name} from {offset}: {}", difference(&upper, &model))),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Writes, or reads, through memory.
    fn map(&mut self, pair: &Pair, offset: u64, count: usize) -> Outcome {
        let len = pair.model.metadata().unwrap().len();
        let count = count.min(len.saturating_sub(offset) as usize);
        if count == 0 {
            return Ok(());
        }
        let (writes, syncs) = (self.random.bool(), self.random.bool());
        self.said(format!("mmap {} {offset} {count} writes {writes}", pair.name));
        let bytes = self.bytes(count);
        let touch = |file: &File| touch(file, offset, count, writes.then_some(&bytes[..]), syncs);
        match same(touch(&pair.upper), touch(&pair.model))? {
            Some((upper, model)) if upper != model => Err(format!("{} mapped at {offset}: {}", pair.name, difference(&upper, &model))),
            _ => Ok(()),
        }
    }

    /// Whether both sides are alike, now and then with all their bytes.
    fn check(&mut self, pair: &Pair) -> Outcome {
        let (shown, wanted) = (pair.upper.metadata().unwrap(), pair.model.metadata().unwrap());
        if (shown.len(), shown.nlink()) != (wanted.len(), wanted.nlink()) {
            let (len, links, wanted_len, wanted_links) = (shown.len(), shown.nlink(), wanted.len(), wanted.nlink());
            return Err(format!("{} has {len} bytes, {links} links; {wanted_len}, {wanted_links} are right", pair.name));
        }
        if self.random.u32(..5) > 0 {
            return Ok(());
        }
        let read = |file: &File| {
            let mut bytes = vec![0; wanted.len() as usize + 1];
            let got = file.read_at(&mut bytes, 0)?;
            bytes.truncate(got);
            Ok(bytes)
        };
        match same(read(&pair.upper), read(&pair.model))? {
            Some((upper, model)) if upper != model => Err(format!("{} in the whole: {}", pair.name, difference(&upper, &model))),
            _ => Ok(()),
        }
    }
}

fn difference(upper: &[u8], model: &[u8]) -> String {
    match upper.iter().zip(model).position(|(upper, model)| upper != model) {
        Some(at) => format!("at {at} it is {:02x}, {:02x} is right", upper[at], model[at]),
        None => format!("{} bytes, {} are right", upper.len(), model.len()),
    }
}

/// Bytes of a mapped file, after they were written there if that is asked for.
fn touch(file: &File, offset: u64, count: usize, bytes: Option<&[u8]>, syncs: bool) -> io::Result<Vec<u8>> {
    let page = rustix::param::page_size() as u64;
    let (first, within) = (offset / page * page, (offset % page) as usize);
    let protection = if bytes.is_some() { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // SAFETY: a new mapping, where the kernel likes; it is within the file, which this process alone changes, and goes before anybody else sees it.
    unsafe {
        let mapped = mmap(core::ptr::null_mut(), within + count, protection, MapFlags::SHARED, file, first)?;
        let start = mapped.cast::<u8>().add(within);
        if let Some(bytes) = bytes {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), start, count);
        }
        let seen = core::slice::from_raw_parts(start, count).to_vec();
        if syncs {
            msync(mapped, within + count, MsyncFlags::SYNC)?;
        }
        munmap(mapped, within + count)?;
        Ok(seen)
    }
}

/// A file that all write to, each in stretches of its own, which share pages and chunks with the others'.
struct Share {
    upper: File,
    model: File,
    number: usize,
    workers: usize,
}

impl Share {
    fn open(upper: &Path, model: &Path, number: usize, workers: usize) -> Self {
        let open = |folder: &Path| {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(folder.join("shared")).unwrap();
            file.set_len(SHARED_BYTES as u64).unwrap();
            file
        };
        Self { upper: open(upper), model: open(model), number, workers }
    }

    fn step(&self, random: &mut Rng) -> Outcome {
        let turn = random.usize(..SHARED_BYTES / SHARE / self.workers);
        let start = (turn * self.workers + self.number) * SHARE;
        let (from, mark) = (random.usize(..SHARE), random.u8(..));
        let bytes = vec![mark; random.usize(1..=SHARE - from)];
        let offset = (start + from) as u64;
        same(self.upper.write_all_at(&bytes, offset), self.model.write_all_at(&bytes, offset))?;
        if random.u32(..10) == 0 {
            same(self.upper.sync_all(), self.model.sync_all())?;
        }
        let read = |file: &File| {
            let mut bytes = vec![0; SHARE];
            file.read_exact_at(&mut bytes, start as u64).map(|()| bytes)
        };
        match same(read(&self.upper), read(&self.model))? {
            Some((upper, model)) if upper != model => Err(format!("from {start}: {}", difference(&upper, &model))),
            _ => Ok(()),
        }
    }
}
