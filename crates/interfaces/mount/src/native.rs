//! Bywash's own volume format (`VOLUME.md`): each file an encrypted file of `bywash-files`, each name sealed with its folder's identity.

mod recovery;

use crate::VOLUME_FILE;
use crate::format::{Content, Entry, FolderId, Format, Interrupted, Looked, LowerName, NO_IDENTITY, Rest, damaged};
use crate::names::{NameKeys, OWN_PREFIX, Siv, is_own, is_sealed, plain_name, side_file, target_len};
use crate::volume::{OWN_FOLDER_MODE, Volume};
use bywash_client::Client;
use bywash_core::SecretBytes;
use bywash_files::births::{self, Births, Fate};
use bywash_files::disk::{Access, Disk, FolderJournals, JOURNAL_PREFIX, Journals};
use bywash_files::{Aead, Container, Error, FileKeys, Geometry, Header, Keyring, Lock, NonceSource, fsck, new_file};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, mkdirat, openat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hidden file of each folder that holds its identity.
pub const FOLDER_FILE: &str = ".bywash-folder";
/// The hidden folder in which journals are.
pub const JOURNALS: &str = ".bywash-journals";
const FOLDER_FILE_C: &CStr = c".bywash-folder";
/// Damaged chunks of one file after which no more are looked for; whoever writes the medium may make a file long that takes no room, of nothing else.
const DAMAGES_MAX: u64 = 1 << 17;
/// Damaged chunks of a file with a journal that are told of one by one.
const SAID_MAX: usize = 100;
/// The list of epochs in which files may be incomplete, beside the journals.
const BIRTHS_FILE: &str = "births";

/// Bywash's own format.
pub struct Native {
    client: Client,
    aead: Aead,
    chunk_size: usize,
    lock: Lock,
    keyring: Keyring,
    /// None if names are as they are.
    names: Option<NameKeys>,
    /// Of every file of the volume: their headers are of one length.
    geometry: Geometry,
    header_len: usize,
    journals: Arc<FolderJournals>,
    /// Whether an earlier run left some.
    has_journals: bool,
    /// None where nothing is written.
    births: Option<Births>,
    /// The list that the last writer left, where nothing is written; its lock keeps writers away.
    left: Option<Births>,
    /// What is wrong with that list.
    damage: Option<String>,
    /// What became of the epoch in which files are born.
    epoch: Mutex<EpochState>,
    gone: Arc<Gone>,
    /// Why something cannot be recovered.
    unrecovered: Mutex<Option<String>>,
    /// Of all files: each has keys of its own.
    nonces: Arc<NonceSource>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EpochState {
    /// There is none.
    None,
    /// Nothing was born in it.
    Unused,
    /// Something was.
    Used,
}

fn key_bytes(key: &SecretBytes) -> io::Result<zeroize::Zeroizing<[u8; 32]>> {
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    bytes.copy_from_slice(key.get(..32).ok_or_else(|| io::Error::other("a derived key is too short"))?);
    Ok(bytes)
}

impl Native {
    /// The format of a volume whose folder that is.
    ///
    /// # Errors
    /// The operating system's; [`damaged`] without the root's identity, or a folder for journals.
    pub fn new(client: &Client, volume: &Volume, root: BorrowedFd<'_>, is_read_only: bool) -> io::Result<Self> {
        let kek = key_bytes(&volume.key("files")?)?;
        let lock = Lock::key_file(&kek);
        let mut keyring = Keyring::new();
        keyring.add_key_file(&kek);
        let siv = |purpose| Siv::new(&volume.key(purpose)?);
        let names = match volume.has_plain_names() {
            true => None,
            false => Some(NameKeys { names: siv("names")?, links: siv("links")?, attributes: siv("attributes")? }),
        };
        let (keys, slots) = new_file(std::slice::from_ref(&lock)).map_err(plain)?;
        let header = Header::new(volume.aead(), volume.chunk_size(), slots, &keys).map_err(plain)?;
        if names.is_some() && statat(root, FOLDER_FILE_C, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT) {
            return Err(damaged(NO_IDENTITY));
        }
        let (journals, has_journals) = open_journals(root, is_read_only)?;
        let births_key = key_bytes(&volume.key("births")?)?;
        let (mut births, mut left, mut damage) = (None, None, None);
        match (open_births(journals.as_fd(), &births_key, is_read_only), is_read_only) {
            (Ok(list), true) => left = list,
            (Ok(list), false) => births = list,
            // Files that nobody interrupted are read without it.
            (Err(error), true) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!("{error}");
                damage = Some(error.to_string());
            }
            (Err(error), _) => return Err(error),
        }
        let folder = Arc::new(FolderJournals::within(journals.into()));
        Ok(Self {
            client: client.clone(),
            aead: volume.aead(),
            chunk_size: volume.chunk_size(),
            lock,
            keyring,
            names,
            geometry: header.geometry(),
            header_len: header.bytes().len(),
            gone: Arc::new(Gone { journals: folder.clone(), is_ordered: is_ordered(root), salts: Mutex::default() }),
            journals: folder,
            has_journals,
            births,
            left,
            damage,
            epoch: Mutex::new(EpochState::None),
            unrecovered: Mutex::default(),
            nonces: Arc::new(NonceSource::new()),
        })
    }

