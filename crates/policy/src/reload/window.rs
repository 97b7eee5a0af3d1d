//! The requests of the last so many bytes, counted by circuit.

use super::{Asked, CIRCUITS_MAX, Circuit, Circuits};
use std::collections::VecDeque;

/// The interval of niwa2005 (s5.2): 5 Mbyte of requests, some 200 of them.
pub const INTERVAL_BYTES: u64 = 5_000_000;

/// A sliding window over requests: the shortest run of the latest ones that holds at least so many bytes.
#[derive(Clone, Debug)]
pub struct Window {
    span: u64,
    bytes: u64,
    requests: VecDeque<(Circuit, u32)>,
    counts: [u32; CIRCUITS_MAX],
}

/// The circuits used most in an interval, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaders {
    /// The one used most, and by how many requests.
    pub first: (Circuit, u32),
    /// The one used second most, if any other was used.
    pub second: Option<(Circuit, u32)>,
    /// All requests of the interval.
    pub requests: u32,
}

impl Window {
    /// A window over this many bytes.
    pub fn new(span: u64) -> Self {
        Self { span, bytes: 0, requests: VecDeque::new(), counts: [0; CIRCUITS_MAX] }
    }

    /// Takes in one more request and lets go of those that are no longer needed to fill the window.
    #[inline]
    pub fn push(&mut self, asked: &Asked) {
        self.requests.push_back((asked.circuit, asked.bytes));
        self.bytes += u64::from(asked.bytes);
        self.counts[usize::from(asked.circuit.0)] += 1;
        while let Some(&(circuit, bytes)) = self.requests.front()
            && self.bytes - u64::from(bytes) >= self.span
        {
            self.requests.pop_front();
            self.bytes -= u64::from(bytes);
            self.counts[usize::from(circuit.0)] -= 1;
        }
    }

    /// Lets go of the oldest request, for a window that is moved over a trace from outside.
    pub fn pop(&mut self) {
        if let Some((circuit, bytes)) = self.requests.pop_front() {
            self.bytes -= u64::from(bytes);
            self.counts[usize::from(circuit.0)] -= 1;
        }
    }

    /// Bytes of the requests in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it holds as many bytes as it is to.
    pub fn is_full(&self) -> bool {
        self.bytes >= self.span
    }

    /// The two circuits used most; the one listed first where they are used alike. `None` for an empty window.
    pub fn leaders(&self) -> Option<Leaders> {
        leaders(&self.counts, self.requests.len() as u32)
    }
}

/// The two circuits with the highest counts.
pub(super) fn leaders(counts: &[u32], requests: u32) -> Option<Leaders> {
    let (mut first, mut second) = ((Circuit(0), 0), (Circuit(0), 0));
    for (circuit, &count) in counts.iter().enumerate() {
        let this = (Circuit(circuit as u8), count);
        if count > first.1 {
            second = first;
            first = this;
        } else if count > second.1 {
            second = this;
        }
    }
    (first.1 > 0).then_some(Leaders { first, second: (second.1 > 0).then_some(second), requests })
}

impl Leaders {
    /// Both as a set.
    pub fn circuits(&self) -> Circuits {
        let one = Circuits::NONE.with(self.first.0);
        self.second.map_or(one, |(circuit, _)| one.with(circuit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_the_latest_bytes() {
        let mut window = Window::new(100);
        let asked = |circuit| Asked { circuit: Circuit(circuit), bytes: 40, software_ns: 0, hardware_ns: 0 };
        assert_eq!(window.leaders(), None);
        for circuit in [5, 5, 2, 2, 2] {
            window.push(&asked(circuit));
        }
        let leaders = window.leaders().unwrap();
        assert_eq!((leaders.first, leaders.second, leaders.requests), ((Circuit(2), 3), None, 3));
        window.push(&asked(5));
        assert_eq!(window.leaders().unwrap().second, Some((Circuit(5), 1)));
    }
}
