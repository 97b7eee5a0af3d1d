//! A master key of somebody else, and the sessions under it that are in use.

use crate::cache::{Epoch, Sessions};
use crate::derive::Purpose;
use crate::keyed::{Keyed, TAG};
use crate::keymat::KeyMaterial;
use crate::refusal::{Refusal, Result};
use crate::replay::Accepted;
use crate::wire::{Header, Sealed};
use bywash_core::secret::constant_time_eq;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// What messages of one sender are opened with. Shared by threads; what is locked is which sessions are in use.
pub struct Opener {
    material: KeyMaterial,
    sessions: Recent,
    receiver: Option<Specific>,
    accepted: Arc<Accepted>,
}

/// The sessions of one master key that are in use. What did not prove to be authentic, and new where it must be, never gets here nor into a shared table, so that nobody can
/// make others' sessions go by inventing numbers, nor by recordings.
struct Recent {
    purpose: Purpose,
    known: RwLock<[Option<Known>; 2]>,
}

/// A session.
struct Known {
    id: u32,
    keyed: Keyed,
    /// Whether it was found since another one came.
    is_used: AtomicBool,
}

/// A session for a message, and where it is kept already.
struct Found {
    id: u32,
    keyed: Keyed,
    is_recent: bool,
    /// Since when it is in no shared table, if it is in none.
    new: Option<Epoch>,
}

/// What makes and checks the tag of one receiver.
pub struct Specific {
    material: KeyMaterial,
    sessions: Recent,
}

/// That a message has a receiver's tag which is right.
pub struct Checked<'a> {
    specific: &'a Specific,
    found: Found,
}

impl Recent {
    fn new(purpose: Purpose) -> Self {
        Self { purpose, known: RwLock::new([None, None]) }
    }

    /// The session of that number.
    #[inline]
    fn find(&self, id: u32, material: &KeyMaterial) -> Result<Found> {
        let recent = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = recent.iter().flatten().find(|known| known.id == id) {
            if !known.is_used.load(Relaxed) {
                known.is_used.store(true, Relaxed);
            }
            return Ok(Found { id, keyed: known.keyed.clone(), is_recent: true, new: None });
        }
        drop(recent);
        let Some(key) = material.master_key(self.purpose) else { return Err(Refusal::Receiver("it has no key for receivers")) };
        let (keyed, new) = Sessions::shared().find_or_make(material.kind, self.purpose, key, material.master_salt(), id)?;
        Ok(Found { id, keyed, is_recent: false, new })
    }

    /// Keeps what has proved to be in use.
    #[inline]
    fn keep(&self, material: &KeyMaterial, found: Found) {
        if !found.is_recent {
            self.keep_new(material, found);
        }
    }

    #[cold]
    fn keep_new(&self, material: &KeyMaterial, found: Found) {
        let Found { id, keyed, new, .. } = found;
        if let (Some(epoch), Some(key)) = (new, material.master_key(self.purpose)) {
            Sessions::shared().keep(material.kind, self.purpose, key, material.master_salt(), id, (&keyed, epoch));
        }
        let mut recent = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have made it too.
        if recent.iter().flatten().any(|known| known.id == id) {
            return;
        }
        // One that nobody has used goes before one that somebody has, and the older before the newer.
        let goes = recent.iter_mut().rposition(|known| known.as_mut().is_none_or(|known| !*known.is_used.get_mut())).unwrap_or(1);
        let gone = recent[goes].replace(Known { id, keyed, is_used: AtomicBool::new(false) });
        recent[..=goes].rotate_right(1);
        if let Some(older) = &mut recent[1] {
            *older.is_used.get_mut() = false;
        }
        drop(recent);
        drop(gone);
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
        Self { material, sessions: Recent::new(Purpose::Sender), receiver, accepted }
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
        let found = self.prove(sealed, output)?;
        self.sessions.keep(&self.material, found);
        Ok(())
    }

