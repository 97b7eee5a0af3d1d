//! `bywash dds`: what concerns DDS Security alone.

mod certificates;
mod config;
mod cyclone;
mod documents;
mod fastdds;
mod governance;
mod meeting;
mod permissions;
mod plugin;
mod sockets;
mod trust;
mod variables;
mod xml;

use crate::doctor::{Finding, Level, tell};
use crate::failure::Failure;
use config::{Kind, Part, Security};
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash dds`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash dds doctor cyclonedds.xml")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what of a participant's security configuration will hurt
    Doctor(DoctorArgs),
}

/// `bywash dds doctor`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash dds doctor cyclonedds.xml              a configuration of Cyclone DDS
  bywash dds doctor profiles.xml                profiles of Fast DDS
  bywash dds doctor ~/keystore/enclaves/talker  an enclave of ROS 2
  bywash dds doctor talker.xml listener.xml     two or more, and whether they would meet
  bywash dds doctor --json profiles.xml | jq '.[] | select(.level == \"broken\")'

Exit code 1 if something is broken or security is off, 5 if a configuration cannot be understood.")]
struct DoctorArgs {
    /// A configuration of Cyclone DDS, profiles of Fast DDS, or the folder of a ROS 2 enclave
    #[arg(value_name = "CONFIG", required = true)]
    configs: Vec<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Command::Doctor(DoctorArgs { configs, json }) = &args.command;
    let (findings, refused) = look_at(configs);
    match refused {
        Some(failure) if configs.len() == 1 && !json => Err(failure),
        Some(failure) => tell(&findings, *json).map(|_| ExitCode::from(failure.exit as u8)),
        None => tell(&findings, *json),
    }
}

/// Looks at each, and at each two of them; what is to be said, and why the worst of those that cannot be looked at cannot.
fn look_at(configs: &[PathBuf]) -> (Vec<Finding>, Option<Failure>) {
    let (mut findings, mut read, mut refused) = (Vec::new(), Vec::new(), None::<Failure>);
    for place in configs {
        let of = place.display().to_string();
        match config::read(place) {
            Ok(security) => {
                findings.extend(look(&security).into_iter().map(|finding| security.hidden.in_finding(finding).of(&of)));
                read.push(security);
            }
            Err(failure) => {
                let mend = "name a configuration that secures a participant";
                findings.push(Finding::broken("configuration", failure.message.clone(), mend).of(&of));
                refused = refused.filter(|other| other.exit as u8 > failure.exit as u8).or(Some(failure));
            }
        }
    }
    for (number, one) in read.iter().enumerate() {
        let met = read[number + 1..].iter().flat_map(|other| meeting::look(one, other));
        findings.extend(met.map(|finding| read.iter().fold(finding, |finding, security| security.hidden.in_finding(finding))));
    }
    (findings, refused)
}

/// Looks at everything that the configuration names.
fn look(security: &Security) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("configuration", format!("{}: {}", security.kind.name(), security.place.display()))];
    if security.count > 1 {
        let found = format!("it secures {} domains or participants, of which the first was looked at", security.count);
        findings.push(Finding::note("configuration", found, "put each into a file of its own to have it looked at"));
    }
    if !security.relative.is_empty() {
        let found = format!(
            "{}: looked for in the folder where a program is started; here, beside the configuration",
            security.relative.join(", ")
        );
        let scheme = if security.kind == Kind::FastDds { "file://" } else { "file:" };
        findings.push(Finding::note("configuration", found, format!("name files by their absolute paths: {scheme}/...")));
    }
    findings.extend(security.findings.iter().cloned());
    findings.extend(certificates::look(security));
    findings.extend(documents::look(security));
    findings.extend(trust::look(security));
    findings.extend(plugin::look(security));
    findings.extend(sockets::look(security));
    if findings.iter().all(|finding| finding.level == Level::Ok) {
        findings.push(Finding::ok("all", "nothing here will hurt"));
    }
    findings
}

/// For what the configuration names no file, unless that is a fault which has been spoken of.
fn not_named(security: &Security, part: Part) -> Option<Finding> {
    let about = part.name();
    let is_fault = security.findings.iter().any(|fault| fault.about == about);
    let note = || Finding::note(about, "it stands in the configuration itself, or in a token", "name a file to have it looked at");
    (!is_fault).then(note)
}

#[cfg(test)]
mod tests;