    /// Takes the lower file system for one of which it is not known that it keeps the order of what is removed.
    pub fn without_order(mut self) -> Self {
        if let Some(gone) = Arc::get_mut(&mut self.gone) {
            gone.is_ordered = false;
        }
        self
    }

    /// Why something could not be [recovered](Format::recover), of several the first.
    pub fn why_unrecovered(&self) -> Option<String> {
        self.unrecovered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keys and header of a file.
    fn header(&self, file: &File) -> bywash_files::Result<(Header, FileKeys)> {
        let mut bytes = vec![0; self.header_len];
        let len = file.read_at(&mut bytes, 0)?;
        let header = Header::parse(&bytes[..len])?;
        if header.geometry() != self.geometry || header.aead() != self.aead {
            return Err(Error::DamagedHeader { what: "it is of another kind than this volume's files" });
        }
        let keys = self.keyring.open(&header)?;
        Ok((header, keys))
    }

    /// Keys and header of a file that is to be born.
    fn new_header(&self) -> bywash_files::Result<(Header, FileKeys)> {
        let births = self.births.as_ref().ok_or(Error::ReadOnly)?;
        self.use_epoch(births)?;
        let (keys, slots) = births.new_file(std::slice::from_ref(&self.lock))?;
        Ok((Header::new(self.aead, self.chunk_size, slots, &keys)?, keys))
    }

    fn use_epoch(&self, births: &Births) -> bywash_files::Result<()> {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if *epoch == EpochState::None {
            births.begin()?;
        }
        *epoch = EpochState::Used;
        Ok(())
    }

    /// Empties a file that is to be born again: with a sync, unless it is itself of those that may become empty in a power cut.
    fn clear(&self, file: &File) -> bywash_files::Result<()> {
        match &self.births {
            Some(births) if births.may_be_incomplete(file)? => Disk::set_len(file, 0)?,
            _ => births::clear(file)?,
        }
        Ok(())
    }

    /// Whether a crash interrupted the making of a file, so that recovery would make it empty.
    fn is_unborn(&self, file: &File) -> bool {
        let births = self.births.as_ref().or(self.left.as_ref());
        let open = |header: &Header| self.keyring.open(header);
        births.is_some_and(|births| matches!(births.fate(&self.client, file, open), Ok(Fate::Emptied)))
    }

    /// A file as the next mount makes it, by a journal that a crash left.
    fn look_through_journal(&self, header: &Header, keys: FileKeys, file: Arc<File>) -> io::Result<Looked> {
        let text = Container::open(&self.client, header, keys, Arc::new(Unlocked(file)), &*self.journals).map_err(plain)?;
        let mut looked = Looked { interrupted: Some(Interrupted::Change), ..Looked::default() };
        let (mut chunk, mut unsaid) = (vec![0; self.chunk_size], 0);
        for at in (0..text.len()).step_by(self.chunk_size) {
            match text.read_at(&mut chunk, at) {
                Ok(read) => looked.good_bytes += read as u64,
                Err(error) if looked.damages.len() < SAID_MAX => looked.damages.push(error.to_string()),
                Err(_) => unsaid += 1,
            }
        }
        looked.damages.extend((unsaid > 0).then(|| format!("{unsaid} further chunks are damaged")));
        Ok(looked)
    }
}

/// The journals' folder, and the journals in it.
fn open_journals(root: BorrowedFd<'_>, is_read_only: bool) -> io::Result<(OwnedFd, bool)> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let open = || openat(root, JOURNALS, flags, rustix::fs::Mode::empty());
    let folder = match open() {
        Err(Errno::NOENT) if !is_read_only => mkdirat(root, JOURNALS, OWN_FOLDER_MODE).and_then(|()| open())?,
        Err(Errno::NOENT) => return Err(damaged(format!("{JOURNALS} is missing; make it, empty, on a medium that can be written"))),
        outcome => outcome?,
    };
    let mut has_journals = false;
    for entry in Dir::read_from(folder.as_fd())? {
        has_journals |= entry?.file_name().to_bytes().starts_with(JOURNAL_PREFIX.as_bytes());
    }
    Ok((folder, has_journals))
}

/// The list of epochs in which files may be incomplete; for who only reads, none if nobody ever wrote to the volume. Its lock keeps writers away from readers, and from each other.
fn open_births(journals: BorrowedFd<'_>, key: &[u8; 32], is_read_only: bool) -> io::Result<Option<Births>> {
    let (access, flags) = match is_read_only {
        true => (Access::Read, OFlags::RDONLY),
        false => (Access::Write, OFlags::RDWR | OFlags::CREATE),
    };
    // Without O_NONBLOCK the open of a pipe would wait.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let damaged = |what: &str| {
        let way_out = "move it away, and what a crash left unfinished is told of as damage instead of being made good";
        damaged(format!("{JOURNALS}/{BIRTHS_FILE}, the list of new files, {what}; {way_out}"))
    };
    let file = match openat(journals, BIRTHS_FILE, flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR) {
        Err(Errno::NOENT) if is_read_only => return Ok(None),
        // A link, a socket, a folder.
        Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(damaged("is no file")),
        opened => File::from(opened?),
    };
    if !FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
        return Err(damaged("is no file"));
    }
    if !is_read_only {
        rustix::fs::fsync(journals)?;
    }
    Disk::lock(&file, access)?;
    Births::open(Arc::new(file), key).map(Some).map_err(|error| match error {
        Error::DamagedHeader { .. } => damaged("is damaged"),
        error => plain(error),
    })
}

