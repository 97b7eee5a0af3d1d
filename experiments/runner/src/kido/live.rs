//! What security costs here: latency by size under five governances, without security, with it, and through our doors; and where the time goes.

use super::fastdds::{Latency, Program, Run};
use super::latencytest::LatencyTest;
use super::{SIZES, cyclone, fastdds};
use crate::{Error, Options, Outcome, Progress, Result, Tell, io_error, write_table};
use bywash_dds_material::{Governance, Material, Participant, cyclone_configuration};
use bywash_measure::plot::{Panel, Scale, draw, size};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const FASTDDS: &str = "Fast DDS";
/// The same by the vendor's own program.
const LATENCYTEST: &str = "Fast DDS (LatencyTest)";
const CYCLONE: &str = "Cyclone DDS";
const NO_CRYPTO: &str = "no crypto";
/// How often a run is repeated that failed: a datagram that the system dropped, a participant that was not found in time.
const AGAIN: usize = 2;
/// The kinds of work that the preload library counts.
const KINDS: [&str; 4] = ["derivation", "setup", "random", "bulk"];

/// One point.
#[derive(Clone, Debug, Serialize)]
struct Row {
    implementation: &'static str,
    governance: &'static str,
    /// `no security`, `security`, `door`, and `no crypto`: security with encryption, tags and derivations that are nothing.
    way: &'static str,
    bytes: usize,
    min_us: f64,
    median_us: f64,
}

/// Where one side's time in cryptography goes, of a message there and its answer back.
#[derive(Clone, Debug, Serialize)]
struct Share {
    governance: &'static str,
    /// `security` or `door`.
    way: &'static str,
    bytes: usize,
    calls: [f64; KINDS.len()],
    us: [f64; KINDS.len()],
}

/// What there is to run.
pub(super) struct Bench {
    folder: tempfile::TempDir,
    fastdds: std::result::Result<Program, String>,
    fastdds_door: std::result::Result<PathBuf, String>,
    latencytest: std::result::Result<LatencyTest, String>,
    /// What makes the cryptography of both nothing.
    nothing: std::result::Result<PathBuf, String>,
    cyclone: std::result::Result<(), String>,
    cyclone_door: std::result::Result<PathBuf, String>,
    /// Governances with the two participants of each.
    domains: Vec<(Governance, [Participant; 2])>,
    next_domain: u32,
}

impl Bench {
    /// What there is on this machine; what is not is told.
    pub(super) fn prepare(options: &Options, progress: &mut Tell<'_>, outcome: &mut Outcome) -> Result<Self> {
        let bench = Self::new(options)?;
        let absent = [
            (FASTDDS, bench.fastdds.as_ref().err()),
            ("the door of Fast DDS", bench.fastdds_door.as_ref().err()),
            (LATENCYTEST, bench.latencytest.as_ref().err()),
            ("the library without cryptography", bench.nothing.as_ref().err()),
            (CYCLONE, bench.cyclone.as_ref().err()),
            ("the plug-in of Cyclone DDS", bench.cyclone_door.as_ref().err()),
        ];
        for (what, why) in absent {
            if let Some(why) = why {
                progress(Progress::Note(format!("{what} is absent here: {why}")))?;
                let _ = writeln!(outcome.text, "\nABSENT on this machine: {what}: {why}");
            }
        }
        Ok(bench)
    }

    fn has_fastdds_and_its_door(&self) -> bool {
        self.fastdds.is_ok() && self.fastdds_door.is_ok()
    }

    /// The part `latency`.
    pub(super) fn latency(&mut self, options: &Options, progress: &mut Tell<'_>, outcome: &mut Outcome) -> Result<()> {
        if self.has_fastdds_and_its_door() {
            let calls = again(progress, || self.by_run(options))?;
            let _ = writeln!(
                outcome.text,
                "\nFast DDS under `bywash run --dds -- PROGRAM`, LIVE: {calls:.0} calls of AES-GCM came to the library"
            );
        }
        let rows = self.latencies(options, progress)?;
        tell_latencies(options, outcome, &rows)
    }

