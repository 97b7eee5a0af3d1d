//! A cipher that is left to the default provider as a whole: in place, where the engine has none of its own that one caller can have to itself.
//!
//! The default provider's functions are called as libcrypto would call them: a jump more, and nothing is copied.

use super::accounts::Accounts;
use super::dispatch::{Cipher, Failed, Outcome};
use super::spare;
use super::spec::{Mode, Spec};
use super::work::Work;
use crate::delegate::{Delegate, call, functions};
use crate::ffi::ids::{cipher as id, operation};
use crate::ffi::{Param, guard};
use crate::provider::Provider;
use bywash_client::Client;
use bywash_core::{Algorithm, Direction, Solo};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use once_cell::race::OnceBox;

type Data = *mut c_void;
type Bytes = *const u8;
type Room = *mut u8;
type Size = *mut usize;

functions! {
    /// `OSSL_FUNC_cipher_*`.
    CipherFns {
        newctx = id::NEWCTX => (Data) -> Data;
        freectx = id::FREECTX => (Data);
        dupctx = id::DUPCTX => (Data) -> Data;
        encrypt_init = id::ENCRYPT_INIT => (Data, Bytes, usize, Bytes, usize, *const Param) -> c_int;
        decrypt_init = id::DECRYPT_INIT => (Data, Bytes, usize, Bytes, usize, *const Param) -> c_int;
        update = id::UPDATE => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        finish = id::FINAL => (Data, Room, Size, usize) -> c_int;
        cipher = id::CIPHER => (Data, Room, Size, usize, Bytes, usize) -> c_int;
        get_ctx_params = id::GET_CTX_PARAMS => (Data, *mut Param) -> c_int;
        set_ctx_params = id::SET_CTX_PARAMS => (Data, *const Param) -> c_int;
    }
}

/// The default provider's functions for a cipher.
fn fns(delegate: &Delegate, algorithm: Algorithm) -> Option<&'static CipherFns> {
    static FOUND: [OnceBox<Option<CipherFns>>; Algorithm::COUNT] = [const { OnceBox::new() }; Algorithm::COUNT];
    let find = || {
        let table = delegate.table(operation::CIPHER, algorithm.name())?;
        // SAFETY: the default provider's dispatch table for a cipher.
        Some(unsafe { CipherFns::of(table) })
    };
    FOUND.get(usize::from(algorithm.number()))?.get_or_init(|| Box::new(find())).as_ref()
}

/// For how many contexts of a thread the client is believed.
const BELIEVED_FOR: u8 = 64;

/// What a provider's client has said of the algorithms that it keeps to itself.
#[derive(Clone, Copy)]
struct Belief {
    /// [`Provider::number`]; an address may have been another's before.
    provider: u64,
    /// By [`Algorithm::number`].
    kept: u32,
    left: u8,
}

thread_local! {
    static BELIEF: Cell<Belief> = const { Cell::new(Belief { provider: 0, kept: 0, left: 0 }) };
}

/// [`Client::keeps`], asked for one context in [`BELIEVED_FOR`]: a handshake makes half a dozen, and what the answer depends on is in nobody's cache then.
fn keeps(provider: &Provider, client: &Client, algorithm: Algorithm) -> bool {
    let ask = || client.keeps(algorithm);
    let Some(bit) = 1_u32.checked_shl(algorithm.number().into()) else { return ask() };
    let mut belief = BELIEF.get();
    if belief.left == 0 || belief.provider != provider.number() {
        belief = Belief { provider: provider.number(), kept: 0, left: BELIEVED_FOR };
    }
    if belief.kept & bit == 0 && ask() {
        belief.kept |= bit;
    }
    belief.left -= 1;
    BELIEF.set(belief);
    belief.kept & bit != 0
}

/// A context of the default provider.
pub(super) struct Passed {
    fns: &'static CipherFns,
    context: NonNull<c_void>,
    client: &'static Client,
    algorithm: Algorithm,
    accounts: Accounts,
}

