//! Calls that name a file by its path and do not open it.

use crate::calls::no_attribute;
use crate::file::File;
use crate::memory::Memory;
use crate::place::{Inside, Place};
use crate::refuse::{Outcome, refused, refused_with};
use crate::server::{Server, Shown};
use crate::stat::{stat, statfs, statx};
use bywash_mount::direct::Status;
use bywash_stopped::listener::{Notification, Verdict};
use rustix::io::Errno;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HERE: i32 = libc::AT_FDCWD;

/// What is to be done with an entry.
enum Ask {
    Stat(u64),
    Statx(u64),
    Access(u32),
    ReadLink(u64, u64),
    Unlink,
    RemoveFolder,
    MakeFolder(u32),
    MakeNode(u32),
    MakeLink(u64),
    Mode(u32),
    Owner(u64, u64),
    Times(u64),
    Truncate(i64),
    Enter,
    Room(u64),
    /// It is refused, with that number, for that reason.
    Refuse(Errno, &'static str),
    /// There are no extended attributes, as on file systems without them.
    NoAttributes,
    ListAttributes,
    SetAttribute(u64),
}

impl Server {
    /// Calls that take a path; none if this is no such call.
    pub(crate) fn by_path(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Option<Verdict>> {
        let [a, b, c, d, e, _] = call.arguments;
        let nofollow = |flags: u64| flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
        const START: Ask = Ask::Refuse(Errno::ACCESS, "programs in a volume cannot be started");
        const OLD_TIMES: Ask = Ask::Refuse(Errno::NOSYS, "an old way to set times");
        // Which descriptor the path begins at, where it is, whether a link at its end is followed, whether it may be empty, what is asked.
        let (at, path, follows, may_be_empty, ask) = match call.call {
            libc::SYS_newfstatat => (a as i32, b, nofollow(d), d as i32 & libc::AT_EMPTY_PATH != 0, Ask::Stat(c)),
            libc::SYS_statx => (a as i32, b, nofollow(c), c as i32 & libc::AT_EMPTY_PATH != 0, Ask::Statx(e)),
            libc::SYS_faccessat => (a as i32, b, true, false, Ask::Access(c as u32)),
            libc::SYS_faccessat2 => (a as i32, b, nofollow(d), d as i32 & libc::AT_EMPTY_PATH != 0, Ask::Access(c as u32)),
            // With an empty path, of the link that a descriptor names.
            libc::SYS_readlinkat => (a as i32, b, false, true, Ask::ReadLink(c, d)),
            libc::SYS_unlinkat if c as i32 & libc::AT_REMOVEDIR != 0 => (a as i32, b, false, false, Ask::RemoveFolder),
            libc::SYS_unlinkat => (a as i32, b, false, false, Ask::Unlink),
            libc::SYS_mkdirat => (a as i32, b, false, false, Ask::MakeFolder(c as u32)),
            libc::SYS_mknodat => (a as i32, b, false, false, Ask::MakeNode(c as u32)),
            libc::SYS_symlinkat => (b as i32, c, false, false, Ask::MakeLink(a)),
            libc::SYS_fchmodat => (a as i32, b, true, false, Ask::Mode(c as u32)),
            FCHMODAT2 => (a as i32, b, nofollow(d), d as i32 & libc::AT_EMPTY_PATH != 0, Ask::Mode(c as u32)),
            libc::SYS_fchownat => (a as i32, b, nofollow(e), e as i32 & libc::AT_EMPTY_PATH != 0, Ask::Owner(c, d)),
            libc::SYS_utimensat => (a as i32, b, nofollow(d), b == 0, Ask::Times(c)),
            libc::SYS_truncate => (HERE, a, true, false, Ask::Truncate(b as i64)),
            libc::SYS_chdir => (HERE, a, true, false, Ask::Enter),
            libc::SYS_statfs => (HERE, a, true, false, Ask::Room(b)),
            libc::SYS_execve => (HERE, a, true, false, START),
            libc::SYS_execveat => (a as i32, b, nofollow(e), e as i32 & libc::AT_EMPTY_PATH != 0, START),
            libc::SYS_llistxattr => (HERE, a, false, false, Ask::ListAttributes),
            libc::SYS_getxattr | libc::SYS_listxattr | libc::SYS_removexattr => (HERE, a, true, false, Ask::NoAttributes),
            libc::SYS_lgetxattr | libc::SYS_lremovexattr => (HERE, a, false, false, Ask::NoAttributes),
            libc::SYS_setxattr => (HERE, a, true, false, Ask::SetAttribute(b)),
            libc::SYS_lsetxattr => (HERE, a, false, false, Ask::SetAttribute(b)),
            libc::SYS_inotify_add_watch => (HERE, b, true, false, Ask::Refuse(Errno::NOSYS, "being told of changes")),
            libc::SYS_name_to_handle_at => (a as i32, b, false, true, Ask::Refuse(Errno::OPNOTSUPP, "file handles")),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                let flags = if call.call == libc::SYS_renameat2 { e as u32 } else { 0 };
                return self.two_paths(call, memory, (a as i32, b), (c as i32, d), Two::Rename(flags), shown).map(Some);
            }
            libc::SYS_linkat => {
                let two = Two::Link { follows: e as i32 & libc::AT_SYMLINK_FOLLOW != 0 };
                return self.two_paths(call, memory, (a as i32, b), (c as i32, d), two, shown).map(Some);
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => return self.two_paths(call, memory, (HERE, a), (HERE, b), Two::Rename(0), shown).map(Some),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => return self.two_paths(call, memory, (HERE, a), (HERE, b), Two::Link { follows: false }, shown).map(Some),
            #[cfg(target_arch = "x86_64")]
            other => match other {
                libc::SYS_stat => (HERE, a, true, false, Ask::Stat(b)),
                libc::SYS_lstat => (HERE, a, false, false, Ask::Stat(b)),
                libc::SYS_access => (HERE, a, true, false, Ask::Access(b as u32)),
                libc::SYS_readlink => (HERE, a, false, false, Ask::ReadLink(b, c)),
                libc::SYS_unlink => (HERE, a, false, false, Ask::Unlink),
                libc::SYS_rmdir => (HERE, a, false, false, Ask::RemoveFolder),
                libc::SYS_mkdir => (HERE, a, false, false, Ask::MakeFolder(b as u32)),
                libc::SYS_mknod => (HERE, a, false, false, Ask::MakeNode(b as u32)),
                libc::SYS_symlink => (HERE, b, false, false, Ask::MakeLink(a)),
                libc::SYS_chmod => (HERE, a, true, false, Ask::Mode(b as u32)),
                libc::SYS_chown => (HERE, a, true, false, Ask::Owner(b, c)),
                libc::SYS_lchown => (HERE, a, false, false, Ask::Owner(b, c)),
                libc::SYS_utime | libc::SYS_utimes => (HERE, a, true, false, OLD_TIMES),
                libc::SYS_futimesat => (a as i32, b, true, false, OLD_TIMES),
                _ => return Ok(None),
            },
            #[cfg(not(target_arch = "x86_64"))]
            _ => {
                let _ = OLD_TIMES;
                return Ok(None);
            }
        };
        let path = if may_be_empty && path == 0 { Vec::new() } else { memory.path(path)? };
        if path.is_empty() && may_be_empty {
            return self.of_descriptor(call, memory, at, &ask, shown).map(Some);
        }
        match self.place(call, at, &path, follows, shown)? {
            Place::Outside(_) => Ok(Some(Verdict::Continue)),
            Place::Inside(inside) => self.ask(call, memory, &inside, &ask).map(Some),
            Place::Open(file) => self.of_file(call, memory, &file.value, &ask, shown).map(Some),
        }
    }

    /// With an empty path, a call is about the descriptor itself.
    fn of_descriptor(&self, call: &Notification, memory: &Memory<'_>, fd: i32, ask: &Ask, shown: &mut Shown) -> Outcome<Verdict> {
        match self.ours(call.thread, fd)? {
            Some(file) => self.of_file(call, memory, &file.value, ask, shown),
            None => Ok(Verdict::Continue),
        }
    }

    fn of_file(&self, call: &Notification, memory: &Memory<'_>, file: &File, ask: &Ask, shown: &mut Shown) -> Outcome<Verdict> {
        *shown = file.shown.clone();
        self.of_entry(call, memory, &file.status(&self.volume)?, ask)
    }

    fn ask(&self, call: &Notification, memory: &Memory<'_>, inside: &Inside, ask: &Ask) -> Outcome<Verdict> {
        let (parent, name) = (inside.parent(), inside.name.as_deref());
        let new = || name.ok_or(Errno::EXIST);
        let done = |()| Verdict::Value(0);
        match ask {
            Ask::Unlink => {
                let entry = self.entry(inside)?;
                if entry.status.is_folder() {
                    return Err(Errno::ISDIR.into());
                }
                Ok(done(self.volume.unlink(parent, name.ok_or(Errno::ISDIR)?)?))
            }
            Ask::RemoveFolder => {
                if !self.entry(inside)?.status.is_folder() {
                    return Err(Errno::NOTDIR.into());
                }
                Ok(done(self.volume.remove_folder(parent, name.ok_or(Errno::BUSY)?)?))
            }
            Ask::MakeFolder(mode) => Ok(done(self.volume.make_folder(parent, new()?, mode & 0o7777 & !self.umask(call))?)),
            Ask::MakeNode(mode) => match mode & libc::S_IFMT {
                0 | libc::S_IFREG => {
                    self.volume.create(parent, self.new_name(inside)?, mode & 0o7777 & !self.umask(call))?.flush()?;
                    Ok(done(()))
                }
                _ => refused(Errno::PERM, "pipes, sockets and devices in a volume"),
            },
            Ask::MakeLink(target) => {
                let target = memory.path(*target)?;
                if target.is_empty() {
                    return Err(Errno::NOENT.into());
                }
                Ok(done(self.volume.make_link(parent, self.new_name(inside)?, &target)?))
            }
            Ask::Enter => {
                let entry = self.entry(inside)?;
                if !entry.status.is_folder() {
                    return Err(Errno::NOTDIR.into());
                }
                let folder = entry.into_reference();
                if folder.is_root() {
                    // That folder is there for the kernel too.
                    return Ok(Verdict::Continue);
                }
                self.enter(call, &folder).map(Verdict::Value)
            }
            _ => {
                let entry = self.entry(inside)?;
                self.of_entry(call, memory, &entry.status, ask)
            }
        }
    }

    /// The name of what is about to be made and is no folder: none with a slash behind it.
    fn new_name<'a>(&self, inside: &'a Inside) -> Outcome<&'a [u8]> {
        let name = inside.name.as_deref().ok_or(Errno::EXIST)?;
        match inside.is_folder {
            false => Ok(name),
            true if self.volume.look_up(inside.parent(), name).is_ok() => Err(Errno::EXIST.into()),
            true => Err(Errno::NOENT.into()),
        }
    }

