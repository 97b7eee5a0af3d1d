//! Keys: parts that engines understand, sessions opened from them, and the twin.
//!
//! A key comes to us in one of three ways, and what is missing is made only when something needs it:
//!
//! - *plain*: P-256, P-384 and X25519 keys in their usual dress. Their parts are kept, and many die without ever having had a twin
//!   (a TLS handshake's ephemeral keys and its peer's);
//! - of a vault: the twin has the public half, and private operations go to the broker (see [`vault`](super::vault));
//! - by the twin: all others. Their parts are asked of the twin when a first private operation wants a session.

use super::begun::Begun;
use super::parts::{Curve, Group, Parts};
use super::twin::{KeyFns, Twin, call};
use crate::ffi::OwnedParams;
use bywash_client::{Client, PublicKey, Session};
use bywash_core::{Algorithm, Key as CoreKey, KeyReference, SessionParams};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::NonNull;
use once_cell::race::OnceBox;
use std::sync::{Arc, PoisonError, RwLock};

/// Which of our key managers a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rsa,
    Ec,
    X25519,
    Ed25519,
}

/// A kind as a type, for the functions that libcrypto calls without any object of ours.
pub(super) trait OfKind {
    const KIND: Kind;
}
macro_rules! of_kind {
    ($($kind:ident)*) => { $(
        pub(super) struct $kind;
        impl OfKind for $kind {
            const KIND: Kind = Kind::$kind;
        }
    )* };
}
of_kind! { Rsa Ec X25519 Ed25519 }

impl Kind {
    /// The twin's key manager.
    pub(super) fn fns(self) -> Option<&'static KeyFns> {
        let twin = Twin::get()?;
        Some(match self {
            Kind::Rsa => &twin.rsa,
            Kind::Ec => &twin.ec,
            Kind::X25519 => &twin.x25519,
            Kind::Ed25519 => &twin.ed25519,
        })
    }
}

/// The twin's key.
pub(super) struct TwinKey {
    fns: &'static KeyFns,
    data: NonNull<c_void>,
}

// SAFETY: the default provider's keys are shared by threads as any provider's are: read by many, changed by one at a time (EVP_PKEY(3)).
unsafe impl Send for TwinKey {}
// SAFETY: as above.
unsafe impl Sync for TwinKey {}

impl TwinKey {
    /// Takes over what one of the twin's functions made.
    pub(super) fn adopt(fns: &'static KeyFns, data: *mut c_void) -> Option<Self> {
        Some(Self { fns, data: NonNull::new(data)? })
    }

    /// An empty one.
    fn new(kind: Kind) -> Option<Self> {
        let twin = Twin::get()?;
        let fns = kind.fns()?;
        Self::adopt(fns, call!(fns, new(twin.provctx), else return None))
    }

    /// One made of parameters.
    pub(super) fn import(kind: Kind, selection: c_int, params: &mut OwnedParams) -> Option<Self> {
        let twin = Self::new(kind)?;
        let done = call!(twin.fns, import(twin.data(), selection, params.as_ptr()), else 0);
        (done == 1).then_some(twin)
    }

    /// One with these parts.
    fn with(kind: Kind, parts: Option<&Parts>) -> Option<Self> {
        if let Some(Parts::Curve(curve)) = parts
            && let Some((selection, mut params)) = curve.to_params()
        {
            return Self::import(kind, selection, &mut params);
        }
        Self::new(kind)
    }

    /// The functions that go with it.
    pub(super) fn fns(&self) -> &'static KeyFns {
        self.fns
    }

    /// The key as the twin's functions take it.
    pub(super) fn data(&self) -> *mut c_void {
        self.data.as_ptr()
    }
}

impl Drop for TwinKey {
    fn drop(&mut self) {
        call!(self.fns, free(self.data()), else ());
    }
}

/// Signatures kept begun with a key. In a handshake libssl asks for one digest by two names.
const BEGUN_MAX: usize = 4;

