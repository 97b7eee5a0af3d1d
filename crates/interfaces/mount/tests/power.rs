//! The power is cut while programs work on a mounted volume, at any change of the disk below it. The volume is then mounted again: every file is as it was after some
//! step since its last sync, or empty if it was new; no name is lost that was certain; nothing is damaged; and no text or name was ever on the disk.
//!
//! `BYWASH_CUTS` says at how many points (100 without), `BYWASH_SEED` what the programs do.

mod common;
mod lower_disk;

use bywash_mount::Options;
use common::Fixture;
use lower_disk::{Cut, Recording};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CHUNK: usize = 4096;
const SECRET: &[u8] = b"attack at dawn!!";
const STEPS: usize = 90;
/// New files are synced this often, and what is changed in place after two seconds.
const TURN: Duration = Duration::from_millis(700);
const PAUSE: Duration = Duration::from_millis(2_500);

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Nothing,
    /// The file of that number.
    File(usize),
    Folder,
    Link(String),
}

/// A file: its texts, each from the number of changes on at which it could first be there; and from which on it is certain that none before that one is.
#[derive(Default)]
struct Text {
    texts: Vec<(usize, Vec<u8>)>,
    certain: Vec<(usize, usize)>,
}

/// What was at a path, from when on it could be there, and from when on for certain.
type History = Vec<(usize, usize, Bound)>;

struct Programs<'a> {
    recording: &'a Recording,
    upper: PathBuf,
    random: fastrand::Rng,
    files: Vec<Text>,
    paths: BTreeMap<String, History>,
    /// When programs were promised something: every name of before is then certain.
    promises: Vec<usize>,
}

