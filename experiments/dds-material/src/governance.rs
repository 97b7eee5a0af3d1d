//! What is protected, and how.

/// How one kind of message is protected (DDS Security 1.1 s9.4.1.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// Not at all.
    None,
    /// By a tag that everybody who holds the topic's key could have made.
    Sign,
    /// Encrypted, with such a tag.
    Encrypt,
    /// Signed, with a tag for each receiver beside it.
    SignWithOrigin,
    /// Encrypted, with a tag for each receiver beside it.
    EncryptWithOrigin,
}

impl Protection {
    /// The word in a governance document.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Sign => "SIGN",
            Self::Encrypt => "ENCRYPT",
            Self::SignWithOrigin => "SIGN_WITH_ORIGIN_AUTHENTICATION",
            Self::EncryptWithOrigin => "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
        }
    }

    /// Payloads know only these three words.
    pub(crate) fn word_for_data(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Sign | Self::SignWithOrigin => "SIGN",
            Self::Encrypt | Self::EncryptWithOrigin => "ENCRYPT",
        }
    }
}

/// The governance of a domain: one rule for all topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governance {
    /// What it is called in tables.
    pub name: &'static str,
    /// Discovery of topics that say they want it.
    pub discovery: Protection,
    /// Signs of life.
    pub liveliness: Protection,
    /// Whole RTPS messages.
    pub rtps: Protection,
    /// Submessages.
    pub metadata: Protection,
    /// Payloads; the origin cannot be authenticated here.
    pub data: Protection,
}

impl Governance {
    /// Participants prove who they are, and what they send is not protected.
    pub const OFF: Self = Self {
        name: "off",
        discovery: Protection::None,
        liveliness: Protection::None,
        rtps: Protection::None,
        metadata: Protection::None,
        data: Protection::None,
    };
    /// Payloads are encrypted.
    pub const DATA: Self = Self { name: "data", data: Protection::Encrypt, ..Self::OFF };
    /// Whole messages are encrypted.
    pub const RTPS: Self = Self { name: "rtps", rtps: Protection::Encrypt, ..Self::OFF };
    /// What `ros2 security generate_artifacts` writes: messages signed, submessages and payloads encrypted.
    pub const ROS2: Self = Self {
        name: "ros2",
        discovery: Protection::Encrypt,
        liveliness: Protection::Encrypt,
        rtps: Protection::Sign,
        metadata: Protection::Encrypt,
        data: Protection::Encrypt,
    };
    /// Encrypted three times over.
    pub const ALL: Self = Self { name: "all", rtps: Protection::Encrypt, ..Self::ROS2 };
    /// The same, with a tag for each receiver: what exercises every message of a cryptographic plug-in. Not one of the five that are measured.
    pub const ORIGIN: Self =
        Self { name: "origin", rtps: Protection::EncryptWithOrigin, metadata: Protection::EncryptWithOrigin, ..Self::ALL };

    /// The five that are measured.
    pub const FIVE: [Self; 5] = [Self::OFF, Self::DATA, Self::RTPS, Self::ROS2, Self::ALL];
}
