//! Two plug-ins in one process that call each other through the tables that a host has, without a Cyclone DDS.
#![allow(unreachable_pub, reason = "shared by test files, each a crate of its own")]
#![allow(dead_code, reason = "each test file uses its part")]

use bywash_dds_cyclone::abi::{
    Boolean, Cryptography, EndpointAttributes, Exception, Exchange, FALSE, Factory, Foreign, Handle, Handles, Octets,
    ParticipantAttributes, Properties, Property, Sequence, TRUE, Tokens, Transform,
};
use bywash_dds_cyclone::{Host, Plugin, finalize_crypto};
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// A plug-in, its participant, and the other side as it sees it.
pub struct Side {
    tables: *mut Cryptography,
    asked: Asked,
    pub local: Handle,
    pub remote: Handle,
    /// A writer and a reader of ours, and those of the other side that match them.
    pub writer: Handle,
    pub reader: Handle,
    pub their_reader: Handle,
    pub their_writer: Handle,
}

pub fn none<T>() -> Sequence<T> {
    Sequence { maximum: 0, length: 0, buffer: null_mut() }
}

pub fn exception() -> Exception {
    Exception { message: null_mut(), code: 0, minor_code: 0 }
}

/// Calls, and takes the exception apart: nothing may be refused without one.
pub fn called(call: impl FnOnce(*mut Exception) -> Boolean) -> Result<(), i32> {
    let mut exception = exception();
    if call(&mut exception) == TRUE {
        return Ok(());
    }
    assert!(!exception.message.is_null(), "an exception without words");
    let text = unsafe { CStr::from_ptr(exception.message) }.to_str().unwrap().to_owned();
    unsafe { libc::free(exception.message.cast()) };
    assert!(text.starts_with("bywash: ") && exception.code != 0, "{text}");
    Err(exception.code)
}

pub fn registered(call: impl FnOnce(*mut Exception) -> Handle) -> Handle {
    let mut handle = 0;
    called(|exception| {
        handle = call(exception);
        Boolean::from(handle != 0)
    })
    .unwrap();
    handle
}

/// Gives bytes in, gets bytes out.
pub fn bytes(call: impl FnOnce(*mut Octets, *const Octets, *mut Exception) -> Boolean, input: &[u8]) -> Result<Vec<u8>, i32> {
    // A copy that ends where its block does, so that a read behind it is found by whoever runs this with a checker.
    let mut input: Box<[u8]> = input.into();
    let given = Octets { maximum: input.len() as u32, length: input.len() as u32, buffer: input.as_mut_ptr() };
    let mut got = none();
    called(|exception| call(&mut got, &given, exception))?;
    let output = unsafe { std::slice::from_raw_parts(got.buffer, got.length as usize) }.to_vec();
    unsafe { libc::free(got.buffer.cast()) };
    Ok(output)
}

#[derive(Clone, Copy)]
pub struct Asked {
    pub encrypts: bool,
    pub has_origin: bool,
}

impl Side {
    pub fn new(asked: Asked) -> Self {
        Self::with(asked, 100)
    }

    /// One whose sessions end after so many blocks.
    pub fn with(asked: Asked, blocks_max: u64) -> Self {
        let tables = Plugin::new(Host::alone(), blocks_max).into_tables();
        let mut side = Self { tables, asked, local: 0, remote: 0, writer: 0, reader: 0, their_reader: 0, their_writer: 0 };
        side.local = side.participant();
        side.remote = side.meets(side.local, 2);
        (side.writer, side.reader) = (side.own(true, None), side.own(false, None));
        (side.their_reader, side.their_writer) = (side.matched(false, side.writer), side.matched(true, side.reader));
        side
    }

    /// A participant of ours.
    pub fn participant(&self) -> Handle {
        self.participant_asking(self.asked)
    }

    /// One whose governance asks for that.
    pub fn participant_asking(&self, asked: Asked) -> Handle {
        let factory = self.factory();
        let attributes = ParticipantAttributes {
            allow_unauthenticated_participants: FALSE,
            is_access_protected: FALSE,
            is_rtps_protected: TRUE,
            is_discovery_protected: FALSE,
            is_liveliness_protected: FALSE,
            plugin_participant_attributes: u32::from(asked.encrypts) | (u32::from(asked.has_origin) << 3),
            ac_endpoint_properties: none(),
        };
        registered(|e| unsafe { ((*factory).register_local_participant)(factory, 1, 1, null(), &attributes, e) })
    }

    /// One elsewhere with that identity, as one of ours knows it.
    pub fn meets(&self, local: Handle, identity: Foreign) -> Handle {
        let factory = self.factory();
        registered(|e| unsafe { ((*factory).register_matched_remote_participant)(factory, local, identity, identity, 3, e) })
    }

