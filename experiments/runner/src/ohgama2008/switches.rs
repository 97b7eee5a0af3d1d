//! What a change of session costs the module, from nothing to ten times an operation, and every scheduler on each: 20 processes, 1000 operations each.

use super::bars::{Bar, Bars};
use super::loads::{PROCESSES, SERVICE_NS, module, paper_host, processes, wide_host};
use super::schedulers;
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_measure::plot::{Line, Panel, Scale, draw};
use bywash_policy::by_name;
use bywash_sim::shared::{Host, run};
use serde::Serialize;
use std::fmt::Write;

/// A change of session over the service of an operation.
const SIGMAS: [f64; 5] = [0.0, 0.1, 1.0, 3.0, 10.0];

/// Operations of each process.
const OPERATIONS: u64 = 1000;

/// One scheduler on one machine.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    host: &'static str,
    sigma: f64,
    scheduler: &'static str,
    modelled: bool,
    makespan_ms: f64,
    mean_end_ms: f64,
    worst_first_wait_ms: f64,
    p50_wait_ms: f64,
    p99_wait_ms: f64,
    switches: u64,
    jain: f64,
}

pub(super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<Bars> {
    let hosts = [("own processors", wide_host()), ("one processor", paper_host())];
    progress(Progress::Part("costs of a switch (modelled)".into(), (hosts.len() * SIGMAS.len()) as u64))?;
    let mut rows = Vec::new();
    for (name, host) in hosts {
        for sigma in SIGMAS {
            rows.extend(schedulers().map(|scheduler| row(name, host, sigma, scheduler)));
            progress(Progress::Step)?;
        }
    }
    write_table(options, outcome, "switches", &csv(&rows), &rows)?;
    draw(&options.out.join("switches.svg"), &panels(&rows))?;
    outcome.text += &text(&rows);
    Ok(bars(&rows))
}

fn row(host: &'static str, machine: Host, sigma: f64, scheduler: &'static str) -> Row {
    let module = module((sigma * SERVICE_NS as f64) as u64);
    let mut policy = by_name(scheduler, std::slice::from_ref(&module)).expect("a name of the list");
    let found = run(&mut *policy, &module, &processes(PROCESSES, OPERATIONS, machine));
    let ms = |ns: u64| ns as f64 / 1e6;
    Row {
        host,
        sigma,
        scheduler,
        modelled: true,
        makespan_ms: ms(found.makespan_ns),
        mean_end_ms: found.mean_end_ns("") / 1e6,
        worst_first_wait_ms: ms(found.worst_first_wait_ns("")),
        p50_wait_ms: ms(found.wait_ns("", 0.5).unwrap_or(0)),
        p99_wait_ms: ms(found.wait_ns("", 0.99).unwrap_or(0)),
        switches: found.switches,
        jain: found.jain(""),
    }
}

fn find<'a>(rows: &'a [Row], host: &str, sigma: f64, scheduler: &str) -> &'a Row {
    rows.iter().find(|row| row.host == host && row.sigma == sigma && row.scheduler == scheduler).expect("every combination was run")
}

fn bars(rows: &[Row]) -> Bars {
    let at = |sigma, scheduler| find(rows, "own processors", sigma, scheduler);
    let (free, dear) = (at(0.0, "default"), at(10.0, "default"));
    let (fifo, exclusive) = (at(0.0, "fifo"), at(10.0, "exclusive"));
    vec![
        Bar::at_most("sigma = 0: default's makespan over fifo's", free.makespan_ms / fifo.makespan_ms, 1.07),
        Bar::at_most("sigma = 10 s: default's makespan over exclusive's", dear.makespan_ms / exclusive.makespan_ms, 1.10),
        Bar::at_least(
            "sigma = 10 s: exclusive's worst first wait over default's",
            exclusive.worst_first_wait_ms / dear.worst_first_wait_ms,
            5.0,
        ),
    ]
}

