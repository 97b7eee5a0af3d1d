//! A source that goes once its result is there: what is removed is what was read, and only while the result has its name.
//!
//! Two runs of opposite directions each take the other's source for their result. So whoever removes a source has it locked for himself from before it is compared,
//! and the result against others who would: one of the two is refused. Where there are no such locks (NFS for who only reads, some in user space), and for a file of
//! several names, which this very run may work on under each of them, a source is first moved to a name of ours, and then its result is looked for. Of two that do so
//! one finds what the other has moved away, and puts back what it has moved itself.

use super::io_failure;
use super::work::WriteArgs;
use crate::failure::Failure;
use crate::shown::Shown;
use bywash_files::disk::{Access, Disk};
use bywash_files::place::{Spot, open_regular, with_new_name};
use rustix::fs::{AtFlags, FileType, FlockOperation, RenameFlags, Stat, flock, linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a source is called, with numbers behind it, while its result is looked for.
const ASIDE: &str = ".removing-by-bywash-";

/// A source as it was opened, and held until it is removed, if it is.
pub(super) struct Source {
    read: Box<Metadata>,
    held: Option<File>,
    /// What its result replaces, which is perhaps somebody else's source.
    _replaced: Option<File>,
}

impl Source {
    /// One that stays.
    pub(super) fn stays(read: Metadata) -> Self {
        Self { read: Box::new(read), held: None, _replaced: None }
    }

    /// One that has been locked for what is done with it.
    pub(super) fn of(file: &File, read: Metadata, writes: WriteArgs) -> io::Result<Self> {
        let held = writes.removes().then(|| file.try_clone()).transpose()?;
        Ok(Self { read: Box::new(read), held, _replaced: None })
    }

    /// The same, locked here.
    pub(super) fn locked(file: &File, read: Metadata, writes: WriteArgs) -> io::Result<Self> {
        if writes.removes() {
            Disk::lock(file, writes.access(&read))?;
        }
        Self::of(file, read, writes)
    }

    /// The same, with what its result replaces.
    pub(super) fn with(self, replaced: Option<File>) -> Self {
        Self { _replaced: replaced, ..self }
    }

    /// Whether nobody else has it locked, nor can have until it is let go.
    fn is_alone(&self) -> bool {
        self.read.nlink() == 1 && self.held.as_ref().is_some_and(|held| flock(held, FlockOperation::NonBlockingLockExclusive).is_ok())
    }

    /// Removes what was read, and not what has its name now: its folder is opened, so that what is looked at there is what is removed there.
    pub(super) fn remove(&self, spot: Spot<'_>, result: &Placed, at: Spot<'_>) -> Result<(), Failure> {
        let source = spot.path;
        let failed = |error: io::Error| io_failure(source, &error);
        let Some(name) = source.file_name() else { return Err(stays(source, "its path has no name at its end")) };
        let folder = spot.folder().map_err(failed)?;
        self.look(&folder, name, source)?;
        if !self.is_alone() {
            return self.remove_aside(&folder, name, spot, result, at);
        }
        result.look(source, at)?;
        unlinkat(&folder, name, AtFlags::empty()).map_err(|error| failed(error.into()))
    }

    /// The same without a lock.
    fn remove_aside(&self, folder: &File, name: &OsStr, spot: Spot<'_>, result: &Placed, at: Spot<'_>) -> Result<(), Failure> {
        let source = spot.path;
        let failed = |error: Errno| io_failure(source, &error.into());
        let ((), aside) = with_new_name(ASIDE, |aside| rename_new(folder, name, aside.as_ref())).map_err(failed)?;
        let looked = statat(folder, &aside, AtFlags::SYMLINK_NOFOLLOW).map_err(failed).and_then(|moved| match State::of(&moved) {
            // Moving it changes the other time.
            moved if moved.is_as_written(&State::from(&*self.read)) => result.look(source, at),
            _ => Err(changed(source)),
        });
        let removed = looked.and_then(|()| unlinkat(folder, &aside, AtFlags::empty()).map_err(failed));
        removed.map_err(|failure| match rename_new(folder, aside.as_ref(), name) {
            Ok(()) => failure,
            Err(error) => {
                let said = format!("{failure}; it is called {aside} now and could not be put back ({error}): rename it");
                failure.saying(said)
            }
        })
    }

    /// Whether the name leads to what was read, as it was then.
    fn look(&self, folder: &File, name: &OsStr, source: &Path) -> Result<(), Failure> {
        let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| io_failure(source, &error.into()))?;
        if FileType::from_raw_mode(there.st_mode) == FileType::Symlink {
            return Err(stays(source, "it is a symbolic link, and what it leads to may have other names"));
        }
        let (now, before) = (State::of(&there), State::from(&*self.read));
        // Another name of it that went changes the other time as well.
        let is_same = if self.read.nlink() > 1 { now.is_as_written(&before) } else { now == before };
        if is_same { Ok(()) } else { Err(changed(source)) }
    }
}

