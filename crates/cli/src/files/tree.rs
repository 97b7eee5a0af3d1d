//! Which files are meant, and where each goes.
//!
//! Of a folder, regular files are meant, however deep. Links in it are not followed, so there are no circles; under `-o` they are made again as they are.
//! Devices, pipes and sockets in it are left alone. What is named on the command line itself may be a link to a file.

use super::keys::is_identity_of;
use super::{SUFFIX, io_failure, volume};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_files::Recipient;
use bywash_files::disk::is_journal;
use bywash_files::header::MAGIC;
use bywash_files::leftover::{Leftover, is_unfinished};
use bywash_files::place::{Replaces, Spot, copy_link, copy_metadata, folder_of, make_folder, not_a_folder, open_folder, open_regular};
use bywash_mount::VOLUME_FILE;
use bywash_mount::volume::is_volume;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{DirBuilder, DirEntry, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether what is named is there: nobody is asked for a passphrase for what is not.
pub(super) fn check_paths(paths: &[PathBuf]) -> Result<(), Failure> {
    let missing = paths.iter().filter(|path| *path != Path::new("-")).find_map(|path| Some((path, std::fs::metadata(path).err()?)));
    missing.map_or(Ok(()), |(path, error)| Err(io_failure(path, &error)))
}

/// Why a file is passed over that has no name of its own yet.
const LEFT_UNFINISHED: &str = "left unfinished by another run";

/// Why another one is.
const A_JOURNAL: &str = "the journal of a file whose writer was interrupted or is at work";

/// A file to be worked on.
pub(super) struct Item {
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
    /// The folder that the user named, if the file was found in it; a file that was named itself may be a link.
    found_in: Option<Arc<Path>>,
    /// The folder that was named for its target, or for its source if that is beside it.
    goes_below: Option<Arc<Path>>,
}

impl Item {
    /// Whether the user named it, so that a link is followed.
    pub(super) fn is_named(&self) -> bool {
        self.found_in.is_none()
    }

    /// Where it is.
    pub(super) fn source_spot(&self) -> Spot<'_> {
        Spot { path: &self.source, below: self.found_in.as_deref() }
    }

    /// What is there already where it goes.
    pub(super) fn there(&self) -> Option<Metadata> {
        // Mostly nothing is, which one look says, whatever is on the way.
        std::fs::symlink_metadata(&self.target).and_then(|_| self.target_spot().metadata()).ok()
    }

    /// Where it goes.
    pub(super) fn target_spot(&self) -> Spot<'_> {
        Spot { path: &self.target, below: self.goes_below.as_deref() }
    }
}

/// A volume that was met among files.
pub(super) struct Met {
    pub(super) folder: PathBuf,
    /// The folder that the user named.
    found_in: Arc<Path>,
    /// What is to be done with it instead.
    way_out: &'static str,
}

/// What is made again elsewhere, a folder or a link. Links may be put anywhere by whoever owns a source, and with it what was made of it: none is followed below the folders that the user named.
struct Twin {
    from: PathBuf,
    to: PathBuf,
    /// The folders that the user named.
    named: [Arc<Path>; 2],
}

impl Twin {
    fn source_spot(&self) -> Spot<'_> {
        Spot { path: &self.from, below: Some(&self.named[0]) }
    }

    fn target_spot(&self) -> Spot<'_> {
        Spot { path: &self.to, below: Some(&self.named[1]) }
    }
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) items: Vec<Item>,
    /// What was passed over, and why.
    pub(super) passed_over: Vec<(PathBuf, &'static str)>,
    /// Volumes that were met: nothing in them is by its name what is looked for, and what belongs together there is not taken apart.
    pub(super) volumes: Vec<Met>,
    /// What could not be looked into.
    obstacles: Vec<(PathBuf, io::Error)>,
    /// Folders of sources and of results, outer ones first.
    folders: Vec<Twin>,
    /// Links and folders that are not made again, for where results are only unfinished files and journals are called so.
    misnamed: Vec<PathBuf>,
    /// Those of results that were there and were named: they stay as they are.
    kept: Vec<PathBuf>,
    /// Links to be made again, and how many were.
    links: Vec<Twin>,
    links_made: usize,
    /// What runs have left unfinished where this one removes that, each with the folder that the user named.
    unfinished: Vec<(PathBuf, Arc<Path>)>,
    /// Folders with the key of a volume and not its identity, in which there is more than files of ours.
    suspects: Vec<PathBuf>,
}

