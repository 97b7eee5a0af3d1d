//! Opens of `/dev/crypto`: pairs that hold the sessions.

use crate::memory::Guess;
use bywash_cryptodev::Device;
use bywash_stopped::pairs::{Pair, Pairs};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// A request that took longer than this is expected to take as long again, microseconds.
const SLOW_US: u32 = 50;

/// All that are open.
pub(crate) type Descriptions = Pairs<Opened>;
/// One of them. Its sessions end when the last copy of the program's end is closed.
pub(crate) type Description = Pair<Opened>;

/// An open of `/dev/crypto`: its sessions.
pub(crate) struct Opened {
    pub(crate) device: Device,
    /// What the program's end says to poll now.
    told: Mutex<Told>,
    last_us: AtomicU32,
    pub(crate) guess: Guess,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Told {
    readable: bool,
    writable: bool,
}

/// A new description; gives the program's end.
pub(crate) fn open(descriptions: &Descriptions, device: Device) -> Result<OwnedFd, Errno> {
    let told = Mutex::new(Told { readable: false, writable: true });
    let theirs = descriptions.open(Opened { device, told, last_us: AtomicU32::new(0), guess: Guess::default() })?;
    set_socket_send_buffer_size(&theirs, 4096)?;
    Ok(theirs)
}

impl Opened {
    /// Whether the next request is likely to take long, by the last one.
    pub(crate) fn is_slow(&self) -> bool {
        self.last_us.load(Ordering::Relaxed) > SLOW_US
    }

    pub(crate) fn took(&self, duration: core::time::Duration) {
        self.last_us.store(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// Has the program's end, `theirs`, say to poll what the device says. A byte from us makes it readable; it is writable
/// unless it has sent us as much as its buffer takes.
pub(crate) fn tell(description: &Description, theirs: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<(), Errno> {
    let mut told = description.value.told.lock().unwrap_or_else(PoisonError::into_inner);
    // Asked within the lock, so that of two threads' answers the later one is what stays.
    let readiness = description.value.device.readiness();
    let wanted = Told { readable: readiness.readable, writable: readiness.writable };
    if wanted.readable {
        // Even if it was told: the program may have read that byte. Where there is no room for another one, there are some.
        match send(description.ours(), &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
    if wanted.writable {
        // What the program itself has written takes room too.
        drain(description.ours());
    }
    if (told.readable && !wanted.readable) || (told.writable && !wanted.writable) {
        let theirs = theirs()?;
        if told.readable && !wanted.readable {
            drain(theirs.as_fd());
        }
        if told.writable && !wanted.writable {
            while send(&theirs, &[0; 512], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok() {}
        }
    }
    *told = wanted;
    Ok(())
}

fn drain(fd: BorrowedFd<'_>) {
    let mut bytes = [0; 512];
    while recv(fd, &mut bytes[..], RecvFlags::DONTWAIT).is_ok_and(|(read, _)| read > 0) {}
}
