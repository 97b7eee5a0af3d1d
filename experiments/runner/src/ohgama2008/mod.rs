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

use crate::{Options, Outcome, Part, Result, Tell};
use std::fmt::Write;

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &["figures", "switches", "mixed", "live", "device"];

/// What runs each of them, and gives what was to be reached.
const RUN: [Part<bars::Bars>; PARTS.len()] =
    [figures::run_part, switches::run_part, mixed::run_part, live::run_part, live::device::run_part];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    let mut outcome = Outcome { text: hypotheses(), ..Outcome::default() };
    let bars: bars::Bars = outcome.run_parts(options, PARTS, &RUN, progress).into_iter().flatten().collect();
    if options.quick {
        outcome.text += "With --quick figures mean nothing: no bar is held against them.\n";
    } else if !bars.is_empty() {
        let _ = writeln!(outcome.text, "Bars (those that do not say live are simulated)");
        for bar in &bars {
            let _ = writeln!(outcome.text, "{bar}");
        }
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
