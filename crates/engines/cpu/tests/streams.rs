//! What is particular to this engine's streams; everything that all engines promise is in the conformance suite.

use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, SessionParams};
use bywash_engine_cpu::CpuEngine;

fn keyed(algorithm: Algorithm, key_len: usize) -> Box<dyn Keyed> {
    let key: Vec<u8> = (0..key_len as u8).collect();
    CpuEngine::new().open(&SessionParams::new(algorithm, Key::Symmetric(key.into())).unwrap()).unwrap()
}

fn seal(keyed: &dyn Keyed, iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let (mut output, mut tag) = (text.to_vec(), [0; 16]);
    let data = Data::InPlace(&mut output);
    keyed.run(&mut Operation { direction: Direction::Encrypt, iv, aad, data, tag: &mut tag }).unwrap();
    (output, tag)
}

#[test]
fn a_stream_gives_the_tag_in_both_directions_and_starts_again() {
    for (algorithm, key_len) in [(Algorithm::Aes128Gcm, 16), (Algorithm::Aes256Gcm, 32), (Algorithm::ChaCha20Poly1305, 32)] {
        let keyed = keyed(algorithm, key_len);
        let (text, aad) = ([0x5A; 333], [7; 21]);
        let mut encrypt = keyed.stream(Direction::Encrypt, &[9; 12]).unwrap();
        let mut decrypt = keyed.stream(Direction::Decrypt, &[9; 12]).unwrap();
        for round in 0..3u8 {
            let iv = [round; 12];
            let (expected, expected_tag) = seal(&*keyed, &iv, &aad, &text);
            for (stream, input, output) in [(&mut encrypt, &text[..], &expected[..]), (&mut decrypt, &expected[..], &text[..])] {
                let mut buffer = input.to_vec();
                stream.start(&iv).unwrap();
                stream.aad(&aad[..5]).unwrap();
                stream.aad(&aad[5..]).unwrap();
                stream.update(Data::InPlace(&mut buffer[..100])).unwrap();
                let mut copy = stream.duplicate().unwrap();
                let mut other = buffer[100..].to_vec();
                stream.update(Data::InPlace(&mut buffer[100..])).unwrap();
                copy.update(Data::InPlace(&mut other)).unwrap();
                assert_eq!((buffer.as_slice(), stream.finish().unwrap()), (output, expected_tag), "{algorithm}");
                assert_eq!((other.as_slice(), copy.finish().unwrap()), (&output[100..], expected_tag), "{algorithm}, copied");
            }
        }
    }
}

#[test]
fn a_stream_out_of_order_is_refused_and_not_guessed() {
    let keyed = keyed(Algorithm::Aes128Gcm, 16);
    let mut stream = keyed.stream(Direction::Encrypt, &[0; 12]).unwrap();
    stream.update(Data::InPlace(&mut [0; 3])).unwrap();
    assert!(matches!(stream.aad(b"late"), Err(Error::WrongOperation { .. })));
    stream.finish().unwrap();
    assert!(matches!(stream.finish(), Err(Error::WrongOperation { .. })));
    assert!(matches!(stream.update(Data::InPlace(&mut [0; 3])), Err(Error::WrongOperation { .. })));
    assert!(matches!(stream.start(&[]), Err(Error::IvLength { given: 0, .. })));
    let short = Data::Copy { input: &[0; 4], output: &mut [0; 3] };
    stream.start(&[1; 12]).unwrap();
    assert!(matches!(stream.update(short), Err(Error::OutputTooSmall { needed: 4, given: 3, .. })));
}

#[test]
fn gcm_streams_take_ivs_of_changing_length() {
    let keyed = keyed(Algorithm::Aes256Gcm, 32);
    let mut stream = keyed.stream(Direction::Encrypt, &[1; 12]).unwrap();
    for len in [12, 1, 16, 17, 128, 60, 128, 12, 8] {
        let iv: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x33).collect();
        let (expected, tag) = seal(&*keyed, &iv, b"", &[3; 70]);
        let mut buffer = [3; 70];
        stream.start(&iv).unwrap();
        stream.update(Data::InPlace(&mut buffer)).unwrap();
        assert_eq!((buffer.as_slice(), stream.finish().unwrap()), (expected.as_slice(), tag), "IV of {len} bytes");
    }
}

#[test]
fn an_xts_unit_comes_in_one_piece() {
    let keyed = keyed(Algorithm::Aes128Xts, 32);
    let mut stream = keyed.stream(Direction::Encrypt, &[1; 16]).unwrap();
    stream.update(Data::InPlace(&mut [0; 32])).unwrap();
    assert!(matches!(stream.update(Data::InPlace(&mut [0; 32])), Err(Error::WrongOperation { .. })));
    assert!(matches!(stream.update(Data::InPlace(&mut [0; 15])), Err(Error::InputLength { .. })));
}

#[test]
fn the_engine_names_its_library() {
    let text = CpuEngine::new().describe();
    assert!(text.starts_with("AWS-LC "), "{text}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_engine_says_which_ciphers_are_not_constant_time() {
    let says_so = |engine: CpuEngine| engine.describe().contains("not in constant time");
    assert_eq!(says_so(CpuEngine::new()), bywash_legacy::Form::vector().is_none());
    assert!(!says_so(CpuEngine::without_lanes()), "it has no legacy ciphers");
}
