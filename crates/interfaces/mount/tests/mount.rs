//! What programs see of a mounted volume.

mod common;
mod log;

use bywash_files::geometry::OVERHEAD;
use bywash_mount::Options;
use common::Fixture;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

/// A journal of no file that is there.
const LEFT_JOURNAL: &str = ".bywash-journals/.bywash-journal-00000000000000000000000000000000";

#[test]
fn files_folders_and_links_come_back_after_a_remount() {
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let upper = fixture.upper();
    fs::create_dir_all(upper.join("a/b")).unwrap();
    fs::write(upper.join("a/b/short"), b"attack at dawn").unwrap();
    let large: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    fs::write(upper.join("large"), &large).unwrap();
    let long_name = "x".repeat(255);
    fs::write(upper.join(&long_name), b"long").unwrap();
    symlink("a/b/short", upper.join("link")).unwrap();
    fs::hard_link(upper.join("a/b/short"), upper.join("second")).unwrap();
    fs::set_permissions(upper.join("large"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(upper.join("empty"), b"").unwrap();
    fs::rename(upper.join("a/b"), upper.join("c")).unwrap();
    fs::create_dir(upper.join("d")).unwrap();
    assert!(fs::remove_dir(upper.join("c")).is_err());
    fs::remove_dir(upper.join("d")).unwrap();
    for remounted in [false, true] {
        let inner: Vec<_> = fs::read_dir(upper.join("c")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(inner, ["short"]);
        assert_eq!(fs::read(upper.join("c/short")).unwrap(), b"attack at dawn");
        assert_eq!(fs::read(upper.join("second")).unwrap(), b"attack at dawn");
        assert_eq!(fs::metadata(upper.join("second")).unwrap().nlink(), 2);
        assert!(fs::read(upper.join("large")).unwrap() == large);
        assert_eq!(fs::metadata(upper.join("large")).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read(upper.join(&long_name)).unwrap(), b"long");
        assert_eq!(fs::metadata(upper.join("empty")).unwrap().len(), 0);
        assert_eq!(fs::read_link(upper.join("link")).unwrap().to_str(), Some("a/b/short"));
        let mut names: Vec<_> = fs::read_dir(&upper).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["a", "c", "empty", "large", "link", "second", &long_name]);
        if !remounted {
            fixture.unmount();
            assert!(fixture.mount(false));
        }
    }
}

#[test]
fn a_file_is_open_as_long_as_somebody_has_it_open() {
    let Some(fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    file.write_all(b"one two").unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(b" three").unwrap();
    file.sync_all().unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two three");
    // Another of the same name, while the first is there still.
    fs::write(&path, b"other").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 13);
    assert_eq!(fs::read(&path).unwrap(), b"other");
}

#[test]
fn files_are_changed_in_place_and_cut() {
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    fs::write(&path, vec![b'a'; 200_000]).unwrap();
    fixture.unmount();
    assert!(fixture.mount(false));
    let file = File::options().read(true).write(true).open(&path).unwrap();
    file.write_all_at(b"bbbb", 100_000).unwrap();
    file.set_len(150_000).unwrap();
    file.set_len(160_000).unwrap();
    drop(file);
    let mut appended = File::options().append(true).open(&path).unwrap();
    appended.write_all(b"end").unwrap();
    drop(appended);
    for remounted in [false, true] {
        let text = fs::read(&path).unwrap();
        assert_eq!(text.len(), 160_003);
        assert!(text[..100_000].iter().all(|byte| *byte == b'a'));
        assert_eq!(&text[100_000..100_004], b"bbbb");
        assert!(text[150_000..160_000].iter().all(|byte| *byte == 0));
        assert_eq!(&text[160_000..], b"end");
        if !remounted {
            fixture.unmount();
            assert!(fixture.mount(false));
        }
    }
}

/// What was last seen of when files were changed is what they say after a new mount, whoever dated the change: the kernel writes some behind within the moment of their birth, and tells nobody.
fn times_outlive_a_mount(fixture: Option<Fixture>) {
    let Some(mut fixture) = fixture else { return };
    let upper = fixture.upper();
    let pause = || std::thread::sleep(Duration::from_millis(30));
    for number in 0..50 {
        fs::write(upper.join(format!("at once {number}")), b"text").unwrap();
    }
    let later = File::create(upper.join("later")).unwrap();
    pause();
    later.write_all_at(&[1; 300_000], 0).unwrap();
    drop(later);
    File::create(upper.join("empty")).unwrap();
    for (name, offset) in [("appended", 4), ("overwritten", 0)] {
        fs::write(upper.join(name), b"text").unwrap();
        pause();
        File::options().write(true).open(upper.join(name)).unwrap().write_all_at(b"more", offset).unwrap();
    }
    fs::write(upper.join("cut"), b"text").unwrap();
    pause();
    File::options().write(true).open(upper.join("cut")).unwrap().set_len(2).unwrap();
    fs::write(upper.join("anew"), b"text").unwrap();
    pause();
    fs::write(upper.join("anew"), b"text").unwrap();
    let times = |upper: &Path| {
        let time = |entry: fs::DirEntry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap());
        let mut times: Vec<_> = fs::read_dir(upper).unwrap().map(|entry| time(entry.unwrap())).collect();
        times.sort();
        times
    };
    let seen = times(&upper);
    fixture.unmount();
    assert!(fixture.mount(false));
    assert_eq!(times(&fixture.upper()), seen);
    // What is written in a mount that found the file there is dated too.
    let path = upper.join("later");
    File::options().append(true).open(&path).unwrap().write_all(b"end").unwrap();
    let seen = fs::metadata(&path).unwrap().modified().unwrap();
    fixture.unmount();
    assert!(fixture.mount(false));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), seen);
}

