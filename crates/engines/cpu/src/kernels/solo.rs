//! Ciphers for one caller, and those of the modes without a tag.

use super::solo_aead::Aead;
use super::text;
use crate::modes::Mode;
use crate::xts::{Unit, check_unit};
use crate::{aead, failed, wrong};
use bywash_bulk::{cbc, chacha20_poly1305, ctr, ecb, gcm, xts};
use bywash_core::secret::constant_time_eq;
use bywash_core::{Algorithm, Data, Direction, Error, Kind, Operation, Result, Solo};
use core::any::Any;
use zeroize::Zeroize;

/// A cipher of the algorithm for one caller, where that gains whoever has OpenSSL at hand.
pub(crate) fn make(algorithm: Algorithm) -> Option<Box<dyn Solo>> {
    use Algorithm as A;
    Some(match algorithm {
        A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm => Box::new(Aead::<gcm::Key>::new(algorithm, ())),
        A::ChaCha20Poly1305 if chacha_gains() => Box::new(Aead::<chacha20_poly1305::Key>::new(algorithm, ())),
        A::Aes128Cbc | A::Aes192Cbc | A::Aes256Cbc => Box::new(Pieces::<cbc::Key>::new(algorithm, 16, ())),
        A::Aes128Ecb | A::Aes192Ecb | A::Aes256Ecb => Box::new(Pieces::<ecb::Key>::new(algorithm, 16, ())),
        A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr => Box::new(Pieces::<ctr::Key>::new(algorithm, 1, ())),
        A::Aes128Xts | A::Aes256Xts => Box::new(Units::new(algorithm)),
        _ => return None,
    })
}

/// Whether ChaCha20-Poly1305 gains, at every length and in pieces of any: on Zen 5 it does (`bench/evp-calls.sh`), and on Zen 4 whole messages do by more (`cargo bench -p bywash-bulk`; not measured
/// through OpenSSL). On a Xeon (family 6, model 207) OpenSSL's own is up to a
/// seventh faster at 16 KiB (`bench/README.md`), so programs keep that on other makers' processors; SSE4A tells AMD's.
fn chacha_gains() -> bool {
    chacha20_poly1305::is_supported() && is_x86_feature_detected!("sse4a")
}

/// The longest key: AES-256-XTS has two halves.
const KEY_MAX: usize = 64;

/// A key as it was given, or none: for copies, and for whoever asks whether it is the same again. Wiped when dropped.
struct Secret {
    bytes: [u8; KEY_MAX],
    len: usize,
}

impl Secret {
    const fn none() -> Self {
        Self { bytes: [0; KEY_MAX], len: 0 }
    }

    /// Takes a key of the algorithm's length.
    fn set(&mut self, algorithm: Algorithm, key: &[u8]) -> Result<()> {
        self.forget();
        let expected = match algorithm.kind() {
            Kind::Cipher { key, .. } | Kind::Aead { key, .. } => key,
            _ => 0,
        };
        match self.bytes.get_mut(..key.len()).filter(|_| key.len() == expected) {
            Some(room) => room.copy_from_slice(key),
            None => return Err(Error::KeyLength { algorithm, expected, given: key.len() }),
        }
        self.len = key.len();
        Ok(())
    }

    #[inline]
    fn get(&self) -> Option<&[u8]> {
        (self.len > 0).then_some(&self.bytes[..self.len])
    }

    fn forget(&mut self) {
        self.bytes[..self.len].zeroize();
        self.len = 0;
    }

    /// Becomes the same as another, what is behind a shorter key included.
    fn copy(&mut self, of: &Self) {
        self.bytes.copy_from_slice(&of.bytes);
        self.len = of.len;
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.forget();
    }
}

/// What a key becomes, in room that is used again for the next: to find so much aligned room costs more than to expand a key.
///
/// A clone has the key as it was expanded; [`clone_from`](Clone::clone_from) puts it where there was another.
pub(super) trait Room: Clone + Send + 'static {
    /// What computes it, where there is a choice.
    type Path: Copy + Send;

    fn new(path: Self::Path, key: &[u8]) -> Option<Self>;
    fn set(&mut self, key: &[u8]) -> Option<()>;
    fn wipe(&mut self);
}

macro_rules! room {
    ($($type:ty)*) => {
        $(impl Room for $type {
            type Path = ();

            fn new((): (), key: &[u8]) -> Option<Self> {
                Self::new(key).ok()
            }

            fn set(&mut self, key: &[u8]) -> Option<()> {
                self.set(key).ok()
            }

            fn wipe(&mut self) {
                self.wipe();
            }
        })*
    };
}

