//! The run: one request after the other, in software or on its circuit, while circuits are loaded beside.
//!
//! Where the engine has several lanes, as many requests are served at a time, as by a server with a thread for each: whichever thread is free first takes the next
//! request, and waits for the processor or for the engine. A load waits for what the engine was given before.

use crate::lanes::Lanes;
use crate::machine::Machine;
use crate::trace::Request;
use crate::watch::{Served, Watch};
use bywash_policy::reload::{Circuit, Circuits, Holds, Reload, Where};
use hdrhistogram::Histogram;

/// What a run came to. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Report {
    /// Requests served.
    pub requests: u64,
    /// From arrival to the end of the service, to three digits.
    pub latency: Histogram<u64>,
    /// Spent in software.
    pub software_ns: u64,
    /// Spent on circuits.
    pub hardware_ns: u64,
    /// Spent waiting for a circuit to be loaded.
    pub stalled_ns: u64,
    /// How often circuits were loaded.
    pub loads: u64,
    /// From the first arrival to the end of the last service.
    pub elapsed_ns: u64,
}

impl Report {
    pub(crate) fn new() -> Self {
        // Three digits from 1 ns to 2^62 ns, some 146 years: nothing is out of range.
        let latency = Histogram::new_with_bounds(1, 1 << 62, 3).expect("bounds that the histogram takes");
        Self { requests: 0, latency, software_ns: 0, hardware_ns: 0, stalled_ns: 0, loads: 0, elapsed_ns: 0 }
    }

    /// One more request, by when it came and when it was done.
    #[inline]
    pub(crate) fn count(&mut self, arrival: u64, end: u64) {
        self.requests += 1;
        self.latency.saturating_record(end - arrival);
    }

    /// Time in service: on one lane, what the same requests would take one right after the other, the loading being as it was.
    pub fn busy_ns(&self) -> u64 {
        self.software_ns + self.hardware_ns + self.stalled_ns
    }

    /// The share of the elapsed time that the processor spent on requests (niwa2005 figure 7; at most 1 here, where nothing runs side by side).
    pub fn load_factor(&self) -> f64 {
        self.software_ns as f64 / self.elapsed_ns.max(1) as f64
    }

    /// The latency below which this share of the requests lies.
    pub fn latency_ns(&self, quantile: f64) -> u64 {
        self.latency.value_at_quantile(quantile)
    }
}

/// Serves requests that arrive `stretch` times as slowly as they say, on a machine that holds `loaded` at the start.
///
/// # Panics
/// If the policy breaks its word: a request is sent to a circuit that is neither loaded nor asked for, a load is asked for while one is under
/// way, or more is asked for than fits.
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
    let (mut threads, mut first) = (Lanes::new(machine.lanes), None);
    // When processor and engine are done with what they were given.
    let (mut processor, mut device) = (0u64, 0u64);
    for request in requests {
        let arrival = request.arrival_ns(stretch);
        first.get_or_insert(arrival);
        let start = arrival.max(threads.free());
        engine.advance(start);
        let asked = machine.asked(&request);
        let step = policy.begin(&asked, engine.holds());
        let on_circuit = asked.hardware_ns + machine.overhead_ns;
        let in_software = asked.software_ns + machine.overhead_ns;
        let there = engine.loaded.contains(asked.circuit);
        // A load begins when the engine has nothing else to do, this request on a circuit that is there now included.
        let load = step.load.map(|set| {
            let begin = device.max(if step.place == Where::Hardware && there { start + on_circuit } else { start });
            let loaded = engine.load(begin, set);
            watch.loads(begin, loaded, set);
            (set, loaded)
        });
        let (begin, end) = match (step.place, load) {
            (Where::Software, _) => {
                report.software_ns += in_software;
                let begin = start.max(processor);
                processor = begin + in_software;
                (begin, processor)
            }
            (Where::Hardware, _) if there => {
                report.hardware_ns += on_circuit;
                (start, start + on_circuit)
            }
            (Where::Hardware, Some((set, loaded))) if set.contains(asked.circuit) => {
                engine.advance(loaded);
                threads.close_until(loaded);
                report.stalled_ns += loaded - start;
                report.hardware_ns += on_circuit;
                (start, loaded + on_circuit)
            }
            (Where::Hardware, _) => panic!("{}: to a circuit that is neither there nor asked for", policy.name()),
        };
        report.loads += u64::from(load.is_some());
        threads.take(end);
        let on_circuit = step.place == Where::Hardware;
        if on_circuit {
            device = device.max(end);
        }
        report.count(arrival, end);
        watch.served(&Served { arrival, begin, end, core: asked.circuit, on_circuit });
    }
    report.elapsed_ns = threads.done() - first.unwrap_or(threads.done());
    report
}

/// The engine: what it has and what is on its way.
pub(crate) struct Engine<'a> {
    machine: &'a Machine,
    loaded: Circuits,
    /// What is being loaded, and when it is there.
    loading: Option<(Circuits, u64)>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(machine: &'a Machine, loaded: Circuits) -> Self {
        Self { machine, loaded, loading: None }
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        if let Some((set, there)) = self.loading
            && there <= now
        {
            self.loaded = set;
            self.loading = None;
        }
    }

    /// What a policy is told of it.
    pub(crate) fn holds(&self) -> Holds {
        Holds { loaded: self.loaded, loading: self.loading.is_some() }
    }

    /// From when on a circuit can compute; `None` if nobody has asked for it.
    pub(crate) fn there(&self, circuit: Circuit) -> Option<u64> {
        if self.loaded.contains(circuit) {
            return Some(0);
        }
        self.loading.filter(|(set, _)| set.contains(circuit)).map(|(_, there)| there)
    }

    /// Begins to load a set; says when it is there.
    pub(crate) fn load(&mut self, now: u64, set: Circuits) -> u64 {
        assert!(self.loading.is_none(), "a load while one is under way");
        assert!(self.machine.fit.holds(set), "{} circuits, for which there is no room", set.len());
        let there = now + self.machine.loading_ns(self.loaded, set);
        self.loaded = self.machine.kept(self.loaded, set);
        self.loading = Some((set, there));
        there
    }
}
