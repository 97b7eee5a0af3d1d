//! Fast DDS: our latency program, compiled here against Debian's library.

use crate::{Error, Result, io_error};
use bywash_dds_material::Participant;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("latency.cpp");
const NOTHING: &str = include_str!("nothing.c");

/// The program, compiled.
pub(super) struct Program(PathBuf);

/// Compiles the preload library under which Fast DDS encrypts nothing; says in words why it cannot be had.
pub(super) fn compile_nothing(folder: &Path) -> std::result::Result<PathBuf, String> {
    let library = folder.join("libnothing.so");
    let source = written(folder, "nothing.c", NOTHING)?;
    compile("cc", &["-O2", "-shared", "-fPIC"], &[&source], &library, &[], "libssl-dev")?;
    Ok(library)
}

fn written(folder: &Path, name: &str, source: &str) -> std::result::Result<PathBuf, String> {
    let file = folder.join(name);
    std::fs::write(&file, source).map_err(|error| io_error("write", &file, &error).0)?;
    Ok(file)
}

/// Compiles and links these files; says in words why it does not work, and which of Debian's packages it wants.
pub(super) fn compile(
    compiler: &str,
    options: &[&str],
    files: &[&Path],
    made: &Path,
    libraries: &[&str],
    package: &str,
) -> std::result::Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(options).arg("-o").arg(made).args(files).args(libraries);
    let output = command.output().map_err(|error| format!("no {compiler} here (Debian: build-essential): {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error")).or(said.lines().next()).unwrap_or_default();
    Err(format!("it does not compile (Debian: {package}): {first}"))
}

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
    /// The command by whose `run --dds` both are started.
    pub(super) bywash: Option<&'a Path>,
    /// Where the asking side's tally goes.
    pub(super) tally: Option<&'a Path>,
}

impl Program {
    /// Compiles it into a folder; says in words why it cannot be had.
    pub(super) fn compile(folder: &Path) -> std::result::Result<Self, String> {
        let program = folder.join("latency");
        let libraries = ["-lfastrtps", "-lfastcdr", "-lpthread"];
        let source = written(folder, "latency.cpp", SOURCE)?;
        compile("c++", &["-std=c++17", "-O1"], &[&source], &program, &libraries, "libfastrtps-dev")?;
        Ok(Self(program))
    }

    /// Runs ping against pong.
    pub(super) fn run(&self, run: &Run<'_>, folder: &Path) -> Result<Latency> {
        let command = |mode: &str, side: usize| -> Result<Command> {
            let mut command = match run.bywash {
                Some(bywash) => {
                    let mut command = Command::new(bywash);
                    command.args(["run", "--dds", "--"]).arg(&self.0).env("BYWASH_SOCKET", "none");
                    command
                }
                None => Command::new(&self.0),
            };
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
