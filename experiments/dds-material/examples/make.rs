//! Makes material for participants: `cargo run -p bywash-dds-material --example make -- [--plug-in FILE] FOLDER GOVERNANCE NAME...`
//!
//! Authorities that are in the folder stay, so that more participants can be made later. With `--plug-in`, configurations for Cyclone DDS name that cryptographic plug-in.
#![forbid(unsafe_code)]

use bywash_dds_material::{Governance, Material};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let usage = "usage: make [--plug-in FILE] FOLDER off|data|rtps|ros2|all|origin NAME...";
    let plug_in = match arguments.next_if_eq("--plug-in") {
        Some(_) => Some(std::fs::canonicalize(arguments.next().ok_or(usage)?)?),
        None => None,
    };
    let (folder, kind) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let known = Governance::FIVE.into_iter().chain([Governance::ORIGIN]);
    let material = Material::make(folder.as_ref(), known.into_iter().find(|known| known.name == kind).ok_or(usage)?)?;
    for name in arguments {
        let participant = material.participant(&name)?;
        println!("export CYCLONEDDS_URI={}", participant.cyclone(plug_in.as_deref())?);
        println!("export FASTRTPS_DEFAULT_PROFILES_FILE={}", participant.fastdds()?.display());
    }
    Ok(())
}
