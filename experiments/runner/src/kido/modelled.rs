//! The paper's estimate, and the break-even of an engine, from cost sheets. All of it is modelled but what a call costs on this processor.

use super::{FRAGMENT, SIZES};
use crate::ciphers::{self, Rival};
use crate::{Error, Options, Outcome, Result, write_table};
use bywash_core::{Algorithm, CostSheet};
use bywash_dds_material::{Governance, Protection};
use bywash_measure::plot::{Panel, Scale, draw, size};
use serde::Serialize;
use std::fmt::Write;

const PI: &str = include_str!("../../../../crates/core/sheets/kido-raspberry-pi-3.toml");
const FPGA: &str = include_str!("../../../../crates/core/sheets/kido-fpga.toml");
/// The estimate's message.
const MESSAGE: u64 = 1_000_000;
/// Section 3: Fast RTPS calls the cipher for each 85 to 90 KB.
const PIECE: u64 = 87_500;
/// Section 4: from node to node with the circuit, in ms; the saving of the whole and of the encryption, in percent.
const PUBLISHED: (f64, f64, f64) = (55.69, 41.0, 87.2);
/// Times for each call that the paper leaves out, in microseconds.
const CALLS_US: [f64; 7] = [0.0, 1.0, 5.0, 10.0, 100.0, 1000.0, 2000.0];
const ALGORITHM: Algorithm = Algorithm::Aes128Gcm;

/// The estimate with a time for each call.
#[derive(Serialize)]
struct Estimate {
    call_us: f64,
    calls: u64,
    software_ms: f64,
    engine_ms: f64,
    total_before_ms: f64,
    total_ms: f64,
    encryption_saved_percent: f64,
    total_saved_percent: f64,
}

fn ns(sheet: &CostSheet, bytes: u64) -> Result<f64> {
    let unknown = || Error(format!("the sheet of {} has no {ALGORITHM}", sheet.engine));
    sheet.estimate_ns(ALGORITHM, bytes).ok_or_else(unknown)
}

fn estimates() -> Result<Vec<Estimate>> {
    let (pi, fpga) = (CostSheet::from_toml(PI, "kido-raspberry-pi-3")?, CostSheet::from_toml(FPGA, "kido-fpga")?);
    // What is not encryption: the paper's total with the circuit, less the circuit's time. It is the one figure that is taken from the result.
    let rest_ms = PUBLISHED.0 - ns(&fpga, MESSAGE)? / 1e6;
    let calls = MESSAGE.div_ceil(PIECE);
    CALLS_US
        .into_iter()
        .map(|call_us| {
            let with_calls = CostSheet { handover_ns: call_us * 1e3, ..fpga.clone() };
            let mut engine_ns = 0.0;
            for call in 0..calls {
                let bytes = (MESSAGE - call * PIECE).min(PIECE);
                engine_ns += ns(&with_calls, bytes)?;
            }
            let engine_ms = engine_ns / 1e6;
            let software_ms = ns(&pi, MESSAGE)? / 1e6;
            let (before, after) = (rest_ms + software_ms, rest_ms + engine_ms);
            Ok(Estimate {
                call_us,
                calls,
                software_ms,
                engine_ms,
                total_before_ms: before,
                total_ms: after,
                encryption_saved_percent: 100.0 * (1.0 - engine_ms / software_ms),
                total_saved_percent: 100.0 * (1.0 - after / before),
            })
        })
        .collect()
}

