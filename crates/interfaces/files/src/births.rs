//! Files born in a mount: whole, or empty, after a power cut, without a sync for each.
//!
//! A file that was never synced may be there in part when the power comes back: its header without its chunks, its end without its middle. In a folder that is
//! mounted that must be told from damage, and made good. So a mount's files are born in *epochs*: a new file's salt ends in the epoch's 16 random bytes, and a small
//! record, authentic and on the disk before the first of them is born, names the epochs of which files may be incomplete. Who opens the folder after a crash looks at the files of those
//! epochs, and makes empty ([`Births::recover`]) what is not whole: which it was when it was born. Once a sync of everything has followed, an epoch is
//! [settled](Births::settle), and what is wrong with one of its files is damage.
//!
//! FORMAT.md, section "Births", has the bytes and what this does not protect from.

use crate::container::{self, Container};
use crate::disk::{Disk, Journals};
use crate::error::{DamageKind, Error, Result};
use crate::fsck;
use crate::header::{Header, PREFIX_BYTES, SALT};
use crate::kdf::{FileKeys, KEY_BYTES, mac, mac_is};
use crate::lock::{Lock, new_file_with};
use crate::nonce::random;
use crate::slot::Slot;
use bywash_client::Client;
use bywash_core::SecretBytes;
use core::ops::ControlFlow;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the files of an epoch have at the end of their salts.
pub type Epoch = [u8; 16];

const MAGIC: [u8; 8] = *b"\x89BYWBRT\n";
/// Records lie on pages of their own, number *n* on the *n* mod 2-th, so that writing one does not tear the other.
const RECORDS_AT: [u64; 2] = [0, 4096];
/// Room for a record: a sector.
const RECORD_BYTES: usize = 512;
/// Most epochs in a record, which thus fits into one.
const EPOCHS_MAX: usize = 16;

/// The epochs of a folder, of which files may be incomplete. Shared by threads.
pub struct Births {
    disk: Arc<dyn Disk>,
    key: SecretBytes,
    state: Mutex<State>,
}

struct State {
    /// Number of the latest record.
    number: u64,
    /// Those in which files may be incomplete; the last is the one in which files are born.
    epochs: Vec<Epoch>,
}

/// What became of a file that was looked at after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is of no unsettled epoch: none of what may have been interrupted.
    Settled,
    /// It is complete.
    Whole,
    /// It was not complete, and is now empty.
    Emptied,
}

impl Births {
    /// Reads the record that the last mount left; `key` authenticates it.
    ///
    /// # Errors
    /// [`Error::DamagedHeader`] if there is something and no record counts; the operating system's.
    pub fn open(disk: Arc<dyn Disk>, key: &[u8; KEY_BYTES]) -> Result<Self> {
        let key = SecretBytes::from(key);
        let mut state = State { number: 0, epochs: Vec::new() };
        let mut is_unused = true;
        for offset in RECORDS_AT {
            let mut sector = [0; RECORD_BYTES];
            let got = disk.read_at(&mut sector, offset)?;
            is_unused &= sector[..got].iter().all(|byte| *byte == 0);
            if let Some((number, epochs)) = parse(&sector[..got], &key)
                && number > state.number
            {
                state = State { number, epochs };
            }
        }
        if state.number == 0 && !is_unused {
            return Err(Error::DamagedHeader { what: "its list of unsettled epochs has no record that is whole" });
        }
        Ok(Self { disk, key, state: Mutex::new(state) })
    }

    /// Whether a crash left epochs of which files may be incomplete.
    pub fn is_unsettled(&self) -> bool {
        !self.lock().epochs.is_empty()
    }

    /// Whether another epoch may begin: there is room for it on the list.
    pub fn has_room(&self) -> bool {
        self.lock().epochs.len() < EPOCHS_MAX
    }

    /// Whether epochs before the latest are not over: nobody came to say so.
    pub fn is_behind(&self) -> bool {
        self.lock().epochs.len() > 1
    }

