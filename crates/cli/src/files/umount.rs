//! `bywash umount`

use super::io_failure;
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use crate::terminal::say;
use bywash_mount::Server;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// `bywash umount`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash umount ~/plain

It returns when all that was written is on the disk, and leaves mounted what cannot be stored there.
It waits for whoever holds it elsewhere, by a bind mount or in a mount namespace, and says so.
`fusermount3 -u FOLDER` unmounts without waiting for that.")]
pub(crate) struct Args {
    /// Where the volume is mounted
    #[arg(value_name = "FOLDER")]
    target: PathBuf,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let target = &args.target;
    // The last part may be a mount whose process has ended, which cannot be looked at.
    let path = match (target.canonicalize(), target.file_name()) {
        (Ok(path), _) => path,
        (Err(_), Some(name)) => {
            bywash_files::place::folder_of(target).canonicalize().map_err(|error| io_failure(target, &error))?.join(name)
        }
        (Err(error), None) => return Err(io_failure(target, &error)),
    };
    let Some(volume) = mounted_at(&path) else {
        return Err(Failure::failed(format!("{}: no volume is mounted there; `findmnt -t fuse.bywash` lists what is", target.shown())));
    };
    store(&path)?;
    let (device, server) = (device(&path), Server::of(&path));
    unmount(&path)?;
    let waits = || {
        let why = device.and_then(still_held).unwrap_or_else(|| "what was written to it is still being stored".into());
        say!("bywash: note: {}: it is not there any more, but {why}; this waits for that, and may be ended meanwhile", path.shown());
    };
    match server {
        Some(server) => server.wait(waits).map_err(|error| io_failure(&path, &error))?,
        None => bywash_mount::wait_until_settled(&volume, waits),
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of what is mounted at a path, as the table of mounts has it. The file system itself is not asked: nobody may be serving it.
fn device(path: &Path) -> Option<String> {
    let place = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
    Some(format!("{}:{}", place.stx_dev_major, place.stx_dev_minor))
}

/// Where else a file system is mounted, and what ends that: here, or where another process sees it; none if it is nowhere.
fn still_held(device: String) -> Option<String> {
    if let Some(place) = place_in("self", &device) {
        return Some(format!("mounted at {0} too; `umount {0}` ends that", place.shown()));
    }
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut holders = processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let (process, place) = holders.find_map(|process| Some((process.clone(), place_in(&process, &device)?)))?;
    let name = bywash_protocol::process::read(&format!("/proc/{process}/comm")).unwrap_or_default();
    let way_out = format!("`nsenter -t {process} -m umount {}`, or the end of all in that namespace, ends that", place.shown());
    Some(format!("process {process} ({}) sees it in a mount namespace of its own; {way_out}", name.trim().shown()))
}

/// Where a process sees a file system mounted, if it does.
fn place_in(process: &str, device: &str) -> Option<PathBuf> {
    let mounts = std::fs::read(format!("/proc/{process}/mountinfo")).ok()?;
    let mut lines = mounts.split(|byte| *byte == b'\n').map(fields);
    lines.find(|fields| fields.get(2) == Some(&device.as_bytes()))?.get(4).map(|place| unescaped(place))
}

/// All that is closed goes to the disk, as long as nothing is lost if it cannot.
fn store(path: &Path) -> Result<(), Failure> {
    let has_lost = bywash_mount::store(path).map_err(|error| {
        let mend = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room",
            _ => "the log says why; mend that",
        };
        let way_out = format!("it stays mounted: {mend} and try again; `fusermount3 -u {}` gives that up", path.shown());
        Failure::failed(format!("{}: what was written last cannot be stored ({error}); {way_out}", path.shown()))
    })?;
    if has_lost {
        say!("bywash: note: something that was written earlier could not be stored; who closed it was told so");
    }
    Ok(())
}

fn unmount(path: &Path) -> Result<(), Failure> {
    let busy = || Failure::failed(format!("{}: it is in use; `fuser -vm {0}` says by whom", path.shown()));
    match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) => return Ok(()),
        Err(Errno::BUSY) => return Err(busy()),
        // Users ask a helper.
        Err(_) => {}
    }
    let output = Command::new("fusermount3").args(["-u", "--"]).arg(path).output();
    let output = output.map_err(|error| {
        let way_out = "install it (Debian: apt install fuse3), or unmount as root";
        Failure::new(Exit::Permission, format!("users unmount with fusermount3, which cannot be started ({error}); {way_out}"))
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        // A path may have any words in it.
        false if said.replace(&*path.to_string_lossy(), "").contains("busy") => Err(busy()),
        false => Err(Failure::failed(format!("{}: {}; only who mounted it can, or root", path.shown(), said.trim()))),
    }
}

/// What is mounted at a path: the latest there, if it is a FUSE file system.
pub(super) fn mounted_at(path: &Path) -> Option<PathBuf> {
    // In bytes: paths of others may be no text.
    mounted_in(&std::fs::read("/proc/self/mounts").ok()?, path)
}

fn mounted_in(mounts: &[u8], path: &Path) -> Option<PathBuf> {
    let mut lines = mounts.split(|byte| *byte == b'\n').map(fields);
    let found = lines.rfind(|fields| fields.get(1).is_some_and(|target| unescaped(target) == path))?;
    found.get(2)?.starts_with(b"fuse").then(|| unescaped(found[0]))
}

fn fields(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| *byte == b' ').collect()
}

/// Blanks and the like are octal in that table.
fn unescaped(field: &[u8]) -> PathBuf {
    let (mut text, mut rest) = (Vec::new(), field);
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| byte == b'\\') {
            Some(escaped) => {
                text.push(escaped);
                rest = &behind[3..];
            }
            None => {
                text.push(byte);
                rest = behind;
            }
        }
    }
    OsString::from_vec(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn what_is_mounted_is_found_beside_paths_that_are_no_text() {
        let table = b"none /caf\xe9 tmpfs rw 0 0\n/a\\040b /mnt/x\\134y fuse.bywash rw 0 0\n/c /mnt/\xe9 fuse.bywash rw 0 0\n/d /mnt/d ext4 rw 0 0\n";
        let found = |path: &[u8]| mounted_in(table, Path::new(OsStr::from_bytes(path)));
        assert_eq!(found(b"/mnt/x\\y"), Some("/a b".into()));
        assert_eq!(found(b"/mnt/\xe9"), Some("/c".into()));
        assert_eq!((found(b"/mnt/d"), found(b"/mnt")), (None, None));
    }
}
