//! `bywash mount`

use super::keys::VolumeArgs;
use super::umount::mounted_at;
use super::{client, daemon, failure, io_failure, volume};
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::shown::Shown;
use crate::terminal::say;
use bywash_core::SecretBytes;
use bywash_files::Aead;
use bywash_mount::{MountOptions, Options, Volume};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// `bywash mount`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash mount --init -p ~/vault             make an empty folder a volume
  bywash mount ~/vault ~/plain               show it; the passphrase is asked for
  bywash mount --idle 30m ~/vault ~/plain    and not for longer than it is used
  bywash mount -i me.identity --read-only /mnt/backup/vault ~/old
  bywash umount ~/plain                      then all is on the disk
  bywash fsck -p ~/vault                     is everything in it whole?
  bywash run --files ~/vault -- CMD          for one program alone

It returns when the volume is mounted, and goes on in the background. What goes wrong later is told
to syslog, or to --log. Names, contents, targets of links and extended attributes are encrypted;
the shape of the tree, modes, times and lengths are not.")]
pub(crate) struct Args {
    /// The volume: a folder with ciphertext in it, of `bywash mount --init` or of gocryptfs
    #[arg(value_name = "VOLUME")]
    volume: PathBuf,
    /// Where its files are to be seen: an empty folder, or the volume itself, hidden until it is unmounted
    #[arg(value_name = "FOLDER", required_unless_present = "init", conflicts_with = "init")]
    target: Option<PathBuf>,
    /// Make a new volume of an empty folder, and mount nothing
    #[arg(long)]
    init: bool,
    #[command(flatten)]
    keys: VolumeArgs,
    /// With --init: what the contents are sealed with
    #[arg(long, default_value_t = Aead::default(), value_parser = super::encrypt::aead(), requires = "init")]
    aead: Aead,
    /// With --init: bytes sealed together, a power of two from 4K to 1M; small ones suit databases
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = super::encrypt::chunk_size, requires = "init")]
    chunk_size: usize,
    /// With --init: leave names as they are, and encrypt contents only
    #[arg(long, requires = "init")]
    plaintext_names: bool,
    /// Write nothing
    #[arg(long)]
    read_only: bool,
    /// Let other users in, as far as modes let them
    #[arg(long)]
    allow_other: bool,
    /// Unmount when nothing was asked of it for that long (10m, 1h) and nothing in it is in use
    #[arg(long, value_name = "TIME", value_parser = idle, conflicts_with = "init")]
    idle: Option<Duration>,
    /// Stay in the foreground, until it is unmounted or a signal ends it
    #[arg(short, long)]
    foreground: bool,
    /// Where to write what goes wrong later [default: syslog]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The process in the background, which is given the volume's key on stdin
    #[arg(long, hide = true, conflicts_with = "foreground")]
    serve: bool,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    let Some(target) = args.target.as_deref() else { return init(args) };
    let options = MountOptions {
        is_read_only: args.read_only,
        allows_others: args.allow_other,
        source: absolute(&args.volume)?.display().to_string(),
        turn: None,
        idle: args.idle,
    };
    if args.serve {
        return daemon::serve(&args.volume, target, &options, args.log.as_deref());
    }
    check_target(&args.volume, target)?;
    let secret = volume::secret(&args.volume, args.keys.keys())?;
    if args.foreground {
        daemon::log_to_stderr();
        return serve(&args.volume, target, secret, &options, || Ok(()));
    }
    daemon::start(&absolute(&args.volume)?, &absolute(target)?, &secret, &options, args.log.as_deref())
}

/// Mounts and serves; `mounted` is called in between.
pub(super) fn serve(
    volume: &Path,
    target: &Path,
    secret: SecretBytes,
    options: &MountOptions,
    mounted: impl FnOnce() -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    // One that comes while it is being mounted is heard then.
    let signals = interrupt::watch_ending()?;
    let mount = volume::mount_at(volume::root(volume)?, volume, secret, target, options)?;
    daemon::unmount_on_signals(signals, mount.unmounter(), target)?;
    mounted()?;
    mount.serve().map_err(|error| Failure::failed(format!("{}: {error}", target.shown())))?;
    Ok(ExitCode::SUCCESS)
}

fn init(args: &Args) -> Result<ExitCode, Failure> {
    let client = client()?;
    let locks = args.keys.locks(&client)?;
    match std::fs::create_dir(&args.volume) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io_failure(&args.volume, &error)),
        _ => {}
    }
    let options = Options { aead: args.aead, chunk_size: args.chunk_size, has_plain_names: args.plaintext_names };
    Volume::init(&client, &args.volume, &locks, &options).map_err(|error| match &error {
        bywash_files::Error::Io(io) if matches!(io.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) => {
            Failure::failed(format!("{}: {io}; name another folder", args.volume.shown()))
        }
        _ => failure(&args.volume, &error),
    })?;
    let volume = args.volume.shown();
    say!(
        "{volume} is a volume now; its key is in {volume}/{}: whoever loses that file loses all, so keep a copy, and copy folders of it with their hidden files",
        bywash_mount::VOLUME_FILE
    );
    Ok(ExitCode::SUCCESS)
}

fn idle(text: &str) -> Result<Duration, String> {
    let idle = humantime::parse_duration(text).map_err(|_| format!("'{text}' is no time; write 90s, 10m or 1h"))?;
    if idle.is_zero() { Err("it would be gone at once; write 90s, 10m or 1h".into()) } else { Ok(idle) }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| io_failure(path, &error))
}

/// What is mounted over hides what is there.
fn check_target(volume: &Path, target: &Path) -> Result<(), Failure> {
    let entries = target.read_dir().map_err(|error| match error.kind() {
        ErrorKind::NotConnected => {
            let way_out = format!("`bywash umount {}` takes it away", target.shown());
            Failure::failed(format!("{}: a file system whose process has ended is mounted there; {way_out}", target.shown()))
        }
        _ => io_failure(target, &error),
    })?;
    let (volume, at) = (absolute(volume)?, absolute(target)?);
    if at != volume && at.starts_with(&volume) {
        let why = "it is in the volume, among the ciphertext; name an empty folder elsewhere, or the volume itself";
        return Err(Failure::failed(format!("{}: {why}", target.shown())));
    }
    if at != volume && entries.take(1).count() > 0 {
        let why = match mounted_at(&at) {
            Some(_) => "something is mounted there already; `bywash umount` takes it away if it is a volume, or name another folder",
            None => "it is not empty, and what is in it could not be seen; name an empty folder",
        };
        return Err(Failure::new(Exit::Failed, format!("{}: {why}", target.shown())));
    }
    Ok(())
}
