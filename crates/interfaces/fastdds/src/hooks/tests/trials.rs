//! What forged messages have derived, and what it drives out: nothing.

use super::*;
use crate::kept;

/// A key and behind it the message: what the key of a session is derived from.
fn name(session: u32) -> Vec<u8> {
    [&KEY[..32], b"SessionKey", &[8; 32], &session.to_be_bytes()].concat()
}

/// A session's key, as Fast DDS derives it.
fn derived(functions: &Real, session: u32) -> [u8; 32] {
    let (name, mut value, mut len) = (name(session), [0; 32], 32);
    let (key, message) = name.split_at(32);
    // SAFETY: objects of its own, key and message of the lengths that are said, and room for a digest.
    unsafe {
        let key = (functions.EVP_PKEY_new_mac_key)(855, ptr::null_mut(), key.as_ptr(), 32);
        let context = (functions.EVP_MD_CTX_new)();
        assert_eq!((functions.EVP_DigestSignInit)(context, ptr::null_mut(), (functions.EVP_sha256)(), ptr::null_mut(), key), 1);
        assert_eq!((functions.EVP_DigestSignUpdate)(context, message.as_ptr().cast(), message.len()), 1);
        assert_eq!((functions.EVP_DigestSignFinal)(context, value.as_mut_ptr(), &raw mut len), 1);
        (functions.EVP_MD_CTX_free)(context);
        (functions.EVP_PKEY_free)(key);
    }
    value
}

/// A message of one block under that key.
fn sealed(functions: &Real, key: &[u8; 32]) -> ([u8; 16], [u8; 16]) {
    let (mut text, mut tag, mut written) = ([0; 16], [0; 16], 0);
    // SAFETY: as above.
    unsafe {
        let context = (functions.EVP_CIPHER_CTX_new)();
        assert_eq!((functions.EVP_EncryptInit)(context, (functions.EVP_aes_256_gcm)(), key.as_ptr(), IV.as_ptr()), 1);
        assert_eq!((functions.EVP_EncryptUpdate)(context, text.as_mut_ptr(), &raw mut written, TEXT.as_ptr(), 16), 1);
        assert_eq!((functions.EVP_EncryptFinal)(context, ptr::null_mut(), &raw mut written), 1);
        assert_eq!((functions.EVP_CIPHER_CTX_ctrl)(context, GET_TAG, 16, tag.as_mut_ptr().cast()), 1);
        (functions.EVP_CIPHER_CTX_free)(context);
    }
    (text, tag)
}

/// Whether a message is authentic; in a context of ours, or in one that has become libcrypto's.
fn opened(functions: &Real, key: &[u8; 32], (text, mut tag): ([u8; 16], [u8; 16]), is_ours: bool) -> bool {
    let (mut out, mut written) = ([0; 32], 0);
    // SAFETY: as above.
    unsafe {
        let context = (functions.EVP_CIPHER_CTX_new)();
        if !is_ours {
            assert_eq!((functions.EVP_DecryptInit)(context, (functions.EVP_aes_256_gcm)(), ptr::null(), ptr::null()), 1);
        }
        assert_eq!((functions.EVP_DecryptInit)(context, (functions.EVP_aes_256_gcm)(), key.as_ptr(), IV.as_ptr()), 1);
        assert_eq!((functions.EVP_DecryptUpdate)(context, out.as_mut_ptr(), &raw mut written, text.as_ptr(), 16), 1);
        assert_eq!((functions.EVP_CIPHER_CTX_ctrl)(context, SET_TAG, 16, tag.as_mut_ptr().cast()), 1);
        let done = (functions.EVP_DecryptFinal)(context, out.as_mut_ptr(), &raw mut written);
        (functions.EVP_CIPHER_CTX_free)(context);
        done == 1
    }
}

#[test]
fn what_is_derived_is_kept_when_a_message_under_it_is_authentic() {
    let _some = HANDLES.read();
    let [real, ours] = both();
    for (is_ours, session) in [(true, 1), (false, 2)] {
        let message = sealed(&real, &derived(&real, session));
        let forged = (message.0, [0; 16]);
        for _ in 0..4 {
            assert!(!opened(&ours, &derived(&ours, session), forged, is_ours));
            assert!(!kept::is_kept(&name(session)), "forged, in a context of ours: {is_ours}");
        }
        assert!(opened(&ours, &derived(&ours, session), message, is_ours));
        assert!(kept::is_kept(&name(session)), "in a context of ours: {is_ours}");
    }
    // What is sent from here is good as well.
    sealed(&ours, &derived(&ours, 3));
    assert!(kept::is_kept(&name(3)));
}

#[test]
fn forged_messages_drive_out_nothing_however_often_they_come() {
    let _some = HANDLES.read();
    let [real, ours] = both();
    // More than may be kept, so that the table is full.
    for session in 0..400 {
        assert!(opened(&ours, &derived(&ours, session), sealed(&real, &derived(&real, session)), true));
        assert!(kept::is_kept(&name(session)));
    }
    let kept_now = || (0..400).filter(|session| kept::is_kept(&name(*session))).collect::<Vec<u32>>();
    let before = kept_now();
    assert!(before.len() > 100, "{}", before.len());
    for session in 1000..4000 {
        for _ in 0..2 {
            assert!(!opened(&ours, &derived(&ours, session), ([1; 16], [2; 16]), true));
        }
    }
    assert_eq!(kept_now(), before);
}
