//! `bywash mount`, `umount`, `fsck` of a volume and `run --files`, as a user types them. Where nothing can be mounted the test says so and is skipped.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use support::{Running, bywash, eventually, refused, stderr, stdout, succeed};

/// A folder with a key file and a volume `vault`, and an empty folder `plain`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("key")));
        succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("other")));
        fs::create_dir(place.at("plain")).unwrap();
        succeed(&mut place.bywash(&["mount", "--init", "-k", "key", "vault"]));
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bywash(&self, arguments: &[&str]) -> Command {
        let mut command = bywash();
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command
    }

    fn refused(&self, arguments: &[&str], exit: i32, says: &str) {
        refused(&mut self.bywash(arguments), exit, says);
    }

    /// Mounts it; `false`, and the reason said, where that cannot be.
    fn mount(&self) -> bool {
        let output = self.bywash(&["mount", "-k", "key", "vault", "plain"]).output().unwrap();
        is_possible(&output)
    }

    fn umount(&self) {
        succeed(&mut self.bywash(&["umount", "plain"]));
    }

    fn is_mounted(&self) -> bool {
        fs::read_to_string("/proc/self/mounts").unwrap().contains(self.at("plain").to_str().unwrap())
    }

    /// Mounts it in a process in the foreground; none where that cannot be.
    fn serve(&self) -> Option<Running> {
        let mut serving = Running::start(&mut self.bywash(&["mount", "--foreground", "-k", "key", "vault", "plain"]));
        for _ in 0..100 {
            if self.is_mounted() {
                return Some(serving);
            } else if serving.0.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        eprintln!("skipped: nothing can be mounted here");
        None
    }
}

/// The lines that a process says on stderr.
fn lines(process: &mut Running) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let stderr = process.0.stderr.take().unwrap();
    std::thread::spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// The next of them; whoever says nothing fails the test.
fn next(lines: &mpsc::Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(60)).expect("it says nothing")
}

impl Drop for Place {
    fn drop(&mut self) {
        // A test that failed leaves it mounted.
        let _ = self.bywash(&["umount", "plain"]).output();
    }
}

fn is_possible(output: &Output) -> bool {
    let said = stderr(output);
    let is_lacking = ["nothing can be mounted here", "no user namespace", "fusermount3", "Operation not permitted"];
    if !output.status.success() && is_lacking.iter().any(|lack| said.contains(lack)) {
        eprintln!("skipped: {said}");
        return false;
    }
    assert!(output.status.success(), "{said}");
    true
}

/// Whether a text is anywhere in a folder: in a file, in a name, in a link.
fn is_in(folder: &Path, text: &[u8]) -> bool {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).any(|entry| {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        holds(entry.file_name().as_encoded_bytes())
            || (kind.is_dir() && is_in(&path, text))
            || (kind.is_file() && holds(&fs::read(&path).unwrap()))
            || (kind.is_symlink() && holds(fs::read_link(&path).unwrap().as_os_str().as_encoded_bytes()))
    })
}

/// A lock that a script holds while it mounts is free when the script has let it go, not when somebody unmounts.
#[test]
fn a_mount_keeps_nothing_of_its_caller_open() {
    let place = Place::new();
    let script = "exec 9>lock && flock 9 && \"$0\" mount -k key vault plain && exec 9>&- && flock --nonblock lock echo free";
    let mut shell = Command::new("sh");
    shell.current_dir(place.folder.path()).args(["-c", script]).arg(env!("CARGO_BIN_EXE_bywash"));
    let shell = shell.env("BYWASH_SOCKET", "none").output().unwrap();
    if is_possible(&shell) {
        assert_eq!(stdout(&shell), "free\n");
    }
}

