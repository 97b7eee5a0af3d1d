//! Two engines against each other, with as many random public-key operations as one likes: the tested one in full batches, the second one by one.
//!
//! The suite's own oracle is slow; this is for counts that it cannot reach.

use crate::areas::public_batches::curve_of;
use crate::oracle::RsaKey;
use crate::random::Random;
use crate::vectors;
use bywash_core::{Algorithm, Direction, Engine, Key, Keyed, Kind, OwnedOperation, SecretBytes, SessionParams, Task};
use num_bigint::BigUint;

/// Operations in a batch, and different keys in it.
const BATCH: usize = 8;
/// Batches under one set of keys, where operands differ.
const BATCHES: usize = 8;

/// Both engines' sessions of one key, and what verifies its signatures on the second.
struct Pair {
    tested: Box<dyn Keyed>,
    second: Box<dyn Keyed>,
    verifier: Option<Box<dyn Keyed>>,
    rsa: Option<usize>,
}

/// Runs at least `cases` random operations of a public-key algorithm on both engines and gives how many were compared; outcomes, refusals among
/// them, must be the same, and a signature with a random nonce must be verified by the second engine.
///
/// # Errors
/// The first difference, with all that it takes to see it again.
pub fn differential(tested: &dyn Engine, second: &dyn Engine, algorithm: Algorithm, cases: usize, seed: u64) -> Result<usize, String> {
    let mut random = Random::new(seed ^ u64::from(algorithm.number()) << 32);
    let keys = RsaKey::all(&vectors::RSA_KEYS)?;
    let mut done = 0;
    while done < cases {
        let pairs = (0..BATCH).map(|_| pair(tested, second, algorithm, &keys, &mut random)).collect::<Result<Vec<_>, _>>()?;
        // A public value has no operand: each key counts once.
        let batches = if matches!(algorithm.kind(), Kind::PublicValue { .. }) { 1 } else { BATCHES.min((cases - done).div_ceil(BATCH)) };
        for _ in 0..batches {
            done += one_batch(tested, algorithm, &pairs, &keys, &mut random).map_err(|what| format!("{algorithm}, seed {seed}: {what}"))?;
        }
    }
    Ok(done)
}

fn pair(tested: &dyn Engine, second: &dyn Engine, algorithm: Algorithm, keys: &[RsaKey], random: &mut Random) -> Result<Pair, String> {
    let mut rsa = None;
    let key = match algorithm.kind() {
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => {
            let fitting: Vec<_> = (0..keys.len()).filter(|&index| keys[index].bits == bits).collect();
            let index = random.pick(&fitting);
            rsa = Some(index);
            let private = matches!(algorithm.kind(), Kind::RsaPrivate { .. });
            if private { Key::RsaPrivate(keys[index].private()) } else { Key::RsaPublic(keys[index].public()) }
        }
        Kind::EcdsaSign { scalar: len }
        | Kind::EddsaSign { private: len, .. }
        | Kind::Agreement { private: len, .. }
        | Kind::PublicValue { private: len, .. } => Key::EcPrivate(random.bytes(len).into()),
        _ => return Err(format!("{algorithm} has no private key to compare with")),
    };
    let verifier = match (algorithm.kind(), &key, curve_of(algorithm)) {
        (Kind::EcdsaSign { .. }, Key::EcPrivate(private), Some(curve)) => {
            let point = (curve.point_of)(private).ok_or("a random scalar out of range; take another seed")?;
            Some(open(second, curve.verify, Key::EcPublic(point))?)
        }
        _ => None,
    };
    Ok(Pair { tested: open(tested, algorithm, key.clone())?, second: open(second, algorithm, key)?, verifier, rsa })
}

fn open(engine: &dyn Engine, algorithm: Algorithm, key: Key) -> Result<Box<dyn Keyed>, String> {
    let opened = SessionParams::new(algorithm, key).and_then(|params| engine.open(&params));
    opened.map_err(|error| format!("{} does not open {algorithm}: {error}", engine.name()))
}

fn one_batch(tested: &dyn Engine, algorithm: Algorithm, pairs: &[Pair], keys: &[RsaKey], random: &mut Random) -> Result<usize, String> {
    let mut operations: Vec<_> =
        pairs.iter().map(|pair| operation(algorithm, input(algorithm, pair.rsa.map(|index| &keys[index]), random))).collect();
    let mut again = operations.clone();
    let mut tasks: Vec<_> =
        operations.iter_mut().zip(pairs).map(|(operation, pair)| Task::new(&*pair.tested, operation.borrow())).collect();
    tested.run(&mut tasks);
    let outcomes: Vec<_> = tasks.into_iter().map(|task| task.outcome).collect();
    for (place, (pair, outcome)) in pairs.iter().zip(outcomes).enumerate() {
        let (ours, theirs) = (&operations[place], &mut again[place]);
        let same = match &pair.verifier {
            Some(verifier) => {
                let mut check = OwnedOperation { tag: ours.output.to_vec(), output: SecretBytes::default(), ..theirs.clone() };
                outcome.is_ok() && verifier.run(&mut check.borrow()).is_ok()
            }
            None => outcome == pair.second.run(&mut theirs.borrow()) && ours.output == theirs.output,
        };
        if !same {
            return Err(format!("lane {place}: {outcome:?}, input {:02x?}", &*ours.input));
        }
    }
    Ok(pairs.len())
}

/// Any operand, one in sixteen of the sort that is refused or special.
fn input(algorithm: Algorithm, rsa: Option<&RsaKey>, random: &mut Random) -> Vec<u8> {
    let special = random.within(0..=15) == 0;
    match algorithm.kind() {
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => match rsa {
            Some(key) if special => [vec![0; bits / 8], key.bytes(&(&key.n - 1u8)), key.n.to_bytes_be()][random.within(0..=2)].clone(),
            Some(key) => key.bytes(&BigUint::from_bytes_be(&random.bytes(bits / 8))),
            None => Vec::new(),
        },
        Kind::EcdsaSign { .. } => {
            let len = random.pick(&[20, 28, 32, 48, 64]);
            if special { vec![if random.within(0..=1) == 0 { 0 } else { 0xFF }; len] } else { random.bytes(len) }
        }
        Kind::EddsaSign { .. } => {
            let len = random.within(0..=300);
            random.bytes(len)
        }
        Kind::Agreement { public, .. } => match curve_of(algorithm) {
            Some(_) if special => [vec![4], random.bytes(public - 1)].concat(),
            Some(curve) => (curve.point_of)(&random.bytes(curve.scalar)).unwrap_or_else(|| curve.generator.clone()),
            None if special => vec![random.within(0..=1) as u8; 1].into_iter().chain(vec![0; public - 1]).collect(),
            None => random.bytes(public),
        },
        _ => Vec::new(),
    }
}

fn operation(algorithm: Algorithm, input: Vec<u8>) -> OwnedOperation {
    let output = SecretBytes::zeroed(algorithm.output_len(input.len()));
    OwnedOperation { direction: Direction::Compute, iv: Vec::new(), aad: Vec::new(), input: input.into(), output, tag: Vec::new() }
}
