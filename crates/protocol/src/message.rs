//! The messages of the control socket: one a packet, postcard-encoded, at most [`MESSAGE_BYTES_MAX`] long.

use crate::keys::KeyCommand;
use crate::params::WireParams;
use bywash_core::{Algorithm, Error, Result};
use serde::{Deserialize, Serialize};

/// Version of the messages. Client and broker of different versions do not talk; both say so.
pub const VERSION: u16 = 4;
/// Longest message in bytes. An RSA-4096 private key needs 2.6 KiB, the longest HMAC key 4 KiB; bulk travels in descriptors.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Longest name (command, run) that is kept of a client.
pub const NAME_BYTES_MAX: usize = 64;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// To have requests computed: gets a region and the board page.
    Compute,
    /// To look on: statistics, recording. Gets the board page alone.
    Observe,
}

/// Which form statistics take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatsFormat {
    /// The text format of Prometheus.
    Prometheus,
    /// JSON.
    Json,
    /// The latest requests that were served, as a JSON list.
    Recent,
}

/// From client to broker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClientMessage<'a> {
    /// First of all. Pid and user are taken from the kernel, not from here. With a descriptor of another process (`pidfd_open(2)`) it computes on that one's behalf, whose
    /// pid and user go into accounts instead: what it may do stays its own.
    Hello {
        /// [`VERSION`].
        version: u16,
        /// What for.
        role: Role,
        /// The command's name, for people.
        comm: &'a str,
        /// The run that the process belongs to; for a private broker also the token that admits it.
        run: Option<&'a str>,
    },
    /// Opens a session; answered by `Opened` or `Refused`.
    Open {
        /// Chosen by the client, repeated in the answer.
        request: u32,
        /// Algorithm and key.
        #[serde(borrow)]
        params: WireParams<'a>,
    },
    /// Closes a session; not answered.
    Close {
        /// The session.
        session: u32,
    },
    /// Asks for statistics; answered by `Stats` with a descriptor of the text.
    Stats {
        /// Chosen by the client, repeated in the answer.
        request: u32,
        /// Which form.
        format: StatsFormat,
    },
    /// Starts a recording into the file whose descriptor comes along; answered by `Recording`.
    StartRecording {
        /// Chosen by the client, repeated in the answer.
        request: u32,
    },
    /// Ends the recording that this connection started; answered by `Recorded`. Closing the connection ends it too.
    StopRecording {
        /// Chosen by the client, repeated in the answer.
        request: u32,
    },
    /// Asks for the public half of a key in the vault, and whether this user may use it; answered by `Key`.
    Describe {
        /// Chosen by the client, repeated in the answer.
        request: u32,
        /// The key's name.
        name: &'a str,
        /// The public half that the client knows; without it, the current key of that name is meant.
        public: Option<&'a [u8]>,
    },
    /// Changes or lists the vault's keys, for its owner; answered by `Key` or `Keys`.
    Keys {
        /// Chosen by the client, repeated in the answer.
        request: u32,
        /// What to do.
        #[serde(borrow)]
        command: KeyCommand<'a>,
    },
}

/// From broker to client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerMessage {
    /// Answers `Hello`. Descriptors: the board page; for [`Role::Compute`] before it the region.
    Welcome {
        /// [`VERSION`].
        version: u16,
        /// The client's number in traces and accounts.
        client: u32,
        /// The broker's process.
        broker_pid: u32,
    },
    /// A session is open.
    Opened {
        /// From the request.
        request: u32,
        /// Its number in descriptors and `Close`.
        session: u32,
    },
    /// A request of this socket is refused; for `Hello` (request 0) the connection ends.
    Refused {
        /// From the request; 0 for `Hello`.
        request: u32,
        /// Why.
        refusal: Refusal,
    },
    /// Statistics are in the file whose descriptor comes along.
    Stats {
        /// From the request.
        request: u32,
        /// Length of the text in bytes.
        bytes: u64,
    },
    /// A recording has begun.
    Recording {
        /// From the request.
        request: u32,
    },
    /// A recording has ended.
    Recorded {
        /// From the request.
        request: u32,
        /// Records written.
        written: u64,
        /// Records lost because the recorder or the trace rings did not keep up.
        dropped: u64,
    },
    /// A key of the vault, as it is now.
    Key {
        /// From the request.
        request: u32,
        /// Its public half: a `SubjectPublicKeyInfo` in DER. Empty for a key that was removed.
        public: Vec<u8>,
    },
    /// The vault's keys are in the file whose descriptor comes along, as JSON: a list of [`KeyInfo`](crate::keys::KeyInfo).
    Keys {
        /// From the request.
        request: u32,
        /// Length of the text in bytes.
        bytes: u64,
    },
}

