//! Real processes, all begun at one moment, and what they say of themselves.

use crate::{Error, Result, io_error};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a process may take to start, under `bywash run`, and all of them together besides.
const START: Duration = Duration::from_millis(20);
const START_RUN: Duration = Duration::from_millis(80);
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
    /// Each operation, in microseconds, from the moment at which it was wanted.
    pub(super) took_us: Vec<f64>,
    /// When each was wanted, and when the program came to ask, in microseconds from the beginning.
    pub(super) asked_us: Vec<f64>,
    pub(super) called_us: Vec<f64>,
    /// The beginning, on the monotonic clock.
    #[serde(skip)]
    pub(super) begin_ns: u64,
}

/// By which way a program comes to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It speaks to it.
    Direct,
    /// It asks `/dev/crypto`, which a library answers that is loaded into it.
    Preload,
    /// It asks `/dev/crypto`, and its system calls are answered from outside.
    Static,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Direct, Self::Preload, Self::Static];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Preload => "devcrypto",
            Self::Static => "static",
        }
    }

    /// What `bywash run` is told of it.
    const fn option(self) -> Option<&'static str> {
        match self {
            Self::Direct => None,
            Self::Preload => Some("--devcrypto"),
            Self::Static => Some("--static"),
        }
    }
}

/// The program under the names by which tenants are told apart.
pub(super) struct Programs {
    folder: tempfile::TempDir,
    bywash: PathBuf,
}

impl Programs {
    /// The program lies beside the `bywash` command.
    pub(super) fn new(bywash: &Path) -> Result<Self> {
        let ocf_load = &bywash.with_file_name("ocf-load");
        if !ocf_load.exists() {
            return Err(Error(format!("{} is missing; `cargo build --release --workspace` makes it", ocf_load.display())));
        }
        let folder = tempfile::tempdir().map_err(|error| Error(format!("cannot make a folder for the programs' names: {error}")))?;
        for name in ["ocf-bulk", "ocf-soon"] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(ocf_load, &link).map_err(|error| io_error("make", &link, &error))?;
        }
        Ok(Self { folder, bywash: bywash.to_owned() })
    }

    /// Why programs cannot come by a way here, if they cannot.
    pub(super) fn lacks(&self, way: Way) -> Option<String> {
        let option = way.option()?;
        let tried = Command::new(&self.bywash).args(["run", option, "--quiet", "--", "true"]).stdin(Stdio::null()).output();
        let said = match tried {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("bywash run {option}: {said}"))
    }

    /// A place for sockets.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A program by one of its names.
    pub(super) fn command(&self, way: Way, name: &str, socket: &Path) -> Command {
        let program: PathBuf = self.folder.path().join(name);
        let Some(option) = way.option() else {
            let mut command = Command::new(program);
            command.arg("--socket").arg(socket);
            return command;
        };
        let mut command = Command::new(&self.bywash);
        command.args(["run", "--quiet", "--route", "queue", option, "--socket"]).arg(socket).arg("--").arg(program).arg("--device");
        command
    }
}

/// Starts all of them, lets them begin together, and waits for their ends; every byte that they had computed must have been right, and computed by the module.
pub(super) fn run(way: Way, commands: Vec<Command>) -> Result<Vec<Report>> {
    let each = if way == Way::Direct { START } else { START_RUN };
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    let begin = now + HEAD_START + each * commands.len() as u32;
    let start = |mut command: Command| {
        command.arg("--begin").arg(begin.as_nanos().to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| Error(format!("cannot start {:?}: {error}", command.get_program())))
    };
    let children: Vec<Child> = commands.into_iter().map(start).collect::<Result<_>>()?;
    let begin_ns = begin.as_nanos() as u64;
    children.into_iter().map(|child| Ok(Report { begin_ns, ..report(child)? })).collect()
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
    few_elsewhere(report.elsewhere, report.operations)?;
    Ok(report)
}

/// That so many operations were computed by their program is no more than a machine that is held up makes it.
pub(super) fn few_elsewhere(elsewhere: u64, operations: u64) -> Result<()> {
    if elsewhere * ELSEWHERE_MAX <= operations {
        return Ok(());
    }
    let why = "the broker did not answer in time; is the machine too busy?";
    Err(Error(format!("{elsewhere} of {operations} operations were run by their program: {why}")))
}