impl Programs<'_> {
    fn now(&self) -> usize {
        self.recording.disk.changes()
    }

    fn bound(&self, path: &str) -> Bound {
        self.paths.get(path).and_then(|history| history.last()).map_or(Bound::Nothing, |(.., bound)| bound.clone())
    }

    fn bind(&mut self, path: &str, began: usize, bound: Bound) {
        let now = self.now();
        self.paths.entry(path.to_owned()).or_default().push((began, now, bound));
    }

    fn text(&self, file: usize) -> Vec<u8> {
        self.files[file].texts.last().unwrap().1.clone()
    }

    fn block(&mut self, len: usize) -> Vec<u8> {
        let mut block: Vec<u8> = SECRET.iter().copied().cycle().take(len).collect();
        let mark = self.random.u8(..);
        block.iter_mut().step_by(61).for_each(|byte| *byte = mark);
        block
    }

    fn path(&mut self) -> String {
        let folder = *self.random.choice(&["secret-a", "secret-b"]).unwrap();
        // One name is so long that it has a file of its own.
        match self.random.u32(..8) {
            0 => format!("{folder}/{}", "secret-name".repeat(20)),
            number => format!("{folder}/secret-{number}"),
        }
    }

    /// The file at a path, made if there is none.
    fn file(&mut self, path: &str) -> usize {
        if let Bound::File(file) = self.bound(path) {
            return file;
        }
        let began = self.now();
        File::create_new(self.upper.join(path)).unwrap();
        self.files.push(Text { texts: vec![(began, Vec::new())], certain: Vec::new() });
        self.bind(path, began, Bound::File(self.files.len() - 1));
        self.files.len() - 1
    }

    fn sync(&mut self, file: usize, open: &File) {
        open.sync_all().unwrap();
        let (now, latest) = (self.now(), self.files[file].texts.len() - 1);
        self.files[file].certain.push((now, latest));
        self.promises.push(now);
    }

    fn step(&mut self) {
        let path = self.path();
        let upper = self.upper.join(&path);
        if let Bound::Link(_) = self.bound(&path) {
            let began = self.now();
            fs::remove_file(upper).unwrap();
            return self.bind(&path, began, Bound::Nothing);
        }
        match self.random.u32(..18) {
            // Made, or cut to nothing and written anew.
            0..4 => {
                let (file, len) = (self.file(&path), self.random.usize(1..10 * CHUNK));
                let (text, began) = (self.block(len), self.now());
                self.files[file].texts.extend([(began, Vec::new()), (began, text.clone())]);
                let mut open = File::create(upper).unwrap();
                open.write_all(&text).unwrap();
                if self.random.u32(..3) == 0 {
                    self.sync(file, &open);
                }
            }
            // Changed where it is.
            4..8 => {
                let file = self.file(&path);
                let mut text = self.text(file);
                let (at, len) = (self.random.usize(..=text.len()), self.random.usize(1..3 * CHUNK));
                let (block, began) = (self.block(len), self.now());
                text.resize(text.len().max(at + len), 0);
                text[at..at + len].copy_from_slice(&block);
                self.files[file].texts.push((began, text));
                let open = File::options().write(true).open(upper).unwrap();
                open.write_all_at(&block, at as u64).unwrap();
                if self.random.u32(..4) == 0 {
                    self.sync(file, &open);
                }
            }
            8 => {
                let file = self.file(&path);
                let (mut text, len, began) = (self.text(file), self.random.usize(1..8 * CHUNK), self.now());
                text.resize(len, 0);
                self.files[file].texts.push((began, text));
                File::options().write(true).open(upper).unwrap().set_len(len as u64).unwrap();
            }
            // As editors do it: another file, synced, takes the name.
            9 => {
                let (draft, len) = (format!("secret-a/secret-draft-{}", self.files.len()), self.random.usize(1..6 * CHUNK));
                let file = self.file(&draft);
                let (text, began) = (self.block(len), self.now());
                self.files[file].texts.push((began, text.clone()));
                let mut open = File::options().write(true).open(self.upper.join(&draft)).unwrap();
                open.write_all(&text).unwrap();
                self.sync(file, &open);
                drop(open);
                self.rename(&draft, &path);
            }
            10 | 11 => {
                let (_, to) = (self.file(&path), self.path());
                self.rename(&path, &to);
            }
            12 => {
                let (file, to) = (self.file(&path), self.path());
                if self.bound(&to) == Bound::Nothing {
                    let began = self.now();
                    fs::hard_link(upper, self.upper.join(&to)).unwrap();
                    self.bind(&to, began, Bound::File(file));
                }
            }
            13 => {
                self.file(&path);
                let began = self.now();
                fs::remove_file(upper).unwrap();
                self.bind(&path, began, Bound::Nothing);
            }
            // In a folder that is new.
            15 => {
                let folder = format!("secret-folder-{}", self.files.len());
                if self.bound(&folder) == Bound::Nothing {
                    let began = self.now();
                    fs::create_dir(self.upper.join(&folder)).unwrap();
                    self.bind(&folder, began, Bound::Folder);
                    self.file(&format!("{folder}/secret-new"));
                }
            }
            // A folder's names are to be certain.
            16 => {
                File::open(upper.parent().unwrap()).unwrap().sync_all().unwrap();
                let now = self.now();
                self.promises.push(now);
            }
            14 if self.bound(&path) == Bound::Nothing => {
                let began = self.now();
                std::os::unix::fs::symlink("secret-target", upper).unwrap();
                self.bind(&path, began, Bound::Link("secret-target".into()));
            }
            // A folder of its own, into which a file goes.
            _ => {
                let folder = format!("secret-folder-{}", self.files.len());
                if self.bound(&folder) == Bound::Nothing {
                    let (_, began) = (self.file(&path), self.now());
                    fs::create_dir(self.upper.join(&folder)).unwrap();
                    self.bind(&folder, began, Bound::Folder);
                    self.rename(&path, &format!("{folder}/secret-moved"));
                }
            }
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (moved, target, began) = (self.bound(from), self.bound(to), self.now());
        fs::rename(self.upper.join(from), self.upper.join(to)).unwrap();
        // Two names of one file: nothing happens.
        if from != to && moved != target {
            self.bind(from, began, Bound::Nothing);
            self.bind(to, began, moved);
        }
    }

    /// What may be at a path.
    fn allowed(&self, path: &str, cut: &Cut<'_>) -> Vec<Bound> {
        let Some(history) = self.paths.get(path) else { return Vec::new() };
        let all = [(0, 0, Bound::Nothing)].into_iter().chain(history.iter().cloned()).collect::<Vec<_>>();
        let promised = self.promises.iter().rev().find(|at| **at <= cut.number).copied().unwrap_or_default();
        let is_over = |at: usize| all.get(at + 1).is_some_and(|(_, certain, _)| *certain <= promised);
        let may_be =
            |(at, (began, _, bound)): (usize, &(usize, usize, Bound))| (*began <= cut.number && !is_over(at)).then(|| bound.clone());
        all.iter().enumerate().filter_map(may_be).collect()
    }

    /// Whether a text may be that of one of those files.
    fn is_text_of(&self, file: usize, text: &[u8], cut: &Cut<'_>) -> bool {
        let Text { texts, certain } = &self.files[file];
        let first = certain.iter().rev().find(|(from, _)| *from <= cut.number).map_or(0, |(_, first)| *first);
        texts[first..].iter().any(|(began, may_be)| *began <= cut.number && may_be == text)
    }

    /// Everything that is there may be there, and what must be there is.
    fn check(&self, upper: &Path, cut: &Cut<'_>, what: &str) {
        for path in self.paths.keys() {
            let allowed = self.allowed(path, cut);
            let place = upper.join(path);
            let found = match fs::symlink_metadata(&place) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    assert!(allowed.contains(&Bound::Nothing), "{what}: {path} is gone; there may be {allowed:?}");
                    continue;
                }
                outcome => outcome.unwrap(),
            };
            if found.is_file() {
                let text = fs::read(&place).unwrap_or_else(|error| panic!("{what}: {path}: {error}"));
                let is_right = allowed.iter().any(|bound| matches!(bound, Bound::File(file) if self.is_text_of(*file, &text, cut)));
                assert!(is_right, "{what}: {path} has {} bytes that never were its text; there may be {allowed:?}", text.len());
            } else if found.is_symlink() {
                let target = fs::read_link(&place).unwrap().to_str().unwrap().to_owned();
                assert!(allowed.contains(&Bound::Link(target)), "{what}: {path} is a link; there may be {allowed:?}");
            } else {
                assert!(allowed.contains(&Bound::Folder), "{what}: {path} is a folder; there may be {allowed:?}");
            }
        }
        let count = |folder: &Path| {
            fs::read_dir(folder).map_or(0, |entries| {
                entries
                    .inspect(|entry| {
                        let path = entry.as_ref().unwrap().path();
                        let path = path.strip_prefix(upper).unwrap().to_str().unwrap();
                        // One whose name was never on the disk may have another.
                        assert!(self.paths.contains_key(path) || path.contains("recovered-"), "{what}: {path} was never there");
                    })
                    .count()
            })
        };
        for folder in self.paths.keys().filter(|path| !path.contains('/')) {
            count(&upper.join(folder));
        }
        count(upper);
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

