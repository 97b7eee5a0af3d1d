//! A mount in a process of its own. The command that was typed asks for the passphrase, opens the volume, starts itself again without a terminal, gives that process
//! the volume's key through a pipe, and waits until it has mounted or says why not.

use super::mount;
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::shown::Shown;
use crate::terminal::say;
use bywash_core::SecretBytes;
use bywash_files::passphrase::LINE_BYTES_MAX;
use bywash_mount::{MountOptions, Unmounter};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What the process in the background says once it has mounted.
const MOUNTED: &[u8] = b"mounted";
/// More than a volume's key has, in bytes, and as many as a passphrase of gocryptfs may have.
const SECRET_BYTES_MAX: u64 = LINE_BYTES_MAX as u64;
/// How long after it was said that something cannot be stored another signal gives it up.
const GIVES_UP: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(60);
/// Errors of a daemon, as syslog(3) numbers them.
const PRIORITY: u32 = 3 << 3 | 3;

fn failed(what: &str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(format!("the process in the background {what}: {error}; try --foreground"))
}

/// Starts it, and returns when the volume is mounted.
pub(super) fn start(
    volume: &Path,
    target: &Path,
    secret: &SecretBytes,
    options: &MountOptions,
    log: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let own = std::env::current_exe().map_err(failed("has no executable"))?;
    let mut command = Command::new(own);
    command.args(["mount", "--serve"]).arg(volume).arg(target).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.args(options.is_read_only.then_some("--read-only")).args(options.allows_others.then_some("--allow-other"));
    if let Some(idle) = options.idle {
        command.arg("--idle").arg(humantime::format_duration(idle).to_string());
    }
    if let Some(log) = log {
        command.arg("--log").arg(log);
    }
    bywash_protocol::keep_descriptors();
    let mut child = command.spawn().map_err(failed("cannot be started"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ended says why itself.
        let _ = stdin.write_all(secret);
    }
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said).map_err(failed("cannot be heard"))?;
    }
    if said == MOUNTED {
        if log.is_none() && syslog().is_err() {
            say!("bywash: note: there is no syslog here, so nobody hears of what goes wrong later; `bywash mount --log FILE` keeps it");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().map_err(failed("cannot be waited for"))?;
    // It has said why on the same stderr.
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Failed as u8)))
}

/// That process.
pub(super) fn serve(volume: &Path, target: &Path, options: &MountOptions, log: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut secret = zeroize::Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX as usize));
    io::stdin().lock().take(SECRET_BYTES_MAX).read_to_end(&mut secret).map_err(failed("was told no key"))?;
    rustix::process::setsid().map_err(|error| failed("cannot leave the terminal")(error.into()))?;
    log_to(log)?;
    // A working folder would keep its file system busy.
    let (volume, target) = (volume.to_owned(), target.to_owned());
    std::env::set_current_dir("/").map_err(failed("cannot leave its folder"))?;
    mount::serve(&volume, &target, SecretBytes::from(&secret[..]), options, leave)
}

/// Says that it has mounted, and has nothing to do with the terminal from here on.
fn leave() -> Result<(), Failure> {
    let mut stdout = io::stdout();
    stdout.write_all(MOUNTED).and_then(|()| stdout.flush()).map_err(failed("cannot be heard"))?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("finds no /dev/null"))?;
    let redirected =
        rustix::stdio::dup2_stdin(&null).and_then(|()| rustix::stdio::dup2_stderr(&null)).and_then(|()| rustix::stdio::dup2_stdout(&null));
    redirected.map_err(|error| failed("cannot leave the terminal")(error.into()))
}

/// Unmounts when one comes. Where what was written last cannot be stored, or somebody uses it, it takes another one to give that up: one that comes a while after that was said, and not one of those
/// that `timeout`, service managers and closing terminals send together.
pub(super) fn unmount_on_signals(mut signals: Signals, unmounter: Unmounter, target: &Path) -> Result<(), Failure> {
    let target = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
    let watch = move || {
        let mut refused: Option<Instant> = None;
        for _ in signals.forever() {
            let after = refused.map(|at| at.elapsed());
            if after.is_some_and(|after| after < GIVES_UP.start) {
                continue;
            }
            refused = match unmount(&unmounter, &target, after.is_some_and(|after| GIVES_UP.contains(&after))) {
                Ok(()) => None,
                Err(why) => {
                    tracing::error!("{}: it stays mounted: {why}", target.shown());
                    Some(Instant::now())
                }
            };
        }
    };
    std::thread::Builder::new().name("bywash-signals".into()).spawn(watch).map(drop).map_err(|error| interrupt::unwatched(&error))
}

/// Unmounts, whatever is lost and whoever uses it if that is given up; why not, and the way out.
fn unmount(unmounter: &Unmounter, target: &Path, gives_up: bool) -> Result<(), String> {
    let target = target.shown();
    match unmounter.store() {
        Err(error) if !gives_up => {
            let way_out = "make room, or signal again within a minute to lose it";
            return Err(format!("what was written last cannot be stored: {error}; {way_out}"));
        }
        Err(error) => tracing::error!("{target}: what was written last is given up: {error}"),
        Ok(_) => {}
    }
    match unmounter.unmount() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && gives_up => {
            tracing::warn!("{target}: it is not there any more, and still served to who uses it; this ends with the last of them");
            unmounter.unmount_lazily().map_err(|error| error.to_string())
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let way_out = "signal again within a minute to take it away from all others";
            Err(format!("it is in use; `fuser -vm {target}` says by whom; {way_out}"))
        }
        unmounted => unmounted.map_err(|error| error.to_string()),
    }
}

/// Messages of a mount in the foreground.
pub(super) fn log_to_stderr() {
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_target(false).without_time();
    // Only a test has one already.
    let _ = subscriber.with_ansi(crate::terminal::colour_on_stderr()).with_writer(io::stderr).try_init();
}

fn log_to(file: Option<&Path>) -> Result<(), Failure> {
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_target(false).with_ansi(false);
    let initialised = match file {
        Some(path) => {
            let file = File::options().append(true).create(true).open(path).map_err(|error| Failure::file("write", path, &error))?;
            subscriber.with_writer(Mutex::new(file)).try_init()
        }
        None => subscriber.without_time().with_writer(Mutex::new(Syslog)).try_init(),
    };
    initialised.map_err(|error| Failure::failed(error.to_string()))
}

/// The way to the system's log, if there is one.
fn syslog() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect("/dev/log")?;
    Ok(socket)
}

/// The system's log, if there is one.
struct Syslog;

impl Write for Syslog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let message = format!("<{PRIORITY}>bywash[{}]: {}", std::process::id(), text.trim_end());
        // Without a log nobody hears it; the program that met the error has its number.
        let _ = syslog().and_then(|socket| socket.send(message.as_bytes()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
