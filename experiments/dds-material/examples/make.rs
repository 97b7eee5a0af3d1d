//! Makes material for participants: `cargo run -p bywash-dds-material --example make -- FOLDER GOVERNANCE NAME...`
#![forbid(unsafe_code)]

use bywash_dds_material::{Governance, Material};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: make FOLDER off|data|rtps|ros2|all|origin NAME...";
    let (folder, kind) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let known = Governance::FIVE.into_iter().chain([Governance::ORIGIN]);
    let material = Material::make(folder.as_ref(), known.into_iter().find(|known| known.name == kind).ok_or(usage)?)?;
    for name in arguments {
        let participant = material.participant(&name)?;
        println!("export CYCLONEDDS_URI={}", participant.cyclone(None)?);
        println!("export FASTRTPS_DEFAULT_PROFILES_FILE={}", participant.fastdds()?.display());
    }
    Ok(())
}