impl Room for chacha20_poly1305::Key {
    type Path = ();

    fn new((): (), key: &[u8]) -> Option<Self> {
        key.try_into().ok().map(Self::new)
    }

    fn set(&mut self, key: &[u8]) -> Option<()> {
        key.try_into().ok().map(|key| self.set(key))
    }

    fn wipe(&mut self) {
        self.wipe();
    }
}

room!(gcm::Key ctr::Key cbc::Key ecb::Key xts::Key);

/// A key as it was given, and what it became.
pub(super) struct Expanded<K: Room> {
    path: K::Path,
    given: Secret,
    room: Option<K>,
}

impl<K: Room> Expanded<K> {
    pub(super) const fn none(path: K::Path) -> Self {
        Self { path, given: Secret::none(), room: None }
    }

    /// Nothing is expanded if it is the same key again; whether it is another.
    #[inline]
    pub(super) fn set(&mut self, algorithm: Algorithm, key: &[u8]) -> Result<bool> {
        let is_same = self.given.get().is_some_and(|given| constant_time_eq(given, key));
        if !is_same {
            self.expand(algorithm, key)?;
        }
        Ok(!is_same)
    }

    fn expand(&mut self, algorithm: Algorithm, key: &[u8]) -> Result<()> {
        let done = self.given.set(algorithm, key).and_then(|()| {
            let done = match &mut self.room {
                Some(room) => room.set(key),
                None => K::new(self.path, key).map(|new| self.room = Some(new)),
            };
            done.ok_or_else(|| failed("the key"))
        });
        if done.is_err() {
            self.given.forget();
            self.room.iter_mut().for_each(Room::wipe);
        }
        done
    }

    pub(super) const fn path(&self) -> K::Path {
        self.path
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&K> {
        self.room.as_ref().filter(|_| self.given.len > 0)
    }

    #[inline]
    pub(super) fn given(&self) -> Option<&[u8]> {
        self.given.get()
    }

    pub(super) fn forget(&mut self) {
        if self.given.len > 0 {
            self.given.forget();
            self.room.iter_mut().for_each(Room::wipe);
        }
    }

    /// Becomes the same as another.
    pub(super) fn copy(&mut self, of: &Self) {
        let Some(key) = of.get() else { return self.forget() };
        self.path = of.path;
        self.given.copy(&of.given);
        match &mut self.room {
            Some(room) => room.clone_from(key),
            empty => *empty = Some(key.clone()),
        }
    }
}

/// A spare, if it is of this kind.
pub(super) fn like<S: Solo>(spare: Option<Box<dyn Solo>>) -> Option<Box<S>> {
    let spare: Box<dyn Any> = spare?;
    spare.downcast().ok()
}

/// Called before there is a key, or a message.
#[cold]
pub(super) fn too_early<T>(algorithm: Algorithm) -> Result<T> {
    Err(wrong(algorithm, "work without a key, or without a message begun"))
}

/// CTR, CBC and ECB.
pub(super) struct Pieces<M: Mode + Room> {
    algorithm: Algorithm,
    block: usize,
    key: Expanded<M>,
    message: Option<Begun<M::Message>>,
}

/// A message begun. Its chaining value does not lie across two cache lines: the next piece reads it out of the store buffer.
#[derive(Clone)]
#[repr(C, align(16))]
struct Begun<T> {
    message: T,
    direction: Direction,
}

impl<M: Mode + Room> Pieces<M> {
    pub(super) fn new(algorithm: Algorithm, block: usize, path: M::Path) -> Self {
        Self { algorithm, block, key: Expanded::none(path), message: None }
    }

    #[inline(always)]
    fn check(&self, data: &Data<'_>) -> Result<()> {
        let given = data.input_len();
        if given & (self.block - 1) != 0 { self.not_whole(given) } else { aead::check_room(self.algorithm, data) }
    }

    #[cold]
    fn not_whole(&self, given: usize) -> Result<()> {
        Err(Error::InputLength { algorithm: self.algorithm, expected: "a multiple of 16 bytes".into(), given })
    }
}

impl<M: Mode + Room> Solo for Pieces<M> {
    fn set_key(&mut self, key: &[u8]) -> Result<()> {
        self.message = None;
        self.key.set(self.algorithm, key).map(drop)
    }

    fn key(&self) -> Option<&[u8]> {
        self.key.given()
    }

    fn forget_key(&mut self) {
        self.message = None;
        self.key.forget();
    }

