//! What becomes of a stopped call: opens of `/dev/crypto` get a descriptor, requests on one of those are answered, all else goes on to the kernel.

use crate::description::{self, Description, Descriptions};
use crate::memory::{Guess, StoppedMemory};
use bywash_client::Clients;
use bywash_cryptodev::{Answer, Device, Errno, Memory};
use bywash_cryptodev_abi::linux::{CIOCASYNCCRYPT, CIOCASYNCFETCH, CIOCCRYPT};
use bywash_stopped::listener::{Listener, Notification, Verdict};
use bywash_stopped::pool::Work;
use bywash_stopped::thread::copy_of;
use rustix::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// The path that is ours, as the program's memory has it.
const PATH: &[u8] = b"/dev/crypto\0";

/// Size of the first `struct open_how` there was; smaller ones are refused by the kernel.
const HOW: usize = 24;
/// What creat(2) opens with.
#[cfg(target_arch = "x86_64")]
const CREAT: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;

/// Answers what one filter stops.
pub(crate) struct Server {
    pub(crate) listener: Listener,
    pub(crate) descriptions: Arc<Descriptions>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) explain: Option<crate::Explain>,
}

/// A stopped call and what it is to us.
pub(crate) struct Call {
    notification: Notification,
    target: Target,
}

enum Target {
    Open(Open),
    /// A request to one of our descriptions.
    Request(Arc<Description>),
    Other,
}

/// How a path is opened, by which call.
enum Open {
    Flags {
        path: u64,
        flags: u64,
    },
    /// `struct open_how` of that size: flags, mode, and the way to the file.
    How {
        path: u64,
        how: u64,
        size: u64,
    },
}

impl Work for Server {
    type Call = Call;

    fn next(&self) -> Option<Call> {
        // An error on a listener that is ours and open means that the kernel can tell us nothing any more.
        let notification = self.listener.receive().ok().flatten()?;
        let [first, second, third, fourth, ..] = notification.arguments;
        let target = match notification.call {
            libc::SYS_ioctl => self.descriptions.find(notification.thread, first).map_or(Target::Other, Target::Request),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => Target::Open(Open::Flags { path: first, flags: second }),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => Target::Open(Open::Flags { path: first, flags: CREAT }),
            libc::SYS_openat => Target::Open(Open::Flags { path: second, flags: third }),
            libc::SYS_openat2 => Target::Open(Open::How { path: second, how: third, size: fourth }),
            _ => Target::Other,
        };
        Some(Call { notification, target })
    }

    fn is_slow(&self, call: &Call) -> bool {
        matches!(&call.target, Target::Request(description) if description.value.is_slow())
    }

    fn answer(&self, call: Call) {
        let id = call.notification.id;
        // A panic is a defect; the program hears of an error, and is not left waiting for ever.
        let verdict = catch_unwind(AssertUnwindSafe(|| self.verdict(&call))).unwrap_or(Verdict::Error(libc::EIO));
        self.listener.answer(id, verdict);
    }

    fn over(&self) {
        // Should it be over by an error, those who still call are not left waiting.
        self.listener.close(self.descriptions.stopper());
        self.descriptions.stop();
        self.clients.stop();
    }
}

impl Server {
    fn verdict(&self, call: &Call) -> Verdict {
        let notification = &call.notification;
        let [_, request, argument, ..] = notification.arguments;
        let is_crypt = notification.call == libc::SYS_ioctl && request as u32 == CIOCCRYPT;
        let nothing = Guess::default();
        let (crypt, guess) = match &call.target {
            Target::Request(description) => (is_crypt.then_some(argument), &description.value.guess),
            _ => (None, &nothing),
        };
        let memory = StoppedMemory::new(&self.listener, notification.id, notification.thread, crypt, guess);
        match &call.target {
            Target::Other => Verdict::Continue,
            Target::Open(open) => self.open(notification, open, &memory).unwrap_or_else(|errno| Verdict::Error(errno.0)),
            Target::Request(description) => {
                let begin = Instant::now();
                let verdict = self.request(notification, description, &memory);
                description.value.took(begin.elapsed());
                verdict.map_or_else(|errno| Verdict::Error(errno.0), |value| Verdict::Value(value.into()))
            }
        }
    }

