//! What POSIX and Linux say of each call on files, asked on a mounted volume: outcomes and error numbers. What needs another user is asked by a thread that becomes one,
//! where the test is root.

mod common;

use bywash_mount::Options;
use common::Fixture;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps, XattrFlags, openat, renameat_with, utimensat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The test of each format.
macro_rules! on_every_format {
    ($($name:ident),* $(,)?) => {
        mod native {
            $(#[test] fn $name() { super::on(super::Fixture::new(&super::Options::default()), super::$name) })*
        }
        mod gocryptfs {
            $(#[test] fn $name() { super::on(super::Fixture::gocryptfs(), super::$name) })*
        }
    };
}

on_every_format!(
    files_are_opened_as_asked,
    folders_are_made_and_removed,
    names_are_exchanged_and_not_replaced,
    kinds_do_not_replace_each_other,
    links_count_and_lead,
    names_and_paths_have_their_bounds,
    rights_and_times_are_kept,
    attributes_outlive_a_name,
    lengths_have_their_bounds,
    others_are_kept_out,
    groups_are_inherited,
    a_write_by_another_ends_the_owners_rights,
);

fn on(fixture: Option<Fixture>, test: fn(&Path)) {
    if let Some(mut fixture) = fixture {
        test(&fixture.upper());
        fixture.unmount();
        fixture.assert_clean();
    }
}

/// It fails with that number.
#[track_caller]
fn fails<T>(outcome: Result<T, impl Into<io::Error>>, errno: Errno) {
    let error = outcome.err().expect("it does not fail").into();
    assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()), "{error}");
}

fn open(path: &Path, flags: OFlags) -> Result<File, Errno> {
    openat(CWD, path, flags, Mode::from_raw_mode(0o644)).map(File::from)
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), Errno> {
    renameat_with(CWD, from, CWD, to, flags)
}

fn files_are_opened_as_asked(at: &Path) {
    let file = at.join("file");
    fails(open(&file, OFlags::RDONLY), Errno::NOENT);
    open(&file, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).unwrap().write_all_at(b"text", 0).unwrap();
    fails(open(&file, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL), Errno::EXIST);
    fails(open(&file, OFlags::RDONLY | OFlags::DIRECTORY), Errno::NOTDIR);
    fails(open(&file.join("below"), OFlags::RDONLY), Errno::NOTDIR);
    fails(open(at, OFlags::WRONLY), Errno::ISDIR);
    fails(open(&at.join("file/"), OFlags::RDONLY), Errno::NOTDIR);
    let reader = open(&file, OFlags::RDONLY).unwrap();
    fails(reader.write_at(b"x", 0), Errno::BADF);
    fails(reader.set_len(0), Errno::INVAL);
    let appender = open(&file, OFlags::WRONLY | OFlags::APPEND).unwrap();
    fails(appender.read_at(&mut [0], 0), Errno::BADF);
    rustix::io::write(&appender, b" more").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"text more");
    open(&file, OFlags::WRONLY | OFlags::TRUNC).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    symlink("file", at.join("link")).unwrap();
    fails(open(&at.join("link"), OFlags::RDONLY | OFlags::NOFOLLOW), Errno::LOOP);
    fails(open(&at.join("link"), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL), Errno::EXIST);
    // A dangling link is made good by who creates through it.
    symlink("made", at.join("dangling")).unwrap();
    open(&at.join("dangling"), OFlags::WRONLY | OFlags::CREATE).unwrap();
    assert!(at.join("made").is_file());
    // A pipe is one.
    rustix::fs::mknodat(CWD, at.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fails(open(&at.join("pipe"), OFlags::WRONLY | OFlags::NONBLOCK), Errno::NXIO);
    assert_eq!(fs::symlink_metadata(at.join("pipe")).unwrap().mode(), 0o010600);
}

