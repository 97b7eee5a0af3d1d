//! [`Stats`] in the text format of Prometheus.

use crate::ledger::TenantStats;
use crate::stats::{DeviceStats, EngineStats, LatencyStats, Stats};
use bywash_core::{Error, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;

type Labels<'a> = [(&'a str, &'a str)];

impl Stats {
    /// The metrics as text.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which a string's formatter does not cause.
    pub fn to_prometheus(&self) -> Result<String> {
        let mut registry = Registry::with_prefix("bywash");
        registry.register_collector(Box::new(Picture(self.clone())));
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|_| Error::Unavailable { what: "the metrics could not be written as text".into() })?;
        Ok(text)
    }

    /// The picture as JSON.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which plain data does not cause.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map_err(|error| Error::Unavailable { what: format!("the statistics have no JSON form: {error}") })
    }
}

#[derive(Debug)]
struct Picture(Stats);

/// One metric and its lines, each with its labels.
fn family<'a, T>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, kind): (&str, &str, MetricType),
    lines: impl IntoIterator<Item = T>,
    labels: impl Fn(&T) -> Vec<(&'a str, &'a str)>,
    write: impl Fn(&mut MetricEncoder<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for line in lines {
        let labels = labels(&line);
        if labels.is_empty() {
            write(&mut metric, &line)?;
        } else {
            let labels: &Labels<'_> = &labels;
            write(&mut metric.encode_family(&labels)?, &line)?;
        }
    }
    Ok(())
}

fn gauge(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_gauge(&value)
}

fn count(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn engine_labels<'a>(engine: &&'a EngineStats) -> Vec<(&'a str, &'a str)> {
    vec![("engine", &engine.name), ("modelled", truth(engine.modelled))]
}

fn device_labels<'a>((engine, _): &(&'a EngineStats, &DeviceStats)) -> Vec<(&'a str, &'a str)> {
    engine_labels(engine)
}

fn circuit_labels<'a>((engine, circuit): &(&'a EngineStats, &'a String)) -> Vec<(&'a str, &'a str)> {
    [engine_labels(engine), vec![("circuit", circuit)]].concat()
}

fn latency_labels<'a>(line: &&'a LatencyStats) -> Vec<(&'a str, &'a str)> {
    vec![("engine", &line.engine), ("algorithm", &line.algorithm), ("modelled", truth(line.modelled))]
}

fn tenant_labels<'a>(line: &&'a TenantStats) -> Vec<(&'a str, &'a str)> {
    vec![("tenant", &line.tenant)]
}

fn claim_labels<'a>((algorithm, _): &(&&'a str, &(u64, u64))) -> Vec<(&'a str, &'a str)> {
    vec![("algorithm", **algorithm)]
}

impl Collector for Picture {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let e = &mut encoder;
        self.gauges(e)?;
        self.engines(e)?;
        self.latencies(e)?;
        self.tenants(e)?;
        self.work(e)
    }
}

impl Picture {
    fn gauges(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let s = &self.0;
        let plain = [
            ("clients", "Processes connected", s.clients.len() as u64),
            ("sessions", "Sessions open", s.sessions),
            ("queue_depth", "Requests waiting or running", s.queue_depth),
            ("recording", "Whether a recording runs", u64::from(s.recording)),
            ("draining", "Whether the broker is shutting down", u64::from(s.draining)),
        ];
        for (name, help, value) in plain {
            family(e, (name, help, MetricType::Gauge), [value], |_| vec![], |m, value| gauge(m, *value))?;
        }
        for (name, help, value) in
            [("denied", "Connections without permission", s.denied), ("corrupt", "Clients that broke the rules", s.corrupt)]
        {
            family(e, (name, help, MetricType::Counter), [value], |_| vec![], |m, value| count(m, *value))?;
        }
        let head = ("quota_refusals", "Refusals by the setting that raises the quota", MetricType::Counter);
        family(e, head, &s.quotas_hit, |(setting, _)| vec![("setting", setting.as_str())], |m, (_, value)| count(m, **value))
    }

