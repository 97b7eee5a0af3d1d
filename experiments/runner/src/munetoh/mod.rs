//! munetoh: a card of 32 public-key engines behind an SSL server (table 1, figures 3 and 4), and what the paper left open.

mod asynchronous;
mod curves;
mod database;
mod matrix;
mod open_points;
mod table1;
mod waiting;

use crate::load::Load;
use crate::rivals::{Behind, Engine, Rival};
use crate::sample::Sample;
use crate::servers::Server;
use crate::stage::{Key, PAGES, Stage};
use crate::{Error, Options, Outcome, Progress, Result, Tell, write_table};
use serde::Serialize;
use std::path::PathBuf;

/// The paper's card as it was.
const CARD: Engine = Engine::Card("board:munetoh-meac32");
/// The same, as far ahead of today's processor as it was of its own.
const CARD_TODAY: Engine = Engine::Card("board:munetoh-meac32-today");

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &["table1", "waiting", "matrix", "async", "curves", "open", "cgi"];
/// What runs each of them.
const RUN: [fn(&mut Bench<'_>) -> Result<String>; PARTS.len()] =
    [table1::run, waiting::run, matrix::run, asynchronous::run, curves::run, open_points::run, database::by_cgi];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    if !options.tls_load.is_file() {
        let way_out = "build it (cargo build --release -p bywash-tls-load), or name it with --tls-load";
        return Err(Error(format!("the load generator: {} is not there\n{way_out}", options.tls_load.display())));
    }
    let mut bench = Bench { options, stage: Stage::new()?, progress, effort: Effort::of(options), outcome: Outcome::default() };
    for (name, part) in PARTS.iter().zip(RUN).filter(|(name, _)| options.wants(name)) {
        let given = (bench.progress)(Progress::Begin).and_then(|()| part(&mut bench));
        let said = bench.outcome.took(name, given).unwrap_or_default();
        bench.outcome.text += &said;
    }
    Ok(bench.outcome)
}

/// The share of a measurement that comes before it, uncounted.
const WARMTH: f64 = 0.25;

/// How long and how often.
struct Effort {
    quick: bool,
    seconds: f64,
    rounds: usize,
    servers: Vec<Server>,
}

impl Effort {
    fn of(options: &Options) -> Self {
        let quick = options.quick;
        let (seconds, rounds, servers) = if quick { (0.3, 1, vec![Server::Nginx]) } else { (1.2, 3, Server::ALL.to_vec()) };
        Self { quick, seconds, rounds: options.rounds.unwrap_or(rounds), servers }
    }
}

/// What the parts share.
struct Bench<'a> {
    options: &'a Options,
    stage: Stage,
    progress: &'a mut Tell<'a>,
    effort: Effort,
    outcome: Outcome,
}

impl Bench<'_> {
    /// The servers that are installed; of the others it is said what is missing.
    fn servers(&mut self) -> Result<Vec<Server>> {
        let mut here = Vec::new();
        for server in self.effort.servers.clone() {
            if self.has(server)? {
                here.push(server);
            }
        }
        Ok(here)
    }

    /// Whether a server is installed; if not, that is said.
    fn has(&mut self, server: Server) -> Result<bool> {
        let here = server.program().is_some();
        if !here {
            self.note(format!("skipped: no {} here: apt-get install {0}", server.package()))?;
        }
        Ok(here)
    }

    fn start(&self, server: Server, engine: Engine) -> Result<Rival> {
        Rival::start(server, engine, self.options, &self.stage, None)
    }

    /// Full handshakes and one page of 1 KiB, as many connections at a time.
    fn load(&self, key: Key, tls: &'static str, connections: usize) -> Load {
        let page = PAGES[0].to_string();
        Load { key, tls, resume: false, client_certificate: false, page, rate: None, connections, seconds: self.effort.seconds }
    }

    fn begin(&mut self, what: &str, steps: usize) -> Result<()> {
        (self.progress)(Progress::Part(what.to_owned(), steps as u64))
    }

    fn step(&mut self) -> Result<()> {
        (self.progress)(Progress::Step)
    }

    fn note(&mut self, what: String) -> Result<()> {
        (self.progress)(Progress::Note(what))
    }

    /// Loads each in turn, round after round, after a little load that is not counted; gives the medians in the same order. Failed
    /// connections are said.
    fn interleaved(&mut self, pairs: &[(&Rival, Load)], behind: Option<&Behind>) -> Result<Vec<Sample>> {
        for (rival, load) in pairs {
            let load = Load { seconds: self.effort.seconds * WARMTH, ..load.clone() };
            rival.measure(&load, self.options, &self.stage, behind)?;
        }
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); pairs.len()];
        for _ in 0..self.effort.rounds {
            for ((rival, load), samples) in pairs.iter().zip(&mut samples) {
                samples.push(rival.measure(load, self.options, &self.stage, behind)?);
                (self.progress)(Progress::Step)?;
            }
        }
        let medians: Vec<Sample> = samples.into_iter().filter_map(Sample::median).collect();
        for sample in medians.iter().filter(|sample| sample.failed > 0.0) {
            let Sample { server, engine, key, tls, failed, failures, .. } = sample;
            (self.progress)(Progress::Note(format!("{failed} connections failed: {server}, {engine}, {key}, TLS {tls}: {failures}")))?;
        }
        Ok(medians)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.options.out.join(name)
    }

    /// Writes a table as NAME.csv, and keeps it.
    fn table(&mut self, name: &str, csv: &str, rows: &impl Serialize) -> Result<()> {
        write_table(self.options, &mut self.outcome, name, csv, rows)
    }
}