/// Which way names change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The suffix is added; files that have it are passed over.
    Encrypt,
    /// The suffix is removed; files without it are passed over.
    Decrypt,
    /// Nothing is written; files without the suffix are passed over.
    Check,
}

impl Way {
    /// Whether a file of a folder is meant.
    fn wants(self, path: &Path) -> bool {
        let is_encrypted = path.extension().is_some_and(|extension| extension == SUFFIX);
        // A copy of a volume's file is one to be looked after.
        let is_key = self == Way::Check && path.file_name().is_some_and(|name| name == VOLUME_FILE);
        is_encrypted != (self == Way::Encrypt) || is_key
    }

    /// What is to be done with a volume instead.
    fn of_volumes(self) -> &'static str {
        match self {
            Way::Encrypt => "it is encrypted already: copy it as it is",
            Way::Decrypt => "mount it",
            Way::Check => "name it by itself",
        }
    }

    /// A file's name on the other side.
    fn rename(self, path: &Path) -> Result<PathBuf, Failure> {
        match self {
            Way::Encrypt => {
                let mut name = OsString::from(path);
                name.push(format!(".{SUFFIX}"));
                Ok(name.into())
            }
            Way::Decrypt if self.wants(path) => Ok(path.with_extension("")),
            Way::Decrypt => {
                let why = format!("{}: its name does not end in .{SUFFIX}; say with -o what the text is to be called", path.shown());
                Err(Failure::new(Exit::Usage, why))
            }
            Way::Check => Ok(path.to_owned()),
        }
    }
}

impl Plan {
    /// What these paths mean. `output` is a file's name for a single file, otherwise the folder where everything goes.
    pub(super) fn new(paths: &[PathBuf], way: Way, recursive: bool, output: Option<&Path>) -> Result<Self, Failure> {
        let mut plan = Self::default();
        // A folder that is gone through makes one of the output, wherever among the paths it is named.
        let makes_folder = recursive && output.is_some() && paths.iter().any(|path| path.is_dir() && !volume::is_whole(path));
        for path in paths {
            let metadata = std::fs::metadata(path).map_err(|error| io_failure(path, &error))?;
            if metadata.is_dir() {
                let is_volume = if way == Way::Check { volume::is_meant(path, recursive) } else { volume::is_whole(path) };
                if is_volume {
                    plan.volumes.push(Met { folder: path.clone(), found_in: path.as_path().into(), way_out: way.of_volumes() });
                    continue;
                }
                if !recursive {
                    let way_out = "give -R to go through it";
                    return Err(Failure::new(Exit::Usage, format!("{} is a folder; {way_out}", path.shown())));
                }
                let output = output.filter(|_| way != Way::Check);
                let goes_below = output.unwrap_or(path).into();
                let walk = Walk {
                    named: path.as_path().into(),
                    way,
                    is_elsewhere: output.is_some(),
                    goes_below,
                    output: output.and_then(identity),
                };
                plan.folder(path, output.unwrap_or(path), &walk);
                continue;
            }
            let is_folder = |output: &Path| output.is_dir() || makes_folder;
            let target = target_of(path, way, output, is_folder, paths.len() > 1)?;
            if way == Way::Encrypt && path.file_name().is_some_and(is_journal) {
                return Err(Failure::new(Exit::Usage, format!("{} is {A_JOURNAL}, which needs it as it is; leave it out", path.shown())));
            }
            plan.items.push(Item { source: path.clone(), target, found_in: None, goes_below: None });
        }
        match way {
            Way::Check => plan.drop_doubles(),
            Way::Encrypt | Way::Decrypt => plan.refuse_same_targets()?,
        }
        Ok(plan)
    }

