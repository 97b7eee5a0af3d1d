//! Timing: every place in turn, round after round, so that a machine that slows down slows all of them; then medians.

use bywash_core::{Algorithm, Data, Direction, Kind, Operation, Result, SessionParams};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Somewhere operations can run.
pub(crate) trait Site: Sync {
    /// What the column is headed with.
    fn name(&self) -> &str;

    /// Whether its times come from a model.
    fn is_modelled(&self) -> bool {
        false
    }

    /// Opens a session there.
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>>;
}

/// A session somewhere.
pub(crate) trait Work: Send + Sync {
    /// Runs one operation to its end.
    fn run(&self, operation: &mut Operation<'_>) -> Result<()>;
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) threads: usize,
    pub(crate) rounds: usize,
    /// Of one place in one round.
    pub(crate) slice: Duration,
}

/// What one place reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// As one thread sees it.
    pub(crate) ns_per_op: f64,
    /// Of all threads together.
    pub(crate) ops_per_s: f64,
}

/// The median figure of each site, in their order; a site that cannot do it has an error.
pub(crate) fn measure(sites: &[Box<dyn Site>], params: &SessionParams, bytes: usize, effort: Effort) -> Vec<Result<Figure>> {
    let works: Vec<Result<Box<dyn Work>>> = sites.iter().map(|site| site.open(params)).collect();
    let mut samples: Vec<Result<Vec<Figure>>> = works.iter().map(|work| work.as_ref().map(|_| Vec::new()).map_err(Clone::clone)).collect();
    for _ in 0..effort.rounds {
        for (work, sample) in works.iter().zip(&mut samples) {
            if let (Ok(work), Ok(figures)) = (work, sample.as_mut()) {
                match slice(&**work, params.algorithm(), bytes, effort) {
                    Ok(figure) => figures.push(figure),
                    Err(error) => *sample = Err(error),
                }
            }
        }
    }
    samples.into_iter().map(|sample| sample.map(median)).collect()
}

/// The figure in the middle by time of one operation.
fn median(mut figures: Vec<Figure>) -> Figure {
    figures.sort_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op));
    figures.get(figures.len() / 2).copied().unwrap_or(Figure { ns_per_op: 0.0, ops_per_s: 0.0 })
}

/// All threads start together; each has its own buffers.
fn slice(work: &dyn Work, algorithm: Algorithm, bytes: usize, effort: Effort) -> Result<Figure> {
    let start = Barrier::new(effort.threads);
    let one = || {
        let mut buffers = Buffers::new(algorithm, bytes);
        let ready = work.run(&mut buffers.operation());
        start.wait();
        ready.and_then(|()| spin(work, &mut buffers, effort.slice))
    };
    let results: Vec<Result<f64>> = thread::scope(|scope| {
        let others: Vec<_> = (1..effort.threads).map(|_| scope.spawn(one)).collect();
        let mut results = vec![one()];
        results.extend(others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        results
    });
    let each: Vec<f64> = results.into_iter().collect::<Result<_>>()?;
    Ok(Figure { ns_per_op: each.iter().sum::<f64>() / each.len() as f64, ops_per_s: each.iter().map(|ns| 1e9 / ns).sum() })
}

/// Nanoseconds of one operation. The clock is read once for a growing number of operations, so that reading it does not count.
fn spin(work: &dyn Work, buffers: &mut Buffers, slice: Duration) -> Result<f64> {
    let begun = Instant::now();
    let (mut done, mut step) = (0u64, 1u64);
    loop {
        for _ in 0..step {
            work.run(&mut buffers.operation())?;
        }
        done += step;
        let elapsed = begun.elapsed();
        if elapsed >= slice {
            return Ok((elapsed.as_nanos() as f64 / done as f64).max(0.1));
        }
        if elapsed * 16 < slice {
            step *= 2;
        }
    }
}

/// Input, output and the rest of an operation, made once.
struct Buffers {
    direction: Direction,
    iv: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tag: Vec<u8>,
    in_place: bool,
}

impl Buffers {
    fn new(algorithm: Algorithm, bytes: usize) -> Self {
        let (direction, iv, tag) = match algorithm.kind() {
            Kind::Cipher { iv, .. } => (Direction::Encrypt, iv, 0),
            Kind::Aead { .. } => (Direction::Encrypt, 12, 16),
            _ => (Direction::Compute, 0, 0),
        };
        let input = input_of(algorithm, bytes);
        let output = vec![0; algorithm.output_len(input.len())];
        let in_place = direction == Direction::Encrypt;
        Self { direction, iv: vec![7; iv], input, output, tag: vec![0; tag], in_place }
    }

    fn operation(&mut self) -> Operation<'_> {
        let data = if self.in_place {
            Data::InPlace(&mut self.input)
        } else {
            Data::Copy { input: &self.input, output: &mut self.output }
        };
        Operation { direction: self.direction, iv: &self.iv, aad: &[], data, tag: &mut self.tag }
    }
}

/// Something that the algorithm accepts: for public-key operations a fixed input, else so many bytes.
fn input_of(algorithm: Algorithm, bytes: usize) -> Vec<u8> {
    match algorithm.kind() {
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => {
            let mut below_the_modulus = vec![0x5a; bits / 8];
            below_the_modulus[0] = 0;
            below_the_modulus
        }
        Kind::EcdsaSign { .. } | Kind::EcdsaVerify { .. } => vec![0x5a; 32],
        Kind::Agreement { public: 65, .. } => P256_GENERATOR.to_vec(),
        Kind::Agreement { public, .. } => [vec![9], vec![0; public - 1]].concat(),
        Kind::PublicValue { .. } => Vec::new(),
        Kind::Cipher { block, .. } => vec![0x5a; bytes.next_multiple_of(block).max(block)],
        _ => vec![0x5a; bytes],
    }
}

/// A peer's public value that is always valid: the group's generator (SEC 2 s2.4.2).
const P256_GENERATOR: [u8; 65] = *b"\x04\
\x6b\x17\xd1\xf2\xe1\x2c\x42\x47\xf8\xbc\xe6\xe5\x63\xa4\x40\xf2\x77\x03\x7d\x81\x2d\xeb\x33\xa0\xf4\xa1\x39\x45\xd8\x98\xc2\x96\
\x4f\xe3\x42\xe2\xfe\x1a\x7f\x9b\x8e\xe7\xeb\x4a\x7c\x0f\x9e\x16\x2b\xce\x33\x57\x6b\x31\x5e\xce\xcb\xb6\x40\x68\x37\xbf\x51\xf5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let figure = |ns_per_op| Figure { ns_per_op, ops_per_s: 1.0 };
        assert_eq!(median(vec![figure(9.0), figure(1.0), figure(5.0)]).ns_per_op, 5.0);
    }
}
