//! What a volume format is to the file system: names, contents, and which entries of a lower folder are the format's own.
//!
//! The file system mirrors a *lower* folder: each folder, file, link, pipe of it is one of the lower folder's, with the same mode, owner and times. What differs
//! are names, contents, targets of symbolic links and extended attributes, and those a [`Format`] seals and opens. It knows no kernel, no node and no
//! descriptor but the file that it is given; it may keep files of its own beside (journals, a volume-wide file), which are *hidden*.
//!
//! Each folder has an *identity* of 16 random bytes in a hidden file, which goes into the names in it: equal names in two folders look different, and an entry
//! that is moved by others than us does not open. A sealed name that is too long for the lower file system becomes a hash, and a hidden *side file* holds it.
//!
//! # Who implements this
//! [`Native`](crate::native::Native) is Bywash's own format (`VOLUME.md`). For another one, say gocryptfs's: its `gocryptfs.diriv` is [`folder_file`](Format::folder_file),
//! `gocryptfs.longname.*` and its `.name` are a [`LongName`], and a block-wise file is a [`Content`] whose [`write_out`](Content::write_out) has nothing to do.
//!
//! Errors are `std::io::Error`. One that has an operating system's number reaches the program as that number; any other is an input/output error to the program,
//! and its text goes to the log: damage is told so ([`damaged`]).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Bytes of a folder's identity.
pub const FOLDER_ID_BYTES: usize = 16;

/// What makes the names of one folder its own.
pub type FolderId = [u8; FOLDER_ID_BYTES];

/// A name as the lower folder has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerName {
    /// The entry's name.
    pub name: CString,
    /// What is needed beside it, if the sealed name is too long to be a name.
    pub long: Option<LongName>,
}

/// A sealed name too long for the lower file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongName {
    /// The hidden file, in the same folder, that holds it.
    pub side_file: CString,
    /// What that file holds.
    pub sealed: Vec<u8>,
}

/// What an entry of a lower folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The format's own: nobody sees it.
    Hidden,
    /// Its name is sealed in its lower name.
    Named,
    /// Its name is sealed in that hidden file.
    Long(CString),
    /// Nothing of this format. It is left alone and not shown, and fsck names it.
    Foreign,
}

/// A volume format. Shared by threads.
pub trait Format: Send + Sync + 'static {
    /// The hidden file that holds a folder's identity; none if folders have none (it is zeros then).
    fn folder_file(&self) -> Option<&CStr>;

    /// What an entry is, by its lower name.
    fn classify(&self, lower: &CStr, is_in_root: bool) -> Entry;

    /// The lower name for a name: always the same for the same name in the same folder.
    ///
    /// # Errors
    /// `ENAMETOOLONG`; `EPERM` for a name that the format keeps for itself everywhere ([`classify`](Self::classify) says which else).
    fn seal_name(&self, folder: &FolderId, name: &[u8]) -> io::Result<LowerName>;

    /// The name that is sealed in a lower name or in a side file's content.
    ///
    /// # Errors
    /// [`damaged`] if it was not sealed in this folder.
    fn open_name(&self, folder: &FolderId, sealed: &[u8]) -> io::Result<Vec<u8>>;

    /// The lower target of a symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG`.
    fn seal_target(&self, target: &[u8]) -> io::Result<Vec<u8>>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`damaged`].
    fn open_target(&self, lower: &[u8]) -> io::Result<Vec<u8>>;

    /// Length of a target, from that of the lower one.
    fn target_len(&self, lower_len: u64) -> u64;

    /// The lower name of an extended attribute.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for attributes that are not kept; `ERANGE` for names too long.
    fn seal_attribute_name(&self, name: &[u8]) -> io::Result<CString>;

    /// The name of an extended attribute; none if it is not of this format.
    fn open_attribute_name(&self, lower: &[u8]) -> Option<Vec<u8>>;

    /// The lower value of the attribute with that lower name.
    ///
    /// # Errors
    /// `ENOSPC` for values too long.
    fn seal_attribute(&self, lower_name: &CStr, value: &[u8]) -> io::Result<Vec<u8>>;

    /// The value of the attribute with that lower name.
    ///
    /// # Errors
    /// [`damaged`].
    fn open_attribute(&self, lower_name: &CStr, lower: &[u8]) -> io::Result<Vec<u8>>;

    /// Length of the text in a lower file of that length.
    ///
    /// # Errors
    /// [`damaged`] for a length that no file has.
    fn text_len(&self, lower_len: u64) -> io::Result<u64>;

    /// Makes good what a crash left, before anything else is asked; `root` is the volume's folder.
    ///
    /// # Errors
    /// The operating system's; [`damaged`].
    fn recover(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        let _ = root;
        Ok(())
    }

    /// What is wrong with files of the format's own that are not needed for reading.
    fn damage(&self) -> Option<&str> {
        None
    }

    /// Whether the last who wrote to the volume was interrupted, and nobody has [recovered](Self::recover) it.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Something is about to be made, of which a crash may leave a part: a file, a folder with its identity, a name with its side file.
    ///
    /// # Errors
    /// The operating system's.
    fn bear(&self) -> io::Result<()> {
        Ok(())
    }

    /// A minute is over: files that are new from now on are of another time than those before. `false` if there is nothing to do.
    ///
    /// # Errors
    /// The operating system's.
    fn begin_turn(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Everything that was there when the turn began has been synced; with `is_last` everything there is.
    ///
    /// # Errors
    /// The operating system's.
    fn end_turn(&self, is_last: bool) -> io::Result<()> {
        let _ = is_last;
        Ok(())
    }

    /// The salts of files that are gone, for which something is kept until that is so after a power cut too: for who syncs the lower file system now, and then says that they may be
    /// [forgotten](Self::forget_gone).
    fn take_gone(&self) -> Vec<[u8; 32]> {
        Vec::new()
    }

    /// Nothing need be kept for those any more, if the lower file system was synced; else it is kept on.
    fn forget_gone(&self, salts: Vec<[u8; 32]>, is_synced: bool) {
        let _ = (salts, is_synced);
    }

    /// Whether so much is kept for files that are gone that the next turn should not be waited for.
    fn has_much_gone(&self) -> bool {
        false
    }

    /// Whether a crash left journals that change the lengths of texts, and stay: nothing is recovered for who only reads.
    fn lengths_need_journals(&self) -> bool {
        false
    }

    /// Whether a file that is cut to nothing is [made anew](Self::create), instead of being cut.
    fn is_cut_by_birth(&self) -> bool {
        false
    }

    /// Whether zeros that nobody wrote take no room.
    fn has_holes(&self) -> bool {
        false
    }

    /// An empty text in a lower file; what the file holds is gone.
    ///
    /// # Errors
    /// The operating system's.
    fn create(&self, file: Arc<File>) -> io::Result<Arc<dyn Content>>;

    /// Looks at all of a lower file, which is open for reading, and changes nothing.
    ///
    /// # Errors
    /// [`damaged`] where no part of it can be told; the operating system's.
    fn look_at(&self, file: Arc<File>) -> io::Result<Looked>;

    /// The text of a lower file. It is opened once, whoever reads and writes it.
    ///
    /// # Errors
    /// [`damaged`]; the operating system's.
    fn open(&self, file: Arc<File>, access: bywash_files::disk::Access) -> io::Result<Arc<dyn Content>>;
}

