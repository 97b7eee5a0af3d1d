//! Against `num-bigint`, with keys of every size and shape in one batch, at edge operands, and with faults.

use super::constants::Constants;
use super::key::{Private, PrivateSize};
use super::*;
use crate::LANES;
use crate::testing::{Random, skip_without_ifma};
use num_bigint::BigUint;

/// A key and its parts; `shape` says what is special about it.
struct Made {
    shape: &'static str,
    modulus: BigUint,
    exponent: BigUint,
    primes: [BigUint; 2],
    private: PrivateKey,
    public: PublicKey,
}

/// The parts of a private key as numbers: n, e, p, q, d mod p - 1, d mod q - 1, 1 / q mod p.
fn numbers(exponent: &BigUint, p: &BigUint, q: &BigUint) -> [BigUint; 7] {
    let one = BigUint::from(1u8);
    let inverse = |x: &BigUint, modulus: &BigUint| (x % modulus).modinv(modulus).expect("coprime");
    let exponents = [inverse(exponent, &(p - &one)), inverse(exponent, &(q - &one))];
    let [exponent1, exponent2] = exponents;
    [p * q, exponent.clone(), p.clone(), q.clone(), exponent1, exponent2, inverse(q, p)]
}

fn open(numbers: &[BigUint; 7]) -> Result<PrivateKey, Refused> {
    PrivateKey::new(&parts(&numbers.each_ref().map(|x| x.to_bytes_be())))
}

/// The same numbers, big-endian.
fn parts(numbers: &[Vec<u8>; 7]) -> PrivateParts<'_> {
    let [modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient] = numbers;
    PrivateParts { modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient }
}

impl Made {
    /// The numbers of the private key, big-endian.
    fn numbers(&self) -> [Vec<u8>; 7] {
        let [p, q] = &self.primes;
        numbers(&self.exponent, p, q).map(|x| x.to_bytes_be())
    }
}

/// The keys of one size.
fn keys(bits: usize) -> Vec<Made> {
    let size = bits.to_string();
    let lines = include_str!("data/keys.txt").lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines
        .filter(|words| words[0] == size)
        .map(|words| {
            let [exponent, p, q] = [2, 3, 4].map(|i| BigUint::parse_bytes(words[i].as_bytes(), 16).expect("hexadecimal"));
            let numbers = numbers(&exponent, &p, &q);
            let private = open(&numbers).expect("a good key");
            let public = PublicKey::new(&numbers[0].to_bytes_be(), &exponent.to_bytes_be()).expect("a good key");
            assert_eq!((private.bits(), public.bits()), (bits, bits));
            let [modulus, ..] = numbers;
            Made { shape: words[1], modulus, exponent, primes: [p, q], private, public }
        })
        .collect()
}

/// As many big-endian bytes as a modulus of `bits` bits has.
fn bytes(bits: usize, x: &BigUint) -> Vec<u8> {
    let significant = x.to_bytes_be();
    let mut bytes = vec![0; bits / 8 - significant.len()];
    bytes.extend(significant);
    bytes
}

/// Blindings for one to eight keys.
fn blindings(keys: &[&PrivateKey], random: &mut Random) -> Vec<Blinding> {
    let mut blindings: Vec<_> = keys.iter().map(|_| Blinding::default()).collect();
    let randoms: Vec<_> = keys.iter().map(|key| random.bytes(key.bits() / 8)).collect();
    let tasks = keys.iter().zip(&randoms).zip(&mut blindings);
    blind(&mut tasks.map(|((key, random), blinding)| BlindTask { key, random, blinding }).collect::<Vec<_>>());
    blindings
}

/// Runs a batch of private operations; the results and whether they were verified.
fn run(bits: usize, batch: &[(&PrivateKey, &BigUint)]) -> Vec<(BigUint, bool)> {
    let keys: Vec<_> = batch.iter().map(|&(key, _)| key).collect();
    run_blinded(bits, batch, &mut blindings(&keys, &mut Random::new(batch.len() as u64)))
}

fn run_blinded(bits: usize, batch: &[(&PrivateKey, &BigUint)], blindings: &mut [Blinding]) -> Vec<(BigUint, bool)> {
    let inputs: Vec<_> = batch.iter().map(|(_, input)| bytes(bits, input)).collect();
    let mut outputs = vec![vec![0xA5; bits / 8]; batch.len()];
    let tasks = batch.iter().zip(&inputs).zip(&mut outputs).zip(blindings);
    let tasks = tasks.map(|(((&(key, _), input), output), blinding)| PrivateTask { key, blinding, input, output, verified: false });
    let mut tasks: Vec<_> = tasks.collect();
    private(&mut tasks);
    tasks.iter().map(|task| (BigUint::from_bytes_be(task.output), task.verified)).collect()
}