/// A result that was compared with its source, and has its name. It is open, and locked against who would remove it.
pub(super) struct Placed {
    _file: File,
    state: State,
}

impl Placed {
    /// One that has been given its name just now.
    pub(super) fn now(file: File) -> io::Result<Self> {
        let state = State::from(&file.metadata()?);
        Ok(Self { _file: file, state })
    }

    /// One that was there before, as it was when it was opened to be compared.
    pub(super) fn before(file: File, read: &Metadata) -> Self {
        Self { _file: file, state: State::from(read) }
    }

    /// Whether its name still leads to it, and it is as it was; what is said of the source if not.
    fn look(&self, source: &Path, spot: Spot<'_>) -> Result<(), Failure> {
        let look = || Ok::<_, io::Error>(State::of(&statat(spot.folder()?, spot.name()?, AtFlags::SYMLINK_NOFOLLOW)?));
        match look() {
            Ok(state) if state == self.state => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(stays(source, &format!("its result, {}, cannot be looked at ({error})", spot.path.shown())))
            }
            looked => {
                let what = if looked.is_ok() { "replaced or changed" } else { "removed" };
                Err(stays(source, &format!("its result, {}, was {what} after they were compared", spot.path.shown())))
            }
        }
    }
}

/// Which file it is, and when it was written to and changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Device, number, length.
    file: (u64, u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for State {
    fn from(of: &Metadata) -> Self {
        Self { file: (of.dev(), of.ino(), of.size()), modified: (of.mtime(), of.mtime_nsec()), changed: (of.ctime(), of.ctime_nsec()) }
    }
}

impl State {
    fn of(stat: &Stat) -> Self {
        Self {
            file: (stat.st_dev, stat.st_ino, stat.st_size as u64),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// Whether it is the same file, and was not written to; names and rights may be others.
    fn is_as_written(&self, before: &Self) -> bool {
        (self.file, self.modified) == (before.file, before.modified)
    }
}

impl WriteArgs {
    /// What a result replaces, locked against who would remove it: he would look at it, and then remove the result.
    pub(super) fn replaced(self, at: Spot<'_>) -> io::Result<Option<File>> {
        if !(self.removes() && self.replaces()) {
            return Ok(None);
        }
        // What cannot be opened is said when it cannot be replaced.
        let Ok((file, _)) = open_regular(at, false) else { return Ok(None) };
        Disk::lock(&file, Access::Read)?;
        Ok(Some(file))
    }

    /// How a source is locked while it is worked on: who removes it has it alone, but for one of several names, which are perhaps all worked on.
    pub(super) fn access(self, read: &Metadata) -> Access {
        if self.removes() && read.nlink() == 1 { Access::Write } else { Access::Read }
    }
}

fn stays(source: &Path, why: &str) -> Failure {
    Failure::failed(format!("{}: {why}; not removed", source.shown()))
}

fn changed(source: &Path) -> Failure {
    stays(source, "it was replaced or changed while it was worked on")
}

/// Gives a file another name, if nothing has that.
fn rename_new(folder: &File, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // NFS, 9p and others do not know the flag. A second name is refused where there is one, too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return renamed,
    }
    match linkat(folder, from, folder, to, AtFlags::empty()) {
        // Some have no second names; then it is looked first.
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::MLINK) => match statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(folder, from, folder, to),
            looked => looked.and(Err(Errno::EXIST)),
        },
        linked => linked.and_then(|()| unlinkat(folder, from, AtFlags::empty())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A text and what was made of it, each of which goes for the other.
    struct Pair {
        place: tempfile::TempDir,
    }

    impl Pair {
        fn new() -> Self {
            let pair = Self { place: tempfile::tempdir().unwrap() };
            ["text", "sealed"].iter().for_each(|name| std::fs::write(pair.at(name), name).unwrap());
            pair
        }

        fn at(&self, name: &str) -> PathBuf {
            self.place.path().join(name)
        }

        /// As it is without locks, and with one.
        fn source(&self, is_locked: bool) -> Source {
            let file = File::open(self.at("text")).unwrap();
            if is_locked {
                Disk::lock(&file, Access::Write).unwrap();
            }
            Source { read: Box::new(file.metadata().unwrap()), held: is_locked.then_some(file), _replaced: None }
        }

        fn result(&self) -> Placed {
            Placed::now(File::open(self.at("sealed")).unwrap()).unwrap()
        }

        fn remove(&self, source: &Source, result: &Placed) -> String {
            let removed = source.remove((&self.at("text")).into(), result, (&self.at("sealed")).into());
            removed.map_or_else(|failure| failure.to_string(), |()| String::new())
        }

        fn names(&self) -> Vec<String> {
            let names = self.place.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_source_goes_only_while_its_result_has_its_name_and_is_as_it_was() {
        for is_locked in [true, false] {
            let pair = Pair::new();
            let (source, result) = (pair.source(is_locked), pair.result());
            std::fs::rename(pair.at("sealed"), pair.at("elsewhere")).unwrap();
            let said = pair.remove(&source, &result);
            assert!(said.contains("was removed after they were compared; not removed"), "{said}");
            assert_eq!(std::fs::read(pair.at("text")).unwrap(), b"text");
            drop(source);

            std::fs::write(pair.at("sealed"), "sealed").unwrap();
            // What was put back has another time by now.
            let source = pair.source(is_locked);
            let said = pair.remove(&source, &result);
            assert!(said.contains("was replaced or changed after") && pair.at("text").exists(), "{said}");
            drop(source);

            let (source, result) = (pair.source(is_locked), pair.result());
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(pair.at("sealed"), "SEALED").unwrap();
            let said = pair.remove(&source, &result);
            assert!(said.contains("was replaced or changed after") && pair.at("text").exists(), "{said}");
            drop(source);

            let source = pair.source(is_locked);
            assert_eq!(
                (pair.remove(&source, &pair.result()), pair.names()),
                (String::new(), ["elsewhere", "sealed"].map(Into::into).into())
            );
        }
    }

    #[test]
    fn only_the_file_that_was_read_is_removed() {
        for is_locked in [true, false] {
            let pair = Pair::new();
            let (source, result) = (pair.source(is_locked), pair.result());
            // Another file of the same length under the name, and the same time.
            std::fs::write(pair.at("other"), "TEXT").unwrap();
            File::open(pair.at("other")).unwrap().set_modified(source.read.modified().unwrap()).unwrap();
            std::fs::rename(pair.at("text"), pair.at("aside")).unwrap();
            std::fs::rename(pair.at("other"), pair.at("text")).unwrap();
            let said = pair.remove(&source, &result);
            assert!(said.contains("was replaced") && std::fs::read(pair.at("text")).unwrap() == b"TEXT", "{said}");

            std::fs::rename(pair.at("text"), pair.at("other")).unwrap();
            std::os::unix::fs::symlink("other", pair.at("text")).unwrap();
            let said = pair.remove(&pair.source(is_locked), &result);
            assert!(said.contains("symbolic link") && pair.at("text").is_symlink() && pair.at("other").exists(), "{said}");
        }
    }

    /// Each of two takes what the other removes for its result, and nothing keeps them from each other but the order of what they do.
    #[test]
    fn of_two_that_remove_each_others_result_without_locks_one_at_least_stays() {
        for _ in 0..500 {
            let pair = Pair::new();
            let begin = std::sync::Barrier::new(2);
            let [text, sealed] = ["text", "sealed"].map(|name| pair.at(name));
            let one = |source: &Path, result: &Path| {
                let held = File::open(source).unwrap();
                let placed = Placed::now(File::open(result).unwrap()).unwrap();
                let of = Source::stays(held.metadata().unwrap());
                begin.wait();
                of.remove(source.into(), &placed, result.into()).is_ok()
            };
            let removed = std::thread::scope(|scope| {
                let other = scope.spawn(|| one(&sealed, &text));
                [one(&text, &sealed), other.join().unwrap()]
            });
            let names = pair.names();
            assert_eq!(names.len(), 2 - removed.iter().filter(|removed| **removed).count(), "{names:?}");
            assert!(!names.is_empty() && names.iter().all(|name| name == "text" || name == "sealed"), "{names:?}");
        }
    }
}
