//! What handles stand for.

use crate::abi::{self, EndpointAttributes, Handle, ParticipantAttributes};
use crate::fault::{Fault, Outcome};
use bywash_dds::wire::Header;
use bywash_dds::{Accepted, KeyMaterial, Kind, Opener, Sender, Specific};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Weak};

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

/// Any object. Objects name each other by handle. Each stays where it is from first to last, so that its keys are wiped there.
pub(crate) enum Object {
    Local(Box<Local>),
    Remote(Box<Remote>),
    Endpoint(Box<Endpoint>),
    Matched(Box<Matched>),
}

/// A participant of this process.
pub(crate) struct Local {
    pub(crate) protection: Protection,
    /// What its messages are protected with.
    pub(crate) sender: Option<Arc<Sender>>,
    /// Its reader of the keys that others send; 0 until that is registered.
    pub(crate) key_reader: Handle,
}

/// A participant elsewhere.
pub(crate) struct Remote {
    pub(crate) identity: abi::Foreign,
    /// What it shares with each of ours, by their handles.
    pairs: BTreeMap<Handle, Box<Pair>>,
    /// Which endpoints a submessage is between; of several matches with one key the last.
    relations: BTreeMap<RelationKey, Vec<Relation>>,
    /// Who checks the tags that are for us, by the ids of their keys.
    specifics: BTreeMap<u32, Vec<Expected>>,
    openers: Openers,
}

/// What a submessage is known by: the id of its key. Keys of ours alone (id 0, between two participants) are known by the reader of ours too.
pub(crate) type RelationKey = (u32, Handle);

/// All openers of a participant's keys that live, by whom they open for and the id of their key.
#[derive(Default)]
struct Openers {
    by_key: BTreeMap<(Handle, u32), Vec<Weak<Opener>>>,
    /// The number of keys at which those that are gone are looked for.
    full: usize,
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
    pub(crate) specific: Option<Arc<Specific>>,
    /// What is asked for in messages between the two.
    pub(crate) protection: Protection,
    /// What the other sends under the key by which they tell each other of all other keys, and sessions of ours under it.
    exchange: Arc<Opener>,
    writer: Arc<Sender>,
    reader: Arc<Sender>,
    /// What the other's messages are opened with, once it has told.
    pub(crate) opener: Option<Arc<Opener>>,
}

/// A writer or reader of this process.
pub(crate) struct Endpoint {
    pub(crate) is_writer: bool,
    pub(crate) participant: Handle,
    pub(crate) asked: Asked,
    pub(crate) sender: Option<Arc<Sender>>,
    pub(crate) payload_sender: Option<Arc<Sender>>,
}

/// What the governance asks for, for what an endpoint sends and gets.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) submessages: Protection,
    pub(crate) payloads: Protection,
    /// Whether it carries keys: it has none of its own, but those of each pair.
    pub(crate) carries_keys: bool,
}

/// A writer or reader elsewhere that matches one of ours.
pub(crate) struct Matched {
    pub(crate) is_writer: bool,
    /// Ours, what is asked for there, and the participant that it is of.
    pub(crate) local: Handle,
    pub(crate) asked: Asked,
    pub(crate) local_participant: Handle,
    pub(crate) participant: Handle,
    /// What it is told of our keys.
    pub(crate) told: Vec<KeyMaterial>,
    /// What makes its tags.
    pub(crate) specific: Option<Arc<Specific>>,
    /// What it sends is opened with, once it has told.
    pub(crate) openers: Vec<Arc<Opener>>,
    /// What a host has decoded for this match that was told to decode it for [another](Remote::is_between), as one does that decodes a submessage for each of its readers.
    pub(crate) apart: Arc<Accepted>,
}

impl Openers {
    /// What opens messages under this key. What came once has come once for all who open for the same, as long as one of them lives: not for each match anew, nor again when a key is told again.
    fn add(&mut self, whose: Handle, material: KeyMaterial) -> Arc<Opener> {
        if self.by_key.len() >= self.full {
            self.by_key.retain(|_, openers| openers.iter().any(|opener| opener.strong_count() > 0));
            self.full = 2 * self.by_key.len() + 16;
        }
        let of_key = self.by_key.entry((whose, material.sender_id)).or_default();
        of_key.retain(|opener| opener.strong_count() > 0);
        let alike = of_key.iter().filter_map(Weak::upgrade).find(|opener| opener.material().is_of_the_sender_of(&material));
        let accepted = alike.map(|opener| opener.accepted().clone()).unwrap_or_default();
        let opener = Arc::new(Opener::sharing(material, accepted));
        of_key.push(Arc::downgrade(&opener));
        opener
    }
}

impl Remote {
    pub(crate) fn new(identity: abi::Foreign) -> Self {
        let (pairs, relations, specifics, openers) = Default::default();
        Self { identity, pairs, relations, specifics, openers }
    }

    /// As [`Openers::add`].
    pub(crate) fn opener(&mut self, whose: Handle, material: KeyMaterial) -> Arc<Opener> {
        self.openers.add(whose, material)
    }

    pub(crate) fn pair(&self, local: Handle) -> Outcome<&Pair> {
        self.pairs.get(&local).map(|pair| &**pair).ok_or_else(Fault::handle)
    }

    pub(crate) fn pair_mut(&mut self, local: Handle) -> Outcome<&mut Pair> {
        self.pairs.get_mut(&local).map(|pair| &mut **pair).ok_or_else(Fault::handle)
    }

