//! The same server several times, side by side, told apart by who computes for it.

use crate::load::Load;
use crate::process::{Process, cpu_of, cpu_of_ended_children, descendants, on_core};
use crate::sample::Sample;
use crate::servers::{Offer, Server, Way};
use crate::stage::Stage;
use crate::{Options, Result};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// Who computes for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Debian's OpenSSL alone.
    Software,
    /// Bywash as it comes, by `bywash run`.
    Bywash,
    /// A modelled card, named as `bywash run --engine` takes it.
    Card(&'static str),
}

impl Engine {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Software => "software".into(),
            Self::Bywash => "bywash".into(),
            Self::Card(card) => format!("{card} (modelled)"),
        }
    }
}

/// What stands behind a server: how it gets its pages there, and the processes whose work that is. Programs that it starts itself are behind it, too.
pub(crate) struct Behind {
    pub(crate) way: Way,
    pub(crate) processes: Vec<Process>,
}

/// Processor time of one measurement's parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) server: Duration,
    pub(crate) broker: Duration,
    pub(crate) behind: Duration,
}

/// A server that runs.
pub(crate) struct Rival {
    pub(crate) engine: Engine,
    server: Server,
    process: Process,
    ports: BTreeMap<Offer, u16>,
}

impl Rival {
    /// Starts a server on core 0; the broker of a run, and with it the processor's share in a model, on core 1.
    pub(crate) fn start(server: Server, engine: Engine, options: &Options, stage: &Stage, behind: Option<&Behind>) -> Result<Self> {
        let folder = format!("{}-{}", server.name(), engine.name().replace([' ', ':', '(', ')'], ""));
        let site = server.configure(stage, &folder, behind.map(|behind| &behind.way))?;
        let mut command = match engine {
            Engine::Software => on_core(0, &site.program),
            Engine::Bywash | Engine::Card(_) => {
                let mut command = on_core(1, &options.bywash);
                command.args(["run", "--quiet", "--report"]).arg(stage.path(&format!("{folder}.json")));
                if let Engine::Card(card) = engine {
                    command.args(["--engine", card]);
                }
                let inner: Command = on_core(0, &site.program);
                command.arg("--").arg(inner.get_program()).args(inner.get_args());
                command
            }
        };
        command.args(&site.arguments).env("OPENSSL_CONF", stage.openssl_conf()).env_remove("BYWASH_SOCKET").env_remove("BYWASH_ROUTE");
        let mut process = Process::start(&mut command, &stage.path(&format!("{folder}.log")))?;
        for &port in site.ports.values() {
            process.await_port(port)?;
        }
        Ok(Self { engine, server, process, ports: site.ports })
    }

    /// Loads it once.
    pub(crate) fn measure(&self, load: &Load, options: &Options, stage: &Stage, behind: Option<&Behind>) -> Result<Sample> {
        let offer = if load.client_certificate { Offer::ClientsWithCertificate } else { Offer::Pages(load.key) };
        let before = self.spent(behind);
        let seen = load.run(options, stage, self.ports[&offer])?;
        let after = self.spent(behind);
        let spent = Spent {
            server: after.server.saturating_sub(before.server),
            broker: after.broker.saturating_sub(before.broker),
            behind: after.behind.saturating_sub(before.behind),
        };
        Ok(Sample::new(self.server, self.engine, load, &seen, spent))
    }

    fn spent(&self, behind: Option<&Behind>) -> Spent {
        let all = |pid: u32, spent: fn(u32) -> Duration| spent(pid) + descendants(pid).into_iter().map(spent).sum::<Duration>();
        let tree = |pid: u32| all(pid, cpu_of);
        let (whole, own) = (tree(self.process.pid()), cpu_of(self.process.pid()));
        // Under `bywash run` the first process is the broker, and the server is below it.
        let broker = if self.engine == Engine::Software { Duration::ZERO } else { own };
        let programs = match behind.map(|behind| &behind.way) {
            Some(Way::Cgi { .. }) => all(self.process.pid(), cpu_of_ended_children),
            _ => Duration::ZERO,
        };
        let behind: Duration = behind.iter().flat_map(|behind| &behind.processes).map(|process| tree(process.pid())).sum();
        Spent { server: whole.saturating_sub(broker), broker, behind: behind + programs }
    }
}