fn csv(rows: &[Row]) -> String {
    let mut csv =
        "host,sigma_over_service,scheduler,modelled,makespan_ms,mean_end_ms,worst_first_wait_ms,p50_wait_ms,p99_wait_ms,switches,jain\n"
            .to_owned();
    for row in rows {
        let Row {
            host,
            sigma,
            scheduler,
            modelled,
            makespan_ms,
            mean_end_ms,
            worst_first_wait_ms,
            p50_wait_ms,
            p99_wait_ms,
            switches,
            jain,
        } = row;
        let _ = writeln!(
            csv,
            "{host},{sigma},{scheduler},{modelled},{makespan_ms:.2},{mean_end_ms:.2},{worst_first_wait_ms:.3},{p50_wait_ms:.3},{p99_wait_ms:.3},{switches},{jain:.4}"
        );
    }
    csv
}

fn panels(rows: &[Row]) -> Vec<Panel> {
    let line = |host: &str, scheduler: &'static str, figure: fn(&Row) -> f64| -> Line {
        let points = SIGMAS.iter().map(|&sigma| (sigma, figure(find(rows, host, sigma, scheduler))));
        (scheduler.to_owned(), points.collect())
    };
    let panel = |host: &str, y: &'static str, figure: fn(&Row) -> f64| Panel {
        title: format!("{PROCESSES} processes, {host}"),
        x: "change of session over service",
        y,
        scale: Scale::LogY,
        lines: ["fifo", "exclusive", "wfq", "anticipatory", "default"].map(|scheduler| line(host, scheduler, figure)).to_vec(),
        marks: Vec::new(),
    };
    let pair = |host| {
        [
            panel(host, "makespan, ms (modelled)", |row| row.makespan_ms),
            panel(host, "worst first wait, ms (modelled)", |row| row.worst_first_wait_ms),
        ]
    };
    [pair("own processors"), pair("one processor")].into_iter().flatten().collect()
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from("Costs of a switch, modelled: makespan in ms / worst first wait in ms, by sigma over service\n");
    for host in ["own processors", "one processor"] {
        let _ = writeln!(text, "{host:<22}{}", SIGMAS.map(|sigma| format!("{sigma:>19}")).concat());
        for scheduler in schedulers() {
            let cell = |sigma| {
                let row = find(rows, host, sigma, scheduler);
                format!("{:>10.0} /{:>7.1}", row.makespan_ms, row.worst_first_wait_ms)
            };
            let _ = writeln!(text, "  {scheduler:<20}{}", SIGMAS.map(cell).concat());
        }
    }
    text + &verdict(rows)
}

/// Where exclusive wins and where it loses, read off the rows.
fn verdict(rows: &[Row]) -> String {
    let mut text = String::from("Verdict:");
    for host in ["own processors", "one processor"] {
        let ratio = |sigma: f64, scheduler| find(rows, host, sigma, scheduler).makespan_ms / find(rows, host, sigma, "fifo").makespan_ms;
        let list = |wins: bool| {
            let chosen = SIGMAS.iter().filter(|&&sigma| (ratio(sigma, "exclusive") < 1.0) == wins);
            chosen.map(|&sigma| format!("{sigma} ({:.2})", ratio(sigma, "exclusive"))).collect::<Vec<_>>().join(", ")
        };
        let none = |list: String| if list.is_empty() { "none".to_owned() } else { list };
        let defaults = SIGMAS.map(|sigma| format!("{:.2}", ratio(sigma, "default"))).join(", ");
        let waits = SIGMAS.map(|sigma| {
            find(rows, host, sigma, "exclusive").worst_first_wait_ms / find(rows, host, sigma, "default").worst_first_wait_ms.max(1e-3)
        });
        let least = waits.iter().copied().fold(f64::INFINITY, f64::min);
        let _ = write!(
            text,
            " {host}: exclusive's makespan is below fifo's at sigma over service {} and not below it at {}; the default's is {defaults} of fifo's, \
             with a worst first wait at least {least:.0} times shorter than exclusive's.",
            none(list(true)),
            none(list(false)),
        );
    }
    text + "\n\n"
}
