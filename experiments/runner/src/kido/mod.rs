//! kido: DDS Security with hardware behind it. The paper's estimate from cost sheets, the break-even of an engine beside a processor, and what security costs live: Fast DDS and Cyclone DDS on
//! the loopback, without it, with it, and through our doors.

mod cyclone;
mod fastdds;
mod live;
mod modelled;

use crate::{Options, Outcome, Progress, Result, parts};

/// The sizes that are measured, and how messages of them are cut: Fast DDS and Cyclone send datagrams of some 62 KB.
pub(crate) const SIZES: [usize; 4] = [1 << 10, 10 << 10, 100 << 10, 1 << 20];
/// Bytes of text in a full fragment (Fast DDS 2.9.1, measured).
pub(crate) const FRAGMENT: usize = 61_700;

pub(crate) fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    parts(options, &["estimate", "break-even", "latency", "shares"])?;
    let wanted = |part: &str| options.parts.is_empty() || options.parts.iter().any(|name| name == part);
    let mut outcome = Outcome::default();
    if wanted("estimate") {
        modelled::estimate(options, &mut outcome)?;
    }
    if wanted("break-even") {
        progress(Progress::Part("break-even".into(), 1));
        modelled::break_even(options, &mut outcome)?;
        progress(Progress::Step);
    }
    if wanted("latency") || wanted("shares") {
        live::run(options, progress, &mut outcome, wanted("latency"), wanted("shares"))?;
    }
    Ok(outcome)
}
