//! Fast DDS: our latency program, compiled here against Debian's library.

use crate::{Error, Result, io_error};
use bywash_dds_material::Participant;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("latency.cpp");

/// The program, compiled.
pub(super) struct Program(PathBuf);

/// Half a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) min_us: f64,
    pub(super) median_us: f64,
}

/// How a run is to be.
pub(super) struct Run<'a> {
    pub(super) bytes: usize,
    pub(super) rounds: usize,
    pub(super) domain: u32,
    /// Security of both sides.
    pub(super) participants: Option<&'a [Participant; 2]>,
    /// What is preloaded, and its mode.
    pub(super) door: Option<(&'a Path, &'a str)>,
    /// Where the asking side's tally goes.
    pub(super) tally: Option<&'a Path>,
}

impl Program {
    /// Compiles it into a folder; says in words why it cannot be had.
    pub(super) fn compile(folder: &Path) -> std::result::Result<Self, String> {
        let (source, program) = (folder.join("latency.cpp"), folder.join("latency"));
        std::fs::write(&source, SOURCE).map_err(|error| io_error("write", &source, &error).0)?;
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-o"]).arg(&program).arg(&source).args(["-lfastrtps", "-lfastcdr", "-lpthread"]);
        let output = command.output().map_err(|error| format!("no C++ compiler ({error})"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "Fast DDS cannot be compiled against (Debian: libfastrtps-dev): {}",
                said.lines().next().unwrap_or_default()
            ));
        }
        Ok(Self(program))
    }

    /// Runs ping against pong.
    pub(super) fn run(&self, run: &Run<'_>, folder: &Path) -> Result<Latency> {
        let command = |mode: &str, side: usize| -> Result<Command> {
            let mut command = Command::new(&self.0);
            command.args([mode, &run.domain.to_string(), &run.bytes.to_string(), &run.rounds.to_string()]);
            if let Some(participants) = run.participants {
                let file = folder.join(format!("{mode}.properties"));
                let lines: String =
                    participants[side].fastdds_properties().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
                std::fs::write(&file, lines).map_err(|error| io_error("write", &file, &error))?;
                command.arg(&file);
            }
            for variable in ["LD_PRELOAD", "BYWASH_DDS", "BYWASH_DDS_TALLY", "OPENSSL_CONF"] {
                command.env_remove(variable);
            }
            if let Some((library, mode)) = run.door {
                command.env("LD_PRELOAD", library).env("BYWASH_DDS", mode).env("BYWASH_SOCKET", "none");
            }
            if let Some(tally) = run.tally.filter(|_| side == 1) {
                command.env("BYWASH_DDS_TALLY", tally);
            }
            Ok(command)
        };
        let start = |error: std::io::Error| Error(format!("cannot start {}: {error}", self.0.display()));
        // It ends with its standard input, however this function ends.
        let mut pong = command("pong", 0)?.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(start)?;
        let asked = command("ping", 1)?.stdin(Stdio::null()).output().map_err(start);
        drop(pong.stdin.take());
        pong.wait().map_err(start)?;
        let asked = asked?;
        let said = String::from_utf8_lossy(&asked.stdout);
        let field = |name: &str| said.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok());
        match (field("min="), field("p50=")) {
            (Some(min), Some(median)) => Ok(Latency { min_us: min / 1e3, median_us: median / 1e3 }),
            _ => Err(Error(format!("the latency program failed ({}): {}", asked.status, String::from_utf8_lossy(&asked.stderr).trim()))),
        }
    }
}
