//! The audit log: who used which key, when, how often, with what outcome. One JSON object a line, appended, never rewritten.
//!
//! Uses are summed up per session for about two seconds, so that a busy server writes a line, not twenty thousand; openings, refusals and the
//! owner's commands have a line each (openings and refusals up to a bound a second, and then their number). Nothing that was signed or decrypted is told.
//!
//! Where the log cannot be written, uses are kept and told once it can be: else who fills the disk would use a key unseen.

use crate::keyring::KeySession;
use crate::throttle::{Bucket, Throttle};
use bywash_core::{Error, Result};
use bywash_protocol::Peer;
use rustix::fs::{FileType, Mode, OFlags};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

/// Openings and refusals that have a line of their own, a second, and ends of sessions: clients must not be able to fill the disk.
const FEW: u32 = 200;
/// Sums of ended sessions that are kept while the log cannot be written.
const KEPT_MAX: usize = 4096;

pub(crate) struct Audit {
    path: PathBuf,
    log: Mutex<Log>,
    open: Mutex<Vec<Weak<KeySession>>>,
    few: Mutex<(Bucket, u64)>,
    ends: Mutex<Ends>,
    failing: Throttle,
}

/// The log's file.
struct Log {
    file: File,
    /// Whether its last line has no end: the disk was full in the midst of it.
    is_cut: bool,
}

impl Log {
    /// Appends a line and its end, apart from one that was cut.
    fn append(&mut self, mut line: Vec<u8>) -> std::io::Result<()> {
        line.push(b'\n');
        if self.is_cut {
            line.insert(0, b'\n');
        }
        let mut rest = &line[..];
        while !rest.is_empty() {
            // One call for a line, so that lines of several writers never mix.
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.is_cut = !rest.is_empty();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a log of before ends in the midst of a line. One that cannot be read is taken for whole.
fn is_cut(path: &Path) -> bool {
    let last = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let (mut file, mut last) = (File::from(rustix::fs::open(path, flags, Mode::empty())?), [0]);
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok::<_, IoError>(last)
    };
    last().is_ok_and(|last| last != *b"\n")
}

/// What sessions counted last, before they ended.
struct Ends {
    alone: Bucket,
    /// Of those without a line of their own, in one for all that a process did with a key.
    summed: BTreeMap<Summed, Counts>,
}

/// What lines of uses are summed up by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Summed {
    key: String,
    fingerprint: String,
    group: Option<u32>,
    /// Process, user and group.
    peer: [u32; 3],
    comm: String,
    algorithm: Option<String>,
}

/// A line.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    /// RFC 3339, to the second.
    pub(crate) time: String,
    pub(crate) event: &'a str,
    pub(crate) key: &'a str,
    /// The first 16 digits of the fingerprint.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) fingerprint: &'a str,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The group by which the user may use the key, where it is not by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<u32>,
    pub(crate) pid: u32,
    /// As the client says.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) comm: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) algorithm: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counts: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'a str>,
    /// Openings and refusals before this one that had no line.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) unsaid: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How uses ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Beyond the key's rate.
    pub(crate) over_rate: u64,
    /// Not what the key may be used for.
    pub(crate) not_allowed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.done += more.done;
        self.failed += more.failed;
        self.over_rate += more.over_rate;
        self.not_allowed += more.not_allowed;
    }
}

impl<'a> Line<'a> {
    pub(crate) fn new(event: &'a str, key: &'a str, peer: Peer, comm: &'a str) -> Self {
        let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let Peer { pid, uid, gid } = peer;
        Self {
            time,
            event,
            key,
            fingerprint: "",
            uid,
            gid,
            group: None,
            pid,
            comm,
            algorithm: None,
            counts: None,
            outcome: None,
            unsaid: 0,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Audit {
    /// Opens the log for appending, made with mode 0600 where there is none. One that others may write is no witness, and is refused.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let refuse =
            |why: String| Error::Config { place: path.display().to_string(), reason: format!("the audit log cannot be opened: {why}") };
        let failed = |error: rustix::io::Errno| refuse(error.to_string());
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        let ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0;
        if !ours || !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(refuse("others may write it, or it is no file; name another place, or `chown` and `chmod` it".into()));
        }
        Ok(Self::into_file(path, file.into(), is_cut(path)))
    }

    pub(crate) fn into_file(path: &Path, file: File, is_cut: bool) -> Self {
        let log = Mutex::new(Log { file, is_cut });
        let few = Mutex::new((Bucket::new(FEW), 0));
        let ends = Mutex::new(Ends { alone: Bucket::new(FEW), summed: BTreeMap::new() });
        Self { path: path.to_owned(), log, open: Mutex::default(), few, ends, failing: Throttle::default() }
    }

    /// Writes a line; gives whether it did. A log that cannot be written is an error in the broker's own.
    pub(crate) fn write(&self, line: &Line<'_>) -> bool {
        let written = lock(&self.log).append(serde_json::to_vec(line).unwrap_or_default());
        if let Err(error) = &written
            && let Some(unsaid) = self.failing.pass()
        {
            tracing::error!(unsaid, "the audit log {} cannot be written: {error}", self.path.display());
        }
        written.is_ok()
    }

    /// Writes a line that clients cause, if there are not too many of them; gives whether it did.
    pub(crate) fn few(&self, mut line: Line<'_>) -> bool {
        let mut few = lock(&self.few);
        let said = few.0.take(1.0);
        if said {
            line.unsaid = few.1;
            few.1 = if self.write(&line) { 0 } else { few.1 + 1 };
        } else {
            few.1 += 1;
        }
        said
    }

    /// Writes what a session counted last, with what others did if there are too many of them or it cannot be written now.
    pub(crate) fn end(&self, line: Line<'_>, counts: Counts) {
        let line = Line { counts: Some(counts), ..line };
        let alone = lock(&self.ends).alone.take(1.0);
        if alone && self.write(&line) {
            return;
        }
        let summed = Summed {
            key: line.key.to_owned(),
            fingerprint: line.fingerprint.to_owned(),
            group: line.group,
            peer: [line.pid, line.uid, line.gid],
            comm: line.comm.to_owned(),
            algorithm: line.algorithm.map(str::to_owned),
        };
        *lock(&self.ends).summed.entry(summed).or_default() += counts;
    }

    /// Whether there is something that no line says yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        !lock(&self.ends).summed.is_empty()
    }