    fn engines(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let head = ("engine_up", "Whether an engine is in use; modelled engines have modelled times", MetricType::Gauge);
        family(e, head, &self.0.engines, engine_labels, |m, engine| gauge(m, u64::from(engine.up)))?;
        let head = ("engine_busy", "Batches an engine works on", MetricType::Gauge);
        family(e, head, &self.0.engines, engine_labels, |m, engine| gauge(m, engine.busy))?;
        let head = ("engine_faults", "Batches and loads in which an engine failed or stalled", MetricType::Counter);
        family(e, head, &self.0.engines, engine_labels, |m, engine| count(m, engine.faults))?;
        let head = ("engine_stuck", "Batches and loads that an engine has not come back from", MetricType::Gauge);
        family(e, head, &self.0.engines, engine_labels, |m, engine| gauge(m, engine.stuck))?;
        let models = self.0.engines.iter().filter(|engine| engine.late.is_some());
        let head = ("engine_late", "Answers of a modelled engine that came later than its model says", MetricType::Counter);
        family(e, head, models, engine_labels, |m, engine| count(m, engine.late.unwrap_or_default()))?;
        let singles = self.0.engines.iter().filter(|engine| engine.switches.is_some());
        let head =
            ("engine_switches", "Changes from one session to another of an engine that computes for one at a time", MetricType::Counter);
        family(e, head, singles, engine_labels, |m, engine| count(m, engine.switches.unwrap_or_default()))?;
        let begun = self.0.engines.iter().filter(|engine| engine.first.is_some());
        let head = ("engine_first", "Whether an engine's thread goes before other programs on the processor", MetricType::Gauge);
        family(e, head, begun, engine_labels, |m, engine| gauge(m, u64::from(engine.first == Some(true))))?;
        let devices = || self.0.engines.iter().filter_map(|engine| Some((engine, engine.device.as_ref()?)));
        let head = ("reconfigurations", "How often a reconfigurable engine loaded circuits", MetricType::Counter);
        family(e, head, devices(), device_labels, |m, (_, device)| count(m, device.reconfigurations))?;
        let head = ("failed_reconfigurations", "How often that failed, or took too long", MetricType::Counter);
        family(e, head, devices(), device_labels, |m, (_, device)| count(m, device.failed_reconfigurations))?;
        let head = ("meanwhile", "Requests that other engines began while circuits were loaded", MetricType::Counter);
        family(e, head, devices(), device_labels, |m, (_, device)| count(m, device.meanwhile))?;
        let head = ("saved_seconds", "Seconds that its circuits saved, by cost sheets", MetricType::Gauge);
        family(e, head, devices(), device_labels, |m, (_, device)| m.encode_gauge(&device.saved_s))?;
        let circuits = devices().flat_map(|(engine, device)| device.loaded.iter().map(move |circuit| (engine, circuit)));
        let head = ("circuit_loaded", "What a reconfigurable engine holds", MetricType::Gauge);
        family(e, head, circuits, circuit_labels, |m, _| gauge(m, 1))
    }

    fn latencies(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let head = ("request_seconds", "From arrival at the manager to the end", MetricType::Histogram);
        family(e, head, &self.0.latencies, latency_labels, |m, line| {
            let mut buckets = line.octaves.clone();
            buckets.push((f64::INFINITY, 0));
            let sum = line.mean_us * line.requests as f64 / 1e6;
            m.encode_histogram::<NoLabelSet>(
                sum,
                line.requests,
                &buckets,
                None::<&std::collections::HashMap<usize, Exemplar<NoLabelSet, f64>>>,
            )
        })?;
        let head = ("request_failures", "Requests that ended with an error", MetricType::Counter);
        family(e, head, &self.0.latencies, latency_labels, |m, line| count(m, line.failures))?;
        let head = ("request_bytes", "Bytes of input", MetricType::Counter);
        family(e, head, &self.0.latencies, latency_labels, |m, line| count(m, line.bytes))
    }

    fn tenants(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Of<T> = fn(&TenantStats) -> T;
        let counts: [(&str, &str, Of<u64>); 5] = [
            ("tenant_requests", "Requests of a tenant that have ended", |tenant| tenant.requests),
            ("tenant_failures", "Those of them that ended with an error", |tenant| tenant.failures),
            ("tenant_switches", "Changes of session that an engine made for a tenant", |tenant| tenant.switches),
            ("tenant_deadlines", "Requests with a deadline", |tenant| tenant.deadlines),
            ("tenant_deadlines_missed", "Those of them that ended later, or with an error", |tenant| tenant.missed),
        ];
        for (name, help, of) in counts {
            family(e, (name, help, MetricType::Counter), &self.0.tenants, tenant_labels, |m, tenant| count(m, of(tenant)))?;
        }
        let gauges: [(&str, &str, Of<f64>); 6] = [
            ("tenant_service_seconds", "Engines' time that a tenant has had", |tenant| tenant.service_s),
            ("tenant_share", "Its part of all engines' time, 0 to 1", |tenant| tenant.share),
            ("tenant_due", "The part that it is due by weight while all have work, 0 to 1", |tenant| tenant.due),
            ("tenant_jain", "Jain's index of its connected processes' service times", |tenant| tenant.jain),
            ("tenant_wait_p50_seconds", "From arrival to dispatch, the median", |tenant| tenant.wait_p50_us / 1e6),
            ("tenant_wait_p99_seconds", "From arrival to dispatch, 99 in 100", |tenant| tenant.wait_p99_us / 1e6),
        ];
        for (name, help, of) in gauges {
            family(e, (name, help, MetricType::Gauge), &self.0.tenants, tenant_labels, |m, tenant| m.encode_gauge(&of(tenant)))?;
        }
        Ok(())
    }

