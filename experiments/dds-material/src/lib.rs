//! What DDS Security 1.1 asks of a participant before it speaks: two certificate authorities, an identity, a governance and permissions, the last two signed
//! (S/MIME). Made by the `openssl` command in a folder that the caller owns, for measurements and tests alone: the keys lie there unencrypted.
//!
//! ```no_run
//! use bywash_dds_material::{Governance, Material};
//! let material = Material::make("/tmp/somewhere".as_ref(), Governance::ROS2)?;
//! let alice = material.participant("alice")?;
//! // Cyclone DDS reads its configuration here:
//! std::process::Command::new("ddsperf").env("CYCLONEDDS_URI", alice.cyclone(None)?);
//! # Ok::<(), bywash_dds_material::Error>(())
//! ```
//!
//! The file names are those of a ROS 2 enclave, so that a participant's folder is one.
#![forbid(unsafe_code)]

mod cyclone;
mod documents;
mod fastdds;
mod governance;
mod material;

pub use cyclone::cyclone_configuration;
pub use governance::{Governance, Protection};
pub use material::{Error, Material, Participant};
