//! Table 2: what ten ciphers do in software and on the FPGA, and on one core of today.

use crate::ciphers::{self, AES_LANES, DES_LANES};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_core::Algorithm;
use serde::Serialize;
use std::fmt::Write;

/// Mean size of the paper's requests in bytes.
const REQUEST: usize = 24_000;

/// A cipher of table 2: as it is called there, what stands for it here, and both columns in Mbit/s. AES-ECB's FPGA column is printed "8,880/0".
/// Keys have 128 bits; the paper says so of SERPENT and TWOFISH alone, and does not give Camellia's mode.
type Published = (&'static str, Algorithm, f64, f64);
const TABLE2: [Published; 10] = [
    ("RC6-ECB", Algorithm::Rc6_128Ecb, 454.0, 2398.0),
    ("Camellia", Algorithm::Camellia128Ecb, 478.0, 6750.0),
    ("DES-ECB", Algorithm::DesEcb, 129.0, 4571.0),
    ("DES-CBC", Algorithm::DesCbc, 104.6, 333.3),
    ("AES-ECB", Algorithm::Aes128Ecb, 266.7, 8880.0),
    ("AES-CBC", Algorithm::Aes128Cbc, 170.2, 300.1),
    ("3DES-ECB", Algorithm::TripleDesEcb, 75.5, 4000.0),
    ("3DES-CBC", Algorithm::TripleDesCbc, 64.0, 95.2),
    ("SERPENT", Algorithm::Serpent128Ecb, 842.8, 4860.0),
    ("TWOFISH", Algorithm::Twofish128Ecb, 102.6, 1585.0),
];

#[derive(Serialize)]
struct Row {
    cipher: &'static str,
    published_software_mbps: f64,
    published_fpga_mbps: f64,
    openssl_mbps: Option<f64>,
    bywash_mbps: f64,
    bywash_side_by_side_mbps: Option<f64>,
}

impl Row {
    /// The most that one core does.
    fn best(&self) -> f64 {
        self.bywash_side_by_side_mbps.map_or(self.bywash_mbps, |mbps| mbps.max(self.bywash_mbps))
    }
}

pub(super) fn run(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    progress(Progress::Part("table 2".into(), TABLE2.len() as u64))?;
    let mut rows = Vec::new();
    for published in TABLE2 {
        rows.push(row(options, published, progress)?);
        progress(Progress::Step)?;
    }
    outcome.text += &text(&rows);
    write_table(options, outcome, "table2", &csv(&rows), &rows)
}

fn row(options: &Options, (cipher, algorithm, software, fpga): Published, progress: &mut Tell<'_>) -> Result<Row> {
    let pair = ciphers::pair(algorithm, REQUEST)?;
    let mut rivals = vec![pair.ours];
    let openssl = pair.openssl.map(|openssl| rivals.push(openssl));
    if let Err(reason) = &openssl {
        progress(Progress::Note(format!("no column of OpenSSL: {reason}")))?;
    }
    let together = ciphers::side_by_side(algorithm, REQUEST).map(|rival| rivals.push(rival));
    let mbps: Vec<f64> = ciphers::ns(&mut rivals, ciphers::effort(options))?.into_iter().map(|ns| REQUEST as f64 * 8e3 / ns).collect();
    Ok(Row {
        cipher,
        published_software_mbps: software,
        published_fpga_mbps: fpga,
        bywash_mbps: mbps[0],
        openssl_mbps: openssl.ok().map(|()| mbps[1]),
        bywash_side_by_side_mbps: together.and_then(|()| mbps.last().copied()),
    })
}

fn shown(mbps: Option<f64>) -> String {
    mbps.map_or_else(String::new, |mbps| format!("{mbps:.1}"))
}

fn csv(rows: &[Row]) -> String {
    let mut csv = "cipher,published_software_mbps,published_fpga_mbps,openssl_mbps,bywash_mbps,bywash_side_by_side_mbps\n".to_owned();
    for row in rows {
        let Row { cipher, published_software_mbps, published_fpga_mbps, openssl_mbps, bywash_mbps, bywash_side_by_side_mbps } = row;
        let (openssl, together) = (shown(*openssl_mbps), shown(*bywash_side_by_side_mbps));
        let _ = writeln!(csv, "{cipher},{published_software_mbps},{published_fpga_mbps},{openssl},{bywash_mbps:.1},{together}");
    }
    csv
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "Table 2: encryption in Mbit/s. Published: Pentium 4 at 2.2 GHz, and the FPGA xc2v8000. Here: one core, messages of {REQUEST} bytes;\n\
         side by side {AES_LANES} (AES) or {DES_LANES} (DES, 3DES) of them.\n\
         cipher        software      FPGA |    OpenSSL     Bywash  side by side   best / FPGA\n"
    );
    for row in rows {
        let Row { cipher, published_software_mbps, published_fpga_mbps, openssl_mbps, bywash_mbps, bywash_side_by_side_mbps } = row;
        let (openssl, together) = (shown(*openssl_mbps), shown(*bywash_side_by_side_mbps));
        let ratio = row.best() / published_fpga_mbps;
        let _ = writeln!(
            text,
            "{cipher:<10} {published_software_mbps:>11.1} {published_fpga_mbps:>9.1} | {openssl:>10} {bywash_mbps:>10.1} {together:>13} {ratio:>13.2}"
        );
    }
    let ahead = rows.iter().filter(|row| row.best() > row.published_fpga_mbps).count();
    let _ = writeln!(text, "One core does more than the paper's FPGA in {ahead} of {} ciphers.", rows.len());
    text
}
