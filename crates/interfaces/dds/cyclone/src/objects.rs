//! What handles stand for.

use crate::abi::{self, EndpointAttributes, Handle, ParticipantAttributes};
use bywash_dds::wire::Header;
use bywash_dds::{Accepted, KeyMaterial, Kind, Opener, Sender, Specific};
use std::collections::HashMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// What a governance asks for: for a message, a submessage or a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Protection {
    /// None for no protection, else whether it encrypts.
    pub(crate) encrypts: Option<bool>,
    /// Whether receivers have tags of their own.
    pub(crate) has_origin: bool,
}

impl Protection {
    pub(crate) fn of_messages(attributes: &ParticipantAttributes) -> Self {
        let mask = attributes.plugin_participant_attributes;
        Self::of(attributes.is_rtps_protected, mask & abi::PARTICIPANT_RTPS_ENCRYPTED, mask & abi::PARTICIPANT_RTPS_ORIGIN)
    }

    pub(crate) fn of_submessages(attributes: &EndpointAttributes) -> Self {
        let mask = attributes.plugin_endpoint_attributes;
        Self::of(attributes.is_submessage_protected, mask & abi::ENDPOINT_SUBMESSAGE_ENCRYPTED, mask & abi::ENDPOINT_SUBMESSAGE_ORIGIN)
    }

    pub(crate) fn of_payloads(attributes: &EndpointAttributes) -> Self {
        Self::of(attributes.is_payload_protected, attributes.plugin_endpoint_attributes & abi::ENDPOINT_PAYLOAD_ENCRYPTED, 0)
    }

    fn of(is_protected: abi::Boolean, encrypts: u32, has_origin: u32) -> Self {
        let is_protected = is_protected != abi::FALSE;
        Self { encrypts: is_protected.then_some(encrypts != 0), has_origin: is_protected && has_origin != 0 }
    }

    /// This, or the other where this asks for nothing.
    pub(crate) fn or(self, other: Self) -> Self {
        if self.encrypts.is_some() { self } else { other }
    }

    /// The kind of key for it.
    pub(crate) fn kind(self, is_256: bool) -> Option<Kind> {
        Some(Kind::of(self.encrypts?, is_256))
    }
}

/// Any object.
#[derive(Clone)]
pub(crate) enum Object {
    Local(Arc<Local>),
    Remote(Arc<Remote>),
    Endpoint(Arc<Endpoint>),
    Matched(Arc<Matched>),
}

/// A participant of this process.
pub(crate) struct Local {
    pub(crate) protection: Protection,
    /// What its messages are protected with.
    pub(crate) sender: Option<Arc<Sender>>,
    /// Its reader of the keys that others send, once that is registered.
    pub(crate) key_reader: AtomicI64,
}

/// A participant elsewhere.
pub(crate) struct Remote {
    pub(crate) identity: abi::Foreign,
    pub(crate) protection: Protection,
    /// What it shares with each of ours, by their handles.
    pairs: Mutex<HashMap<Handle, Arc<Pair>>>,
    /// Which endpoints a submessage is between, by the id of its key; of several matches with one key the last. Keys of ours alone
    /// (id 0, between two participants) are known by the reader of ours too.
    relations: Mutex<HashMap<(u32, Handle), Vec<Relation>>>,
    /// Who checks the tags that are for us, by the ids of their keys.
    specifics: Mutex<HashMap<u32, Vec<Expected>>>,
    /// All openers of its keys that live, by whom they open for.
    openers: Mutex<Vec<(Handle, Weak<Opener>)>>,
}

/// Whom an opener is for: what came once for one of the endpoints of ours that match one elsewhere has come for all, for the host decodes a submessage once. A message it decodes for each of its
/// participants that know the sender: there it is the participant.
pub(crate) const ALL_ENDPOINTS: Handle = 0;

/// Who checks a tag, until that one is gone.
type Expected = (Handle, Arc<Opener>);

/// The two ends of a submessage's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) remote: Handle,
    pub(crate) local: Handle,
    pub(crate) is_writer: bool,
}

/// What a participant of ours and one elsewhere share.
pub(crate) struct Pair {
    /// Ours, with the other's key for tags if it has one: what it is told.
    pub(crate) told: Option<KeyMaterial>,
    /// What makes those tags.
    pub(crate) specific: Option<Specific>,
    /// What the other sends under the key by which they tell each other of all other keys, and sessions of ours under it.
    pub(crate) exchange: Arc<Opener>,
    pub(crate) writer: Arc<Sender>,
    pub(crate) reader: Arc<Sender>,
    /// What the other's messages are opened with, once it has told.
    opener: RwLock<Option<Arc<Opener>>>,
}

/// A writer or reader of this process.
pub(crate) struct Endpoint {
    pub(crate) is_writer: bool,
    pub(crate) participant: Handle,
    pub(crate) submessages: Protection,
    pub(crate) payloads: Protection,
    /// Whether it carries keys: it has none of its own, but those of each pair.
    pub(crate) carries_keys: bool,
    pub(crate) sender: Option<Arc<Sender>>,
    pub(crate) payload_sender: Option<Arc<Sender>>,
}