impl Passed {
    fn new(provider: &'static Provider, client: &'static Client, algorithm: Algorithm) -> Option<Self> {
        let delegate = provider.delegate()?;
        let fns = fns(delegate, algorithm)?;
        let context = NonNull::new(call!(fns, newctx(delegate.provctx()), else ptr::null_mut()))?;
        Some(Self { fns, context, client, algorithm, accounts: Accounts::new() })
    }

    fn data(&self) -> Data {
        self.context.as_ptr()
    }

    /// Counts text: what has output. True if the accounts are to be handed in.
    #[inline]
    fn count(&mut self, output: Room, len: usize) -> bool {
        !output.is_null() && self.accounts.add(len)
    }

    #[cold]
    fn flush(&mut self) {
        if let Some((operations, bytes)) = self.accounts.take() {
            // It may look for its broker, and not all ways here have a guard.
            guard((), || self.client.count(self.algorithm, operations, bytes));
        }
    }

    /// A new direction; key and IV are null or have the lengths beside them.
    #[inline]
    pub(super) fn init(&self, direction: Direction, key: (Bytes, usize), iv: (Bytes, usize), params: *const Param) -> c_int {
        match direction {
            Direction::Encrypt => call!(self.fns, encrypt_init(self.data(), key.0, key.1, iv.0, iv.1, params), else 0),
            _ => call!(self.fns, decrypt_init(self.data(), key.0, key.1, iv.0, iv.1, params), else 0),
        }
    }

    #[inline]
    pub(super) fn update(&mut self, output: Room, written: Size, room: usize, input: Bytes, len: usize) -> c_int {
        if self.count(output, len) {
            return self.update_with_accounts(output, written, room, input, len);
        }
        call!(self.fns, update(self.data(), output, written, room, input, len), else 0)
    }

    /// Apart, so that the others need no frame.
    #[cold]
    #[inline(never)]
    fn update_with_accounts(&mut self, output: Room, written: Size, room: usize, input: Bytes, len: usize) -> c_int {
        self.flush();
        call!(self.fns, update(self.data(), output, written, room, input, len), else 0)
    }

    #[inline]
    pub(super) fn finish(&self, output: Room, written: Size, room: usize) -> c_int {
        call!(self.fns, finish(self.data(), output, written, room), else 0)
    }

    #[inline]
    pub(super) fn step(&mut self, output: Room, written: Size, room: usize, input: Bytes, len: usize) -> c_int {
        if self.count(output, len) {
            self.flush();
        }
        call!(self.fns, cipher(self.data(), output, written, room, input, len), else 0)
    }

    #[inline]
    pub(super) fn get(&self, params: *mut Param) -> c_int {
        call!(self.fns, get_ctx_params(self.data(), params), else 0)
    }

    #[inline]
    pub(super) fn set(&self, params: *const Param) -> c_int {
        call!(self.fns, set_ctx_params(self.data(), params), else 0)
    }

    pub(super) fn duplicate(&self) -> Outcome<Self> {
        let Self { fns, client, algorithm, .. } = *self;
        let context = NonNull::new(call!(fns, dupctx(self.data()), else ptr::null_mut())).ok_or(Failed)?;
        Ok(Self { fns, context, client, algorithm, accounts: Accounts::new() })
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        call!(self.fns, freectx(self.data()), else ());
        self.flush();
    }
}

/// A context of our own, or one that is passed on.
pub(super) enum Held<C> {
    Own(C),
    Passed(Passed),
}

impl<C: Cipher> Held<C> {
    /// In place a cipher of the engine's for this context alone, or else the default provider's; where operations may go elsewhere, a session's.
    pub(super) fn new(provider: &'static Provider, spec: &'static Spec) -> Option<Box<Self>> {
        let client = provider.client()?;
        if !keeps(provider, client, spec.algorithm) {
            return Some(Box::new(Self::Own(own(provider, client, spec, None))));
        }
        let algorithm = spec.algorithm;
        let solo = spare::take(algorithm).or_else(|| client.solo(algorithm));
        if solo.is_none()
            && let Some(passed) = Passed::new(provider, client, algorithm)
        {
            return Some(Box::new(Self::Passed(passed)));
        }
        Some(Box::new(Self::Own(own(provider, client, spec, solo))))
    }

