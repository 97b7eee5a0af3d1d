//! Clients that compute for another process: what the kernel says of that goes into the accounts, if they may speak for it.

use bywash_core::trace::Whose;
use bywash_protocol::Peer;
use bywash_protocol::process::{Process, read, value};
use rustix::fd::{AsRawFd, OwnedFd};

/// What a client's first message brings is no descriptor of a process.
#[derive(Debug)]
pub(crate) struct NoProcess;

/// Whose requests a client's are, that has sent these descriptors: the process of the one (`pidfd_open(2)`), or its own, if there is none, or if that has ended, is not to be seen
/// from here or is another user's and the client not root's. No rights hang on it, and work goes on.
///
/// # Errors
/// [`NoProcess`]
pub(crate) fn whose(sent: &[OwnedFd], peer: Peer, own: Whose) -> Result<Whose, NoProcess> {
    let process = match sent {
        [] => return Ok(own),
        [process] if is_process(process) => process,
        _ => return Err(NoProcess),
    };
    let other = pid_of(process).and_then(|pid| {
        let Process { uid, gids, .. } = Process::of(pid)?;
        // While the descriptor has that number still, what was read is of its process and of no other that has got the number since.
        let gids = if peer.uid == 0 { gids } else { own.gids.clone() };
        (pid_of(process) == Some(pid) && may_speak(peer.uid, uid)).then(|| Whose { pid, uid, gids, program: own.program.clone() })
    });
    if other.is_none() {
        tracing::debug!(
            by = peer.pid,
            program = own.program,
            "computes for a process that has ended, cannot be seen from here, or is not of its user"
        );
    }
    Ok(other.unwrap_or(own))
}

/// By the name that the kernel has for it: to be asked what it is in `fdinfo`, a descriptor of another kind may wait for as long as its sender likes.
fn is_process(descriptor: &OwnedFd) -> bool {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).unwrap_or_default();
    let name = name.as_os_str().as_encoded_bytes();
    name == b"anon_inode:[pidfd]" || name.starts_with(b"pidfd:[")
}

/// Its number here, if it lives and can be seen.
fn pid_of(process: &OwnedFd) -> Option<u32> {
    let described = read(&format!("/proc/self/fdinfo/{}", process.as_raw_fd()))?;
    value(&described, "Pid:")?.parse().ok().filter(|&pid| pid > 0)
}

fn may_speak(peer: u32, uid: u32) -> bool {
    peer == 0 || peer == uid
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, getuid, pidfd_open};
    use std::fs::File;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, OwnedFd) {
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        (child, process)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What is found of these descriptors, sent by process 1 of that user.
    fn found(sent: &[OwnedFd], uid: u32) -> Result<(u32, u32, String), NoProcess> {
        let own = Whose { pid: 1, uid, gids: vec![uid], program: "its-name".into() };
        whose(sent, Peer { pid: 1, uid, gid: uid }, own).map(|whose| (whose.pid, whose.uid, whose.program))
    }

    #[test]
    fn a_process_is_what_the_kernel_says_and_not_what_its_speaker_is() {
        let uid = getuid().as_raw();
        let (child, process) = sleeper();
        let (pid, found) = (child.id(), found(&[process], uid).unwrap());
        end(child);
        assert_eq!(found, (pid, uid, "its-name".to_owned()));
    }

    #[test]
    fn for_strangers_and_the_dead_a_client_is_itself() {
        let stranger = getuid().as_raw() + 1;
        let (child, process) = sleeper();
        let process = [process];
        let of_stranger = found(&process, stranger).unwrap();
        end(child);
        assert_eq!((of_stranger.0, of_stranger.1), (1, stranger));
        assert_eq!(found(&process, 0).unwrap().0, 1, "it has ended");
        assert_eq!(found(&[], 5).unwrap(), (1, 5, "its-name".to_owned()));
    }

    #[test]
    fn what_is_no_process_is_refused_unread() {
        let file = || OwnedFd::from(File::open("/dev/null").unwrap());
        let watch = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let (child, process) = sleeper();
        let two = found(&[process, file()], 0);
        end(child);
        assert!(two.is_err() && found(&[file()], 0).is_err() && found(&[watch], 0).is_err());
    }
}
