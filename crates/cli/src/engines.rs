//! `bywash engines`: what can compute here, what it can do, why something is missing.

use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::Style;
use bywash_core::{Absent, Algorithm, Engine, Kind};
use bywash_manager::{EngineName, Engines};
use serde::Serialize;
use std::fmt::Write;
use std::process::ExitCode;

/// `bywash engines`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash engines
  bywash engines --legacy
  bywash engines --engine gpu
  bywash engines --engine board:munetoh-meac32
  bywash engines --engine fpga:niwa2005-area
  bywash engines --json | jq -r '.present[].algorithms[]'")]
pub(crate) struct Args {
    /// Show this one: cpu, gpu, gpu:cuda or gpu:vulkan, board:CARD for a modelled card, or fpga or fpga:DEVICE for a modelled FPGA (one
    /// that comes along or the file of its sheet); again for more [default: all that are here]
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<EngineName>,
    /// List legacy ciphers and hashes too: DES, 3DES, Camellia, Serpent, Twofish, RC6, MD5, SHA-1, RIPEMD-160
    #[arg(long)]
    legacy: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Shows what a look around finds.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let engines = if args.engine.is_empty() { bywash_manager::look_around() } else { bywash_manager::find(&args.engine)? };
    let text = if args.json { as_json(&engines)? } else { as_text(&engines, args.legacy, Style::of_stdout()) };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Listing<'a> {
    present: Vec<Present<'a>>,
    absent: Vec<Missing<'a>>,
}

#[derive(Serialize)]
struct Present<'a> {
    name: &'a str,
    description: String,
    modelled: bool,
    workers: usize,
    batch_max: usize,
    algorithms: Vec<&'static str>,
    /// Those that are computed for whoever asks for them by name, and never chosen.
    legacy: Vec<&'static str>,
}

#[derive(Serialize)]
struct Missing<'a> {
    name: &'a str,
    reason: &'a str,
    remedy: Option<&'a str>,
}

fn as_json(engines: &Engines) -> Result<String, Failure> {
    let present = |engine: &std::sync::Arc<dyn Engine>| Present {
        description: engine.describe(),
        modelled: engine.is_modelled(),
        workers: engine.workers(),
        batch_max: engine.batch_max(),
        algorithms: names(engine, false),
        legacy: names(engine, true),
        name: "",
    };
    let mut listing = Listing { present: engines.present.iter().map(present).collect(), absent: Vec::new() };
    listing.present.iter_mut().zip(&engines.present).for_each(|(shown, engine)| shown.name = engine.name());
    listing.absent =
        engines.absent.iter().map(|Absent { name, reason, remedy }| Missing { name, reason, remedy: remedy.as_deref() }).collect();
    Ok(serde_json::to_string_pretty(&listing).map_err(|error| Failure::failed(error.to_string()))? + "\n")
}

/// What an engine can do, legacy or not.
fn names(engine: &std::sync::Arc<dyn Engine>, legacy: bool) -> Vec<&'static str> {
    engine.capabilities().iter().filter(|algorithm| algorithm.is_legacy() == legacy).map(|algorithm| algorithm.name()).collect()
}

fn as_text(engines: &Engines, legacy: bool, style: Style) -> String {
    let mut text = String::new();
    for engine in &engines.present {
        let modelled = if engine.is_modelled() { style.warn(" (modelled: its times are not measurements)") } else { String::new() };
        let workers = engine.workers();
        let plural = if workers == 1 { "worker" } else { "workers" };
        let _ = writeln!(text, "{}  {}, {workers} {plural}{modelled}", style.good(engine.name()), engine.describe());
        for (family, names) in families(engine.capabilities()).into_iter().filter(|(family, _)| legacy || *family != LEGACY) {
            let _ = writeln!(text, "    {family:<14} {}", names.join(", "));
        }
        if !legacy && engine.capabilities().iter().any(|algorithm| algorithm.is_legacy()) {
            let _ = writeln!(text, "    {LEGACY:<14} only where asked for by name, programs have OpenSSL's; --legacy lists them");
        }
    }
    for Absent { name, reason, remedy } in &engines.absent {
        let _ = writeln!(text, "{}  missing: {reason}", style.warn(name));
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "    mend: {remedy}");
        }
    }
    text
}

/// The family of ciphers and hashes for old data.
const LEGACY: &str = "legacy";

/// The capabilities by what they are for, in the order of the algorithm table.
fn families(algorithms: &[Algorithm]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    for algorithm in algorithms {
        let family = if algorithm.is_legacy() { LEGACY } else { family(algorithm.kind()) };
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, names)) => names.push(algorithm.name()),
            None => families.push((family, vec![algorithm.name()])),
        }
    }
    families
}

pub(crate) fn family(kind: Kind) -> &'static str {
    match kind {
        Kind::Cipher { .. } => "ciphers",
        Kind::Aead { .. } => "AEADs",
        Kind::Digest { .. } => "digests",
        Kind::Mac { .. } => "MACs",
        Kind::RsaPrivate { .. } | Kind::RsaPublic { .. } => "RSA",
        Kind::EcdsaSign { .. } | Kind::EcdsaVerify { .. } => "ECDSA",
        Kind::EddsaSign { .. } => "EdDSA",
        Kind::Agreement { .. } | Kind::PublicValue { .. } => "key agreement",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_family() {
        let shown: usize = families(Algorithm::ALL).iter().map(|(_, names)| names.len()).sum();
        assert_eq!(shown, Algorithm::COUNT);
        assert!(families(Algorithm::ALL).iter().all(|(name, _)| *name != "other"));
    }

    #[test]
    fn an_absent_engine_is_shown_with_its_remedy() {
        let absent = Absent { name: "gpu".into(), reason: "no driver".into(), remedy: Some("install it".into()) };
        let engines = Engines { present: Vec::new(), absent: vec![absent] };
        assert!(as_json(&engines).unwrap().contains("\"remedy\": \"install it\""));
        assert!(as_text(&engines, false, Style::of_stdout()).contains("mend: install it"));
    }
}