fn folders_are_made_and_removed(at: &Path) {
    let folder = at.join("folder");
    fs::create_dir(&folder).unwrap();
    fails(fs::create_dir(&folder), Errno::EXIST);
    fails(fs::create_dir(at.join("none/below")), Errno::NOENT);
    File::create(at.join("file")).unwrap();
    fails(fs::create_dir(at.join("file")), Errno::EXIST);
    fails(fs::create_dir(at.join("file/below")), Errno::NOTDIR);
    fails(fs::remove_dir(at.join("file")), Errno::NOTDIR);
    fails(fs::remove_file(&folder), Errno::ISDIR);
    fails(fs::remove_dir(at.join("none")), Errno::NOENT);
    File::create(folder.join("below")).unwrap();
    fails(fs::remove_dir(&folder), Errno::NOTEMPTY);
    fails(fs::remove_dir(at.join("folder/.")), Errno::INVAL);
    fails(fs::remove_dir(at), Errno::BUSY);
    let stands_in = open(&folder, OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
    fs::remove_file(folder.join("below")).unwrap();
    fs::remove_dir(&folder).unwrap();
    // Who stands in it can do nothing any more.
    fails(openat(&stands_in, "new", OFlags::WRONLY | OFlags::CREATE, Mode::RUSR), Errno::NOENT);
    assert_eq!(stands_in.metadata().unwrap().nlink(), 0);
    let links = fs::metadata(at).unwrap().nlink();
    fs::create_dir(&folder).unwrap();
    assert!([links, links + 1].contains(&fs::metadata(at).unwrap().nlink()));
}

fn names_are_exchanged_and_not_replaced(at: &Path) {
    let [one, two, folder] = ["one", "two", "folder"].map(|name| at.join(name));
    fs::write(&one, "1").unwrap();
    fails(rename(&one, &two, RenameFlags::EXCHANGE), Errno::NOENT);
    fs::write(&two, "2").unwrap();
    fails(rename(&one, &two, RenameFlags::NOREPLACE), Errno::EXIST);
    assert_eq!(fs::read_to_string(&one).unwrap(), "1");
    rename(&one, &two, RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read_to_string(&one).unwrap(), fs::read_to_string(&two).unwrap()), ("2".into(), "1".into()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("below"), "3").unwrap();
    rename(&one, &folder, RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read_to_string(&folder).unwrap(), fs::read_to_string(one.join("below")).unwrap()), ("2".into(), "3".into()));
    rename(&folder, &at.join("new"), RenameFlags::NOREPLACE).unwrap();
    assert_eq!(fs::read_to_string(at.join("new")).unwrap(), "2");
    fails(rename(&one, &two, RenameFlags::NOREPLACE | RenameFlags::EXCHANGE), Errno::INVAL);
}

/// Each kind of entry renamed to each.
fn kinds_do_not_replace_each_other(at: &Path) {
    let kinds = ["file", "folder", "full", "link", "none"];
    let make = |kind: &str, path: &Path| match kind {
        "file" => fs::write(path, "file").unwrap(),
        "folder" => fs::create_dir(path).unwrap(),
        "full" => fs::create_dir_all(path.join("below")).unwrap(),
        "link" => symlink("target", path).unwrap(),
        _ => {}
    };
    for from in kinds {
        for to in kinds {
            let place = at.join(format!("{from}-{to}"));
            fs::create_dir(&place).unwrap();
            let [old, new] = ["old", "new"].map(|name| place.join(name));
            make(from, &old);
            make(to, &new);
            let outcome = rename(&old, &new, RenameFlags::empty()).err();
            let is_folder = |kind| matches!(kind, "folder" | "full");
            let wanted = match (from, to) {
                ("none", _) => Some(Errno::NOENT),
                (_, "none") => None,
                (from, to) if is_folder(from) && !is_folder(to) => Some(Errno::NOTDIR),
                (from, to) if !is_folder(from) && is_folder(to) => Some(Errno::ISDIR),
                (_, "full") => Some(Errno::NOTEMPTY),
                _ => None,
            };
            assert_eq!(outcome, wanted, "{from} to {to}");
            assert_eq!(fs::symlink_metadata(&old).is_err(), wanted.is_none() || from == "none", "{from} to {to}");
        }
    }
    fs::create_dir(at.join("outer")).unwrap();
    fails(rename(&at.join("outer"), &at.join("outer/inner"), RenameFlags::empty()), Errno::INVAL);
    fs::create_dir(at.join("outer/inner")).unwrap();
    fails(rename(&at.join("outer/inner"), &at.join("outer"), RenameFlags::empty()), Errno::NOTEMPTY);
}

fn links_count_and_lead(at: &Path) {
    let [file, second, link] = ["file", "second", "link"].map(|name| at.join(name));
    fs::write(&file, "text").unwrap();
    fs::hard_link(&file, &second).unwrap();
    fails(fs::hard_link(&file, &second), Errno::EXIST);
    fails(fs::hard_link(at.join("none"), at.join("third")), Errno::NOENT);
    fails(fs::hard_link(at, at.join("third")), Errno::PERM);
    assert_eq!(fs::metadata(&file).unwrap().ino(), fs::metadata(&second).unwrap().ino());
    rename(&file, &second, RenameFlags::empty()).unwrap();
    assert!(file.exists() && second.exists(), "two names of one file: nothing happens");
    let open = File::options().read(true).write(true).open(&file).unwrap();
    for (name, links) in [(&file, 1), (&second, 0)] {
        fs::remove_file(name).unwrap();
        assert_eq!(open.metadata().unwrap().nlink(), links);
    }
    open.write_all_at(b"gone", 0).unwrap();
    let mut text = [0; 4];
    open.read_exact_at(&mut text, 0).unwrap();
    assert_eq!(&text, b"gone");
    symlink("none", &link).unwrap();
    assert_eq!(fs::symlink_metadata(&link).unwrap().len(), 4);
    fails(fs::read_link(at), Errno::INVAL);
    fails(symlink("other", &link), Errno::EXIST);
    fails(symlink("", at.join("empty")), Errno::NOENT);
    fails(fs::read(&link), Errno::NOENT);
    for (from, to) in [("a", "b"), ("b", "a")] {
        symlink(to, at.join(from)).unwrap();
    }
    fails(fs::read(at.join("a")), Errno::LOOP);
    fails(fs::create_dir(at.join("a/below")), Errno::LOOP);
}

