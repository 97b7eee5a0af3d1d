//! A program that sees a volume by way of its system calls.

use super::supervised::wait;
use super::{Plan, child};
use crate::failure::{Exit, Failure};
use crate::files::hooked::Opened;
use crate::files::stored;
use crate::terminal::say;
use bywash_hook::{Error, Hook, Tell};
use std::process::Command;

/// Runs the command to its end, and on until the last of its processes has ended; all that they wrote is on the disk then, or it is an error.
pub(super) fn run(command: &mut Command, plan: &Plan, opened: Opened) -> Result<u8, Failure> {
    let before = |error: Error| Failure::new(Exit::RunFailed, error.to_string());
    opened.refuse(command)?;
    let hook = Hook::prepare(command).map_err(before)?;
    let tell: Tell = Box::new(|line| say!("bywash: refused: {line}"));
    let mut hooked = None;
    let volume = opened.volume.clone();
    let status = child::run_with(command, |started| {
        if started {
            hooked = Some(hook.begin(opened.volume, &opened.folder, tell).map_err(before)?);
            return Ok(());
        }
        hook.why().map_or(Ok(()), |error| Err(before(error)))
    });
    let waited = hooked.as_ref().map_or(Ok(()), |hooked| wait(|at_most| hooked.wait_for(at_most), plan.quiet));
    // Before what is left is stored: whoever could still write could so after it.
    if let Some(hooked) = &mut hooked {
        hooked.stop();
    }
    stored::store(&opened.folder, || volume.store().map(|()| false));
    let ended = hooked.map_or_else(|| volume.end(), bywash_hook::Hooked::finish);
    let ended = ended.map_err(|error| stored::lost(&opened.folder, &error));
    stored::worse(waited.and(status), ended)
}
