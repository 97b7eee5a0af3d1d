//! Whether whoever asks may change a file that runs as its owner, or its group, without taking that from it: who has the capability `CAP_FSETID`. The kernel knows, and `fuser` does not pass it on. And what
//! the process itself takes from modes.

use std::fs::{metadata, read};
use std::io;
use std::os::unix::fs::MetadataExt;

/// The bit of `CAP_FSETID` in the kernel's sets of capabilities.
const FSETID: u32 = 4;

/// Whether that thread has it, which waits for our answer meanwhile; where it cannot be looked at, whether it is root's.
pub(crate) fn keeps_rights(thread: u32, uid: u32) -> bool {
    // In a user namespace of its own a capability says nothing about files.
    let namespace = |of: &str| metadata(format!("/proc/{of}/ns/user")).map(|link| (link.dev(), link.ino()));
    let thread = thread.to_string();
    // Its name in it is whatever bytes it has given itself.
    match (namespace(&thread), namespace("self"), read(format!("/proc/{thread}/status"))) {
        (Ok(theirs), Ok(ours), Ok(status)) => theirs == ours && has(&String::from_utf8_lossy(&status), FSETID),
        _ => uid == 0,
    }
}

/// Whether a capability is in force, by what the kernel says of a thread (`proc_pid_status(5)`).
fn has(status: &str, capability: u32) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).is_some_and(|set| set >> capability & 1 == 1)
}

/// What the process takes from the mode of files that it makes. Asking by a call would change it, and another thread may be making a file.
pub(crate) fn umask() -> io::Result<u32> {
    let status = read("/proc/self/status")?;
    let umask = String::from_utf8_lossy(&status).lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    umask.ok_or_else(|| io::Error::other("/proc/self/status does not say the umask"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_counts_and_not_the_number_of_the_user() {
        assert!(has("Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t0000000000000010\n", FSETID));
        assert!(!has("Name:\tx\nCapInh:\t0000000000000010\nCapEff:\t000001ffffffffef\n", FSETID));
        assert!(!has("Name:\tx\n", FSETID));
        let own = has(&std::fs::read_to_string("/proc/self/status").unwrap(), FSETID);
        assert_eq!(keeps_rights(std::process::id(), 12345), own);
        let cut_in_a_letter = || {
            rustix::thread::set_name(c"\xd0\xbf\xd1").unwrap();
            keeps_rights(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), 12345)
        };
        assert_eq!(std::thread::spawn(cut_in_a_letter).join().unwrap(), own);
        // No thread has this number.
        assert!(keeps_rights(u32::MAX, 0) && !keeps_rights(u32::MAX, 12345));
    }
}
