//! The routing table: for every algorithm and size class, *here* or *queue*.
//!
//! *Queue* is said only where some engine, hand-over and transfer included, is expected to beat the CPU engine in the caller's own place
//! at both ends of the size class. A request alone is compared, without the gain of a full batch: the table must not make a
//! program with one request at a time slower. Where nothing is known, the answer is *here*.
//!
//! A table that is refreshed again and again must not flap between two places that cost nearly the same: an entry becomes *queue*
//! only if the queue needs at most 4/5 of the time here, and stays so until it needs more than all of it.

use bywash_core::route::{ROUTES, SizeClass, route_index};
use bywash_core::{Algorithm, CostSheet, Place};

/// The share of the time *here* that the queue must stay below for an entry to become *queue*.
pub const GAIN_MIN: f64 = 0.8;

/// A table made afresh, in the order of [`route_index`]. `handover_ns` is what reaching the manager costs from where the caller is (the
/// broker's ring, another thread), on top of what each engine's sheet says.
pub fn refresh(here: &CostSheet, engines: &[CostSheet], handover_ns: f64) -> Vec<Place> {
    refresh_from(&[Place::Here; ROUTES], here, engines, handover_ns)
}

/// A table made from the one in force, with hysteresis.
///
/// # Panics
/// If `before` is not a table.
pub fn refresh_from(before: &[Place], here: &CostSheet, engines: &[CostSheet], handover_ns: f64) -> Vec<Place> {
    assert_eq!(before.len(), ROUTES, "not a routing table");
    let mut table = Vec::with_capacity(ROUTES);
    for &algorithm in Algorithm::ALL {
        for class in SizeClass::all() {
            let was = before[table.len()];
            let limit = if was == Place::Queue { 1.0 } else { GAIN_MIN };
            let queue = gain(algorithm, class, here, engines, handover_ns).is_some_and(|share| share < limit);
            debug_assert!(algorithm.is_public_key() || table.len() == route_index(algorithm, class.bytes_min()));
            table.push(if queue { Place::Queue } else { Place::Here });
        }
    }
    table
}

/// The time of the best engine over the time here, the worse of the two ends of the class; `None` where nothing is known.
fn gain(algorithm: Algorithm, class: SizeClass, here: &CostSheet, engines: &[CostSheet], handover_ns: f64) -> Option<f64> {
    let share = |bytes: u64, engine: &CostSheet| -> Option<f64> {
        let own = here.curve(algorithm)?.estimate_ns(bytes);
        Some((handover_ns + engine.estimate_ns(algorithm, bytes)?) / own)
    };
    let first = class.bytes_min() as u64;
    let last = 2 * first - 1;
    engines.iter().filter_map(|engine| Some(share(first, engine)?.max(share(last, engine)?))).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(text: &str) -> CostSheet {
        CostSheet::from_toml(text, "test").unwrap()
    }

    fn cpu() -> CostSheet {
        sheet(
            "engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 10.0], [1000000, 100000.0]]\n\
             [algorithms.\"RSA-2048 private\"]\npoints = [[0, 250000.0]]\n",
        )
    }

    fn gpu(handover: f64) -> CostSheet {
        sheet(&format!(
            "engine = \"gpu\"\nhandover_ns = {handover:.1}\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 5.0], [1000000, 20000.0]]\n\
             [algorithms.\"X25519\"]\npoints = [[0, 1.0]]\n"
        ))
    }

    fn crossover(table: &[Place]) -> usize {
        let route = |bytes| table[route_index(Algorithm::Aes128Ctr, bytes)];
        (0..25).map(|octave| 1 << octave).find(|&bytes| route(bytes) == Place::Queue).unwrap_or(usize::MAX)
    }

    #[test]
    fn the_engine_of_the_caller_itself_is_never_worth_a_handover() {
        assert!(refresh(&cpu(), &[cpu()], 500.0).iter().all(|&place| place == Place::Here));
        assert!(refresh(&cpu(), &[cpu()], 0.0).iter().all(|&place| place == Place::Here), "not even a free one: no gain");
        assert!(refresh(&cpu(), &[], 0.0).iter().all(|&place| place == Place::Here));
    }

    #[test]
    fn a_distant_engine_takes_what_is_large() {
        let near = crossover(&refresh(&cpu(), &[gpu(5_000.0)], 0.0));
        let far = crossover(&refresh(&cpu(), &[gpu(5_000.0)], 20_000.0));
        assert!(near < far && far < 1 << 22, "{near} {far}");
        let table = refresh(&cpu(), &[cpu(), gpu(5_000.0)], 0.0);
        assert_eq!(crossover(&table), near, "the better engine counts, in whatever order");
        assert_eq!(table[route_index(Algorithm::X25519, 32)], Place::Here, "not known what it costs here");
        assert_eq!(table[route_index(Algorithm::Rsa2048Private, 256)], Place::Here);
    }

    /// Beyond a cache the processor is slower by a step, which the points of a quick calibration do not show.
    #[test]
    fn a_cliff_that_was_measured_moves_the_crossover() {
        let points = "points = [[0, 10.0], [1000000, 100000.0]]";
        let cliff = |at: u64| {
            let ns = 10.0 + 0.1 * at as f64;
            format!("{points}\nsegments = [[0, 10.0, 0.1], [{at}, {:.1}, 1.0]]\nfit_error = 0.01", 4.0 * ns)
        };
        let cpu = |curve: &str| sheet(&format!("engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\n{curve}\n"));
        let far = sheet("engine = \"gpu\"\nhandover_ns = 20000.0\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 5.0], [1000000, 90000.0]]\n");
        let route = |curve: &str| crossover(&refresh(&cpu(curve), std::slice::from_ref(&far), 0.0));
        assert_eq!(route(points), usize::MAX, "without the cliff the engine never gains enough");
        assert_eq!(route(&cliff(1 << 18)), 1 << 18);
        assert_eq!(route(&cliff(1 << 20)), 1 << 20);
    }

    #[test]
    fn never_slower_by_its_own_figures() {
        for handover in [0.0, 100.0, 3_000.0, 40_000.0] {
            let table = refresh(&cpu(), &[gpu(handover)], 700.0);
            for bytes in (0..2_000_000).step_by(997) {
                if table[route_index(Algorithm::Aes128Ctr, bytes)] == Place::Queue {
                    let queue = 700.0 + gpu(handover).estimate_ns(Algorithm::Aes128Ctr, bytes as u64).unwrap();
                    assert!(queue < cpu().estimate_ns(Algorithm::Aes128Ctr, bytes as u64).unwrap(), "{bytes} bytes, hand-over {handover}");
                }
            }
        }
    }

    #[test]
    fn near_the_crossing_the_table_does_not_flap() {
        let first = refresh(&cpu(), &[gpu(5_000.0)], 0.0);
        let mut table = first.clone();
        for round in 0..20 {
            let wobble = if round % 2 == 0 { 5_400.0 } else { 4_900.0 };
            table = refresh_from(&table, &cpu(), &[gpu(wobble)], 0.0);
            assert_eq!(table, first, "round {round}");
        }
        let gone = refresh_from(&table, &cpu(), &[], 0.0);
        assert!(gone.iter().all(|&place| place == Place::Here), "an engine that is gone is left at once");
    }
}