    /// Leaves files as they are that must not go with the others: what is encrypted for a key opens nothing once that is in it.
    ///
    /// # Errors
    /// If one was named.
    pub(super) fn spare(&mut self, keys: &[PathBuf], recipients: &[Recipient]) -> Result<(), Failure> {
        let keys: HashSet<_> = keys.iter().filter_map(|path| identity(path)).collect();
        let is_spared = |item: &Item| {
            std::fs::metadata(&item.source).is_ok_and(|found| {
                keys.contains(&(found.dev(), found.ino())) || is_identity_of(recipients, item.source_spot(), found.len())
            })
        };
        let spared: Vec<_> = self.items.extract_if(.., |item| is_spared(item)).collect();
        if let Some(item) = spared.iter().find(|item| item.is_named()) {
            let why = "it is one of the keys for what is encrypted, and would be encrypted with it and removed; leave it out";
            return Err(Failure::new(Exit::Usage, format!("{}: {why}", item.source.shown())));
        }
        self.passed_over.extend(spared.into_iter().map(|item| (item.source, "one of the keys for what is encrypted")));
        Ok(())
    }

    /// What was not looked at, or not all of it, and what is to be done about that.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (PathBuf, Failure)> {
        let volumes = self.volumes.iter().map(|met| {
            let why = "it is a volume and nothing was done with it here";
            (met.folder.clone(), Failure::failed(format!("{}: {why}; {}", met.folder.shown(), met.way_out)))
        });
        let suspects = self.suspects.iter().map(|folder| (folder.clone(), volume::suspect(folder)));
        let misnamed = self.misnamed.iter().map(|path| {
            let why = "only unfinished files and journals of ours are called so where results are; it was left out with what is in it, so rename it";
            (path.clone(), Failure::failed(format!("{}: {why}", path.shown())))
        });
        let obstacles = self.obstacles.iter().map(|(path, error)| (path.clone(), io_failure(path, error)));
        volumes.chain(suspects).chain(misnamed).chain(obstacles)
    }

    /// What was named twice is looked at once.
    fn drop_doubles(&mut self) {
        let mut known = HashSet::new();
        self.items.retain(|item| identity(&item.source).is_none_or(|identity| known.insert(identity)));
    }

    /// Two sources that go to the same place: with `--force` the second would replace the first, and `--remove-source` would remove both.
    fn refuse_same_targets(&self) -> Result<(), Failure> {
        let mut folders: HashMap<&Path, PathBuf> = HashMap::new();
        let mut sources: HashMap<PathBuf, &Path> = HashMap::new();
        let items = self.items.iter().map(|item| (&item.source, &item.target, true));
        for (source, target, is_file) in items.chain(self.links.iter().map(|Twin { from, to, .. }| (from, to, false))) {
            let folder = folders.entry(folder_of(target)).or_insert_with_key(|folder| real(folder));
            let place = folder.join(target.file_name().unwrap_or_default());
            match sources.get(&place) {
                Some(first) if is_file || self.items.iter().any(|item| item.source == *first) => {
                    let (first, source, target) = (first.shown(), source.shown(), target.shown());
                    let way_out = "nothing was done; give them one after the other, each with its own -o";
                    return Err(Failure::new(Exit::Usage, format!("{first} and {source} would both become {target}; {way_out}")));
                }
                // Two links are seen to be the same, or not, when they are made.
                _ => sources.insert(place, source),
            };
        }
        Ok(())
    }

    /// Makes folders for results, and links again; a link that is there and leads elsewhere is replaced or not.
    ///
    /// # Errors
    /// If a folder that was named cannot be made: that folder, and why.
    pub(super) fn make_folders_and_links(&mut self, replaces: Replaces) -> Result<(), (PathBuf, Failure)> {
        let failed = |folder: &Path, error: &io::Error| (folder.to_owned(), io_failure(folder, error));
        let mut made_in = None;
        for folder in &self.folders {
            if *folder.to != *folder.named[1] {
                match make_folder(folder.target_spot()) {
                    Ok(true) => made_in = made_in.or(Some(folder)),
                    // Its source's mode, which an earlier run gave it, may forbid to write; it gets that again at the end.
                    Ok(false) => make_writable(&folder.to, &folder.named[1]),
                    Err(error) => self.obstacles.push((folder.to.clone(), error)),
                }
            } else if folder.to.is_dir() {
                self.kept.push(folder.to.clone());
            } else {
                // What is in it is nobody's business before it is there; what its source's mode is it gets at the end, since that may forbid to write.
                let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder.to);
                made.map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => failed(&folder.to, &not_a_folder()),
                    _ => failed(&folder.to, &error),
                })?;
                made_in = Some(folder);
            }
        }
        for link in &self.links {
            match copy_link(link.source_spot(), link.target_spot(), replaces) {
                Ok(()) => self.links_made += 1,
                Err(error) => self.obstacles.push((link.to.clone(), error)),
            }
        }
        // A file that is there for good needs its folders to be. One call for all of them, as for batches of files.
        let Some(folder) = made_in else { return Ok(()) };
        let synced = open_folder(&folder.to, Some(&folder.named[1])).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
        synced.map_err(|error| failed(&folder.to, &error))
    }

    /// Where something of this plan is put: what is there may be replaced, but for links that lead to the same already.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Path> {
        let stays =
            |link: &Twin| std::fs::read_link(&link.to).is_ok_and(|there| std::fs::read_link(&link.from).is_ok_and(|to| to == there));
        let links = self.links.iter().filter(move |link| !stays(link));
        self.items.iter().map(|item| &*item.target).chain(links.map(|link| &*link.to))
    }

    /// Gives the folders of results what their sources have, owner, mode, times and extended attributes, inner ones first.
    pub(super) fn finish_folders(&self) -> Vec<(PathBuf, io::Error)> {
        let give = |folder: &Twin| {
            let [from, to] =
                [(&folder.from, &folder.named[0]), (&folder.to, &folder.named[1])].map(|(folder, named)| open_folder(folder, Some(named)));
            let (from, to) = (from?, to?);
            copy_metadata(&from, &from.metadata()?, &to)
        };
        let folders = self.folders.iter().rev().filter(|folder| !self.kept.contains(&folder.to));
        folders.filter_map(|folder| Some((folder.to.clone(), give(folder).err()?))).collect()
    }

    /// The volume files of volumes that were met, among the files.
    pub(super) fn take_volume_files(&mut self) {
        let (volumes, others): (Vec<_>, Vec<_>) = self.volumes.drain(..).partition(|volume| is_volume(&volume.folder));
        self.volumes = others;
        for Met { folder, found_in, .. } in volumes {
            let path = folder.join(VOLUME_FILE);
            self.items.push(Item { source: path.clone(), target: path, goes_below: Some(found_in.clone()), found_in: Some(found_in) });
        }
        self.drop_doubles();
    }

    /// Removes what runs that were killed have left where this one writes, and where it was met; not what is named.
    pub(super) fn remove_leftovers(&self) -> Vec<Leftover> {
        let named: HashSet<_> = self.items.iter().filter(|item| item.is_named()).filter_map(|item| identity(&item.source)).collect();
        let found = self.unfinished.iter().map(|(path, named)| Spot { path, below: Some(named) });
        let mut seen = HashSet::new();
        let folders =
            found.chain(self.items.iter().map(Item::target_spot)).filter(|spot| seen.insert((folder_of(spot.path), spot.is_of_key())));
        // What keeps a folder from being read keeps its files from being written, and is said there.
        folders.filter_map(|spot| Leftover::remove_all(spot, &named).ok()).flatten().collect()
    }

    /// How many links are there again, beside files.
    pub(super) fn links_made(&self) -> usize {
        self.links_made
    }

    /// What was passed over, but for what this run has removed.
    pub(super) fn still_passed_over(&self) -> Vec<&(PathBuf, &'static str)> {
        let is_there = |(path, why): &&(PathBuf, &str)| *why != LEFT_UNFINISHED || path.symlink_metadata().is_ok();
        self.passed_over.iter().filter(is_there).collect()
    }

    fn folder(&mut self, folder: &Path, target: &Path, walk: &Walk) {
        if volume::is_whole(folder) {
            return self.volumes.push(Met { folder: folder.to_owned(), found_in: walk.named.clone(), way_out: walk.way.of_volumes() });
        }
        if walk.is_elsewhere {
            self.folders.push(walk.twin(folder, target));
        }
        let mut entries: Vec<_> = match std::fs::read_dir(folder).and_then(Iterator::collect::<Result<_, _>>) {
            Ok(entries) => entries,
            Err(error) => return self.obstacles.push((folder.to_owned(), error)),
        };
        // An order that does not depend on the file system.
        entries.sort_unstable_by_key(DirEntry::file_name);
        if walk.way == Way::Check && volume::has_key(folder) && is_suspect(&entries) {
            self.suspects.push(folder.to_owned());
        }
        for entry in entries {
            if let Err(error) = self.entry(&entry, target, walk) {
                self.obstacles.push((entry.path(), error));
            }
        }
    }

    fn entry(&mut self, entry: &DirEntry, target: &Path, walk: &Walk) -> io::Result<()> {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let beside = target.join(entry.file_name());
        let is_made_again = walk.is_elsewhere && (kind.is_dir() || kind.is_symlink());
        if is_made_again && (is_unfinished(&entry.file_name()) || is_journal(&entry.file_name())) {
            self.misnamed.push(path);
        } else if kind.is_dir() {
            // What is being written is not read again.
            if walk.output.is_none() || identity(&path) != walk.output {
                self.folder(&path, &beside, walk);
            }
        } else if kind.is_file() && walk.removes_leftovers() && is_unfinished(&entry.file_name()) {
            self.unfinished.push((path.clone(), walk.named.clone()));
            self.passed_over.push((path, LEFT_UNFINISHED));
        } else if kind.is_file() && walk.way == Way::Encrypt && is_journal(&entry.file_name()) {
            self.passed_over.push((path, A_JOURNAL));
        } else if kind.is_file() && walk.wants(&path) && !is_unfinished(&entry.file_name()) {
            match walk.way.rename(&beside) {
                Ok(target) => {
                    let (found_in, goes_below) = (Some(walk.named.clone()), Some(walk.goes_below.clone()));
                    self.items.push(Item { source: path, target, found_in, goes_below });
                }
                Err(_) => self.passed_over.push((path, "there is no name for its result")),
            }
        } else if kind.is_symlink() && walk.is_elsewhere {
            self.links.push(walk.twin(&path, &beside));
        } else {
            let why = match () {
                () if kind.is_symlink() => "a symbolic link",
                () if !kind.is_file() => "a device, pipe or socket",
                () if is_unfinished(&entry.file_name()) => LEFT_UNFINISHED,
                () if walk.way == Way::Encrypt && walk.is_elsewhere => "encrypted already",
                () if walk.way == Way::Encrypt => "encrypted already, by its name",
                () => "not encrypted, by its name",
            };
            self.passed_over.push((path, why));
        }
        Ok(())
    }
}

