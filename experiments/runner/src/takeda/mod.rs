//! takeda: a GPU beside the processor as a generic device for encryption. Figure 2: files of one size that AES-128 encrypts in 3 s; table 1: the same of 16 MiB under load. Live on what
//! this machine has, simulated for GPUs that are not here; each row says which.

mod live;
mod simulated;

use crate::ciphers::{self, AES_LANES, Rival};
use crate::{Error, Options, Outcome, Part, Progress, Result, Tell, write_table};
use bywash_core::Algorithm;
use bywash_measure::plot::{Panel, Scale, draw};
use serde::Serialize;
use std::fmt::Write;

/// Seconds in which files are counted.
const SECONDS: f64 = 3.0;
/// Bytes of the largest file.
const LARGEST: usize = 16 << 20;
/// Table 1, files of [`LARGEST`] in 3 s, processor not loaded: the only points of figure 2 that the text gives. On an i3-8109U.
const PUBLISHED: [(&str, f64); 2] = [("published: OpenSSL CTR + AES-NI, i3-8109U", 815.0), ("published: CM-AES, its GPU", 3625.0)];
/// `OPENSSL_ia32cap` without AES-NI: bit 25 of ECX of CPUID leaf 1.
const WITHOUT_AESNI: &str = "~0x200000000000000";
/// The paper's three patterns, which are OpenSSL's, and what there is besides.
const CURVES: [&str; 6] = ["CBC", "CBC + AES-NI", "CTR + AES-NI", "Bywash CBC", "Bywash 16 x CBC", "Bywash CTR"];

/// Files in 3 s, in the order of [`CURVES`]; `None` where this machine does not have it.
#[derive(Serialize)]
struct Row {
    bytes: usize,
    files: [Option<f64>; CURVES.len()],
}

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &["cpu", "simulated", "live"];
/// What runs each of them.
const RUN: [Part<()>; PARTS.len()] = [processor, simulated, on_this_machine];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    outcome.run_parts(options, PARTS, &RUN, progress);
    Ok(outcome)
}

fn on_this_machine(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    let (sizes, engines) = (sizes(options), live::Engines::find(progress)?);
    progress(Progress::Part("both experiments, on this machine".into(), sizes.len() as u64 + 1))?;
    let points = live::figure2(options, &engines, &sizes, progress)?;
    if let Some(gpu) = engines.gpu() {
        with_gpu(options, outcome, &gpu, &points)?;
    }
    let rows = live::table1(options, &engines)?;
    progress(Progress::Step)?;
    under_load(options, outcome, &rows)
}

/// Figure 2 with a GPU, live.
fn with_gpu(options: &Options, outcome: &mut Outcome, gpu: &str, points: &[live::Point]) -> Result<()> {
    let mut csv = format!("on,marked,bytes,{},mediator over the better manager\n", live::WAYS.map(|way| format!("\"{way}\"")).join(","));
    let _ = writeln!(
        outcome.text,
        "\nFigure 2 with this machine's GPU and the mediator: files of AES-128-CTR in {SECONDS:.0} s, all there at once; LIVE ({gpu})"
    );
    let _ = writeln!(outcome.text, "{:>10}{}  over the better manager", "bytes", live::WAYS.map(|way| format!("  {way:>22}")).concat());
    for live::Point { bytes, files, mediator } in points {
        let _ = writeln!(
            csv,
            "\"{}\",live,{bytes},{},{mediator:.3}",
            gpu.replace('"', "'"),
            files.map(|files| format!("{files:.0}")).join(",")
        );
        let _ = writeln!(outcome.text, "{bytes:>10}{}  {mediator:>23.2}", files.map(|files| format!("  {files:>22.0}")).concat());
    }
    write_table(options, outcome, "figure2-live", &csv, &points)?;
    let line = |way: usize| points.iter().map(|point| (point.bytes as f64, point.files[way])).collect();
    let panel = Panel {
        title: format!("{gpu}, live: files of AES-128-CTR in {SECONDS:.0} s"),
        x: "bytes of a file",
        y: "files",
        scale: Scale::Sizes,
        lines: live::WAYS.iter().enumerate().map(|(way, name)| ((*name).to_owned(), line(way))).collect(),
        marks: Vec::new(),
    };
    draw(&options.out.join("figure2-live.svg"), &[panel]).map_err(|error| Error(error.to_string()))
}

