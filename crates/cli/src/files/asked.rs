//! A passphrase asked for on the terminal.

use crate::failure::{Exit, Failure};
use crate::interrupt::Held;
use bywash_core::SecretBytes;
use bywash_files::passphrase::first_line;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::Write;

/// How a passphrase is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) prompt: &'a str,
    /// Whether twice, since nothing yet tells a slip.
    pub(super) is_new: bool,
    /// What does without a terminal.
    pub(super) instead: &'static str,
}

/// That of files that are there.
pub(super) const OLD: Asked<'static> = Asked { prompt: "Passphrase: ", is_new: false, instead: "--passphrase-file, -k or -i" };
/// That of files that are to be made.
pub(super) const FIRST: Asked<'static> = Asked { prompt: "Passphrase: ", is_new: true, instead: "--passphrase-file, -k or -r" };
/// Another one for files that are there.
pub(super) const NEW: Asked<'static> =
    Asked { prompt: "New passphrase: ", is_new: true, instead: "--new-passphrase-file, --new-key-file or --new-recipient" };

/// Asks on the terminal, whatever stdin and stdout are.
pub(super) fn ask(asked: Asked<'_>) -> Result<SecretBytes, Failure> {
    let no_terminal = |error: std::io::Error| {
        let instead = asked.instead;
        let why = format!("a passphrase is to be asked for and there is no terminal ({error}); give {instead}");
        Failure::new(Exit::Usage, why)
    };
    let terminal = File::options().read(true).write(true).open("/dev/tty").map_err(no_terminal)?;
    let first = typed(&terminal, asked.prompt).map_err(no_terminal)?;
    if first.is_empty() {
        return Err(Failure::failed("an empty passphrase protects nothing; type one, or use a key file"));
    }
    if asked.is_new && typed(&terminal, "The same again: ").map_err(no_terminal)? != first {
        return Err(Failure::failed("the two passphrases differ; try again"));
    }
    Ok(first)
}

/// A line from the terminal, not shown. Whoever ends the process meanwhile finds the terminal as it was.
fn typed(mut terminal: &File, prompt: &str) -> std::io::Result<SecretBytes> {
    let before = tcgetattr(terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    // Who is not in the foreground stops here, and can still be ended.
    tcsetattr(terminal, OptionalActions::Now, &before)?;
    let held = Held::hold()?;
    // Silent first: who answers a prompt at once is neither shown nor lost.
    let begin = || {
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        (&mut &*terminal).write_all(prompt.as_bytes())
    };
    begin()?;
    // Not by a reader with room of its own, which nobody wipes.
    let line =
        await_line(terminal, &held, begin, || _ = tcsetattr(terminal, OptionalActions::Now, &before)).and_then(|()| first_line(terminal));
    tcsetattr(terminal, OptionalActions::Now, &before)?;
    terminal.write_all(b"\n")?;
    drop(held);
    line
}

/// Returns when a line was typed; an error if a signal came. The terminal is left to a shell meanwhile (Ctrl-Z) as it was, and as shells give it back, it is begun anew.
fn await_line(terminal: &File, held: &Held, begin: impl Fn() -> std::io::Result<()>, leave: impl Fn()) -> std::io::Result<()> {
    while !held.came() {
        if held.was_stopped(&leave) {
            begin()?;
        }
        let mut ends = [PollFd::new(terminal, PollFlags::IN), PollFd::new(held, PollFlags::IN)];
        match poll(&mut ends, None) {
            Ok(_) if !ends[0].revents().is_empty() && !held.came() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(std::io::ErrorKind::Interrupted.into())
}