    /// What is asked of an entry that is there.
    fn of_entry(&self, call: &Notification, memory: &Memory<'_>, status: &Status, ask: &Ask) -> Outcome<Verdict> {
        let _ = call;
        let mut value = 0;
        match *ask {
            Ask::Stat(address) => memory.write(address, &stat(status, &self.volume))?,
            Ask::Statx(address) => memory.write(address, &statx(status, &self.volume))?,
            Ask::Access(wanted) => self.access(status, wanted)?,
            Ask::ReadLink(address, room) => {
                if !status.is_link() {
                    return Err(Errno::INVAL.into());
                }
                let target = self.volume.read_link(status.ino)?;
                let length = target.len().min(room as usize);
                memory.write(address, &target[..length])?;
                value = length as i64;
            }
            Ask::Mode(mode) => self.volume.set_mode(status.ino, mode & 0o7777)?,
            Ask::Owner(uid, gid) => self.set_owner(status.ino, uid, gid)?,
            Ask::Times(address) => {
                let (accessed, modified) = times(memory, address)?;
                self.volume.set_times(status.ino, accessed, modified)?;
            }
            Ask::Truncate(_) if status.is_folder() => return Err(Errno::ISDIR.into()),
            Ask::Truncate(length) => self.volume.set_len(status.ino, u64::try_from(length).map_err(|_| Errno::INVAL)?)?,
            Ask::Room(address) => memory.write(address, &statfs(&self.volume.statistics()?))?,
            Ask::SetAttribute(name) => return no_attribute(memory, name),
            // No file system lets one have those of users; programs that copy links with what they have look.
            Ask::ListAttributes if status.is_link() => {}
            Ask::ListAttributes | Ask::NoAttributes => return Err(Errno::OPNOTSUPP.into()),
            Ask::Refuse(errno, why) => return refused(errno, why),
            // These need a name, which a descriptor does not give.
            _ => return Err(Errno::NOENT.into()),
        }
        Ok(Verdict::Value(value))
    }

