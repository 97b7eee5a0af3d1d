//! ohgama2008: a scheduler for the one crypto module of a board, which many processes share. Figures 6 to 8, and what other schedulers would have made of it.
//!
//! The parts `figures`, `switches` and `mixed` are simulated: the policies of [`bywash_policy::schedule`] on [`bywash_sim::shared`]. Their loads and
//! constants are in [`loads`]. The part `live` has real processes at the module behind a broker, and `device` has them
//! ask `/dev/crypto`, as the paper's programs do.

mod bars;
mod figures;
mod live;
mod loads;
mod mixed;
mod switches;

use crate::{Options, Outcome, Progress, Result, parts};
use std::fmt::Write;

/// The parts, in the order in which they run.
const PARTS: &[&str] = &["figures", "switches", "mixed", "live", "device"];

pub(crate) fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    parts(options, PARTS)?;
    let wanted = |part: &str| options.parts.is_empty() || options.parts.iter().any(|name| name == part);
    let mut outcome = Outcome { text: hypotheses(), ..Outcome::default() };
    let mut bars = bars::Bars::new();
    if wanted("figures") {
        let figures = figures::run_part(options, &mut outcome, progress)?;
        let crossing = figures.crossing.map_or(f64::NAN, |operations| operations as f64);
        bars.push(bars::Bar::at_least("figure 6: operations from which sched is ahead (paper: about 200)", crossing, 150.0));
        bars.push(bars::Bar::at_most("figure 6: the same", crossing, 250.0));
    }
    if wanted("switches") {
        bars.extend(switches::run_part(options, &mut outcome, progress)?);
    }
    if wanted("mixed") {
        bars.extend(mixed::run_part(options, &mut outcome, progress)?);
    }
    if wanted("live") {
        bars.extend(live::run_part(options, &mut outcome, progress)?);
    }
    if wanted("device") {
        live::device::run_part(options, &mut outcome, progress)?;
    }
    if bars.is_empty() {
        return Ok(outcome);
    }
    let _ = writeln!(outcome.text, "Bars (those that do not say live are simulated)");
    for bar in &bars {
        let _ = writeln!(outcome.text, "{bar}");
    }
    Ok(outcome)
}

fn hypotheses() -> String {
    use loads::{ALGORITHM, BYTES, CHANGE_NS, GRANT_NS, SERVICE_NS, WORK_NS};
    format!(
        "Hypotheses of ours (the paper publishes none of these): {ALGORITHM} of {BYTES} bytes takes the module {} us, a process {} us of its own, a change of process {} us \
         each way, and waking the next process in sched {:.1} ms.\n\n",
        SERVICE_NS / 1000,
        WORK_NS / 1000,
        CHANGE_NS / 1000,
        GRANT_NS as f64 / 1e6
    )
}

/// The paper's scheduler, but for an end of holding.
const BOUNDED: &str = "exclusive:hold=50ms";

/// All that can have one module.
fn schedulers() -> impl Iterator<Item = &'static str> {
    let over_engines = |name: &&str| !matches!(*name, "split" | "failover");
    ["fifo"].into_iter().chain(bywash_policy::schedule::NAMES.iter().copied().filter(over_engines)).chain([BOUNDED])
}
