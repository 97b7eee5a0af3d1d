//! Software and circuits side by side: what niwa2005 leaves for later (s7.2).
//!
//! A request goes where it is expected to be done first: behind what the processor has to do, behind what the engine has to do on a circuit
//! that is loaded, or on one that is on its way. That is decided when it has arrived and one of both has nothing left to do, for sooner nobody would begin with it. Processor and engine each
//! serve first come, first served; the engine on as many lanes as it has. What is loaded is decided by a [`Reload`] policy as in a [serial](crate::serial) run, but where a
//! request runs is not.

use crate::lanes::Lanes;
use crate::machine::Machine;
use crate::serial::{Engine, Report};
use crate::trace::Request;
use crate::watch::{Served, Watch};
use bywash_policy::reload::{Circuits, Reload};

/// Serves requests that arrive `stretch` times as slowly as they say, on a machine that holds `loaded` at the start. In the report, time in software and on circuits
/// passes side by side, so that together they may exceed the elapsed time.
///
/// # Panics
/// If the policy asks for a load while one is under way, or for more than fits.
pub fn run<R: Reload + ?Sized>(
    machine: &Machine,
    requests: impl Iterator<Item = Request>,
    stretch: f64,
    loaded: Circuits,
    policy: &mut R,
) -> Report {
    watched(machine, requests, stretch, loaded, policy, &mut ())
}

/// The same, and somebody looks on.
///
/// # Panics
/// As [`run`].
pub fn watched<R: Reload + ?Sized>(
    machine: &Machine,
    requests: impl Iterator<Item = Request>,
    stretch: f64,
    loaded: Circuits,
    policy: &mut R,
    watch: &mut impl Watch,
) -> Report {
    let mut report = Report::new();
    let mut engine = Engine::new(machine, loaded);
    // When the processor is done with what it was given.
    let mut processor = 0u64;
    let mut device = Lanes::new(machine.lanes);
    let (mut first, mut last) = (None, 0);
    for request in requests {
        let arrival = request.arrival_ns(stretch);
        first.get_or_insert(arrival);
        let now = arrival.max(processor.min(device.free()));
        engine.advance(now);
        let asked = machine.asked(&request);
        let step = policy.begin(&asked, engine.holds());
        let (in_software, on_circuit) = (asked.software_ns + machine.overhead_ns, asked.hardware_ns + machine.overhead_ns);
        let by_processor = processor.max(now) + in_software;
        let there = engine.there(asked.circuit).map(|there| there.max(device.free()).max(now) + on_circuit);
        let on_device = there.filter(|&by_device| by_device <= by_processor);
        let (begin, end) = match on_device {
            Some(by_device) => {
                report.hardware_ns += on_circuit;
                device.take(by_device);
                (by_device - on_circuit, by_device)
            }
            None => {
                report.software_ns += in_software;
                processor = by_processor;
                (by_processor - in_software, by_processor)
            }
        };
        if let Some(set) = step.load {
            // What the engine was given is done first.
            let begin = device.done().max(now);
            let there = engine.load(begin, set);
            device.close_until(there);
            watch.loads(begin, there, set);
            report.loads += 1;
        }
        last = last.max(end);
        report.count(arrival, end);
        watch.served(&Served { arrival, begin, end, core: asked.circuit, on_circuit: on_device.is_some() });
    }
    report.elapsed_ns = last - first.unwrap_or(last);
    report
}