/// The quotas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quota {
    /// Connections of one user.
    Clients,
    /// Open sessions of one client.
    Sessions,
    /// Requests of one client in flight.
    InFlight,
    /// Control messages of one client a second.
    ControlRate,
    /// Connections of one user a second.
    ConnectRate,
    /// Mebibytes of one user's arenas.
    Arenas,
    /// Open sessions of all clients of one user.
    UserSessions,
}

impl Quota {
    /// Every quota.
    pub const ALL: [Self; 7] =
        [Self::Clients, Self::Sessions, Self::InFlight, Self::ControlRate, Self::ConnectRate, Self::Arenas, Self::UserSessions];

    /// What it counts, for people.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Clients => "connections of one user",
            Self::Sessions => "open sessions",
            Self::InFlight => "requests in flight",
            Self::ControlRate => "control messages a second",
            Self::ConnectRate => "connections of one user a second",
            Self::Arenas => "MiB of one user's arenas",
            Self::UserSessions => "open sessions of one user",
        }
    }

    /// The broker's setting that raises it.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Clients => "clients_per_uid_max",
            Self::Sessions => "sessions_per_client_max",
            Self::InFlight => "in_flight_max",
            Self::ControlRate => "control_rate_max",
            Self::ConnectRate => "connect_rate_max",
            Self::Arenas => "arena_mib_per_uid_max",
            Self::UserSessions => "sessions_per_uid_max",
        }
    }

    /// The error of having used it up.
    pub const fn error(self, limit: u64) -> Error {
        Error::Quota { what: self.what(), limit, setting: self.setting() }
    }
}

/// Why something is refused, in a form that travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The broker speaks another version.
    Version {
        /// The broker's.
        spoken: u16,
    },
    /// A quota is used up.
    Quota {
        /// Which.
        quota: Quota,
        /// The limit in force.
        limit: u64,
    },
    /// No engine of the broker does this algorithm.
    Unsupported {
        /// Its number.
        algorithm: u16,
    },
    /// The key passed the checks of lengths but no engine takes it.
    BadKey {
        /// The algorithm's number.
        algorithm: u16,
    },
    /// An engine failed.
    EngineFailed {
        /// Which, and what it said.
        reason: String,
    },
    /// The vault has no such key, or does not let this user use it.
    VaultKey {
        /// The key's name.
        name: String,
        /// What is wrong, and the way out.
        reason: String,
    },
    /// Anything else, in words.
    Unavailable {
        /// What, and the way out.
        what: String,
    },
}

impl Refusal {
    /// The refusal that tells of an error.
    pub fn of(error: &Error) -> Self {
        let quota = |what: &str| Quota::ALL.into_iter().find(|quota| quota.what() == what);
        match error {
            Error::Unsupported { algorithm, .. } => Self::Unsupported { algorithm: algorithm.number() },
            Error::BadKey { algorithm, .. } => Self::BadKey { algorithm: algorithm.number() },
            Error::VaultKey { name, reason } => Self::VaultKey { name: name.clone(), reason: reason.clone() },
            Error::EngineFailed { engine, reason } => Self::EngineFailed { reason: format!("{engine}: {reason}") },
            Error::Quota { what, limit, .. } if quota(what).is_some() => {
                quota(what).map_or_else(|| Self::Unavailable { what: error.to_string() }, |quota| Self::Quota { quota, limit: *limit })
            }
            other => Self::Unavailable { what: other.to_string() },
        }
    }

    /// The error that it tells of.
    pub fn into_error(self) -> Error {
        let unavailable = |what: String| Error::Unavailable { what };
        match self {
            Self::Version { spoken } => {
                unavailable(format!("the broker speaks protocol {spoken}, this client {VERSION}; use client and broker of one release"))
            }
            Self::Quota { quota, limit } => quota.error(limit),
            Self::Unsupported { algorithm } => match Algorithm::from_number(algorithm) {
                Some(algorithm) => Error::Unsupported { engine: "broker".into(), algorithm },
                None => unavailable(format!("the broker does not do algorithm number {algorithm}")),
            },
            Self::BadKey { algorithm } => match Algorithm::from_number(algorithm) {
                Some(algorithm) => Error::BadKey { algorithm, reason: "the broker's engines do not take it" },
                None => unavailable(format!("the broker does not do algorithm number {algorithm}")),
            },
            Self::VaultKey { name, reason } => Error::VaultKey { name, reason },
            Self::EngineFailed { reason } => Error::EngineFailed { engine: "broker".into(), reason },
            Self::Unavailable { what } => unavailable(what),
        }
    }
}

