//! The place that a mount has in the tree of files: taken, and given back.
//!
//! fuser (0.18) mounts too, but gives up a mount before it tries to take it away, so that who heard that it is busy cannot try again; and of what has been unmounted by
//! somebody else it unmounts, at the end, whatever is at the same place by then.

use crate::mount::MountOptions;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, statx};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair};
use rustix::process::{getgid, getuid};
use std::ffi::CString;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `mount` and `df` show behind `fuse.`.
const SUBTYPE: &str = "bywash";
/// The programs that mount and unmount for users, of FUSE 3 and 2.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];
/// The descriptor on which a helper hands over the connection: its stdin.
const HELPER_FD: &str = "0";

/// A mount, until [`leave`](Self::leave) or the end of this, which is to come after that of the connection.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) target: PathBuf,
    /// Device of what is mounted there, major and minor.
    pub(crate) device: (u32, u32),
}

impl Point {
    /// Mounts a FUSE file system over a folder; gives the connection on which the kernel's requests come.
    ///
    /// # Errors
    /// The operating system's, or the helper's in its words: no `/dev/fuse`, no `fusermount3`, no permission.
    pub(crate) fn take(target: &Path, options: &MountOptions) -> io::Result<(OwnedFd, Self)> {
        let target = target.canonicalize()?;
        let connection = match mount(&target, options)? {
            Some(connection) => connection,
            None => mount_by_helper(&target, options)?,
        };
        let device = device(&target)?;
        Ok((connection, Self { target, device }))
    }

    /// Unmounts; with [`UnmountFlags::DETACH`] also what is in use. It may be tried again and again; what is not mounted any more is none of our business.
    ///
    /// # Errors
    /// `ResourceBusy` if it is in use, or something else is mounted over it; the operating system's, or the helper's in its words.
    pub(crate) fn leave(&self, how: UnmountFlags) -> io::Result<()> {
        if !self.is_on_top() {
            return if self.is_mounted()? { Err(Errno::BUSY.into()) } else { Ok(()) };
        }
        match rustix::mount::unmount(&self.target, how | UnmountFlags::NOFOLLOW) {
            Err(Errno::PERM) => self.leave_by_helper(how),
            outcome => Ok(outcome?),
        }
    }

    /// Whether nothing else is mounted over it, and it is there.
    pub(crate) fn is_on_top(&self) -> bool {
        device(&self.target).is_ok_and(|there| there == self.device)
    }

    fn leave_by_helper(&self, how: UnmountFlags) -> io::Result<()> {
        let how = if how.contains(UnmountFlags::DETACH) { "-uz" } else { "-u" };
        let output = help(|helper| helper.args([how, "--"]).arg(&self.target).env("LC_ALL", "C").output())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        // A path may have any words in it.
        Err(if said.replace(&*self.target.to_string_lossy(), "").contains("busy") { Errno::BUSY.into() } else { io::Error::other(said) })
    }

    /// Whether it is mounted anywhere that this process sees.
    fn is_mounted(&self) -> io::Result<bool> {
        let device = format!("{}:{}", self.device.0, self.device.1);
        let mounts = std::fs::read("/proc/self/mountinfo")?;
        Ok(mounts.split(|byte| *byte == b'\n').any(|mount| mount.split(|byte| *byte == b' ').nth(2) == Some(device.as_bytes())))
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // Nobody serves it any more: if it is still there, it says so, when asked what the kernel does not keep. What somebody has mounted there since may have its number, and does not.
        let is_dead = matches!(rustix::fs::statfs(&self.target), Err(Errno::NOTCONN | Errno::CONNABORTED));
        if is_dead && let Err(error) = self.leave(UnmountFlags::DETACH) {
            tracing::warn!("{}: it cannot be unmounted: {error}", self.target.display());
        }
    }
}

/// Device of what is mounted at a path. The file system itself is not asked: nobody may be serving it.
fn device(target: &Path) -> io::Result<(u32, u32)> {
    let place = statx(CWD, target, AtFlags::STATX_DONT_SYNC, StatxFlags::empty())?;
    Ok((place.stx_dev_major, place.stx_dev_minor))
}

