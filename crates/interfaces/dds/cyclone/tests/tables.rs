//! Two plug-ins in one process that call each other through the tables that a host has, without a Cyclone DDS.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the tables are called as a host calls them, with objects of the test's own")]

use bywash_dds_cyclone::abi::{
    Boolean, Cryptography, EndpointAttributes, Exception, Exchange, FALSE, Factory, Handle, Handles, Octets, ParticipantAttributes,
    Sequence, TRUE, Tokens, Transform, code,
};
use bywash_dds_cyclone::{Host, Plugin, finalize_crypto};
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// A plug-in, its participant, and the other side as it sees it.
struct Side {
    tables: *mut Cryptography,
    local: Handle,
    remote: Handle,
    /// A writer and a reader of ours, and those of the other side that match them.
    writer: Handle,
    reader: Handle,
    their_reader: Handle,
    their_writer: Handle,
}

fn none<T>() -> Sequence<T> {
    Sequence { maximum: 0, length: 0, buffer: null_mut() }
}

fn exception() -> Exception {
    Exception { message: null_mut(), code: 0, minor_code: 0 }
}

/// Calls, and takes the exception apart: nothing may be refused without one.
fn called(call: impl FnOnce(*mut Exception) -> Boolean) -> Result<(), i32> {
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

fn registered(call: impl FnOnce(*mut Exception) -> Handle) -> Handle {
    let mut handle = 0;
    called(|exception| {
        handle = call(exception);
        Boolean::from(handle != 0)
    })
    .unwrap();
    handle
}

/// Gives bytes in, gets bytes out.
fn bytes(call: impl FnOnce(*mut Octets, *const Octets, *mut Exception) -> Boolean, input: &[u8]) -> Result<Vec<u8>, i32> {
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
struct Asked {
    encrypts: bool,
    has_origin: bool,
}

impl Side {
    fn new(asked: Asked) -> Self {
        let tables = Plugin::new(Host::alone(), 100).into_tables();
        let mask = u32::from(asked.encrypts) | (u32::from(asked.has_origin) << 3);
        let attributes = ParticipantAttributes {
            allow_unauthenticated_participants: FALSE,
            is_access_protected: FALSE,
            is_rtps_protected: TRUE,
            is_discovery_protected: FALSE,
            is_liveliness_protected: FALSE,
            plugin_participant_attributes: mask,
            ac_endpoint_properties: none(),
        };
        let mut side = Self { tables, local: 0, remote: 0, writer: 0, reader: 0, their_reader: 0, their_writer: 0 };
        let factory = side.factory();
        let mask = (u32::from(asked.encrypts) * 3) | (u32::from(asked.has_origin) << 2);
        let endpoint = EndpointAttributes {
            is_read_protected: FALSE,
            is_write_protected: FALSE,
            is_discovery_protected: FALSE,
            is_liveliness_protected: FALSE,
            is_submessage_protected: TRUE,
            is_payload_protected: TRUE,
            is_key_protected: FALSE,
            plugin_endpoint_attributes: mask,
            ac_endpoint_properties: none(),
        };
        unsafe {
            let table = &*factory;
            side.local = registered(|e| (table.register_local_participant)(factory, 1, 1, null(), &attributes, e));
            side.remote = registered(|e| (table.register_matched_remote_participant)(factory, side.local, 2, 2, 3, e));
            side.writer = registered(|e| (table.register_local_datawriter)(factory, side.local, null(), &endpoint, e));
            side.reader = registered(|e| (table.register_local_datareader)(factory, side.local, null(), &endpoint, e));
            side.their_reader = registered(|e| (table.register_matched_remote_datareader)(factory, side.writer, side.remote, 3, FALSE, e));
            side.their_writer = registered(|e| (table.register_matched_remote_datawriter)(factory, side.reader, side.remote, 3, e));
        }
        side
    }

    fn factory(&self) -> *mut Factory {
        unsafe { (*self.tables).factory }
    }

    fn exchange(&self) -> *mut Exchange {
        unsafe { (*self.tables).exchange }
    }

    fn transform(&self) -> *mut Transform {
        unsafe { (*self.tables).transform }
    }

    fn payload(&self, text: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        bytes(|to, from, e| unsafe { ((*table).encode_serialized_payload)(table, to, null_mut(), from, self.writer, e) }, text)
    }

    fn payload_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let call =
            |to, from, e| unsafe { ((*table).decode_serialized_payload)(table, to, from, null(), self.reader, self.their_writer, e) };
        bytes(call, message)
    }

    /// To so many receivers, each of which is the same one.
    fn listed(&self, plain: &[u8], receivers: usize, is_message: bool) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let mut handles = vec![if is_message { self.remote } else { self.their_reader }; receivers];
        let list = Handles { maximum: receivers as u32, length: receivers as u32, buffer: handles.as_mut_ptr() };
        let mut index = 0;
        let encode = |to, from, index, e| unsafe {
            match is_message {
                true => ((*table).encode_rtps_message)(table, to, from, self.local, &list, index, e),
                false => ((*table).encode_datawriter_submessage)(table, to, from, self.writer, &list, index, e),
            }
        };
        let call = |to: *mut Octets, from, e: *mut Exception| {
            let mut done = encode(to, from, &raw mut index, e);
            while done == TRUE && index < receivers as i32 {
                // Without room to spare, so that it has to grow.
                unsafe { (*to).maximum = (*to).length };
                done = encode(to, null(), &raw mut index, e);
            }
            done
        };
        bytes(call, plain)
    }

    fn submessage_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
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

    fn reader_sends(&self, plain: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        let mut writer = self.their_writer;
        let list = Handles { maximum: 1, length: 1, buffer: &mut writer };
        bytes(|to, from, e| unsafe { ((*table).encode_datareader_submessage)(table, to, from, self.reader, &list, e) }, plain)
    }

    fn message_back(&self, message: &[u8]) -> Result<Vec<u8>, i32> {
        let table = self.transform();
        bytes(|to, from, e| unsafe { ((*table).decode_rtps_message)(table, to, from, self.local, self.remote, e) }, message)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        assert_eq!(unsafe { finalize_crypto(self.tables.cast()) }, 0);
    }
}

