//! What the paper left open (section 5): client certificates, larger pages, a database behind the server.

use super::{Bench, database};
use crate::Result;
use crate::rivals::{Engine, Rival};
use crate::sample::{Sample, csv};
use crate::servers::Server;
use crate::stage::{Key, PAGES};
use bywash_measure::plot::{Panel, Scale, draw};
use std::fmt::Write;

const CONNECTIONS: usize = 32;
const ENGINES: [Engine; 2] = [Engine::Software, Engine::Bywash];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    if !bench.servers()?.contains(&Server::Nginx) {
        return Ok(String::new());
    }
    let rivals = ENGINES.iter().map(|&engine| bench.start(Server::Nginx, engine)).collect::<Result<Vec<_>>>()?;
    let mut text = "\nOpen points, nginx, RSA-2048: connections for each second of the server's processor, software -> bywash\n".to_owned();
    text += &client_certificates(bench, &rivals)?;
    text += &pages(bench, &rivals)?;
    drop(rivals);
    text += &database::proxied(bench, &ENGINES)?;
    Ok(text)
}

fn client_certificates(bench: &mut Bench<'_>, rivals: &[Rival]) -> Result<String> {
    bench.begin("client certificates", 4 * rivals.len() * bench.effort.rounds)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    for tls in ["1.2", "1.3"] {
        for with in [false, true] {
            let mut load = bench.load(Key::Rsa2048, tls, CONNECTIONS);
            load.client_certificate = with;
            let pairs: Vec<_> = rivals.iter().map(|rival| (rival, load.clone())).collect();
            let samples = bench.interleaved(&pairs, None)?;
            let what = format!("TLS {tls}, {} client certificate", if with { "with" } else { "no" });
            text += &line(&what, &samples);
            all.extend(samples);
        }
    }
    bench.table("client-certificates", &csv(&all), &all)?;
    Ok(text)
}

fn pages(bench: &mut Bench<'_>, rivals: &[Rival]) -> Result<String> {
    let sizes: &[usize] = if bench.effort.quick { &PAGES[..2] } else { &PAGES };
    bench.begin("pages", sizes.len() * rivals.len() * bench.effort.rounds)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    for size in sizes {
        let mut load = bench.load(Key::Rsa2048, "1.3", CONNECTIONS);
        load.page = size.to_string();
        let pairs: Vec<_> = rivals.iter().map(|rival| (rival, load.clone())).collect();
        let samples = bench.interleaved(&pairs, None)?;
        text += &line(&format!("TLS 1.3, page of {} KiB", size >> 10), &samples);
        all.extend(samples);
    }
    let of = |engine: Engine| {
        let chosen = all.iter().filter(|sample| sample.engine == engine.name());
        (engine.name(), chosen.map(|sample| (sample.page.parse().unwrap_or(1.0), sample.per_server_cpu_s)).collect())
    };
    let lines = ENGINES.map(of).into();
    let (x, y) = ("page, bytes", "pages per second of the server's CPU");
    draw(
        &bench.out("pages.svg"),
        &[Panel { title: "nginx, RSA-2048, TLS 1.3, a page per connection".into(), x, y, scale: Scale::LogBoth, lines, marks: Vec::new() }],
    )?;
    bench.table("pages", &csv(&all), &all)?;
    Ok(text)
}

/// One line for people.
pub(super) fn line(what: &str, samples: &[Sample]) -> String {
    let mut text = String::new();
    if let [software, bywash] = samples {
        let (before, after) = (software.per_server_cpu_s, bywash.per_server_cpu_s);
        let _ = writeln!(text, "  {what:<36} {before:>6.0} -> {after:>6.0}  x{:.2}", after / before);
    }
    text
}
