//! The audit log: who used which key, when, how often, with what outcome. One JSON object a line, appended, never rewritten.
//!
//! Uses are summed up per session for about two seconds, so that a busy server writes a line, not twenty thousand; openings, refusals and the
//! owner's commands have a line each (openings and refusals up to a bound a second, and then their number). Nothing that was signed or decrypted is told.

use crate::keyring::KeySession;
use crate::throttle::{Bucket, Throttle};
use bywash_core::{Error, Result};
use bywash_protocol::Peer;
use rustix::fs::{FileType, Mode, OFlags};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

/// Openings and refusals that have a line of their own, a second, and ends of sessions: clients must not be able to fill the disk.
const FEW: u32 = 200;

pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
    open: Mutex<Vec<Weak<KeySession>>>,
    few: Mutex<(Bucket, u64)>,
    ends: Mutex<Ends>,
    failing: Throttle,
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
        let file = Mutex::new(file.into());
        let few = Mutex::new((Bucket::new(FEW), 0));
        let ends = Mutex::new(Ends { alone: Bucket::new(FEW), summed: BTreeMap::new() });
        Ok(Self { path: path.to_owned(), file, open: Mutex::default(), few, ends, failing: Throttle::default() })
    }

    /// Writes a line; a log that cannot be written is an error in the broker's own.
    pub(crate) fn write(&self, line: &Line<'_>) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // One call for a line, so that lines of several writers never mix.
        if let Err(error) = lock(&self.file).write_all(&text)
            && let Some(unsaid) = self.failing.pass()
        {
            tracing::error!(unsaid, "the audit log {} cannot be written: {error}", self.path.display());
        }
    }

    /// Writes a line that clients cause, if there are not too many of them; gives whether it did.
    pub(crate) fn few(&self, mut line: Line<'_>) -> bool {
        let mut few = lock(&self.few);
        let said = few.0.take(1.0);
        if said {
            line.unsaid = std::mem::take(&mut few.1);
            self.write(&line);
        } else {
            few.1 += 1;
        }
        said
    }

    /// Writes what a session counted last, with what others did if there are too many of them.
    pub(crate) fn end(&self, line: Line<'_>, counts: Counts) {
        let mut ends = lock(&self.ends);
        if ends.alone.take(1.0) {
            drop(ends);
            return self.write(&Line { counts: Some(counts), ..line });
        }
        let summed = Summed {
            key: line.key.to_owned(),
            fingerprint: line.fingerprint.to_owned(),
            group: line.group,
            peer: [line.pid, line.uid, line.gid],
            comm: line.comm.to_owned(),
            algorithm: line.algorithm.map(str::to_owned),
        };
        *ends.summed.entry(summed).or_default() += counts;
    }

    /// Whether there is something that no line says yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        !lock(&self.ends).summed.is_empty()
    }

    fn write_summed(&self) {
        let summed = std::mem::take(&mut lock(&self.ends).summed);
        for (Summed { key, fingerprint, group, peer: [pid, uid, gid], comm, algorithm }, counts) in &summed {
            let line = Line::new("use", key, Peer { pid: *pid, uid: *uid, gid: *gid }, comm);
            self.write(&Line { fingerprint, group: *group, algorithm: algorithm.as_deref(), counts: Some(*counts), ..line });
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
