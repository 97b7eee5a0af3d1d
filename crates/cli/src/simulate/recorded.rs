//! The requests of a log or a recording beside an engine that has a cost sheet.

use super::mediator::Traffic;
use super::text::seconds;
use super::traffic::{coarse, missing};
use crate::failure::Failure;
use crate::terminal::{bytes, counted, thousands};
use crate::texts;
use bywash_core::Algorithm;
use bywash_core::trace::Record;
use bywash_policy::{EngineId, EngineInfo, EngineSet};
use bywash_sim::asked::{self, Recorded};
use bywash_sim::log::{Foreign, Requests, requests};
use bywash_sim::replay::Arrival;
use std::path::Path;

/// Requests that any of the engines can do, of which those that waited for a result wait for it here, unless they are to come when they came. An engine whose sheet has an algorithm with keys of
/// 128 bits alone is taken to be as fast with 256.
pub(super) fn traffic(path: &Path, engines: &mut [EngineInfo], as_recorded: bool) -> Result<Traffic, Failure> {
    let (lines, place) = texts::trace(path)?;
    let Requests { mut records, clients, missing: lacks } = requests(lines, &place)?;
    let shortened = lengthen(&records, engines);
    let (all, neither) = (records.len(), Foreign::of(&records, |algorithm| able(algorithm, engines) == EngineSet(0)));
    records.retain(|record| able(record.algorithm, engines) != EngineSet(0));
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(Failure::config(format!("{place}: none of its {all} requests is on a sheet: {neither}; {}", have(engines))));
    };
    let span = last.arrival.since_ns(first.arrival) as f64 / 1e9;
    let passed = records.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
    let waits = clients.is_none() && !as_recorded;
    let Recorded { requests, waiting, in_calls } = asked::recorded(&records, &place, waits, |record| record.client)?;
    let (name, count) = (texts::name(path, &place), records.len() as u64);
    let mut told = vec![format!("{name}: {} with {} over {}", counted(count, "request"), bytes(passed), seconds(span))];
    told.push(match clients {
        Some(clients) => {
            format!("{}; an answer is AES-128-GCM, in a call for each record of TLS, 16 KiB", counted(clients as u64, "client"))
        }
        None if waiting > 0 => {
            format!("{} come after a result that their program waited for (--as-recorded: when they came)", thousands(waiting))
        }
        None => "they come when they came".to_owned(),
    });
    if clients.is_some() {
        told.extend(coarse(records.len(), span, records.iter().all(|record| record.arrival.0.is_multiple_of(1_000_000_000))));
    }
    if in_calls > 0 {
        told.push(format!(
            "{} came in several calls, one after the other: {} calls in all, which are requests below",
            thousands(in_calls),
            thousands(requests.len() as u64)
        ));
    }
    if neither.total() > 0 {
        let way_out = if engines[0].costs.modelled { "; --cpu here goes by what this processor does" } else { "" };
        told.push(format!("{} left out, on neither sheet: {neither}{way_out}", counted(neither.total(), "request")));
    }
    for (place, engine) in engines.iter().enumerate() {
        let alone = EngineSet::default().with(EngineId(place as u8));
        let only = Foreign::of(&records, |algorithm| able(algorithm, engines) == alone);
        if only.total() > 0 {
            told.push(format!("{} only on the sheet of '{}': {only}", counted(only.total(), "request"), engine.costs.engine));
        }
    }
    told.extend(shortened);
    told.extend(missing(&lacks));
    let arrival = |asked: asked::Asked| Arrival { asked, engines: able(asked.algorithm, engines) };
    Ok(Traffic { told, requests: records.len(), arrivals: requests.into_iter().map(arrival).collect() })
}

/// The engines that have it on their sheets.
fn able(algorithm: Algorithm, engines: &[EngineInfo]) -> EngineSet {
    let has = (0..).zip(engines).filter(|(_, engine)| engine.costs.curve(algorithm).is_some());
    has.fold(EngineSet::default(), |set, (place, _)| set.with(EngineId(place)))
}

/// What sheets have, for one whose requests are on none.
fn have(engines: &[EngineInfo]) -> String {
    let of = |engine: &EngineInfo| {
        let names: Vec<&str> = engine.costs.algorithms.keys().map(String::as_str).collect();
        format!("'{}' has {}", engine.costs.engine, names.join(", "))
    };
    engines.iter().map(of).collect::<Vec<_>>().join(", and ")
}

