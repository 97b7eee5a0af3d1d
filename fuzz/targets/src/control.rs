//! What arrives on the control socket, and descriptors of requests.

use bywash_core::{Algorithm, Key, SessionParams};
use bywash_protocol::descriptor::{DESCRIPTOR_WORDS, IV_BYTES_MAX, TAG_BYTES_MAX};
use bywash_protocol::message::{MESSAGE_BYTES_MAX, decode, encode};
use bywash_protocol::{BrokerMessage, ClientMessage, Descriptor, Quota, Refusal, Role, Span, StatsFormat, VERSION, WireParams};

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
    let messages = [
        ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: "nginx", run: Some("r1") },
        ClientMessage::Open { request: 1, params: WireParams::new(&params).expect("a key that travels") },
        ClientMessage::Close { session: 1 },
        ClientMessage::Stats { request: 1, format: StatsFormat::Json },
        ClientMessage::StartRecording { request: 1 },
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
    ];
    messages.iter().map(encoded).collect()
}