/// The paper's section 4, and the same with what a call costs.
pub(super) fn estimate(options: &Options, outcome: &mut Outcome) -> Result<()> {
    let rows = estimates()?;
    let mut csv =
        "call_us,marked,calls,software_ms,engine_ms,total_before_ms,total_ms,encryption_saved_percent,total_saved_percent\n".to_owned();
    let (total, whole, encryption) = PUBLISHED;
    let _ = writeln!(
        outcome.text,
        "The paper's estimate: 1 MB on a Raspberry Pi 3 (22.53 MB/s) and with an FPGA (176 MB/s), X us for each call of the cipher; MODELLED\n\
         (published, without X: {total} ms, {whole} % less; encryption {encryption} % less)"
    );
    for row in &rows {
        let Estimate { call_us, calls, software_ms, engine_ms, total_before_ms, total_ms, encryption_saved_percent, total_saved_percent } =
            row;
        let _ = writeln!(
            csv,
            "{call_us},modelled,{calls},{software_ms:.3},{engine_ms:.3},{total_before_ms:.3},{total_ms:.3},{encryption_saved_percent:.1},{total_saved_percent:.1}"
        );
        let _ = writeln!(
            outcome.text,
            "X = {call_us:>6} us: {total_before_ms:>6.2} -> {total_ms:>6.2} ms, {total_saved_percent:>5.1} % less; encryption {software_ms:.2} -> {engine_ms:>5.2} ms, {encryption_saved_percent:>5.1} % less"
        );
    }
    write_table(options, outcome, "estimate", &csv, &rows)?;
    let line = |name: &str, value: fn(&Estimate) -> f64| (name.to_owned(), rows.iter().map(|row| (row.call_us, value(row))).collect());
    let panel = Panel {
        title: "The paper's estimate with a time for each call, modelled".into(),
        x: "us for each call",
        y: "% less",
        scale: Scale::Linear,
        lines: vec![line("encryption", |row| row.encryption_saved_percent), line("node to node", |row| row.total_saved_percent)],
        marks: vec![("published".into(), vec![(0.0, encryption), (0.0, whole)])],
    };
    draw(&options.out.join("estimate.svg"), &[panel])?;
    Ok(())
}

/// What an engine must do to be worth it.
#[derive(Serialize)]
struct BreakEven {
    processor: &'static str,
    governance: &'static str,
    bytes: usize,
    /// Calls on the message in one direction: its own, without acknowledgements and heartbeats.
    calls: usize,
    /// Bytes that pass through the cipher or GHASH in them.
    protected_bytes: usize,
    software_us: f64,
    /// The time for each call at which an engine of endless rate is even.
    call_us_max: f64,
    /// The same for one of 176 MB/s; none if it is never even.
    call_us_fpga: Option<f64>,
    /// The rate at which an engine that takes no time for a call is even, in MB/s.
    rate_mb_s_min: f64,
}

/// The calls that a message has in one direction, each with its bytes.
fn calls(governance: &Governance, bytes: usize) -> Vec<usize> {
    let is = |protection: Protection| protection != Protection::None;
    let fragments = bytes.div_ceil(FRAGMENT);
    let pieces = (0..fragments).map(|piece| (bytes - piece * FRAGMENT).min(FRAGMENT));
    let mut calls = Vec::new();
    if is(governance.data) {
        // A payload is sealed whole, before it is cut.
        calls.push(bytes);
    }
    for level in [governance.metadata, governance.rtps] {
        if is(level) {
            calls.extend(pieces.clone());
        }
    }
    calls
}

/// Nanoseconds of one call by its bytes on this processor, keyed already: ours and the system's OpenSSL.
fn here(options: &Options) -> Result<[CostSheet; 2]> {
    let mut points: [Vec<(u64, f64)>; 2] = [Vec::new(), Vec::new()];
    for bytes in [16, 1 << 10, 10 << 10, FRAGMENT, 1 << 20] {
        let pair = ciphers::pair(ALGORITHM, bytes)?;
        let mut rivals: Vec<Rival> = vec![pair.ours, pair.openssl.map_err(Error)?];
        let measured = ciphers::ns(&mut rivals, ciphers::effort(options))?;
        points.iter_mut().zip(measured).for_each(|(points, ns)| points.push((bytes as u64, ns)));
    }
    let sheet = |engine: &str, points: Vec<(u64, f64)>| {
        let mut sheet = CostSheet::empty(engine);
        sheet.algorithms.insert(ALGORITHM.to_string(), bywash_core::CostCurve { points, ..bywash_core::CostCurve::default() });
        sheet
    };
    let [ours, openssl] = points;
    Ok([sheet("ours", ours), sheet("openssl", openssl)])
}

/// The break-even table: an engine beside this processor, and beside the paper's.
pub(super) fn break_even(options: &Options, outcome: &mut Outcome) -> Result<()> {
    let [ours, openssl] = here(options)?;
    let pi = CostSheet::from_toml(PI, "kido-raspberry-pi-3")?;
    let fpga = CostSheet::from_toml(FPGA, "kido-fpga")?;
    let mut rows = Vec::new();
    for (processor, sheet) in [("Raspberry Pi 3, modelled", &pi), ("this one, OpenSSL", &openssl), ("this one, Bywash", &ours)] {
        for governance in Governance::FIVE {
            for bytes in SIZES {
                let calls = calls(&governance, bytes);
                if calls.is_empty() {
                    continue;
                }
                let total = |sheet: &CostSheet| calls.iter().map(|&bytes| ns(sheet, bytes as u64)).sum::<Result<f64>>();
                let (software, engine) = (total(sheet)?, total(&fpga)?);
                let (count, protected) = (calls.len(), calls.iter().sum::<usize>());
                rows.push(BreakEven {
                    processor,
                    governance: governance.name,
                    bytes,
                    calls: count,
                    protected_bytes: protected,
                    software_us: software / 1e3,
                    call_us_max: software / 1e3 / count as f64,
                    call_us_fpga: Some((software - engine) / 1e3 / count as f64).filter(|&call| call > 0.0),
                    rate_mb_s_min: protected as f64 * 1e3 / software,
                });
            }
        }
    }
    tell(options, outcome, &rows)
}

