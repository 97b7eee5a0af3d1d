//! Namespaces in which a mount is seen by this process and what it starts, and by nobody else.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use std::fs;
use std::io;
use std::path::Path;

/// Gives this process mounts of its own. It must have one thread. Who is not root needs a user namespace for that, in which he is nobody but himself: programs that
/// become another user (sudo) do not work in it.
///
/// # Errors
/// The operating system's, in words: where it lets no user have a user namespace.
pub fn enter() -> io::Result<()> {
    if unshare(UnshareFlags::NEWNS).is_err() {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(|error| {
            let way_out = "allow it (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or use `bywash mount`";
            io::Error::new(io::Error::from(error).kind(), format!("this user may have no user namespace ({error}); {way_out}"))
        })?;
        // The kernel lets groups be mapped only by who can no longer change them.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Covers a folder with an empty one to which nothing can be written, in a namespace of this process: what is mounted over that and goes leaves nobody with what is below.
///
/// # Errors
/// The operating system's.
pub fn cover(folder: &Path) -> io::Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("bywash", folder, "tmpfs", flags, c"mode=555,size=4k")?)
}

#[allow(deprecated, reason = "it is unsafe with UnshareFlags::FILES alone, which nobody asks for here")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}
