//! A server that knows of asynchronous jobs beside the same that does not: haproxy with and without `ssl-mode-async`.

use super::Bench;
use super::matrix::table;
use crate::Result;
use crate::rivals::{Engine, Rival};
use crate::sample::{Sample, csv};
use crate::servers::Server;
use crate::stage::Key;
use bywash_measure::plot::{Line, Panel, Scale, draw};

const SERVERS: [Server; 2] = [Server::Haproxy, Server::HaproxyAsync];
const ENGINES: [Engine; 2] = [Engine::Software, Engine::Bywash];
const CASES: [(Key, &str); 3] = [(Key::Rsa2048, "1.2"), (Key::Rsa2048, "1.3"), (Key::EcdsaP256, "1.3")];
/// Connections at a time.
const CROWDS: [usize; 3] = [1, 8, 64];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    if !bench.has(Server::Haproxy)? {
        return Ok(String::new());
    }
    let (cases, crowds) = if bench.effort.quick { (&CASES[..1], &CROWDS[..2]) } else { (&CASES[..], &CROWDS[..]) };
    let both = SERVERS.into_iter().flat_map(|server| ENGINES.map(|engine| (server, engine)));
    let rivals = both.map(|(server, engine)| bench.start(server, engine)).collect::<Result<Vec<_>>>()?;
    bench.begin("haproxy, sync and async", rivals.len() * cases.len() * crowds.len() * bench.effort.rounds)?;
    let (mut all, mut panels) = (Vec::new(), Vec::new());
    for &(key, tls) in cases {
        let mut samples = Vec::new();
        for &crowd in crowds {
            let pairs: Vec<_> = rivals.iter().map(|rival| (rival, bench.load(key, tls, crowd))).collect();
            samples.extend(bench.interleaved(&pairs, None)?);
        }
        panels.push(panel(format!("{}, TLS {tls}", key.name()), &rivals, &samples));
        all.extend(samples);
    }
    draw(&bench.out("haproxy-async.svg"), &panels)?;
    bench.table("haproxy-async", &csv(&all), &all)?;
    Ok(table("haproxy with and without `ssl-mode-async`", &all))
}

/// One line for each rival, whose samples come in the rivals' order for each number of connections.
fn panel(title: String, rivals: &[Rival], samples: &[Sample]) -> Panel {
    let line = |at: usize| -> Line {
        let own = samples.iter().skip(at).step_by(rivals.len());
        let points: Vec<_> = own.map(|sample| (sample.at_a_time as f64, sample.per_server_cpu_s)).collect();
        (format!("{}, {}", samples[at].server, samples[at].engine), points)
    };
    let (x, y) = ("connections at a time", "connections per second of the server's CPU");
    Panel { title, x, y, scale: Scale::LogBoth, lines: (0..rivals.len()).map(line).collect(), marks: Vec::new() }
}