/// What one side tells, the other hears; the tokens go back to where they came from.
fn tell(from: &Side, to: &Side) {
    let (from_table, to_table) = (from.exchange(), to.exchange());
    unsafe {
        let (out, into) = (&*from_table, &*to_table);
        let told = |create: &dyn Fn(*mut Tokens, *mut Exception) -> Boolean, set: &dyn Fn(*const Tokens, *mut Exception) -> Boolean| {
            let mut tokens = none();
            called(|e| create(&mut tokens, e)).unwrap();
            called(|e| set(&tokens, e)).unwrap();
            called(|e| (out.return_crypto_tokens)(from_table, &mut tokens, e)).unwrap();
            assert!(tokens.buffer.is_null());
        };
        told(&|t, e| (out.create_local_participant_crypto_tokens)(from_table, t, from.local, from.remote, e), &|t, e| {
            (into.set_remote_participant_crypto_tokens)(to_table, to.local, to.remote, t, e)
        });
        told(&|t, e| (out.create_local_datawriter_crypto_tokens)(from_table, t, from.writer, from.their_reader, e), &|t, e| {
            (into.set_remote_datawriter_crypto_tokens)(to_table, to.reader, to.their_writer, t, e)
        });
        told(&|t, e| (out.create_local_datareader_crypto_tokens)(from_table, t, from.reader, from.their_writer, e), &|t, e| {
            (into.set_remote_datareader_crypto_tokens)(to_table, to.writer, to.their_reader, t, e)
        });
    }
}

