//! A program whose `/dev/crypto` is served by answering its system calls.

use super::{Plan, child};
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::run::host::Host;
use crate::terminal::say;
use bywash_client::Clients;
use bywash_cryptodev_supervisor::{Error, Explain, Supervision};
use bywash_hook::orphans;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long after the program's end its other processes may take until they are spoken of.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a signal, and who has ended, is looked for while they are waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command to its end, and on until the last of its processes has ended: without us none of them could open a file.
pub(super) fn run(command: &mut Command, plan: &Plan, host: &Host) -> Result<u8, Failure> {
    let before = |error: Error| Failure::new(Exit::RunFailed, error.to_string());
    let supervision = Supervision::prepare(command).map_err(before)?;
    let explain = plan.explain.then(|| -> Explain { Box::new(|why| say!("bywash: /dev/crypto: {why}")) });
    let mut supervisor = None;
    let status = child::run_with(command, |started| {
        if started {
            let clients = Clients::new(host.client(plan.route))
                .map_err(|errno| before(Error::System { what: "a watch for the end of processes", errno }))?;
            supervisor = Some(supervision.begin(clients, explain).map_err(before)?);
            return Ok(());
        }
        supervision.why().map_or(Ok(()), |error| Err(before(error)))
    })?;
    if let Some(supervisor) = supervisor {
        wait(|at_most| supervisor.wait_for(at_most), plan.quiet)?;
    }
    Ok(status)
}

/// Waits for the processes that a program leaves behind, which cannot do without this one; a signal ends that, but one that this process was started with ignored, as by nohup.
pub(super) fn wait(wait_for: impl Fn(Duration) -> bool, quiet: bool) -> Result<(), Failure> {
    // A process that has ended and is not collected has its filter yet, before Linux 6.11.
    let wait_for = |at_most| {
        orphans::collect();
        wait_for(at_most)
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if wait_for(LOOK) {
            return Ok(());
        }
    }
    let mut signals = interrupt::watch_ending().map_err(|failure| failure.exiting(Exit::RunFailed))?;
    if !quiet {
        say!(
            "bywash: the program has ended, but processes that it started have not; they need this one to open files, so it stays with them"
        );
    }
    while !wait_for(LOOK) {
        if signals.pending().next().is_some() {
            if !quiet {
                say!("bywash: told to end; processes that go on cannot open files any more (ENOSYS)");
            }
            break;
        }
    }
    Ok(())
}
