//! takeda: a GPU beside the processor as a generic device for encryption. Figure 2: files of one size that AES-128 encrypts in 3 s.

use crate::ciphers::{self, AES_LANES, Rival};
use crate::{Error, Options, Outcome, Progress, Result, parts, write_table};
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

pub(crate) fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    parts(options, &["cpu"])?;
    let sizes: Vec<usize> = (0..).map(|step| 256 << (2 * step)).take_while(|&bytes| bytes <= LARGEST).collect();
    let sizes = if options.quick { vec![256, 4096] } else { sizes };
    progress(Progress::Part("figure 2, the processor".into(), sizes.len() as u64));
    let mut rows = Vec::new();
    for bytes in sizes {
        rows.push(row(options, bytes)?);
        progress(Progress::Step);
    }
    let mut outcome = Outcome { text: text(&rows), ..Outcome::default() };
    write_table(options, &mut outcome, "figure2-cpu", &csv(&rows), &rows)?;
    draw(&options.out.join("figure2-cpu.svg"), &[panel(&rows)]).map_err(|error| Error(error.to_string()))?;
    Ok(outcome)
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