/// Every input is the result's power, which says that the result is right: raising to the exponent is one to one.
fn check(bits: usize, batch: &[(&Made, BigUint)]) {
    let results = run(bits, &batch.iter().map(|(key, input)| (&key.private, input)).collect::<Vec<_>>());
    for ((key, input), (result, verified)) in batch.iter().zip(results) {
        assert!(verified, "{bits} {}: {input:x}", key.shape);
        assert!(result < key.modulus, "{bits} {}: {input:x}", key.shape);
        assert_eq!(result.modpow(&key.exponent, &key.modulus), *input, "{bits} {}", key.shape);
    }
}

const SIZES: [usize; 4] = [1024, 2048, 3072, 4096];

#[test]
fn private_results_are_right_for_mixed_keys_in_batches_of_any_number() {
    skip_without_ifma!();
    let mut random = Random::new(1);
    for bits in SIZES {
        let keys = keys(bits);
        assert_eq!(keys.len(), 6);
        for count in 1..=LANES {
            let batch: Vec<_> = (0..count)
                .map(|_| {
                    let key = &keys[random.below(keys.len())];
                    (key, random.number(bits + 64) % &key.modulus)
                })
                .collect();
            check(bits, &batch);
        }
    }
}

#[test]
fn private_results_are_right_at_edges() {
    skip_without_ifma!();
    let mut random = Random::new(2);
    for bits in SIZES {
        for key in &keys(bits) {
            let [p, q] = &key.primes;
            let n = &key.modulus;
            let multiple = random.number(bits / 3);
            let edges = [
                0u8.into(),
                1u8.into(),
                2u8.into(),
                p.clone(),
                q.clone(),
                n - 1u8,
                n - p,
                n - q,
                p * &multiple,
                q * &multiple,
                p - 1u8,
                q + 1u8,
            ];
            let batch: Vec<_> = edges.into_iter().map(|input| (key, input % n)).collect();
            for part in batch.chunks(LANES) {
                check(bits, part);
            }
        }
    }
}

/// Whether a batch of good keys around a bad one gives good results, and nothing for the bad one.
fn is_withheld(bits: usize, good: &Made, bad: &PrivateKey, random: &mut Random) {
    let input = random.number(bits - 1);
    let results = run(bits, &[(&good.private, &input), (bad, &input), (&good.private, &input)]);
    for lane in [0, 2] {
        assert!(results[lane].1);
        assert_eq!(results[lane].0.modpow(&good.exponent, &good.modulus), input);
    }
    assert_eq!(results[1], (0u8.into(), false), "{bits}: a wrong result came out");
}

#[test]
fn wrong_exponents_and_foreign_public_exponents_give_nothing() {
    skip_without_ifma!();
    let mut random = Random::new(3);
    for bits in SIZES {
        let good = &keys(bits)[0];
        let [p, q] = &good.primes;
        let right = numbers(&good.exponent, p, q);
        for (part, wrong) in [(1, 5u8.into()), (4, &right[4] ^ BigUint::from(4u8)), (5, &right[5] - 1u8), (4, 0u8.into())] {
            let mut numbers = right.clone();
            numbers[part] = wrong;
            is_withheld(bits, good, &open(&numbers).expect("not to be seen from outside"), &mut random);
        }
    }
}

/// One bit turned over in every kind of value that a key in memory consists of.
fn faults<const K: usize, const N: usize>() -> Vec<fn(&mut Private<K, N>)> {
    fn prime<const K: usize, const N: usize>(key: &mut Private<K, N>, i: usize) -> &mut Constants<K> {
        &mut key.primes[i]
    }
    vec![
        |key| prime(key, 0).modulus[0] ^= 2,
        |key| prime(key, 1).modulus[K - 1] ^= 1,
        |key| prime(key, 0).inverse ^= 1 << 20,
        |key| prime(key, 1).one[3] ^= 1 << 51,
        |key| prime(key, 0).cube[K / 2] ^= 1 << 13,
        |key| key.exponents[0][1] ^= 1 << 33,
        |key| key.exponents[1][0] ^= 1,
        |key| key.coefficient[2] ^= 1 << 7,
        |key| key.public.exponent[0] ^= 1 << 9,
        |key| key.public.modulus.modulus[N - 3] ^= 1 << 40,
        |key| key.public.modulus.inverse ^= 1 << 50,
        |key| key.public.modulus.square[N / 2] ^= 1,
    ]
}