/// A container in a volume, with what is made beside it meanwhile; there is no file without a name there.
#[test]
fn files_in_a_volume_are_encrypted_and_decrypted() {
    for options in [&[][..], &["--plaintext-names"]] {
        let place = Place::new();
        fs::remove_dir_all(place.at("vault")).unwrap();
        succeed(place.bywash(&["mount", "--init", "-k", "key", "vault"]).args(options));
        if !place.mount() {
            return;
        }
        fs::write(place.at("plain/file"), "text").unwrap();
        succeed(&mut place.bywash(&["encrypt", "--remove-source", "-k", "key", "plain/file"]));
        succeed(&mut place.bywash(&["rekey", "-k", "key", "--add", "--new-key-file", "other", "plain/file.bywash"]));
        succeed(&mut place.bywash(&["decrypt", "-R", "--remove-source", "-k", "key", "plain"]));
        assert_eq!(fs::read_to_string(place.at("plain/file")).unwrap(), "text");
        assert_eq!(fs::read_dir(place.at("plain")).unwrap().count(), 1);
        // Another key for the volume leaves alone what is written in it, and takes what another run left of its own.
        fs::write(place.at("plain/.bywash-unfinished-1-2"), "being written").unwrap();
        fs::copy(place.at("vault/bywash.volume"), place.at("vault/.bywash-unfinished-key-3-4")).unwrap();
        succeed(&mut place.bywash(&["rekey", "-k", "key", "--add", "--new-key-file", "other", "vault"]));
        assert_eq!(fs::read_to_string(place.at("plain/.bywash-unfinished-1-2")).unwrap(), "being written");
        assert!(!place.at("vault/.bywash-unfinished-key-3-4").exists());
        fs::remove_file(place.at("plain/.bywash-unfinished-1-2")).unwrap();
        for own in ["plain/.bywash-folder", "plain/.bywash-unfinished-key-5-6"] {
            let refused = fs::write(place.at(own), "").is_err();
            assert_eq!(refused, !options.is_empty(), "{own}: what the volume itself has is not to be had");
        }
        // A link there is exchanged as elsewhere.
        fs::create_dir(place.at("links")).unwrap();
        for leads_to in ["one", "two"] {
            let _ = fs::remove_file(place.at("links/link"));
            std::os::unix::fs::symlink(leads_to, place.at("links/link")).unwrap();
            succeed(&mut place.bywash(&["encrypt", "-R", "--update", "-k", "key", "-o", "plain/backup", "links"]));
            assert_eq!(fs::read_link(place.at("plain/backup/link")).unwrap(), Path::new(leads_to));
        }
        // What is called like a volume's key is a file like others there.
        fs::create_dir(place.at("plain/sub")).unwrap();
        fs::write(place.at("plain/sub/gocryptfs.conf"), "text").unwrap();
        succeed(&mut place.bywash(&["encrypt", "--remove-source", "-k", "key", "plain/sub/gocryptfs.conf"]));
        succeed(&mut place.bywash(&["decrypt", "-k", "key", "plain/sub/gocryptfs.conf.bywash"]));
        assert_eq!(fs::read_to_string(place.at("plain/sub/gocryptfs.conf")).unwrap(), "text");
        place.umount();
        succeed(&mut place.bywash(&["fsck", "-k", "key", "vault"]));
    }
}

#[test]
fn an_idle_mount_goes_and_one_in_use_stays() {
    let place = Place::new();
    if !is_possible(&place.bywash(&["mount", "--idle", "300ms", "-k", "key", "vault", "plain"]).output().unwrap()) {
        return;
    }
    let file = place.at("plain/file");
    let mut open = fs::File::create(&file).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    open.write_all(b"text").unwrap();
    assert!(file.exists(), "somebody has a file of it open");
    drop(open);
    eventually("it is unmounted", || !file.exists());
    assert!(place.mount());
    assert_eq!(fs::read(&file).unwrap(), b"text");
    place.umount();
    place.refused(&["mount", "--idle", "0s", "-k", "key", "vault", "plain"], 2, "gone at once");
    place.refused(&["mount", "--idle", "soon", "-k", "key", "vault", "plain"], 2, "is no time");
}

