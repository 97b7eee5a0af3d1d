//! What becomes of a stopped call: one of the volume is answered here, every other goes on to the kernel.

use crate::ending::Ending;
use crate::file::{File, What};
use crate::filter;
use crate::memory::{Memory, UNREADABLE};
use crate::numbers::Numbers;
use crate::place::{Inside, Place, Root, Start, Walker};
use crate::refuse::{Failure, Outcome, Teller, refused, refused_with};
use bywash_mount::direct::{Direct, Held};
use bywash_stopped::bpf::ARCHITECTURE;
use bywash_stopped::listener::{Listener, Notification, Verdict};
use bywash_stopped::pairs::{Pair, Pairs};
use bywash_stopped::pool::Work;
use bywash_stopped::thread::status;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the end waits for calls that are being answered: a disk may be slow, a file system that a path leads through may never answer.
pub(crate) const END_AT_MOST: Duration = Duration::from_secs(10);

/// Answers what one filter stops.
pub(crate) struct Server {
    pub(crate) listener: Listener,
    /// A call that was taken up before there was a server.
    pub(crate) first: Mutex<Option<Notification>>,
    pub(crate) files: Arc<Pairs<File>>,
    /// What descriptors mean that are closed but for the kernel.
    pub(crate) gone: OwnedFd,
    pub(crate) volume: Arc<Direct>,
    pub(crate) root: Root,
    pub(crate) numbers: Numbers,
    pub(crate) teller: Teller,
    /// Whether a program could have become somebody else than this process.
    pub(crate) is_root: bool,
    pub(crate) ending: Ending,
}

/// What a call is about, for messages.
pub(crate) type Shown = String;

impl Work for Server {
    type Call = Notification;

    fn next(&self) -> Option<Notification> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if first.is_some() {
            return first;
        }
        // An error on a listener that is ours and open means that the kernel can tell us nothing any more.
        self.listener.receive().ok().flatten()
    }

    fn is_slow(&self, call: &Notification) -> bool {
        matches!(call.call, libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs)
    }

    fn answer(&self, call: Notification) {
        let verdict = if self.ending.enter() {
            // A panic is a defect; the program hears of an error, and is not left waiting for ever.
            let verdict = catch_unwind(AssertUnwindSafe(|| self.verdict(&call))).unwrap_or(Verdict::Error(libc::EIO));
            if self.ending.leave() { verdict } else { Verdict::Error(libc::ENOSYS) }
        } else {
            Verdict::Error(libc::ENOSYS)
        };
        self.listener.answer(call.id, verdict);
    }

    fn over(&self) {
        // Should it be over by an error, those who still call are not left waiting.
        self.listener.close(self.files.stopper());
        self.files.stop();
    }
}

impl Server {
    /// Every call fails from now on (ENOSYS), as when nobody answers any more; those that are being answered are waited for, within reason.
    pub(crate) fn end(&self) {
        self.ending.end(END_AT_MOST);
    }

    fn verdict(&self, call: &Notification) -> Verdict {
        let mut shown = String::new();
        let outcome = self.dispatch(call, &mut shown);
        outcome.unwrap_or_else(|failure| {
            if failure.why.is_some_and(|why| why.text == UNREADABLE) {
                // Of all its calls, and not of each.
                self.teller.tell("a program", &status(call.thread, "Name:").unwrap_or_default(), &failure);
            } else {
                self.teller.tell(filter::name(call.call), &shown, &failure);
            }
            Verdict::Error(failure.errno)
        })
    }