    /// The part `shares`.
    pub(super) fn share(&mut self, options: &Options, progress: &mut Tell<'_>, outcome: &mut Outcome) -> Result<()> {
        if self.has_fastdds_and_its_door() {
            let rows = self.shares(options, progress)?;
            tell_shares(options, outcome, &rows)?;
        }
        Ok(())
    }

    fn new(options: &Options) -> Result<Self> {
        let folder =
            tempfile::tempdir().map_err(|error| Error(format!("cannot make a folder: {error}; set TMPDIR to a writable place")))?;
        let beside = |name: &str, package: &str| {
            let places = [options.bywash.with_file_name(name), options.bywash.with_file_name("../lib/bywash").join(name)];
            let found = places.into_iter().find(|path| path.is_file());
            found.ok_or_else(|| format!("{name} is not beside the bywash command; cargo build --release -p {package}"))
        };
        let governances: &[Governance] = if options.quick { &[Governance::ROS2] } else { &Governance::FIVE };
        let mut domains = Vec::new();
        for governance in governances {
            let material = Material::make(&folder.path().join(governance.name), *governance).map_err(|error| Error(error.to_string()))?;
            let participant = |name: &str| material.participant(name).map_err(|error| Error(error.to_string()));
            domains.push((*governance, [participant("pong")?, participant("ping")?]));
        }
        Ok(Self {
            fastdds: Program::compile(folder.path()),
            latencytest: LatencyTest::compile(),
            nothing: fastdds::compile_nothing(folder.path()),
            fastdds_door: beside("libbywash_fastdds.so", "bywash-fastdds"),
            cyclone: if cyclone::is_here() { Ok(()) } else { Err("there is no ddsperf (Debian: cyclonedds-tools)".into()) },
            cyclone_door: beside("libbywash_dds_cyclone.so", "bywash-dds-cyclone"),
            folder,
            domains,
            next_domain: 100,
        })
    }

    /// Each run has a domain of its own, so that nobody meets the last one's leftovers.
    fn domain(&mut self) -> u32 {
        self.next_domain = if self.next_domain >= 190 { 100 } else { self.next_domain + 1 };
        self.next_domain
    }