fn sizes(options: &Options) -> Vec<usize> {
    let sizes: Vec<usize> = (0..).map(|step| 256 << (2 * step)).take_while(|&bytes| bytes <= LARGEST).collect();
    if options.quick { vec![256, 4096] } else { sizes }
}

fn processor(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    let sizes = sizes(options);
    progress(Progress::Part("figure 2, the processor".into(), sizes.len() as u64))?;
    let mut rows = Vec::new();
    for bytes in sizes {
        rows.push(row(options, bytes)?);
        progress(Progress::Step)?;
    }
    outcome.text += &text(&rows);
    write_table(options, outcome, "figure2-cpu", &csv(&rows), &rows)?;
    draw(&options.out.join("figure2-cpu.svg"), &[panel(&rows)]).map_err(|error| Error(error.to_string()))
}

/// Both experiments on sheets.
fn simulated(options: &Options, outcome: &mut Outcome, _: &mut Tell<'_>) -> Result<()> {
    let rows = simulated::figure2(&sizes(options))?;
    let mut csv = format!("gpu,marked,bytes,{}\n", simulated::WAYS.map(|way| format!("\"{way}\"")).join(","));
    let _ = writeln!(
        outcome.text,
        "\nFigure 2 with a GPU and the mediator: files of AES-128-CTR in {SECONDS:.0} s, all there at once; SIMULATED, by sheets of GPUs that are not here"
    );
    let _ = writeln!(outcome.text, "{:<16}{:>10}{}", "gpu", "bytes", simulated::WAYS.map(|way| format!("  {way:>22}")).concat());
    for simulated::Row { gpu, bytes, files } in &rows {
        let _ = writeln!(csv, "{gpu},simulated,{bytes},{}", files.map(|files| format!("{files:.0}")).join(","));
        let _ = writeln!(outcome.text, "{gpu:<16}{bytes:>10}{}", files.map(|files| format!("  {files:>22.0}")).concat());
    }
    write_table(options, outcome, "figure2-simulated", &csv, &rows)?;
    let panels: Vec<Panel> = bywash_core::sheets::GPUS.iter().map(|gpu| simulated_panel(gpu.name, &rows)).collect();
    draw(&options.out.join("figure2-simulated.svg"), &panels).map_err(|error| Error(error.to_string()))?;
    let rows = simulated::under_load()?;
    let mut csv = "gpu,marked,way,files_idle,files_loaded,lost_percent\n".to_owned();
    let _ = writeln!(
        outcome.text,
        "\nTable 1: files of 16 MiB in {SECONDS:.0} s, one after the other, without and with load; SIMULATED (published: processor 815 and 464, 43 % lost; GPU 3625 and 3556, 2 %)"
    );
    for simulated::Loaded { gpu, way, idle, loaded } in &rows {
        let lost = 100.0 * (1.0 - loaded / idle);
        let _ = writeln!(csv, "{gpu},simulated,\"{way}\",{idle:.0},{loaded:.0},{lost:.1}");
        let _ = writeln!(outcome.text, "{gpu:<16}  {way:<22}  {idle:>8.0}  {loaded:>8.0}  {lost:>5.1} % lost");
    }
    write_table(options, outcome, "table1-simulated", &csv, &rows)
}

fn simulated_panel(gpu: &str, rows: &[simulated::Row]) -> Panel {
    let line = |way: usize| rows.iter().filter(|row| row.gpu == gpu).map(|row| (row.bytes as f64, row.files[way])).collect();
    Panel {
        title: format!("{gpu}, simulated: files of AES-128-CTR in {SECONDS:.0} s"),
        x: "bytes of a file",
        y: "files",
        scale: Scale::Sizes,
        lines: simulated::WAYS.iter().enumerate().map(|(way, name)| ((*name).to_owned(), line(way))).collect(),
        marks: if gpu == "intel-iris-655" {
            PUBLISHED.map(|(name, files)| (name.to_owned(), vec![(LARGEST as f64, files)])).to_vec()
        } else {
            Vec::new()
        },
    }
}