    /// Begins an epoch, which is on the disk when this returns: files are born in it from now on.
    ///
    /// # Errors
    /// The operating system's; if more than 15 epochs are unsettled.
    pub fn begin(&self) -> Result<()> {
        let mut state = self.lock();
        if state.epochs.len() >= EPOCHS_MAX {
            return Err(io::Error::other(format!("{EPOCHS_MAX} epochs of new files are unsettled")).into());
        }
        let mut epoch = Epoch::default();
        random(&mut epoch)?;
        let epochs = [&state.epochs[..], &[epoch]].concat();
        // A disk that is full meanwhile must not keep the epoch from being ended.
        self.disk.reserve(0..RECORDS_AT[1] + RECORD_BYTES as u64)?;
        self.write(&mut state, epochs)
    }

    /// Says that all epochs but the one in which files are born are over. The caller has, since that one began, synced all files of the others.
    ///
    /// # Errors
    /// The operating system's.
    pub fn settle(&self) -> Result<()> {
        let mut state = self.lock();
        let latest = state.epochs.last().copied();
        self.write(&mut state, Vec::from_iter(latest))
    }

    /// Says that all epochs are over: nothing more is born. The caller has synced everything.
    ///
    /// # Errors
    /// The operating system's.
    pub fn end(&self) -> Result<()> {
        self.write(&mut self.lock(), Vec::new())
    }

    /// Keys and slots for a file that is to be born now. It goes to [`Container::create`], and is ended by [`Container::finish`].
    ///
    /// # Errors
    /// Those of [`new_file`](crate::new_file); [`Error::ReadOnly`] before the first epoch has begun.
    pub fn new_file(&self, locks: &[Lock]) -> Result<(FileKeys, Vec<Slot>)> {
        let epoch = self.lock().epochs.last().copied().ok_or(Error::ReadOnly)?;
        new_file_with(locks, |salt| salt[KEY_BYTES - epoch.len()..].copy_from_slice(&epoch))
    }

    /// Whether a file with that salt is of an epoch that is not settled.
    pub fn is_of_unsettled(&self, salt: &[u8; KEY_BYTES]) -> bool {
        self.lock().epochs.iter().any(|epoch| salt.ends_with(epoch))
    }

    /// Whether a file, as far as its salt is there to be read, is of an epoch that is not settled.
    ///
    /// # Errors
    /// The operating system's.
    pub fn may_be_incomplete(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(matches!(start(disk)?, Start::Salt(salt) if self.is_of_unsettled(&salt)))
    }

    /// What [`recover`](Self::recover) makes of a file that has no journal; nothing is changed.
    ///
    /// # Errors
    /// Those of `open`; an engine's; the operating system's. [`Error::DamagedHeader`] and [`Error::NotEncrypted`] for what no interrupted birth leaves.
    pub fn fate(&self, client: &Client, disk: &dyn Disk, open: impl FnOnce(&Header) -> Result<FileKeys>) -> Result<Fate> {
        if !self.is_unsettled() {
            return Ok(Fate::Settled);
        }
        match Header::read(Reader { disk, at: 0 }) {
            Ok(header) if !self.is_of_unsettled(header.salt()) => Ok(Fate::Settled),
            Ok(header) => {
                let (mut is_damaged, mut is_unreadable) = (false, false);
                let keys = open(&header)?;
                fsck::check(client, &header, keys, disk, |damage| {
                    if damage.kind == DamageKind::Unreadable {
                        is_unreadable = true;
                        return ControlFlow::Continue(());
                    }
                    is_damaged = true;
                    ControlFlow::Break(())
                })?;
                match (is_damaged, is_unreadable) {
                    (true, _) => Ok(Fate::Emptied),
                    // It may be whole: another time will tell.
                    (false, true) => Err(io::Error::other("a part of it cannot be read").into()),
                    (false, false) => Ok(Fate::Whole),
                }
            }
            Err(error) => match (start(disk)?, error) {
                (Start::Zeros, _) | (Start::Short, Error::Truncated { .. }) => Ok(Fate::Emptied),
                (Start::Salt(salt), Error::Truncated { .. }) if self.is_of_unsettled(&salt) => Ok(Fate::Emptied),
                (_, error) => Err(error),
            },
        }
    }

