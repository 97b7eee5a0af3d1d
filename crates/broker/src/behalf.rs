//! Clients that compute for another process: what the kernel says of it goes into the accounts, if they may speak for it.

use bywash_core::trace::Whose;
use bywash_protocol::Peer;
use rustix::fd::{AsRawFd, OwnedFd};
use std::fs::read_to_string;

/// The process of a descriptor (`pidfd_open(2)`) that a peer has sent, which calls it so.
///
/// # Errors
/// In words: it is no such descriptor, or the process has ended, or is of another user, and the peer is not root.
pub(crate) fn whose(process: &OwnedFd, peer: Peer, program: String) -> Result<Whose, String> {
    let described = read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).unwrap_or_default();
    let pid = value(&described, "Pid:").ok_or("what it sent with its first message is no descriptor of a process")?;
    let ended = || format!("the process that it computes for has ended, or cannot be seen from here ({pid})");
    let pid: u32 = pid.parse().ok().filter(|&pid| pid > 0).ok_or_else(ended)?;
    let status = read_to_string(format!("/proc/{pid}/status")).map_err(|_| ended())?;
    let (uid, gids) = effective(&status).ok_or_else(ended)?;
    // While the descriptor has that number still, what was read is of its process and of no other that has got the number since.
    let again = read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).unwrap_or_default();
    if value(&again, "Pid:") != value(&described, "Pid:") {
        return Err(ended());
    } else if !may_speak(peer.uid, uid) {
        return Err(format!("process {pid} is of uid {uid}, for which uid {} may not compute; only root and that user may", peer.uid));
    }
    Ok(Whose { pid, uid, gids, program })
}

fn may_speak(peer: u32, uid: u32) -> bool {
    peer == 0 || peer == uid
}

/// Effective user, and groups, the effective one first (`proc_pid_status(5)`).
fn effective(status: &str) -> Option<(u32, Vec<u32>)> {
    let second = |line| value(status, line)?.split_whitespace().nth(1)?.parse().ok();
    let mut gids = vec![second("Gid:")?];
    gids.extend(value(status, "Groups:").unwrap_or_default().split_whitespace().filter_map(|gid| gid.parse::<u32>().ok()));
    Some((second("Uid:")?, gids))
}

fn value<'a>(text: &'a str, line: &str) -> Option<&'a str> {
    Some(text.lines().find_map(|text| text.strip_prefix(line))?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, getuid, pidfd_open};
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, OwnedFd) {
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        (child, process)
    }

    fn peer(uid: u32) -> Peer {
        Peer { pid: 1, uid, gid: uid }
    }

    #[test]
    fn a_process_is_what_the_kernel_says_and_not_what_its_speaker_is() {
        let (mut child, process) = sleeper();
        let whose = whose(&process, peer(getuid().as_raw()), "its-name".into());
        child.kill().unwrap();
        child.wait().unwrap();
        let whose = whose.unwrap();
        assert_eq!((whose.pid, whose.uid, whose.program.as_str()), (child.id(), getuid().as_raw(), "its-name"));
        assert_eq!(whose.gids[0], rustix::process::getegid().as_raw());
    }

    #[test]
    fn strangers_the_dead_and_what_is_no_process_are_refused() {
        let (mut child, process) = sleeper();
        let stranger = whose(&process, peer(getuid().as_raw() + 1), String::new());
        child.kill().unwrap();
        child.wait().unwrap();
        let dead = whose(&process, peer(0), String::new()).unwrap_err();
        assert!(stranger.unwrap_err().contains("only root and that user may"));
        assert!(dead.contains("has ended"), "{dead}");
        let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert!(whose(&file, peer(0), String::new()).unwrap_err().contains("no descriptor of a process"));
    }

    #[test]
    fn root_speaks_for_all_and_others_for_themselves() {
        assert!(may_speak(0, 33) && may_speak(33, 33) && !may_speak(33, 0) && !may_speak(33, 34));
    }

    #[test]
    fn the_effective_ids_count() {
        let status = "Name:\tx\nUid:\t5\t6\t7\t8\nGid:\t15\t16\t17\t18\nGroups:\t21 22 \n";
        assert_eq!(effective(status), Some((6, vec![16, 21, 22])));
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