/// Table 1, live.
fn under_load(options: &Options, outcome: &mut Outcome, rows: &[live::Row]) -> Result<()> {
    let mut csv = "way,marked,on,files_idle,files_loaded,lost_percent,processor_s_per_gb\n".to_owned();
    let _ = writeln!(
        outcome.text,
        "\nTable 1 on this machine: files of 16 MiB in {SECONDS:.0} s, without and with a thread of load on each core; LIVE"
    );
    for live::Row { way, on, idle, loaded, lost, processor } in rows {
        let lost = 100.0 * lost;
        let _ = writeln!(csv, "\"{way}\",live,\"{}\",{idle:.0},{loaded:.0},{lost:.1},{processor:.4}", on.replace('"', "'"));
        let _ = writeln!(
            outcome.text,
            "{way:<22}  {idle:>8.0}  {loaded:>8.0}  {lost:>5.1} % lost  {processor:.4} processor seconds a GB  ({on})"
        );
    }
    write_table(options, outcome, "table1-live", &csv, &rows)
}

fn row(options: &Options, bytes: usize) -> Result<Row> {
    let openssl = |rival: std::result::Result<Rival, String>| rival.map_err(Error);
    let (cbc, ctr) = (ciphers::pair(Algorithm::Aes128Cbc, bytes)?, ciphers::pair(Algorithm::Aes128Ctr, bytes)?);
    let without = if cfg!(target_arch = "x86_64") { Some(ciphers::openssl_without(WITHOUT_AESNI, "aes-128-cbc", bytes)) } else { None };
    let together = ciphers::side_by_side(Algorithm::Aes128Cbc, bytes);
    let mut all = [without, Some(openssl(cbc.openssl)?), Some(openssl(ctr.openssl)?), Some(cbc.ours), together, Some(ctr.ours)];
    let here: [bool; CURVES.len()] = all.each_ref().map(Option::is_some);
    let mut rivals: Vec<Rival> = all.iter_mut().filter_map(Option::take).collect();
    let mut ns = ciphers::ns(&mut rivals, ciphers::effort(options))?.into_iter();
    let files = here.map(|here| if here { ns.next().map(|ns| SECONDS * 1e9 / ns) } else { None });
    Ok(Row { bytes, files })
}

fn csv(rows: &[Row]) -> String {
    let mut csv = format!("bytes,{}\n", CURVES.map(|name| format!("\"{name}\"")).join(","));
    for Row { bytes, files } in rows {
        let _ = writeln!(csv, "{bytes},{}", files.map(|files| files.map_or_else(String::new, |files| format!("{files:.0}"))).join(","));
    }
    csv
}

fn panel(rows: &[Row]) -> Panel {
    let points = |curve: usize| rows.iter().filter_map(|row| Some((row.bytes as f64, row.files[curve]?))).collect();
    let lines = CURVES.iter().enumerate().map(|(curve, name)| ((*name).to_owned(), points(curve)));
    Panel {
        title: format!("AES-128, one core: files encrypted in {SECONDS:.0} s"),
        x: "bytes of a file",
        y: "files",
        scale: Scale::Sizes,
        lines: lines.collect(),
        marks: PUBLISHED.map(|(name, files)| (name.to_owned(), vec![(LARGEST as f64, files)])).to_vec(),
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "Figure 2: files that AES-128 encrypts in {SECONDS:.0} s on one core, in memory: OpenSSL's three patterns, and Bywash, in CBC also {AES_LANES} files at a time\n"
    );
    let _ = writeln!(text, "{:>10}{}", "bytes", CURVES.map(|name| format!("  {name:>15}")).concat());
    for Row { bytes, files } in rows {
        let files = files.map(|files| format!("  {:>15}", files.map_or_else(|| "-".to_owned(), |files| format!("{files:.0}"))));
        let _ = writeln!(text, "{bytes:>10}{}", files.concat());
    }
    for (name, files) in PUBLISHED {
        let _ = writeln!(text, "{LARGEST:>10}  {files:.0} {name}");
    }
    text
}