fn names_and_paths_have_their_bounds(at: &Path) {
    for len in [1, 15, 16, 159, 160, 175, 176, 254, 255] {
        let path = at.join("n".repeat(len));
        fs::write(&path, "x").unwrap();
        assert!(fs::read_dir(at).unwrap().any(|entry| entry.unwrap().path() == path), "{len}");
        let other = at.join("m".repeat(len));
        rename(&path, &other, RenameFlags::empty()).unwrap();
        fs::remove_file(&other).unwrap();
    }
    let long = at.join("n".repeat(256));
    fails(fs::write(&long, "x"), Errno::NAMETOOLONG);
    fails(fs::create_dir(&long), Errno::NAMETOOLONG);
    fails(symlink("x", &long), Errno::NAMETOOLONG);
    fails(fs::remove_file(&long), Errno::NAMETOOLONG);
    fails(fs::metadata(&long), Errno::NAMETOOLONG);
    fails(fs::metadata(at.join("n/".repeat(2100))), Errno::NAMETOOLONG);
    fails(symlink("t".repeat(4096), at.join("link")), Errno::NAMETOOLONG);
    symlink("t".repeat(3000), at.join("link")).unwrap();
    assert_eq!(fs::read_link(at.join("link")).unwrap().as_os_str().len(), 3000);
    // A tree as deep as one path can say.
    let mut deep = at.to_owned();
    while deep.as_os_str().len() < 3800 {
        deep.push("d".repeat(100));
        fs::create_dir(&deep).unwrap();
    }
    fs::write(deep.join("file"), "deep").unwrap();
    assert_eq!(fs::read(deep.join("file")).unwrap(), b"deep");
    // Any bytes are a name, but for two.
    use std::os::unix::ffi::OsStrExt;
    let odd = at.join(std::ffi::OsStr::from_bytes(b"\xff\n\x01 *'\\"));
    fs::write(&odd, "odd").unwrap();
    assert_eq!(fs::read(&odd).unwrap(), b"odd");
}

fn rights_and_times_are_kept(at: &Path) {
    let [file, link] = ["file", "link"].map(|name| at.join(name));
    fs::write(&file, "text").unwrap();
    for mode in [0o000, 0o400, 0o640, 0o4755, 0o2755, 0o1777, 0o7777] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
    }
    // Nanoseconds, the time before 1970, and beyond 2038.
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    for (accessed, modified) in [(time(1, 1), time(2, 999_999_999)), (time(4_000_000_000, 123_456_789), time(1_000_000_000, 0))] {
        utimensat(CWD, &file, &Timestamps { last_access: accessed, last_modification: modified }, AtFlags::empty()).unwrap();
        let shown = fs::metadata(&file).unwrap();
        assert_eq!((shown.atime(), shown.atime_nsec()), (accessed.tv_sec, accessed.tv_nsec));
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (modified.tv_sec, modified.tv_nsec));
    }
    // A link's own.
    symlink("file", &link).unwrap();
    let times = Timestamps { last_access: time(5, 5), last_modification: time(6, 6) };
    utimensat(CWD, &link, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    assert_eq!(fs::symlink_metadata(&link).unwrap().mtime(), 6);
    assert_eq!(fs::metadata(&file).unwrap().mtime(), 1_000_000_000);
    // Written to and told its time while it is open: that stays.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let open = File::options().write(true).open(&file).unwrap();
    open.write_all_at(b"more", 100).unwrap();
    rustix::fs::futimens(&open, &times).unwrap();
    drop(open);
    assert_eq!(fs::metadata(&file).unwrap().mtime(), 6);
    // A change of names is a change of the folder.
    let before = fs::metadata(at).unwrap().mtime();
    utimensat(CWD, at, &times, AtFlags::empty()).unwrap();
    File::create(at.join("new")).unwrap();
    assert!(fs::metadata(at).unwrap().mtime() >= before);
}