    /// Whether this user may do so, by the entry's mode.
    fn access(&self, status: &Status, wanted: u32) -> Outcome<()> {
        let mode = status.mode;
        let groups = || rustix::process::getgroups().unwrap_or_default();
        let given = match rustix::process::getuid().as_raw() {
            0 if mode & 0o111 == 0 && !status.is_folder() => 6,
            0 => 7,
            uid if uid == status.uid => mode >> 6 & 7,
            _ if rustix::process::getgid().as_raw() == status.gid || groups().iter().any(|group| group.as_raw() == status.gid) => {
                mode >> 3 & 7
            }
            _ => mode & 7,
        };
        if wanted & !given & 7 == 0 { Ok(()) } else { Err(Errno::ACCESS.into()) }
    }

    fn two_paths(
        &self,
        call: &Notification,
        memory: &Memory<'_>,
        old: (i32, u64),
        new: (i32, u64),
        two: Two,
        shown: &mut Shown,
    ) -> Outcome<Verdict> {
        let follows = matches!(two, Two::Link { follows: true });
        let (from, to) = (memory.path(old.1)?, memory.path(new.1)?);
        if from.is_empty() {
            // A link to what a descriptor means; ours have names or none.
            return if self.ours(call.thread, old.0)?.is_some() { Err(Errno::NOENT.into()) } else { Ok(Verdict::Continue) };
        }
        let from = self.place(call, old.0, &from, follows, shown)?;
        let mut shown_to = String::new();
        let to = self.place(call, new.0, &to, false, &mut shown_to)?;
        if let Two::Rename(flags) = two {
            self.may_move(&from, true)?;
            self.may_move(&to, flags & libc::RENAME_EXCHANGE != 0).inspect_err(|_| *shown = shown_to)?;
        }
        let (from, to) = match (from, to) {
            (Place::Outside(_), Place::Outside(_)) => return Ok(Verdict::Continue),
            (Place::Inside(from), Place::Inside(to)) => (from, to),
            // As between two file systems: programs copy then.
            _ => return Err(Errno::XDEV.into()),
        };
        match two {
            Two::Rename(flags) => self.rename(&from, &to, flags)?,
            Two::Link { .. } => {
                let entry = self.entry(&from)?;
                let new_name = self.new_name(&to)?;
                if entry.status.is_folder() {
                    return Err(Errno::PERM.into());
                }
                self.volume.link(entry.status.ino, to.parent(), new_name)?;
            }
        }
        Ok(Verdict::Value(0))
    }

