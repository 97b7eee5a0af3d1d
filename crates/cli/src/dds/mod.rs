//! `bywash dds`: what concerns DDS Security alone.

mod certificates;
mod config;
mod cyclone;
mod documents;
mod fastdds;
mod meeting;
mod plugin;
mod sockets;
mod trust;
mod variables;
mod xml;

use crate::doctor::{Finding, Level, tell};
use crate::failure::Failure;
use config::{Part, Security};
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
    match look_at(configs) {
        Ok(findings) => tell(&findings, *json),
        Err(failure) if *json => {
            let findings = [Finding::broken("configuration", failure.message, "name a configuration that secures a participant")];
            tell(&findings, true)?;
            Ok(ExitCode::from(failure.exit as u8))
        }
        Err(failure) => Err(failure),
    }
}

/// Looks at each, and at each two of them.
fn look_at(configs: &[PathBuf]) -> Result<Vec<Finding>, Failure> {
    let read = configs.iter().map(|config| config::read(config)).collect::<Result<Vec<_>, _>>()?;
    let mut findings: Vec<_> = read.iter().flat_map(look).collect();
    for (number, one) in read.iter().enumerate() {
        findings.extend(read[number + 1..].iter().flat_map(|other| meeting::look(one, other)));
    }
    let hide = |finding| read.iter().fold(finding, |finding, security| security.hidden.in_finding(finding));
    Ok(findings.into_iter().map(hide).collect())
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
        findings.push(Finding::note("configuration", found, "name files by their absolute paths: file:/..."));
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