/// Mounts as root does, or who is root in a namespace of his own; none if this user may not.
fn mount(target: &Path, options: &MountOptions) -> io::Result<Option<OwnedFd>> {
    let connection = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, rustix::fs::Mode::empty())
        .map_err(io::Error::from)
        .map_err(|error| io::Error::new(error.kind(), format!("/dev/fuse: {error}")))?;
    let place = statx(CWD, target, AtFlags::STATX_DONT_SYNC, StatxFlags::MODE)?;
    let (mode, others) = (place.stx_mode, if options.allows_others { ",allow_other" } else { "" });
    let (number, uid, gid) = (connection.as_raw_fd(), getuid().as_raw(), getgid().as_raw());
    let data = format!("fd={number},rootmode={mode:o},user_id={uid},group_id={gid},default_permissions{others}");
    let access = if options.is_read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    let flags = access | MountFlags::NOSUID | MountFlags::NODEV;
    let kind = format!("fuse.{SUBTYPE}");
    match rustix::mount::mount(options.source.as_str(), target, kind, flags, CString::new(data)?.as_c_str()) {
        Ok(()) => Ok(Some(connection)),
        Err(Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Has a helper mount, which may what users may not.
fn mount_by_helper(target: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let source = options.source.replace('\\', "\\\\").replace(',', "\\,");
    let (access, others) = (if options.is_read_only { "ro" } else { "rw" }, if options.allows_others { ",allow_other" } else { "" });
    let words = format!("fsname={source},subtype={SUBTYPE},default_permissions,{access}{others}");
    let (mut child, ours) = help(|helper| {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        helper.args(["-o", &words, "--"]).arg(target).env("_FUSE_COMMFD", HELPER_FD).env("LC_ALL", "C");
        // Theirs is closed here with the command, so that the helper's end is heard.
        Ok((helper.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?, ours))
    })?;
    let connection = received(&ours);
    let mut said = Vec::new();
    let heard = child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut said));
    child.wait()?;
    heard?;
    let said = String::from_utf8_lossy(&said);
    match connection? {
        Some(connection) => Ok(connection),
        None if said.contains("user_allow_other") => Err(io::Error::new(io::ErrorKind::PermissionDenied, said.trim().to_owned())),
        None => Err(io::Error::other(said.trim().to_owned())),
    }
}

/// Does something with the first helper that is there.
fn help<T>(mut with: impl FnMut(&mut Command) -> io::Result<T>) -> io::Result<T> {
    let mut outcome = with(&mut Command::new(HELPERS[0]));
    if matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::NotFound) {
        outcome = with(&mut Command::new(HELPERS[1]));
    }
    outcome
}

/// The descriptor that a helper sends; none if it ends without.
fn received(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0];
    retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC))?;
    let rights = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_of_users_mounts_says_that_it_is_busy_and_unmounts() {
        let folder = tempfile::tempdir().unwrap();
        let options = MountOptions { source: "a, b\\c".into(), ..MountOptions::default() };
        let connection = match mount_by_helper(folder.path(), &options) {
            Ok(connection) => connection,
            Err(error) => return eprintln!("skipped: nothing can be mounted here by fusermount3: {error}"),
        };
        let point = Point { target: folder.path().canonicalize().unwrap(), device: device(folder.path()).unwrap() };
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.contains(folder.path().to_str().unwrap())).unwrap();
        assert!(mount.starts_with("a,\\040b\\134c ") && mount.contains(" fuse.bywash rw,nosuid,nodev"), "{mount}");
        // Nobody serves it: only what asks nothing of it does not wait.
        let open = rustix::fs::open(folder.path(), OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
        for _ in 0..2 {
            let busy = point.leave_by_helper(UnmountFlags::empty()).unwrap_err();
            assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy, "{busy}");
        }
        point.leave_by_helper(UnmountFlags::DETACH).unwrap();
        assert!(!point.is_mounted().unwrap());
        drop((open, connection));
        let strange = point.leave_by_helper(UnmountFlags::empty()).unwrap_err();
        assert!(strange.kind() != io::ErrorKind::ResourceBusy && !strange.to_string().is_empty(), "{strange}");
        point.leave(UnmountFlags::empty()).unwrap();
    }

    #[test]
    fn a_mount_under_another_is_busy_until_that_goes() {
        let folder = tempfile::tempdir().unwrap();
        let take = || Point::take(folder.path(), &MountOptions { source: "test".into(), ..MountOptions::default() });
        let (lower, upper) = match (take(), take()) {
            (Ok(lower), Ok(upper)) => (lower, upper),
            (Err(error), _) | (_, Err(error)) => return eprintln!("skipped: nothing can be mounted here: {error}"),
        };
        assert_eq!(lower.1.leave(UnmountFlags::empty()).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop(upper);
        lower.1.leave(UnmountFlags::empty()).unwrap();
        assert!(!lower.1.is_mounted().unwrap());
    }
}