#[test]
fn a_power_cut_at_any_change_of_the_disk_leaves_every_file_old_or_new() {
    let (cuts, seed) = (variable("BYWASH_CUTS", 100) as usize, variable("BYWASH_SEED", 1));
    let place = tempfile::tempdir().unwrap();
    let [lower, upper] = ["lower", "upper"].map(|name| place.path().join(name));
    for folder in [&lower, &upper] {
        fs::create_dir(folder).unwrap();
    }
    let recording = match Recording::start(&lower) {
        Ok(recording) => recording,
        Err(error) => return eprintln!("skipped: nothing can be mounted here: {error}"),
    };
    let options = Options { chunk_size: CHUNK, ..Options::default() };
    let mut fixture = Fixture::over(&lower, &upper, &options, TURN);
    let random = fastrand::Rng::with_seed(seed);
    let mut programs =
        Programs { recording: &recording, upper: upper.clone(), random, files: Vec::new(), paths: BTreeMap::new(), promises: Vec::new() };
    let first = programs.now();
    for folder in ["secret-a", "secret-b"] {
        let began = programs.now();
        fs::create_dir(upper.join(folder)).unwrap();
        programs.bind(folder, began, Bound::Folder);
    }
    for step in 0..STEPS {
        programs.step();
        if step % 30 == 29 {
            // What is closed is settled, what is new is synced.
            std::thread::sleep(PAUSE);
        }
    }
    fixture.unmount();
    let all = programs.now();
    for secret in [SECRET, b"secret"] {
        assert!(!recording.disk.was_written(secret), "seed {seed}: text on the disk");
    }

    let (mut points, mut next, mut unsettled) = (0, first, 0);
    recording.disk.replay(|cut| {
        // All, or as many as are asked for, evenly.
        while cut.number == next && points < cuts {
            let what = format!("BYWASH_SEED={seed}, cut {next} of {all}, point {points}");
            let after = tempfile::tempdir().unwrap();
            let [lower, upper] = ["lower", "upper"].map(|name| after.path().join(name));
            for folder in [&lower, &upper] {
                fs::create_dir(folder).unwrap();
            }
            cut.restore(points as u64, &lower);
            unsettled += common::look(&lower, &what).unsettled;
            let mut fixture = Fixture::of(&lower, &upper, false).unwrap_or_else(|error| panic!("{what}: {error}"));
            programs.check(&upper, cut, &what);
            fixture.unmount();
            fixture.assert_clean();
            points += 1;
            next = first + points * (all - first) / cuts;
        }
    });
    recording.end();
    assert_eq!(points, cuts);
    assert!(unsettled > 0, "no cut came between anything");
    eprintln!("{points} power cuts in {} changes of the disk, after which {unsettled} files or names were recovered", all - first);
}