const ALL: [Asked; 4] = [
    Asked { encrypts: false, has_origin: false },
    Asked { encrypts: true, has_origin: false },
    Asked { encrypts: false, has_origin: true },
    Asked { encrypts: true, has_origin: true },
];

const SUBMESSAGE: &[u8] = b"\x15\x01\x0c\x00twelve bytes";
const MESSAGE: &[u8] = b"RTPS\x02\x01\x01\x10twelve bytes\x15\x01\x0c\x00twelve bytes";

fn met(asked: Asked) -> (Side, Side) {
    let (alice, bob) = (Side::new(asked), Side::new(asked));
    tell(&alice, &bob);
    tell(&bob, &alice);
    (alice, bob)
}

#[test]
fn what_one_side_protects_the_other_reads_once() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        for _ in 0..50 {
            let payload = alice.payload(b"a payload.").unwrap();
            assert_eq!(bob.payload_back(&payload).unwrap(), b"a payload.");
            assert_eq!(bob.payload_back(&payload).unwrap(), b"a payload.", "a payload may come again");
            for receivers in [1, 3] {
                let submessage = alice.listed(SUBMESSAGE, receivers, false).unwrap();
                assert_eq!(bob.submessage_back(&submessage).unwrap(), SUBMESSAGE);
                assert_eq!(bob.submessage_back(&submessage), Err(code::ARGUMENT), "a submessage may not");
                let message = alice.listed(MESSAGE, receivers, true).unwrap();
                assert_eq!(bob.message_back(&message).unwrap()[44..], *SUBMESSAGE);
                assert_eq!(bob.message_back(&message), Err(code::ARGUMENT));
            }
            let answer = bob.reader_sends(SUBMESSAGE).unwrap();
            assert_eq!(alice.submessage_back(&answer).unwrap(), SUBMESSAGE);
        }
    }
}

#[test]
fn changed_messages_are_exceptions() {
    for asked in ALL {
        let (alice, bob) = met(asked);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut change = |message: Vec<u8>| {
                let mut message = message;
                let at = random.usize(..message.len());
                match random.u8(..4) {
                    0 => message.truncate(at.max(1)),
                    1 => message.insert(at, random.u8(..)),
                    _ => message[at] ^= 1 << random.u8(..8),
                }
                message
            };
            let submessage = change(alice.listed(SUBMESSAGE, 2, false).unwrap());
            assert!(bob.submessage_back(&submessage).refused_or(SUBMESSAGE));
            let message = change(alice.listed(MESSAGE, 2, true).unwrap());
            // What is in front, and is not protected, may be another: the text behind it says who sent it.
            assert!(bob.message_back(&message).map(|message| message[44..].to_vec()).refused_or(SUBMESSAGE));
            let payload = change(alice.payload(b"a payload.").unwrap());
            assert!(bob.payload_back(&payload).refused_or(b"a payload."));
        }
    }
}

trait RefusedOr {
    /// Refused, or nothing that counts was changed.
    fn refused_or(self, text: &[u8]) -> bool;
}

impl RefusedOr for Result<Vec<u8>, i32> {
    fn refused_or(self, text: &[u8]) -> bool {
        self.map_or(true, |got| got == text)
    }
}

#[test]
fn what_the_governance_does_not_allow_is_refused() {
    let (signs, encrypts) = (ALL[0], ALL[1]);
    // Keys that are for less than the governance asks for.
    let (alice, bob) = (Side::new(signs), Side::new(encrypts));
    tell(&alice, &bob);
    assert_eq!(bob.payload_back(&alice.payload(b"a payload.").unwrap()), Err(code::TRANSFORMATION));
    assert_eq!(bob.submessage_back(&alice.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::TRANSFORMATION));
    assert_eq!(bob.message_back(&alice.listed(MESSAGE, 1, true).unwrap()), Err(code::TRANSFORMATION));
}

