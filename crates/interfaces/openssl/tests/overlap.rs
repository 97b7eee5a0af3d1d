//! Buffers that overlap in every way, cut into pieces at random: the bytes are those that separate buffers give.

mod common;

use bywash_openssl::ffi::libcrypto::EVP_CipherUpdate;
use common::*;

const NAMES: &[&str] = &["AES-128-CBC", "AES-256-ECB", "AES-256-CTR", "AES-128-GCM", "AES-256-XTS", "ChaCha20-Poly1305"];
/// Text lies in the middle of memory; output begins up to so far before or behind its input.
const MARGIN: usize = 64;

/// One update whose output begins `shift` bytes behind (or before) its input, over a copy of the text.
fn shifted(context: &Context, text: &[u8], shift: isize) -> Option<Vec<u8>> {
    let mut memory = vec![0; text.len() + 3 * MARGIN];
    memory[MARGIN..MARGIN + text.len()].copy_from_slice(text);
    let begin = MARGIN.checked_add_signed(shift).unwrap();
    let mut len = 0;
    let base = memory.as_mut_ptr();
    // SAFETY: both ranges lie in `memory`, and a margin is left for the block that may come out on top.
    let done = unsafe { EVP_CipherUpdate(context.0, base.add(begin), &raw mut len, base.add(MARGIN), text.len() as i32) };
    (done == 1).then(|| memory[begin..begin + len as usize].to_vec())
}

#[test]
fn overlapping_buffers_give_what_separate_ones_give() {
    // In place such updates are passed on to the default provider, and behave as they do there.
    for route in ["queue"] {
        let library = Library::new(route);
        let mut random = Random::new(30);
        for name in NAMES {
            let cipher = library.cipher(name, "bywash");
            for _ in 0..1500 {
                let (key, iv) = (random.bytes(cipher.number(c"keylen") as usize), random.bytes(16));
                let (encrypt, padding) = (random.below(2) as i32, random.one_in(2));
                let made = || {
                    let context = Context::new();
                    assert!(context.init(Some(&cipher), Some(&key), Some(&iv), encrypt));
                    context.set_padding(padding);
                    context
                };
                let (overlapping, apart) = (made(), made());
                for _ in 0..4 {
                    let len = 16 * usize::from(name.contains("XTS")) + random.below(100);
                    let (text, shift) = (random.bytes(len), random.below(97) as isize - 48);
                    let expected = apart.update(&text);
                    assert_eq!(
                        shifted(&overlapping, &text, shift),
                        expected,
                        "{name} {route}: {len} bytes, shift {shift}, encrypt {encrypt}"
                    );
                }
            }
        }
    }
}
