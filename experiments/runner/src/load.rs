//! The client: one `tls-load` on core 1.

use crate::process::on_core;
use crate::stage::{HOST, Key, Stage};
use crate::{Error, Options, Result};
use serde::Deserialize;

/// What the client is to do.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) key: Key,
    /// `1.2` or `1.3`
    pub(crate) tls: &'static str,
    pub(crate) resume: bool,
    pub(crate) client_certificate: bool,
    /// The path of the page, without its slash.
    pub(crate) page: String,
    /// Connections a second; `None` loads with `connections` at a time, each begun when one ends.
    pub(crate) rate: Option<f64>,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
}

/// What the client saw.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Seen {
    pub(crate) cpu_seconds: f64,
    pub(crate) connections: u64,
    pub(crate) connections_per_s: f64,
    pub(crate) resumed: u64,
    pub(crate) failed: u64,
    pub(crate) connection_us: Latency,
    pub(crate) handshake_us: Latency,
    pub(crate) failures: serde_json::Value,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Load {
    /// Carries it out against a port.
    pub(crate) fn run(&self, options: &Options, stage: &Stage, port: u16) -> Result<Seen> {
        let mut command = on_core(1, &options.tls_load);
        command.args(["--connect", &format!("127.0.0.1:{port}"), "--sni", HOST, "--json", "--tls", self.tls]);
        command.arg("--ca").arg(stage.path("ca.pem")).args(["--seconds", &self.seconds.to_string()]);
        command.args(["--connections", &self.connections.to_string(), "--path", &format!("/{}", self.page)]);
        let page = stage.path("www").join(&self.page);
        if page.is_file() {
            command.arg("--expect").arg(page);
        }
        if let Some(rate) = self.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        if self.key == Key::Rsa1024 {
            command.arg("--short-rsa");
        }
        if self.resume {
            command.arg("--resume");
        }
        if self.client_certificate {
            command.arg("--cert").arg(stage.path("client.pem")).arg("--key").arg(stage.path("client.key"));
        }
        let output = command.output().map_err(|error| Error(format!("cannot start {}: {error}", options.tls_load.display())))?;
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).map_err(|_| Error(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}