/// A writer or reader elsewhere that matches one of ours.
pub(crate) struct Matched {
    pub(crate) is_writer: bool,
    pub(crate) local: Handle,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) participant: Arc<Remote>,
    /// What it is told of our keys.
    pub(crate) told: Vec<KeyMaterial>,
    /// What makes its tags.
    pub(crate) specific: Option<Specific>,
    /// Whose keys it carries, if it does.
    pub(crate) pair: Option<Arc<Pair>>,
    /// What it sends is opened with, once it has told.
    openers: RwLock<Vec<Arc<Opener>>>,
    /// What a host has decoded for this match that was told to decode it for [another](Remote::is_between), as one does that decodes a submessage for each of its readers.
    pub(crate) apart: Accepted,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    pub(crate) fn new(identity: abi::Foreign, protection: Protection) -> Self {
        let (pairs, relations, specifics, openers) = Default::default();
        Self { identity, protection, pairs, relations, specifics, openers }
    }

    /// What opens messages under this key. What came once has come once for all who open for the same, as long as one of them lives: not for each match anew, nor again when a key is told again.
    pub(crate) fn opener(&self, whose: Handle, material: KeyMaterial) -> Arc<Opener> {
        let mut openers = lock(&self.openers);
        openers.retain(|(_, opener)| opener.strong_count() > 0);
        let like = |(other, opener): &(Handle, Weak<Opener>)| {
            let opener = opener.upgrade().filter(|opener| *other == whose && opener.material().is_of_the_sender_of(&material))?;
            Some(opener.accepted().clone())
        };
        let accepted = openers.iter().find_map(like).unwrap_or_default();
        let opener = Arc::new(Opener::sharing(material, accepted));
        openers.push((whose, Arc::downgrade(&opener)));
        opener
    }

    pub(crate) fn pair(&self, local: Handle) -> Option<Arc<Pair>> {
        lock(&self.pairs).get(&local).cloned()
    }

    pub(crate) fn add_pair(&self, local: Handle, pair: Pair) {
        lock(&self.pairs).insert(local, Arc::new(pair));
    }

    pub(crate) fn remove_pair(&self, local: Handle) {
        lock(&self.pairs).remove(&local);
        self.forget_tags(local);
    }

    pub(crate) fn relate(&self, key: u32, reader: Handle, relation: Relation) {
        lock(&self.relations).entry((key, reader)).or_default().push(relation);
    }

    pub(crate) fn relation(&self, key: u32, reader: Handle) -> Option<Relation> {
        lock(&self.relations).get(&(key, reader))?.last().copied()
    }

    /// Whether a host that asks is told that a submessage under this key is between these two.
    pub(crate) fn is_between(&self, key: u32, remote: Handle, local: Handle) -> bool {
        self.relation(key, 0).is_some_and(|relation| (relation.remote, relation.local) == (remote, local))
    }

    /// Forgets what leads to a matched endpoint.
    pub(crate) fn forget(&self, remote: Handle) {
        lock(&self.relations).retain(|_, relations| {
            relations.retain(|relation| relation.remote != remote);
            !relations.is_empty()
        });
        self.forget_tags(remote);
    }

    /// An opener whose tags for us count, until its owner is [forgotten](Self::forget).
    pub(crate) fn expect_tags(&self, owner: Handle, opener: &Arc<Opener>) {
        if let Some(specific) = opener.specific() {
            lock(&self.specifics).entry(specific.id()).or_default().push((owner, opener.clone()));
        }
    }

    /// Who checks tags of that key on what this sender sends. A tag says nothing of the text but through the common tag, which whoever has a sender's key can make any: one that is of another sender's
    /// key may have been taken from that one's message.
    pub(crate) fn tags_of(&self, key: u32, sender: &KeyMaterial) -> Option<Arc<Opener>> {
        let specifics = lock(&self.specifics);
        specifics.get(&key)?.iter().rev().map(|(_, opener)| opener).find(|opener| opener.material().is_of_the_sender_of(sender)).cloned()
    }

    pub(crate) fn forget_tags(&self, owner: Handle) {
        lock(&self.specifics).retain(|_, openers| {
            openers.retain(|(other, _)| *other != owner);
            !openers.is_empty()
        });
    }
}

impl Pair {
    pub(crate) fn new(told: Option<KeyMaterial>, exchange: KeyMaterial, writer: Sender, reader: Sender) -> Self {
        let specific = told.as_ref().and_then(Specific::new);
        let exchange = Arc::new(Opener::new(exchange));
        Self { told, specific, exchange, writer: Arc::new(writer), reader: Arc::new(reader), opener: RwLock::new(None) }
    }

    /// Whether what came under the key of both is what we have sent.
    pub(crate) fn is_ours(&self, header: &Header) -> bool {
        self.writer.has_made(header) || self.reader.has_made(header)
    }

    pub(crate) fn opener(&self) -> Option<Arc<Opener>> {
        read(&self.opener).clone()
    }

    pub(crate) fn set_opener(&self, opener: Option<Arc<Opener>>) {
        *write(&self.opener) = opener;
    }
}

impl Matched {
    pub(crate) fn new(
        is_writer: bool,
        (local, endpoint): (Handle, Arc<Endpoint>),
        participant: Arc<Remote>,
        told: Vec<KeyMaterial>,
        pair: Option<Arc<Pair>>,
    ) -> Self {
        // Tags go with submessages, whose key is told first.
        let specific = told.first().and_then(Specific::new);
        let openers = RwLock::new(pair.iter().map(|pair| pair.exchange.clone()).collect());
        Self { is_writer, local, endpoint, participant, told, specific, pair, openers, apart: Accepted::default() }
    }

    /// What is sent to it if it carries keys.
    pub(crate) fn exchange(&self) -> Option<Arc<Sender>> {
        self.pair.as_ref().map(|pair| if self.is_writer { pair.reader.clone() } else { pair.writer.clone() })
    }

    /// What opens messages under the key of that id.
    pub(crate) fn opener(&self, key: u32) -> Option<Arc<Opener>> {
        read(&self.openers).iter().find(|opener| opener.material().sender_id == key).cloned()
    }

    pub(crate) fn set_openers(&self, openers: Vec<Arc<Opener>>) {
        *write(&self.openers) = openers;
    }
}
