//! The volume file: which ciphers, and the key that everything in the volume comes from.

use crate::names::{OWN_PREFIX, new_folder_id};
use crate::native::{FOLDER_FILE, JOURNALS, plain};
use bywash_client::Client;
use bywash_core::SecretBytes;
use bywash_files::disk::FolderJournals;
use bywash_files::leftover::VOLUME_FILE;
use bywash_files::place::open_regular;
use bywash_files::{Aead, Container, Error, Header, KEY_BYTES, Keyring, Lock, Result, derive, new_file};
use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// First bytes of the volume file's text.
const MAGIC: [u8; 8] = *b"BYWASHVL";
/// The version that is written, and the only one that is read.
const VERSION: u16 = 1;
/// Bytes of the volume file's text.
const TEXT_BYTES: usize = 48;
const FLAG_PLAIN_NAMES: u8 = 1;

/// How a new volume is to be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the contents are sealed with.
    pub aead: Aead,
    /// Bytes of text sealed together.
    pub chunk_size: usize,
    /// Names, targets of links and attributes stay as they are; only contents are sealed.
    pub has_plain_names: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { aead: Aead::Aes256Gcm, chunk_size: bywash_files::geometry::CHUNK_BYTES, has_plain_names: false }
    }
}

/// What the volume file says.
pub struct Volume {
    text: SecretBytes,
    aead: Aead,
    chunk_size: usize,
}

