//! Every server, every key, both versions of TLS, full and resumed: as many connections as go, and what each costs.

use super::Bench;
use crate::Result;
use crate::rivals::Engine;
use crate::sample::{Sample, csv};
use crate::stage::Key;
use std::fmt::Write;

/// Connections at a time.
const MANY: usize = 64;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    let servers = bench.servers()?;
    let mut cases = Vec::new();
    for key in Key::ALL {
        // TLS 1.3 signs by RSA-PSS, which the client's library does not verify at 1024 bits.
        for tls in if key == Key::Rsa1024 { vec!["1.2"] } else { vec!["1.2", "1.3"] } {
            // A resumed handshake knows nothing of the key.
            let resumed = if key == Key::Rsa2048 { vec![false, true] } else { vec![false] };
            cases.extend(resumed.into_iter().map(|resume| (key, tls, resume)));
        }
    }
    if bench.effort.quick {
        cases.retain(|&(key, tls, _)| key == Key::Rsa2048 && tls == "1.2");
    }
    let engines = [Engine::Software, Engine::Bywash];
    let crowds: &[usize] = if bench.effort.quick { &[8] } else { &[1, MANY] };
    bench.begin("servers", servers.len() * cases.len() * engines.len() * crowds.len() * bench.effort.rounds)?;
    let mut all = Vec::new();
    for server in servers {
        let rivals = engines.iter().map(|&engine| bench.start(server, engine)).collect::<Result<Vec<_>>>()?;
        for &(key, tls, resume) in &cases {
            for &crowd in crowds {
                let mut load = bench.load(key, tls, crowd);
                load.resume = resume;
                let pairs: Vec<_> = rivals.iter().map(|rival| (rival, load.clone())).collect();
                all.extend(bench.interleaved(&pairs, None)?);
            }
        }
    }
    bench.table("servers", &csv(&all), &all)?;
    Ok(table("Servers", &all))
}

/// A head, and a line for each case, whose two engines' samples come one after the other.
pub(super) fn table(head: &str, samples: &[Sample]) -> String {
    let mut text = format!("\n{head}: connections for each second of the server's processor (and p50), software -> bywash\n");
    for pair in samples.chunks_exact(2) {
        let (software, bywash) = (&pair[0], &pair[1]);
        let _ = writeln!(
            text,
            "  {:<13} TLS {} {:<12}{:<8} {:>3} at a time: {:>6.0} -> {:>6.0}  x{:.2}   p50 {:.2} -> {:.2} ms",
            software.server,
            software.tls,
            software.key,
            if software.resumed { "resumed" } else { "" },
            software.at_a_time,
            software.per_server_cpu_s,
            bywash.per_server_cpu_s,
            bywash.per_server_cpu_s / software.per_server_cpu_s,
            software.p50_ms,
            bywash.p50_ms
        );
    }
    text
}