/// An error of `bywash-files` as the file system's: what has a number keeps it.
pub(crate) fn plain(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ReadOnly => Errno::ROFS.into(),
        Error::TooLong { .. } => Errno::FBIG.into(),
        error => damaged(error.to_string()),
    }
}

impl Format for Native {
    fn folder_file(&self) -> Option<&CStr> {
        self.names.is_some().then_some(FOLDER_FILE_C)
    }

    fn classify(&self, lower: &CStr, is_in_root: bool) -> Entry {
        let lower = lower.to_bytes();
        if let Some(side_file) = side_file(lower).filter(|_| self.names.is_some()) {
            return Entry::Long(side_file);
        }
        match lower {
            own if self.names.is_some() && own.starts_with(OWN_PREFIX) => Entry::Hidden,
            own if self.names.is_none() && is_own(own) => Entry::Hidden,
            own if own == VOLUME_FILE.as_bytes() && is_in_root => Entry::Hidden,
            _ if self.names.is_none() || is_sealed(lower) => Entry::Named,
            _ => Entry::Foreign,
        }
    }

    fn seal_name(&self, folder: &FolderId, name: &[u8]) -> io::Result<LowerName> {
        self.names.as_ref().map_or_else(|| plain_name(name), |keys| keys.seal_name(folder, name))
    }

    fn open_name(&self, folder: &FolderId, sealed: &[u8]) -> io::Result<Vec<u8>> {
        self.names.as_ref().map_or_else(|| Ok(sealed.to_vec()), |keys| keys.open_name(folder, sealed))
    }

    fn seal_target(&self, target: &[u8]) -> io::Result<Vec<u8>> {
        self.names.as_ref().map_or_else(|| Ok(target.to_vec()), |keys| keys.seal_target(target))
    }

    fn open_target(&self, lower: &[u8]) -> io::Result<Vec<u8>> {
        self.names.as_ref().map_or_else(|| Ok(lower.to_vec()), |keys| keys.open_target(lower))
    }

    fn target_len(&self, lower_len: u64) -> u64 {
        if self.names.is_some() { target_len(lower_len) } else { lower_len }
    }

    fn seal_attribute_name(&self, name: &[u8]) -> io::Result<CString> {
        match &self.names {
            Some(keys) => keys.seal_attribute_name(name),
            None if name.starts_with(b"user.") => Ok(CString::new(name).map_err(|_| Errno::INVAL)?),
            None => Err(Errno::OPNOTSUPP.into()),
        }
    }

    fn open_attribute_name(&self, lower: &[u8]) -> Option<Vec<u8>> {
        match &self.names {
            Some(keys) => keys.open_attribute_name(lower),
            None => lower.starts_with(b"user.").then(|| lower.to_vec()),
        }
    }