#[test]
fn a_volume_is_mounted_written_looked_at_and_mounted_again() {
    let place = Place::new();
    if !place.mount() {
        return;
    }
    let plain = place.at("plain");
    fs::create_dir(plain.join("secret-folder")).unwrap();
    fs::write(plain.join("secret-folder/secret-name"), "secret-text ".repeat(20_000)).unwrap();
    std::os::unix::fs::symlink("secret-target", plain.join("link")).unwrap();
    place.refused(&["mount", "-k", "key", "vault", "plain"], 1, "something is mounted there already");
    place.umount();
    assert_eq!(fs::read_dir(&plain).unwrap().count(), 0);
    assert!(!is_in(&place.at("vault"), b"secret"));
    let checked = succeed(&mut place.bywash(&["fsck", "-k", "key", "vault"]));
    assert!(stderr(&checked).contains("1 file and 2 folders looked at"), "{}", stderr(&checked));

    assert!(place.mount());
    assert_eq!(fs::read_to_string(plain.join("secret-folder/secret-name")).unwrap(), "secret-text ".repeat(20_000));
    place.umount();
}

#[test]
fn what_is_damaged_is_named_by_its_path_and_offset() {
    let place = Place::new();
    if !place.mount() {
        return;
    }
    fs::create_dir(place.at("plain/folder")).unwrap();
    fs::write(place.at("plain/folder/file"), vec![b'x'; 200_000]).unwrap();
    place.umount();
    let folder = |path: &Path, wants_folder: bool| {
        let is_sealed = |name: &str| !name.contains('.');
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let mut found = entries.filter(|entry| is_sealed(&entry.file_name().to_string_lossy()) && entry.path().is_dir() == wants_folder);
        found.next().unwrap().path()
    };
    let file = folder(&folder(&place.at("vault"), true), false);
    let mut bytes = fs::read(&file).unwrap();
    bytes[144 + 65_576 + 100] ^= 1;
    fs::write(&file, bytes).unwrap();
    place.refused(&["fsck", "-k", "key", "vault"], 8, "folder/file: chunk 1 at offset 65720 (text from 65536) is damaged");
    assert!(place.mount());
    // The program hears of it, and of that place only.
    assert!(fs::read(place.at("plain/folder/file")).is_err());
    place.umount();
}

#[test]
fn what_cannot_be_mounted_is_said_with_the_way_out() {
    let place = Place::new();
    fs::create_dir(place.at("folder")).unwrap();
    fs::write(place.at("folder/file"), "here").unwrap();
    place.refused(&["mount", "-k", "other", "vault", "plain"], 7, "none of the keys given opens it");
    place.refused(&["mount", "-k", "key", "folder", "plain"], 1, "it is no volume");
    fs::write(place.at("folder/.gocryptfs.reverse.conf"), "{}").unwrap();
    place.refused(&["mount", "-k", "key", "folder", "plain"], 1, "`gocryptfs -reverse` shows it encrypted");
    place.refused(&["mount", "-k", "key", "vault", "folder"], 1, "name an empty folder");
    place.refused(&["mount", "-k", "key", "vault", "nowhere"], 1, "check the path");
    fs::create_dir(place.at("vault/inner")).unwrap();
    place.refused(&["mount", "-k", "key", "vault", "vault/inner"], 1, "it is in the volume, among the ciphertext");
    place.refused(&["mount", "--init", "-k", "key", "folder"], 1, "name another folder");
    place.refused(&["mount", "--init", "-k", "key", "vault"], 1, "it is a volume already");
    place.refused(&["mount", "--init", "new"], 2, "nobody could open it");
    place.refused(&["umount", "plain"], 1, "no volume is mounted there");
    place.refused(&["fsck", "-k", "other", "vault"], 7, "none of the keys given opens it");
}