fn attributes_outlive_a_name(at: &Path) {
    let [file, second] = ["file", "second"].map(|name| at.join(name));
    fs::write(&file, "text").unwrap();
    fs::hard_link(&file, &second).unwrap();
    match rustix::fs::setxattr(&file, "user.colour", b"red", XattrFlags::CREATE) {
        Err(Errno::OPNOTSUPP) => return eprintln!("skipped: the lower file system has no extended attributes"),
        outcome => outcome.unwrap(),
    }
    fails(rustix::fs::setxattr(&file, "user.colour", b"blue", XattrFlags::CREATE), Errno::EXIST);
    fails(rustix::fs::setxattr(&file, "user.other", b"blue", XattrFlags::REPLACE), Errno::NODATA);
    let value = |path: &Path| {
        let mut value = [0; 16];
        rustix::fs::getxattr(path, "user.colour", &mut value).map(|len| value[..len].to_vec())
    };
    // The name by which it was known goes.
    fs::remove_file(&file).unwrap();
    assert_eq!(value(&second).unwrap(), b"red");
    let open = File::open(&second).unwrap();
    fs::remove_file(&second).unwrap();
    let mut gone = [0; 16];
    assert_eq!(rustix::fs::fgetxattr(&open, "user.colour", &mut gone), Ok(3));
    rustix::fs::fremovexattr(&open, "user.colour").unwrap();
    fails(rustix::fs::fgetxattr(&open, "user.colour", &mut gone), Errno::NODATA);
    fails(rustix::fs::setxattr(at, "trusted.colour", b"red", XattrFlags::empty()), Errno::OPNOTSUPP);
}

fn lengths_have_their_bounds(at: &Path) {
    let path = at.join("file");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(100_000).unwrap();
    file.write_all_at(b"end", 299_997).unwrap();
    let text = fs::read(&path).unwrap();
    assert_eq!(text.len(), 300_000);
    assert!(text[..299_997].iter().all(|byte| *byte == 0));
    fails(rustix::fs::ftruncate(&file, i64::MAX as u64 + 1), Errno::INVAL);
    // What there is no room for is refused at once, and not when the disk is full.
    match rustix::fs::ftruncate(&file, 1 << 60) {
        Ok(()) => file.set_len(300_000).unwrap(),
        // Where holes take no room, the lower file system's own bound may come first.
        outcome => assert!([Err(Errno::NOSPC), Err(Errno::FBIG)].contains(&outcome)),
    }
    assert_eq!(file.metadata().unwrap().len(), 300_000);
}

/// Does something as another user, if the test may.
fn as_another(work: impl FnOnce() + Send) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes another user");
        return false;
    }
    let other = || {
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let (uid, gid) = (rustix::fs::Uid::from_raw(65_534), rustix::fs::Gid::from_raw(65_534));
        set_thread_groups(&[]).unwrap();
        set_thread_res_gid(gid, gid, gid).unwrap();
        set_thread_res_uid(uid, uid, uid).unwrap();
        work();
    };
    std::thread::scope(|scope| scope.spawn(other).join().unwrap());
    true
}

fn others_are_kept_out(at: &Path) {
    // The mount itself lets nobody else in.
    let at: PathBuf = at.into();
    as_another(|| fails(fs::read_dir(&at), Errno::ACCESS));
}

fn groups_are_inherited(at: &Path) {
    let folder = at.join("folder");
    fs::create_dir(&folder).unwrap();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root gives files away");
    }
    std::os::unix::fs::chown(&folder, None, Some(1234)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).unwrap();
    fs::write(folder.join("file"), "x").unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    symlink("x", folder.join("link")).unwrap();
    for name in ["file", "inner", "link"] {
        assert_eq!(fs::symlink_metadata(folder.join(name)).unwrap().gid(), 1234, "{name}");
    }
    assert_eq!(fs::metadata(folder.join("inner")).unwrap().mode() & 0o2000, 0o2000);
    // What runs as its owner does not any more once it is another's.
    fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o6755)).unwrap();
    std::os::unix::fs::chown(folder.join("file"), Some(1), Some(1)).unwrap();
    assert_eq!(fs::metadata(folder.join("file")).unwrap().mode() & 0o7777, 0o755);
}

fn a_write_by_another_ends_the_owners_rights(at: &Path) {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let path = at.join("file");
    fs::write(&path, "text").unwrap();
    // One who may write but not do this, as anybody else's thread.
    let without = |work: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut own = capabilities(None).unwrap();
                own.effective.remove(CapabilitySet::FSETID);
                set_capabilities(None, own).unwrap();
                work();
            });
            thread.join().unwrap();
        });
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6755);
    without(&|| File::options().write(true).open(&path).unwrap().write_all_at(b"x", 1).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
    // Cut, it is another text as well; but who has the capability, whoever he is, says himself what it is to be.
    let cut = || File::options().write(true).open(&path).unwrap().set_len(2).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    if capabilities(None).unwrap().effective.contains(CapabilitySet::FSETID) {
        cut();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6755);
    }
    without(&cut);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}
