//! The program that is run: started, told the signals that we are sent, waited for.

use crate::failure::{Exit, Failure};
use crate::interrupt;
use bywash_hook::orphans;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;

/// What servers and shells are steered with.
const FORWARDED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// Runs the command to its end; gives its status as a shell does, 128 + n for signal n.
pub(crate) fn run(command: &mut Command) -> Result<u8, Failure> {
    run_to_end(command, |_| Ok(()), wait_for)
}

/// The same of one whose calls are answered. `started` is told whether the command was started, as soon as that is known, and what it says of a failure comes first. A command
/// that it fails for is ended. Processes that are left behind become ours.
pub(crate) fn run_with(command: &mut Command, started: impl FnOnce(bool) -> Result<(), Failure>) -> Result<u8, Failure> {
    // Where that fails they are served as far as the system lets us.
    let _ = orphans::adopt();
    run_to_end(command, started, orphans::wait)
}

fn wait_for(child: Pid) {
    while matches!(waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(rustix::io::Errno::INTR)) {}
}

fn run_to_end(command: &mut Command, started: impl FnOnce(bool) -> Result<(), Failure>, wait_for: impl FnOnce(Pid)) -> Result<u8, Failure> {
    // Before the child is there, so that no signal falls between. But one that we were started with ignored (nohup, a shell's background)
    // must reach the child ignored, which catching it would undo: so that is caught afterwards.
    let is_ignored = interrupt::ignored();
    let (late, early): (Vec<i32>, Vec<i32>) = FORWARDED.iter().partition(|&&signal| is_ignored(signal));
    let mut signals = SignalsInfo::<WithOrigin>::new(early).map_err(|error| interrupt::unwatched(&error).exiting(Exit::RunFailed))?;
    interrupt::take_over(&FORWARDED);
    let handle = signals.handle();

    let spawned = command.spawn();
    let told = started(spawned.is_ok());
    let mut child = match (spawned, told) {
        (Ok(child), Ok(())) => child,
        (Ok(mut child), Err(failure)) => {
            // It may have ended by itself.
            let _ = child.kill().and_then(|()| child.wait());
            return Err(failure);
        }
        (Err(_), Err(failure)) => return Err(failure),
        (Err(error), Ok(())) => return Err(not_started(command, &error)),
    };
    for signal in late {
        // Should this fail, it stays ignored by us, as it was.
        let _ = handle.add_signal(signal);
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let forwarder = thread::spawn(move || signals.forever().for_each(|origin| forward(pid, &origin)));

    // Waiting in two steps: while we have not collected the child, its number belongs to nobody else, and signals cannot go astray.
    if let Some(pid) = pid {
        wait_for(pid);
    }
    handle.close();
    // The forwarder ends with its iterator; a panic in it must not hide the child's status.
    let _ = forwarder.join();
    let status = child.wait().map_err(|error| Failure::new(Exit::RunFailed, format!("cannot wait for the command: {error}")))?;
    Ok(exit_code(status))
}

/// What the terminal sends (Ctrl-C, a new window size) has reached the child already, which is in our process group.
fn forward(pid: Option<Pid>, origin: &Origin) {
    if origin.cause == Cause::Kernel {
        return;
    }
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(origin.signal)) {
        // The child may have ended by itself; then there is nobody to tell.
        let _ = kill_process(pid, signal);
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    let name = command.get_program().to_string_lossy();
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new(Exit::NotFound, format!("{name}: no such command; check its spelling, or give its whole path"))
        }
        std::io::ErrorKind::PermissionDenied => {
            Failure::new(Exit::NotExecutable, format!("{name}: not executable; chmod +x it, or run its interpreter with it"))
        }
        _ => Failure::new(Exit::NotExecutable, format!("{name}: cannot be executed: {error}; try it without bywash")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> u8 {
        run(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn status_and_signals_are_told_as_a_shell_does() {
        assert_eq!(shell("exit 0"), 0);
        assert_eq!(shell("exit 42"), 42);
        assert_eq!(shell("kill -TERM $$"), 128 + 15);
        assert_eq!(shell("kill -KILL $$"), 128 + 9);
    }

    #[test]
    fn what_cannot_be_started_is_told_apart() {
        assert_eq!(run(&mut Command::new("no-such-command-anywhere")).unwrap_err().exit, Exit::NotFound);
        assert_eq!(run(&mut Command::new("/etc/passwd")).unwrap_err().exit, Exit::NotExecutable);
    }
}