    fn latencies(&mut self, options: &Options, progress: &mut Tell<'_>) -> Result<Vec<Row>> {
        let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { 3 });
        let mut rows: Vec<Row> = Vec::new();
        let ways = self.ways();
        progress(Progress::Part("latency".into(), (rounds * SIZES.len() * ways.len()) as u64))?;
        // One round after the other, so that a noisy moment hits all alike.
        for _ in 0..rounds {
            for bytes in SIZES {
                for &(implementation, governance, way) in &ways {
                    let found = again(progress, || self.one(options, implementation, governance, way, bytes))?;
                    progress(Progress::Step)?;
                    let is_it = |row: &&mut Row| {
                        (row.implementation, row.way, row.bytes) == (implementation, way, bytes)
                            && row.governance == governance.map_or("none", |index| self.domains[index].0.name)
                    };
                    match rows.iter_mut().find(is_it) {
                        Some(row) => {
                            row.min_us = row.min_us.min(found.min_us);
                            row.median_us = row.median_us.min(found.median_us);
                        }
                        None => rows.push(Row {
                            implementation,
                            governance: governance.map_or("none", |index| self.domains[index].0.name),
                            way,
                            bytes,
                            min_us: found.min_us,
                            median_us: found.median_us,
                        }),
                    }
                }
            }
        }
        Ok(rows)
    }

    /// What is run in each round: implementation, governance by its index, way.
    fn ways(&self) -> Vec<(&'static str, Option<usize>, &'static str)> {
        let mut ways = Vec::new();
        let fastdds_door = self.fastdds_door.is_ok();
        for (name, is_here, door) in [
            (FASTDDS, self.fastdds.is_ok(), fastdds_door),
            (LATENCYTEST, self.latencytest.is_ok(), fastdds_door),
            (CYCLONE, self.cyclone.is_ok(), self.cyclone_door.is_ok()),
        ] {
            if is_here {
                ways.push((name, None, "no security"));
                for (index, (governance, _)) in self.domains.iter().enumerate() {
                    let is_ros2 = governance.name == Governance::ROS2.name;
                    // It says the same of the others as our program does.
                    if name == LATENCYTEST && !is_ros2 {
                        continue;
                    }
                    ways.push((name, Some(index), "security"));
                    if door {
                        ways.push((name, Some(index), "door"));
                    }
                    // What no door can go below.
                    if self.nothing.is_ok() && is_ros2 {
                        ways.push((name, Some(index), NO_CRYPTO));
                    }
                }
            }
        }
        ways
    }

    fn one(&mut self, options: &Options, implementation: &str, governance: Option<usize>, way: &str, bytes: usize) -> Result<Latency> {
        let domain = self.domain();
        let participants = governance.map(|index| &self.domains[index].1);
        if implementation == CYCLONE {
            let plugin = self.cyclone_door.as_deref().ok().filter(|_| way == "door");
            let uris = match participants {
                Some(sides) => {
                    let uri = |side: &Participant| side.cyclone(plugin).map_err(|error| Error(error.to_string()));
                    [uri(&sides[0])?, uri(&sides[1])?]
                }
                None => {
                    let file = self.folder.path().join("none.xml");
                    std::fs::write(&file, cyclone_configuration("")).map_err(|error| io_error("write", &file, &error))?;
                    [0, 1].map(|_| format!("file://{}", file.display()))
                }
            };
            let preloaded = self.nothing.as_deref().ok().filter(|_| way == NO_CRYPTO);
            return cyclone::run(bytes, if options.quick { 2 } else { 4 }, domain, &uris, preloaded);
        }
        let library = match way {
            "door" => self.fastdds_door.as_deref().ok(),
            NO_CRYPTO => self.nothing.as_deref().ok(),
            _ => None,
        };
        let door = library.map(|library| (library, "on"));
        if implementation == LATENCYTEST {
            let program = self.latencytest.as_ref().map_err(|why| Error(why.clone()))?;
            return program.run((bytes, rounds(options, bytes)), domain, participants, door, self.folder.path());
        }
        let program = self.fastdds.as_ref().map_err(|why| Error(why.clone()))?;
        let run = Run { bytes, rounds: rounds(options, bytes), domain, participants, door, bywash: None, tally: None };
        program.run(&run, self.folder.path())
    }

    /// How many calls of AES-GCM come to the library of a program that `bywash run --dds` starts.
    fn by_run(&mut self, options: &Options) -> Result<f64> {
        let domain = self.domain();
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(|error| io_error("make a folder in", self.folder.path(), &error))?;
        let program = self.fastdds.as_ref().map_err(|why| Error(why.clone()))?;
        let tally = folder.path().join("tally");
        let participants = self.domains.iter().find(|(governance, _)| governance.name == Governance::ROS2.name).map(|(_, sides)| sides);
        let run =
            Run { bytes: SIZES[0], rounds: 100, domain, participants, door: None, bywash: Some(&options.bywash), tally: Some(&tally) };
        program.run(&run, self.folder.path())?;
        match read_tallies(folder.path())?[3][0] {
            0.0 => Err(Error("none of Fast DDS's calls came to the library under `bywash run --dds`".into())),
            calls => Ok(calls),
        }
    }

    /// Where the time goes: the difference between a run of many rounds and one of few, so that the handshake does not count.
    fn shares(&mut self, options: &Options, progress: &mut Tell<'_>) -> Result<Vec<Share>> {
        let mut rows = Vec::new();
        progress(Progress::Part("shares".into(), (self.domains.len() * SIZES.len() * 2) as u64))?;
        for index in 0..self.domains.len() {
            for bytes in SIZES {
                for (way, mode) in [("security", "plain"), ("door", "on")] {
                    let many = rounds(options, bytes);
                    let few = many / 10;
                    let few_tally = again(progress, || self.tally(index, bytes, few, mode))?;
                    let many_tally = again(progress, || self.tally(index, bytes, many, mode))?;
                    // As many again were not counted, a tenth of each.
                    let messages = (many - few) as f64 * 1.1;
                    let of = |kind: usize, field: usize| (many_tally[kind][field] - few_tally[kind][field]).max(0.0) / messages;
                    rows.push(Share {
                        governance: self.domains[index].0.name,
                        way,
                        bytes,
                        calls: std::array::from_fn(|kind| of(kind, 0)),
                        us: std::array::from_fn(|kind| of(kind, 1) / 1e3),
                    });
                    progress(Progress::Step)?;
                }
            }
        }
        Ok(rows)
    }

    /// Calls and nanoseconds by kind of the asking side; none where nothing was secured.
    fn tally(&mut self, index: usize, bytes: usize, rounds: usize, mode: &str) -> Result<[[f64; 2]; KINDS.len()]> {
        let domain = self.domain();
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(|error| io_error("make a folder in", self.folder.path(), &error))?;
        let (program, library) = match (&self.fastdds, &self.fastdds_door) {
            (Ok(program), Ok(library)) => (program, library),
            (Err(why), _) | (_, Err(why)) => return Err(Error(why.clone())),
        };
        let participants = Some(&self.domains[index].1);
        let tally = folder.path().join("tally");
        let run = Run { bytes, rounds, domain, participants, door: Some((library.as_path(), mode)), bywash: None, tally: Some(&tally) };
        program.run(&run, self.folder.path())?;
        read_tallies(folder.path())
    }
}