    /// Looks at a file after a crash and makes it empty if its birth was interrupted, which that of a file with a journal was not; `open` finds a file's keys, `make` says what a new one is made with. All that this does is on the
    /// disk when it returns, but for what makes a whole file whole: sync everything before epochs are settled.
    ///
    /// # Errors
    /// Those of `make` and of [`fate`](Self::fate); `InvalidData` for damage of a file that had been complete.
    pub fn recover(
        &self,
        client: &Client,
        disk: &Arc<dyn Disk>,
        journals: &Arc<dyn Journals>,
        open: impl Fn(&Header) -> Result<FileKeys>,
        make: impl FnOnce() -> Result<(Header, FileKeys)>,
    ) -> Result<Fate> {
        let mut was_complete = false;
        if let Ok(header) = Header::read(Reader { disk: &**disk, at: 0 })
            && self.is_of_unsettled(header.salt())
        {
            was_complete = container::recover(&header, &open(&header)?, &**disk, &**journals)?;
        }
        let fate = self.fate(client, &**disk, open)?;
        if fate == Fate::Emptied {
            if was_complete {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it was complete once, by its journal, and is damaged since").into());
            }
            clear(&**disk)?;
            let (header, keys) = make()?;
            Container::create(client, &header, keys, disk.clone(), journals.clone())?.close()?;
        }
        Ok(fate)
    }

    fn write(&self, state: &mut State, epochs: Vec<Epoch>) -> Result<()> {
        let number = state.number + 1;
        let mut record = MAGIC.to_vec();
        record.extend_from_slice(&number.to_le_bytes());
        record.extend_from_slice(&(epochs.len() as u64).to_le_bytes());
        record.extend_from_slice(&epochs.concat());
        record.extend_from_slice(&mac(&self.key, &[b"births", &record]));
        self.disk.write_at(&record, RECORDS_AT[(number % 2) as usize])?;
        self.disk.sync()?;
        *state = State { number, epochs };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Empties a file that is to be born again, such as one that a program cut to no length. When this returns nothing of what it held can come back, so that no part
/// of it is taken for a part of what comes.
///
/// # Errors
/// The operating system's.
pub fn clear(disk: &dyn Disk) -> io::Result<()> {
    disk.set_len(0)?;
    disk.sync()
}

/// What is there of a header, as far as its salt.
enum Start {
    /// Nothing but zeros, if anything: it never reached the disk. It is shorter than a sector, which is there or not.
    Zeros,
    /// Too little to know whose it was.
    Short,
    /// The salt.
    Salt([u8; KEY_BYTES]),
}

fn start(disk: &dyn Disk) -> io::Result<Start> {
    let mut bytes = [0; PREFIX_BYTES];
    let got = disk.read_at(&mut bytes, 0)?;
    let mut salt = [0; KEY_BYTES];
    salt.copy_from_slice(&bytes[SALT]);
    Ok(match bytes == [0; PREFIX_BYTES] {
        true => Start::Zeros,
        false if got < PREFIX_BYTES => Start::Short,
        false => Start::Salt(salt),
    })
}

fn parse(sector: &[u8], key: &[u8]) -> Option<(u64, Vec<Epoch>)> {
    let (head, rest) = sector.split_at_checked(MAGIC.len() + 16)?;
    let [number, count] = [8, 16].map(|at| head[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    let count = usize::try_from(count).ok().filter(|count| *count <= EPOCHS_MAX)?;
    let (epochs, rest) = rest.split_at_checked(count * size_of::<Epoch>())?;
    let is_valid = head.starts_with(&MAGIC) && mac_is(key, &[b"births", head, epochs], rest.get(..KEY_BYTES)?);
    is_valid.then(|| (number, epochs.as_chunks().0.to_vec()))
}

/// A disk read from an offset on.
struct Reader<'a> {
    disk: &'a dyn Disk,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.disk.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
