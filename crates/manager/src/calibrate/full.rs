//! The thorough calibration: every algorithm at sizes from 16 bytes to beyond the caches, lines fitted through them, batches of every number.

use super::fit::fit;
use super::samples::input_len;
use super::{Measured, TIMES_MIN, each_ns, launches, runs_ns, sample, setup, together};
use bywash_core::{Algorithm, CostCurve, CostSheet, Engine, Error, Keyed, Result};
use std::time::{Duration, Instant};

/// Two sizes for each octave from 16 bytes to 64 MiB, in bytes.
pub fn sizes() -> Vec<usize> {
    (8..=52).map(|half| 2f64.powf(f64::from(half) / 2.0).round() as usize).collect()
}

/// The size from which on a single operation takes longer than this is the last one measured.
const OPERATION_MAX: Duration = Duration::from_millis(40);
/// Passes over all sizes: a noisy second spoils one pass, not a size.
const PASSES: usize = 5;

/// How thoroughly, and who watches.
pub struct Thorough<'a> {
    /// For each size, and each number of operations together, in some passes, of which the shortest counts.
    pub time: Duration,
    /// Told of each algorithm before its turn.
    pub begin: &'a mut dyn FnMut(Algorithm),
    /// Asked between figures; on `false` the measurement ends. The algorithm that is under way is then not measured.
    pub go_on: &'a dyn Fn() -> bool,
}

/// Measures these algorithms on an engine. One that the engine fails to do is left off the sheet. What an `earlier` sheet has of others, and the
/// way to a broker, stays. What was measured until an early end is on the earlier sheet, in place of what that had of the same algorithms.
pub fn measure_full(engine: &dyn Engine, algorithms: &[Algorithm], earlier: Option<CostSheet>, thorough: Thorough<'_>) -> CostSheet {
    let Thorough { time, begin, go_on } = thorough;
    let mut curves = Vec::with_capacity(algorithms.len());
    for &algorithm in algorithms.iter().take_while(|_| go_on()) {
        begin(algorithm);
        if let Ok((curve, handover_ns)) = curve(engine, algorithm, time, go_on) {
            curves.push((algorithm, curve, handover_ns));
        }
    }
    let (mut sheet, others) = match earlier {
        Some(earlier) if !go_on() => (earlier, Vec::new()),
        earlier => after(earlier, engine, algorithms),
    };
    super::put(&mut sheet, curves);
    super::put(&mut sheet, others);
    super::host::put(&mut sheet, engine, algorithms);
    sheet
}

/// A new sheet, and what goes onto it from an earlier one: curves of algorithms that are not measured now.
fn after(earlier: Option<CostSheet>, engine: &dyn Engine, algorithms: &[Algorithm]) -> (CostSheet, Vec<Measured>) {
    let mut sheet = super::head(engine, algorithms);
    let Some(earlier) = earlier else { return (sheet, Vec::new()) };
    sheet.reach_broker_ns = earlier.reach_broker_ns;
    let other = |(name, curve): (String, CostCurve)| {
        let algorithm = name.parse().ok().filter(|algorithm| !algorithms.contains(algorithm))?;
        Some((algorithm, curve, launches(engine, algorithm).then_some(earlier.handover_ns)))
    };
    (sheet, earlier.algorithms.into_iter().filter_map(other).collect())
}

/// The longest text: CCM counts it in three bytes beside the usual nonce of twelve (SP 800-38C A.1), and a data unit of XTS has 2^20 blocks at most (IEEE 1619-2018 s5.1). An engine may refuse
/// a longer one, and then nothing of the algorithm would be known.
fn longest(algorithm: Algorithm) -> usize {
    match algorithm {
        _ if algorithm.is_ccm() => (1 << 24) - 1,
        _ if algorithm.is_xts() => 16 << 20,
        _ => usize::MAX,
    }
}

