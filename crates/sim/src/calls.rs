//! The calls of a recording, one after the other: what a program that waits for each of them, as a thread of DDS does, would have of engines by their cost sheets.
//!
//! When the calls came is not looked at: on another machine each would come as much later as the ones before it took longer.

use crate::replay::{Arrival, Outcome};
use bywash_core::trace::Record;
use bywash_core::{Algorithm, Time};
use bywash_policy::{EngineInfo, EngineSet};

/// Between the end of a call, wherever it ran, and the next: what was rounded up is done as well.
const BETWEEN_NS: f64 = 1000.0;

/// Calls for [`replay::run`](crate::replay::run), and what became of the recording.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Each comes when the one before it is done on the slowest engine.
    pub arrivals: Vec<Arrival>,
    /// Bytes in them.
    pub bytes: u64,
    /// Records of algorithms that not every engine has.
    pub left_out: usize,
    /// Records with keys of 256 bits, as if these had 128: the engines' sheets know no other.
    pub shorter: usize,
}

impl Calls {
    /// The calls of these records that all of the engines can do.
    pub fn of(records: &[Record], engines: &[EngineInfo]) -> Self {
        let (mut calls, mut at) = (Self::default(), 0.0);
        let slowest = |algorithm, bytes| engines.iter().filter_map(|engine| engine.costs.estimate_ns(algorithm, bytes)).fold(0.0, f64::max);
        let switches: f64 = engines.iter().map(|engine| engine.costs.switch_ns).sum();
        for record in records {
            let Some(algorithm) = on_all(record.algorithm, engines) else {
                calls.left_out += 1;
                continue;
            };
            let Record { direction, bytes, client, session, .. } = *record;
            calls.shorter += usize::from(algorithm != record.algorithm);
            calls.bytes += bytes;
            calls.arrivals.push(Arrival { at: Time(at as u64), algorithm, direction, bytes, engines: EngineSet(0), client, session });
            at += slowest(algorithm, bytes) + switches + BETWEEN_NS;
        }
        calls
    }

    /// The same calls for these engines alone.
    #[must_use]
    pub fn on(&self, engines: EngineSet) -> Vec<Arrival> {
        self.arrivals.iter().map(|arrival| Arrival { engines, ..*arrival }).collect()
    }
}

/// Nanoseconds that all calls took together.
pub fn total_ns(outcome: &Outcome, arrivals: &[Arrival]) -> u64 {
    outcome.served.iter().flatten().zip(arrivals).map(|(served, arrival)| served.done.since_ns(arrival.at)).sum()
}

/// What all sheets have for an algorithm: itself, or the same with keys of 128 bits instead of 256.
fn on_all(algorithm: Algorithm, engines: &[EngineInfo]) -> Option<Algorithm> {
    let shorter = algorithm.name().replace("-256", "-128").parse().ok();
    let all = |algorithm: &Algorithm| engines.iter().all(|engine| engine.costs.curve(*algorithm).is_some());
    [Some(algorithm), shorter].into_iter().flatten().find(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::run;
    use bywash_core::trace::{HEADER, by_arrival};
    use bywash_core::{CostSheet, Direction};
    use bywash_policy::mediator::{Mediator, Setting};
    use bywash_policy::{Lanes, Placement, Policy};

    /// kido's processor, and beside it its FPGA with a time for each call.
    fn engines(call_us: f64) -> Vec<EngineInfo> {
        let pi = CostSheet::from_toml(include_str!("../../core/sheets/kido-raspberry-pi-3.toml"), "pi").unwrap();
        let fpga = CostSheet::from_toml(include_str!("../../core/sheets/kido-fpga.toml"), "fpga").unwrap();
        let fpga = CostSheet { handover_ns: call_us * 1e3, ..fpga };
        [pi, fpga].map(|costs| EngineInfo { workers: 1, lanes: Lanes::same(1), costs }).into()
    }

    /// A piece of 61,700 bytes and two of 1 KiB, as DDS asks for them, and a signature that neither sheet has; all at once.
    fn records() -> Vec<Record> {
        let asked = [
            ("AES-256-GCM", "encrypt", 61_700),
            ("AES-256-GCM", "decrypt", 1024),
            ("AES-128-GCM", "encrypt", 1024),
            ("ECDSA-P256 sign", "compute", 32),
        ];
        let line = |(algorithm, direction, bytes): (&str, &str, u64)| {
            format!("100,1,1,{algorithm},{direction},{bytes},here,100,150,,,,,,,1,0,0,talker\n")
        };
        by_arrival(&format!("{HEADER}\n{}", asked.map(line).concat()), "records").unwrap()
    }

    #[test]
    fn what_no_sheet_has_is_left_out_and_the_rest_comes_in_order() {
        let calls = Calls::of(&records(), &engines(0.0));
        assert_eq!((calls.arrivals.len(), calls.left_out, calls.shorter, calls.bytes), (3, 1, 2, 61_700 + 2048));
        assert!(calls.arrivals.iter().all(|arrival| arrival.algorithm == Algorithm::Aes128Gcm));
        assert!(calls.arrivals.is_sorted_by(|one, other| one.at < other.at));
        assert_eq!(calls.arrivals[1].direction, Direction::Decrypt);
    }

    #[test]
    fn an_engine_is_used_where_it_pays_and_only_there() {
        // 1 KiB takes 45 us on the processor and 6 in the circuit; 61,700 bytes 2.7 and 0.35 ms. So a call that costs 100 us pays for the large piece alone, and one of 10 ms for none.
        for (call_us, expected) in [(0.0, 3), (100.0, 1), (10_000.0, 0)] {
            let engines = engines(call_us);
            let calls = Calls::of(&records(), &engines);
            let alone = [0b01, 0b10].map(|set| {
                let arrivals = calls.on(EngineSet(set));
                total_ns(&run(&mut Placement::new(&engines), &engines, &[], None, &arrivals), &arrivals)
            });
            let policies: [Box<dyn Policy>; 2] =
                [Box::new(Placement::new(&engines)), Box::new(Mediator::new(&engines, Setting::default()))];
            for mut policy in policies {
                let arrivals = calls.on(EngineSet(0b11));
                let outcome = run(&mut *policy, &engines, &[], None, &arrivals);
                assert_eq!(outcome.work[1].requests, expected, "{call_us} us a call");
                let total = total_ns(&outcome, &arrivals);
                assert!(total <= alone[0].min(alone[1]), "{call_us} us a call: {total} ns, alone {alone:?}");
            }
        }
    }
}
