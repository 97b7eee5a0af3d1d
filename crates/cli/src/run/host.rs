//! The broker of a run: one that runs already, or one of our own for as long as the program lives.

use super::Plan;
use super::summary::{Account, Line};
use super::workspace::Workspace;
use crate::broker_link::{Link, probe, socket_path};
use crate::failure::{Exit, Failure};
use crate::own::Own;
use crate::record::{self, Draft};
use crate::top;
use bywash_broker::Stats;
use bywash_client::{Config, Route};
use bywash_manager::ManagerConfig;
use bywash_protocol::StatsFormat;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a client takes for "no broker".
pub(crate) const NO_BROKER: &str = "none";
/// How long after the program's end its processes may take to be accounted for.
const SETTLING: Duration = Duration::from_millis(500);

/// Where the run's processes connect.
pub(crate) struct Host {
    /// The broker's socket.
    pub(crate) socket: PathBuf,
    token: String,
    /// The process of a broker that was joined.
    joined: Option<u32>,
    own: Option<Own>,
    recording: Option<Recording>,
}

struct Recording {
    link: Link,
    path: PathBuf,
}

impl Host {
    /// A broker that answers is joined, unless a trace is wanted, which is of this run alone, or engines of its own. Notes are told to the user.
    pub(crate) fn find(plan: &Plan, workspace: &Workspace, notes: &mut Vec<String>) -> Result<Self, Failure> {
        let token = workspace.token().to_owned();
        if plan.trace.is_none() && plan.engines.is_empty() {
            let socket = socket_path(plan.socket.as_deref());
            // One that was asked for by name must be there, and let us in.
            match probe(&socket) {
                Ok(()) => match Link::connect(&socket) {
                    Ok(link) => return Ok(Self { socket, token, joined: Some(link.broker), own: None, recording: None }),
                    Err(failure) if plan.socket.is_some() => return Err(failure),
                    Err(failure) => notes.push(format!("{failure} (the broker at {}); this run hosts its own", socket.display())),
                },
                Err(_) if plan.socket.is_some() => return Err(absent(&socket)),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    notes.push(format!("no permission to connect to the broker at {}; this run hosts its own", socket.display()));
                }
                Err(_) if std::env::var_os("BYWASH_SOCKET").is_some_and(|named| !named.is_empty() && named != "none") => {
                    notes.push(format!("no broker listens on {} (BYWASH_SOCKET); this run hosts its own", socket.display()));
                }
                Err(_) => {}
            }
        }
        let mut host = match Self::private(plan, workspace) {
            Ok(host) => host,
            Err(failure) if plan.trace.is_none() && plan.engines.is_empty() => {
                notes.push(format!("no broker for this run: {failure}; everything runs in the program's own place"));
                return Ok(Self { socket: NO_BROKER.into(), token, joined: None, own: None, recording: None });
            }
            Err(failure) => return Err(failure),
        };
        if let Some(path) = &plan.trace {
            let mut link = Link::connect(&host.socket)?;
            let draft = Draft::new(path)?;
            link.start_recording(draft.file())?;
            draft.keep()?;
            host.recording = Some(Recording { link, path: path.clone() });
        }
        Ok(host)
    }

    fn private(plan: &Plan, workspace: &Workspace) -> Result<Self, Failure> {
        // What cannot be had is `doctor`'s to say, not every run's.
        bywash_protocol::harden_process();
        let engines = bywash_manager::find(&plan.engines)?.present;
        let mut managed = ManagerConfig { reload: plan.reload.clone(), ..ManagerConfig::new(engines) };
        if let Some(policy) = &plan.policy {
            managed.policy = policy.kind()?;
        }
        let own = Own::start(managed, workspace)?;
        Ok(Self { socket: workspace.socket(), token: workspace.token().to_owned(), joined: None, own: Some(own), recording: None })
    }

    /// What a client in this process is told, to compute on behalf of the run.
    pub(crate) fn client(&self, route: Route) -> Config {
        let socket = Some(self.socket.clone()).filter(|socket| socket != Path::new(NO_BROKER));
        Config { socket, route, run: Some(self.token.clone()), ..Config::default() }
    }

    /// After the program's end: what its processes did, and what became of the trace.
    pub(crate) fn finish(mut self) -> Result<(Account, Option<String>), Failure> {
        let account = self.account();
        let told = self
            .recording
            .take()
            .map(|mut recording| recording.link.stop_recording().map(|(written, dropped)| record::told(&recording.path, written, dropped)));
        // The program's status counts now.
        if let Some(own) = self.own.take() {
            own.end();
        }
        Ok((account?, told.transpose()?))
    }

    /// The account of this run, once none of its processes is connected any more, or after a while.
    fn account(&self) -> Result<Account, Failure> {
        if self.socket == Path::new(NO_BROKER) {
            return Err(Failure::new(
                Exit::NoBroker,
                "this run had no broker to keep its account; `bywash doctor` says what stands in the way",
            ));
        }
        let mut link = Link::connect(&self.socket).map_err(|failure| {
            let gone = format!("the broker at {} that kept this run's account is gone: {failure}", self.socket.display());
            failure.saying(gone)
        })?;
        let end = Instant::now() + SETTLING;
        loop {
            let stats = top::parse(&link.stats(StatsFormat::Json)?)?;
            let connected = stats.clients.iter().any(|client| client.run.as_deref() == Some(&self.token));
            if !connected || Instant::now() >= end {
                let is_another = self.joined.is_some_and(|broker| broker != link.broker);
                return Ok(Account { replaced: is_another, ..account_of(&stats, &self.token) });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn absent(socket: &Path) -> Failure {
    match Link::connect(socket) {
        Err(failure) => failure,
        Ok(_) => Failure::new(Exit::NoBroker, format!("the broker at {} came just now; try again", socket.display())),
    }
}

fn account_of(stats: &Stats, token: &str) -> Account {
    let Some(run) = stats.runs.iter().find(|run| run.run == token) else { return Account::default() };
    let lines = run.work.iter().filter(|work| work.operations > 0).map(|work| Line {
        algorithm: work.algorithm.clone(),
        engine: work.engine.clone(),
        operations: work.operations,
        bytes: work.bytes,
        batches: work.batches,
        batched: work.batched,
    });
    let (here, broker): (Vec<Line>, Vec<Line>) = lines.partition(|line| line.engine == "here");
    let used = |name: &str| broker.iter().any(|line| line.engine == name);
    let modelled = stats.engines.iter().filter(|engine| engine.modelled && used(&engine.name)).map(|engine| engine.name.clone()).collect();
    Account { processes: run.processes, here, broker, modelled, replaced: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_broker::{EngineStats, RunStats, WorkStats};

    #[test]
    fn only_this_run_counts_and_modelled_engines_are_named() {
        let work =
            |engine: &str, operations| WorkStats { algorithm: "X25519".into(), engine: engine.into(), operations, ..WorkStats::default() };
        let run = |name: &str| RunStats {
            run: name.into(),
            processes: 2,
            work: vec![work("here", 5), work("card", 7), work("cpu", 0)],
            ..RunStats::default()
        };
        let engine = |name: &str, modelled| EngineStats { name: name.into(), modelled, ..EngineStats::default() };
        let engines = vec![engine("cpu", false), engine("card", true), engine("fpga", true)];
        let stats = Stats { engines, runs: vec![run("other"), run("mine")], ..Stats::default() };
        let account = account_of(&stats, "mine");
        assert_eq!((account.processes, account.here[0].operations, account.broker.len()), (2, 5, 1));
        assert_eq!(account.modelled, ["card"]);
        assert_eq!(account_of(&stats, "nobody's"), Account::default());
    }
}
