//! `bywash cuse`: `/dev/crypto` for all programs of a machine, where the kernel has CUSE.

use crate::broker_link::socket_path;
use crate::failure::{Exit, Failure};
use bywash_client::{Clients, Config, Route};
use bywash_cryptodev_cuse::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash cuse`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash cuse                      until it is ended; needs root and a kernel with CONFIG_CUSE
  bywash cuse --route queue        everything by the broker's engines

Without CUSE: bywash run --devcrypto -- CMD, or bywash run --static -- CMD for a statically linked
program.")]
pub(crate) struct Args {
    /// Who decides where operations run: the routing table (auto), or always this process (here),
    /// or always the broker's queue (queue)
    #[arg(long, value_name = "ROUTE", default_value = "auto")]
    route: Route,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's, if one
    /// answers]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The device's name in /dev
    #[arg(long, value_name = "NAME", default_value = "crypto")]
    name: String,
}

/// Serves the device until it goes away.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Keys of all programs pass through here. What cannot be had is `doctor`'s to say.
    bywash_protocol::harden_process();
    // A process that opens the device has a connection of its own, which takes descriptors; without these it has a part in another's.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let socket = Some(socket_path(args.socket.as_deref()));
    let clients = Clients::new(Config { socket, route: args.route, ..Config::default() });
    let clients = clients.map_err(|errno| Failure::failed(format!("cannot watch for the end of processes: {errno}; see ulimit -n")))?;
    bywash_cryptodev_cuse::serve_device(&clients, &args.name).map_err(|error| {
        let exit = if matches!(error, Error::Unavailable { .. }) { Exit::Permission } else { Exit::Failed };
        Failure::new(exit, error.to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}