    pub(super) fn duplicate(&self) -> Outcome<Box<Self>> {
        Ok(match self {
            Self::Own(context) => Box::new(Self::Own(context.duplicate(context.work().duplicate()?)?)),
            Self::Passed(context) => Box::new(Self::Passed(context.duplicate()?)),
        })
    }
}

/// A context of our own, with a cipher to itself or else with sessions.
#[inline(always)]
fn own<C: Cipher>(provider: &'static Provider, client: &'static Client, spec: &'static Spec, solo: Option<Box<dyn Solo>>) -> C {
    // What the other modes make of a key takes hardly longer than to look for it.
    let keeper = Some(provider).filter(|provider| spec.mode == Mode::Gcm && provider.keeps_most() > 0);
    C::new(provider, spec, Work::new(client, keeper, spec.algorithm, solo))
}

#[cfg(test)]
mod tests {
    use super::super::gcm::Gcm;
    use super::super::io::Io;
    use super::*;
    use bywash_client::Route;

    const GCM: &Spec = &Spec::new(Algorithm::Aes256Gcm, Mode::Gcm);

    fn provider(route: Route) -> &'static Provider {
        Box::leak(Box::new(Provider::of_no_program(route)))
    }

    /// A context encrypts a message; its ciphertext.
    fn sealed(held: &mut Held<Gcm>, key: &[u8; 32]) -> [u8; 64] {
        let Held::Own(own) = held else { panic!("not ours") };
        own.init(Direction::Encrypt, Some(key), Some(&[2; 12])).unwrap();
        let mut text = [7; 64];
        let at = text.as_mut_ptr();
        // SAFETY: 64 bytes, in place, for the time of the call.
        own.update(&mut unsafe { Io::new(at, 64, at, 64) }).unwrap();
        text
    }

    #[test]
    fn in_place_a_context_has_a_cipher_to_itself_where_there_is_one() {
        let here = provider(Route::Here);
        let has_solo = here.client().unwrap().solo(Algorithm::Aes256Gcm).is_some();
        assert_eq!(matches!(Held::<Gcm>::new(here, GCM).as_deref(), Some(Held::Own(_))), has_solo);
        assert!(matches!(Held::<Gcm>::new(provider(Route::Queue), GCM).as_deref(), Some(Held::Own(_))), "its operations go to a queue");
    }

    #[test]
    fn a_cipher_goes_from_context_to_context_without_its_key() {
        let here = provider(Route::Here);
        if here.client().unwrap().solo(Algorithm::Aes256Gcm).is_none() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let mut first = Held::<Gcm>::new(here, GCM).unwrap();
        let expected = sealed(&mut first, &[1; 32]);
        drop(first);
        let spare = spare::take(Algorithm::Aes256Gcm).expect("what the context had is kept");
        assert_eq!(spare.key(), None);
        spare::keep(Algorithm::Aes256Gcm, spare);
        let mut second = Held::<Gcm>::new(here, GCM).unwrap();
        assert!(spare::take(Algorithm::Aes256Gcm).is_none(), "the next context has it");
        assert_ne!(sealed(&mut second, &[3; 32]), expected);
        assert_eq!(sealed(&mut second, &[1; 32]), expected);
        // More than are kept: the rest is given back to the allocator.
        let many: Vec<_> = (0..20).map(|_| Held::<Gcm>::new(here, GCM).unwrap()).collect();
        drop(many);
        assert!((0..20).filter(|_| spare::take(Algorithm::Aes256Gcm).is_some()).count() <= 8);
    }

    #[test]
    fn what_is_believed_of_a_provider_is_not_of_its_successor() {
        let mut provider = Provider::of_no_program(Route::Here);
        let keeps = |provider: &Provider| keeps(provider, provider.client().unwrap(), Algorithm::Aes128Xts);
        assert!(keeps(&provider));
        // At the same address.
        provider = Provider::of_no_program(Route::Queue);
        assert!(!keeps(&provider));
        provider = Provider::of_no_program(Route::Here);
        assert!(keeps(&provider));
    }
}
