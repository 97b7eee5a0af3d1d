//! What the kernel says of a process, in `/proc`.

use std::fs::File;
use std::io::Read;

/// Longest text of `/proc` that is read.
const TEXT_MAX: u64 = 16 << 10;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its groups, the effective one first.
    pub gids: Vec<u32>,
}

impl Process {
    /// The process that a thread belongs to; `None` if this one can see no thread of that number.
    pub fn of(thread: u32) -> Option<Self> {
        Self::parse(&read(&format!("/proc/{thread}/status"))?)
    }

    /// From `proc_pid_status(5)`.
    fn parse(status: &str) -> Option<Self> {
        let number = |line, at| value(status, line)?.split_whitespace().nth(at)?.parse().ok();
        let mut gids = vec![number("Gid:", 1)?];
        gids.extend(value(status, "Groups:").unwrap_or_default().split_whitespace().filter_map(|gid| gid.parse::<u32>().ok()));
        Some(Self { pid: number("Tgid:", 0)?, uid: number("Uid:", 1)?, gids })
    }
}

/// A text of `/proc`, up to a bound; `None` if it cannot be read. The names in it are whatever bytes a program has given itself, and the kernel cuts them in the midst of a letter.
pub fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(TEXT_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What follows this beginning of a line.
pub fn value<'a>(text: &'a str, line: &str) -> Option<&'a str> {
    Some(text.lines().find_map(|text| text.strip_prefix(line))?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getegid, geteuid};
    use rustix::thread::gettid;

    #[test]
    fn a_process_is_found_by_any_of_its_threads() {
        let number = || gettid().as_raw_nonzero().get().unsigned_abs();
        let (thread, other) = std::thread::spawn(move || (number(), Process::of(number()))).join().unwrap();
        let own = Process::of(std::process::id()).unwrap();
        assert_ne!(thread, own.pid);
        assert_eq!((own.pid, own.uid, own.gids[0]), (std::process::id(), geteuid().as_raw(), getegid().as_raw()));
        assert_eq!((other, Process::of(u32::MAX)), (Some(own), None));
    }

    #[test]
    fn a_thread_of_any_name_is_found() {
        let found = std::thread::spawn(|| {
            // A name that the kernel has cut at its fifteenth byte, in the midst of the eighth letter.
            rustix::thread::set_name(c"\xd0\xbf\xd1\x80\xd0\xbe\xd0\xb3\xd1\x80\xd0\xb0\xd0\xbc\xd0").unwrap();
            Process::of(gettid().as_raw_nonzero().get().unsigned_abs())
        });
        assert_eq!(found.join().unwrap(), Process::of(std::process::id()));
    }

    #[test]
    fn the_effective_ids_count() {
        let status = "Name:\tx\nTgid:\t9\nUid:\t5\t6\t7\t8\nGid:\t15\t16\t17\t18\nGroups:\t21 22 \n";
        assert_eq!(Process::parse(status), Some(Process { pid: 9, uid: 6, gids: vec![16, 21, 22] }));
        assert_eq!(Process::parse("Name:\tx\n"), None);
    }
}
