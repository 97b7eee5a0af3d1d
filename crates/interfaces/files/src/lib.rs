//! Encrypted files: their format, whole and in place. `FORMAT.md` beside this crate specifies every byte.
//!
//! ```
//! use bywash_client::{Client, Config};
//! use bywash_files::{Aead, Container, Header, Keyring, Lock, disk::FolderJournals, new_file};
//! use std::{fs::File, sync::Arc};
//!
//! let (client, folder) = (Client::new(Config::default()), tempfile::tempdir()?);
//! let path = folder.path().join("secret");
//! let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
//! let journals = Arc::new(FolderJournals::beside(&path)?);
//!
//! // One lock may serve many files; each has keys of its own.
//! let (keys, slots) = new_file(&[Lock::key_file(&[7; 32])])?;
//! let header = Header::new(Aead::Aes256Gcm, 1 << 16, slots, &keys)?;
//! let file = Container::create(&client, &header, keys, Arc::new(open()?), journals.clone())?;
//! file.write_at(b"attack at dawn", 0)?;
//! file.close()?;
//!
//! let mut keyring = Keyring::new();
//! keyring.add_key_file(&[7; 32]);
//! let header = Header::read(open()?)?;
//! let file = Container::open_rw(&client, &header, keyring.open(&header)?, Arc::new(open()?), journals)?;
//! file.write_at(b"dusk", 10)?;
//! file.sync()?;
//! let mut text = [0; 20];
//! assert_eq!(file.read_at(&mut text, 0)?, 14);
//! assert_eq!(&text[..14], b"attack at dusk");
//! # file.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The way of the data
//!
//! | module | what it knows |
//! |---|---|
//! | [`lock`], [`passphrase`], [`recipient`], [`ssh`], [`slot`] | how a random file key is wrapped for whoever may open the file |
//! | [`header`] | what stands before the chunks |
//! | [`geometry`] | where which chunk lies |
//! | [`nonce`], [`sealer`] | how a chunk is sealed, and why no nonce comes twice |
//! | [`container`], [`disk`] | reading and writing anywhere in a file, such that a power cut leaves it old or new |
//! | [`births`] | what a power cut leaves of new files in a mount |
//! | [`whole`] | whole files and streams, by several threads |
//! | [`armor`] | streams as text |
//! | [`place`] | how a file comes to be there: complete, on the disk, with its source's metadata |
//! | [`write_secret`] | new files that hold keys |
//! | [`fsck`] | every damaged chunk named, every good one saved |
//! | [`rekey`] | a file that is there gets other locks |
//! | [`power`] | disks whose power is cut, for tests |
//!
//! Ciphers run in a client's sessions, so a file goes to whatever engine the routing table names; keys are derived and wrapped by AWS-LC.
#![deny(unsafe_code)]

mod aead;
pub mod armor;
pub mod births;
pub mod container;
pub mod disk;
mod error;
pub mod fsck;
pub mod geometry;
pub mod header;
mod journal;
mod kdf;
pub mod leftover;
pub mod lock;
pub mod nonce;
pub mod passphrase;
pub mod place;
pub mod power;
pub mod recipient;
pub mod rekey;
pub mod sealer;
mod secret;
pub mod slot;
pub mod ssh;
pub mod whole;

pub use aead::Aead;
pub use births::Births;
pub use container::Container;
pub use error::{Damage, DamageKind, Error, Result};
pub use geometry::Geometry;
pub use header::Header;
pub use kdf::{FileKeys, KEY_BYTES, derive};
pub use lock::{Keyring, Lock, new_file};
pub use nonce::NonceSource;
pub use passphrase::Argon2Cost;
pub use recipient::{Identity, Recipient};
pub use sealer::Sealer;
pub use secret::write_secret;
pub use whole::Whole;