#[test]
fn a_mount_that_was_killed_is_mounted_again() {
    let place = Place::new();
    let Some(mut killed) = place.serve() else { return };
    let plain = place.at("plain");
    fs::write(plain.join("closed"), "whole").unwrap();
    let synced = fs::File::create(plain.join("synced")).unwrap();
    (&synced).write_all(b"synced").unwrap();
    synced.sync_all().unwrap();
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    drop(synced);
    place.refused(&["mount", "-k", "key", "vault", "plain"], 1, "umount");
    place.umount();
    assert!(place.mount());
    assert_eq!(fs::read_to_string(plain.join("closed")).unwrap(), "whole");
    assert_eq!(fs::read_to_string(plain.join("synced")).unwrap(), "synced");
    place.umount();
    succeed(&mut place.bywash(&["fsck", "-k", "key", "vault"]));
}

#[test]
fn a_signal_says_that_it_is_in_use_and_another_leaves_it_to_who_uses_it() {
    let place = Place::new();
    let Some(mut serving) = place.serve() else { return };
    let said = lines(&mut serving);
    let mut file = fs::File::options().read(true).write(true).create_new(true).open(place.at("plain/file")).unwrap();
    file.write_all(b"one ").unwrap();
    serving.signal("TERM");
    let why = next(&said);
    assert!(why.contains("it is in use") && why.contains(&format!("`fuser -vm {}`", place.at("plain").display())), "{why}");
    assert!(place.is_mounted());
    // One that comes at once does not count.
    eventually("it is not there any more", || {
        serving.signal("TERM");
        !place.is_mounted()
    });
    file.write_all(b"two").unwrap();
    file.sync_all().unwrap();
    assert!(serving.0.try_wait().unwrap().is_none(), "somebody has a file of it open");
    drop(file);
    assert!(serving.wait().success());
    assert!(place.mount());
    assert_eq!(fs::read_to_string(place.at("plain/file")).unwrap(), "one two");
}

#[test]
fn who_unmounts_hears_why_it_takes_long() {
    let place = Place::new();
    if !place.mount() {
        return;
    }
    let (plain, other) = (place.at("plain"), place.at("other place"));
    fs::create_dir(&other).unwrap();
    let bound = Command::new("mount").arg("--bind").args([&plain, &other]).output();
    if !bound.is_ok_and(|bound| bound.status.success()) {
        return eprintln!("skipped: only root mounts a folder elsewhere too");
    }
    let unmount = || {
        let mut unmounting = Running::start(&mut place.bywash(&["umount", "plain"]));
        let said = next(&lines(&mut unmounting));
        assert!(!place.is_mounted() && unmounting.0.try_wait().unwrap().is_none());
        (unmounting, said)
    };
    let (mut unmounting, said) = unmount();
    assert!(said.contains("mounted at ") && said.contains(other.to_str().unwrap()), "{said}");
    succeed(Command::new("umount").arg(&other));
    assert!(unmounting.wait().success());

    assert!(place.mount());
    let mut apart = Running::start(Command::new("unshare").args(["--mount", "sh", "-c", "echo >&2; exec sleep 1000"]));
    next(&lines(&mut apart));
    let (mut unmounting, said) = unmount();
    assert!(said.contains(&format!("process {} (sleep) ", apart.0.id())) && said.contains("nsenter -t "), "{said}");
    drop(apart);
    assert!(unmounting.wait().success());
}

