//! AES-GCM with a key expanded once, for any number of messages and threads.

use crate::refusal::{Refusal, Result};
use bywash_client::{Client, Config, Route, Session, variable};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use once_cell::race::OnceBox;

/// Bytes of a nonce: session id and a number that never comes twice under it.
pub const IV: usize = 12;
/// Bytes of a tag.
pub const TAG: usize = 16;

/// A process's client, made at the first use and told by the environment (`BYWASH_SOCKET`, `BYWASH_ROUTE`, `BYWASH_RUN`, `BYWASH_KEEP`) as the OpenSSL provider's is. If one of these
/// cannot be read, that is said on standard error, and that one is left at its default: who mistyped where work is to be done would not learn it otherwise.
pub fn client() -> &'static Client {
    // No lock: the child of a fork would wait for it for ever.
    static CLIENT: OnceBox<Client> = OnceBox::new();
    CLIENT.get_or_init(|| Box::new(Client::new(Config::from_env_telling(|error| eprintln!("bywash: {error}; it is taken as unset")))))
}

/// Says on standard error, once, that a broker was asked for which is not there: nothing else would tell. Not within `bywash run`, which has seen to it, and not before whoever calls is ready
/// for work: it may wait a second for one that is stopped.
pub fn say_if_alone() {
    static WAS_ASKED: AtomicBool = AtomicBool::new(false);
    let config = client().config();
    let asks = config.route == Route::Queue || variable("BYWASH_SOCKET").is_some();
    if config.run.is_some() || config.socket.is_none() || !asks || WAS_ASKED.swap(true, Relaxed) {
        return;
    }
    if let Err(why) = client().find_broker() {
        eprintln!("bywash: {why}; messages of DDS are protected in place until it is there");
    }
}

/// An AES key ready to use: round keys and powers of the hash key. Shared by threads, without a lock; cheap to clone, and wiped when the last clone is dropped.
#[derive(Clone)]
pub struct Keyed(Session);

impl Keyed {
    /// Expands a key of 16 or 32 bytes.
    ///
    /// # Errors
    /// [`Refusal::Unprotectable`] for another length, [`Refusal::Engine`].
    pub fn new(client: &Client, key: &[u8]) -> Result<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::Aes128Gcm,
            32 => Algorithm::Aes256Gcm,
            _ => return Err(Refusal::Unprotectable("an AES key has 16 or 32 bytes here")),
        };
        Ok(Self(client.session(SessionParams::new(algorithm, Key::Symmetric(key.into()))?)?))
    }

    /// Encrypts `text` into `output`, which is as long.
    ///
    /// # Errors
    /// [`Refusal::Engine`], also for an output that is shorter.
    pub fn seal(&self, iv: &[u8; IV], aad: &[u8], text: &[u8], output: &mut [u8]) -> Result<[u8; TAG]> {
        self.encrypt(iv, aad, Data::Copy { input: text, output })
    }

    /// Encrypts in place.
    ///
    /// # Errors
    /// [`Refusal::Engine`].
    pub fn seal_in_place(&self, iv: &[u8; IV], aad: &[u8], text: &mut [u8]) -> Result<[u8; TAG]> {
        self.encrypt(iv, aad, Data::InPlace(text))
    }

    /// Decrypts `text` into `output`, which is as long; zeros are there if the tag is wrong.
    ///
    /// # Errors
    /// [`Refusal::Authentication`], [`Refusal::Engine`].
    pub fn open(&self, iv: &[u8; IV], aad: &[u8], text: &[u8], output: &mut [u8], tag: &[u8; TAG]) -> Result<()> {
        let (mut tag, data) = (*tag, Data::Copy { input: text, output });
        self.0.run(&mut Operation { direction: Direction::Decrypt, iv, aad, data, tag: &mut tag })?;
        Ok(())
    }

    /// The tag of text that stays in the clear (GMAC).
    ///
    /// # Errors
    /// [`Refusal::Engine`].
    pub fn mac(&self, iv: &[u8; IV], text: &[u8]) -> Result<[u8; TAG]> {
        self.encrypt(iv, text, Data::InPlace(&mut []))
    }

    /// Whether a tag is that of the text in the clear; compared in constant time.
    ///
    /// # Errors
    /// [`Refusal::Authentication`], [`Refusal::Engine`].
    pub fn verify(&self, iv: &[u8; IV], text: &[u8], tag: &[u8; TAG]) -> Result<()> {
        self.open(iv, text, &[], &mut [], tag)
    }

    fn encrypt(&self, iv: &[u8; IV], aad: &[u8], data: Data<'_>) -> Result<[u8; TAG]> {
        let mut tag = [0; TAG];
        self.0.run(&mut Operation { direction: Direction::Encrypt, iv, aad, data, tag: &mut tag })?;
        Ok(tag)
    }
}