    fn seal_attribute(&self, lower_name: &CStr, value: &[u8]) -> io::Result<Vec<u8>> {
        self.names.as_ref().map_or_else(|| Ok(value.to_vec()), |keys| keys.seal_attribute(lower_name, value))
    }

    fn open_attribute(&self, lower_name: &CStr, lower: &[u8]) -> io::Result<Vec<u8>> {
        self.names.as_ref().map_or_else(|| Ok(lower.to_vec()), |keys| keys.open_attribute(lower_name, lower))
    }

    fn take_gone(&self) -> Vec<[u8; 32]> {
        core::mem::take(&mut self.gone.salts())
    }

    fn forget_gone(&self, salts: Vec<[u8; 32]>, is_synced: bool) {
        match is_synced {
            true => salts.iter().for_each(|salt| self.gone.remove(salt)),
            false => self.gone.salts().extend(salts),
        }
    }

    fn has_much_gone(&self) -> bool {
        self.gone.salts().len() >= GONE_MAX
    }

    fn lengths_need_journals(&self) -> bool {
        self.has_journals && self.births.is_none()
    }

    fn text_len(&self, lower_len: u64) -> io::Result<u64> {
        self.geometry.text_len_of_file(lower_len).map_err(plain)
    }

    fn recover(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        let is_unsettled = self.births.as_ref().is_some_and(Births::is_unsettled);
        let Some(births) = self.births.as_ref().filter(|_| is_unsettled || self.has_journals) else { return Ok(()) };
        tracing::info!("the volume was not unmounted: looking at its files");
        let set_epoch = |state| *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) = state;
        // What has to be emptied is born again in the latest epoch of the list, which stays on it until all of this is synced: there may be no room for another.
        set_epoch(if is_unsettled { EpochState::Used } else { EpochState::None });
        let recovered = self.recover_folder(root, 0).and_then(|failed| {
            rustix::fs::syncfs(root)?;
            Ok(failed)
        });
        set_epoch(EpochState::None);
        let failed = recovered?;
        if failed > 0 {
            tracing::error!("{failed} files cannot be recovered; what is wrong with them is damage from now on");
        }
        // They are looked at again if this mount is interrupted in its first minute, which needs another epoch.
        if failed > 0 && births.has_room() { Ok(()) } else { births.end().map_err(plain) }
    }

    fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn is_interrupted(&self) -> bool {
        self.births.as_ref().or(self.left.as_ref()).is_some_and(Births::is_unsettled)
    }

    fn bear(&self) -> io::Result<()> {
        self.births.as_ref().map_or(Err(Errno::ROFS.into()), |births| self.use_epoch(births).map_err(plain))
    }

    fn begin_turn(&self) -> io::Result<bool> {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(births) = &self.births else { return Ok(false) };
        match *epoch {
            // The turn before was not ended. What was born since waits for the next.
            EpochState::Used | EpochState::Unused if births.is_behind() => return Ok(true),
            EpochState::Used => {}
            _ => return Ok(false),
        }
        births.begin().map_err(plain)?;
        *epoch = EpochState::Unused;
        Ok(true)
    }

    fn end_turn(&self, is_last: bool) -> io::Result<()> {
        match &self.births {
            Some(births) if is_last && births.is_unsettled() => {
                *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) = EpochState::None;
                births.end().map_err(plain)
            }
            Some(births) if !is_last => births.settle().map_err(plain),
            _ => Ok(()),
        }
    }

    fn look_at(&self, file: Arc<File>) -> io::Result<Looked> {
        let (header, keys) = match self.header(&file) {
            Ok(opened) => opened,
            Err(error) if self.is_unborn(&file) => {
                tracing::debug!("it was being made: {error}");
                return Ok(Looked { interrupted: Some(Interrupted::Birth), ..Looked::default() });
            }
            Err(error) => return Err(plain(error)),
        };
        if bywash_files::container::is_changed_by_journal(&header, &keys, &*self.journals).map_err(plain)? {
            return self.look_through_journal(&header, keys, file);
        }
        let (checked, runs) = fsck::damaged_runs(&self.client, &header, keys, &*file, DAMAGES_MAX, &AtomicU64::new(0)).map_err(plain)?;
        let mut damages: Vec<_> = runs.iter().map(ToString::to_string).collect();
        damages.extend((checked.damaged >= DAMAGES_MAX).then(|| "what comes after that was not looked at".to_owned()));
        match damages.is_empty() {
            false if self.is_unborn(&file) => Ok(Looked { interrupted: Some(Interrupted::Birth), ..Looked::default() }),
            _ => Ok(Looked { good_bytes: checked.good_bytes, damages, interrupted: None }),
        }
    }

    fn is_cut_by_birth(&self) -> bool {
        true
    }

    fn create(&self, file: Arc<File>) -> io::Result<Arc<dyn Content>> {
        let make = || {
            if Disk::len(&*file)? > 0 {
                self.clear(&file)?;
            }
            let (header, keys) = self.new_header()?;
            let salt = *header.salt();
            let container = Container::create(&self.client, &header, keys, Arc::new(Unlocked(file)), self.journals.clone())?;
            Ok(Arc::new(Text { container: container.with_nonces(self.nonces.clone()), salt, gone: self.gone.clone() }))
        };
        make().map(|text| text as Arc<dyn Content>).map_err(plain)
    }

    fn open(&self, file: Arc<File>, access: Access) -> io::Result<Arc<dyn Content>> {
        let open = || {
            let (header, keys) = self.header(&file)?;
            let disk = Arc::new(Unlocked(file));
            let container = match access {
                Access::Read => Container::open(&self.client, &header, keys, disk, &*self.journals)?,
                Access::Write => Container::open_rw(&self.client, &header, keys, disk, self.journals.clone())?,
            };
            Ok(Arc::new(Text { container: container.with_nonces(self.nonces.clone()), salt: *header.salt(), gone: self.gone.clone() }))
        };
        open().map(|text| text as Arc<dyn Content>).map_err(plain)
    }
}

