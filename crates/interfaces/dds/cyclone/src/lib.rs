//! The cryptographic plug-in of DDS Security 1.1 for Cyclone DDS 0.10, as Debian 12 has it: named in a configuration, it takes the built-in one's place in
//! programs that know nothing of it.
//!
//! ```xml
//! <Cryptographic>
//!   <Library initFunction="init_crypto" finalizeFunction="finalize_crypto" path="/usr/lib/libbywash_dds_cyclone.so"/>
//! </Cryptographic>
//! ```
//!
//! It does all that the built-in one does (AES-GCM and GMAC of both lengths for payloads, submessages and messages, tags of single receivers, key exchange) and speaks the same on the wire,
//! so that it talks to the built-in one and to Fast DDS. Keys are derived and expanded once a session ([`bywash_dds`]), where the built-in one does it for
//! each piece; sessions get new keys; and what comes again is refused: copies of the latest 256 submessages and messages of a sender, of one that counts any older ones too, keys that we
//! have sent ourselves, tags that were made for another sender's text, and messages that name another sender than the one whose key they are under.
//!
//! No panic leaves any of its functions, and nothing that comes from the network is believed before its tag was checked. What is refused is a security
//! exception, with the code that the built-in plug-in has for it.

use bywash_unwinder as _;

pub mod abi;
#[cfg(test)]
#[path = "../../../../client/tests/common/borrowed.rs"]
mod borrowed;
mod exchange;
mod factory;
mod fault;
mod host;
mod objects;
mod plugin;
mod read;
mod registry;
mod transform;

pub use host::{Block, Host, Secret};
pub use plugin::{Plugin, finalize_crypto, init_crypto};