/// Gives each sheet the keys of 256 bits that are asked for, where it has the same with 128 alone; what to say of it.
fn lengthen(records: &[Record], engines: &mut [EngineInfo]) -> Vec<String> {
    let shorter =
        |algorithm: Algorithm| algorithm.name().replace("-256", "-128").parse::<Algorithm>().ok().filter(|&other| other != algorithm);
    let of = |engine: &mut EngineInfo| {
        let costs = &mut engine.costs;
        let lacks = Foreign::of(records, |algorithm| {
            costs.curve(algorithm).is_none() && shorter(algorithm).is_some_and(|other| costs.curve(other).is_some())
        });
        for algorithm in lacks.algorithms() {
            if let Some(curve) = shorter(algorithm).and_then(|other| costs.curve(other)).cloned() {
                costs.algorithms.insert(algorithm.name().to_owned(), curve);
            }
        }
        let said = || {
            format!(
                "{} as if of 128 bits on the sheet of '{}', which has no longer keys: {lacks}",
                counted(lacks.total(), "key"),
                costs.engine
            )
        };
        (lacks.total() > 0).then(said)
    };
    engines.iter_mut().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::CostSheet;
    use bywash_core::trace::HEADER;
    use bywash_policy::mediator::{Mediator, Setting};
    use bywash_policy::{Lanes, Placement, Policy};
    use bywash_sim::replay::run;
    use std::io::Write as _;

    /// kido's processor, and beside it its FPGA with a time for each call.
    fn engines(call_us: f64) -> Vec<EngineInfo> {
        let pi = CostSheet::from_toml(include_str!("../../../core/sheets/kido-raspberry-pi-3.toml"), "pi").unwrap();
        let fpga = CostSheet::from_toml(include_str!("../../../core/sheets/kido-fpga.toml"), "fpga").unwrap();
        let fpga = CostSheet { handover_ns: call_us * 1e3, ..fpga };
        [pi, fpga].map(|costs| EngineInfo { workers: 1, lanes: Lanes::same(1), costs }).into()
    }

    /// A piece of 61,700 bytes and two of 1 KiB, as a thread of DDS asks for them, and a signature that neither sheet has.
    fn recording() -> tempfile::NamedTempFile {
        let asked = [
            ("AES-256-GCM", "encrypt", 61_700, 1),
            ("AES-256-GCM", "decrypt", 1024, 1),
            ("ECDSA-P256 sign", "compute", 32, 1),
            ("AES-128-GCM", "encrypt", 1024, 1),
        ];
        let line = |(place, (algorithm, direction, bytes, calls)): (usize, (&str, &str, u64, u32))| {
            let at = 100 + 100 * place;
            format!("{at},1,1,{algorithm},{direction},{bytes},here,{at},{},,,,,,,1,0,0,talker,{calls}\n", at + 50)
        };
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let lines: String = asked.into_iter().enumerate().map(line).collect();
        write!(file, "{HEADER}\n{lines}").unwrap();
        file
    }

    fn replayed(call_us: f64, as_recorded: bool) -> (Vec<EngineInfo>, Traffic) {
        let mut engines = engines(call_us);
        let traffic = traffic(recording().path(), &mut engines, as_recorded).unwrap();
        (engines, traffic)
    }

    #[test]
    fn what_no_sheet_has_is_left_out_and_said_and_so_are_shorter_keys() {
        let (_, Traffic { told, arrivals, .. }) = replayed(0.0, false);
        assert!(arrivals.len() == 3 && arrivals.iter().all(|arrival| arrival.engines == EngineSet(0b11)), "{arrivals:?}");
        let told = told.join("\n");
        for part in [
            "3 requests with 63.7 kB over 300 ns",
            "2 come after a result that their program waited for",
            "1 request left out, on neither sheet: ECDSA-P256 sign (1)",
            "2 keys as if of 128 bits on the sheet of 'fpga', which has no longer keys: AES-256-GCM (2)",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(replayed(0.0, true).1.told[1].contains("they come when they came"));
    }

    #[test]
    fn an_engine_is_used_where_it_pays_and_only_there() {
        // 1 KiB takes 45 us on the processor and 6 in the circuit; 61,700 bytes 2.7 and 0.35 ms. So a call that costs 100 us pays for the large piece alone, and one of 10 ms for none.
        for (call_us, expected) in [(0.0, 3), (100.0, 1), (10_000.0, 0)] {
            let (engines, Traffic { arrivals, .. }) = replayed(call_us, false);
            let total = |policy: &mut dyn Policy, set: u64| {
                let arrivals: Vec<Arrival> = arrivals.iter().map(|arrival| Arrival { engines: EngineSet(set), ..*arrival }).collect();
                let outcome = run(policy, &engines, &[], None, &arrivals);
                let took: u64 = outcome.served.iter().flatten().map(|served| served.done.since_ns(served.arrived)).sum();
                (took, outcome.work[1].requests)
            };
            let alone = [0b01, 0b10].map(|set| total(&mut Placement::new(&engines), set).0);
            let policies: [Box<dyn Policy>; 2] =
                [Box::new(Placement::new(&engines)), Box::new(Mediator::new(&engines, Setting::default()))];
            for mut policy in policies {
                let (took, there) = total(&mut *policy, 0b11);
                assert_eq!(there, expected, "{call_us} us a call");
                assert!(took <= alone[0].min(alone[1]), "{call_us} us a call: {took} ns, alone {alone:?}");
            }
        }
    }
}