/// A way through folders.
struct Walk {
    /// The folder that the user named.
    named: Arc<Path>,
    way: Way,
    /// Whether results go somewhere else than beside their sources.
    is_elsewhere: bool,
    /// The folder of results that the user named, or that of the sources if they go beside them.
    goes_below: Arc<Path>,
    /// The folder of results, if it is there already.
    output: Option<(u64, u64)>,
}

impl Walk {
    /// Whether a file is meant. Where results go elsewhere, one that is called so and is another program's would be missing there; beside its sources it may be in the way of a result.
    fn wants(&self, path: &Path) -> bool {
        let is_missing = || self.way == Way::Encrypt && self.is_elsewhere && self.is_another_programs(path).unwrap_or(false);
        self.way.wants(path) || is_missing()
    }

    fn is_another_programs(&self, path: &Path) -> io::Result<bool> {
        let (file, _) = open_regular(Spot { path, below: Some(&self.named) }, false)?;
        let mut first = Vec::with_capacity(MAGIC.len());
        file.take(MAGIC.len() as u64).read_to_end(&mut first)?;
        Ok(first != MAGIC)
    }

    fn twin(&self, from: &Path, to: &Path) -> Twin {
        Twin { from: from.to_owned(), to: to.to_owned(), named: [self.named.clone(), self.goes_below.clone()] }
    }

