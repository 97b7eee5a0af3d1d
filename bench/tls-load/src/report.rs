//! What was seen: counts, latencies, failures.

use crate::fetch::Failure;
use hdrhistogram::Histogram;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Longest latency told apart, in microseconds: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// What one thread, or all of them, saw.
pub(crate) struct Report {
    pub(crate) elapsed: Duration,
    /// Processor time of this process.
    pub(crate) cpu: Duration,
    handshakes_us: Histogram<u64>,
    requests_us: Histogram<u64>,
    connections_us: Histogram<u64>,
    resumed: u64,
    bytes: u64,
    wrong: u64,
    suites: BTreeSet<String>,
    /// By kind: how many, and what the first one said.
    failures: BTreeMap<&'static str, (u64, String)>,
}

impl Default for Report {
    fn default() -> Self {
        let empty = || Histogram::new_with_max(LATENCY_US_MAX, 3).expect("3 digits and a maximum above 2 are what it takes");
        Self {
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            handshakes_us: empty(),
            requests_us: empty(),
            connections_us: empty(),
            resumed: 0,
            bytes: 0,
            wrong: 0,
            suites: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl Report {
    pub(crate) fn handshake(&mut self, took: Duration, resumed: bool) {
        self.handshakes_us.saturating_record(took.as_micros() as u64);
        self.resumed += u64::from(resumed);
    }

    pub(crate) fn suite(&mut self, name: &str) {
        if !self.suites.contains(name) {
            self.suites.insert(name.to_owned());
        }
    }

    pub(crate) fn request(&mut self, took: Duration, bytes: u64) {
        self.requests_us.saturating_record(took.as_micros() as u64);
        self.bytes += bytes;
    }

    /// A connection came to its good end, so long after it was due.
    pub(crate) fn connection(&mut self, took: Duration) {
        self.connections_us.saturating_record(took.as_micros() as u64);
    }

    pub(crate) fn failed(&mut self, failure: Failure) {
        let (kind, message) = match failure {
            Failure::Broken(kind, message) => (kind, message),
            Failure::WrongBytes(message) => {
                self.wrong += 1;
                ("wrong bytes", message)
            }
        };
        self.failures.entry(kind).or_insert((0, message)).0 += 1;
    }

    /// Adds what another thread saw.
    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.handshakes_us, &other.handshakes_us),
            (&mut self.requests_us, &other.requests_us),
            (&mut self.connections_us, &other.connections_us),
        ];
        for (mine, theirs) in pairs {
            mine.add(theirs).expect("both have the same bounds");
        }
        self.resumed += other.resumed;
        self.bytes += other.bytes;
        self.wrong += other.wrong;
        self.suites.extend(other.suites.iter().cloned());
        for (kind, (count, first)) in &other.failures {
            self.failures.entry(kind).or_insert_with(|| (0, first.clone())).0 += count;
        }
    }

    /// Something was done and nothing failed.
    pub(crate) fn is_clean(&self) -> bool {
        self.failures.is_empty() && !self.handshakes_us.is_empty()
    }

    fn failed_in_all(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    fn per_second(&self, count: f64) -> f64 {
        count / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let latency = |us: &Histogram<u64>| json!({"p50": us.value_at_quantile(0.5), "p90": us.value_at_quantile(0.9), "p99": us.value_at_quantile(0.99), "max": us.max()});
        let failures: serde_json::Map<_, _> = self.failures.iter().map(|(kind, (count, _))| ((*kind).to_owned(), json!(count))).collect();
        json!({
            "seconds": self.elapsed.as_secs_f64(),
            "cpu_seconds": self.cpu.as_secs_f64(),
            "connections": self.connections_us.len(),
            "connections_per_s": self.per_second(self.connections_us.len() as f64),
            "connection_us": latency(&self.connections_us),
            "handshakes": self.handshakes_us.len(),
            "resumed": self.resumed,
            "requests": self.requests_us.len(),
            "bytes": self.bytes,
            "handshakes_per_s": self.per_second(self.handshakes_us.len() as f64),
            "requests_per_s": self.per_second(self.requests_us.len() as f64),
            "mb_per_s": self.per_second(self.bytes as f64 / 1e6),
            "handshake_us": latency(&self.handshakes_us),
            "request_us": latency(&self.requests_us),
            "suites": self.suites,
            "failed": self.failed_in_all(),
            "wrong_bytes": self.wrong,
            "failures": failures,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = |us: &Histogram<u64>| {
            let ms = |quantile| us.value_at_quantile(quantile) as f64 / 1e3;
            format!("p50 {:.2} ms, p99 {:.2} ms, worst {:.2} ms", ms(0.5), ms(0.99), us.max() as f64 / 1e3)
        };
        let handshakes = self.handshakes_us.len();
        let suites: Vec<&str> = self.suites.iter().map(String::as_str).collect();
        writeln!(
            f,
            "{handshakes} handshakes ({} resumed) in {:.2} s: {:.0}/s, {} [{}]",
            self.resumed,
            self.elapsed.as_secs_f64(),
            self.per_second(handshakes as f64),
            latency(&self.handshakes_us),
            suites.join(", ")
        )?;
        if !self.requests_us.is_empty() {
            let (count, megabytes) = (self.requests_us.len(), self.bytes as f64 / 1e6);
            writeln!(f, "{count} requests: {:.0} MB/s, {}", self.per_second(megabytes), latency(&self.requests_us))?;
        }
        for (kind, (count, first)) in &self.failures {
            writeln!(f, "FAILED {count} x {kind}; the first: {first}")?;
        }
        if self.failures.is_empty() && handshakes == 0 {
            writeln!(f, "FAILED: nothing was done")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_failed_is_hidden() {
        let mut one = Report::default();
        assert!(!one.is_clean(), "nothing done is not a success");
        one.handshake(Duration::from_micros(250), false);
        one.request(Duration::from_micros(900), 1000);
        assert!(one.is_clean());
        let mut other = Report::default();
        other.failed(Failure::Broken("reset", "first".into()));
        other.failed(Failure::Broken("reset", "second".into()));
        other.failed(Failure::WrongBytes("byte 3 differs".into()));
        one.add(&other);
        assert!(!one.is_clean());
        let json = one.to_json();
        assert_eq!(
            (json["failed"].as_u64(), json["wrong_bytes"].as_u64(), json["failures"]["reset"].as_u64()),
            (Some(3), Some(1), Some(2))
        );
        let text = one.to_string();
        assert!(text.contains("2 x reset; the first: first") && text.contains("byte 3 differs"), "{text}");
    }
}