/// A key. It never changes; what libcrypto calls changing a key puts another in its [`Handle`]. What is made of it at first use is made
/// without a lock, which the child of a fork would wait for.
pub(super) struct Key {
    kind: Kind,
    client: Client,
    /// The private half is in a broker's vault; the twin has the public half alone.
    vault: Option<KeyReference>,
    /// Known without the twin, and all there is to know.
    plain: Option<Parts>,
    twin: OnceBox<Option<Arc<TwinKey>>>,
    found: OnceBox<Option<Parts>>,
    private: OnceBox<Option<Session>>,
    agreement: OnceBox<Option<Session>>,
    verification: OnceBox<Option<Session>>,
    begun: [OnceBox<Arc<Begun>>; BEGUN_MAX],
}

impl Key {
    fn make(kind: Kind, client: Client, plain: Option<Parts>, twin: OnceBox<Option<Arc<TwinKey>>>) -> Arc<Self> {
        let (found, private, agreement, verification, begun) = Default::default();
        Arc::new(Self { kind, client, vault: None, plain, twin, found, private, agreement, verification, begun })
    }

    /// A key of a vault, with a twin of its public half.
    pub(super) fn of_vault(kind: Kind, client: Client, reference: KeyReference, twin: Arc<TwinKey>) -> Arc<Self> {
        let (found, private, agreement, verification, begun) = Default::default();
        let twin = OnceBox::with_value(Box::new(Some(twin)));
        Arc::new(Self { kind, client, vault: Some(reference), plain: None, twin, found, private, agreement, verification, begun })
    }

    /// The same key with another twin, which holds what was changed.
    pub(super) fn with_twin(&self, twin: Arc<TwinKey>) -> Arc<Self> {
        match &self.vault {
            Some(reference) => Self::of_vault(self.kind, self.client.clone(), reference.clone(), twin),
            None => Self::of_twin(self.kind, self.client.clone(), twin),
        }
    }

    /// What names it, if its private half is in a broker's vault.
    pub(super) fn vault(&self) -> Option<&KeyReference> {
        self.vault.as_ref()
    }

    /// A key without anything in it.
    pub(super) fn empty(kind: Kind, client: Client) -> Arc<Self> {
        Self::make(kind, client, None, OnceBox::new())
    }

    /// A key made of its parts.
    pub(super) fn plain(kind: Kind, client: Client, curve: Curve) -> Arc<Self> {
        Self::make(kind, client, Some(Parts::Curve(curve)), OnceBox::new())
    }

    /// A key that the twin has made.
    pub(super) fn of_twin(kind: Kind, client: Client, twin: Arc<TwinKey>) -> Arc<Self> {
        Self::make(kind, client, None, OnceBox::with_value(Box::new(Some(twin))))
    }

    /// Which key manager it belongs to.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Access to engines.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Its parts, if they are all there is to know of it.
    pub(super) fn as_plain(&self) -> Option<&Curve> {
        match &self.plain {
            Some(Parts::Curve(curve)) => Some(curve),
            _ => None,
        }
    }