#[test]
fn times_outlive_a_mount_of_a_volume() {
    times_outlive_a_mount(Fixture::new(&Options::default()));
}

#[test]
fn times_outlive_a_mount_of_gocryptfs() {
    times_outlive_a_mount(Fixture::gocryptfs());
}

#[test]
fn a_file_that_was_cut_off_does_not_read_as_an_empty_one() {
    let Some(mut fixture) = Fixture::new(&Options { chunk_size: 4096, ..Options::default() }) else { return };
    fs::write(fixture.upper().join("file"), vec![b'a'; 3 * 4096]).unwrap();
    fixture.unmount();
    let files = fs::read_dir(fixture.lower()).unwrap().map(|entry| entry.unwrap().path());
    let lower: Vec<_> = files.filter(|path| !path.file_name().unwrap().to_str().unwrap().contains("bywash")).collect();
    let [lower] = &lower[..] else { panic!("one file: {lower:?}") };
    let whole = fs::read(lower).unwrap();
    // What is stored of three chunks, each of which has a nonce and a tag, behind the header.
    let stored = |chunks: usize| chunks * (4096 + OVERHEAD);
    let header = whole.len() - stored(3);
    for len in
        [0, 1, header - 1, header, header + 1, header + stored(1) + 1, header + stored(2), header + stored(2) + OVERHEAD, whole.len() - 1]
    {
        fs::write(lower, &whole[..len]).unwrap();
        // For who only reads, beside a journal that stays: it may change lengths, which are asked of the texts then.
        for is_read_only in [false, true] {
            if is_read_only {
                fs::write(fixture.lower().join(LEFT_JOURNAL), b"").unwrap();
            }
            assert!(fixture.mount(is_read_only));
            let what = format!("{len} bytes of {}, {is_read_only}", whole.len());
            let path = fixture.upper().join("file");
            let refused = fs::read(&path).expect_err(&what);
            assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{what}");
            assert!(fs::metadata(&path).is_ok(), "it can be looked at");
            fixture.unmount();
        }
        fs::remove_file(fixture.lower().join(LEFT_JOURNAL)).unwrap();
    }
    fs::write(lower, &whole).unwrap();
    assert!(fixture.mount(false));
    assert_eq!(fs::read(fixture.upper().join("file")).unwrap(), vec![b'a'; 3 * 4096]);
    fs::remove_file(fixture.upper().join("file")).unwrap();
}

#[test]
fn what_is_not_authentic_is_named_in_the_log() {
    log::keep();
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let [link, folder] = ["link", "folder"].map(|name| fixture.upper().join(name));
    symlink("target", &link).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "text").unwrap();
    fixture.unmount();
    let mut lower_folder = None;
    for entry in fs::read_dir(fixture.lower()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            fs::remove_file(&path).unwrap();
            symlink("elsewhere", &path).unwrap();
        } else if path.join(".bywash-folder").exists() {
            fs::remove_file(path.join(".bywash-folder")).unwrap();
            lower_folder = path.file_name().map(|name| name.to_str().unwrap().to_owned());
        }
    }
    assert!(fixture.mount(false));
    fs::read_link(&link).unwrap_err();
    fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).unwrap_err();
    let of = |path: &Path| format!("(find -inum {})", fs::symlink_metadata(path).unwrap().ino());
    let said = |words: &str| log::lines(words).pop().unwrap_or_default();
    assert!(said("target is not authentic").contains(&of(&link)), "{:?}", log::lines(""));
    let of_folder = said("has no identity any more");
    assert!(of_folder.contains(&of(&folder)) && of_folder.contains(&lower_folder.unwrap()), "{of_folder}");
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg("-T").args([from, to]).status().unwrap();
    assert!(status.success());
}

