//! Keys that come again, in contexts made for one message each: the same bytes as the default provider's, whatever is kept and whatever had to go.

mod common;

use common::*;
use std::ffi::c_int;
use std::thread;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn OPENSSL_thread_stop();
}

const NAMES: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];

/// Ciphers of a provider, in the order of [`NAMES`].
struct Side([Cipher; 3]);
// SAFETY: ciphers count their references atomically and are never written.
unsafe impl Send for Side {}
// SAFETY: as above.
unsafe impl Sync for Side {}

fn sides(library: &Library) -> [Side; 2] {
    ["bywash", "default"].map(|provider| Side(NAMES.map(|name| library.cipher(name, provider))))
}

/// A message as both sides do it.
struct Message {
    kind: usize,
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    text: Vec<u8>,
}

impl Message {
    /// Under one of the keys.
    fn random(random: &mut Random, keys: usize) -> Self {
        let (kind, number) = (random.below(3), random.below(keys));
        // Keys of other lengths that begin alike.
        let key = (0..16 + 8 * kind).map(|at| (number * 7 + at) as u8).collect();
        let iv = if random.one_in(8) { 1 + random.below(40) } else { 12 };
        let aad = random.below(40);
        let text = if random.one_in(16) { random.below(20_000) } else { random.below(200) };
        Self { kind, key, iv: random.bytes(iv), aad: random.bytes(aad), text: random.bytes(text) }
    }

    fn keyed(&self, context: &Context, side: &Side, encrypt: bool) -> bool {
        let done = context.init(Some(&side.0[self.kind]), None, None, encrypt.into());
        done && context.set_ivlen(self.iv.len()) && context.init(None, Some(&self.key), Some(&self.iv), -1)
    }

    /// Text and tag, in this context.
    fn seal_in(&self, context: &Context, side: &Side) -> Option<(Vec<u8>, Vec<u8>)> {
        assert!(self.keyed(context, side, true), "{}", last_error());
        context.aad(&self.aad)?;
        let sealed = context.update(&self.text)?;
        context.finish()?;
        Some((sealed, context.tag(16)?))
    }

    fn open_in(&self, context: &Context, side: &Side, sealed: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
        assert!(self.keyed(context, side, false), "{}", last_error());
        assert!(context.set_tag(tag));
        context.aad(&self.aad)?;
        let opened = context.update(sealed)?;
        context.finish().map(|_| opened)
    }
}

/// So many random messages, among them forged ones, ones that are not finished, contexts that go on with another key, copies and contexts without a key.
fn agree(sides: &[Side; 2], seed: u64, keys: usize, messages: usize) {
    let mut random = Random::new(seed);
    let [ours, theirs] = sides;
    // One for each cipher: libcrypto 3.0 takes a context that changes its cipher for one with the old key length.
    let mut lasting = [(); 3].map(|()| Context::new());
    for number in 0..messages {
        let message = Message::random(&mut random, keys);
        let place = format!("message {number}, {} bytes under {keys} keys, seed {seed}", message.text.len());
        let expected = message.seal_in(&Context::new(), theirs).unwrap();
        let lasts = random.one_in(4);
        let fresh = Context::new();
        let context = if lasts { &lasting[message.kind] } else { &fresh };
        match random.below(8) {
            0 => assert!(message.keyed(context, ours, true)),
            1 => {
                assert!(message.keyed(context, ours, true));
                context.aad(&message.aad);
                let copy = context.copy();
                assert_eq!(copy.update(&message.text), Some(expected.0.clone()), "{place}: a copy");
                assert_eq!(context.update(&message.text), Some(expected.0), "{place}: copied from");
            }
            2 => {
                let mut forged = expected.1.clone();
                forged[random.below(16)] ^= 1;
                assert_eq!(message.open_in(context, ours, &expected.0, &forged), None, "{place}: a forged tag");
                take_code(); // Not in words: libcrypto finds those under a lock, which a child may have been forked with.
            }
            3 | 4 => assert_eq!(message.open_in(context, ours, &expected.0, &expected.1), Some(message.text.clone()), "{place}: opened"),
            _ => assert_eq!(message.seal_in(context, ours), Some(expected), "{place}: sealed"),
        }
        if random.one_in(50) {
            lasting[message.kind] = Context::new();
        }
    }
}

#[test]
fn random_messages_are_the_default_providers_whatever_is_kept() {
    for (keep, keys) in [(0, 3), (1, 1), (1, 2), (4, 3), (4, 9), (64, 20), (64, 200)] {
        let library = Library::keeping(keep);
        agree(&sides(&library), 40 + keys as u64, keys, 1500);
    }
}

#[test]
fn threads_each_with_their_own_and_contexts_that_change_threads() {
    let library = Library::keeping(4);
    let sides = sides(&library);
    thread::scope(|scope| {
        for seed in 0..4 {
            let sides = &sides;
            scope.spawn(move || agree(sides, 100 + seed, 6, 1000));
        }
    });
    /// A context for another thread.
    struct Sent(Context);
    // SAFETY: a context may be used in any thread, in one at a time.
    unsafe impl Send for Sent {}
    let [ours, theirs] = &sides;
    let mut random = Random::new(7);
    for _ in 0..200 {
        let message = Message::random(&mut random, 2);
        let sent = Sent(Context::new());
        assert!(message.keyed(&sent.0, ours, true));
        let sealed = thread::scope(|scope| {
            let message = &message;
            let work = move || {
                let Sent(context) = { sent };
                context.aad(&message.aad);
                (context.update(&message.text), context.finish(), context.tag(16))
            };
            scope.spawn(work).join().unwrap()
        });
        let (text, tag) = message.seal_in(&Context::new(), theirs).unwrap();
        assert_eq!((sealed.0, sealed.2), (Some(text), Some(tag)));
        // SAFETY: wipes what libcrypto has for this thread; the next call makes it anew.
        unsafe { OPENSSL_thread_stop() };
    }
}

#[test]
fn parents_and_children_go_on_with_what_is_kept() {
    let library = Library::keeping(4);
    let sides = sides(&library);
    // Other threads are at it while this one forks.
    thread::scope(|scope| {
        let beside = scope.spawn(|| agree(&sides, 60, 3, 3000));
        agree(&sides, 61, 3, 200);
        for seed in 0..8 {
            // SAFETY: the child runs this code alone and leaves by `_exit`, which runs no destructor of the parent's.
            let child = unsafe { fork() };
            let works = std::panic::catch_unwind(|| agree(&sides, 70 + seed, 3, 200)).is_ok();
            if child == 0 {
                // SAFETY: ends this process at once.
                unsafe { _exit(if works { 42 } else { 1 }) };
            }
            let mut status = 0;
            // SAFETY: our own child, and room for its status.
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            assert!(works && status >> 8 & 0xFF == 42, "parent {works}, child's status {status:#x}");
        }
        beside.join().unwrap();
    });
}

#[test]
fn a_setting_that_cannot_be_read_is_left_at_its_default() {
    let library = Library::keeping(100_000);
    agree(&sides(&library), 90, 5, 300);
}
