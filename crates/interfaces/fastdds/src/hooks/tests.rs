//! Every call in every state, on our contexts and on libcrypto's: the same answers and bytes, and the same state afterwards.

use super::*;
use crate::real::Real;
use core::ffi::CStr;
use std::fmt::Write;
use std::sync::RwLock;

mod trials;

const KEY: [u8; 64] = [7; 64];
const IV: [u8; 12] = [9; 12];
const TEXT: [u8; 100] = [0x5a; 100];
const SET_IV_LEN: c_int = 9;
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;

/// Who takes all handles waits for those who count on having one.
static HANDLES: RwLock<()> = RwLock::new(());

/// libcrypto's functions, and ours in their place. The library looks for them in Fast DDS's own; here it is told.
fn both() -> [Real; 2] {
    static FOUND: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let library = *FOUND.get_or_init(|| {
        // SAFETY: a library that stays.
        let library = unsafe { libc::dlopen(c"libcrypto.so.3".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "these tests want libcrypto.so.3");
        library.expose_provenance()
    });
    let look_up = |name: &CStr| {
        // SAFETY: a library that is loaded, and a C string.
        let found = unsafe { libc::dlsym(ptr::with_exposed_provenance_mut(library), name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let real = Real::find(look_up).expect("libcrypto 3 has them all");
    real::set(real);
    let ours = Real {
        EVP_PKEY_new_mac_key,
        EVP_PKEY_free,
        EVP_MD_CTX_new,
        EVP_MD_CTX_reset,
        EVP_MD_CTX_free,
        EVP_DigestSignInit,
        EVP_DigestSignUpdate,
        EVP_DigestSignFinal,
        EVP_DigestVerifyInit,
        EVP_DigestVerifyUpdate,
        EVP_DigestVerifyFinal,
        EVP_DigestVerify,
        EVP_CIPHER_CTX_new,
        EVP_CIPHER_CTX_free,
        EVP_CIPHER_CTX_ctrl,
        EVP_EncryptInit,
        EVP_EncryptUpdate,
        EVP_EncryptFinal,
        EVP_DecryptInit,
        EVP_DecryptUpdate,
        EVP_DecryptFinal,
        EVP_DecryptFinal_ex,
        RAND_bytes,
        ..real
    };
    [real, ours]
}

/// What a sequence of calls says, so that two can be compared.
struct Said {
    functions: Real,
    context: Context,
    key: *mut c_void,
    text: String,
}

impl Said {
    fn note(&mut self, what: &str, result: c_int, bytes: &[u8]) {
        let _ = writeln!(self.text, "{what} {result} {bytes:02x?}");
    }
}

/// A call by its name.
type Call = (&'static str, fn(&mut Said));
/// A state by its name, and the calls that lead to it.
type State = (&'static str, &'static [fn(&mut Said)]);

fn init(said: &mut Said, encrypts: bool, whole: bool) {
    let functions = said.functions;
    let call = if encrypts { functions.EVP_EncryptInit } else { functions.EVP_DecryptInit };
    // SAFETY: a live context, and key and IV of the cipher's lengths.
    let result = unsafe {
        match whole {
            true => call(said.context, (functions.EVP_aes_256_gcm)(), KEY.as_ptr(), IV.as_ptr()),
            false => call(said.context, ptr::null(), ptr::null(), IV.as_ptr()),
        }
    };
    said.note("init", result, &[]);
}

fn update(said: &mut Said, encrypts: bool, is_text: bool, count: usize) {
    let functions = said.functions;
    let call = if encrypts { functions.EVP_EncryptUpdate } else { functions.EVP_DecryptUpdate };
    let (mut out, mut written) = ([0; TEXT.len() + 16], -1);
    let room = if is_text { out.as_mut_ptr() } else { ptr::null_mut() };
    // SAFETY: a live context, so much text, and room for more.
    let result = unsafe { call(said.context, room, &raw mut written, TEXT.as_ptr(), count as c_int) };
    said.note("update", result, if result == 1 { &out } else { &[] });
    let _ = writeln!(said.text, "written {}", if result == 1 { written } else { 0 });
}

fn finish(said: &mut Said, call: CipherFinal) {
    let (mut out, mut written) = ([0; 32], -1);
    // SAFETY: a live context, and room for a block.
    let result = unsafe { call(said.context, out.as_mut_ptr(), &raw mut written) };
    said.note("final", result, if result == 1 { &out } else { &[] });
}

fn control(said: &mut Said, what: c_int, number: c_int) {
    let mut bytes = [3; 32];
    // SAFETY: a live context, and room for a tag.
    let result = unsafe { (said.functions.EVP_CIPHER_CTX_ctrl)(said.context, what, number, bytes.as_mut_ptr().cast()) };
    said.note("control", c_int::from(result == 1), &bytes);
}

/// The way to each state of a cipher context.
const CIPHER_STATES: [State; 10] = [
    ("new", &[]),
    ("ready to encrypt", &[|said| init(said, true, true)]),
    ("ready to decrypt", &[|said| init(said, false, true)]),
    ("within associated data", &[|said| init(said, true, true), |said| update(said, true, false, 21)]),
    ("within text", &[|said| init(said, true, true), |said| update(said, true, true, 21)]),
    ("within text that came", &[|said| init(said, false, true), |said| update(said, false, true, 21)]),
    (
        "within text that came, with its tag",
        &[|said| init(said, false, true), |said| update(said, false, true, 21), |said| control(said, SET_TAG, 16)],
    ),
    ("ended", &[|said| init(said, true, true), |said| update(said, true, true, 21), |said| finish(said, said.functions.EVP_EncryptFinal)]),
    (
        "failed",
        &[
            |said| init(said, false, true),
            |said| update(said, false, true, 21),
            |said| control(said, SET_TAG, 16),
            |said| finish(said, said.functions.EVP_DecryptFinal),
        ],
    ),
    ("libcrypto's", &[|said| control(said, SET_IV_LEN, 12), |said| init(said, true, true)]),
];

const CIPHER_CALLS: [Call; 22] = [
    ("encrypt init", |said| init(said, true, true)),
    ("decrypt init", |said| init(said, false, true)),
    ("init with an IV alone", |said| init(said, true, false)),
    ("encrypt text", |said| update(said, true, true, 100)),
    ("encrypt nothing", |said| update(said, true, true, 0)),
    ("encrypt two pieces", |said| {
        update(said, true, true, 5);
        update(said, true, true, 60);
    }),
    ("encrypt, associated data", |said| update(said, true, false, 100)),
    ("decrypt text", |said| update(said, false, true, 100)),
    ("decrypt nothing", |said| update(said, false, true, 0)),
    ("decrypt, associated data", |said| update(said, false, false, 33)),
    ("end encryption", |said| finish(said, said.functions.EVP_EncryptFinal)),
    ("end decryption", |said| finish(said, said.functions.EVP_DecryptFinal)),
    ("end decryption, the other name", |said| finish(said, said.functions.EVP_DecryptFinal_ex)),
    ("end twice", |said| {
        finish(said, said.functions.EVP_EncryptFinal);
        finish(said, said.functions.EVP_EncryptFinal);
    }),
    ("get the tag", |said| control(said, GET_TAG, 16)),
    ("get a short tag", |said| control(said, GET_TAG, 4)),
    ("get no tag", |said| control(said, GET_TAG, 0)),
    ("get too long a tag", |said| control(said, GET_TAG, 17)),
    ("set a tag", |said| control(said, SET_TAG, 16)),
    ("set a short tag", |said| control(said, SET_TAG, 4)),
    ("set too long a tag", |said| control(said, SET_TAG, 17)),
    ("set the IV's length", |said| control(said, SET_IV_LEN, 12)),
];

/// What libcrypto does and we do not, as README.md has it: once a byte has been enciphered a context cannot become libcrypto's; and after a wrong tag it takes
/// a new init and no more text.
fn is_known(state: &str, call: &str) -> bool {
    if state == "failed" && matches!(call, "decrypt text" | "set a tag" | "set a short tag") {
        return true;
    }
    let begun = !matches!(state, "new" | "ready to encrypt" | "ready to decrypt" | "libcrypto's");
    let encrypts = matches!(state, "within associated data" | "within text" | "ended");
    let other_way = if encrypts { call.contains("decrypt") } else { call.contains("encrypt") || call == "end twice" };
    begun && (matches!(call, "init with an IV alone" | "set the IV's length") || (other_way && !call.ends_with(" init")))
}

/// A whole message in a context in whatever state: what an error leaves behind is gone.
fn whole_message(said: &mut Said) {
    init(said, true, true);
    update(said, true, false, 17);
    update(said, true, true, 100);
    finish(said, said.functions.EVP_EncryptFinal);
    control(said, GET_TAG, 16);
}

fn cipher_said(functions: Real, way: &[fn(&mut Said)], call: fn(&mut Said)) -> String {
    // SAFETY: takes nothing.
    let context = unsafe { (functions.EVP_CIPHER_CTX_new)() };
    let mut said = Said { functions, context, key: ptr::null_mut(), text: String::new() };
    way.iter().for_each(|step| step(&mut said));
    call(&mut said);
    whole_message(&mut said);
    // SAFETY: live until now.
    unsafe { (functions.EVP_CIPHER_CTX_free)(context) };
    said.text
}

#[test]
fn every_call_in_every_state_of_a_cipher_context() {
    let [real, ours] = both();
    let mut differ = Vec::new();
    for (state, way) in CIPHER_STATES {
        for (name, call) in CIPHER_CALLS {
            let (expected, found) = (cipher_said(real, way, call), cipher_said(ours, way, call));
            let message = |text: &str| text.lines().rev().take(7).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(message(&expected), message(&found), "a message after: {state}, {name}");
            if expected != found && !is_known(state, name) {
                differ.push(format!("{state}, {name}:\nlibcrypto\n{expected}ours\n{found}"));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn sign(said: &mut Said, digest: *const c_void) {
    // SAFETY: a live context and a live key.
    let result = unsafe { (said.functions.EVP_DigestSignInit)(said.context, ptr::null_mut(), digest, ptr::null_mut(), said.key) };
    said.note("sign", result, &[]);
}

fn sha256(said: &mut Said) {
    sign(said, real::get().1.sha256);
}

fn digest(said: &mut Said, count: usize) {
    // SAFETY: a live context, and so much text.
    let result = unsafe { (said.functions.EVP_DigestSignUpdate)(said.context, TEXT.as_ptr().cast(), count) };
    said.note("digest", result, &[]);
}

fn value(said: &mut Said, room: Option<usize>) {
    let (mut bytes, mut len) = ([0; 64], room.unwrap_or(0));
    let out = if room.is_some() { bytes.as_mut_ptr() } else { ptr::null_mut() };
    // SAFETY: a live context, and as much room as is said.
    let result = unsafe { (said.functions.EVP_DigestSignFinal)(said.context, out, &raw mut len) };
    said.note("value", c_int::from(result == 1), if result == 1 { &bytes } else { &[] });
    let _ = writeln!(said.text, "length {}", if result == 1 { len } else { 0 });
}

const MAC_STATES: [State; 6] = [
    ("begun", &[sha256]),
    ("within a message", &[sha256, |said| digest(said, 40)]),
    ("at the longest message", &[sha256, |said| digest(said, 96)]),
    ("with its value given", &[sha256, |said| digest(said, 40), |said| value(said, None), |said| value(said, Some(32))]),
    ("libcrypto's", &[sha256, |said| digest(said, 100)]),
    (
        "reset",
        &[
            sha256,
            |said| digest(said, 40),
            |said| {
                // SAFETY: a live context.
                let result = unsafe { (said.functions.EVP_MD_CTX_reset)(said.context) };
                said.note("reset", result, &[]);
            },
            sha256,
        ],
    ),
];

const MAC_CALLS: [Call; 9] = [
    ("begin again", sha256),
    ("a short piece", |said| digest(said, 4)),
    ("a piece that is too long", |said| digest(said, 100)),
    ("many pieces", |said| (0..100).for_each(|_| digest(said, 3))),
    ("nothing", |said| digest(said, 0)),
    ("ask for the length", |said| value(said, None)),
    ("give the value", |said| value(said, Some(64))),
    ("give it with no room", |said| value(said, Some(31))),
    ("give it twice", |said| {
        value(said, Some(32));
        value(said, Some(32));
    }),
];

fn mac_said(functions: Real, key_len: c_int, way: &[fn(&mut Said)], call: fn(&mut Said)) -> String {
    // SAFETY: a key of that length.
    let key = unsafe { (functions.EVP_PKEY_new_mac_key)(855, ptr::null_mut(), KEY.as_ptr(), key_len) };
    // SAFETY: takes nothing.
    let context = unsafe { (functions.EVP_MD_CTX_new)() };
    let mut said = Said { functions, context, key, text: String::new() };
    way.iter().for_each(|step| step(&mut said));
    call(&mut said);
    value(&mut said, Some(64));
    // SAFETY: live until now.
    unsafe {
        (functions.EVP_PKEY_free)(key);
        (functions.EVP_MD_CTX_free)(context);
    }
    said.text
}

#[test]
fn every_call_in_every_state_of_a_derivation() {
    let [real, ours] = both();
    for key_len in [1, 16, 32, 64] {
        for (state, way) in MAC_STATES {
            for (name, call) in MAC_CALLS {
                assert_eq!(mac_said(real, key_len, way, call), mac_said(ours, key_len, way, call), "{state}, {name}, a key of {key_len}");
            }
        }
    }
}

#[test]
fn handles_that_run_out_are_libcryptos() {
    let _all = HANDLES.write();
    let [real, ours] = both();
    // SAFETY: takes nothing.
    let contexts: Vec<Context> = (0..crate::slab::SLOTS + 10).map(|_| unsafe { (ours.EVP_CIPHER_CTX_new)() }).collect();
    let said = |functions, context| {
        let mut said = Said { functions, context, key: ptr::null_mut(), text: String::new() };
        whole_message(&mut said);
        said.text
    };
    // SAFETY: takes nothing.
    let expected = unsafe {
        let context = (real.EVP_CIPHER_CTX_new)();
        let expected = said(real, context);
        (real.EVP_CIPHER_CTX_free)(context);
        expected
    };
    for context in contexts {
        assert_eq!(said(ours, context), expected);
        // SAFETY: live until now.
        unsafe { (ours.EVP_CIPHER_CTX_free)(context) };
    }
}

#[test]
fn a_context_ends_in_another_thread_than_it_began_in() {
    let [real, ours] = both();
    let expected = cipher_said(real, &[], |_| {});
    for _ in 0..50 {
        // SAFETY: takes nothing.
        let context = unsafe { (ours.EVP_CIPHER_CTX_new)() };
        let mut said = Said { functions: ours, context, key: ptr::null_mut(), text: String::new() };
        init(&mut said, true, true);
        let place = context.expose_provenance();
        let found = std::thread::spawn(move || {
            let context = ptr::with_exposed_provenance_mut(place);
            let mut said = Said { functions: ours, context, key: ptr::null_mut(), text: String::new() };
            whole_message(&mut said);
            // SAFETY: live until now.
            unsafe { (ours.EVP_CIPHER_CTX_free)(context) };
            said.text
        });
        assert_eq!(found.join().unwrap(), expected);
    }
}

/// What Fast DDS 2.9.1 can be brought to do by a message: libcrypto reads on without end.
#[test]
fn a_negative_length_is_refused_and_reaches_nobody() {
    let [_, ours] = both();
    let (cipher, mut out, mut written) = (real::get().1.aes_128_gcm, [0; 128], 0);
    // New, ready, and an object of libcrypto's.
    for (is_begun, key) in [(false, ptr::null()), (true, KEY.as_ptr()), (true, ptr::null())] {
        // SAFETY: a context of its own, buffers of the lengths that are said, and a length that must not be believed.
        unsafe {
            let context = (ours.EVP_CIPHER_CTX_new)();
            if is_begun {
                assert_eq!((ours.EVP_DecryptInit)(context, cipher, key, if key.is_null() { key } else { IV.as_ptr() }), 1);
            }
            for update in [ours.EVP_EncryptUpdate, ours.EVP_DecryptUpdate] {
                assert_eq!(update(context, out.as_mut_ptr(), &raw mut written, TEXT.as_ptr(), -1), 0);
            }
            (ours.EVP_CIPHER_CTX_free)(context);
        }
    }
}
