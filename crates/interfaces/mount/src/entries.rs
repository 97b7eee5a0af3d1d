//! Names: looked up, made, removed, moved.

use crate::attr::device;
use crate::format::LowerName;
use crate::lower::{Folder, own_path, write_id};
use crate::node::{Kept, Node, Place, open_handle, places};
use crate::open::OpenFile;
use crate::tree::{Caller, Tree};
use fuser::FileAttr;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fstat, linkat, mkdirat, mknodat, openat, readlinkat, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Room for a symbolic link's lower target, in bytes.
const TARGET_BYTES: usize = 4096;

impl Tree {
    fn sealed(&self, parent: &Node, name: &[u8]) -> io::Result<(Arc<Kept>, LowerName)> {
        let folder = self.folder(parent)?;
        let lower = folder.seal(&*self.format, name)?;
        Ok((folder, lower))
    }

    /// The node of a name.
    pub(crate) fn look_up(&self, parent: u64, name: &[u8]) -> io::Result<FileAttr> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name).map_err(|error| match error.raw_os_error() {
            // The format's own.
            Some(number) if number == Errno::PERM.raw_os_error() => Errno::NOENT.into(),
            _ => error,
        })?;
        let stat = statat(folder.fd(), &lower.name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.enter(&stat, &parent, lower.name)
    }

    /// The kernel is told of an entry.
    pub(crate) fn enter(&self, stat: &Stat, parent: &Arc<Node>, lower: std::ffi::CString) -> io::Result<FileAttr> {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let is_known = || self.nodes.known(self.nodes.number(stat.st_dev, stat.st_ino)).is_some();
        // Whoever stores it, or cuts it, may do so while it is looked at: then it is looked at again, without him.
        let is_in_use = is_file && (is_known() || self.format.text_len(stat.st_size as u64).is_err());
        let node = self.nodes.enter(stat, parent, lower, |lower| self.is_at(parent, lower, stat));
        let attr = if is_in_use {
            self.attributes(&node)
        } else {
            // Not within the call, for which the lock would be held.
            let open = node.opened().file.clone();
            self.described(&node, stat, open)
        };
        attr.inspect_err(|_| self.nodes.forget(node.ino, 1))
    }

    /// Whether a name is that lower inode's.
    fn is_at(&self, parent: &Node, lower: &CStr, stat: &Stat) -> bool {
        let there = self.folder(parent).and_then(|folder| Ok(statat(folder.fd(), lower, AtFlags::SYMLINK_NOFOLLOW)?));
        there.is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino))
    }

    /// A new regular file; opened as often as `count` says.
    pub(crate) fn create(&self, caller: Caller, parent: u64, name: &[u8], mode: u32, count: usize) -> io::Result<FileAttr> {
        self.with_room(|| self.try_to_create(caller, parent, name, mode, count))
    }

    fn try_to_create(&self, caller: Caller, parent: u64, name: &[u8], mode: u32, count: usize) -> io::Result<FileAttr> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        let birth = self.birth()?;
        folder.add_side_file(&lower, &self.unsynced)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody else's before it is the caller's.
        let first = if self.gives_away(caller) { mode & 0o700 } else { mode };
        let file = Arc::new(File::from(openat(folder.fd(), &lower.name, flags, Mode::from_raw_mode(first & 0o7777))?));
        let make = || {
            self.adopt(caller, mode, &folder, &*file)?;
            if first != mode {
                rustix::fs::fchmod(&*file, Mode::from_raw_mode(mode & 0o7777))?;
            }
            Ok(OpenFile::new(self.format.create(file.clone())?, file.clone(), true, true, self.dating()))
        };
        let open: Arc<OpenFile> = make().inspect_err(|_: &io::Error| {
            let _ = unlinkat(folder.fd(), &lower.name, AtFlags::empty());
        })?;
        let stat = fstat(&*file)?;
        let node = self.nodes.enter(&stat, &parent, lower.name, |lower| self.is_at(&parent, lower, &stat));
        self.opened_new(&node, open.clone(), count);
        drop(birth);
        if count == 0 {
            self.closed(&node, &mut node.opened())?;
        }
        self.described(&node, &stat, Some(open))
    }

    /// A pipe, a socket, a device.
    pub(crate) fn make_node(&self, caller: Caller, parent: u64, name: &[u8], mode: u32, number: u32) -> io::Result<FileAttr> {
        let kind = FileType::from_raw_mode(mode);
        if kind == FileType::RegularFile {
            return self.create(caller, parent, name, mode, 0);
        }
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        let _birth = self.birth()?;
        folder.add_side_file(&lower, &self.unsynced)?;
        mknodat(folder.fd(), &lower.name, kind, Mode::from_raw_mode(mode & 0o7777), device(number))?;
        self.adopt_by_name(caller, mode, &folder, &lower)?;
        let stat = statat(folder.fd(), &lower.name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.enter(&stat, &parent, lower.name)
    }

    /// As [`adopt`](Self::adopt), for what is not opened.
    fn adopt_by_name(&self, caller: Caller, mode: u32, folder: &Folder, lower: &LowerName) -> io::Result<()> {
        if self.gives_away(caller) {
            let parent = fstat(folder.fd())?;
            let inherits = parent.st_mode & Mode::SGID.as_raw_mode() != 0;
            let group = (!inherits).then(|| rustix::fs::Gid::from_raw(caller.gid));
            rustix::fs::chownat(folder.fd(), &lower.name, Some(rustix::fs::Uid::from_raw(caller.uid)), group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if mode & self.umask() != 0 {
            let handle = open_handle(folder.fd(), &lower.name)?;
            rustix::fs::chmod(own_path(handle.as_fd()), Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    pub(crate) fn make_folder(&self, caller: Caller, parent: u64, name: &[u8], mode: u32) -> io::Result<FileAttr> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        let _birth = self.birth()?;
        folder.add_side_file(&lower, &self.unsynced)?;
        mkdirat(folder.fd(), &lower.name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let finish = || {
            let made = openat(folder.fd(), &lower.name, flags, Mode::empty())?;
            write_id(made.as_fd(), &*self.format, &self.unsynced)?;
            self.adopt(caller, mode, &folder, &made)?;
            // The lower file system may have passed the group on with its bit.
            let inherited = fstat(&made)?.st_mode & Mode::SGID.as_raw_mode();
            rustix::fs::fchmod(&made, Mode::from_raw_mode(mode & 0o7777 | inherited))?;
            Ok(fstat(&made)?)
        };
        let stat = finish().inspect_err(|_: &io::Error| {
            let _ = folder.remove_folder(&lower.name, &*self.format, &self.unsynced);
        })?;
        self.enter(&stat, &parent, lower.name)
    }

    pub(crate) fn make_link(&self, caller: Caller, parent: u64, name: &[u8], target: &[u8]) -> io::Result<FileAttr> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        let target = self.format.seal_target(target)?;
        let _birth = self.birth()?;
        folder.add_side_file(&lower, &self.unsynced)?;
        symlinkat(&target[..], folder.fd(), &lower.name)?;
        self.adopt_by_name(caller, 0, &folder, &lower)?;
        let stat = statat(folder.fd(), &lower.name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.enter(&stat, &parent, lower.name)
    }

    pub(crate) fn read_link(&self, node: u64) -> io::Result<Vec<u8>> {
        let node = self.nodes.get(node)?;
        let read = |lower: rustix::io::Result<std::ffi::CString>| lower.map(std::ffi::CString::into_bytes);
        let lower = node.reach(
            &*self.format,
            &self.unsynced,
            |folder, lower| read(readlinkat(folder, lower, Vec::with_capacity(TARGET_BYTES))),
            |fd| read(readlinkat(fd, c"", Vec::with_capacity(TARGET_BYTES))),
        )?;
        self.format.open_target(&lower)
    }

    /// One more name for a node.
    pub(crate) fn link(&self, node: u64, parent: u64, name: &[u8]) -> io::Result<FileAttr> {
        let (node, parent) = (self.nodes.get(node)?, self.nodes.get(parent)?);
        let (folder, lower) = self.sealed(&parent, name)?;
        let _birth = self.birth()?;
        folder.add_side_file(&lower, &self.unsynced)?;
        node.reach(
            &*self.format,
            &self.unsynced,
            |from, old| linkat(from, old, folder.fd(), &lower.name, AtFlags::empty()),
            |fd| linkat(CWD, own_path(fd), folder.fd(), &lower.name, AtFlags::SYMLINK_FOLLOW),
        )?;
        let stat = statat(folder.fd(), &lower.name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.enter(&stat, &parent, lower.name)
    }

    /// A name goes. If the kernel knows its node, and we by no other name, that is held by a descriptor from then on.
    fn remove(
        &self,
        parent: &Node,
        folder: &Folder,
        lower: &CStr,
        remove: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Option<Arc<Node>>> {
        let stat = statat(folder.fd(), lower, AtFlags::SYMLINK_NOFOLLOW)?;
        let Some(node) = self.nodes.known(self.nodes.number(stat.st_dev, stat.st_ino)) else {
            remove()?;
            return Ok(None);
        };
        // Who asks for it meanwhile waits until its new place is known.
        let mut place = node.place();
        let handle = if place.goes_with(parent, lower) { Some(open_handle(folder.fd(), lower)?) } else { None };
        remove()?;
        let is_pinned = handle.is_some();
        if let Some(handle) = handle {
            *place = Place::Pinned(handle);
        }
        drop(place);
        if is_pinned {
            self.pinned(&node, &stat);
        }
        Ok(Some(node))
    }

    /// A node is held by a descriptor since one of its names went, as `stat` was before.
    fn pinned(&self, node: &Arc<Node>, stat: &Stat) {
        if node.kind != FileType::Directory && stat.st_nlink > 1 {
            self.nodes.bound_pinned(node);
        }
    }

    pub(crate) fn unlink(&self, parent: u64, name: &[u8]) -> io::Result<()> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        let node = self.remove(&parent, &folder, &lower.name, || Ok(unlinkat(folder.fd(), &lower.name, AtFlags::empty())?))?;
        folder.drop_side_file(&lower);
        node.iter().for_each(|node| self.let_go(node));
        Ok(())
    }

    pub(crate) fn remove_folder(&self, parent: u64, name: &[u8]) -> io::Result<()> {
        let parent = self.nodes.get(parent)?;
        let (folder, lower) = self.sealed(&parent, name)?;
        self.remove(&parent, &folder, &lower.name, || folder.remove_folder(&lower.name, &*self.format, &self.unsynced))?;
        folder.drop_side_file(&lower);
        Ok(())
    }

    /// The kernel has locked both folders, and lets one rename of folders happen at a time.
    pub(crate) fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: RenameFlags) -> io::Result<()> {
        let (old_parent, new_parent) = (self.nodes.get(from.0)?, self.nodes.get(to.0)?);
        let (old_folder, old) = self.sealed(&old_parent, from.1)?;
        let (new_folder, new) = self.sealed(&new_parent, to.1)?;
        let node_at = |folder: &Folder, lower: &LowerName| match statat(folder.fd(), &lower.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((self.nodes.known(self.nodes.number(stat.st_dev, stat.st_ino)), stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        };
        let (moved, moved_stat) = node_at(&old_folder, &old)?.ok_or(Errno::NOENT)?;
        let target = node_at(&new_folder, &new)?;
        match &target {
            None if flags.contains(RenameFlags::EXCHANGE) => return Err(Errno::NOENT.into()),
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EXIST.into()),
            // Two names of one file, or twice the same name: nothing happens. To exchange them would lock one place twice.
            Some((_, stat)) if (stat.st_dev, stat.st_ino) == (moved_stat.st_dev, moved_stat.st_ino) => return Ok(()),
            _ => {}
        }
        let _birth = self.birth()?;
        new_folder.add_side_file(&new, &self.unsynced)?;
        // A file that is on the disk must not go behind a name that is not.
        self.unsynced.sync()?;
        let replaced = target.as_ref().and_then(|(node, _)| node.as_ref());
        // Who asks for one of them meanwhile waits until its new place is known.
        let (mut moved_place, mut replaced_place) = places(moved.as_deref(), replaced.map(|node| &**node));
        if flags.contains(RenameFlags::EXCHANGE) {
            renameat_with(old_folder.fd(), &old.name, new_folder.fd(), &new.name, flags)?;
            for (place, parent, lower) in [(moved_place, &new_parent, &new), (replaced_place, &old_parent, &old)] {
                if let Some(mut place) = place {
                    *place = Place::At(parent.clone(), lower.name.clone());
                }
            }
            return Ok(());
        }
        let handle = match &replaced_place {
            Some(place) if place.goes_with(&new_parent, &new.name) => Some(open_handle(new_folder.fd(), &new.name)?),
            _ => None,
        };
        let is_pinned = handle.is_some();
        let is_folder = target.as_ref().is_some_and(|(_, stat)| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        if is_folder {
            if FileType::from_raw_mode(moved_stat.st_mode) != FileType::Directory {
                return Err(Errno::ISDIR.into());
            }
            // The lower one is not empty, for it has an identity.
            new_folder.remove_folder(&new.name, &*self.format, &self.unsynced)?;
        }
        let renamed = match renameat_with(old_folder.fd(), &old.name, new_folder.fd(), &new.name, flags) {
            // Not every file system knows flags; nobody comes between, for the kernel has locked the folders.
            Err(Errno::INVAL) if flags == RenameFlags::NOREPLACE => {
                rustix::fs::renameat(old_folder.fd(), &old.name, new_folder.fd(), &new.name)
            }
            outcome => outcome,
        };
        if let (Some(place), Some(handle)) = (&mut replaced_place, handle)
            && (renamed.is_ok() || is_folder)
        {
            **place = Place::Pinned(handle);
        }
        renamed?;
        if let Some(place) = &mut moved_place {
            **place = Place::At(new_parent.clone(), new.name.clone());
        }
        drop((moved_place, replaced_place));
        if let (Some((Some(node), stat)), true) = (&target, is_pinned) {
            self.pinned(node, stat);
        }
        replaced.iter().for_each(|node| self.let_go(node));
        if old.name != new.name || from.0 != to.0 {
            old_folder.drop_side_file(&old);
        }
        Ok(())
    }
}