    /// A writer or reader of ours; with a name it is one that carries keys.
    pub fn own(&self, is_writer: bool, name: Option<&CStr>) -> Handle {
        let factory = self.factory();
        let mask = (u32::from(self.asked.encrypts) * 3) | (u32::from(self.asked.has_origin) << 2);
        let endpoint = EndpointAttributes {
            is_read_protected: FALSE,
            is_write_protected: FALSE,
            is_discovery_protected: FALSE,
            is_liveliness_protected: FALSE,
            is_submessage_protected: TRUE,
            is_payload_protected: Boolean::from(name.is_none()),
            is_key_protected: FALSE,
            // What carries keys is encrypted under every governance.
            plugin_endpoint_attributes: if name.is_some() { 1 } else { mask },
            ac_endpoint_properties: none(),
        };
        let value = name.unwrap_or_default().as_ptr().cast_mut();
        let mut property = Property { name: c"dds.sec.builtin_endpoint_name".as_ptr().cast_mut(), value, propagate: FALSE };
        let properties = Properties { maximum: 1, length: u32::from(name.is_some()), buffer: &mut property };
        registered(|e| unsafe {
            let register = if is_writer { (*factory).register_local_datawriter } else { (*factory).register_local_datareader };
            register(factory, self.local, &properties, &endpoint, e)
        })
    }

    /// A writer or reader of the other side that matches this one of ours.
    pub fn matched(&self, is_writer: bool, own: Handle) -> Handle {
        let factory = self.factory();
        registered(|e| unsafe {
            match is_writer {
                true => ((*factory).register_matched_remote_datawriter)(factory, own, self.remote, 3, e),
                false => ((*factory).register_matched_remote_datareader)(factory, own, self.remote, 3, FALSE, e),
            }
        })
    }

    pub fn factory(&self) -> *mut Factory {
        unsafe { (*self.tables).factory }
    }

    pub fn exchange(&self) -> *mut Exchange {
        unsafe { (*self.tables).exchange }
    }

    pub fn transform(&self) -> *mut Transform {
        unsafe { (*self.tables).transform }
    }

    pub fn payload(&self, text: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        bytes(|to, from, e| unsafe { ((*table).encode_serialized_payload)(table, to, null_mut(), from, self.writer, e) }, text)
    }

    pub fn payload_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
        self.payload_for(self.reader, self.their_writer, message)
    }

    pub fn payload_for(&self, reader: Handle, writer: Handle, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let call = |to, from, e| unsafe { ((*table).decode_serialized_payload)(table, to, from, null(), reader, writer, e) };
        bytes(call, message)
    }

    /// To so many receivers, each of which is the same one.
    pub fn listed(&self, plain: &[u8], receivers: usize, is_message: bool) -> Result<Vec<u8>, i32> {
        if is_message {
            self.message_to(&vec![self.remote; receivers], plain)
        } else {
            self.writes(self.writer, &vec![self.their_reader; receivers], plain)
        }
    }

    /// A submessage of a writer's.
    pub fn writes(&self, writer: Handle, readers: &[Handle], plain: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        to_each(readers, plain, |to, from, list, index, e| unsafe {
            ((*table).encode_datawriter_submessage)(table, to, from, writer, list, index, e)
        })
    }

    pub fn message_to(&self, remotes: &[Handle], plain: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        to_each(remotes, plain, |to, from, list, index, e| unsafe {
            ((*table).encode_rtps_message)(table, to, from, self.local, list, index, e)
        })
    }

    pub fn submessage_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let (mut writer, mut reader, mut category) = (0, 0, 0);
        let call = |to, from, e| unsafe {
            match ((*table).preprocess_secure_submsg)(table, &mut writer, &mut reader, &mut category, from, self.local, self.remote, e) {
                TRUE if category == 1 => ((*table).decode_datawriter_submessage)(table, to, from, reader, writer, e),
                TRUE => ((*table).decode_datareader_submessage)(table, to, from, writer, reader, e),
                refused => refused,
            }
        };
        bytes(call, message)
    }

    /// What a writer sends, decoded for this reader, whether it is for that one or not.
    pub fn submessage_for(&self, reader: Handle, writer: Handle, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        bytes(|to, from, e| unsafe { ((*table).decode_datawriter_submessage)(table, to, from, reader, writer, e) }, message)
    }

    pub fn reader_sends(&self, plain: &[u8]) -> Result<Vec<u8>, i32> {
        self.answers(self.reader, self.their_writer, plain)
    }

    /// A submessage of a reader's.
    pub fn answers(&self, reader: Handle, mut writer: Handle, plain: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let list = Handles { maximum: 1, length: 1, buffer: &mut writer };
        bytes(|to, from, e| unsafe { ((*table).encode_datareader_submessage)(table, to, from, reader, &list, e) }, plain)
    }

    pub fn message_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
        self.message_for(self.local, message)
    }

    /// As a host decodes it for one of its participants.
    pub fn message_for(&self, local: Handle, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        bytes(|to, from, e| unsafe { ((*table).decode_rtps_message)(table, to, from, local, self.remote, e) }, message)
    }
}

