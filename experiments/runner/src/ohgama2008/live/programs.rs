//! Real processes, all begun at one moment, and what they say of themselves.

use crate::{Error, Result, io_error};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a process may take to start, and all of them together besides.
const START: Duration = Duration::from_millis(20);
const HEAD_START: Duration = Duration::from_millis(400);

/// One operation in so many may have been run by its program because the machine was held up; the broker never lets one be lost.
const ELSEWHERE_MAX: u64 = 20;

/// What a process reports.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) operations: u64,
    wrong: u64,
    elsewhere: u64,
    pub(super) first_us: Option<f64>,
    pub(super) end_us: f64,
}

/// The program under the names by which tenants are told apart.
pub(super) struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    /// The program lies beside the `bywash` command.
    pub(super) fn new(ocf_load: &Path) -> Result<Self> {
        if !ocf_load.exists() {
            return Err(Error(format!("{} is missing; `cargo build --release --workspace` makes it", ocf_load.display())));
        }
        let folder = tempfile::tempdir().map_err(|error| Error(format!("cannot make a folder for the programs' names: {error}")))?;
        for name in ["ocf-bulk", "ocf-soon"] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(ocf_load, &link).map_err(|error| io_error("make", &link, &error))?;
        }
        Ok(Self { folder })
    }

    /// A place for sockets.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A program by one of its names.
    pub(super) fn command(&self, name: &str, socket: &Path) -> Command {
        let program: PathBuf = self.folder.path().join(name);
        let mut command = Command::new(program);
        command.arg("--socket").arg(socket);
        command
    }
}

/// Starts all of them, lets them begin together, and waits for their ends; every byte that they had computed must have been right, and computed by the module.
pub(super) fn run(commands: Vec<Command>) -> Result<Vec<Report>> {
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    let begin = now + HEAD_START + START * commands.len() as u32;
    let start = |mut command: Command| {
        command.arg("--begin").arg(begin.as_nanos().to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| Error(format!("cannot start {:?}: {error}", command.get_program())))
    };
    let children: Vec<Child> = commands.into_iter().map(start).collect::<Result<_>>()?;
    children.into_iter().map(report).collect()
}

fn report(child: Child) -> Result<Report> {
    let output = child.wait_with_output().map_err(|error| Error(format!("cannot wait for an ocf-load: {error}")))?;
    if !output.status.success() {
        return Err(Error(format!("ocf-load: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|error| Error(format!("ocf-load's report: {error}")))?;
    if report.wrong > 0 {
        return Err(Error(format!("{} of {} ciphertexts were wrong", report.wrong, report.operations)));
    }
    if report.elsewhere * ELSEWHERE_MAX > report.operations {
        return Err(Error(format!(
            "{} of {} operations were run by their program: the broker did not answer in time; is the machine too busy?",
            report.elsewhere, report.operations
        )));
    }
    Ok(report)
}