    /// Whether what is left unfinished goes: it is where results are written, or may hold what is to be encrypted.
    fn removes_leftovers(&self) -> bool {
        match self.way {
            Way::Encrypt => true,
            Way::Decrypt => !self.is_elsewhere,
            Way::Check => false,
        }
    }
}

/// Whether folders of a volume are among these, or files and none of ours: what is passed over there may be a volume.
fn is_suspect(entries: &[DirEntry]) -> bool {
    let (folders, files): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut others = files.iter().filter(|entry| !volume::is_part(&entry.file_name())).peekable();
    let is_of_others = others.peek().is_some() && others.all(|entry| entry.path().extension().is_none_or(|extension| extension != SUFFIX));
    is_of_others || folders.iter().any(|entry| volume::is_folder_of_one(&entry.path()))
}

fn target_of(
    path: &Path,
    way: Way,
    output: Option<&Path>,
    is_folder: impl Fn(&Path) -> bool,
    is_one_of_many: bool,
) -> Result<PathBuf, Failure> {
    match output {
        None => way.rename(path),
        Some(output) if is_folder(output) => Ok(output.join(way.rename(Path::new(path.file_name().unwrap_or_default()))?)),
        Some(output) if is_one_of_many => {
            Err(Failure::new(Exit::Usage, format!("{} is no folder, and several files are to go there; make it first", output.shown())))
        }
        Some(output) if output.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            Err(Failure::new(Exit::Usage, format!("{} is no folder; make it first, or leave the / at its end away", output.shown())))
        }
        Some(output) if identity(output).is_some() && identity(output) == identity(path) => Err(would_replace_its_source(path)),
        Some(output) => Ok(led_to(output)),
    }
}