    /// What it shares with one of ours, unless that is there already.
    pub(crate) fn add_pair(&mut self, local: Handle, pair: Box<Pair>) {
        self.pairs.entry(local).or_insert(pair);
    }

    /// Takes out what it shares with one of ours: dropped when nobody waits for it.
    pub(crate) fn remove_pair(&mut self, local: Handle) -> Option<Box<Pair>> {
        let pair = self.pairs.remove(&local)?;
        self.forget_tags(local, pair.tags());
        Some(pair)
    }

    pub(crate) fn relate(&mut self, key: RelationKey, relation: Relation) {
        self.relations.entry(key).or_default().push(relation);
    }

    #[inline]
    pub(crate) fn relation(&self, key: RelationKey) -> Option<Relation> {
        self.relations.get(&key)?.last().copied()
    }

    /// Whether a host that asks is told that a submessage under this key is between these two.
    pub(crate) fn is_between(&self, key: u32, remote: Handle, local: Handle) -> bool {
        self.relation((key, 0)).is_some_and(|relation| (relation.remote, relation.local) == (remote, local))
    }

    /// Forgets what leads to a matched endpoint: its submessages are known by the one, and its tags by the other.
    pub(crate) fn forget(&mut self, remote: Handle, key: RelationKey, tags: Option<u32>) {
        if let Entry::Occupied(mut relations) = self.relations.entry(key) {
            relations.get_mut().retain(|relation| relation.remote != remote);
            if relations.get().is_empty() {
                relations.remove();
            }
        }
        self.forget_tags(remote, tags);
    }

    /// An opener whose tags for us count, until its owner is [forgotten](Self::forget_tags).
    pub(crate) fn expect_tags(&mut self, owner: Handle, opener: &Arc<Opener>) {
        if let Some(specific) = opener.specific() {
            self.specifics.entry(specific.id()).or_default().push((owner, opener.clone()));
        }
    }

    /// Who checks tags of that key on what this sender sends. A tag says nothing of the text but through the common tag, which whoever has a sender's key can make any: one that is of another sender's
    /// key may have been taken from that one's message.
    pub(crate) fn tags_of(&self, key: u32, sender: &KeyMaterial) -> Option<Arc<Opener>> {
        self.specifics
            .get(&key)?
            .iter()
            .rev()
            .map(|(_, opener)| opener)
            .find(|opener| opener.material().is_of_the_sender_of(sender))
            .cloned()
    }

    /// Tags under the key of that id count no more for this owner.
    pub(crate) fn forget_tags(&mut self, owner: Handle, key: Option<u32>) {
        let Some(key) = key else { return };
        if let Entry::Occupied(mut expected) = self.specifics.entry(key) {
            expected.get_mut().retain(|(other, _)| *other != owner);
            if expected.get().is_empty() {
                expected.remove();
            }
        }
    }
}

fn tags(opener: Option<&Arc<Opener>>) -> Option<u32> {
    opener?.specific().map(Specific::id)
}

impl Pair {
    pub(crate) fn new(
        protection: Protection,
        told: Option<KeyMaterial>,
        exchange: KeyMaterial,
        writer: Sender,
        reader: Sender,
    ) -> Box<Self> {
        let specific = told.as_ref().and_then(Specific::new).map(Arc::new);
        let exchange = Arc::new(Opener::new(exchange));
        Box::new(Self { told, specific, protection, exchange, writer: Arc::new(writer), reader: Arc::new(reader), opener: None })
    }

    /// The id of the key of its tags for us.
    pub(crate) fn tags(&self) -> Option<u32> {
        tags(self.opener.as_ref())
    }

    /// Whether what came under the key of both is what we have sent.
    pub(crate) fn is_ours(&self, header: &Header) -> bool {
        self.writer.has_made(header) || self.reader.has_made(header)
    }

    /// What an endpoint of ours that carries keys sends to the other's.
    pub(crate) fn sender(&self, is_writer: bool) -> &Arc<Sender> {
        if is_writer { &self.writer } else { &self.reader }
    }

    /// What opens messages of the other's endpoint that carries keys, if they are under the key of that id.
    pub(crate) fn exchange(&self, key: u32) -> Option<&Arc<Opener>> {
        Some(&self.exchange).filter(|opener| opener.material().sender_id == key)
    }
}

impl Matched {
    pub(crate) fn new(is_writer: bool, (local, endpoint): (Handle, &Endpoint), participant: Handle, told: Vec<KeyMaterial>) -> Box<Self> {
        let Endpoint { asked, participant: local_participant, .. } = *endpoint;
        // Tags go with submessages, whose key is told first.
        let specific = told.first().and_then(Specific::new).map(Arc::new);
        let (openers, apart) = Default::default();
        Box::new(Self { is_writer, local, asked, local_participant, participant, told, specific, openers, apart })
    }

    /// What opens messages under the key of that id.
    #[inline]
    pub(crate) fn opener(&self, key: u32) -> Option<&Arc<Opener>> {
        self.openers.iter().find(|opener| opener.material().sender_id == key)
    }

    /// The id of the key of its tags for us.
    pub(crate) fn tags(&self) -> Option<u32> {
        tags(self.openers.first())
    }

    /// What its submessages are known by.
    pub(crate) fn relation_key(&self) -> RelationKey {
        let key = self.openers.first().map_or(0, |opener| opener.material().sender_id);
        if self.asked.carries_keys { (0, self.local) } else { (key, 0) }
    }
}