/// A run, and again if it failed.
fn again<R>(progress: &mut Tell<'_>, mut run: impl FnMut() -> Result<R>) -> Result<R> {
    for _ in 0..AGAIN {
        match run() {
            Err(error) => progress(Progress::Note(format!("run again: {error}")))?,
            done => return done,
        }
    }
    run()
}

fn rounds(options: &Options, bytes: usize) -> usize {
    let rounds = if bytes > 500_000 { 400 } else { 3000 };
    if options.quick { rounds / 10 } else { rounds }
}

fn read_tallies(folder: &Path) -> Result<[[f64; 2]; KINDS.len()]> {
    let mut sums = [[0.0; 2]; KINDS.len()];
    for file in std::fs::read_dir(folder).map_err(|error| io_error("read", folder, &error))?.flatten() {
        let text = std::fs::read_to_string(file.path()).map_err(|error| io_error("read", &file.path(), &error))?;
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            if let (Some(kind), [_, calls, ns]) = (KINDS.iter().position(|kind| *kind == fields[0]), fields.as_slice()) {
                sums[kind][0] += calls.parse().unwrap_or(0.0);
                sums[kind][1] += ns.parse().unwrap_or(0.0);
            }
        }
    }
    Ok(sums)
}

fn tell_latencies(options: &Options, outcome: &mut Outcome, rows: &[Row]) -> Result<()> {
    let mut csv = "implementation,governance,way,bytes,marked,min_us,median_us\n".to_owned();
    let _ = writeln!(
        outcome.text,
        "\nHalf a round trip on the loopback, LIVE: least of all interleaved rounds (and the least of their medians), us\n{:<23}{:<8}{:<13}{}",
        "",
        "",
        "",
        SIZES.map(|bytes| format!("{:>26}", size(bytes as f64))).concat()
    );
    let mut seen: Vec<(&str, &str, &str)> = Vec::new();
    for row in rows {
        let Row { implementation, governance, way, bytes, min_us, median_us } = row;
        let _ = writeln!(csv, "{implementation},{governance},{way},{bytes},live,{min_us:.2},{median_us:.2}");
        if !seen.contains(&(*implementation, *governance, *way)) {
            seen.push((*implementation, *governance, *way));
        }
    }
    for (implementation, governance, way) in seen {
        let _ = write!(outcome.text, "{implementation:<23}{governance:<8}{way:<13}");
        for bytes in SIZES {
            let found = |way: &str| {
                let is_it =
                    |row: &&Row| (row.implementation, row.governance, row.way, row.bytes) == (implementation, governance, way, bytes);
                rows.iter().find(is_it)
            };
            let text = found(way).map_or_else(String::new, |row| {
                let ratio = found("security")
                    .filter(|_| way == "door" || way == NO_CRYPTO)
                    .map(|stock| format!(" 1/{:.2}", stock.min_us / row.min_us));
                format!("{:.1} ({:.1}){}", row.min_us, row.median_us, ratio.unwrap_or_default())
            });
            let _ = write!(outcome.text, "{text:>26}");
        }
        outcome.text.push('\n');
    }
    write_table(options, outcome, "latency", &csv, &rows)?;
    let names = rows.iter().map(|row| row.implementation).fold(Vec::new(), |mut names: Vec<&str>, name| {
        if !names.contains(&name) {
            names.push(name);
        }
        names
    });
    let mut panels = Vec::new();
    for implementation in names {
        for governance in Governance::FIVE {
            let line = |way: &str, governance: &str| {
                let of = |row: &&Row| (row.implementation, row.governance, row.way) == (implementation, governance, way);
                (way.to_owned(), rows.iter().filter(of).map(|row| (row.bytes as f64, row.min_us)).collect::<Vec<_>>())
            };
            let secured = ["security", "door", NO_CRYPTO].map(|way| line(way, governance.name));
            let lines = std::iter::once(line("no security", "none")).chain(secured);
            let lines: Vec<_> = lines.filter(|(_, points)| !points.is_empty()).collect();
            if lines.len() > 1 {
                panels.push(Panel {
                    title: format!("{implementation}, governance {}", governance.name),
                    x: "bytes of a message",
                    y: "us, half a round trip, least",
                    scale: Scale::Sizes,
                    lines,
                    marks: Vec::new(),
                });
            }
        }
    }
    if panels.is_empty() { Ok(()) } else { Ok(draw(&options.out.join("latency.svg"), &panels)?) }
}