#[test]
fn one_program_alone_sees_the_files() {
    let place = Place::new();
    let script = place.at("script");
    let text = "set -e; printf 'b\\na\\n' > list; sort -o list list; sed -i s/a/c/ list; cp list copy; mkdir d; mv copy d/moved; cat d/moved; test -f list; exit 7";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut run = place.bywash(&["run", "-q", "--files", "vault", "-k", "key", "--", "sh", "-c", "cd vault && . ../script"]);
    let output = run.output().unwrap();
    if output.status.code() != Some(7) {
        assert!(!is_possible(&output), "{}", output.status);
        return;
    }
    assert_eq!(stdout(&output), "c\nb\n");
    // Outside there is ciphertext only, and nothing is mounted.
    assert!(!place.at("vault/list").exists());
    let checked = succeed(&mut place.bywash(&["fsck", "-k", "key", "vault"]));
    assert!(stderr(&checked).contains("2 files and 2 folders looked at"), "{}", stderr(&checked));
    let again = succeed(&mut place.bywash(&["run", "-q", "--files", "vault", "-k", "key", "--", "cat", "vault/list"]));
    assert_eq!(stdout(&again), "c\nb\n");
    place.refused(&["run", "-q", "--files", "vault", "-k", "other", "--", "true"], 125, "none of the keys given opens it");

    // What it leaves behind writes nothing there when the files are gone.
    let left = "(while [ -e vault/list ]; do sleep 0.01; done; echo secret > vault/late; echo $? > \"$0\") 2> /dev/null & exit 0";
    let said = place.at("said");
    let mut run = place.bywash(&["run", "-q", "--files", "vault", "-k", "key", "--", "sh", "-c", left, said.to_str().unwrap()]);
    succeed(&mut run);
    eventually("the program that is left behind to end", || fs::read_to_string(&said).is_ok_and(|said| !said.is_empty()));
    assert_ne!(fs::read_to_string(&said).unwrap(), "0\n");
    assert!(!place.at("vault/late").exists());
    let checked = succeed(&mut place.bywash(&["fsck", "--json", "-k", "key", "vault"]));
    let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((&report["files"], &report["damaged"], &report["foreign"]), (&2.into(), &0.into(), &0.into()));
}

#[test]
fn one_program_sees_the_files_by_its_system_calls() {
    let place = Place::new();
    let script = "cd vault && printf 'b\\na\\n' > list; sort -o list list; sed -i s/a/c/ list; cp list copy; mkdir d; mv copy d/moved; cat d/moved; exit 7";
    let hooked = ["run", "-q", "--files", "vault", "--files-by", "hook", "-k", "key", "--"];
    let run = |command: &[&str]| place.bywash(&[&hooked[..], command].concat()).output().unwrap();
    let output = run(&["sh", "-c", script]);
    if output.status.code() == Some(125) && stderr(&output).contains("does not let a process answer") {
        return eprintln!("skipped: {}", stderr(&output));
    }
    assert_eq!((output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()), (Some(7), "c\nb\n", ""));
    assert!(!place.at("vault/list").exists());
    let checked = succeed(&mut place.bywash(&["fsck", "-k", "key", "vault"]));
    assert!(stderr(&checked).contains("2 files and 2 folders looked at"), "{}", stderr(&checked));
    // What it wrote the mount reads.
    let mounted = place.bywash(&["run", "-q", "--files", "vault", "-k", "key", "--", "cat", "vault/list"]).output().unwrap();
    assert!(stdout(&mounted) == "c\nb\n" || !is_possible(&mounted), "{}", stderr(&mounted));
    let refused = run(&["sh", "-c", "cd vault/d"]);
    assert!(
        stderr(&refused).contains("bywash: refused: chdir ")
            && stderr(&refused).contains("/vault/d: ")
            && stderr(&refused).contains("without --files-by hook")
    );
    place.refused(&["run", "--files-by", "hook", "--", "true"], 2, "--files <VOLUME>");
}

