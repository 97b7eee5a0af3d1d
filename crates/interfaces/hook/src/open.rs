//! Opens: of a file or a folder of the volume, old or new.

use crate::file::File;
use crate::memory::Memory;
use crate::place::{Inside, Place};
use crate::refuse::{Outcome, refused};
use crate::server::{Server, Shown};
use bywash_mount::direct::Held;
use bywash_stopped::listener::{Notification, Verdict};
use bywash_stopped::thread::status;
use rustix::io::Errno;

/// How often an open is tried again when the entry comes and goes between looks.
const TRIES: usize = 8;
/// Of `struct open_how`: `/`, and what links to it mean, is the folder that the path begins at (`linux/openat2.h`).
const RESOLVE_IN_ROOT: u64 = 0x10;

impl Server {
    #[allow(clippy::too_many_arguments, reason = "they are the call's")]
    pub(crate) fn open(
        &self,
        call: &Notification,
        memory: &Memory<'_>,
        at: i32,
        path: u64,
        flags: i32,
        mode: u32,
        shown: &mut Shown,
    ) -> Outcome<Verdict> {
        let path = memory.path(path)?;
        let has = |flag| flags & flag == flag;
        let follows = !has(libc::O_NOFOLLOW) && !has(libc::O_CREAT | libc::O_EXCL);
        match self.place(call, at, &path, follows, shown)? {
            Place::Outside(_) => Ok(Verdict::Continue),
            // What changes nothing may fail first, as most that look for a file do, before anything is had for it.
            Place::Inside(inside) if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 => {
                let file = self.opened(call, &inside, flags, mode, shown)?;
                self.open_descriptor(call, has(libc::O_CLOEXEC), || Ok(file))
            }
            Place::Inside(inside) => self.open_descriptor(call, has(libc::O_CLOEXEC), || self.opened(call, &inside, flags, mode, shown)),
            Place::Open(file) => {
                let entry = self.volume.held_by(file.value.entry().ok_or(Errno::NOENT)?.clone())?;
                let open = || self.open_entry(entry, what_counts(flags)?, &file.value.shown);
                self.open_descriptor(call, has(libc::O_CLOEXEC), open)
            }
        }
    }

    /// `openat2`, of whose `struct open_how` the flags, the mode and what paths may do are read.
    pub(crate) fn open_how(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        let [at, path, how, size, ..] = call.arguments;
        if size < 24 {
            return Err(Errno::INVAL.into());
        }
        let how: [u8; 24] = memory.read_array(how)?;
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| how[at + byte]));
        if word(16) != 0 {
            let path = memory.path(path)?;
            let place = match word(16) & RESOLVE_IN_ROOT {
                0 => self.place(call, at as i32, &path, true, shown)?,
                _ => self.place_in_root(call, at as i32, &path, shown)?,
            };
            return match place {
                Place::Outside(_) => Ok(Verdict::Continue),
                Place::Inside(_) | Place::Open(_) => refused(Errno::NOSYS, "rules for how its path may lead"),
            };
        }
        self.open(call, memory, at as i32, path, word(0) as i32, word(8) as u32, shown)
    }

    fn opened(&self, call: &Notification, inside: &Inside, flags: i32, mode: u32, shown: &str) -> Outcome<File> {
        let flags = what_counts(flags)?;
        let has = |flag| flags & flag == flag;
        for _ in 0..TRIES {
            match self.entry(inside) {
                Ok(_) if has(libc::O_CREAT | libc::O_EXCL) => return Err(Errno::EXIST.into()),
                Ok(entry) => return self.open_entry(entry, flags, shown),
                Err(failure) if !failure.is(Errno::NOENT) || !has(libc::O_CREAT) => return Err(failure),
                Err(_) if inside.is_folder => return Err(Errno::ISDIR.into()),
                Err(_) => {}
            }
            let name = inside.name.as_deref().ok_or(Errno::ISDIR)?;
            let mode = mode & 0o7777 & !self.umask(call);
            match self.volume.create(inside.parent(), name, mode) {
                Ok(open) => return Ok(File::text(open, flags, shown.to_owned())),
                // Somebody else has made it meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) && !has(libc::O_EXCL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens what is there.
    fn open_entry(&self, entry: Held, flags: i32, shown: &str) -> Outcome<File> {
        let has = |flag| flags & flag == flag;
        let status = entry.status;
        if status.is_folder() {
            return folder(entry, flags, shown);
        } else if has(libc::O_DIRECTORY) {
            return Err(Errno::NOTDIR.into());
        } else if status.is_link() && has(libc::O_PATH | libc::O_NOFOLLOW) {
            return Ok(File::link(entry, flags, shown.to_owned()));
        } else if status.is_link() {
            return Err(Errno::LOOP.into());
        } else if !status.is_file() {
            return refused(Errno::NXIO, "pipes, sockets and devices in a volume");
        } else if has(libc::O_PATH) {
            return refused(Errno::OPNOTSUPP, "a descriptor that names a file without opening it (O_PATH)");
        }
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let open = self.volume.open(entry, writes, has(libc::O_TRUNC))?;
        Ok(File::text(open, flags, shown.to_owned()))
    }

    /// What the program takes from the mode of files that it makes. Where it cannot be learnt nobody else gets anything.
    pub(crate) fn umask(&self, call: &Notification) -> u32 {
        status(call.thread, "Umask:").and_then(|text| u32::from_str_radix(&text, 8).ok()).unwrap_or(0o077)
    }
}

/// The flags of an open that say something; with O_PATH nothing is opened, and no other does.
fn what_counts(flags: i32) -> Outcome<i32> {
    let flags = match flags & libc::O_PATH {
        0 => flags,
        _ => flags & (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC),
    };
    // As file systems without them say; programs have another way.
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        Err(Errno::OPNOTSUPP.into())
    } else if flags & libc::O_DIRECT != 0 {
        Err(Errno::INVAL.into())
    } else {
        Ok(flags)
    }
}

fn folder(entry: Held, flags: i32, shown: &str) -> Outcome<File> {
    let has = |flag| flags & flag == flag;
    if flags & libc::O_ACCMODE != libc::O_RDONLY || has(libc::O_TRUNC) || (has(libc::O_CREAT) && !has(libc::O_DIRECTORY)) {
        return Err(Errno::ISDIR.into());
    }
    Ok(File::folder(entry.into_reference(), flags, shown.to_owned()))
}
