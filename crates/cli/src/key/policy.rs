//! The options that say who may do what with a key.

use bywash_protocol::keys::{KeyPolicy, KeyUse};

/// Who may do what, how often.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyArgs {
    /// A user who may use the key, besides root and the broker's own; again for more
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
    /// A group whose members may use the key; again for more
    #[arg(long, value_name = "GID")]
    allow_gid: Vec<u32>,
    /// What the key may be used for: sign, derive (ECDH), decrypt (RSA; by its nature also any
    /// signature); again or with commas for more [default: sign]
    #[arg(long, value_name = "USE", value_delimiter = ',')]
    allow: Vec<KeyUse>,
    /// Uses a second, of all clients together [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
}

impl PolicyArgs {
    /// Users who may use the key.
    pub(super) fn uids(&self) -> &[u32] {
        &self.allow_uid
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        let Self { allow_uid, allow_gid, allow, rate } = self;
        allow_uid.is_empty() && allow_gid.is_empty() && allow.is_empty() && rate.is_none()
    }

    /// As the broker is told.
    pub(super) fn policy(&self) -> KeyPolicy {
        let mut uses = if self.allow.is_empty() { KeyPolicy::default().uses } else { self.allow.clone() };
        uses.sort();
        uses.dedup();
        KeyPolicy { uids: self.allow_uid.clone(), gids: self.allow_gid.clone(), uses, rate: self.rate }
    }
}
