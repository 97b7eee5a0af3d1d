//! `bywash doctor`: what stands in the way, each finding with the command that mends it.

mod elf;
mod libraries;
mod machine;
mod openssl;
mod program;
mod socket;

pub(crate) use libraries::library;
pub(crate) use program::{is_static, names_the_device, needs};

use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::Style;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash doctor`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash doctor                      this machine
  bywash doctor -- nginx             and whether nginx can be reached
  bywash doctor --json | jq '.[] | select(.level == \"broken\")'

Exit code 1 if something is broken.")]
pub(crate) struct Args {
    /// The OpenSSL provider's shared object [default: the one near this executable]
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// A command to look at: can its cryptography be routed?
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Note,
    Broken,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What was looked at, one word or two.
    pub(crate) about: &'static str,
    /// What was found.
    pub(crate) found: String,
    /// The command or deed that mends it.
    pub(crate) mend: Option<String>,
    /// The file that was looked at, where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<String>,
}

impl Finding {
    pub(crate) fn ok(about: &'static str, found: impl Into<String>) -> Self {
        Self { level: Level::Ok, about, found: found.into(), mend: None, of: None }
    }

    pub(crate) fn note(about: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { level: Level::Note, about, found: found.into(), mend: Some(mend.into()), of: None }
    }

    pub(crate) fn broken(about: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { level: Level::Broken, about, found: found.into(), mend: Some(mend.into()), of: None }
    }

    /// The same, of this file.
    pub(crate) fn of(self, file: &str) -> Self {
        Self { of: Some(file.to_owned()), ..self }
    }

    fn show(&self, style: Style) -> String {
        let level = match self.level {
            Level::Ok => style.good("ok    "),
            Level::Note => style.warn("note  "),
            Level::Broken => style.bad("broken"),
        };
        let mut text = format!("{level}  {:<14} {}\n", self.about, self.found.replace('\n', "\n                        "));
        if let Some(mend) = &self.mend {
            text +=
                &format!("                        {} {}\n", style.bold("mend:"), mend.replace('\n', "\n                              "));
        }
        text
    }
}

/// Looks at everything; exit code 1 if something is broken.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut findings = openssl::look(args.provider.as_deref());
    findings.extend(machine::look());
    findings.extend(socket::look(args.socket.as_deref()));
    if let Some(command) = args.command.first() {
        findings.extend(program::look(command));
    }
    tell(&findings, args.json)
}

/// Prints findings; exit code 1 if something is broken.
pub(crate) fn tell(findings: &[Finding], json: bool) -> Result<ExitCode, Failure> {
    let text = if json {
        serde_json::to_string_pretty(findings).map_err(|error| Failure::failed(error.to_string()))? + "\n"
    } else {
        let style = Style::of_stdout();
        let mut files: Vec<_> = findings.iter().filter_map(|finding| finding.of.as_deref()).collect();
        files.dedup();
        let mut text = String::new();
        let mut of = None;
        for finding in findings {
            if files.len() > 1 && finding.of.as_deref() != of {
                of = finding.of.as_deref();
                text += &format!("{}\n", style.bold(of.unwrap_or("together")));
            }
            text += &finding.show(style);
        }
        text
    };
    print(text.as_bytes())?;
    let broken = findings.iter().any(|finding| finding.level == Level::Broken);
    Ok(ExitCode::from(u8::from(broken)))
}