/// Encodes into the buffer; gives the length used.
///
/// # Errors
/// [`Error::Unavailable`] for a message that does not fit.
pub fn encode(message: &impl Serialize, into: &mut [u8]) -> Result<usize> {
    let too_long = |_| Error::Unavailable { what: format!("a control message longer than {MESSAGE_BYTES_MAX} bytes cannot be sent") };
    Ok(postcard::to_slice(message, into).map_err(too_long)?.len())
}

/// Decodes a whole packet; nothing may be left over.
///
/// # Errors
/// [`Error::Unavailable`] for anything that is no message of this version.
pub fn decode<'a, M: Deserialize<'a>>(packet: &'a [u8]) -> Result<M> {
    let bad = || Error::Unavailable { what: "a control message cannot be understood; use client and broker of one release".into() };
    let (message, rest) = postcard::take_from_bytes(packet).map_err(|_| bad())?;
    if rest.is_empty() { Ok(message) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::{Key, KeyReference, RsaPrivateKey, RsaPublicKey, SessionParams};
    use proptest::prelude::*;

    fn round_trip(params: &SessionParams) -> SessionParams {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let len = encode(&ClientMessage::Open { request: 3, params: WireParams::new(params).unwrap() }, &mut buffer).unwrap();
        match decode(&buffer[..len]).unwrap() {
            ClientMessage::Open { request: 3, params } => params.check().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_key_travels() {
        let public = RsaPublicKey { modulus: vec![0x81; 512], exponent: vec![1, 0, 1] };
        let part = || vec![7; 256].into();
        let private = RsaPrivateKey {
            public: public.clone(),
            private_exponent: vec![9; 512].into(),
            prime1: part(),
            prime2: part(),
            exponent1: part(),
            exponent2: part(),
            coefficient: part(),
        };
        for (algorithm, key) in [
            (Algorithm::Sha256, Key::None),
            (Algorithm::HmacSha512, Key::Symmetric(vec![1; 4096].into())),
            (Algorithm::Rsa4096Public, Key::RsaPublic(public)),
            (Algorithm::Rsa4096Private, Key::RsaPrivate(private)),
            (Algorithm::X25519, Key::EcPrivate(vec![3; 32].into())),
            (Algorithm::EcdsaP256Verify, Key::EcPublic(vec![4; 65])),
            (Algorithm::EcdsaP384Verify, Key::EcPublic(vec![4; 97])),
            (Algorithm::Ed25519Sign, Key::EcPrivate(vec![3; 32].into())),
            (Algorithm::EcdsaP256Sign, Key::Vault(KeyReference { name: "web".into(), public: vec![5; 91] })),
        ] {
            let params = SessionParams::new(algorithm, key).unwrap();
            assert_eq!(round_trip(&params), params);
        }
        let gcm = SessionParams::new(Algorithm::Aes128Gcm, Key::Symmetric((&[1; 16]).into())).unwrap().with_tag_len(12).unwrap();
        assert_eq!(round_trip(&gcm).tag_len(), 12);
        assert!(!format!("{:?}", WireParams::new(&gcm)).contains("[1, 1"), "keys are never printed");
    }

    #[test]
    fn refusals_tell_the_error_again() {
        for error in [
            Quota::Sessions.error(4096),
            Error::Unsupported { engine: "broker".into(), algorithm: Algorithm::X25519 },
            Error::Unavailable { what: "draining".into() },
            Error::VaultKey { name: "web".into(), reason: "there is no such key".into() },
        ] {
            assert_eq!(Refusal::of(&error).into_error(), error);
        }
        assert!(Refusal::Version { spoken: 9 }.into_error().to_string().contains("protocol 9"));
    }

    proptest! {
        #[test]
        fn no_packet_panics(packet in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(ClientMessage::Open { params, .. }) = decode(&packet) {
                let _ = params.check();
            }
            let _ = decode::<BrokerMessage>(&packet);
        }
    }
}