fn tell(options: &Options, outcome: &mut Outcome, rows: &[BreakEven]) -> Result<()> {
    let mut csv = "processor,governance,bytes,marked,calls,protected_bytes,software_us,call_us_max,call_us_fpga,rate_mb_s_min\n".to_owned();
    let _ = writeln!(
        outcome.text,
        "\nBreak-even: an engine beside a processor pays below X us a call (at endless rate; the FPGA's 176 MB/s) and above Y MB/s (at no time a call).\n\
         Calls and bytes are of the message alone, MODELLED; the times of this processor are MEASURED, keyed contexts\n{:<26}{:<6}{:>6}{:>7}{:>12}{:>10}{:>12}{:>12}",
        "beside", "", "size", "calls", "software us", "X us", "X us, FPGA", "Y MB/s"
    );
    for row in rows {
        let BreakEven { processor, governance, bytes, calls, protected_bytes, software_us, call_us_max, call_us_fpga, rate_mb_s_min } = row;
        let fpga = call_us_fpga.map_or_else(|| "never".into(), |call| format!("{call:.2}"));
        let _ = writeln!(
            csv,
            "\"{processor}\",{governance},{bytes},modelled,{calls},{protected_bytes},{software_us:.3},{call_us_max:.3},{fpga},{rate_mb_s_min:.1}"
        );
        let _ = writeln!(
            outcome.text,
            "{processor:<26}{governance:<6}{:>6}{calls:>7}{software_us:>12.2}{call_us_max:>10.2}{fpga:>12}{rate_mb_s_min:>12.0}",
            size(*bytes as f64)
        );
    }
    write_table(options, outcome, "break-even", &csv, &rows)?;
    let names = ["Raspberry Pi 3, modelled", "this one, OpenSSL", "this one, Bywash"];
    let panels: Vec<Panel> = names
        .into_iter()
        .map(|processor| Panel {
            title: format!("Beside {processor}: below this an engine pays"),
            x: "bytes of a message",
            y: "us for each call",
            scale: Scale::Sizes,
            lines: Governance::FIVE
                .iter()
                .filter(|governance| **governance != Governance::OFF)
                .map(|governance| {
                    let of = |row: &&BreakEven| row.processor == processor && row.governance == governance.name;
                    (governance.name.to_owned(), rows.iter().filter(of).map(|row| (row.bytes as f64, row.call_us_max)).collect())
                })
                .collect(),
            marks: Vec::new(),
        })
        .collect();
    draw(&options.out.join("break-even.svg"), &panels)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_percentages_come_out() {
        let rows = estimates().unwrap();
        let (total, whole, encryption) = PUBLISHED;
        assert!((rows[0].total_ms - total).abs() < 0.005);
        assert!((rows[0].total_saved_percent - whole).abs() < 0.05, "{}", rows[0].total_saved_percent);
        assert!((rows[0].encryption_saved_percent - encryption).abs() < 0.05, "{}", rows[0].encryption_saved_percent);
        // About 47 % of the time is encryption, says section 3.
        assert!((rows[0].software_ms / rows[0].total_before_ms - 0.47).abs() < 0.005);
        // Each call counts once.
        let calls = rows[1].calls as f64;
        assert!((rows[1].engine_ms - rows[0].engine_ms - calls * 1e-3).abs() < 1e-9);
    }

    #[test]
    fn a_message_is_cut_as_its_governance_says() {
        assert!(calls(&Governance::OFF, 1 << 20).is_empty());
        assert_eq!(calls(&Governance::DATA, 1 << 20), [1 << 20]);
        assert_eq!(calls(&Governance::RTPS, 1 << 20).len(), 17);
        assert_eq!(calls(&Governance::ROS2, 1024), [1024; 3]);
        assert_eq!(calls(&Governance::RTPS, 1 << 20).iter().sum::<usize>(), 1 << 20);
    }
}
