//! The types of `abi` against the installed headers: size of each, and place of each field, as the C compiler has them.

use bywash_dds_cyclone::abi;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

const HEADER: &str = "/usr/include/dds/security/dds_security_api.h";

/// What C is asked, and what Rust says.
#[derive(Default)]
struct Questions {
    c: Vec<String>,
    rust: Vec<usize>,
}

/// Size and fields of a type: those of the same name in both, or of names that are told.
macro_rules! layout {
    ($questions:ident, $rust:ty as $c:literal { $($field:ident $(as $name:literal)?),* $(,)? }) => {
        $questions.c.push(format!("sizeof({})", $c));
        $questions.rust.push(size_of::<$rust>());
        $(
            let name = [stringify!($field) $(, $name)?].last().copied().unwrap_or_default();
            $questions.c.push(format!("offsetof({}, {name})", $c));
            $questions.rust.push(offset_of!($rust, $field));
        )*
    };
}

macro_rules! value {
    ($questions:ident, $($value:expr => $c:literal),* $(,)?) => {
        $(
            $questions.c.push(format!("(uint32_t)({})", $c));
            $questions.rust.push($value as u32 as usize);
        )*
    };
}

#[rustfmt::skip]
fn questions() -> Questions {
    let mut asked = Questions::default();
    layout!(asked, abi::Octets as "DDS_Security_OctetSeq" { maximum as "_maximum", length as "_length", buffer as "_buffer" });
    layout!(asked, abi::Handles as "DDS_Security_CryptoHandleSeq" { maximum as "_maximum", length as "_length", buffer as "_buffer" });
    layout!(asked, abi::Tokens as "DDS_Security_CryptoTokenSeq" { maximum as "_maximum", length as "_length", buffer as "_buffer" });
    layout!(asked, abi::Exception as "DDS_Security_SecurityException" { message, code, minor_code });
    layout!(asked, abi::Property as "DDS_Security_Property_t" { name, value, propagate });
    layout!(asked, abi::BinaryProperty as "DDS_Security_BinaryProperty_t" { name, value, propagate });
    layout!(asked, abi::Token as "DDS_Security_DataHolder" { class_id, properties, binary_properties });
    layout!(asked, abi::ParticipantAttributes as "DDS_Security_ParticipantSecurityAttributes" {
        allow_unauthenticated_participants, is_access_protected, is_rtps_protected, is_discovery_protected, is_liveliness_protected,
        plugin_participant_attributes, ac_endpoint_properties });
    layout!(asked, abi::EndpointAttributes as "DDS_Security_EndpointSecurityAttributes" {
        is_read_protected, is_write_protected, is_discovery_protected, is_liveliness_protected, is_submessage_protected,
        is_payload_protected, is_key_protected, plugin_endpoint_attributes, ac_endpoint_properties });
    layout!(asked, abi::Factory as "dds_security_crypto_key_factory" {
        register_local_participant, register_matched_remote_participant, register_local_datawriter, register_matched_remote_datareader,
        register_local_datareader, register_matched_remote_datawriter, unregister_participant, unregister_datawriter,
        unregister_datareader });
    layout!(asked, abi::Exchange as "dds_security_crypto_key_exchange" {
        create_local_participant_crypto_tokens, set_remote_participant_crypto_tokens, create_local_datawriter_crypto_tokens,
        set_remote_datawriter_crypto_tokens, create_local_datareader_crypto_tokens, set_remote_datareader_crypto_tokens,
        return_crypto_tokens });
    layout!(asked, abi::Transform as "dds_security_crypto_transform" {
        encode_serialized_payload, encode_datawriter_submessage, encode_datareader_submessage, encode_rtps_message, decode_rtps_message,
        preprocess_secure_submsg, decode_datawriter_submessage, decode_datareader_submessage, decode_serialized_payload });
    layout!(asked, abi::Cryptography as "dds_security_cryptography" {
        gv, transform as "crypto_transform", factory as "crypto_key_factory", exchange as "crypto_key_exchange" });
    value!(asked,
        size_of::<abi::Category>() => "sizeof(DDS_Security_SecureSubmessageCategory_t)",
        abi::DATAWRITER_SUBMESSAGE => "DDS_SECURITY_DATAWRITER_SUBMESSAGE",
        abi::DATAREADER_SUBMESSAGE => "DDS_SECURITY_DATAREADER_SUBMESSAGE",
        abi::PARTICIPANT_RTPS_ENCRYPTED => "DDS_SECURITY_PLUGIN_PARTICIPANT_ATTRIBUTES_FLAG_IS_RTPS_ENCRYPTED",
        abi::PARTICIPANT_RTPS_ORIGIN => "DDS_SECURITY_PLUGIN_PARTICIPANT_ATTRIBUTES_FLAG_IS_RTPS_AUTHENTICATED",
        abi::ENDPOINT_SUBMESSAGE_ENCRYPTED => "DDS_SECURITY_PLUGIN_ENDPOINT_ATTRIBUTES_FLAG_IS_SUBMESSAGE_ENCRYPTED",
        abi::ENDPOINT_PAYLOAD_ENCRYPTED => "DDS_SECURITY_PLUGIN_ENDPOINT_ATTRIBUTES_FLAG_IS_PAYLOAD_ENCRYPTED",
        abi::ENDPOINT_SUBMESSAGE_ORIGIN => "DDS_SECURITY_PLUGIN_ENDPOINT_ATTRIBUTES_FLAG_IS_SUBMESSAGE_ORIGIN_AUTHENTICATED",
        abi::SUCCESS => "DDS_SECURITY_SUCCESS",
        abi::FAILED => "DDS_SECURITY_FAILED",
        abi::code::RANDOM => "DDS_SECURITY_ERR_CANNOT_GENERATE_RANDOM_CODE",
        abi::code::IDENTITY_EMPTY => "DDS_SECURITY_ERR_IDENTITY_EMPTY_CODE",
        abi::code::HANDLE => "DDS_SECURITY_ERR_INVALID_CRYPTO_HANDLE_CODE",
        abi::code::ARGUMENT => "DDS_SECURITY_ERR_INVALID_CRYPTO_ARGUMENT_CODE",
        abi::code::TOKEN => "DDS_SECURITY_ERR_INVALID_CRYPTO_TOKEN_CODE",
        abi::code::TRANSFORMATION => "DDS_SECURITY_ERR_INVALID_CRYPTO_TRANSFORMATION_CODE",
        abi::code::SIGN => "DDS_SECURITY_ERR_INVALID_CRYPTO_SIGN_CODE",
        abi::code::RECEIVER_SIGN => "DDS_SECURITY_ERR_INVALID_CRYPTO_RECEIVER_SIGN_CODE",
        abi::code::ALLOCATION => "DDS_SECURITY_ERR_ALLOCATION_FAILED_CODE",
        abi::code::UNDEFINED => "DDS_SECURITY_ERR_UNDEFINED_CODE",
        abi::code::CIPHER => "DDS_SECURITY_ERR_CIPHER_ERROR",
    );
    asked
}

