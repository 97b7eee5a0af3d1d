//! The cryptography of DDS Security 1.1, with sessions that stay ready.
//!
//! Implementations of DDS derive a session's key anew for every piece they send or receive, make and key a cipher context for it, and may draw random
//! bytes: on processors with AES instructions that costs several times what the encryption costs. Here what was derived and keyed is found again:
//! - [`Sender`] and [`Opener`] have the sessions of a master key at hand. They are what a plug-in holds for each participant, writer and reader.
//! - [`Accepted`] is what openers of one key share, where a message must come once for all of them.
//! - [`Sessions`] is the table in which all openers of a process find them. It is bounded; what goes is wiped.
//! - [`random`] has random bytes in store.
//!
//! [`wire`] is the format: its parsers take any bytes. [`KeyMaterial`] is what participants tell each other of their keys.
//!
//! ```
//! use bywash_dds::{Kind, KeyMaterial, Opener, Sender, payload_len, seal_payload, wire::split_payload};
//! let material = KeyMaterial::generate(Kind::Aes256Gcm, 1)?;
//! let (sender, opener) = (Sender::new(material.clone(), bywash_dds::BLOCKS_MAX)?, Opener::new(material));
//! let mut message = vec![0; payload_len(&sender, 11)];
//! seal_payload(&sender, b"temperature", &mut message)?;
//! let sealed = split_payload(&message)?;
//! let mut text = vec![0; sealed.text.len()];
//! opener.open(&sealed, &mut text)?;
//! assert_eq!(text, b"temperature");
//! # Ok::<(), bywash_dds::Refusal>(())
//! ```
#![forbid(unsafe_code)]

mod bounded;
mod cache;
mod derive;
mod keyed;
mod keymat;
mod kind;
mod opener;
mod protect;
pub mod random;
mod refusal;
mod replay;
mod reuse;
mod sender;
pub mod wire;

pub use bywash_client::variable;
pub use cache::{CAPACITY, Epoch, Sessions};
pub use derive::{CHALLENGE, KeyBytes, Purpose, exchange_keys, hmac_sha256, session_key};
pub use keyed::{IV, Keyed, TAG, client, say_if_alone};
pub use keymat::KeyMaterial;
pub use kind::Kind;
pub use opener::{Checked, Opener, Specific};
pub use protect::{add_receiver, payload_len, protect, protected_len, seal_payload};
pub use refusal::{Refusal, Result};
pub use replay::Accepted;
pub use reuse::{Made, Reuse};
pub use sender::{BLOCKS_MAX, Sender};
