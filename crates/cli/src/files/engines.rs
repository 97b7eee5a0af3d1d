//! Files computed by engines that are named, as the mediator decides: a broker of the command's own has them.

use crate::args::prefer;
use crate::failure::{Exit, Failure};
use crate::own::Own;
use crate::run::workspace::Workspace;
use crate::serve::Policy;
use bywash_client::{Client, Config};
use bywash_manager::{EngineName, ManagerConfig};
use bywash_policy::mediator::Prefer;

/// What computes.
#[derive(Debug, clap::Args)]
pub(super) struct EngineArgs {
    /// What computes: cpu, gpu (or gpu:cuda, gpu:vulkan), or board:CARD for a modelled card; again for more
    /// [default: the processor, or what the broker has that runs; with --prefer cpu and gpu]
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<EngineName>,
    /// What counts where several engines could do it: cpu-free and energy have it done by whoever takes the
    /// least of the processor's time or of energy, at most 20 ms and 4 times its own time later [default with --engine: latency]
    #[arg(long, value_name = "WHAT", value_parser = prefer())]
    prefer: Option<Prefer>,
}

impl EngineArgs {
    /// Has the work done by these engines, in a broker that ends with it; by the usual client if none is asked for, which is that of the keys: they may be in the vault of the broker that runs.
    pub(super) fn with<T>(&self, usual: Client, work: impl FnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let names = match (&self.engine[..], self.prefer) {
            ([], None) => return work(usual),
            ([], Some(_)) => vec![EngineName::Cpu, EngineName::Gpu(None)],
            (named, _) => named.to_vec(),
        };
        let engines = bywash_manager::find(&names).map_err(|error| {
            let way_out = match self.engine.is_empty() {
                true => "there is nothing to prefer beside the processor; name what there is with --engine, or leave --prefer away",
                false => "`bywash engines` has those that are here",
            };
            Failure::new(Exit::Failed, format!("{error}; {way_out}"))
        })?;
        let mut managed = ManagerConfig::new(engines.present);
        managed.policy = Policy::mediator(&self.prefer.unwrap_or_default()).kind()?;
        let workspace = Workspace::new()?;
        let own = Own::start(managed, &workspace)?;
        let told = Config { socket: Some(workspace.socket()), run: Some(workspace.token().to_owned()), ..Config::from_env()? };
        let done = work(Client::new(told));
        own.end();
        done
    }
}
