//! Text from files and command lines.

use bywash_core::trace::{Record, lost, lost_line};
use bywash_core::{Algorithm, CostSheet};

/// A line of a trace file: what is read and written comes back the same, and a line is a request, a remark or wrong.
pub fn trace_line(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    if let Ok(record) = line.parse::<Record>() {
        let written = record.to_string();
        let again = written.parse::<Record>().expect("its own text");
        assert_eq!(again.to_string(), written);
        assert!(lost(&line).is_none());
        // A program may call itself what is not written as it stands.
        assert_eq!(Record { whose: None, ..again }, Record { whose: None, ..record });
    }
    if let Some(count) = lost(&line) {
        assert_eq!(lost(&lost_line(count)), Some(count));
    }
}

/// A cost sheet: errors have a text, what is accepted estimates numbers and survives writing.
pub fn cost_sheet(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match CostSheet::from_toml(&text, "fuzz") {
        Err(error) => assert!(error.to_string().contains("fuzz"), "{error}"),
        Ok(sheet) => {
            for &algorithm in Algorithm::ALL {
                for size in [0, 1, 1 << 20, u64::MAX] {
                    assert!(sheet.estimate_ns(algorithm, size).is_none_or(|ns| ns >= 0.0), "{algorithm}, {size} bytes: {sheet:?}");
                }
            }
            let written = sheet.to_toml().expect("it was TOML");
            CostSheet::from_toml(&written, "written").expect("its own text");
        }
    }
}

/// The name of an algorithm.
pub fn algorithm_name(bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    match name.parse::<Algorithm>() {
        Ok(algorithm) => assert_eq!(algorithm.name().parse::<Algorithm>(), Ok(algorithm)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub(crate) fn trace_seeds() -> Vec<Vec<u8>> {
    let lines = [
        "1200,1,7,AES-256-GCM,encrypt,16384,here,1200,2310",
        "1,2,3,X25519,compute,0,cpu,4,5",
        "1200,1,7,AES-256-GCM,encrypt,16384,ixp425,1900,2310,42,1800,,0,0,oldest,4711,1000,1000+48,nginx,1",
        "1300,1,7,AES-256-GCM,encrypt,16384,here,1300,2310,,,,,,,4711,1000,,nginx,4",
        "# lost: 12",
    ];
    lines.map(|line| line.as_bytes().to_vec()).to_vec()
}

pub(crate) fn sheet_seeds() -> Vec<Vec<u8>> {
    let mut sheet = CostSheet::empty("fpga");
    let points = vec![(16, 40.0), (1024, 200.5), (16384, 3000.0)];
    let curve = bywash_core::CostCurve { setup_ns: 300.0, points, ..Default::default() };
    sheet.algorithms.insert(Algorithm::Aes256Gcm.name().to_owned(), curve);
    vec![sheet.to_toml().expect("a seed").into_bytes(), b"engine = \"x\"".to_vec()]
}

pub(crate) fn name_seeds() -> Vec<Vec<u8>> {
    Algorithm::ALL.iter().map(|algorithm| algorithm.name().as_bytes().to_vec()).collect()
}