/// A copy of a volume: the files as they were at one time, and the journals as at another.
fn copied(files: &Path, journals: &Path, folder: &Path) -> Fixture {
    let [lower, upper] = ["copy", "copy.plain"].map(|name| folder.join(name));
    fs::create_dir(&upper).unwrap();
    copy(files, &lower);
    fs::remove_dir_all(lower.join(".bywash-journals")).unwrap();
    copy(&journals.join(".bywash-journals"), &lower.join(".bywash-journals"));
    Fixture::of(&lower, &upper, true).unwrap()
}

fn journals(lower: &Path) -> usize {
    let names = fs::read_dir(lower.join(".bywash-journals")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".bywash-journal-")).count()
}

/// What was written in place may be in the journal alone: who only reads, and recovers nothing, finds it there, and as long as it is.
#[test]
fn a_read_only_mount_after_a_crash_shows_what_was_synced() {
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    fs::write(&path, vec![b'a'; 5000]).unwrap();
    fixture.unmount();
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before");
    copy(fixture.lower(), &before);
    assert!(fixture.mount(false));
    let file = File::options().append(true).open(&path).unwrap();
    (&file).write_all(&[b'b'; 5]).unwrap();
    file.sync_all().unwrap();
    (&file).write_all(&[b'c'; 70_000]).unwrap();
    file.sync_all().unwrap();
    let after = copied(&before, fixture.lower(), folder.path());
    let path = after.upper().join("file");
    assert_eq!(fs::metadata(&path).unwrap().len(), 75_005);
    assert!(fs::read(&path).unwrap() == [vec![b'a'; 5000], vec![b'b'; 5], vec![b'c'; 70_000]].concat());
}

/// A file that was written in place, and synced, so that it has a journal.
fn changed_in_place(path: &Path, lower: &Path) {
    fs::write(path, vec![b'a'; 300_000]).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"attack at dawn", 100_000).unwrap();
    file.sync_all().unwrap();
    assert_eq!(journals(lower), 1);
}

fn wait_for_no_journal(lower: &Path) {
    let begun = Instant::now();
    while journals(lower) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody removes it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// That a file was removed may be on the disk later than that its journal was: then it is there again after a power cut, and must be what was last synced.
#[test]
fn a_journal_stays_until_its_file_is_gone_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let [lower, upper, before] = ["unordered", "upper", "before"].map(|name| folder.path().join(name));
    for folder in [&lower, &upper] {
        fs::create_dir(folder).unwrap();
    }
    if Fixture::new(&Options::default()).is_none() {
        return;
    }
    let mut fixture = Fixture::over(&lower, &upper, &Options::default(), Duration::from_secs(3600));
    let path = upper.join("file");
    fs::write(&path, vec![b'a'; 300_000]).unwrap();
    fixture.unmount();
    copy(&lower, &before);
    assert!(fixture.mount(false));
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"attack at dawn", 100_000).unwrap();
    file.sync_all().unwrap();
    drop(file);
    fs::remove_file(&path).unwrap();
    // The kernel forgets it in its own time.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(journals(&lower), 1);
    let after = copied(&before, &lower, folder.path());
    let text = fs::read(after.upper().join("file")).unwrap();
    assert!(text.len() == 300_000 && text[100_000..].starts_with(b"attack at dawn"));
    drop(after);
    fixture.unmount();
    assert_eq!(journals(&lower), 0);
}

/// Where a file system keeps the order a journal goes with its file, elsewhere with the next turn; where a file was cut to nothing, which is synced then, at once.
#[test]
fn journals_of_files_that_are_gone_are_removed_in_time() {
    let folder = tempfile::tempdir().unwrap();
    for (name, turn) in [("ordered", Duration::from_secs(3600)), ("unordered", Duration::from_millis(200))] {
        let [lower, upper] = [name.to_owned(), format!("{name}.plain")].map(|name| folder.path().join(name));
        for folder in [&lower, &upper] {
            fs::create_dir(folder).unwrap();
        }
        if Fixture::new(&Options::default()).is_none() {
            return;
        }
        let kind = rustix::fs::statfs(&lower).unwrap().f_type as u64;
        if name == "ordered" && ![0xef53, 0x5846_5342, 0x0102_1994].contains(&kind) {
            eprintln!("skipped: {} is on none of ext4, XFS and tmpfs", folder.path().display());
            continue;
        }
        let mut fixture = Fixture::over(&lower, &upper, &Options::default(), turn);
        let path = upper.join("file");
        changed_in_place(&path, &lower);
        fs::remove_file(&path).unwrap();
        wait_for_no_journal(&lower);
        changed_in_place(&path, &lower);
        let cut = File::create(&path).unwrap();
        assert_eq!(journals(&lower), 0);
        drop(cut);
        fixture.unmount();
        assert!(fixture.mount(false));
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    }
}