/// What follows must compile: `init` and `finalize` are of the types that the host has for them.
const BEGINNING: &str = "#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <dds/security/dds_security_api.h>
extern int init_crypto(const char *, void **, struct ddsi_domaingv *);
extern int finalize_crypto(void *);
plugin_init init = 0;
plugin_finalize finalize = 0;
void same(void) { (void)(1 ? init : init_crypto); (void)(1 ? finalize : finalize_crypto); }
int main(void) {
";

#[test]
fn types_are_those_of_the_installed_headers() {
    if !Path::new(HEADER).exists() {
        eprintln!("skipped: {HEADER} is not there (Debian: cyclonedds-dev)");
        return;
    }
    let asked = questions();
    let mut program = BEGINNING.to_owned();
    asked.c.iter().for_each(|question| writeln!(program, "  printf(\"%zu\\n\", (size_t)({question}));").unwrap());
    program.push_str("  return 0;\n}\n");
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, program).unwrap();
    // The two functions are named and not linked: nothing calls what names them.
    let arguments = ["-Werror", "-O1", "-ffunction-sections", "-Wl,--gc-sections", "-o"];
    let compiler = Command::new("cc").args(arguments).arg(&binary).arg(&source).output().unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    let answers = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let answers: Vec<usize> = answers.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(answers.len(), asked.rust.len());
    for ((question, c), rust) in asked.c.iter().zip(answers).zip(&asked.rust) {
        assert_eq!(c, *rust, "{question}");
    }
}