fn tell_shares(options: &Options, outcome: &mut Outcome, rows: &[Share]) -> Result<()> {
    let mut csv = format!("governance,way,bytes,marked,{}\n", KINDS.map(|kind| format!("{kind}_calls,{kind}_us")).join(","));
    let _ = writeln!(
        outcome.text,
        "\nFast DDS: time in cryptography on one side, of a message and its answer, LIVE (counted in the preload library; `security` passes through it)\n{:<8}{:<10}{:>6}{}{:>12}",
        "",
        "",
        "size",
        KINDS.map(|kind| format!("{kind:>26}")).concat(),
        "us"
    );
    for Share { governance, way, bytes, calls, us } in rows {
        let total: f64 = us.iter().sum();
        let fields: Vec<String> = calls.iter().zip(us).map(|(calls, us)| format!("{calls:.2},{us:.3}")).collect();
        let _ = writeln!(csv, "{governance},{way},{bytes},live,{}", fields.join(","));
        let shown: String = us.iter().map(|us| format!("{:>26}", format!("{us:.1} us, {:.0} %", 100.0 * us / total.max(1e-9)))).collect();
        let _ = writeln!(outcome.text, "{governance:<8}{way:<10}{:>6}{shown}{total:>12.1}", size(*bytes as f64));
    }
    write_table(options, outcome, "shares", &csv, &rows)?;
    let panels: Vec<Panel> = ["security", "door"]
        .into_iter()
        .map(|way| Panel {
            title: format!("Fast DDS, ROS 2's default governance, {way}"),
            x: "bytes of a message",
            y: "us of one side, there and back",
            scale: Scale::Sizes,
            lines: KINDS
                .iter()
                .enumerate()
                .map(|(kind, name)| {
                    let of = |row: &&Share| row.way == way && row.governance == "ros2" && row.us[kind] > 0.0;
                    ((*name).to_owned(), rows.iter().filter(of).map(|row| (row.bytes as f64, row.us[kind])).collect())
                })
                .collect(),
            marks: Vec::new(),
        })
        .collect();
    Ok(draw(&options.out.join("shares.svg"), &panels)?)
}
