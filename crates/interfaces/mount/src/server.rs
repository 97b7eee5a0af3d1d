//! The process that serves a mount, for who waits until it has ended: then all is settled, and whatever it had locked is free.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// An attribute that the root has for who is about to unmount, and that nobody else sees: the number of the process, and of the namespace in which that is its number.
const SERVER: &std::ffi::CStr = c"bywash.server";
/// Bytes of its longest value.
const ANSWER_BYTES_MAX: usize = 64;
/// How long nobody asks why it takes so long.
pub(crate) const MOMENT: Duration = Duration::from_secs(1);

/// The value of that attribute, if it is the one that is asked for.
pub(crate) fn answer(name: &[u8]) -> Option<Vec<u8>> {
    (name == SERVER.to_bytes()).then(|| identity(std::process::id()).into_bytes())
}

fn identity(process: u32) -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{process} {}", namespace.display())
}

/// A process that serves a mount.
pub struct Server(OwnedFd);

impl Server {
    /// Of what is mounted at a path. `None` where that is not known: it has ended, it is another user's, or has its number in another namespace.
    pub fn of(mounted: &Path) -> Option<Self> {
        let folder = std::fs::File::open(mounted).ok()?;
        let mut answer = [0; ANSWER_BYTES_MAX];
        let len = rustix::fs::fgetxattr(&folder, SERVER, &mut answer).ok()?;
        let answer = core::str::from_utf8(&answer[..len]).ok()?;
        let process: u32 = answer.split(' ').next()?.parse().ok()?;
        if answer != identity(process) {
            return None;
        }
        let process = Pid::from_raw(i32::try_from(process).ok()?)?;
        pidfd_open(process, PidfdFlags::empty()).ok().map(Self)
    }

    /// Returns when it has ended; if that takes longer than a moment, `waits` is called in between.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait(&self, waits: impl FnOnce()) -> io::Result<()> {
        let begun = Instant::now();
        if !self.ends_within(Some(MOMENT), begun)? {
            waits();
            self.ends_within(None, begun)?;
        }
        Ok(())
    }

    fn ends_within(&self, bound: Option<Duration>, begun: Instant) -> io::Result<bool> {
        loop {
            let left = bound.map(|bound| bound.saturating_sub(begun.elapsed()));
            let left = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
            match poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)], left.as_ref()) {
                Err(Errno::INTR) => {}
                ended => return Ok(ended? > 0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_waited_for_and_what_is_no_mount_has_none() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let server = Server(pidfd_open(Pid::from_child(&sleeper), PidfdFlags::empty()).unwrap());
        assert!(!server.ends_within(Some(Duration::from_millis(1)), Instant::now()).unwrap());
        let number = sleeper.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(MOMENT + MOMENT / 5);
            sleeper.kill().unwrap();
            sleeper
        });
        let mut said = false;
        server.wait(|| said = true).unwrap();
        assert!(said, "after a moment");
        let mut sleeper = killer.join().unwrap();
        sleeper.wait().unwrap();
        assert!(Server::of(Path::new("/")).is_none() && Server::of(Path::new("/nowhere")).is_none());
        assert_eq!(answer(b"user.name"), None);
        assert!(answer(SERVER.to_bytes()).is_some_and(|answer| answer.len() < ANSWER_BYTES_MAX && answer != identity(number).into_bytes()));
    }
}
