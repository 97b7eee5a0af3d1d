//! Software and circuits side by side: what niwa2005 leaves for later (s7.2).
//!
//! A request goes where it is expected to be done first: behind what the processor has to do, behind what the engine has to do on a circuit
//! that is loaded, or on one that is on its way. That is decided when it has arrived and one of both has nothing left to do, for sooner nobody would begin with it. Processor and engine each
//! serve first come, first served; the engine on as many lanes as it has. What is loaded is decided by a [`Reload`] policy as in a [serial](crate::serial) run, but where a
//! request runs is not.
//!
//! A load waits for what was given to the circuits that it replaces. That is all of them where the whole device is loaded, and it does nothing else meanwhile; where one slot is loaded after
//! the other, the rest works on, and on another lane goes before what waits for its slot.

use crate::lanes::Lanes;
use crate::machine::{Machine, Scope};
use crate::serial::{Engine, Report};
use crate::trace::Request;
use crate::watch::{Served, Watch};
use bywash_policy::reload::{CIRCUITS_MAX, Circuits, Reload};

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
    // When each circuit is.
    let mut circuits = [0u64; CIRCUITS_MAX];
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
                let circuit = &mut circuits[usize::from(asked.circuit.0)];
                *circuit = by_device.max(*circuit);
                (by_device - on_circuit, by_device)
            }
            None => {
                report.software_ns += in_software;
                processor = by_processor;
                (by_processor - in_software, by_processor)
            }
        };
        if let Some(set) = step.load {
            // What was given to those that go is done first.
            let replaced = engine.holds().loaded.without_all(set);
            let begin = match machine.scope {
                Scope::Device => device.done().max(now),
                Scope::Slot => replaced.iter().map(|circuit| circuits[usize::from(circuit.0)]).fold(now, u64::max),
            };
            let there = engine.load(begin, set);
            if machine.scope == Scope::Device {
                device.close_until(there);
            }
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