/// A file of a volume: no lock for each, since the volume's keeps others away, and a file may be opened anew while its last reader is not done.
struct Unlocked(Arc<File>);

impl Disk for Unlocked {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Disk::read_at(&*self.0, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Disk::write_at(&*self.0, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Disk::len(&*self.0)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Disk::set_len(&*self.0, len)
    }

    fn sync(&self) -> io::Result<()> {
        Disk::sync(&*self.0)
    }
}

/// So many journals of files that are gone wait for a turn.
const GONE_MAX: usize = 1024;

/// Journals of files that are gone.
struct Gone {
    journals: Arc<FolderJournals>,
    /// Whether the lower file system loses nothing in a power cut but what was done last: a file that is gone is so for good before its journal is.
    is_ordered: bool,
    /// Where that is not so a file may come back, and what was written to it is for certain in its journal alone: those that are kept until all was synced.
    salts: Mutex<Vec<[u8; 32]>>,
}

impl Gone {
    fn salts(&self) -> MutexGuard<'_, Vec<[u8; 32]>> {
        self.salts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, salt: [u8; 32], is_certain: bool) {
        if is_certain || self.is_ordered { self.remove(&salt) } else { self.salts().push(salt) }
    }

    fn remove(&self, salt: &[u8; 32]) {
        // One that stays takes room, and has every mount look at all files, and who only reads open each of which he asks the length; it does no other harm, for no file has its salt any more.
        if let Err(error) = self.journals.remove(salt) {
            tracing::warn!("the journal of a file that is gone cannot be removed: {error}");
        }
    }
}

/// Whether a file system keeps the order of names that are removed, by a journal of its own (or, as ext2, which is not told from ext4 here, promises nothing anyway). Others may have the last of them on the disk first (btrfs: a folder's, when that is synced).
fn is_ordered(folder: BorrowedFd<'_>) -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::fstatfs(folder).is_ok_and(|stat| [EXT4, XFS, TMPFS].contains(&(stat.f_type as u64)))
}

/// A container, and how to forget its journal.
struct Text {
    container: Container,
    salt: [u8; 32],
    gone: Arc<Gone>,
}

impl Content for Text {
    fn is_newborn(&self) -> bool {
        self.container.is_newborn()
    }

    fn len(&self) -> u64 {
        self.container.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.container.read_at(buffer, offset).map_err(plain)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.container.write_at(bytes, offset).map_err(plain)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.container.set_len(len).map_err(plain)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.container.grow(len).map_err(plain)
    }

    fn write_out(&self) -> io::Result<Rest> {
        if !self.container.is_newborn() {
            return Ok(Rest::Settle);
        }
        self.container.finish().map(|()| Rest::Nothing).map_err(plain)
    }

    fn sync(&self) -> io::Result<()> {
        self.container.sync().map_err(plain)
    }

    fn settle(&self) -> io::Result<()> {
        self.container.settle().map_err(plain)
    }

    fn has_journal(&self) -> bool {
        self.container.has_journal()
    }

    fn discard(&self, is_certain: bool) {
        if self.container.has_journal() {
            self.gone.add(self.salt, is_certain);
        }
    }
}
