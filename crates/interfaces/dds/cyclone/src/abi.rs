//! What Cyclone DDS 0.10 and its plug-ins share: the types of `dds/security/dds_security_api_types.h` and the tables of
//! `dds_security_api_cryptography.h`, as far as a cryptographic plug-in meets them. `tests/layout.rs` holds them against the installed headers.

#![allow(missing_docs, reason = "the names are those of the specification; DDS Security 1.1 s8.5 says what they are")]

use core::ffi::{c_char, c_int, c_void};

pub type Boolean = u8;
/// What the host knows an object by; 0 is none.
pub type Handle = i64;
/// A participant's identity, permissions or shared secret, which belong to other plug-ins.
pub type Foreign = i64;

pub const TRUE: Boolean = 1;
pub const FALSE: Boolean = 0;

/// A sequence as IDL has it.
#[repr(C)]
pub struct Sequence<T> {
    pub maximum: u32,
    pub length: u32,
    pub buffer: *mut T,
}

pub type Octets = Sequence<u8>;
pub type Handles = Sequence<Handle>;

#[repr(C)]
pub struct Exception {
    pub message: *mut c_char,
    pub code: i32,
    pub minor_code: i32,
}

#[repr(C)]
pub struct Property {
    pub name: *mut c_char,
    pub value: *mut c_char,
    pub propagate: Boolean,
}

#[repr(C)]
pub struct BinaryProperty {
    pub name: *mut c_char,
    pub value: Octets,
    pub propagate: Boolean,
}

#[repr(C)]
pub struct Token {
    pub class_id: *mut c_char,
    pub properties: Sequence<Property>,
    pub binary_properties: Sequence<BinaryProperty>,
}

pub type Tokens = Sequence<Token>;
pub type Properties = Sequence<Property>;

#[repr(C)]
pub struct ParticipantAttributes {
    pub allow_unauthenticated_participants: Boolean,
    pub is_access_protected: Boolean,
    pub is_rtps_protected: Boolean,
    pub is_discovery_protected: Boolean,
    pub is_liveliness_protected: Boolean,
    pub plugin_participant_attributes: u32,
    pub ac_endpoint_properties: Properties,
}

#[repr(C)]
pub struct EndpointAttributes {
    pub is_read_protected: Boolean,
    pub is_write_protected: Boolean,
    pub is_discovery_protected: Boolean,
    pub is_liveliness_protected: Boolean,
    pub is_submessage_protected: Boolean,
    pub is_payload_protected: Boolean,
    pub is_key_protected: Boolean,
    pub plugin_endpoint_attributes: u32,
    pub ac_endpoint_properties: Properties,
}

pub const PARTICIPANT_RTPS_ENCRYPTED: u32 = 1;
pub const PARTICIPANT_RTPS_ORIGIN: u32 = 1 << 3;
pub const ENDPOINT_SUBMESSAGE_ENCRYPTED: u32 = 1;
pub const ENDPOINT_PAYLOAD_ENCRYPTED: u32 = 1 << 1;
pub const ENDPOINT_SUBMESSAGE_ORIGIN: u32 = 1 << 2;

/// `DDS_Security_SecureSubmessageCategory_t`.
pub type Category = c_int;
pub const DATAWRITER_SUBMESSAGE: Category = 1;
pub const DATAREADER_SUBMESSAGE: Category = 2;

pub const SUCCESS: c_int = 0;
pub const FAILED: c_int = -1;

/// Codes of exceptions (`dds_security_api_err.h`).
pub mod code {
    pub const RANDOM: i32 = 100;
    pub const IDENTITY_EMPTY: i32 = 110;
    pub const HANDLE: i32 = 113;
    pub const ARGUMENT: i32 = 114;
    pub const TOKEN: i32 = 115;
    pub const TRANSFORMATION: i32 = 118;
    pub const SIGN: i32 = 119;
    pub const RECEIVER_SIGN: i32 = 124;
    pub const ALLOCATION: i32 = 126;
    pub const UNDEFINED: i32 = 200;
    pub const CIPHER: i32 = 301;
}

pub type RegisterParticipant =
    unsafe extern "C" fn(*mut Factory, Foreign, Foreign, *const Properties, *const ParticipantAttributes, *mut Exception) -> Handle;