#[test]
fn a_bit_turned_over_in_a_key_gives_nothing() {
    skip_without_ifma!();
    let mut random = Random::new(4);
    for bits in SIZES {
        let good = &keys(bits)[1];
        let [p, q] = &good.primes;
        macro_rules! each_fault {
            ($k:literal, $n:literal, $size:ident) => {
                for fault in faults::<$k, $n>() {
                    let mut bad = open(&numbers(&good.exponent, p, q)).expect("a good key");
                    if let PrivateSize::$size(key) = &mut bad.0 {
                        fault(key);
                    }
                    is_withheld(bits, good, &bad, &mut random);
                }
            };
        }
        match good.private.0 {
            PrivateSize::Bits1024(_) => each_fault!(10, 20, Bits1024),
            PrivateSize::Bits2048(_) => each_fault!(20, 40, Bits2048),
            PrivateSize::Bits3072(_) => each_fault!(30, 60, Bits3072),
            PrivateSize::Bits4096(_) => each_fault!(40, 80, Bits4096),
        }
    }
}

/// r^e and 1 / r, asserted to be such.
fn factors<const N: usize>(key: &Made, blinding: &Blinding) -> [BigUint; 2] {
    let n = &key.modulus;
    let radix = (BigUint::from(1u8) << (52 * N)).modinv(n).expect("odd");
    let plain = |digits: &[u64; N]| digits.iter().rev().fold(BigUint::ZERO, |number, &digit| (number << 52) + digit) * &radix % n;
    let [hide, reveal] = blinding.factors().map(plain);
    assert_eq!(&hide * reveal.modpow(&key.exponent, n) % n, 1u8.into(), "{}: they do not belong together", key.shape);
    assert!(hide != 1u8.into(), "{}: nothing is hidden", key.shape);
    [hide, reveal]
}

fn blindings_belong_to_their_keys_and_change<const N: usize>(bits: usize, random: &mut Random) {
    let keys = keys(bits);
    let private: Vec<_> = keys.iter().map(|key| &key.private).collect();
    let mut blindings = blindings(&private, random);
    let input = random.number(bits - 1);
    let first: Vec<_> = keys.iter().zip(&blindings).map(|(key, blinding)| factors::<N>(key, blinding)).collect();
    let results = run_blinded(bits, &private.iter().map(|&key| (key, &input)).collect::<Vec<_>>(), &mut blindings);
    for (((key, blinding), first), (result, verified)) in keys.iter().zip(&blindings).zip(first).zip(results) {
        assert!(verified && result.modpow(&key.exponent, &key.modulus) == input);
        assert!(!blinding.is_worn());
        assert_eq!(factors::<N>(key, blinding), first.map(|factor| &factor * &factor % &key.modulus));
    }
}

#[test]
fn blindings_belong_to_their_keys_and_change_with_every_use() {
    skip_without_ifma!();
    let mut random = Random::new(6);
    blindings_belong_to_their_keys_and_change::<20>(1024, &mut random);
    blindings_belong_to_their_keys_and_change::<40>(2048, &mut random);
    blindings_belong_to_their_keys_and_change::<60>(3072, &mut random);
    blindings_belong_to_their_keys_and_change::<80>(4096, &mut random);
}

#[test]
fn blindings_wear_out() {
    skip_without_ifma!();
    let key = &keys(1024)[0];
    let mut blindings = blindings(&[&key.private], &mut Random::new(7));
    let mut uses = 0;
    while !blindings[0].is_worn() {
        assert!(run_blinded(1024, &[(&key.private, &7u8.into())], &mut blindings)[0].1);
        uses += 1;
    }
    assert_eq!(uses, 256);
    assert!(Blinding::default().is_worn());
}

#[test]
fn a_blinding_that_does_not_fit_gives_nothing_and_is_worn() {
    skip_without_ifma!();
    for bits in SIZES {
        let [key, other, ..] = &keys(bits)[..] else { unreachable!("there are six") };
        let mut wrong = blindings(&[&other.private], &mut Random::new(8));
        assert_eq!(run_blinded(bits, &[(&key.private, &7u8.into())], &mut wrong), [(0u8.into(), false)], "another key's");
        assert!(wrong[0].is_worn());
        // Zero has no inverse.
        blind(&mut [BlindTask { key: &key.private, random: &vec![0; bits / 8], blinding: &mut wrong[0] }]);
        assert_eq!(run_blinded(bits, &[(&key.private, &7u8.into())], &mut wrong), [(0u8.into(), false)], "of a zero");
        assert!(wrong[0].is_worn());
    }
}

#[test]
fn public_results_are_right() {
    skip_without_ifma!();
    let mut random = Random::new(5);
    for bits in SIZES {
        let keys = keys(bits);
        for count in [1, 5, LANES] {
            let batch: Vec<_> = (0..count)
                .map(|lane| {
                    let key = &keys[(lane + count) % keys.len()];
                    let edge = [0u8.into(), 1u8.into(), &key.modulus - 1u8];
                    (key, edge.get(lane + 1).cloned().unwrap_or(random.number(bits + 64) % &key.modulus))
                })
                .collect();
            let inputs: Vec<_> = batch.iter().map(|(_, input)| bytes(bits, input)).collect();
            let mut outputs = vec![vec![0xA5; bits / 8]; count];
            let tasks = batch.iter().zip(&inputs).zip(&mut outputs);
            let mut tasks: Vec<_> = tasks.map(|(((key, _), input), output)| PublicTask { key: &key.public, input, output }).collect();
            public(&mut tasks);
            for ((key, input), output) in batch.iter().zip(&outputs) {
                assert_eq!(BigUint::from_bytes_be(output), input.modpow(&key.exponent, &key.modulus), "{bits} {}", key.shape);
            }
        }
    }
}

