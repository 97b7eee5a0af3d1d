//! What arrives on the control socket, and descriptors of requests.

use bywash_core::{Algorithm, Key, KeyReference, SessionParams};
use bywash_protocol::descriptor::{DESCRIPTOR_WORDS, IV_BYTES_MAX, TAG_BYTES_MAX};
use bywash_protocol::message::{MESSAGE_BYTES_MAX, decode, encode};
use bywash_protocol::{
    BrokerMessage, ClientMessage, Descriptor, KeyAlgorithm, KeyCommand, KeyPolicy, PublicKey, Quota, Refusal, Role, Span, StatsFormat,
    VERSION, WireParams, key_file,
};

/// A packet from a client. A session's parameters are checked as the broker does.
pub fn client_message(bytes: &[u8]) {
    let Ok(message) = decode::<ClientMessage<'_>>(bytes) else { return };
    let mut again = vec![0; MESSAGE_BYTES_MAX * 2];
    let len = encode(&message, &mut again).expect("what was decoded fits");
    decode::<ClientMessage<'_>>(&again[..len]).expect("what was encoded is understood");
    if let ClientMessage::Open { params, .. } = message
        && let Ok(checked) = params.check()
    {
        assert!(checked.tag_len() <= TAG_BYTES_MAX as usize, "{checked:?}");
    }
}

/// A file that names a key of a vault, and the public half in it.
pub fn key_file(bytes: &[u8]) {
    if let Ok(reference) = key_file::read(&String::from_utf8_lossy(bytes)) {
        let again = key_file::read(&key_file::write(&reference).expect("what was read can be written"));
        assert_eq!(again.expect("what was written is read"), reference);
    }
    if let Some(key) = PublicKey::from_der(bytes) {
        assert_eq!(key.to_der().and_then(|der| PublicKey::from_der(&der)), Some(key));
    }
}

pub(crate) fn key_file_seeds() -> Vec<Vec<u8>> {
    let keys =
        [PublicKey::P256([&[4][..], &[7; 64]].concat()), PublicKey::P384([&[4][..], &[7; 96]].concat()), PublicKey::Ed25519(vec![7; 32])];
    let seeds = keys.iter().flat_map(|key| {
        let public = key.to_der().expect("a key");
        let file = key_file::write(&KeyReference { name: "web".into(), public: public.clone() }).expect("a reference");
        [file.into_bytes(), public]
    });
    seeds.collect()
}

/// A packet from a broker; a refusal becomes an error with a text.
pub fn broker_message(bytes: &[u8]) {
    let Ok(message) = decode::<BrokerMessage>(bytes) else { return };
    if let BrokerMessage::Refused { refusal, .. } = message {
        let error = refusal.into_error();
        // What is refused again stays the same kind of error.
        assert_eq!(core::mem::discriminant(&Refusal::of(&error).into_error()), core::mem::discriminant(&error), "{error:?}");
    }
}

/// A descriptor, checked against arenas of several sizes and then against every algorithm.
pub fn descriptor(bytes: &[u8]) {
    let word = |at: usize| core::array::from_fn(|byte| bytes.get(at * 4 + byte).copied().unwrap_or(0));
    let words: [u32; DESCRIPTOR_WORDS] = core::array::from_fn(|at| u32::from_le_bytes(word(at)));
    let described = Descriptor::from_words(&words);
    for arena_bytes in [4096, 8 << 20, 1 << 30] {
        let Ok(job) = described.validate(arena_bytes) else { continue };
        let inside = |span: Span| assert!(span.offset() + span.len() <= arena_bytes as usize, "{span:?} of {arena_bytes}");
        [job.iv, job.aad, job.input, job.output, job.tag].into_iter().for_each(inside);
        assert!(job.iv.len() <= IV_BYTES_MAX as usize && job.tag.len() <= TAG_BYTES_MAX as usize);
        for &algorithm in Algorithm::ALL {
            // The broker writes that many bytes.
            if job.check(algorithm, job.tag.len()).is_ok() {
                assert!(algorithm.output_len(job.input.len()) <= job.output.len(), "{algorithm}: {job:?}");
            }
        }
    }
}

fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let len = encode(message, &mut bytes).expect("a seed fits");
    bytes.truncate(len);
    bytes
}

pub(crate) fn client_seeds() -> Vec<Vec<u8>> {
    let params = SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[7; 32]).into())).expect("a key");
    let reference = Key::Vault(KeyReference { name: "web".into(), public: vec![48, 0] });
    let by_reference = SessionParams::new(Algorithm::EcdsaP256Sign, reference).expect("a reference");
    let policy = KeyPolicy { uids: vec![33], gids: vec![48], rate: Some(5), ..KeyPolicy::default() };
    let messages = [
        ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: "nginx", run: Some("r1") },
        ClientMessage::Open { request: 1, params: WireParams::new(&params).expect("a key that travels") },
        ClientMessage::Close { session: 1 },
        ClientMessage::Stats { request: 1, format: StatsFormat::Json },
        ClientMessage::StartRecording { request: 1 },
        ClientMessage::Open { request: 1, params: WireParams::new(&by_reference).expect("a reference") },
        ClientMessage::Describe { request: 1, name: "web", public: Some(&[48, 3, 2, 1, 0]) },
        ClientMessage::Keys { request: 1, command: KeyCommand::Import { name: "web", private: &[48, 0], policy: policy.clone() } },
        ClientMessage::Keys { request: 1, command: KeyCommand::Generate { name: "web", algorithm: KeyAlgorithm::P256, policy } },
        ClientMessage::Keys { request: 1, command: KeyCommand::Rotate { name: "web", private: None, grace_s: 9 } },
        ClientMessage::Keys { request: 1, command: KeyCommand::List },
    ];
    messages.iter().map(encoded).collect()
}

pub(crate) fn broker_seeds() -> Vec<Vec<u8>> {
    let messages = [
        BrokerMessage::Welcome { version: VERSION, client: 1, broker_pid: 2 },
        BrokerMessage::Opened { request: 1, session: 1 },
        BrokerMessage::Refused { request: 1, refusal: Refusal::Quota { quota: Quota::Sessions, limit: 4096 } },
        BrokerMessage::Refused { request: 1, refusal: Refusal::EngineFailed { reason: "gpu0: gone".into() } },
        BrokerMessage::Recorded { request: 1, written: 5, dropped: 0 },
        BrokerMessage::Key { request: 1, public: vec![48, 0] },
        BrokerMessage::Keys { request: 1, bytes: 7 },
        BrokerMessage::Refused { request: 1, refusal: Refusal::VaultKey { name: "web".into(), reason: "no".into() } },
    ];
    messages.iter().map(encoded).collect()
}