pub type MatchParticipant = unsafe extern "C" fn(*mut Factory, Handle, Foreign, Foreign, Foreign, *mut Exception) -> Handle;
pub type RegisterEndpoint =
    unsafe extern "C" fn(*mut Factory, Handle, *const Properties, *const EndpointAttributes, *mut Exception) -> Handle;
pub type MatchReader = unsafe extern "C" fn(*mut Factory, Handle, Handle, Foreign, Boolean, *mut Exception) -> Handle;
pub type MatchWriter = unsafe extern "C" fn(*mut Factory, Handle, Handle, Foreign, *mut Exception) -> Handle;
pub type Unregister = unsafe extern "C" fn(*mut Factory, Handle, *mut Exception) -> Boolean;

/// `dds_security_crypto_key_factory`; behind it stands what is ours.
#[repr(C)]
pub struct Factory {
    pub register_local_participant: RegisterParticipant,
    pub register_matched_remote_participant: MatchParticipant,
    pub register_local_datawriter: RegisterEndpoint,
    pub register_matched_remote_datareader: MatchReader,
    pub register_local_datareader: RegisterEndpoint,
    pub register_matched_remote_datawriter: MatchWriter,
    pub unregister_participant: Unregister,
    pub unregister_datawriter: Unregister,
    pub unregister_datareader: Unregister,
}

pub type CreateTokens = unsafe extern "C" fn(*mut Exchange, *mut Tokens, Handle, Handle, *mut Exception) -> Boolean;
pub type SetTokens = unsafe extern "C" fn(*mut Exchange, Handle, Handle, *const Tokens, *mut Exception) -> Boolean;
pub type ReturnTokens = unsafe extern "C" fn(*mut Exchange, *mut Tokens, *mut Exception) -> Boolean;

/// `dds_security_crypto_key_exchange`.
#[repr(C)]
pub struct Exchange {
    pub create_local_participant_crypto_tokens: CreateTokens,
    pub set_remote_participant_crypto_tokens: SetTokens,
    pub create_local_datawriter_crypto_tokens: CreateTokens,
    pub set_remote_datawriter_crypto_tokens: SetTokens,
    pub create_local_datareader_crypto_tokens: CreateTokens,
    pub set_remote_datareader_crypto_tokens: SetTokens,
    pub return_crypto_tokens: ReturnTokens,
}

pub type EncodePayload = unsafe extern "C" fn(*mut Transform, *mut Octets, *mut Octets, *const Octets, Handle, *mut Exception) -> Boolean;
pub type EncodeListed =
    unsafe extern "C" fn(*mut Transform, *mut Octets, *const Octets, Handle, *const Handles, *mut i32, *mut Exception) -> Boolean;
pub type EncodeReader = unsafe extern "C" fn(*mut Transform, *mut Octets, *const Octets, Handle, *const Handles, *mut Exception) -> Boolean;
pub type Decode = unsafe extern "C" fn(*mut Transform, *mut Octets, *const Octets, Handle, Handle, *mut Exception) -> Boolean;
pub type Preprocess =
    unsafe extern "C" fn(*mut Transform, *mut Handle, *mut Handle, *mut Category, *const Octets, Handle, Handle, *mut Exception) -> Boolean;
pub type DecodePayload =
    unsafe extern "C" fn(*mut Transform, *mut Octets, *const Octets, *const Octets, Handle, Handle, *mut Exception) -> Boolean;

/// `dds_security_crypto_transform`.
#[repr(C)]
pub struct Transform {
    pub encode_serialized_payload: EncodePayload,
    pub encode_datawriter_submessage: EncodeListed,
    pub encode_datareader_submessage: EncodeReader,
    pub encode_rtps_message: EncodeListed,
    pub decode_rtps_message: Decode,
    pub preprocess_secure_submsg: Preprocess,
    pub decode_datawriter_submessage: Decode,
    pub decode_datareader_submessage: Decode,
    pub decode_serialized_payload: DecodePayload,
}

/// `dds_security_cryptography`: what `init` hands over.
#[repr(C)]
pub struct Cryptography {
    pub gv: *mut c_void,
    pub transform: *mut Transform,
    pub factory: *mut Factory,
    pub exchange: *mut Exchange,
}