    fn write_summed(&self) {
        let mut summed = std::mem::take(&mut lock(&self.ends).summed);
        while let Some(first) = summed.first_entry() {
            let (Summed { key, fingerprint, group, peer: [pid, uid, gid], comm, algorithm }, counts) = (first.key(), *first.get());
            let line = Line::new("use", key, Peer { pid: *pid, uid: *uid, gid: *gid }, comm);
            if !self.write(&Line { fingerprint, group: *group, algorithm: algorithm.as_deref(), counts: Some(counts), ..line }) {
                break;
            }
            first.remove();
        }
        let mut ends = lock(&self.ends);
        for (left, counts) in summed.into_iter().take(KEPT_MAX) {
            *ends.summed.entry(left).or_default() += counts;
        }
    }

    /// Watches a session from now on.
    pub(crate) fn watch(&self, session: Weak<KeySession>) {
        lock(&self.open).push(session);
    }

    /// Writes what has been counted since the last time.
    pub(crate) fn flush(&self) {
        let mut open = lock(&self.open);
        open.retain(|session| session.strong_count() > 0);
        let live: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
        drop(open);
        live.iter().for_each(|session| session.tell());
        self.write_summed();
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.write_summed();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use rustix::fs::{OFlags, fcntl_setfl};

    /// A log that takes no more until it is read, and what reads it.
    pub(crate) fn full() -> (Audit, File) {
        let (reads, writes) = std::io::pipe().unwrap();
        let (reads, writes) = (OwnedFd::from(reads), OwnedFd::from(writes));
        [&reads, &writes].into_iter().for_each(|end| fcntl_setfl(end, OFlags::NONBLOCK).unwrap());
        let mut writes = File::from(writes);
        while writes.write(&[b' '; PAGE]).is_ok() {}
        (Audit::into_file(Path::new("log"), writes, false), reads.into())
    }

    /// What a pipe takes in part.
    const PAGE: usize = 4096;

    /// What was written.
    pub(crate) fn all(reads: &mut File) -> String {
        let mut text = Vec::new();
        assert_eq!(reads.read_to_end(&mut text).unwrap_err().kind(), ErrorKind::WouldBlock);
        String::from_utf8(text).unwrap()
    }

    fn line<'a>(key: &'a str, comm: &'a str) -> Line<'a> {
        Line::new("use", key, Peer { pid: 1, uid: 2, gid: 3 }, comm)
    }

    #[test]
    fn uses_that_cannot_be_written_are_told_once_they_can_be() {
        let (audit, mut reads) = full();
        let one = Counts { done: 1, ..Counts::default() };
        for key in ["a", "b", "a"] {
            audit.end(line(key, ""), one);
        }
        assert!(audit.few(line("c", "")), "it was tried");
        audit.flush();
        assert!(audit.has_unwritten());
        all(&mut reads);
        audit.flush();
        audit.few(line("d", ""));
        let told = all(&mut reads);
        let told: Vec<serde_json::Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let uses: Vec<_> = told[..2].iter().map(|line| (line["key"].as_str().unwrap(), line["counts"]["done"].as_u64())).collect();
        assert_eq!(uses, [("a", Some(2)), ("b", Some(1))]);
        assert_eq!((told.len(), told[2]["unsaid"].as_u64()), (3, Some(1)));
        assert!(!audit.has_unwritten());
    }

    #[test]
    fn a_line_that_is_cut_takes_no_other_with_it() {
        let (audit, mut reads) = full();
        reads.read_exact(&mut [0; PAGE]).unwrap();
        assert!(!audit.write(&line("a", &"x".repeat(PAGE + 1000))));
        let cut = all(&mut reads);
        assert!(audit.write(&line("b", "")) && audit.write(&line("c", "")));
        let told = cut + &all(&mut reads);
        let keys: Vec<_> =
            told.lines().map(|line| serde_json::from_str(line).map(|line: serde_json::Value| line["key"].clone()).ok()).collect();
        assert_eq!(keys, [None, Some("b".into()), Some("c".into())]);
    }

    #[test]
    fn a_log_that_ends_in_the_midst_of_a_line_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for (text, wanted) in [("", "{}\n"), ("{}\n", "{}\n{}\n"), ("{}\n{\"t", "{}\n{\"t\n{}\n")] {
            std::fs::write(&path, text).unwrap();
            let audit = Audit::open(&path).unwrap();
            lock(&audit.log).append(b"{}".to_vec()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted);
        }
    }
}