    /// The volume's folder stays where it is, as what something is mounted on; and so do those that it is in, if they are what is moved: its paths would mean something else than they do here.
    fn may_move(&self, place: &Place, is_moved: bool) -> Outcome<()> {
        let is_kept = match place {
            Place::Outside(Some(path)) => is_moved && self.root.lies_in(path),
            Place::Outside(None) | Place::Open(_) => false,
            Place::Inside(inside) => inside.name.is_none() && inside.folder.is_root(),
        };
        if is_kept {
            let why = "the volume is served there, and neither it nor a folder that it is in can be moved";
            refused_with(Errno::BUSY, why, "move it when the run has ended")
        } else {
            Ok(())
        }
    }

    fn rename(&self, from: &Inside, to: &Inside, flags: u32) -> Outcome<()> {
        let entry = self.entry(from)?;
        let new_name = to.name.as_deref().ok_or(Errno::EXIST)?;
        let old_name = from.name.as_deref().ok_or(Errno::BUSY)?;
        if to.is_folder && !entry.status.is_folder() {
            return Err(Errno::NOTDIR.into());
        }
        if entry.status.is_folder() && flags == 0 && self.entry(to).is_ok_and(|target| !target.status.is_folder()) {
            return Err(Errno::NOTDIR.into());
        }
        Ok(self.volume.rename((from.parent(), old_name), (to.parent(), new_name), flags)?)
    }
}

const FCHMODAT2: i64 = 452;

/// A call with two paths.
enum Two {
    Rename(u32),
    Link { follows: bool },
}

/// The two times of `utimensat`: now without any.
fn times(memory: &Memory<'_>, address: u64) -> Outcome<(Option<SystemTime>, Option<SystemTime>)> {
    if address == 0 {
        let now = SystemTime::now();
        return Ok((Some(now), Some(now)));
    }
    let bytes: [u8; 32] = memory.read_array(address)?;
    let word = |at: usize| i64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
    let time = |seconds: i64, nanos: i64| -> Outcome<Option<SystemTime>> {
        match nanos {
            libc::UTIME_NOW => Ok(Some(SystemTime::now())),
            libc::UTIME_OMIT => Ok(None),
            0..1_000_000_000 => {
                let base = match u64::try_from(seconds) {
                    Ok(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds)),
                    Err(_) => UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())),
                };
                Ok(Some(base.and_then(|base| base.checked_add(Duration::from_nanos(nanos as u64))).ok_or(Errno::INVAL)?))
            }
            _ => Err(Errno::INVAL.into()),
        }
    };
    Ok((time(word(0), word(8))?, time(word(16), word(24))?))
}
