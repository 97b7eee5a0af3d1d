//! Traces: requests in the order in which they arrive.

use bywash_policy::reload::Circuit;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When it arrives, in seconds from the trace's beginning.
    pub arrival: f64,
    /// The circuit that computes it.
    pub circuit: Circuit,
    /// Bytes.
    pub bytes: u32,
}

impl Request {
    /// When it arrives, in nanoseconds, if all arrive `stretch` times as slowly as they say.
    #[inline]
    pub fn arrival_ns(&self, stretch: f64) -> u64 {
        (self.arrival * stretch * 1e9) as u64
    }
}

/// Requests, 13 bytes for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    arrivals: Vec<f64>,
    bytes: Vec<u32>,
    circuits: Vec<u8>,
}

impl Trace {
    /// Room for so many requests.
    pub fn with_capacity(requests: usize) -> Self {
        Self { arrivals: Vec::with_capacity(requests), bytes: Vec::with_capacity(requests), circuits: Vec::with_capacity(requests) }
    }

    /// Takes the next request.
    ///
    /// # Panics
    /// If it arrives before the last one, or at no time at all.
    pub fn push(&mut self, request: Request) {
        let last = self.arrivals.last().copied().unwrap_or(0.0);
        assert!(request.arrival >= last, "a request arrives at {} s, after one at {last} s", request.arrival);
        self.arrivals.push(request.arrival);
        self.bytes.push(request.bytes);
        self.circuits.push(request.circuit.0);
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// The requests.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Request> + Clone + '_ {
        let columns = self.arrivals.iter().zip(&self.bytes).zip(&self.circuits);
        columns.map(|((&arrival, &bytes), &circuit)| Request { arrival, circuit: Circuit(circuit), bytes })
    }

    /// A part of it, by the places of its requests, as a trace that begins with the first of them: what was before may be long ago, and stretched longer still.
    #[must_use]
    pub fn part(&self, places: std::ops::Range<usize>) -> Self {
        let arrivals = &self.arrivals[places.clone()];
        let begin = arrivals.first().copied().unwrap_or(0.0);
        Self {
            arrivals: arrivals.iter().map(|arrival| arrival - begin).collect(),
            bytes: self.bytes[places.clone()].to_vec(),
            circuits: self.circuits[places].to_vec(),
        }
    }

    /// Seconds from the first arrival to the last.
    pub fn span(&self) -> f64 {
        self.arrivals.last().zip(self.arrivals.first()).map_or(0.0, |(last, first)| last - first)
    }

    /// The factor by which times are to be stretched so that requests come at this mean rate; 1 for a trace that has no span.
    pub fn stretch_to(&self, requests_per_second: f64) -> f64 {
        if self.span() > 0.0 { self.len() as f64 / self.span() / requests_per_second } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_begins_with_its_first_request() {
        const YEARS: f64 = 30.0 * 365.0 * 86_400.0;
        let mut trace = Trace::default();
        [0.0, 1.0, YEARS, YEARS + 0.5].iter().for_each(|&arrival| trace.push(Request { arrival, circuit: Circuit(0), bytes: 1 }));
        let part = trace.part(2..4);
        assert_eq!(part.iter().map(|request| request.arrival_ns(50.0)).collect::<Vec<_>>(), [0, 25_000_000_000]);
        assert_eq!((part.span(), trace.part(4..4).len()), (0.5, 0));
    }
}