    fn dispatch(&self, call: &Notification, shown: &mut Shown) -> Outcome<Verdict> {
        if call.architecture != ARCHITECTURE || call.call >= 0x4000_0000 {
            *shown = status(call.thread, "Name:").unwrap_or_default();
            return refused(Errno::NOSYS, "it is a 32-bit or x32 program, whose calls are not understood here");
        }
        let memory = Memory::new(&self.listener, call);
        let [first, second, third, fourth, fifth, _] = call.arguments;
        let at = first as i32;
        match call.call {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll | libc::SYS_select => self.wait(call, &memory, shown),
            libc::SYS_ppoll | libc::SYS_pselect6 => self.wait(call, &memory, shown),
            libc::SYS_io_uring_setup => refused(Errno::NOSYS, "its reads and writes cannot be seen"),
            libc::SYS_open_by_handle_at
            | libc::SYS_chroot
            | libc::SYS_pivot_root
            | libc::SYS_mount
            | libc::SYS_move_mount
            | libc::SYS_setns => refused(Errno::PERM, "paths would mean something else than they do here"),
            libc::SYS_sendfile
            | libc::SYS_splice
            | libc::SYS_tee
            | libc::SYS_copy_file_range
            | libc::SYS_vmsplice
            | libc::SYS_epoll_ctl => self.between(call),
            libc::SYS_mmap => match not_gone(self.files.find(call.thread, fifth))? {
                None => Ok(Verdict::Continue),
                Some(file) => {
                    *shown = file.value.shown.clone();
                    refused(Errno::NODEV, "memory maps of encrypted files need the kernel's help")
                }
            },
            libc::SYS_bind => self.bind(call, &memory, shown),
            libc::SYS_openat => self.open(call, &memory, at, second, third as i32, fourth as u32, shown),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(call, &memory, libc::AT_FDCWD, first, second as i32, third as u32, shown),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                self.open(call, &memory, libc::AT_FDCWD, first, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, second as u32, shown)
            }
            libc::SYS_openat2 => self.open_how(call, &memory, shown),
            _ => match self.by_path(call, &memory, shown)? {
                Some(verdict) => Ok(verdict),
                None => self.by_descriptor(call, &memory, shown),
            },
        }
    }

    fn by_descriptor(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        let Some(file) = not_gone(self.files.find(call.thread, call.arguments[0]))? else {
            #[cfg(target_arch = "x86_64")]
            let is_dup = matches!(call.call, libc::SYS_dup2 | libc::SYS_dup3);
            #[cfg(not(target_arch = "x86_64"))]
            let is_dup = call.call == libc::SYS_dup3;
            if is_dup {
                self.replaced(call.thread, call.arguments[1]);
            }
            return Ok(Verdict::Continue);
        };
        *shown = file.value.shown.clone();
        if let Some(verdict) = self.number_call(call, &file)? {
            return Ok(verdict);
        }
        if let Some(count) = self.move_bytes(call, memory, &file.value)? {
            return Ok(Verdict::Value(count));
        }
        self.file_call(call, memory, &file.value).map(Verdict::Value)
    }

    /// Another file is put in the place of one of ours, which is closed by that. Its program does not hear of errors, as on Linux: what cannot be stored is tried again, and told at the end of the run.
    pub(crate) fn replaced(&self, thread: u32, number: u64) {
        if let Some(file) = self.found(thread, number as i32) {
            let _ = file.value.flush();
        }
    }

    /// Calls that move bytes between descriptors: programs that are told so read and write instead.
    fn between(&self, call: &Notification) -> Outcome<Verdict> {
        let [first, second, third, ..] = call.arguments;
        let fds = match call.call {
            libc::SYS_sendfile | libc::SYS_tee => [Some(first), Some(second)],
            libc::SYS_epoll_ctl => [Some(third), None],
            libc::SYS_vmsplice => [Some(first), None],
            _ => [Some(first), Some(third)],
        };
        if fds.into_iter().flatten().all(|fd| self.files.find(call.thread, fd).is_none()) {
            return Ok(Verdict::Continue);
        }
        Err(match call.call {
            // What the kernel says of files of two file systems.
            libc::SYS_copy_file_range => Errno::XDEV,
            // As of every regular file.
            libc::SYS_epoll_ctl => Errno::PERM,
            _ => Errno::INVAL,
        }
        .into())
    }

    /// A socket's name in the volume would be in the clear.
    fn bind(&self, call: &Notification, memory: &Memory<'_>, shown: &mut Shown) -> Outcome<Verdict> {
        let [_, address, length, ..] = call.arguments;
        let mut bytes = vec![0; length.min(110) as usize];
        memory.read(address, &mut bytes)?;
        let [family, other, path @ ..] = &bytes[..] else { return Ok(Verdict::Continue) };
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        if i32::from(u16::from_ne_bytes([*family, *other])) != libc::AF_UNIX || path.is_empty() {
            return Ok(Verdict::Continue);
        }
        match self.place(call, libc::AT_FDCWD, path, false, shown)? {
            Place::Outside(_) => Ok(Verdict::Continue),
            Place::Inside(_) | Place::Open(_) => refused(Errno::ACCESS, "sockets cannot be made in a volume"),
        }
    }

    /// Where a path leads that a call names.
    pub(crate) fn place(&self, call: &Notification, at: i32, path: &[u8], follows: bool, shown: &mut Shown) -> Outcome<Place> {
        *shown = String::from_utf8_lossy(path).into_owned();
        let walker = self.walker(call);
        let place = walker.walk(path, || self.start(&walker, at), follows)?;
        self.served(call, place)
    }

    /// The same, of a path that has what it begins at for its root (`RESOLVE_IN_ROOT`).
    pub(crate) fn place_in_root(&self, call: &Notification, at: i32, path: &[u8], shown: &mut Shown) -> Outcome<Place> {
        *shown = String::from_utf8_lossy(path).into_owned();
        let mut walker = self.walker(call);
        let start = self.start(&walker, at)?;
        match &start {
            Start::Outside(folder) => walker.base.clone_from(folder),
            // Whatever it is: the kernel would look for it among the ciphertext.
            Start::Volume => return self.served(call, Place::Inside(Inside { folder: self.volume.root(), name: None, is_folder: true })),
            Start::Inside(folder) => {
                return self.served(call, Place::Inside(Inside { folder: folder.clone(), name: None, is_folder: true }));
            }
            Start::Unknown => {}
        }
        // What is absolute begins there too.
        let path = [b"./", path].concat();
        let place = walker.walk(&path, || Ok(start), true)?;
        self.served(call, place)
    }

    fn walker(&self, call: &Notification) -> Walker<'_> {
        Walker { volume: &self.volume, root: &self.root, files: &self.files, thread: call.thread, base: "/".into() }
    }

    /// Where a path begins that a call names beside a descriptor.
    fn start(&self, walker: &Walker<'_>, at: i32) -> Outcome<Start> {
        if at == libc::AT_FDCWD {
            return walker.start("cwd");
        }
        match self.ours(walker.thread, at)? {
            None => walker.start(&format!("fd/{at}")),
            Some(file) => match &file.value.what {
                What::Folder(folder) => Ok(Start::Inside(folder.itself.clone())),
                _ => Err(Errno::NOTDIR.into()),
            },
        }
    }

    /// The volume is for one user.
    fn served(&self, call: &Notification, place: Place) -> Outcome<Place> {
        if self.is_root && !matches!(place, Place::Outside(_)) {
            let uids = status(call.thread, "Uid:").ok_or(Errno::SRCH)?;
            if uids.split_whitespace().nth(3) != Some("0") {
                let way_out = "`bywash mount --allow-other` serves others too";
                return refused_with(Errno::ACCESS, "only the user who started the run is served", way_out);
            }
        }
        Ok(place)
    }

    /// The file behind a number, if it is one of ours.
    pub(crate) fn found(&self, thread: u32, fd: i32) -> Option<Arc<Pair<File>>> {
        if self.numbers.may_be_ours(fd) { self.files.find(thread, fd as u64) } else { None }
    }

    /// As [`found`](Self::found); an error if it is closed but for the kernel.
    pub(crate) fn ours(&self, thread: u32, fd: i32) -> Outcome<Option<Arc<Pair<File>>>> {
        not_gone(self.found(thread, fd))
    }

    /// What is at a place; the volume's own folder and those that paths end at have no name.
    pub(crate) fn entry(&self, inside: &Inside) -> Outcome<Held> {
        match &inside.name {
            None => Ok(self.volume.held_by(inside.folder.clone())?),
            Some(name) => {
                let held = self.volume.look_up(inside.parent(), name)?;
                if inside.is_folder && !held.status.is_folder() {
                    return Err(Errno::NOTDIR.into());
                }
                Ok(held)
            }
        }
    }
}

fn not_gone(file: Option<Arc<Pair<File>>>) -> Outcome<Option<Arc<Pair<File>>>> {
    if file.as_ref().is_some_and(|file| file.value.is_gone()) { Err(Errno::BADF.into()) } else { Ok(file) }
}

impl Failure {
    /// Whether that is the number it fails with.
    pub(crate) fn is(&self, errno: Errno) -> bool {
        self.errno == errno.raw_os_error()
    }
}