#[test]
fn unusable_keys_are_refused_with_the_reason() {
    let key = &keys(1024)[0];
    let [p, q] = &key.primes;
    let right = numbers(&key.exponent, p, q);
    let refusal = |change: &dyn Fn(&mut [BigUint; 7])| {
        let mut numbers = right.clone();
        change(&mut numbers);
        open(&numbers).err().expect("refused").why
    };
    assert!(refusal(&|key| key[0] >>= 1).contains("1024, 2048, 3072 or 4096 bits"));
    assert!(refusal(&|key| key[0] += 1u8).contains("modulus is even"));
    assert!(refusal(&|key| key[0] += 2u8).contains("not the product"));
    assert!(refusal(&|key| key[1] = 65536u32.into()).contains("1 or even"));
    assert!(refusal(&|key| key[1] = 1u8.into()).contains("1 or even"));
    assert!(refusal(&|key| key[1] = &key[0] + 2u8).contains("not below its modulus"));
    assert!(refusal(&|key| key[1] = &key[0] << 8 | BigUint::from(1u8)).contains("not below its modulus"));
    assert!(refusal(&|key| key[2] += 1u8).contains("primes is even"));
    assert!(refusal(&|key| key[3] = 0u8.into()).contains("primes is even or below 3"));
    assert!(refusal(&|key| key[2] = &key[2] << 7 | BigUint::from(1u8)).contains("too long"));
    assert!(refusal(&|key| key[4] <<= 8).contains("CRT exponents"));
    assert!(refusal(&|key| key[6] <<= 8).contains("longer than its first prime"));
    assert!(refusal(&|key| key[6] += 1u8).contains("not the inverse"));
    assert!(refusal(&|key| key.swap(2, 3)).contains("not the inverse"));
    assert_eq!(PublicKey::new(&[], &[]).err().map(|refused| refused.to_string()), Some(LENGTH.into()));
}

const LENGTH: &str = "its modulus has not 1024, 2048, 3072 or 4096 bits";

#[test]
#[should_panic(expected = "as long as the modulus")]
fn a_short_input_is_the_callers_mistake() {
    if !crate::is_supported() {
        panic!("skipped: as long as the modulus cannot be checked");
    }
    let key = &keys(1024)[0].private;
    let blinding = &mut Blinding::default();
    private(&mut [PrivateTask { key, blinding, input: &[0; 127], output: &mut [0; 128], verified: false }]);
}

#[test]
fn a_small_stack_is_enough() {
    skip_without_ifma!();
    for bits in SIZES {
        let numbers = keys(bits)[0].numbers();
        let parts = parts(&numbers);
        let (input, random, mut output) = (bytes(bits, &BigUint::from(7u8)), vec![0x3C; bits / 8], vec![0; bits / 8]);
        stack::tests::on_a_small_stack(|| {
            let (key, public) =
                (Box::new(PrivateKey::new(&parts).ok()), Box::new(PublicKey::new(parts.modulus, parts.public_exponent).ok()));
            let (key, public, blinding) = (key.as_ref().as_ref().unwrap(), public.as_ref().as_ref().unwrap(), &mut Box::default());
            blind(&mut [BlindTask { key, random: &random, blinding }]);
            private(&mut [PrivateTask { key, blinding, input: &input, output: &mut output, verified: false }]);
            assert_eq!(public.bits(), bits);
        });
    }
}

#[test]
fn nothing_is_left_on_the_stack() {
    skip_without_ifma!();
    for bits in SIZES {
        let key = &keys(bits)[0];
        let numbers = key.numbers();
        let parts = parts(&numbers);
        stack::tests::nothing_left(stack::RSA_KEY, || drop(PrivateKey::new(&parts)));
        let input = bytes(bits, &BigUint::from(7u8));
        let mut output = vec![0; bits / 8];
        let (key, blinding, random) = (&key.private, &mut Blinding::default(), &vec![0x3C; bits / 8]);
        stack::tests::nothing_left(stack::rsa(bits), || blind(&mut [BlindTask { key, random, blinding }]));
        stack::tests::nothing_left(stack::rsa(bits), || {
            private(&mut [PrivateTask { key, blinding, input: &input, output: &mut output, verified: false }]);
        });
    }
}
