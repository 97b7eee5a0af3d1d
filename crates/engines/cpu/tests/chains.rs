//! CBC encryptions that go to the engine together give what each gives alone, whatever their keys, lengths and places.

use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, SessionParams, Task};
use bywash_engine_cpu::CpuEngine;

const CHAINS: [Algorithm; 5] =
    [Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc, Algorithm::DesCbc, Algorithm::TripleDesCbc];

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

fn params(algorithm: Algorithm, numbers: &mut Numbers) -> SessionParams {
    let len = match algorithm {
        Algorithm::Aes128Cbc => 16,
        Algorithm::Aes256Cbc => 32,
        Algorithm::DesCbc => 8,
        _ => 24,
    };
    SessionParams::new(algorithm, Key::Symmetric(numbers.bytes(len).into())).unwrap()
}

/// One message, and what must come of it.
struct Message {
    session: usize,
    direction: Direction,
    iv: Vec<u8>,
    given: Vec<u8>,
    output: Vec<u8>,
    in_place: bool,
    expected: Vec<u8>,
}

/// What a message gives alone: of AES by the library.
fn alone(algorithm: Algorithm, params: &SessionParams, direction: Direction, iv: &[u8], given: &[u8]) -> Vec<u8> {
    let engine = if algorithm.is_legacy() { CpuEngine::new() } else { CpuEngine::without_lanes() };
    let mut output = vec![0; given.len()];
    let data = Data::Copy { input: given, output: &mut output };
    engine.open(params).unwrap().run(&mut Operation { direction, iv, aad: &[], data, tag: &mut [] }).unwrap();
    output
}

fn messages(sessions: &[(SessionParams, Box<dyn Keyed>)], count: usize, longest: usize, numbers: &mut Numbers) -> Vec<Message> {
    let message = |_| {
        let session = numbers.below(sessions.len());
        let params = &sessions[session].0;
        let (algorithm, direction) = (params.algorithm(), if numbers.below(10) == 0 { Direction::Decrypt } else { Direction::Encrypt });
        let block = algorithm.usual_iv_len();
        let len = numbers.below(longest / block + 1) * block;
        let (iv, given) = (numbers.bytes(block), numbers.bytes(len));
        let expected = alone(algorithm, params, direction, &iv, &given);
        let in_place = numbers.below(2) == 0;
        let output = if in_place { given.clone() } else { vec![0xEE; given.len() + numbers.below(3)] };
        Message { session, direction, iv, given, output, in_place, expected }
    };
    (0..count).map(message).collect()
}

#[test]
fn together_is_as_alone() {
    let engine = CpuEngine::new();
    let mut numbers = Numbers(1);
    let algorithms = CHAINS.iter().filter(|&&algorithm| engine.supports(algorithm)).flat_map(|&algorithm| [algorithm; 4]);
    let sessions: Vec<_> = algorithms
        .map(|algorithm| params(algorithm, &mut numbers))
        .map(|params| {
            let keyed = engine.open(&params).unwrap();
            (params, keyed)
        })
        .collect();
    let all = [(2, 512), (3, 512), (17, 4096), (40, 300), (100, 1024), (700, 700), (9, 40_000)].map(|size| (&sessions[..], size));
    // Sessions that are alone, with keys of each length.
    let one_key = sessions.chunks(4).flat_map(|sessions| [(&sessions[..1], (16, 1024)), (&sessions[..1], (40, 3000))]);
    for (sessions, (count, longest)) in all.into_iter().chain(one_key) {
        let mut messages = messages(sessions, count, longest, &mut numbers);
        let mut tasks: Vec<_> = messages
            .iter_mut()
            .map(|message| {
                let Message { session, direction, iv, given, output, in_place, .. } = message;
                let data = if *in_place { Data::InPlace(output) } else { Data::Copy { input: given, output } };
                Task::new(&*sessions[*session].1, Operation { direction: *direction, iv, aad: &[], data, tag: &mut [] })
            })
            .collect();
        engine.run(&mut tasks);
        let outcomes: Vec<Result<usize, Error>> = tasks.into_iter().map(|task| task.outcome).collect();
        for (message, outcome) in messages.iter().zip(outcomes) {
            let (len, algorithm) = (message.given.len(), sessions[message.session].0.algorithm());
            assert_eq!(outcome, Ok(len), "{algorithm} of {len} bytes among {count}");
            assert!(message.output[..len] == message.expected, "{algorithm} of {len} bytes among {count}");
            assert!(message.output[len..].iter().all(|byte| *byte == 0xEE), "{algorithm} of {len} bytes among {count}: beyond its end");
        }
    }
}

/// Messages that are not whole blocks, or have no room for their result, among others.
#[test]
fn what_is_wrong_fails_alone() {
    let engine = CpuEngine::new();
    let mut numbers = Numbers(2);
    // Legacy ciphers take for granted what every session has checked.
    for algorithm in CHAINS.into_iter().filter(|algorithm| !algorithm.is_legacy()) {
        let params = params(algorithm, &mut numbers);
        let keyed = engine.open(&params).unwrap();
        let iv = numbers.bytes(algorithm.usual_iv_len());
        let given: Vec<Vec<u8>> = (0..40).map(|i| numbers.bytes(if i == 3 { 1021 } else { 1024 })).collect();
        let mut outputs: Vec<Vec<u8>> = (0..40).map(|i| vec![0; if i == 7 { 1023 } else { 1024 }]).collect();
        let mut tasks: Vec<_> = given
            .iter()
            .zip(&mut outputs)
            .map(|(input, output)| {
                let data = Data::Copy { input, output };
                Task::new(&*keyed, Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut [] })
            })
            .collect();
        engine.run(&mut tasks);
        let outcomes: Vec<_> = tasks.into_iter().map(|task| task.outcome).collect();
        for (i, (outcome, output)) in outcomes.iter().zip(&outputs).enumerate() {
            if i == 3 || i == 7 {
                assert!(outcome.is_err(), "{algorithm}: message {i} is wrong");
            } else {
                assert_eq!(*outcome, Ok(1024), "{algorithm}: message {i}");
                assert!(*output == alone(algorithm, &params, Direction::Encrypt, &iv, &given[i]), "{algorithm}: message {i}");
            }
        }
    }
}

#[test]
fn it_says_what_goes_together() {
    let engine = CpuEngine::new();
    for algorithm in CHAINS {
        assert_eq!(engine.lanes(algorithm), 1, "{algorithm} is not worth a wait");
        assert_eq!(engine.together(algorithm, Direction::Decrypt), 1, "{algorithm}: blocks to be decrypted wait for nobody");
    }
    if !engine.describe().contains("AES 4 blocks at a time") {
        return println!("skipped: this processor has no VAES with AVX-512");
    }
    assert!(CHAINS.iter().all(|&algorithm| engine.together(algorithm, Direction::Encrypt) >= 16));
}