#[test]
fn without_keys_nothing_is_read() {
    let (alice, bob) = (Side::new(ALL[1]), Side::new(ALL[1]));
    assert_eq!(bob.payload_back(&alice.payload(b"a payload.").unwrap()), Err(code::HANDLE));
    assert_eq!(bob.submessage_back(&alice.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::HANDLE));
    assert_eq!(bob.message_back(&alice.listed(MESSAGE, 1, true).unwrap()), Err(code::HANDLE));
}

#[test]
fn handles_of_others_and_of_the_dead_are_refused() {
    let (alice, bob) = met(ALL[3]);
    let table = alice.factory();
    let transform = alice.transform();
    let encode = |writer| {
        bytes(|to, from, e| unsafe { ((*transform).encode_serialized_payload)(transform, to, null_mut(), from, writer, e) }, b"text")
    };
    for handle in [0, -1, 1, i64::MAX, i64::MIN, alice.local, alice.reader, alice.their_reader, alice.writer + (1 << 32)] {
        assert_eq!(encode(handle), Err(code::HANDLE), "{handle:#x}");
        let exchange = alice.exchange();
        let mut tokens = none();
        let create = |e| unsafe { ((*exchange).create_local_datawriter_crypto_tokens)(exchange, &mut tokens, handle, handle, e) };
        assert!(called(create).is_err());
    }
    assert!(
        bytes(|to, _, e| unsafe { ((*transform).encode_serialized_payload)(transform, to, null_mut(), null(), alice.writer, e) }, b"")
            .is_err()
    );
    unsafe {
        called(|e| ((*table).unregister_datawriter)(table, alice.writer, e)).unwrap();
        assert_eq!(called(|e| ((*table).unregister_datawriter)(table, alice.writer, e)), Err(code::HANDLE));
        assert_eq!(called(|e| ((*table).unregister_datareader)(table, alice.their_writer, e)), Err(code::HANDLE));
    }
    assert_eq!(encode(alice.writer), Err(code::HANDLE));
    let submessage = bob.listed(SUBMESSAGE, 1, false).unwrap();
    assert_eq!(alice.submessage_back(&submessage).unwrap(), SUBMESSAGE);
    unsafe { called(|e| ((*table).unregister_datawriter)(table, alice.their_writer, e)).unwrap() };
    assert_eq!(alice.submessage_back(&bob.listed(SUBMESSAGE, 1, false).unwrap()), Err(code::HANDLE));
    unsafe {
        called(|e| ((*table).unregister_participant)(table, alice.local, e)).unwrap();
        called(|e| ((*table).unregister_participant)(table, alice.remote, e)).unwrap();
    }
    assert_eq!(alice.message_back(&bob.listed(MESSAGE, 1, true).unwrap()), Err(code::HANDLE));
}

#[test]
fn tokens_of_strangers_are_refused() {
    let (alice, bob) = met(ALL[1]);
    let (from, to) = (alice.exchange(), bob.exchange());
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tokens = none();
        unsafe {
            let create = |e| ((*from).create_local_datawriter_crypto_tokens)(from, &mut tokens, alice.writer, alice.their_reader, e);
            called(create).unwrap();
            let token = &mut *tokens.buffer;
            let value = &mut (*token.binary_properties.buffer).value;
            match random.u8(..4) {
                0 => value.length = random.u32(..value.length),
                1 => *token.class_id = 0,
                2 => token.binary_properties.length = 0,
                _ => *value.buffer.add(random.usize(..value.length as usize)) ^= 1 << random.u8(..8),
            }
            let _ = called(|e| ((*to).set_remote_datawriter_crypto_tokens)(to, bob.reader, bob.their_writer, &tokens, e));
            token.binary_properties.length = 1;
            called(|e| ((*from).return_crypto_tokens)(from, &mut tokens, e)).unwrap();
        }
    }
    unsafe {
        let empty = none();
        assert_eq!(called(|e| ((*to).set_remote_participant_crypto_tokens)(to, bob.local, bob.remote, &empty, e)), Err(code::TOKEN));
    }
}
