//! Makes material for participants: `cargo run -p bywash-dds-material --example make -- --help`
#![forbid(unsafe_code)]

use bywash_dds_material::{Governance, Material};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Authorities, documents, and for each NAME a folder with keys and configurations for Cyclone DDS and Fast DDS
///
/// Prints for each what its environment wants. Authorities that are in FOLDER stay, so that more participants can be made later; a new governance reaches those who are there, a NAME that
/// is there is made anew.
#[derive(Parser)]
#[command(name = "make")]
struct Arguments {
    /// The cryptographic plug-in that configurations for Cyclone DDS name, in place of its own
    #[arg(long, value_name = "FILE")]
    plug_in: Option<PathBuf>,
    /// Where to
    folder: PathBuf,
    /// What is protected: off, data, rtps, ros2 (as `ros2 security` has it), all, or origin (all, with a tag for each receiver)
    #[arg(value_parser = governance)]
    governance: Governance,
    /// Participants: letters, digits and dashes
    #[arg(required = true)]
    name: Vec<String>,
}

fn governance(text: &str) -> Result<Governance, String> {
    let known = Governance::FIVE.into_iter().chain([Governance::ORIGIN]);
    let names: Vec<_> = known.clone().map(|known| known.name).collect();
    known.into_iter().find(|known| known.name == text).ok_or_else(|| format!("one of {}", names.join(", ")))
}

fn main() -> ExitCode {
    match made(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("make: {why}");
            ExitCode::FAILURE
        }
    }
}

fn made(arguments: &Arguments) -> Result<(), String> {
    let absolute = |path: &PathBuf| path.canonicalize().map_err(|error| format!("--plug-in {}: {error}", path.display()));
    let plug_in = arguments.plug_in.as_ref().map(absolute).transpose()?;
    let material = Material::make(&arguments.folder, arguments.governance).map_err(|error| error.to_string())?;
    for name in &arguments.name {
        let participant = material.participant(name).map_err(|error| error.to_string())?;
        println!("# {name}");
        println!("export CYCLONEDDS_URI={}", participant.cyclone(plug_in.as_deref()).map_err(|error| error.to_string())?);
        println!("export FASTRTPS_DEFAULT_PROFILES_FILE={}", participant.fastdds().map_err(|error| error.to_string())?.display());
    }
    Ok(())
}
