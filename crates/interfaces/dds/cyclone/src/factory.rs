//! CryptoKeyFactory (DDS Security 1.1 s8.5.1.7): participants, writers and readers come and go.

use crate::abi::{Boolean, EndpointAttributes, Exception, FALSE, Factory, Foreign, Handle, ParticipantAttributes, Properties, TRUE, code};
use crate::exchange::TOKENS_MAX;
use crate::fault::{Fault, Outcome};
use crate::objects::{Asked, Endpoint, Local, Matched, Object, Pair, Protection, Relation, Remote};
use crate::plugin::{Plugin, plugin};
use crate::read::Property;
use crate::registry::Objects;
use bywash_dds::{KeyMaterial, Kind, Sender, Sessions, exchange_keys};
use std::sync::{Arc, RwLockWriteGuard};

/// The names of the two endpoints by which keys are exchanged.
const KEY_WRITER: &str = "BuiltinParticipantVolatileMessageSecureWriter";
const KEY_READER: &str = "BuiltinParticipantVolatileMessageSecureReader";

pub(crate) const TABLE: Factory = Factory {
    register_local_participant,
    register_matched_remote_participant,
    register_local_datawriter,
    register_matched_remote_datareader,
    register_local_datareader,
    register_matched_remote_datawriter,
    unregister_participant,
    unregister_datawriter,
    unregister_datareader,
};

impl Plugin {
    /// What messages of that protection are sent with, if they are protected.
    fn sender(&self, protection: Protection, properties: &Property<'_>) -> Outcome<Option<Arc<Sender>>> {
        let is_256 = properties.find("dds.sec.crypto.keysize").is_none_or(|size| size != "128");
        let Some(kind) = protection.kind(is_256) else { return Ok(None) };
        let material = KeyMaterial::generate(kind, self.registry.key_id())?;
        Ok(Some(Arc::new(Sender::new(material, self.blocks_max)?)))
    }

    /// What a receiver is told of our key: with a key for its own tags, if the governance asks for them.
    fn told(&self, sender: &Option<Arc<Sender>>, protection: Protection) -> Outcome<Option<KeyMaterial>> {
        let Some(sender) = sender else { return Ok(None) };
        let told = if protection.has_origin { sender.material().with_receiver(self.registry.key_id())? } else { sender.material().clone() };
        Ok(Some(told))
    }

    fn meet(&self, local: Handle, identity: Foreign, secret: Foreign) -> Outcome<Handle> {
        let (protection, told) = {
            let objects = self.registry.read();
            let ours = objects.local(local)?;
            if let Some(handle) = objects.remote_of(identity).filter(|handle| objects.shared(*handle, local).is_ok()) {
                return Ok(handle);
            }
            (ours.protection, self.told(&ours.sender, ours.protection)?)
        };
        let secret = self.host.shared_secret(secret)?;
        let (salt, sender_key) = exchange_keys(&secret.secret, &secret.challenge1, &secret.challenge2);
        let exchange = KeyMaterial { kind: Kind::Aes256Gcm, salt, sender_id: 0, sender_key, receiver: None };
        let sender = || Sender::new(exchange.clone(), self.blocks_max);
        let pair = Pair::new(protection, told, exchange.clone(), sender()?, sender()?);
        let mut objects = self.registry.write();
        objects.local(local)?;
        let handle = match objects.remote_of(identity) {
            Some(handle) => handle,
            None => objects.add(Object::Remote(Box::new(Remote::new(identity))))?,
        };
        objects.remote_mut(handle)?.add_pair(local, pair);
        Ok(handle)
    }

    fn register_endpoint(
        &self,
        is_writer: bool,
        participant: Handle,
        properties: &Property<'_>,
        attributes: &EndpointAttributes,
    ) -> Outcome<Handle> {
        self.registry.read().local(participant)?;
        let (submessages, payloads) = (Protection::of_submessages(attributes), Protection::of_payloads(attributes));
        let name = if is_writer { KEY_WRITER } else { KEY_READER };
        let carries_keys = properties.find("dds.sec.builtin_endpoint_name").is_some_and(|value| value == name);
        let sender = if carries_keys { None } else { self.sender(submessages, properties)? };
        let payload_sender = if carries_keys || !is_writer { None } else { self.sender(payloads, properties)? };
        let asked = Asked { submessages, payloads, carries_keys };
        let endpoint = Box::new(Endpoint { is_writer, participant, asked, sender, payload_sender });
        let mut objects = self.registry.write();
        objects.local(participant)?;
        let handle = objects.add(Object::Endpoint(endpoint))?;
        if carries_keys && !is_writer {
            objects.local_mut(participant)?.key_reader = handle;
        }
        Ok(handle)
    }

    /// A reader elsewhere that matches a writer of ours, or the other way about.
    fn match_endpoint(&self, is_writer: bool, local: Handle, participant: Handle) -> Outcome<Handle> {
        let matched = {
            let objects = self.registry.read();
            let endpoint = objects.endpoint(local, !is_writer)?;
            objects.remote(participant)?;
            // Room for all at once: growing would leave keys behind.
            let mut told = Vec::with_capacity(TOKENS_MAX);
            if endpoint.asked.carries_keys {
                objects.shared(participant, endpoint.participant)?;
            } else {
                told.extend(self.told(&endpoint.sender, endpoint.asked.submessages)?);
                told.extend(self.told(&endpoint.payload_sender, Protection::default())?);
            }
            Matched::new(is_writer, (local, endpoint), participant, told)
        };
        let mut objects = self.registry.write();
        // Any of them may have gone meanwhile.
        objects.endpoint(local, !is_writer)?;
        objects.remote(participant)?;
        let carries_keys = matched.asked.carries_keys;
        if carries_keys {
            objects.shared(participant, matched.local_participant)?;
        }
        let handle = objects.add(Object::Matched(matched))?;
        if carries_keys && is_writer {
            // Under the one key between two participants both ways: what comes is taken for the writer's.
            objects.remote_mut(participant)?.relate((0, local), Relation { remote: handle, local, is_writer: true });
        }
        Ok(handle)
    }