impl Volume {
    /// Makes an empty folder a volume that each of the locks opens; when this returns it survives a power cut.
    ///
    /// # Errors
    /// `AlreadyExists` if it is one, `DirectoryNotEmpty` if there is something in it; those of [`Header::new`]; the operating system's.
    pub fn init(client: &Client, folder: &Path, locks: &[Lock], options: &Options) -> Result<Self> {
        if folder.join(VOLUME_FILE).symlink_metadata().is_ok() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "it is a volume already").into());
        }
        if folder.read_dir()?.next().is_some() {
            return Err(
                io::Error::new(ErrorKind::DirectoryNotEmpty, "a volume begins as an empty folder, and this one is not empty").into()
            );
        }
        let volume = Self::draw(options)?;
        std::fs::DirBuilder::new().mode(OWN_FOLDER_MODE.as_raw_mode()).create(folder.join(JOURNALS))?;
        let id = new_folder_id()?;
        let mut file = File::options().write(true).create_new(true).mode(0o444).open(folder.join(FOLDER_FILE))?;
        file.write_all(&id)?;
        file.sync_all()?;

        // Complete before it has its name: without the volume file, nothing of the volume is ever read again.
        let draft = folder.join(format!("{}draft", String::from_utf8_lossy(OWN_PREFIX)));
        let (keys, slots) = new_file(locks)?;
        let header = Header::new(options.aead, bywash_files::geometry::CHUNK_BYTES_MIN, slots, &keys)?;
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&draft)?;
        let file = Container::create(client, &header, keys, Arc::new(file), Arc::new(FolderJournals::beside(&draft)?))?;
        file.write_at(&volume.text, 0)?;
        file.close()?;
        let named = rustix::fs::renameat_with(CWD, &draft, CWD, folder.join(VOLUME_FILE), RenameFlags::NOREPLACE);
        named
            .or_else(|error| match error {
                // Not every file system has such renames.
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS => rustix::fs::renameat(CWD, &draft, CWD, folder.join(VOLUME_FILE)),
                error => Err(error),
            })
            .map_err(io::Error::from)?;
        File::open(folder)?.sync_all()?;
        Ok(volume)
    }

    fn draw(options: &Options) -> Result<Self> {
        let mut text = SecretBytes::zeroed(TEXT_BYTES);
        text[..8].copy_from_slice(&MAGIC);
        text[8..10].copy_from_slice(&VERSION.to_le_bytes());
        text[10..12].copy_from_slice(&options.aead.number().to_le_bytes());
        text[12] = options.chunk_size.trailing_zeros() as u8;
        text[13] = if options.has_plain_names { FLAG_PLAIN_NAMES } else { 0 };
        bywash_files::nonce::random(&mut text[16..])?;
        Self::parse(text)
    }

    /// Opens the volume in that folder.
    ///
    /// # Errors
    /// `NotFound` if it is no volume; those of [`Keyring::open`] and [`Container::open`]; [`Error::DamagedHeader`].
    pub fn open(client: &Client, folder: &Path, keyring: &Keyring) -> Result<Self> {
        let path = folder.join(VOLUME_FILE);
        let (file, _) = open_regular(&path, false).map_err(|error| match error.kind() {
            ErrorKind::NotFound => io::Error::new(ErrorKind::NotFound, format!("there is no {VOLUME_FILE} in it: it is no volume")),
            _ => error,
        })?;
        let header = Header::read(&file)?;
        let keys = keyring.open(&header)?;
        let file = Container::open(client, &header, keys, Arc::new(file), &FolderJournals::beside(&path)?)?;
        let mut text = SecretBytes::zeroed(TEXT_BYTES + 1);
        let len = file.read_at(&mut text, 0)?;
        Self::parse(text[..len].into())
    }

    /// From what [`secret`](Self::secret) gave.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], [`Error::UnknownAead`]; [`Error::DamagedHeader`] for any other text.
    pub fn parse(text: SecretBytes) -> Result<Self> {
        if text.len() < 10 || text[..8] != MAGIC {
            return Err(Error::DamagedHeader { what: "the text of the volume file is not that of a volume" });
        }
        let number = |at: usize| u16::from_le_bytes([text[at], text[at + 1]]);
        if number(8) != VERSION {
            return Err(Error::UnknownVersion { version: number(8) });
        }
        let sizes = bywash_files::geometry::CHUNK_BYTES_MIN..=bywash_files::geometry::CHUNK_BYTES_MAX;
        let is_sound = text.len() == TEXT_BYTES && text[13] & !FLAG_PLAIN_NAMES == 0 && text[14..16] == [0, 0];
        let chunk_size = text.get(12).and_then(|log| 1usize.checked_shl(u32::from(*log))).filter(|size| is_sound && sizes.contains(size));
        let chunk_size = chunk_size.ok_or(Error::DamagedHeader { what: "the volume file has values that this version does not have" })?;
        let aead = Aead::from_number(number(10)).ok_or(Error::UnknownAead { number: number(10) })?;
        Ok(Self { aead, chunk_size, text })
    }

    /// The volume file's text, all that is needed to open the volume: for a process that goes on with it.
    pub fn secret(&self) -> &SecretBytes {
        &self.text
    }

    /// What the contents are sealed with.
    pub fn aead(&self) -> Aead {
        self.aead
    }

    /// Bytes of text sealed together.
    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    /// Whether names, targets and attributes are as they are.
    pub fn has_plain_names(&self) -> bool {
        self.text[13] & FLAG_PLAIN_NAMES != 0
    }

    /// A key of the volume, for what the purpose says: HKDF-SHA256 (RFC 5869) without a salt.
    pub(crate) fn key(&self, purpose: &str) -> io::Result<SecretBytes> {
        derive(b"", &self.text[16..], &[b"bywash-volume/1 ", purpose.as_bytes()], KEY_BYTES).map_err(plain)
    }
}

/// Whether a folder is a volume.
pub fn is_volume(folder: &Path) -> bool {
    rustix::fs::statat(CWD, folder.join(VOLUME_FILE), AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// The same, and not a folder that a copy of a volume file was put into.
pub fn is_whole_volume(folder: &Path) -> bool {
    is_volume(folder) && rustix::fs::statat(CWD, folder.join(FOLDER_FILE), AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// The mode of folders that the format makes.
pub(crate) const OWN_FOLDER_MODE: Mode = Mode::RWXU;