#[test]
fn a_volume_of_gocryptfs_is_mounted_too() {
    let place = Place::new();
    // The process in the background is given all of it: gocryptfs takes 2,048 bytes.
    fs::write(place.at("passphrase"), format!("{}\n", "correct horse".repeat(150))).unwrap();
    fs::set_permissions(place.at("passphrase"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(place.at("theirs")).unwrap();
    let made = Command::new("gocryptfs")
        .args(["-q", "-init", "-scryptn", "10", "-passfile", "passphrase", "theirs"])
        .current_dir(place.folder.path())
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: gocryptfs is not installed");
        return;
    }
    let mount = ["mount", "--passphrase-file", "passphrase", "theirs", "plain"];
    let long = "n".repeat(250);
    for round in 0..2 {
        if !is_possible(&place.bywash(&mount).output().unwrap()) {
            return;
        }
        let plain = place.at("plain");
        if round == 0 {
            fs::create_dir(plain.join("folder")).unwrap();
            fs::write(plain.join("folder").join(&long), vec![b'x'; 100_000]).unwrap();
            fs::rename(plain.join("folder").join(&long), plain.join("short")).unwrap();
            fs::rename(plain.join("short"), plain.join(&long)).unwrap();
            fs::remove_dir(plain.join("folder")).unwrap();
            std::os::unix::fs::symlink("target", plain.join("link")).unwrap();
        }
        assert_eq!(fs::read(plain.join(&long)).unwrap(), vec![b'x'; 100_000]);
        assert_eq!(fs::read_link(plain.join("link")).unwrap().to_str(), Some("target"));
        assert_eq!(fs::read_dir(&plain).unwrap().count(), 2);
        place.umount();
    }
    let theirs =
        Command::new("gocryptfs").args(["-q", "-fsck", "-passfile", "passphrase", "theirs"]).current_dir(place.folder.path()).output();
    let theirs = theirs.unwrap();
    assert!(theirs.status.success(), "{}{}", stdout(&theirs), stderr(&theirs));
}

/// Not each has an `fsync` for folders: then nothing could be unmounted, and the log told of a loss.
#[test]
fn what_is_mounted_to_be_read_is_unmounted_whatever_it_lies_on() {
    let place = Place::new();
    fs::write(place.at("passphrase"), "correct horse\n").unwrap();
    fs::set_permissions(place.at("passphrase"), fs::Permissions::from_mode(0o600)).unwrap();
    for folder in ["text", "theirs"] {
        fs::create_dir(place.at(folder)).unwrap();
    }
    fs::write(place.at("text/file"), "attack at dawn").unwrap();
    let gocryptfs = |arguments: &[&str]| {
        let mut command = Command::new("gocryptfs");
        command.args(["-q", "-reverse", "-passfile", "passphrase"]).args(arguments).current_dir(place.folder.path());
        command.output().is_ok_and(|output| output.status.success())
    };
    if !gocryptfs(&["-init", "-scryptn", "10", "text"]) || !gocryptfs(&["text", "theirs"]) {
        eprintln!("skipped: gocryptfs is not installed, or cannot mount here");
        return;
    }
    let mount = ["mount", "--passphrase-file", "passphrase", "theirs", "plain"];
    // It is so as well where nothing can be written below.
    let outcomes = [&["--read-only"][..], &[]].map(|access| {
        let mounted = place.bywash(&[&mount[..], access].concat()).output().unwrap();
        // Where nothing is mounted it would be made in the folder, which is to stay empty.
        let to_write = fs::File::options().write(true).open(place.at("plain/file"));
        let (was_read, was_written) = (fs::read_to_string(place.at("plain/file")), to_write.map(drop));
        (mounted, was_read, was_written, place.bywash(&["umount", "plain"]).output().unwrap())
    });
    let theirs = Command::new("fusermount3").args(["-u", "-z", "theirs"]).current_dir(place.folder.path()).status();
    assert!(theirs.unwrap().success());
    for (mounted, was_read, was_written, unmounted) in outcomes {
        if is_possible(&mounted) {
            assert_eq!(was_read.unwrap(), "attack at dawn");
            assert_eq!(was_written.unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
            assert!(unmounted.status.success(), "{}", stderr(&unmounted));
        }
    }
}

#[test]
fn whoever_mounts_next_is_not_in_the_way_of_who_ends_yet() {
    let place = Place::new();
    if !place.mount() {
        return;
    }
    place.umount();
    // One in fifty was refused: the process of the mount before, which only read, was still there.
    for _ in 0..60 {
        succeed(&mut place.bywash(&["mount", "--read-only", "-k", "key", "vault", "plain"]));
        place.umount();
        assert!(place.mount());
        place.umount();
    }
}
