//! `bywash run`: a program, started with its cryptography routed.
//!
//! The program is told by an `openssl.cnf` of its own ([`workspace`]) to load our provider first, and by `BYWASH_*` where the broker is.
//! While it runs, signals are passed on ([`child`]); when it ends, its status becomes ours.

mod child;
pub(crate) mod workspace;

use crate::failure::{Exit, Failure};
use crate::openssl_conf::{ProviderEntry, generate, user_conf};
use crate::provider;
use bywash_client::Route;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use workspace::Workspace;

/// `bywash run`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash run -- curl https://localhost/
  bywash run -- nginx -g 'daemon off;'
  bywash run --route queue -- openssl speed -evp aes-256-gcm

Exit code: the program's own, 128 + n if signal n ended it; 125 if Bywash failed before it
was started, 126 if it cannot be executed, 127 if there is no such command.")]
pub(crate) struct Args {
    /// Who decides where operations run: the routing table (auto), or always the program's own
    /// place (here), or always the broker's queue
    #[arg(long, value_name = "ROUTE", default_value = "auto")]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["auto", "here", "queue"]))]
    route: String,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The OpenSSL provider's shared object [default: $BYWASH_PROVIDER, else the one near this
    /// executable]
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
    /// No summary and no notes
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the program.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let before = |failure: Failure| failure.exiting(Exit::RunFailed);
    let route = args.route.parse::<Route>().map_err(Failure::from).map_err(before)?;
    let workspace = Workspace::new().map_err(before)?;
    let mut command = prepare(args, route, &workspace).map_err(before)?;
    child::run(&mut command).map(ExitCode::from)
}

fn prepare(args: &Args, route: Route, workspace: &Workspace) -> Result<Command, Failure> {
    let module = provider::find(args.provider.as_deref())?;
    let settings = vec![("route", route.name().to_owned()), ("run", workspace.token().to_owned())];
    let generated = generate(user_conf()?.as_ref(), &ProviderEntry { module, settings });
    if !args.quiet {
        generated.notes.iter().for_each(|note| eprintln!("bywash: note: {note}"));
    }
    let conf = workspace.write_conf(&generated.text)?;
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]).env("OPENSSL_CONF", conf);
    command.env("BYWASH_ROUTE", route.name()).env("BYWASH_RUN", workspace.token());
    Ok(command)
}
