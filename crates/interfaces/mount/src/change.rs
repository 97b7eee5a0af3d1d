//! Attributes changed: mode, owner, times, length; extended attributes.

use crate::lower::own_path;
use crate::node::{Node, ROOT};
use crate::open::{OMIT, timespec};
use crate::refusal::LOST;
use crate::server;
use crate::tree::Tree;
use crate::xattr;
use fuser::{FileAttr, TimeOrNow};
use rustix::fs::{AtFlags, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::SystemTime;

/// What is to change.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
    /// Whether a file that is cut or extended keeps the rights that it gives to whoever runs it.
    pub(crate) keeps_rights: bool,
}

fn time(asked: Option<TimeOrNow>) -> Timespec {
    match asked {
        None => OMIT,
        Some(TimeOrNow::Now) => timespec(SystemTime::now()),
        Some(TimeOrNow::SpecificTime(time)) => timespec(time),
    }
}

impl Tree {
    pub(crate) fn change(&self, ino: u64, change: &Change) -> io::Result<FileAttr> {
        let node = self.nodes.get(ino)?;
        if let Some(size) = change.size {
            if !change.keeps_rights {
                self.drop_rights(&node)?;
            }
            self.set_len(&node, size)?;
        }
        if change.mode.is_some() || change.uid.is_some() || change.gid.is_some() {
            self.change_rights(&node, change)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            self.change_times(&node, time(change.accessed), time(change.modified))?;
        }
        self.attributes(&node)
    }

    /// Whether a file gives whoever runs it its owner's or its group's rights.
    pub(crate) fn gives_rights(&self, node: &Arc<Node>) -> io::Result<bool> {
        let stat = node.stat(&*self.format, &self.unsynced)?;
        Ok(Mode::from_raw_mode(stat.st_mode & 0o7777).intersects(Mode::SUID | Mode::SGID))
    }

    /// Takes from a file what it gives to whoever runs it, its owner's and its group's rights, for its content is about to change.
    pub(crate) fn drop_rights(&self, node: &Arc<Node>) -> io::Result<()> {
        let stat = node.stat(&*self.format, &self.unsynced)?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        // Without the group's right to run it the bit means something else.
        let lost = if mode.contains(Mode::XGRP) { Mode::SUID | Mode::SGID } else { Mode::SUID };
        if node.kind == FileType::RegularFile && mode.intersects(lost) {
            let handle = node.handle(&*self.format, &self.unsynced)?;
            rustix::fs::chmod(own_path(handle.as_fd()), mode - lost)?;
        }
        Ok(())
    }

    fn change_rights(&self, node: &Arc<Node>, change: &Change) -> io::Result<()> {
        let handle = node.handle(&*self.format, &self.unsynced)?;
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            rustix::fs::chownat(&handle, c"", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = change.mode {
            // What is open for reading but was not read yet must be opened while it can be.
            if node.kind == FileType::RegularFile && node.opened().count > 0 {
                let opened = self.with_file(node, false, |_| Ok(()));
                opened.unwrap_or_else(|error| tracing::debug!("file {}: {error}", node.ino));
            }
            rustix::fs::chmod(own_path(handle.as_fd()), Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    fn change_times(&self, node: &Arc<Node>, last_access: Timespec, last_modification: Timespec) -> io::Result<()> {
        let times = Timestamps { last_access, last_modification };
        let file = node.opened().file.clone();
        if let Some(file) = file {
            // What was written is not stored yet, nor is then when: it says so when that is done.
            let is_later = last_modification.tv_nsec != OMIT.tv_nsec && file.set_modified(last_modification);
            if is_later && last_access.tv_nsec == OMIT.tv_nsec {
                return Ok(());
            }
            return Ok(rustix::fs::futimens(file.lower(), &times)?);
        }
        node.reach(
            &*self.format,
            &self.unsynced,
            |folder, lower| rustix::fs::utimensat(folder, lower, &times, AtFlags::SYMLINK_NOFOLLOW),
            |fd| rustix::fs::utimensat(rustix::fs::CWD, own_path(fd), &times, AtFlags::empty()),
        )
    }

    /// Does something with the path of a node for calls that take nothing else. It is that of a descriptor which names the node and nothing else, so it needs no name,
    /// and a link is not followed.
    fn by_path<T>(&self, node: &Node, work: impl Fn(&str) -> rustix::io::Result<T>) -> io::Result<T> {
        let handle = node.handle(&*self.format, &self.unsynced)?;
        Ok(work(&own_path(handle.as_fd()))?)
    }

    pub(crate) fn set_attribute(&self, ino: u64, name: &[u8], value: &[u8], flags: i32) -> io::Result<()> {
        let node = self.nodes.get(ino)?;
        let lower = self.format.seal_attribute_name(name)?;
        let value = self.format.seal_attribute(&lower, value)?;
        let flags = XattrFlags::from_bits_truncate(flags as u32);
        self.by_path(&node, |path| rustix::fs::setxattr(path, &lower, &value, flags))
    }

    pub(crate) fn attribute(&self, ino: u64, name: &[u8]) -> io::Result<Vec<u8>> {
        if ino == ROOT && name == LOST.to_bytes() {
            return Ok(self.answer_lost());
        }
        if ino == ROOT
            && let Some(answer) = server::answer(name)
        {
            return Ok(answer);
        }
        let lower = self.format.seal_attribute_name(name).map_err(|_| Errno::NODATA)?;
        let node = self.nodes.get(ino)?;
        let value = xattr::value(node.handle(&*self.format, &self.unsynced)?.as_fd(), &lower)?;
        self.format.open_attribute(&lower, &value)
    }

    /// The names, each with a zero after it.
    pub(crate) fn attribute_names(&self, ino: u64) -> io::Result<Vec<u8>> {
        let node = self.nodes.get(ino)?;
        let mut names = Vec::new();
        for name in xattr::names(node.handle(&*self.format, &self.unsynced)?.as_fd())? {
            if let Some(name) = self.format.open_attribute_name(name.to_bytes()) {
                names.extend_from_slice(&name);
                names.push(0);
            }
        }
        Ok(names)
    }

    pub(crate) fn remove_attribute(&self, ino: u64, name: &[u8]) -> io::Result<()> {
        let lower = self.format.seal_attribute_name(name).map_err(|_| Errno::NODATA)?;
        let node = self.nodes.get(ino)?;
        self.by_path(&node, |path| rustix::fs::removexattr(path, &lower))
    }
}
