//! A master key of somebody else, and the sessions under it that are in use.

use crate::cache::Sessions;
use crate::derive::Purpose;
use crate::keyed::{Keyed, TAG};
use crate::keymat::KeyMaterial;
use crate::refusal::{Refusal, Result};
use crate::replay::Accepted;
use crate::wire::{Header, Sealed};
use bywash_core::secret::constant_time_eq;
use std::sync::{Arc, PoisonError, RwLock};

/// What messages of one sender are opened with. Shared by threads; what is locked is which sessions are in use.
pub struct Opener {
    material: KeyMaterial,
    sessions: Recent,
    receiver: Option<Specific>,
    accepted: Arc<Accepted>,
}

/// The sessions of one master key that were new last. What did not prove to be authentic never gets here nor into a shared table, so that nobody can
/// make others' sessions go by inventing numbers.
struct Recent(RwLock<[Option<Known>; 2]>);

/// A session by its number.
type Known = (u32, Keyed);

/// What makes and checks the tag of one receiver.
pub struct Specific {
    material: KeyMaterial,
    sessions: Recent,
}

impl Recent {
    fn new() -> Self {
        Self(RwLock::new([None, None]))
    }

    fn keep(&self, id: u32, keyed: &Keyed) {
        let mut recent = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have made it too.
        if recent.iter().flatten().all(|(other, _)| *other != id) {
            recent.rotate_right(1);
            recent[0] = Some((id, keyed.clone()));
        }
    }

    /// Runs what proves a message authentic under the session of that number.
    #[inline]
    fn with<T>(&self, id: u32, material: &KeyMaterial, purpose: Purpose, prove: impl FnOnce(&Keyed) -> Result<T>) -> Result<T> {
        let recent = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keyed)) = recent.iter().flatten().find(|(other, _)| *other == id) {
            return prove(keyed);
        }
        drop(recent);
        let Some(key) = material.master_key(purpose) else { return Err(Refusal::Receiver("it has no key for receivers")) };
        let (keyed, is_new) = Sessions::shared().find_or_make(material.kind, purpose, key, material.master_salt(), id)?;
        let proof = prove(&keyed)?;
        if is_new {
            Sessions::shared().keep(material.kind, purpose, key, material.master_salt(), id, &keyed);
        }
        self.keep(id, &keyed);
        Ok(proof)
    }
}

impl Opener {
    /// For messages under this master key.
    pub fn new(material: KeyMaterial) -> Self {
        Self::sharing(material, Arc::default())
    }

    /// For messages under this master key, of which somebody else opens some: what must come once has come once for all who share this.
    pub fn sharing(material: KeyMaterial, accepted: Arc<Accepted>) -> Self {
        let receiver = Specific::new(&material);
        Self { material, sessions: Recent::new(), receiver, accepted }
    }

    /// The messages that were accepted under the key.
    pub fn accepted(&self) -> &Arc<Accepted> {
        &self.accepted
    }

    /// The master key.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// What checks the tag that is for us alone, if the sender makes one.
    pub fn specific(&self) -> Option<&Specific> {
        self.receiver.as_ref()
    }

    /// Checks a message's common tag, and writes its text, decrypted, into `output`, which is as long as the text.
    ///
    /// # Errors
    /// [`Refusal::Key`] and [`Refusal::Kind`] for a message that was made with another key or otherwise, [`Refusal::Authentication`],
    /// [`Refusal::Engine`]. `output` then has nothing in it that was not authentic.
    pub fn open(&self, sealed: &Sealed<'_>, output: &mut [u8]) -> Result<()> {
        let Sealed { header, text, footer } = sealed;
        self.check(header)?;
        let iv = header.iv();
        self.sessions.with(header.session, &self.material, Purpose::Sender, |keyed| {
            if header.kind.encrypts() {
                return keyed.open(&iv, &[], text, output, &footer.tag);
            }
            keyed.verify(&iv, text, &footer.tag)?;
            output.get_mut(..text.len()).ok_or(Refusal::Unprotectable("too little room for the text"))?.copy_from_slice(text);
            Ok(())
        })
    }

    /// As [`open`](Self::open), for what must come once only: a copy of one of the latest messages is refused, and what is too old to tell. What does not prove to be authentic
    /// is not remembered.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), [`Refusal::Replayed`].
    pub fn open_once(&self, sealed: &Sealed<'_>, output: &mut [u8]) -> Result<()> {
        self.open_once_among(&self.accepted, sealed, output)
    }

    /// As [`open_once`](Self::open_once), among other messages than those that were accepted under the key.
    ///
    /// # Errors
    /// Those of [`open_once`](Self::open_once).
    pub fn open_once_among(&self, accepted: &Accepted, sealed: &Sealed<'_>, output: &mut [u8]) -> Result<()> {
        self.open(sealed, output)?;
        if accepted.note(&sealed.header, output) {
            return Ok(());
        }
        output.fill(0);
        Err(Refusal::Replayed)
    }

    fn check(&self, header: &Header) -> Result<()> {
        if header.key_id != self.material.sender_id {
            return Err(Refusal::Key(header.key_id));
        }
        if header.kind == self.material.kind { Ok(()) } else { Err(Refusal::Kind(header.kind as u32)) }
    }
}

impl Specific {
    /// For the receiver's key of this material, if it has one.
    pub fn new(material: &KeyMaterial) -> Option<Self> {
        material.receiver.as_ref()?;
        Some(Self { material: material.clone(), sessions: Recent::new() })
    }

    /// The id of the receiver's key.
    pub fn id(&self) -> u32 {
        self.material.receiver.as_ref().map_or(0, |(id, _)| *id)
    }

    /// The receiver's tag of a message with this header and common tag.
    ///
    /// # Errors
    /// [`Refusal::Engine`].
    pub fn tag(&self, header: &Header, common: &[u8; TAG]) -> Result<[u8; TAG]> {
        self.sessions.with(header.session, &self.material, Purpose::Receiver, |keyed| keyed.mac(&header.iv(), common))
    }

    /// Whether a message has this receiver's tag and it is right.
    ///
    /// # Errors
    /// [`Refusal::Receiver`], [`Refusal::Engine`].
    pub fn check(&self, sealed: &Sealed<'_>) -> Result<()> {
        let mine = sealed.footer.receivers().find(|(id, _)| *id == self.id());
        let Some((_, given)) = mine else { return Err(Refusal::Receiver("it has none")) };
        self.sessions.with(sealed.header.session, &self.material, Purpose::Receiver, |keyed| {
            let right = keyed.mac(&sealed.header.iv(), &sealed.footer.tag)?;
            if constant_time_eq(&right, given) { Ok(()) } else { Err(Refusal::Receiver("it is wrong")) }
        })
    }
}
