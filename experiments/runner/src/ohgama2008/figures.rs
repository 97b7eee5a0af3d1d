//! Figures 6, 7 and 8: M processes times N operations, original (operations in the order in which they come) against sched (a session at a time).

use super::BOUNDED;
use super::bars::{Bar, Bars};
use super::loads::{GRANT_NS, PROCESSES, module, paper_host, processes};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_measure::plot::{Line, Panel, Scale, draw};
use bywash_policy::schedule::parse;
use bywash_policy::{EngineInfo, Fifo, Policy};
use bywash_sim::shared::{Host, run};
use serde::Serialize;
use std::fmt::Write;

/// Processes of figures 7 and 8.
const M: [u32; 5] = [1, 5, 10, 15, 20];

/// Who decides: the paper's two, and ours.
const WHO: [&str; 4] = ["original (fifo)", "sched (exclusive)", "exclusive:hold=50ms", "default"];

/// Seconds until all processes had ended, in the order of [`WHO`].
#[derive(Clone, Serialize)]
pub(super) struct Row {
    processes: u32,
    operations: u64,
    modelled: bool,
    seconds: [f64; WHO.len()],
}

/// What the figures say.
struct Figures {
    rows: Vec<Row>,
    /// From how many operations on sched is ahead with [`PROCESSES`].
    crossing: Option<u64>,
}

pub(super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<Bars> {
    let step = if options.quick { 250 } else { 50 };
    let cells: Vec<(u32, u64)> = M.iter().flat_map(|&m| (1..=1000 / step).map(move |n| (m, n * step))).collect();
    progress(Progress::Part("figures 6 to 8 (modelled)".into(), cells.len() as u64))?;
    let mut rows = Vec::new();
    for (processes, operations) in cells {
        rows.push(row(processes, operations));
        progress(Progress::Step)?;
    }
    let figures = Figures { rows, crossing: crossing() };
    write_table(options, outcome, "figures6-8", &figures.csv(), &figures.rows)?;
    draw(&options.out.join("figures6-8.svg"), &figures.panels())?;
    outcome.text += &figures.text();
    let crossing = figures.crossing.map_or(f64::NAN, |operations| operations as f64);
    Ok(vec![
        Bar::at_least("figure 6: operations from which sched is ahead (paper: about 200)", crossing, 150.0),
        Bar::at_most("figure 6: the same", crossing, 250.0),
    ])
}

fn row(processes: u32, operations: u64) -> Row {
    Row { processes, operations, modelled: true, seconds: std::array::from_fn(|who| seconds(who, processes, operations)) }
}

/// Sched's processes sleep in the opening of their session until they are granted the module; nobody else's do.
fn seconds(who: usize, count: u32, operations: u64) -> f64 {
    let module = module(0);
    let (mut policy, grant_ns): (Box<dyn Policy>, u64) = match who {
        0 => (Box::new(Fifo::new(std::slice::from_ref(&module))), 0),
        1 => (named("exclusive", &module), GRANT_NS),
        2 => (named(BOUNDED, &module), 0),
        _ => (named("default", &module), 0),
    };
    let load = processes(count, operations, Host { grant_ns, ..paper_host() });
    run(&mut *policy, &module, &load).makespan_ns as f64 / 1e9
}

fn named(name: &str, module: &EngineInfo) -> Box<dyn Policy> {
    parse(name).expect("a name of the list").policy(std::slice::from_ref(module))
}

/// The least number of operations with which sched is ahead; it stays ahead, as its advantage grows with each.
fn crossing() -> Option<u64> {
    let is_ahead = |operations: u64| seconds(1, PROCESSES, operations) < seconds(0, PROCESSES, operations);
    let (mut behind, mut ahead) = (0, 1000);
    while ahead - behind > 1 {
        let middle = u64::midpoint(behind, ahead);
        if is_ahead(middle) { ahead = middle } else { behind = middle }
    }
    is_ahead(ahead).then_some(ahead)
}

impl Figures {
    fn line(&self, processes: u32, who: usize, name: String) -> Line {
        let rows = self.rows.iter().filter(|row| row.processes == processes);
        (name, rows.map(|row| (row.operations as f64, row.seconds[who])).collect())
    }

    fn panels(&self) -> Vec<Panel> {
        let panel = |title: String, lines: Vec<Line>| Panel {
            title,
            x: "operations of each process",
            y: "seconds until all have ended (modelled)",
            scale: Scale::Linear,
            lines,
            marks: Vec::new(),
        };
        let figure6 = (0..WHO.len()).map(|who| self.line(PROCESSES, who, WHO[who].to_owned())).collect();
        let by_processes = |who| M.map(|m| self.line(m, who, format!("{m} processes"))).to_vec();
        vec![
            panel(format!("Figure 6: {PROCESSES} processes"), figure6),
            panel("Figure 7: original (fifo)".into(), by_processes(0)),
            panel("Figure 8: sched (exclusive)".into(), by_processes(1)),
        ]
    }

    fn csv(&self) -> String {
        let mut csv = format!("processes,operations,modelled,{}\n", WHO.map(|who| format!("\"{who} s\"")).join(","));
        for Row { processes, operations, modelled, seconds } in &self.rows {
            let seconds = seconds.map(|s| format!("{s:.4}")).join(",");
            let _ = writeln!(csv, "{processes},{operations},{modelled},{seconds}");
        }
        csv
    }

    fn text(&self) -> String {
        let mut text = format!("Figure 6, modelled: {PROCESSES} processes, seconds until all have ended\n");
        let _ = writeln!(text, "{:>12}{}", "operations", WHO.map(|who| format!("  {who:>24}")).concat());
        for row in self.rows.iter().filter(|row| row.processes == PROCESSES && row.operations % 250 == 0) {
            let _ = writeln!(text, "{:>12}{}", row.operations, row.seconds.map(|s| format!("  {s:>24.3}")).concat());
        }
        text + &self.verdict()
    }

    fn verdict(&self) -> String {
        let last = self.rows.last().expect("there are cells");
        let [original, sched, bounded, default] = last.seconds;
        let crossing = match self.crossing {
            Some(operations) => format!("sched is ahead from {operations} operations on (the paper: about 200)"),
            None => "sched is ahead at no number of operations up to 1000 (the paper: from about 200)".into(),
        };
        format!(
            "Verdict: {crossing}; with {} it takes {:.0} % of the original's time. What it saves is changes of process on the one processor, not the module's time: \
             the default, which knows of the module alone, takes {:.0} %. With an end of holding, and without sleeping until the module is granted, exclusive takes {:.0} %.\n\n",
            last.operations,
            100.0 * sched / original,
            100.0 * default / original,
            100.0 * bounded / original
        )
    }
}