/// The text of an open file. Shared by threads.
pub trait Content: Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the file is new and nobody was promised anything about it.
    fn is_newborn(&self) -> bool {
        false
    }

    /// Reads at an offset; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// [`damaged`]; the operating system's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of it at an offset; a gap before it becomes zeros.
    ///
    /// # Errors
    /// `EROFS` if it was opened for reading; the operating system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts, or extends with zeros.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Extends with zeros to a length, unless it is as long already: what others write behind that meanwhile stays.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn grow(&self, len: u64) -> io::Result<()>;

    /// Gives the lower file what can go there without waiting for the disk. This is called when a descriptor is closed.
    ///
    /// # Errors
    /// The operating system's, `ENOSPC` for one.
    fn write_out(&self) -> io::Result<Rest>;

    /// Returns when all that was written survives a power cut.
    ///
    /// # Errors
    /// The operating system's.
    fn sync(&self) -> io::Result<()>;

    /// As [`sync`](Self::sync), and the lower file is complete by itself: it may be dropped.
    ///
    /// # Errors
    /// The operating system's.
    fn settle(&self) -> io::Result<()>;

    /// Whether there is a journal beside the lower file, which it may need.
    fn has_journal(&self) -> bool {
        false
    }

    /// Nobody will read it again: what is kept beside the file goes away, at once if it is certain that the text is gone, in a power cut too.
    fn discard(&self, is_certain: bool);
}

/// What was found in a file when all of it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Bytes of good text.
    pub good_bytes: u64,
    /// What is damaged, each place with its offset in the lower file and in the text.
    pub damages: Vec<String>,
    /// Whether a crash or a power cut came between, which the next mount makes good.
    pub interrupted: Option<Interrupted>,
}

/// What a crash or a power cut came between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// A change in place: the next mount finishes it or undoes it.
    Change,
    /// The making of a name or of a folder that nobody was promised anything about: what is in that folder, or was to have that name, is given other names by the next mount.
    Name,
    /// The making of a file that nobody was promised anything about: it is made empty by the next mount.
    Birth,
}

/// What is left to do for a file before it may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// [`Content::settle`], which takes its time.
    Settle,
}

/// A volume of which the first names cannot be read, or a folder that only a copy of a volume's own file is in.
pub(crate) const NO_IDENTITY: &str =
    "the identity of the volume's own folder (.bywash-folder, or gocryptfs.diriv) is missing; restore it from a copy";

/// Something on the lower file system that is not what was written there, in words for the log.
pub fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