/// Encodes for each of the receivers, as a host does.
fn to_each(
    receivers: &[Handle],
    plain: &[u8],
    encode: impl Fn(*mut Octets, *const Octets, *const Handles, *mut i32, *mut Exception) -> Boolean,
) -> Result<Vec<u8>, i32> {
    let mut handles = receivers.to_vec();
    let count = receivers.len() as u32;
    let list = Handles { maximum: count, length: count, buffer: handles.as_mut_ptr() };
    let mut index = 0;
    let call = |to: *mut Octets, from, e: *mut Exception| {
        let mut done = encode(to, from, &list, &raw mut index, e);
        while done == TRUE && index < count as i32 {
            // Without room to spare, so that it has to grow.
            unsafe { (*to).maximum = (*to).length };
            done = encode(to, null(), &list, &raw mut index, e);
        }
        done
    };
    bytes(call, plain)
}

impl Drop for Side {
    fn drop(&mut self) {
        assert_eq!(unsafe { finalize_crypto(self.tables.cast()) }, 0);
    }
}

/// What one side tells, the other hears; the tokens go back to where they came from.
pub fn told(
    from: &Side,
    create: impl FnOnce(*mut Exchange, *mut Tokens, *mut Exception) -> Boolean,
    hear: impl FnOnce(*const Tokens, *mut Exception) -> Boolean,
) {
    let table = from.exchange();
    let mut tokens = none();
    called(|e| create(table, &mut tokens, e)).unwrap();
    called(|e| hear(&tokens, e)).unwrap();
    called(|e| unsafe { ((*table).return_crypto_tokens)(table, &mut tokens, e) }).unwrap();
    assert!(tokens.buffer.is_null());
}

/// Of a participant, that one of the other side's knows.
pub fn tell_of_participant(from: &Side, remote: Handle, to: &Side, local: Handle) {
    let into = to.exchange();
    told(
        from,
        |table, t, e| unsafe { ((*table).create_local_participant_crypto_tokens)(table, t, from.local, remote, e) },
        |t, e| unsafe { ((*into).set_remote_participant_crypto_tokens)(into, local, to.remote, t, e) },
    );
}

/// Of a writer, as it is known to a reader.
pub fn tell_of_writer(from: &Side, (writer, their_reader): (Handle, Handle), to: &Side, (reader, their_writer): (Handle, Handle)) {
    let into = to.exchange();
    told(
        from,
        |table, t, e| unsafe { ((*table).create_local_datawriter_crypto_tokens)(table, t, writer, their_reader, e) },
        |t, e| unsafe { ((*into).set_remote_datawriter_crypto_tokens)(into, reader, their_writer, t, e) },
    );
}

pub fn tell(from: &Side, to: &Side) {
    let into = to.exchange();
    tell_of_participant(from, from.remote, to, to.local);
    tell_of_writer(from, (from.writer, from.their_reader), to, (to.reader, to.their_writer));
    told(
        from,
        |table, t, e| unsafe { ((*table).create_local_datareader_crypto_tokens)(table, t, from.reader, from.their_writer, e) },
        |t, e| unsafe { ((*into).set_remote_datareader_crypto_tokens)(into, to.writer, to.their_reader, t, e) },
    );
}

pub const ALL: [Asked; 4] = [
    Asked { encrypts: false, has_origin: false },
    Asked { encrypts: true, has_origin: false },
    Asked { encrypts: false, has_origin: true },
    Asked { encrypts: true, has_origin: true },
];

pub const SUBMESSAGE: &[u8] = b"\x15\x01\x0c\x00twelve bytes";
pub const MESSAGE: &[u8] = b"RTPS\x02\x01\x01\x10twelve bytes\x15\x01\x0c\x00twelve bytes";

pub fn met(asked: Asked) -> (Side, Side) {
    met_with(asked, 100)
}

pub fn met_with(asked: Asked, blocks_max: u64) -> (Side, Side) {
    let (alice, bob) = (Side::with(asked, blocks_max), Side::with(asked, blocks_max));
    tell(&alice, &bob);
    tell(&bob, &alice);
    (alice, bob)
}
