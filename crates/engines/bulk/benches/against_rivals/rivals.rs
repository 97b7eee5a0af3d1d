//! The others: the system's OpenSSL, aws-lc-rs, RustCrypto, and Intel's ipsec-mb where it is installed (`apt-get install libipsec-mb1`).

use crate::{Mode, Work, ipsec};
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use aws_lc_rs::aead::{AES_128_GCM, AES_128_GCM_SIV, AES_256_GCM, AES_256_GCM_SIV, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

pub(crate) type Pointer = *mut c_void;

/// The crate `aegis` in Rust alone, with the instructions that the build allows.
macro_rules! aegis {
    ($cipher:ty, $key:ident, $len:literal) => {{
        let key: [u8; $len] = $key.try_into().expect("a key's length");
        Box::new(move |buffer: &mut [u8]| {
            black_box(<$cipher>::new(&key, black_box(&[1; $len])).encrypt_in_place(buffer, &[]));
        })
    }};
}
pub(crate) fn of(mode: Mode, key: &[u8]) -> Vec<(&'static str, Work)> {
    let mut all = Vec::new();
    all.extend(openssl(mode, key).map(|work| ("OpenSSL", work)));
    match mode {
        Mode::Gcm => {
            all.push(("aws-lc-rs", aws_lc_aead(mode, key)));
            let seal = if key.len() == 16 { rust_crypto_gcm::<Aes128Gcm>(key) } else { rust_crypto_gcm::<Aes256Gcm>(key) };
            all.push(("RustCrypto", seal));
        }
        Mode::Ctr => {
            all.push(("aws-lc-rs", aws_lc_ctr(key)));
        }
        Mode::ChaCha20Poly1305 | Mode::GcmSiv => all.push(("aws-lc-rs", aws_lc_aead(mode, key))),
        Mode::Aegis128L => all.push(("aegis", aegis!(aegis::aegis128l::Aegis128L::<16>, key, 16))),
        Mode::Aegis128X4 => all.push(("aegis", aegis!(aegis::aegis128x4::Aegis128X4::<16>, key, 16))),
        Mode::Aegis256 => all.push(("aegis", aegis!(aegis::aegis256::Aegis256::<16>, key, 32))),
        // aws-lc-rs has no CCM and no XTS, and its other modes allocate and pad.
        Mode::Ccm | Mode::Xts | Mode::Ecb | Mode::CbcDecrypt | Mode::CbcStreams => {}
    }
    all.extend(ipsec::of(mode, key).map(|work| ("ipsec-mb", work)));
    all
}

pub(crate) fn versions() -> String {
    // SAFETY: the function returns a static string.
    let openssl = unsafe {
        let version: unsafe extern "C" fn(c_int) -> *const c_char = symbol(libcrypto(), c"OpenSSL_version");
        CStr::from_ptr(version(0)).to_string_lossy().into_owned()
    };
    let Some(ipsec) = ipsec::library() else { return format!("{openssl}; no ipsec-mb") };
    // SAFETY: as above.
    unsafe {
        let version: unsafe extern "C" fn() -> *const c_char = symbol(ipsec, c"imb_get_version_str");
        format!("{openssl}; ipsec-mb {}", CStr::from_ptr(version()).to_string_lossy())
    }
}

fn libcrypto() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    // SAFETY: OpenSSL's initialisers have no requirements.
    LIBRARY.get_or_init(|| unsafe { Library::new("libcrypto.so.3").expect("OpenSSL 3 is installed") })
}

/// # Safety
/// `T` must be the function's type.
pub(crate) unsafe fn symbol<T: Copy>(library: &'static Library, name: &CStr) -> T {
    // SAFETY: as the caller says.
    unsafe { *library.get(name.to_bytes_with_nul()).unwrap_or_else(|_| panic!("{name:?} is in the library")) }
}

