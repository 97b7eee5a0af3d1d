//! Figures 3 and 4: connections per second and connection latency against the load that is offered, with and without session reuse, by software, with
//! the card, and with Bywash.

use super::{Bench, CARD, CARD_TODAY};
use crate::Result;
use crate::rivals::{Engine, Rival};
use crate::sample::{Sample, csv};
use crate::servers::Server;
use crate::stage::Key;
use bywash_measure::plot::{Line, Panel, Scale, draw};
use std::fmt::Write;

/// The most connections that the client has open.
const OPEN_MAX: usize = 256;
/// Offered load in shares of what software can do without session reuse.
const SHARES: [f64; 10] = [0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.3, 1.8, 2.4, 3.2];
/// A server that serves less than this share of what is offered is overloaded; more is not offered to it.
const OVERLOADED: f64 = 0.85;

struct Series {
    name: String,
    points: Vec<Sample>,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    let mut all = Vec::new();
    let mut text = "\nFigures 3 and 4: the most connections a second without overload\n".to_owned();
    let servers: Vec<Server> = bench.servers()?.into_iter().filter(|&server| bench.effort.quick || server != Server::Haproxy).collect();
    for server in servers {
        let engines = engines(server, bench.effort.quick);
        let rivals = engines.iter().map(|&engine| bench.start(server, engine)).collect::<Result<Vec<_>>>()?;
        for key in if bench.effort.quick { vec![Key::Rsa2048] } else { vec![Key::Rsa1024, Key::Rsa2048] } {
            let series = family(bench, &rivals, key)?;
            picture(bench, server, key, &series)?;
            for Series { name, points } in series {
                let most = most(&points).map_or_else(|| "none".to_owned(), |most| format!("{most:.0} /s"));
                let _ = writeln!(text, "  {:<8} {:<9} {name:<48} {most:>10}", server.name(), key.name());
                all.extend(points);
            }
        }
    }
    bench.table("curves", &csv(&all), &all)?;
    Ok(text)
}

/// A server of one thread waits for the paper's card 40 ms each time: 25 connections a second, which is no curve. It takes the paper's threads.
fn engines(server: Server, quick: bool) -> &'static [Engine] {
    match server {
        _ if quick => &[Engine::Software, CARD_TODAY],
        Server::Apache => &[Engine::Software, CARD, CARD_TODAY, Engine::Bywash],
        _ => &[Engine::Software, CARD_TODAY, Engine::Bywash],
    }
}

/// The most that was served of a load of which it served nearly all; none, if it was overloaded by the least already.
fn most(points: &[Sample]) -> Option<f64> {
    points.iter().filter(|point| !was_overload(point)).map(|point| point.connections_per_s).reduce(f64::max)
}

/// All lines of one key on one server, load by load, so that rivals meet in the same minute.
fn family(bench: &mut Bench<'_>, rivals: &[Rival], key: Key) -> Result<Vec<Series>> {
    let mut lines: Vec<(&Rival, bool, Series)> = Vec::new();
    for rival in rivals {
        let name = |resume: bool| format!("{}{}", rival.engine.name(), if resume { ", session reuse" } else { "" });
        lines.push((rival, false, Series { name: name(false), points: Vec::new() }));
        if matches!(rival.engine, Engine::Software | Engine::Bywash) {
            lines.push((rival, true, Series { name: name(true), points: Vec::new() }));
        }
    }
    let probe = rivals[0].measure(&bench.load(key, "1.2", 32), bench.options, &bench.stage, None)?;
    let capacity = probe.connections_per_s;
    bench.note(format!("{}, {}: software does {capacity:.0} connections a second", probe.server, probe.key))?;
    let shares: &[f64] = if bench.effort.quick { &SHARES[2..4] } else { &SHARES };
    bench.begin(&format!("figures 3 and 4: {}, {}", probe.server, probe.key), shares.len() * lines.len() * bench.effort.rounds)?;
    for share in shares {
        let open: Vec<usize> = (0..lines.len()).filter(|&line| !is_overloaded(&lines[line].2)).collect();
        let pair = |&line: &usize| {
            let (rival, resume, _) = &lines[line];
            let mut load = bench.load(key, "1.2", OPEN_MAX);
            (load.rate, load.resume) = (Some(share * capacity), *resume);
            (*rival, load)
        };
        let pairs: Vec<_> = open.iter().map(pair).collect();
        for (line, sample) in open.into_iter().zip(bench.interleaved(&pairs, None)?) {
            lines[line].2.points.push(sample);
        }
    }
    Ok(lines.into_iter().map(|(_, _, series)| series).collect())
}

fn is_overloaded(series: &Series) -> bool {
    series.points.last().is_some_and(was_overload)
}

fn was_overload(point: &Sample) -> bool {
    point.connections_per_s < OVERLOADED * point.offered_per_s
}

fn picture(bench: &Bench<'_>, server: Server, key: Key, series: &[Series]) -> Result<()> {
    let figure = |name: &str, wanted: &dyn Fn(&str) -> bool| {
        let lines = |y: fn(&Sample) -> f64| -> Vec<Line> {
            let chosen = series.iter().filter(|series| wanted(&series.name));
            chosen
                .map(|series| (series.name.clone(), series.points.iter().map(|point| (point.offered_per_s, y(point))).collect()))
                .collect()
        };
        let x = "connections offered per second";
        let title = format!("{}, {}, TLS 1.2", server.name(), key.name());
        let panels = [
            Panel {
                title: title.clone(),
                x,
                y: "connections per second",
                scale: Scale::Linear,
                lines: lines(|point| point.connections_per_s),
                marks: Vec::new(),
            },
            Panel {
                title: title.clone(),
                x,
                y: "latency p50, ms",
                scale: Scale::LogY,
                lines: lines(|point| point.p50_ms),
                marks: Vec::new(),
            },
            Panel {
                title,
                x,
                y: "server CPU per connection, us",
                scale: Scale::Linear,
                lines: lines(|point| point.server_cpu_us),
                marks: Vec::new(),
            },
        ];
        Ok(draw(&bench.out(&format!("{name}-{}-{}.svg", server.name(), key.file())), &panels)?)
    };
    figure("figure3", &|name| name.starts_with("software"))?;
    figure("figure4", &|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::point;

    #[test]
    fn what_was_served_under_overload_is_not_the_most_without() {
        let points = [point(100.0, 99.0), point(200.0, 190.0), point(400.0, 250.0)];
        assert_eq!(most(&points), Some(190.0));
        assert_eq!(most(&points[2..]), None);
    }
}