fn curve(engine: &dyn Engine, algorithm: Algorithm, time: Duration, go_on: &dyn Fn() -> bool) -> Result<(CostCurve, Option<f64>)> {
    let (keyed, setup_ns) = setup(engine, algorithm)?;
    let shortest = |what: &[(usize, usize)]| shortest(engine, &*keyed, algorithm, what, time, go_on);
    if algorithm.is_public_key() {
        let lanes = engine.lanes(algorithm).max(1);
        let single = shortest(&[(0, 1)])?;
        let together: Vec<_> = (2..=lanes).map(|count| (0, count)).collect();
        let batch = shortest(&together)?;
        let batch = together.iter().zip(batch).map(|(&(_, count), ns)| (count as u64, ns)).collect();
        return Ok((CostCurve { setup_ns, points: vec![(0, single[0])], batch, ..CostCurve::default() }, None));
    }
    let mut sizes: Vec<_> = sizes().into_iter().filter(|&size| size <= longest(algorithm)).map(|size| input_len(algorithm, size)).collect();
    sizes.dedup();
    let what: Vec<_> = sizes.into_iter().map(|size| (size, together(engine, algorithm, size))).collect();
    let handover_ns = if launches(engine, algorithm) { shortest(&[(what[0].0, 1)])?.first().copied() } else { None };
    let times = shortest(&what)?;
    let points: Vec<(u64, f64)> =
        what.iter().zip(times).map(|(&(size, count), ns)| (size as u64, each_ns(ns, handover_ns, count))).collect();
    let fitted = fit(&points);
    let (segments, fit_error) = fitted.map_or((Vec::new(), None), |fit| (fit.segments, Some(fit.error)));
    Ok((CostCurve { setup_ns, points, segments, fit_error, ..CostCurve::default() }, handover_ns))
}

