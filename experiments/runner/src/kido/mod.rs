//! kido: DDS Security with hardware behind it. The paper's estimate from cost sheets, the break-even of an engine beside a processor, and what security costs live: Fast DDS and Cyclone DDS on
//! the loopback, without it, with it, and through our doors.

mod cyclone;
mod fastdds;
mod latencytest;
mod live;
mod modelled;

use crate::{Options, Outcome, Progress, Result, Tell};

/// The sizes that are measured, and how messages of them are cut: Fast DDS and Cyclone send datagrams of some 62 KB.
pub(crate) const SIZES: [usize; 4] = [1 << 10, 10 << 10, 100 << 10, 1 << 20];
/// Bytes of text in a full fragment (Fast DDS 2.9.1, measured).
pub(crate) const FRAGMENT: usize = 61_700;

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &["estimate", "break-even", "latency", "shares"];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if options.wants("estimate") {
        let given = modelled::estimate(options, &mut outcome);
        outcome.took("estimate", given);
    }
    if options.wants("break-even") {
        let given = progress(Progress::Part("break-even".into(), 1)).and_then(|()| modelled::break_even(options, &mut outcome));
        outcome.took("break-even", given);
    }
    let (latency, shares) = (options.wants("latency"), options.wants("shares"));
    if latency || shares {
        match progress(Progress::Begin).and_then(|()| live::Bench::prepare(options, progress, &mut outcome)) {
            Ok(mut bench) => {
                if latency {
                    let given = bench.latency(options, progress, &mut outcome);
                    outcome.took("latency", given);
                }
                if shares {
                    let given = progress(Progress::Begin).and_then(|()| bench.share(options, progress, &mut outcome));
                    outcome.took("shares", given);
                }
            }
            Err(error) => {
                let wanted = PARTS[2..].iter().filter(|part| options.wants(part));
                outcome.failed.extend(wanted.map(|&part| (part, error.clone())));
            }
        }
    }
    Ok(outcome)
}
