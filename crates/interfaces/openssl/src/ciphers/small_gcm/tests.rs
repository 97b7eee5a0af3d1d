//! Copies of contexts with a libcrypto that cannot copy its own. With one that can, `tests/ciphers.rs` does it through libcrypto itself.

use super::super::spec::Mode;
use super::*;
use bywash_client::Route;
use bywash_core::{Algorithm, Data, Key, Operation, SessionParams};

const SPEC: &Spec = &Spec::new(Algorithm::Aes256Gcm, Mode::Gcm);
const KEY: [u8; 32] = [0x4B; 32];
const IV: [u8; 12] = [0x17; 12];
const AAD: &[u8] = b"associated";

fn provider() -> &'static Provider {
    Box::leak(Box::new(Provider::of_no_program(Route::Here)))
}

/// A context that the default provider cannot copy.
fn context() -> SmallGcm {
    let mut context = SmallGcm::new(provider(), SPEC).expect("a context");
    match &mut context {
        SmallGcm::Small(small) => small.passed.forget_how_to_duplicate(),
        SmallGcm::Own(_) => panic!("in place it is small at first"),
    }
    context
}

fn is_own(context: &SmallGcm) -> bool {
    matches!(context, SmallGcm::Own(_))
}

fn aad(context: &mut SmallGcm) {
    // SAFETY: no output, and input of that length.
    let done = context.update(&mut unsafe { Io::new(ptr::null_mut(), 0, AAD.as_ptr(), AAD.len()) });
    assert!(done.is_ok());
}

fn text(context: &mut SmallGcm, text: &[u8]) -> Vec<u8> {
    let mut output = vec![0; text.len()];
    // SAFETY: both are as long as is said.
    let done = context.update(&mut unsafe { Io::new(output.as_mut_ptr(), output.len(), text.as_ptr(), text.len()) });
    assert_eq!(done.unwrap(), text.len());
    output
}

fn finish(context: &mut SmallGcm) -> Outcome {
    let mut nothing = [0; 16];
    // SAFETY: room of that length.
    context.finish(&mut unsafe { Io::new(nothing.as_mut_ptr(), nothing.len(), ptr::null(), 0) }).map(drop)
}

fn tag(context: &mut SmallGcm) -> [u8; TAG_LEN] {
    let mut tag = [0; TAG_LEN];
    let mut params = [Param::new(c"tag", OCTET_STRING, tag.as_mut_ptr().cast(), TAG_LEN), Param::END];
    // SAFETY: an array that is ended, with room for the answer.
    context.get(&mut unsafe { ParamsMut::new(params.as_mut_ptr()) }).unwrap();
    tag
}

fn set(context: &mut SmallGcm, what: &CStr, octets: &[u8]) -> Outcome {
    let params = [Param::new(what, OCTET_STRING, octets.as_ptr().cast_mut().cast(), octets.len()), Param::END];
    // SAFETY: an array that is ended; the octets are only read.
    context.set(unsafe { Params::new(params.as_ptr()) })
}

/// The same message by the CPU engine.
fn sealed(text: &[u8]) -> (Vec<u8>, [u8; TAG_LEN]) {
    let client = provider().client().unwrap();
    let session = client.session(SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&KEY).into())).unwrap()).unwrap();
    let (mut output, mut tag) = (text.to_vec(), [0; TAG_LEN]);
    let data = Data::InPlace(&mut output);
    session.run(&mut Operation { direction: Direction::Encrypt, iv: &IV, aad: AAD, data, tag: &mut tag }).unwrap();
    (output, tag)
}

/// Texts of little and of much, different ones for the original and its copy.
fn texts() -> impl Iterator<Item = [Vec<u8>; 2]> {
    [1, 100, ENOUGH - 1, ENOUGH + 1].into_iter().map(|len| [vec![0x0F; len], vec![0xF0; len]])
}

#[test]
fn before_any_text_a_copy_is_ours_and_goes_on_alike() {
    for pair in texts() {
        for copied_after in 0..3 {
            let mut original = context();
            let steps: [fn(&mut SmallGcm); 3] = [
                |context| context.init(Direction::Encrypt, Some(&KEY), None).unwrap(),
                |context| context.init(Direction::Encrypt, None, Some(&IV)).unwrap(),
                aad,
            ];
            let (before, after) = steps.split_at(copied_after + 1);
            before.iter().for_each(|step| step(&mut original));
            let copy = original.duplicate().unwrap();
            assert!(is_own(&copy) && !is_own(&original));
            for (mut context, plain) in [original, copy].into_iter().zip(&pair) {
                after.iter().for_each(|step| step(&mut context));
                let output = text(&mut context, plain);
                finish(&mut context).unwrap();
                assert_eq!((output, tag(&mut context)), sealed(plain), "{} bytes, copied after step {copied_after}", plain.len());
            }
        }
    }
}

#[test]
fn a_copy_knows_the_tag_to_compare_with() {
    for [plain, _] in texts() {
        let (cipher, good) = sealed(&plain);
        for flip in [0, 1] {
            let mut original = context();
            original.init(Direction::Decrypt, Some(&KEY), Some(&IV)).unwrap();
            set(&mut original, c"tag", &good.map(|byte| byte ^ flip)).unwrap();
            aad(&mut original);
            let copy = original.duplicate().unwrap();
            for mut context in [original, copy] {
                assert_eq!(text(&mut context, &cipher), plain);
                assert_eq!(finish(&mut context).is_ok(), flip == 0);
            }
        }
    }
}

#[test]
fn a_copy_knows_the_tag_that_was_made() {
    let mut original = context();
    original.init(Direction::Encrypt, Some(&KEY), Some(&IV)).unwrap();
    aad(&mut original);
    text(&mut original, b"text");
    finish(&mut original).unwrap();
    let mut copy = original.duplicate().unwrap();
    assert_eq!(tag(&mut copy), sealed(b"text").1);
}

#[test]
fn with_text_under_way_only_ours_is_copied() {
    let mut original = context();
    original.init(Direction::Encrypt, Some(&KEY), Some(&IV)).unwrap();
    aad(&mut original);
    text(&mut original, &[5; 100]);
    assert!(original.duplicate().is_err(), "100 bytes in, the default provider's context cannot be made again");
    original.init(Direction::Encrypt, None, Some(&IV)).unwrap();
    aad(&mut original);
    text(&mut original, &[5; ENOUGH]);
    let copy = original.duplicate().unwrap();
    let whole = [&[5; ENOUGH][..], &[6; 100]].concat();
    for mut context in [original, copy] {
        assert!(is_own(&context));
        assert_eq!(text(&mut context, &[6; 100]), sealed(&whole).0[ENOUGH..]);
        finish(&mut context).unwrap();
        assert_eq!(tag(&mut context), sealed(&whole).1);
    }
}

#[test]
fn no_copy_uses_an_iv_again() {
    let mut counted = context();
    counted.init(Direction::Encrypt, Some(&KEY), None).unwrap();
    set(&mut counted, c"tlsivfixed", &[1; 4]).unwrap();
    assert!(counted.duplicate().is_err(), "its IVs are counted up");
    let mut spent = context();
    spent.init(Direction::Encrypt, Some(&KEY), Some(&IV)).unwrap();
    aad(&mut spent);
    spent.init(Direction::Encrypt, Some(&KEY), None).unwrap();
    assert!(spent.duplicate().is_err(), "its IV has protected something");
}