    /// Whether nothing has been put into it yet.
    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_none() && self.twin.get().is_none()
    }

    /// Its twin, made now if need be; none only if memory or the default provider fails.
    pub(super) fn twin(&self) -> Option<&Arc<TwinKey>> {
        self.twin.get_or_init(|| Box::new(TwinKey::with(self.kind, self.plain.as_ref()).map(Arc::new))).as_ref()
    }

    /// A signature begun with it and this digest, once there is one.
    pub(super) fn begun(&self, digest: &CStr) -> Option<&Arc<Begun>> {
        self.begun.iter().map_while(OnceBox::get).find(|begun| begun.digest() == digest)
    }

    /// Whether a signature begun with it and this digest should be kept.
    pub(super) fn lacks_begun(&self, digest: &CStr) -> bool {
        self.begun(digest).is_none() && self.begun.iter().any(|place| place.get().is_none())
    }

    /// Keeps a signature that was begun with it, if there is room, and no other thread has come first with the same digest.
    pub(super) fn keep_begun(&self, begun: &Arc<Begun>) {
        _ = self.begun.iter().find(|place| match place.get() {
            Some(other) => other.digest() == begun.digest(),
            None => place.set(Box::new(begun.clone())).is_ok(),
        });
    }

    fn parts(&self) -> Option<&Parts> {
        if self.plain.is_some() {
            return self.plain.as_ref();
        }
        let find = || Parts::of_twin(self.kind, self.twin()?);
        self.found.get_or_init(|| Box::new(find())).as_ref()
    }

    /// The private exponent of an RSA key that engines know; none of a vault's.
    pub(super) fn private_exponent(&self) -> Option<&[u8]> {
        match self.parts()? {
            Parts::Rsa(_, key) => Some(&key.private_exponent),
            Parts::Curve(..) => None,
        }
    }

    fn curve(&self) -> Option<&Curve> {
        match self.parts()? {
            Parts::Curve(curve) => Some(curve),
            Parts::Rsa(..) => None,
        }
    }

    /// Its group, if engines know it.
    pub(super) fn group(&self) -> Option<Group> {
        Some(self.curve()?.group)
    }

    /// Its public value, if an engine can use it.
    pub(super) fn public(&self) -> Option<&[u8]> {
        self.curve()?.public.as_deref()
    }

    /// A session at the vault that has the key; it is opened there when it is first used.
    fn open_at_vault(&self, reference: &KeyReference, agreement: bool) -> Option<Session> {
        let kind = PublicKey::from_der(&reference.public)?.algorithm()?;
        let algorithm = if agreement { kind.agreement()? } else { kind.signature() };
        self.open(algorithm, CoreKey::Vault(reference.clone()))
    }

    fn open(&self, algorithm: Algorithm, key: CoreKey) -> Option<Session> {
        self.client.session(SessionParams::new(algorithm, key).ok()?).ok()
    }

    /// The session for RSA private operations, or for signatures on a curve. Opened once and kept; none means: the twin.
    pub(super) fn private_session(&self) -> Option<&Session> {
        let open = || match &self.vault {
            Some(reference) => self.open_at_vault(reference, false),
            None => self.open_private(),
        };
        self.private.get_or_init(|| Box::new(open())).as_ref()
    }

    fn open_private(&self) -> Option<Session> {
        match self.parts()? {
            Parts::Rsa(algorithm, key) => self.open(*algorithm, CoreKey::RsaPrivate(key.clone())),
            Parts::Curve(curve) => self.open(curve.group.signature()?, CoreKey::EcPrivate(curve.private.clone()?)),
        }
    }

    /// The session for key agreement.
    pub(super) fn agreement_session(&self) -> Option<&Session> {
        let open = || {
            if let Some(reference) = &self.vault {
                return self.open_at_vault(reference, true);
            }
            let curve = self.curve()?;
            self.open(curve.group.agreement()?, CoreKey::EcPrivate(curve.private.clone()?))
        };
        self.agreement.get_or_init(|| Box::new(open())).as_ref()
    }

    /// The session for ECDSA verification.
    pub(super) fn verification_session(&self) -> Option<&Session> {
        let open = || {
            let curve = self.curve()?;
            self.open(curve.group.verification()?, CoreKey::EcPublic(curve.public.clone()?))
        };
        self.verification.get_or_init(|| Box::new(open())).as_ref()
    }
}

/// What libcrypto holds as our key data.
pub(super) struct Handle(RwLock<Arc<Key>>);

impl Handle {
    /// Gives a key to libcrypto.
    pub(super) fn give(key: Arc<Key>) -> *mut c_void {
        Box::into_raw(Box::new(Self(RwLock::new(key)))).cast()
    }

    /// The key behind the pointer that libcrypto holds.
    ///
    /// # Safety
    /// `data` is null or came from [`give`](Self::give) and was not freed.
    pub(super) unsafe fn key(data: *const c_void) -> Option<Arc<Key>> {
        // SAFETY: passed on from the caller.
        let handle = unsafe { data.cast::<Self>().as_ref() }?;
        Some(handle.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Puts another key behind the pointer.
    ///
    /// # Safety
    /// As [`key`](Self::key).
    pub(super) unsafe fn replace(data: *const c_void, key: Arc<Key>) {
        // SAFETY: passed on from the caller.
        if let Some(handle) = unsafe { data.cast::<Self>().as_ref() } {
            *handle.0.write().unwrap_or_else(PoisonError::into_inner) = key;
        }
    }

    /// Frees it.
    ///
    /// # Safety
    /// As [`key`](Self::key), and it is not used again.
    pub(super) unsafe fn free(data: *mut c_void) {
        if !data.is_null() {
            // SAFETY: passed on from the caller.
            drop(unsafe { Box::from_raw(data.cast::<Self>()) });
        }
    }
}