    fn start(&mut self, direction: Direction, iv: &[u8]) -> Result<()> {
        aead::check_iv(self.algorithm, iv)?;
        let Some(mode) = self.key.get() else { return too_early(self.algorithm) };
        self.message = Some(Begun { message: mode.begin(iv), direction });
        Ok(())
    }

    fn aad(&mut self, _: &[u8]) -> Result<()> {
        Err(wrong(self.algorithm, "take associated data"))
    }

    #[inline]
    fn update(&mut self, data: Data<'_>) -> Result<()> {
        self.check(&data)?;
        // With a message there is a key.
        match (&self.key.room, &mut self.message) {
            (Some(mode), Some(Begun { message, direction })) => mode.apply(*direction, message, data).map_err(|_| failed("more text")),
            _ => too_early(self.algorithm),
        }
    }

    fn finish(&mut self, _: &mut [u8; 16]) -> Result<()> {
        Err(wrong(self.algorithm, "have a tag"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        self.message.as_ref().map_or([0; 16], |begun| M::chaining_value(&begun.message))
    }

    fn run(&mut self, operation: &mut Operation<'_>) -> Result<()> {
        aead::check_iv(self.algorithm, operation.iv)?;
        self.check(&operation.data)?;
        let Some(mode) = self.key.get() else { return too_early(self.algorithm) };
        mode.whole(operation.direction, operation.iv, operation.data.reborrow()).map_err(|_| failed("the text"))
    }

    fn duplicate(&self, spare: Option<Box<dyn Solo>>) -> Box<dyn Solo> {
        let mut copy = like(spare).unwrap_or_else(|| Box::new(Self::new(self.algorithm, self.block, self.key.path)));
        (copy.algorithm, copy.block) = (self.algorithm, self.block);
        copy.key.copy(&self.key);
        copy.message.clone_from(&self.message);
        copy
    }
}

/// XTS: data units, each a whole operation.
struct Units {
    algorithm: Algorithm,
    key: Expanded<xts::Key>,
    message: Option<Begun<xts::Tweak>>,
}

impl Units {
    fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, key: Expanded::none(()), message: None }
    }
}

impl Solo for Units {
    fn set_key(&mut self, key: &[u8]) -> Result<()> {
        self.message = None;
        self.key.set(self.algorithm, key)?;
        let (left, right) = key.split_at(key.len() / 2);
        if constant_time_eq(left, right) {
            self.key.forget();
            return Err(Error::BadKey { algorithm: self.algorithm, reason: "the two halves of an XTS key must differ" });
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.key.given()
    }

    fn forget_key(&mut self) {
        self.message = None;
        self.key.forget();
    }

    fn start(&mut self, direction: Direction, iv: &[u8]) -> Result<()> {
        let (Some(xts), Ok(tweak)) = (self.key.get(), iv.try_into()) else {
            aead::check_iv(self.algorithm, iv)?;
            return too_early(self.algorithm);
        };
        self.message = Some(Begun { message: xts.tweak(tweak), direction });
        Ok(())
    }

    fn aad(&mut self, _: &[u8]) -> Result<()> {
        Err(wrong(self.algorithm, "take associated data"))
    }

    #[inline]
    fn update(&mut self, data: Data<'_>) -> Result<()> {
        check_unit(self.algorithm, data.input_len())?;
        aead::check_room(self.algorithm, &data)?;
        let (Some(xts), Some(Begun { message: tweak, direction }), Some(text)) = (&self.key.room, &self.message, text(data)) else {
            return too_early(self.algorithm);
        };
        let done = if *direction == Direction::Encrypt { xts.encrypt_under(tweak, text) } else { xts.decrypt_under(tweak, text) };
        done.map_err(|_| failed("the data unit"))
    }

    fn finish(&mut self, _: &mut [u8; 16]) -> Result<()> {
        Err(wrong(self.algorithm, "have a tag"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn run(&mut self, operation: &mut Operation<'_>) -> Result<()> {
        let Some(xts) = self.key.get() else { return too_early(self.algorithm) };
        if operation.iv.len() != 16 {
            return aead::check_iv(self.algorithm, operation.iv);
        }
        check_unit(self.algorithm, operation.data.input_len())?;
        aead::check_room(self.algorithm, &operation.data)?;
        xts.apply(operation.direction, operation.iv, operation.data.reborrow()).map_err(|_| failed("the data unit"))
    }

    fn duplicate(&self, spare: Option<Box<dyn Solo>>) -> Box<dyn Solo> {
        let mut copy = like(spare).unwrap_or_else(|| Box::new(Self::new(self.algorithm)));
        copy.algorithm = self.algorithm;
        copy.key.copy(&self.key);
        copy.message.clone_from(&self.message);
        copy
    }
}