/// One context for all messages; `None` for what OpenSSL 3.0 lacks.
fn openssl(mode: Mode, key: &[u8]) -> Option<Work> {
    let cipher = match (mode, key.len()) {
        (Mode::GcmSiv | Mode::Aegis128L | Mode::Aegis128X4 | Mode::Aegis256, _) => return None,
        (Mode::Ccm, 16) => c"EVP_aes_128_ccm",
        (Mode::Ccm, _) => c"EVP_aes_256_ccm",
        (Mode::Gcm, 16) => c"EVP_aes_128_gcm",
        (Mode::Gcm, _) => c"EVP_aes_256_gcm",
        (Mode::Ctr, 16) => c"EVP_aes_128_ctr",
        (Mode::Ctr, _) => c"EVP_aes_256_ctr",
        (Mode::Xts, 32) => c"EVP_aes_128_xts",
        (Mode::Xts, _) => c"EVP_aes_256_xts",
        (Mode::ChaCha20Poly1305, _) => c"EVP_chacha20_poly1305",
        (Mode::Ecb, 16) => c"EVP_aes_128_ecb",
        (Mode::Ecb, _) => c"EVP_aes_256_ecb",
        (Mode::CbcDecrypt | Mode::CbcStreams, 16) => c"EVP_aes_128_cbc",
        (Mode::CbcDecrypt | Mode::CbcStreams, _) => c"EVP_aes_256_cbc",
    };
    const SET_IV_LEN: c_int = 0x9;
    const GET_TAG: c_int = 0x10;
    const SET_TAG: c_int = 0x11;
    type Init = unsafe extern "C" fn(Pointer, Pointer, Pointer, *const u8, *const u8, c_int) -> c_int;
    let encrypts = c_int::from(mode != Mode::CbcDecrypt);
    // SAFETY: the types are those of OpenSSL's headers.
    let (init, update, finish, control, context) = unsafe {
        let new: unsafe extern "C" fn() -> Pointer = symbol(libcrypto(), c"EVP_CIPHER_CTX_new");
        let cipher: unsafe extern "C" fn() -> Pointer = symbol(libcrypto(), cipher);
        let init: Init = symbol(libcrypto(), c"EVP_CipherInit_ex");
        let update: unsafe extern "C" fn(Pointer, *mut u8, *mut c_int, *const u8, c_int) -> c_int =
            symbol(libcrypto(), c"EVP_CipherUpdate");
        let finish: unsafe extern "C" fn(Pointer, *mut u8, *mut c_int) -> c_int = symbol(libcrypto(), c"EVP_CipherFinal_ex");
        let control: unsafe extern "C" fn(Pointer, c_int, c_int, Pointer) -> c_int = symbol(libcrypto(), c"EVP_CIPHER_CTX_ctrl");
        let context = new();
        assert_eq!(init(context, cipher(), null_mut(), null(), null(), encrypts), 1);
        if mode == Mode::Ccm {
            assert_eq!((control(context, SET_IV_LEN, 12, null_mut()), control(context, SET_TAG, 16, null_mut())), (1, 1));
        }
        assert_eq!(init(context, null_mut(), null_mut(), key.as_ptr(), null(), encrypts), 1);
        let padding: unsafe extern "C" fn(Pointer, c_int) -> c_int = symbol(libcrypto(), c"EVP_CIPHER_CTX_set_padding");
        assert_eq!(padding(context, 0), 1);
        (init, update, finish, control, context)
    };
    let (iv, mut tag, mut len) = ([1u8; 16], [0u8; 16], 0);
    let mut message = move |buffer: &mut [u8]| {
        // SAFETY: the context lives as long as the program; OpenSSL reads 12 or 16 bytes of IV and writes as many bytes as it reads, and 16 of a tag.
        unsafe {
            assert_eq!(init(context, null_mut(), null_mut(), null(), iv.as_ptr(), encrypts), 1);
            if mode == Mode::Ccm {
                assert_eq!(update(context, null_mut(), &mut len, null(), buffer.len() as c_int), 1);
            }
            assert_eq!(update(context, buffer.as_mut_ptr(), &mut len, buffer.as_ptr(), buffer.len() as c_int), 1);
            if mode.is_aead() {
                assert_eq!(finish(context, tag.as_mut_ptr(), &mut len), 1);
                assert_eq!(control(context, GET_TAG, 16, tag.as_mut_ptr().cast()), 1);
            }
        }
        black_box(&mut tag);
    };
    Some(Box::new(move |buffer| (0..mode.messages()).for_each(|_| message(buffer))))
}

fn aws_lc_aead(mode: Mode, key: &[u8]) -> Work {
    let algorithm = match (mode, key.len()) {
        (Mode::ChaCha20Poly1305, _) => &CHACHA20_POLY1305,
        (Mode::GcmSiv, 16) => &AES_128_GCM_SIV,
        (Mode::GcmSiv, _) => &AES_256_GCM_SIV,
        (_, 16) => &AES_128_GCM,
        _ => &AES_256_GCM,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a key's length"));
    Box::new(move |buffer| {
        let nonce = Nonce::assume_unique_for_key(black_box([1; 12]));
        let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), buffer).expect("lengths that fit");
        black_box(tag.as_ref());
    })
}

fn rust_crypto_gcm<C: AeadInOut + KeyInit + 'static>(key: &[u8]) -> Work {
    let cipher = C::new_from_slice(key).expect("a key's length");
    Box::new(move |buffer| {
        let nonce = black_box([1; 12]);
        let nonce = nonce.as_slice().try_into().expect("12 bytes");
        black_box(cipher.encrypt_inout_detached(nonce, &[], buffer.into()).expect("lengths that fit"));
    })
}

fn aws_lc_ctr(key: &[u8]) -> Work {
    let algorithm = if key.len() == 16 { &AES_128 } else { &AES_256 };
    let key = EncryptingKey::ctr(UnboundCipherKey::new(algorithm, key).expect("a key's length")).expect("AES has the mode");
    Box::new(move |buffer| {
        let context = EncryptionContext::Iv128(FixedLength::from(black_box([1; 16])));
        black_box(key.less_safe_encrypt(buffer, context).expect("an IV that fits"));
    })
}