/// A result where its source is.
pub(super) fn would_replace_its_source(path: &Path) -> Failure {
    Failure::new(Exit::Usage, format!("{} would be replaced by its own result; choose another name with -o", path.shown()))
}

/// What opens other files is not replaced by a result.
pub(super) fn refuse_to_replace<T: AsRef<Path>>(mut targets: impl Iterator<Item = T>, keys: &[PathBuf]) -> Result<(), Failure> {
    let keys: HashSet<_> = keys.iter().filter_map(|path| identity(path)).collect();
    let replaced = targets.find(|target| identity(target.as_ref()).is_some_and(|identity| keys.contains(&identity)));
    replaced.map_or(Ok(()), |path| {
        let why = "it is one of the keys given, and would be replaced by a result; nothing was done, choose another place with -o";
        Err(Failure::new(Exit::Usage, format!("{}: {why}", path.as_ref().shown())))
    })
}

/// Where an output is that is a link: who names it means that.
pub(super) fn led_to(output: &Path) -> PathBuf {
    let is_link = std::fs::symlink_metadata(output).is_ok_and(|there| there.is_symlink());
    // A link that leads nowhere is not replaced, and an error by then.
    if is_link { std::fs::canonicalize(output).unwrap_or_else(|_| output.to_owned()) } else { output.to_owned() }
}

/// What a file or folder is, whatever its path.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A folder without links and dots in its path, whether it is there already or not.
fn real(folder: &Path) -> PathBuf {
    let outer = || folder.file_name().map_or_else(|| folder.to_owned(), |name| real(folder_of(folder)).join(name));
    std::fs::canonicalize(folder).unwrap_or_else(|_| outer())
}

/// Lets this user put results into a folder of his.
fn make_writable(folder: &Path, named: &Path) {
    let make = || {
        let folder = open_folder(folder, Some(named))?;
        let mode = folder.metadata()?.permissions().mode();
        if mode & 0o700 == 0o700 { Ok(()) } else { folder.set_permissions(Permissions::from_mode(mode & 0o7777 | 0o700)) }
    };
    // Where that fails, putting something there does too, and says why.
    make().unwrap_or_else(|error: io::Error| tracing::debug!("{}: {error}", folder.shown()));
}
