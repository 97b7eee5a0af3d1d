//! What one measurement gave, and the median of several.

use crate::load::{Load, Seen};
use crate::rivals::{Engine, Spent};
use crate::servers::Server;
use bywash_measure::statistics::median;
use serde::Serialize;
use std::fmt::Write;

/// One measurement, or the medians of several.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) server: &'static str,
    pub(crate) engine: String,
    pub(crate) key: &'static str,
    pub(crate) tls: &'static str,
    pub(crate) resumed: bool,
    pub(crate) client_certificate: bool,
    pub(crate) page: String,
    /// Connections at a time, or with a rate the most there may be.
    pub(crate) at_a_time: usize,
    /// Connections a second; 0 where the next begins when one ends.
    pub(crate) offered_per_s: f64,
    pub(crate) connections_per_s: f64,
    /// From when a connection was due to the last byte of its page.
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) handshake_p50_ms: f64,
    /// Microseconds of processor time for each connection.
    pub(crate) server_cpu_us: f64,
    pub(crate) client_cpu_us: f64,
    /// The broker's; with a modelled card, what the true bytes cost is in it.
    pub(crate) broker_cpu_us: f64,
    /// Of what stands behind the server.
    pub(crate) behind_cpu_us: f64,
    /// Connections for each second of the server's processor.
    pub(crate) per_server_cpu_s: f64,
    pub(crate) resumed_share: f64,
    pub(crate) failed: f64,
    /// The most frequent failures, in the client's words.
    #[serde(skip)]
    pub(crate) failures: String,
}

/// The figures of a sample, each with its median's way in and out.
const FIGURES: [fn(&mut Sample) -> &mut f64; 12] = [
    |sample| &mut sample.connections_per_s,
    |sample| &mut sample.p50_ms,
    |sample| &mut sample.p90_ms,
    |sample| &mut sample.p99_ms,
    |sample| &mut sample.handshake_p50_ms,
    |sample| &mut sample.server_cpu_us,
    |sample| &mut sample.client_cpu_us,
    |sample| &mut sample.broker_cpu_us,
    |sample| &mut sample.behind_cpu_us,
    |sample| &mut sample.per_server_cpu_s,
    |sample| &mut sample.resumed_share,
    |sample| &mut sample.failed,
];

impl Sample {
    pub(crate) fn new(server: Server, engine: Engine, load: &Load, seen: &Seen, spent: Spent) -> Self {
        let each = |seconds: f64| seconds * 1e6 / seen.connections.max(1) as f64;
        Self {
            server: server.name(),
            engine: engine.name(),
            key: load.key.name(),
            tls: load.tls,
            resumed: load.resume,
            client_certificate: load.client_certificate,
            page: load.page.clone(),
            at_a_time: load.connections,
            offered_per_s: load.rate.unwrap_or(0.0),
            connections_per_s: seen.connections_per_s,
            p50_ms: seen.connection_us.p50 / 1e3,
            p90_ms: seen.connection_us.p90 / 1e3,
            p99_ms: seen.connection_us.p99 / 1e3,
            handshake_p50_ms: seen.handshake_us.p50 / 1e3,
            server_cpu_us: each(spent.server.as_secs_f64()),
            client_cpu_us: each(seen.cpu_seconds),
            broker_cpu_us: each(spent.broker.as_secs_f64()),
            behind_cpu_us: each(spent.behind.as_secs_f64()),
            per_server_cpu_s: seen.connections as f64 / spent.server.as_secs_f64().max(1e-9),
            resumed_share: seen.resumed as f64 / seen.connections.max(1) as f64,
            failed: seen.failed as f64,
            failures: if seen.failed > 0 { seen.failures.to_string() } else { String::new() },
        }
    }

    /// The median of each figure; failures are those of the worst round.
    pub(crate) fn median(mut rounds: Vec<Self>) -> Option<Self> {
        let mut middle = rounds.pop()?;
        rounds.push(middle.clone());
        for figure in FIGURES {
            let values: Vec<f64> = rounds.iter_mut().map(|sample| *figure(sample)).collect();
            *figure(&mut middle) = median(&values);
        }
        let worst = rounds.into_iter().max_by(|a, b| a.failed.total_cmp(&b.failed))?;
        Some(Self { failed: worst.failed, failures: worst.failures, ..middle })
    }
}

/// Samples as CSV.
pub(crate) fn csv(samples: &[Sample]) -> String {
    let mut text = "server,engine,key,tls,resumed,client_certificate,page,at_a_time,offered_per_s,connections_per_s,p50_ms,p90_ms,p99_ms,\
                    handshake_p50_ms,server_cpu_us,client_cpu_us,broker_cpu_us,behind_cpu_us,per_server_cpu_s,resumed_share,failed\n"
        .to_owned();
    for s in samples {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{:.0},{:.0},{:.3},{:.3},{:.3},{:.3},{:.1},{:.1},{:.1},{:.1},{:.0},{:.3},{:.0}",
            s.server,
            s.engine,
            s.key,
            s.tls,
            s.resumed,
            s.client_certificate,
            s.page,
            s.at_a_time,
            s.offered_per_s,
            s.connections_per_s,
            s.p50_ms,
            s.p90_ms,
            s.p99_ms,
            s.handshake_p50_ms,
            s.server_cpu_us,
            s.client_cpu_us,
            s.broker_cpu_us,
            s.behind_cpu_us,
            s.per_server_cpu_s,
            s.resumed_share,
            s.failed
        );
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What was served of what was offered.
    pub(crate) fn point(offered_per_s: f64, connections_per_s: f64) -> Sample {
        Sample {
            server: "nginx",
            engine: "software".into(),
            key: "RSA-2048",
            tls: "1.2",
            resumed: false,
            client_certificate: false,
            page: "1024".into(),
            at_a_time: 1,
            offered_per_s,
            connections_per_s,
            p50_ms: 1.0,
            p90_ms: 1.0,
            p99_ms: 1.0,
            handshake_p50_ms: 1.0,
            server_cpu_us: 1.0,
            client_cpu_us: 1.0,
            broker_cpu_us: 0.0,
            behind_cpu_us: 0.0,
            per_server_cpu_s: 1.0,
            resumed_share: 0.0,
            failed: 0.0,
            failures: String::new(),
        }
    }

    #[test]
    fn the_median_of_two_rounds_lies_between_them() {
        let median = |rates: &[f64]| Sample::median(rates.iter().map(|&rate| point(0.0, rate)).collect()).unwrap().connections_per_s;
        assert_eq!((median(&[100.0, 200.0]), median(&[300.0, 100.0, 200.0]), median(&[7.0])), (150.0, 200.0, 7.0));
        let failing = vec![Sample { failed: 2.0, failures: "two".into(), ..point(0.0, 1.0) }, point(0.0, 1.0), point(0.0, 1.0)];
        let worst = Sample::median(failing).unwrap();
        assert_eq!((worst.failed, worst.failures.as_str()), (2.0, "two"));
        assert!(Sample::median(Vec::new()).is_none());
    }
}
