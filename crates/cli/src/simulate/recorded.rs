//! The calls of a recording beside an engine that has a cost sheet.

use super::text::seconds;
use crate::failure::Failure;
use crate::terminal::thousands;
use crate::texts;
use bywash_policy::EngineInfo;
use bywash_sim::calls::{Calls, total_ns};
use bywash_sim::log::recording;
use bywash_sim::replay::{Arrival, Outcome};
use serde_json::{Value, json};
use std::path::Path;

/// What to say of a recording, and its calls.
pub(super) fn calls(path: &Path, engines: &[EngineInfo]) -> Result<(String, Vec<Arrival>), Failure> {
    let (lines, place) = texts::trace(path)?;
    let records = recording(lines, &place)?;
    let Calls { arrivals, bytes, left_out, shorter } = Calls::of(&records, engines);
    if arrivals.is_empty() {
        return Err(Failure::config(format!("{place}: none of its {} requests is of an algorithm that both sheets have", records.len())));
    }
    let mut told = format!("{place}: {} calls with {:.1} MB, one after the other", thousands(arrivals.len() as u64), bytes as f64 / 1e6);
    if left_out > 0 {
        told += &format!(", {} left out: not on both sheets", thousands(left_out as u64));
    }
    if shorter > 0 {
        told += &format!("; {} with keys of 256 bits as if of 128, which is what the sheets have", thousands(shorter as u64));
    }
    Ok((told, arrivals))
}

/// What all calls took together, in words and as figures.
pub(super) fn row(way: &str, outcome: &Outcome, arrivals: &[Arrival]) -> (String, Value) {
    let all = total_ns(outcome, arrivals) as f64 / 1e9;
    let there = outcome.work[1];
    let each = all / arrivals.len() as f64;
    let text = format!(
        "  {way:<10} {:>8} in all, {:>8} a call; {} calls with {:.1} MB on the engine\n",
        seconds(all),
        seconds(each),
        thousands(there.requests),
        there.bytes as f64 / 1e6
    );
    (text, json!({ "way": way, "total_s": all, "call_s": each, "engine_calls": there.requests, "engine_bytes": there.bytes }))
}