    fn unregister_participant(&self, handle: Handle) -> Outcome<()> {
        let mut objects = self.registry.write();
        let pairs: Vec<_> = match objects.find(handle) {
            Some(Object::Local(_)) => objects.remotes_mut().filter_map(|remote| remote.remove_pair(handle)).collect(),
            Some(Object::Remote(_)) => Vec::new(),
            _ => return Err(Fault::handle()),
        };
        end(objects, handle, pairs);
        Ok(())
    }

    fn unregister_endpoint(&self, handle: Handle, is_writer: bool) -> Outcome<()> {
        let mut objects = self.registry.write();
        match objects.find(handle) {
            Some(Object::Endpoint(endpoint)) if endpoint.is_writer == is_writer => {}
            Some(Object::Matched(matched)) if matched.is_writer == is_writer => objects.forget(handle),
            _ => return Err(Fault::handle()),
        }
        end(objects, handle, ());
        Ok(())
    }
}

/// Takes an object out. Its keys are wiped, and those of parts of others that went with it, and sessions that were kept; what others use of these they have at hand.
fn end(mut objects: RwLockWriteGuard<'_, Objects>, handle: Handle, parts: impl Sized) {
    let gone = objects.remove(handle);
    drop(objects);
    drop((gone, parts));
    Sessions::shared().clear();
}

unsafe extern "C" fn register_local_participant(
    instance: *mut Factory,
    identity: Foreign,
    permissions: Foreign,
    properties: *const Properties,
    attributes: *const ParticipantAttributes,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: the host calls us with the table that it got from us, and with pointers that hold for the call.
    unsafe {
        plugin(instance).run("register_local_participant", exception, 0, |plugin| {
            let Some(attributes) = attributes.as_ref() else { return Err(Fault::argument("no attributes")) };
            if identity == 0 || permissions == 0 {
                return Err(Fault::new(code::IDENTITY_EMPTY, "Identity empty"));
            }
            let protection = Protection::of_messages(attributes);
            let sender = plugin.sender(protection, &Property::of(properties))?;
            plugin.registry.write().add(Object::Local(Box::new(Local { protection, sender, key_reader: 0 })))
        })
    }
}

unsafe extern "C" fn register_matched_remote_participant(
    instance: *mut Factory,
    local: Handle,
    identity: Foreign,
    permissions: Foreign,
    secret: Foreign,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("register_matched_remote_participant", exception, 0, |plugin| {
            if identity == 0 || permissions == 0 {
                return Err(Fault::new(code::IDENTITY_EMPTY, "Identity or permissions empty"));
            }
            plugin.meet(local, identity, secret)
        })
    }
}

/// # Safety
/// That of [`register_local_participant`].
unsafe fn register_endpoint(
    is_writer: bool,
    instance: *mut Factory,
    participant: Handle,
    properties: *const Properties,
    attributes: *const EndpointAttributes,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as the caller says.
    unsafe {
        plugin(instance).run("register_local_endpoint", exception, 0, |plugin| {
            let Some(attributes) = attributes.as_ref() else { return Err(Fault::argument("no attributes")) };
            plugin.register_endpoint(is_writer, participant, &Property::of(properties), attributes)
        })
    }
}

unsafe extern "C" fn register_local_datawriter(
    instance: *mut Factory,
    participant: Handle,
    properties: *const Properties,
    attributes: *const EndpointAttributes,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as in `register_local_participant`.
    unsafe { register_endpoint(true, instance, participant, properties, attributes, exception) }
}

unsafe extern "C" fn register_local_datareader(
    instance: *mut Factory,
    participant: Handle,
    properties: *const Properties,
    attributes: *const EndpointAttributes,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as in `register_local_participant`.
    unsafe { register_endpoint(false, instance, participant, properties, attributes, exception) }
}

unsafe extern "C" fn register_matched_remote_datareader(
    instance: *mut Factory,
    writer: Handle,
    participant: Handle,
    _secret: Foreign,
    _relay_only: Boolean,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("register_matched_remote_datareader", exception, 0, |plugin| plugin.match_endpoint(false, writer, participant))
    }
}

unsafe extern "C" fn register_matched_remote_datawriter(
    instance: *mut Factory,
    reader: Handle,
    participant: Handle,
    _secret: Foreign,
    exception: *mut Exception,
) -> Handle {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("register_matched_remote_datawriter", exception, 0, |plugin| plugin.match_endpoint(true, reader, participant))
    }
}

unsafe extern "C" fn unregister_participant(instance: *mut Factory, handle: Handle, exception: *mut Exception) -> Boolean {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("unregister_participant", exception, FALSE, |plugin| plugin.unregister_participant(handle).map(|()| TRUE))
    }
}

unsafe extern "C" fn unregister_datawriter(instance: *mut Factory, handle: Handle, exception: *mut Exception) -> Boolean {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("unregister_datawriter", exception, FALSE, |plugin| plugin.unregister_endpoint(handle, true).map(|()| TRUE))
    }
}

unsafe extern "C" fn unregister_datareader(instance: *mut Factory, handle: Handle, exception: *mut Exception) -> Boolean {
    // SAFETY: as in `register_local_participant`.
    unsafe {
        plugin(instance).run("unregister_datareader", exception, FALSE, |plugin| plugin.unregister_endpoint(handle, false).map(|()| TRUE))
    }
}