    /// Opens a message under a session that comes back with it.
    #[inline]
    fn prove(&self, sealed: &Sealed<'_>, output: &mut [u8]) -> Result<Found> {
        let Sealed { header, text, footer } = sealed;
        self.check(header)?;
        let found = self.sessions.find(header.session, &self.material)?;
        let (keyed, iv) = (&found.keyed, header.iv());
        if header.kind.encrypts() {
            keyed.open(&iv, &[], text, output, &footer.tag)?;
        } else {
            keyed.verify(&iv, text, &footer.tag)?;
            output.get_mut(..text.len()).ok_or(Refusal::Unprotectable("too little room for the text"))?.copy_from_slice(text);
        }
        Ok(found)
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
        let found = self.prove(sealed, output)?;
        if accepted.note(&sealed.header, output) {
            self.sessions.keep(&self.material, found);
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
        Some(Self { material: material.clone(), sessions: Recent::new(Purpose::Receiver) })
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
        let found = self.sessions.find(header.session, &self.material)?;
        let tag = found.keyed.mac(&header.iv(), common)?;
        self.sessions.keep(&self.material, found);
        Ok(tag)
    }

    /// Whether a message has this receiver's tag and it is right. That says nothing of the text yet, nor that the message is new: whoever has found that out [keeps](Checked::keep) what comes back.
    ///
    /// # Errors
    /// [`Refusal::Receiver`], [`Refusal::Engine`].
    pub fn check(&self, sealed: &Sealed<'_>) -> Result<Checked<'_>> {
        let mine = sealed.footer.receivers().find(|(id, _)| *id == self.id());
        let Some((_, given)) = mine else { return Err(Refusal::Receiver("it has none")) };
        let (header, footer) = (&sealed.header, &sealed.footer);
        let found = self.sessions.find(header.session, &self.material)?;
        let right = found.keyed.mac(&header.iv(), &footer.tag)?;
        if !constant_time_eq(&right, given) {
            return Err(Refusal::Receiver("it is wrong"));
        }
        Ok(Checked { specific: self, found })
    }
}

impl Checked<'_> {
    /// Keeps the session of a tag whose message was accepted.
    pub fn keep(self) {
        self.specific.sessions.keep(&self.specific.material, self.found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Form, RECEIVER, split_payload, split_submessage};
    use crate::{Kind, Sender, add_receiver, payload_len, protect, protected_len, seal_payload};

    fn known(sessions: &Recent) -> Vec<u32> {
        sessions.known.read().unwrap().iter().flatten().map(|known| known.id).collect()
    }

    fn sessions(opener: &Opener) -> Vec<u32> {
        known(&opener.sessions)
    }

    /// A message of each of so many sessions, and their numbers.
    fn messages(sender: &Sender, count: usize) -> Vec<(Vec<u8>, u32)> {
        let message = || {
            let mut message = vec![0; payload_len(sender, 4)];
            seal_payload(sender, b"text", &mut message).unwrap();
            let session = split_payload(&message).unwrap().header.session;
            (message, session)
        };
        (0..count).map(|_| message()).collect()
    }

    #[test]
    fn recordings_drive_no_session_out() {
        let material = KeyMaterial::generate(Kind::Aes128Gcm, 1).unwrap();
        // A session for each message.
        let (sender, opener) = (Sender::new(material.clone(), 1).unwrap(), Opener::new(material));
        let messages = messages(&sender, 9);
        let open = |message: &[u8]| opener.open_once(&split_payload(message).unwrap(), &mut [0; 4]);
        messages.iter().for_each(|(message, _)| open(message).unwrap());
        let [.., (_, older), (_, newer)] = messages[..] else { unreachable!("nine") };
        assert_eq!(sessions(&opener), [newer, older]);
        // The latest first: in their own order they would leave behind what was there.
        assert!(messages.iter().rev().all(|(message, _)| open(message) == Err(Refusal::Replayed)));
        assert_eq!(sessions(&opener), [newer, older]);
    }

    #[test]
    fn recordings_with_receivers_tags_drive_no_session_out() {
        let material = KeyMaterial::generate(Kind::Aes128Gcm, 1).unwrap().with_receiver(2).unwrap();
        let (sender, opener) = (Sender::new(material.clone(), 1).unwrap(), Opener::new(material));
        let specific = opener.specific().unwrap();
        let submessage = [6, 1, 4, 0, 1, 2, 3, 4];
        let message = || {
            let mut message = vec![0; protected_len(&sender, Form::Submessage, submessage.len())];
            protect(&sender, Form::Submessage, &submessage, &mut message).unwrap();
            message.extend([0; RECEIVER]);
            // Whoever makes tags is another than who checks them.
            add_receiver(Form::Submessage, &mut message, &Specific::new(opener.material()).unwrap()).unwrap();
            message
        };
        let messages: Vec<_> = (0..9).map(|_| message()).collect();
        let open = |message: &[u8]| {
            let sealed = split_submessage(message).unwrap();
            let tag = specific.check(&sealed)?;
            opener.open_once(&sealed, &mut [0; 8])?;
            tag.keep();
            Ok(())
        };
        messages.iter().for_each(|message| open(message).unwrap());
        let [newer, older] = [8, 7].map(|at: usize| split_submessage(&messages[at]).unwrap().header.session);
        assert_eq!((known(&specific.sessions), sessions(&opener)), (vec![newer, older], vec![newer, older]));
        assert!(messages.iter().rev().all(|message| open(message) == Err(Refusal::Replayed)));
        assert_eq!((known(&specific.sessions), sessions(&opener)), (vec![newer, older], vec![newer, older]));
    }

    #[test]
    fn a_session_in_use_outlasts_those_that_come_once() {
        let material = KeyMaterial::generate(Kind::Aes128Gcm, 1).unwrap();
        let (sender, opener) = (Sender::new(material.clone(), 1).unwrap(), Opener::new(material));
        let messages = messages(&sender, 6);
        // Payloads may come again.
        let open = |(message, _): &(Vec<u8>, u32)| opener.open(&split_payload(message).unwrap(), &mut [0; 4]).unwrap();
        for other in &messages[1..] {
            open(&messages[0]);
            open(other);
            open(&messages[0]);
            assert_eq!(sessions(&opener), [other.1, messages[0].1]);
        }
    }
}
