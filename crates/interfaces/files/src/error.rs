//! What can go wrong with an encrypted file. Messages say what and what to do; who knows the file's name puts it before them.

use std::fmt;
use std::io;

/// Why an encrypted file cannot be written, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are not those of this format.
    #[error("not a file encrypted by bywash (its first bytes are others); check that it is the file meant")]
    NotEncrypted,
    /// The first bytes are those of an encrypted file as text ([`armor`](crate::armor)), which is read as a stream.
    #[error(
        "encrypted, but as text (encrypt --armor), which only `bywash decrypt`, given it alone, and `bywash info` read; encrypt anew what is in it to change anything"
    )]
    Armored,
    /// Text that no encrypted file was made to, as it stands.
    #[error("line {line} of its text is damaged: {what}")]
    DamagedArmor {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it, and why that may be.
        what: &'static str,
    },
    /// A later version of the format.
    #[error("format version {version} is unknown here (this is version {known}); read it with a newer bywash, or if none wrote it restore it from a copy", known = crate::header::VERSION)]
    UnknownVersion {
        /// As the header has it.
        version: u16,
    },
    /// An AEAD without a number in this version's table.
    #[error("AEAD number {number} is unknown here; read it with a newer bywash, or if none wrote it restore it from a copy")]
    UnknownAead {
        /// As the header has it.
        number: u16,
    },
    /// An AEAD that no engine of this machine computes.
    #[error("{name} cannot be computed here ({reason}); use a machine that can, or encrypt with --aead aes-256-gcm")]
    AbsentAead {
        /// Its name.
        name: &'static str,
        /// What the engine says.
        reason: String,
    },
    /// The header contradicts itself, its check sum or its MAC.
    #[error("the header is damaged: {what}; restore the file from a copy")]
    DamagedHeader {
        /// What is wrong with it.
        what: &'static str,
    },
    /// All slots are passphrases, and the ones given fit none.
    #[error("wrong passphrase; try another")]
    WrongPassphrase,
    /// Nothing of what was given opens the file.
    #[error("none of the keys given opens it: it can be opened with {slots}")]
    NoKeyFits {
        /// Its slots, in words.
        slots: String,
    },
    /// The file ends before it should.
    #[error("the file is truncated {place}; restore it from a copy")]
    Truncated {
        /// Where, in words.
        place: String,
    },
    /// A chunk is not what was written there.
    #[error("{0}; restore the file from a copy (`bywash fsck` lists all damage)")]
    Damaged(Damage),
    /// A key, recipient or parameter that cannot be used.
    #[error("{what}")]
    BadKey {
        /// What is wrong with it, and the way out.
        what: String,
    },
    /// A length or position beyond what the format can hold.
    #[error("a file has at most {max} bytes; {asked} were asked for", max = crate::geometry::LENGTH_MAX)]
    TooLong {
        /// What was asked for.
        asked: u64,
    },
    /// A crash left a journal beside several files that it may be of: copies have their original's salt.
    #[error(
        "{} are copies of one file, and its writer was interrupted and left a journal for one of them; move the others to another folder, and try again",
        .owners.join(" and ")
    )]
    WhoseJournal {
        /// Their paths.
        owners: Vec<String>,
    },
    /// Opened for reading alone.
    #[error("the file was opened for reading only")]
    ReadOnly,
    /// An earlier write failed, so what the disk holds is not known; a new open recovers it.
    #[error("an earlier write to this file failed ({reason}); open it again, which recovers the last state that was synced")]
    Poisoned {
        /// The earlier error.
        reason: String,
    },
    /// An engine failed.
    #[error("{0}")]
    Engine(#[from] bywash_core::Error),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for Error {
    /// What a reader of this crate's returned says what it is.
    fn from(error: io::Error) -> Self {
        error.downcast().unwrap_or_else(Self::Io)
    }
}

/// One damaged place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the chunk, from 0.
    pub chunk: u64,
    /// Where its bytes begin in the encrypted file.
    pub offset: u64,
    /// Where its text begins in the decrypted file.
    pub text_offset: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// It is not authentic: changed, torn, or of another place or file.
    NotAuthentic,
    /// The file's last chunk is an authentic one that others followed: the end of the file is missing.
    EndMissing,
    /// An authentic last chunk, but others follow it: something was appended.
    NotTheLast,
    /// The last chunk that is there, and not authentic: damaged, or the end of the file is missing and it is cut off, or something was appended.
    NoEnd,
    /// The file ends within it, and not much is left.
    CutOff,
    /// It could not be read from the medium.
    Unreadable,
}

impl DamageKind {
    /// Whether the text of such a chunk is lost: it is not of one that is authentic, but for another length of the file.
    pub fn is_lost(self) -> bool {
        match self {
            Self::EndMissing | Self::NotTheLast => false,
            Self::NotAuthentic | Self::NoEnd | Self::CutOff | Self::Unreadable => true,
        }
    }

    /// Whether where the text ends is not known.
    pub fn is_of_end(self) -> bool {
        matches!(self, Self::EndMissing | Self::NotTheLast | Self::NoEnd | Self::CutOff)
    }

    /// In a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAuthentic => "not-authentic",
            Self::EndMissing => "end-missing",
            Self::NotTheLast => "not-the-last",
            Self::NoEnd => "no-end",
            Self::CutOff => "cut-off",
            Self::Unreadable => "unreadable",
        }
    }

    fn of_one(self) -> &'static str {
        match self {
            Self::NotAuthentic => "is damaged",
            Self::EndMissing => "was not the last when it was written: the file is truncated after it",
            Self::NotTheLast => "was the last when it was written: something was appended to the file after it",
            Self::NoEnd => {
                "is the last and not as it was written: it is damaged, or the file is truncated within it, or something was appended"
            }
            Self::CutOff => "is cut off: the file is truncated within it",
            Self::Unreadable => "cannot be read from the medium",
        }
    }

    /// Of several neighbouring chunks; none for what there is one of in a file.
    pub(crate) fn of_many(self) -> Option<&'static str> {
        match self {
            Self::NotAuthentic => Some("are damaged"),
            Self::Unreadable => Some("cannot be read from the medium"),
            Self::EndMissing | Self::NotTheLast | Self::NoEnd | Self::CutOff => None,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chunk, offset, text_offset, kind } = self;
        write!(f, "chunk {chunk} at offset {offset} (text from {text_offset}) {}", kind.of_one())
    }
}

/// What this crate's functions return.
pub type Result<T> = core::result::Result<T, Error>;