    /// Whatever is not plainly an open of the device is the kernel's to judge: it reads path and flags again, so that a program that changes them
    /// meanwhile deceives nobody but itself.
    fn open(&self, notification: &Notification, open: &Open, memory: &StoppedMemory<'_>) -> Result<Verdict, Errno> {
        let (Open::Flags { path, .. } | Open::How { path, .. }) = *open;
        let mut name = [0; PATH.len()];
        if memory.read_some(path, &mut name) != Ok(PATH.len()) || name != PATH {
            return Ok(Verdict::Continue);
        }
        let flags = match *open {
            Open::Flags { flags, .. } => flags,
            Open::How { size, .. } if size < HOW as u64 => return Ok(Verdict::Continue),
            Open::How { how, .. } => {
                let mut fields = [[0; 8]; HOW / 8];
                memory.read(how, fields.as_flattened_mut())?;
                let [flags, _, resolve] = fields.map(u64::from_ne_bytes);
                // The name of a file in another folder, which the program takes for its root or does not want to leave.
                if resolve & (libc::RESOLVE_IN_ROOT | libc::RESOLVE_BENEATH) != 0 {
                    return Ok(Verdict::Continue);
                }
                flags
            }
        };
        // The kernel's `int`; bits above it are refused by openat2 and cut off by the others.
        let flags = flags as i32;
        let has = |flag| flags & flag == flag;
        if has(libc::O_PATH) {
            return Ok(Verdict::Continue);
        } else if has(libc::O_CREAT | libc::O_EXCL) {
            return Err(Errno(libc::EEXIST));
        } else if has(libc::O_DIRECTORY) {
            return Err(Errno(libc::ENOTDIR));
        }
        // Our own table being full is the system's failure, as the program sees it.
        let theirs =
            description::open(&self.descriptions, Device::new(self.clients.of(notification.thread))).map_err(|_| Errno(libc::ENFILE))?;
        let given = self.listener.give(notification.id, theirs.as_fd(), has(libc::O_CLOEXEC));
        given.map(|number| Verdict::Value(number.into())).map_err(errno)
    }

    fn request(&self, notification: &Notification, description: &Description, memory: &StoppedMemory<'_>) -> Result<i32, Errno> {
        let [fd, request, argument, ..] = notification.arguments;
        // The kernel takes the lower half of a request too.
        let request = request as u32;
        let answer = description.value.device.explained(request, argument, memory);
        // Also where it was refused: what it had written by then was written.
        let written = memory.flush();
        if let Some(explain) = &self.explain {
            match (memory.unwritten(), &answer) {
                (Some(unwritten), _) => explain(&unwritten.to_string()),
                (None, Err(refusal)) => explain(&refusal.to_string()),
                (None, Ok(_)) => {}
            }
        }
        let answer = answer.map_err(|refusal| refusal.errno()).and_then(|answer| written.map(|()| answer));
        let theirs = || description.checked(copy_of(notification.thread, fd as i32)?);
        if request == CIOCASYNCCRYPT || request == CIOCASYNCFETCH {
            // Should poll not learn of it, the program still learns of everything by asking.
            let _ = description::tell(description, theirs);
        }
        match answer? {
            Answer::Value(value) => Ok(value),
            Answer::NewDescriptor => {
                // A place that cannot be written is found out before there is a descriptor that nobody knows of.
                memory.write(argument, &(-1i32).to_ne_bytes())?;
                let theirs = theirs().map_err(errno)?;
                let number = self.listener.give(notification.id, theirs.as_fd(), false).map_err(errno)?;
                memory.write(argument, &number.to_ne_bytes()).map(|()| 0)
            }
        }
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_client::{Config, Route};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// The listener of this test is a socket, of which every question is an error.
    #[test]
    fn an_error_of_the_listener_closes_it_although_the_pool_is_kept() {
        let (kernel, listener) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        assert_eq!(rustix::io::write(&kernel, &[0]), Ok(1));
        let server = Server {
            listener: Listener::new(listener),
            descriptions: Arc::new(Descriptions::new().unwrap()),
            clients: Arc::new(Clients::new(Config { route: Route::Here, ..Config::default() }).unwrap()),
            explain: None,
        };
        let pool = bywash_stopped::pool::Pool::start("cryptodev", server).unwrap();
        assert!(pool.wait(None) && pool.is_over());
        // Closed with a byte unread: the end of the stream, or a reset. Open, it would be an error of one that waits.
        rustix::io::ioctl_fionbio(&kernel, true).unwrap();
        let read = rustix::io::read(&kernel, &mut [0; 1]);
        assert!(matches!(read, Ok(0) | Err(rustix::io::Errno::CONNRESET)), "{read:?}");
    }
}