/// Nanoseconds of each `(size, operations together)`: the shortest of all passes. Sizes end where a single run takes too long.
///
/// # Errors
/// The engine's; [`Error::NotRun`] on an early end.
fn shortest(
    engine: &dyn Engine,
    keyed: &dyn Keyed,
    algorithm: Algorithm,
    what: &[(usize, usize)],
    time: Duration,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<f64>> {
    let slice = time / PASSES as u32;
    let mut times: Vec<f64> = Vec::with_capacity(what.len());
    for pass in 0..PASSES {
        let count = if pass == 0 { what.len() } else { times.len() };
        for (index, &(size, together)) in what.iter().enumerate().take(count) {
            if !go_on() {
                return Err(Error::NotRun);
            }
            let (_, operation) = sample(algorithm, size)?;
            let mut operations = vec![operation; together];
            let first = runs_ns(engine, keyed, &mut operations, 1)?;
            let best = within(slice, first, |runs| runs_ns(engine, keyed, &mut operations, runs))?;
            match times.get_mut(index) {
                Some(ns) => *ns = ns.min(best),
                None => times.push(best),
            }
            if pass == 0 && size > 0 && best > OPERATION_MAX.as_nanos() as f64 {
                break;
            }
        }
    }
    Ok(times)
}

/// The shortest of as many measurements as the slice holds.
fn within(slice: Duration, first: f64, mut measure: impl FnMut(u32) -> Result<f64>) -> Result<f64> {
    let runs = ((slice.as_nanos() as f64 / 8.0 / first.max(1.0)) as u32).clamp(1, super::RUNS_MAX);
    let begun = Instant::now();
    let (mut best, mut count) = (first, 1);
    while begun.elapsed() < slice || (count < TIMES_MIN && begun.elapsed() < 2 * OPERATION_MAX) {
        best = best.min(measure(runs)?);
        count += 1;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_engine_cpu::CpuEngine;
    use core::cell::Cell;

    const TIME: Duration = Duration::from_micros(100);

    #[test]
    fn an_early_end_leaves_what_was_known_and_what_was_measured() {
        let engine = CpuEngine::new();
        let measured_before = super::super::measure(&engine, &[Algorithm::Sha256, Algorithm::Sha384, Algorithm::X25519], Duration::ZERO);
        for (looks, anew) in [(0, false), (5, false), (1000, true)] {
            let (looked, begun) = (Cell::new(0), Cell::new(0));
            // Ends at the second algorithm, or in the midst of the first one.
            let go_on = || looked.replace(looked.get() + 1) < looks && begun.get() < 2;
            let thorough = Thorough { time: TIME, begin: &mut |_| begun.set(begun.get() + 1), go_on: &go_on };
            let sheet = measure_full(&engine, &[Algorithm::Sha256, Algorithm::X25519], Some(measured_before.clone()), thorough);
            assert_eq!(!sheet.curve(Algorithm::Sha256).unwrap().segments.is_empty(), anew, "{looks}");
            for known in [Algorithm::Sha384, Algorithm::X25519] {
                assert_eq!(sheet.curve(known), measured_before.curve(known), "{looks}");
            }
        }
    }

    #[test]
    fn what_is_not_measured_anew_stays() {
        let engine = CpuEngine::new();
        let mut earlier = super::super::measure(&engine, &[Algorithm::Sha256, Algorithm::Sha1, Algorithm::X25519], Duration::ZERO);
        earlier.reach_broker_ns = Some(5000.0);
        let thorough = Thorough { time: TIME, begin: &mut |_| {}, go_on: &|| true };
        let sheet = measure_full(&engine, &[Algorithm::Sha256], Some(earlier.clone()), thorough);
        assert!(!sheet.curve(Algorithm::Sha256).unwrap().segments.is_empty());
        assert_eq!(
            (sheet.curve(Algorithm::Sha1), sheet.curve(Algorithm::X25519)),
            (earlier.curve(Algorithm::Sha1), earlier.curve(Algorithm::X25519))
        );
        assert_eq!(sheet.reach_broker_ns, Some(5000.0));
    }

    #[test]
    fn modes_of_whole_blocks_have_the_sizes_that_were_measured() {
        let thorough = Thorough { time: TIME, begin: &mut |_| {}, go_on: &|| true };
        let sheet = measure_full(&CpuEngine::new(), &[Algorithm::Aes128Cbc], None, thorough);
        let sizes: Vec<u64> = sheet.curve(Algorithm::Aes128Cbc).unwrap().points.iter().map(|&(bytes, _)| bytes).collect();
        assert_eq!(sizes[..4], [16, 32, 48, 64]);
        assert!(sizes.iter().all(|bytes| bytes % 16 == 0) && sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
    }

    /// Kernels take any length; the library, which computes XTS where the processor has none for them, does not.
    #[test]
    fn a_data_unit_of_xts_is_no_longer_than_any_may_be() {
        for engine in [CpuEngine::without_lanes(), CpuEngine::new()] {
            let thorough = Thorough { time: TIME, begin: &mut |_| {}, go_on: &|| true };
            let sheet = measure_full(&engine, &[Algorithm::Aes256Xts], None, thorough);
            let curve = sheet.curve(Algorithm::Aes256Xts).expect("its curve ends where its longest data unit does");
            assert!(curve.points.len() >= 20 && curve.points.last().unwrap().0 <= 16 << 20, "{curve:?}");
        }
    }

    #[test]
    fn sizes_go_from_a_block_to_beyond_the_caches() {
        let sizes = sizes();
        assert_eq!((sizes[0], sizes[2], sizes.last().copied()), (16, 32, Some(64 << 20)));
        assert!(sizes.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_full_sheet_has_segments_and_batches_of_every_number() {
        let engine = CpuEngine::new();
        let wanted = [Algorithm::Sha256, Algorithm::X25519, Algorithm::Aes128Ccm];
        let mut begun = Vec::new();
        let thorough = Thorough { time: TIME, begin: &mut |algorithm| begun.push(algorithm), go_on: &|| true };
        let sheet = measure_full(&engine, &wanted, None, thorough);
        assert_eq!(begun, wanted);
        let hash = sheet.curve(Algorithm::Sha256).unwrap();
        assert!(hash.segments[0].0 == 0 && hash.fit_error.is_some() && hash.points.len() >= 20, "{hash:?}");
        let last = hash.points.last().unwrap().0;
        assert!(hash.estimate_ns(last) > 100.0 * hash.estimate_ns(16));
        let ccm = sheet.curve(Algorithm::Aes128Ccm).expect("its curve ends where its longest message does");
        assert!(ccm.points.last().unwrap().0 < 1 << 24, "{ccm:?}");
        let agree = sheet.curve(Algorithm::X25519).unwrap();
        let counts: Vec<u64> = agree.batch.iter().map(|&(count, _)| count).collect();
        assert_eq!(counts, (2..=engine.lanes(Algorithm::X25519) as u64).collect::<Vec<_>>());
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "x").unwrap(), sheet, "it can be kept");
    }
}