    fn work(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut claimed: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for line in self.0.runs.iter().flat_map(|run| &run.work).filter(|line| line.engine == "here") {
            let sum = claimed.entry(&line.algorithm).or_default();
            *sum = (sum.0.saturating_add(line.operations), sum.1.saturating_add(line.bytes));
        }
        let head = ("claimed_operations", "In-place operations, by the clients' own claim", MetricType::Counter);
        family(e, head, claimed.iter(), claim_labels, |m, (_, sum)| count(m, sum.0))?;
        let head = ("claimed_bytes", "In-place bytes, by the clients' own claim", MetricType::Counter);
        family(e, head, claimed.iter(), claim_labels, |m, (_, sum)| count(m, sum.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_text_with_labels_and_modelled_engines_are_marked() {
        let stats = Stats {
            engines: vec![EngineStats {
                name: "fpga".into(),
                modelled: true,
                up: true,
                stuck: 1,
                late: Some(5),
                first: Some(true),
                device: Some(DeviceStats {
                    loaded: vec!["DES-ECB".into()],
                    reconfigurations: 7,
                    failed_reconfigurations: 2,
                    saved_s: 1.5,
                    ..DeviceStats::default()
                }),
                ..EngineStats::default()
            }],
            latencies: vec![LatencyStats {
                engine: "fpga".into(),
                modelled: true,
                algorithm: "AES-256-GCM".into(),
                requests: 3,
                mean_us: 2.0,
                octaves: vec![(1e-6, 1), (4e-6, 2)],
                ..LatencyStats::default()
            }],
            tenants: vec![TenantStats { tenant: "uid:33".into(), missed: 4, share: 0.25, ..TenantStats::default() }],
            ..Stats::default()
        };
        let text = stats.to_prometheus().unwrap();
        assert!(text.contains("bywash_engine_up{engine=\"fpga\",modelled=\"true\"} 1"), "{text}");
        assert!(text.contains("bywash_reconfigurations_total{engine=\"fpga\",modelled=\"true\"} 7"), "{text}");
        assert!(text.contains("bywash_engine_stuck{engine=\"fpga\",modelled=\"true\"} 1"), "{text}");
        assert!(text.contains("bywash_engine_late_total{engine=\"fpga\",modelled=\"true\"} 5"), "{text}");
        assert!(text.contains("bywash_engine_first{engine=\"fpga\",modelled=\"true\"} 1"), "{text}");
        assert!(text.contains("bywash_failed_reconfigurations_total{engine=\"fpga\",modelled=\"true\"} 2"), "{text}");
        assert!(text.contains("bywash_saved_seconds{engine=\"fpga\",modelled=\"true\"} 1.5"), "{text}");
        assert!(text.contains("bywash_circuit_loaded{engine=\"fpga\",modelled=\"true\",circuit=\"DES-ECB\"} 1"), "{text}");
        assert!(text.contains("bywash_request_seconds_count{engine=\"fpga\",algorithm=\"AES-256-GCM\",modelled=\"true\"} 3"), "{text}");
        assert!(text.contains("bywash_tenant_deadlines_missed_total{tenant=\"uid:33\"} 4"), "{text}");
        assert!(text.contains("bywash_tenant_share{tenant=\"uid:33\"} 0.25"), "{text}");
        assert!(text.contains("le=\"+Inf\",engine=\"fpga\"") && text.ends_with("# EOF\n"), "{text}");
        let back: Stats = serde_json::from_str(&stats.to_json().unwrap()).unwrap();
        assert_eq!(back, stats);
    }
}
