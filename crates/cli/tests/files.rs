//! `bywash encrypt`, `decrypt`, `fsck` and `keygen` on real files, and what they say when something is wrong.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use bywash_client::{Client, Config};
use bywash_files::disk::{FolderJournals, is_journal};
use bywash_files::{Container, Header, Keyring};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use support::place::{Place, flip, text};
use support::{Running, bywash, eventually, piped, refused, stderr, stdout, succeed};

#[test]
fn a_file_goes_and_comes_with_its_metadata() {
    let place = Place::new();
    let plain = text(2_000_000);
    let path = place.write("report", &plain);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let has_attributes = rustix_set_attribute(&path);
    succeed(&mut place.bywash(&["encrypt", "--verify", "report"]));
    let sealed = fs::read(place.at("report.bywash")).unwrap();
    assert!(!sealed.windows(64).any(|window| window == &plain[9000..9064]), "text in the file");
    fs::remove_file(&path).unwrap();
    succeed(&mut place.bywash(&["fsck", "report.bywash"]));
    succeed(&mut place.bywash(&["decrypt", "--remove-source", "report.bywash"]));
    assert!(fs::read(&path).unwrap() == plain && !place.at("report.bywash").exists());
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.modified().unwrap()), (0o640, time));
    if has_attributes {
        let shown = Command::new("python3").args(["-c", "import os,sys; print(os.getxattr(sys.argv[1], 'user.note'))"]).arg(&path).output();
        assert!(stdout(&shown.unwrap()).contains("kept"), "the extended attribute");
    } else {
        eprintln!("skipped: extended attributes, which this file system or machine has no way to set");
    }
}

fn rustix_set_attribute(path: &Path) -> bool {
    let set = "import os,sys; os.setxattr(sys.argv[1], 'user.note', b'kept')";
    Command::new("python3").args(["-c", set]).arg(path).output().is_ok_and(|output| output.status.success())
}

#[test]
fn streams_passphrases_and_recipients() {
    let place = Place::new();
    for len in [0, 1, 65_536, 700_000] {
        let sealed = piped(bywash().args(["encrypt", "--passphrase-file"]).arg(place.at("passphrase")), &text(len));
        assert!(sealed.status.success(), "{}", stderr(&sealed));
        let opened = piped(bywash().args(["decrypt", "--passphrase-file"]).arg(place.at("passphrase")), &sealed.stdout);
        assert!(opened.status.success() && opened.stdout == text(len), "{}", stderr(&opened));
        let cut =
            piped(bywash().args(["decrypt", "--passphrase-file"]).arg(place.at("passphrase")), &sealed.stdout[..sealed.stdout.len() - 1]);
        assert_eq!(cut.status.code(), Some(8), "{}", stderr(&cut));
    }
    for kind in [&["keygen", "-o"][..], &["keygen", "--hybrid", "-o"]] {
        let identity = place.at(&format!("identity{}", kind.len()));
        let made = succeed(bywash().args(kind).arg(&identity));
        assert_eq!(fs::metadata(&identity).unwrap().mode() & 0o777, 0o600);
        let recipient = stdout(&succeed(bywash().args(["keygen", "--recipient"]).arg(&identity)));
        assert!(stderr(&made).contains(recipient.trim()));
        let sealed = piped(bywash().args(["encrypt", "-r", recipient.trim()]), b"for you");
        let opened = piped(bywash().args(["decrypt", "-i"]).arg(&identity), &sealed.stdout);
        assert_eq!((opened.stdout, sealed.status.success()), (b"for you".to_vec(), true));
        let wrong = piped(bywash().args(["decrypt", "-k"]).arg(place.at("key")), &sealed.stdout);
        assert_eq!(wrong.status.code(), Some(7));
        assert!(stderr(&wrong).contains("X25519"), "{}", stderr(&wrong));
        refused(bywash().args(kind).arg(&identity), 1, "exists");
    }
}

#[test]
fn half_a_key_is_none() {
    let place = Place::new();
    for kind in ["-o", "--key-file"] {
        let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
        let limited = ["-c", script, env!("CARGO_BIN_EXE_bywash"), "keygen", kind];
        let output = Command::new("sh").args(limited).arg(place.at("half")).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains("File too large"), "{}", stderr(&output));
        assert!(!place.at("half").exists());
    }
}

#[test]
fn folders_are_resumed_and_links_and_devices_left_alone() {
    let place = Place::new();
    for (number, name) in ["tree/a", "tree/b/c", "tree/b/d/e"].iter().enumerate() {
        place.write(name, &text(100_000 * number));
    }
    symlink("..", place.at("tree/b/up")).unwrap();
    assert!(Command::new("mkfifo").arg(place.at("tree/pipe")).status().unwrap().success());
    place.refused(&["encrypt", "tree"], 2, "give -R");
    let first = succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "out", "--json"]));
    let report: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!([&report["passed_over"], &report["links"]], [1, 1].map(serde_json::Value::from).each_ref());
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    assert_eq!(report["passed_over_files"][0]["why"], "a device, pipe or socket");
    let named = succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "out", "-v"]));
    let told = stderr(&named);
    assert!(told.contains("tree/pipe: passed over: a device") && told.contains("; 1 link kept as such; 1 passed over"), "{told}");
    assert_eq!(fs::read_link(place.at("out/b/up")).unwrap(), Path::new(".."));
    assert!(!place.at("out/pipe").exists() && !place.at("out/pipe.bywash").exists());

    // One more file, one changed, and one of which the result is another's: the rest is not done again.
    place.write("tree/f", b"new");
    let before = fs::metadata(place.at("out/a.bywash")).unwrap().ino();
    let again = succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "out"]));
    assert!(stderr(&again).contains("4 files") && stderr(&again).contains("3 of them done before"), "{}", stderr(&again));
    assert_eq!(fs::metadata(place.at("out/a.bywash")).unwrap().ino(), before);
    let one = ["encrypt", "tree/b/c", "-o", "one.bywash"];
    assert_eq!(stderr(&succeed(&mut place.bywash(&one))), "");
    assert!(stderr(&succeed(&mut place.bywash(&one))).contains("one.bywash was there already and is kept"));
    place.write("tree/a", b"changed");
    place.refused(&["encrypt", "-R", "tree", "-o", "out"], 1, "give --force");
    succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "out", "--force"]));

    succeed(&mut place.bywash(&["decrypt", "-R", "out", "-o", "back", "-j", "2"]));
    for name in ["a", "b/c", "b/d/e", "f"] {
        assert!(fs::read(place.at("back").join(name)).unwrap() == fs::read(place.at("tree").join(name)).unwrap(), "{name}");
    }
    let leftovers =
        fs::read_dir(place.at("out")).unwrap().filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn sources_are_removed_only_behind_verified_results() {
    let place = Place::new();
    place.write("tree/good", &text(5000));
    place.write("tree/there", b"source");
    place.write("tree/there.bywash", b"something else");
    place.refused(&["encrypt", "-R", "--remove-source", "tree"], 1, "there.bywash");
    assert!(!place.at("tree/good").exists() && place.at("tree/good.bywash").exists());
    assert_eq!(fs::read(place.at("tree/there")).unwrap(), b"source");
    assert_eq!(fs::read(place.at("tree/there.bywash")).unwrap(), b"something else");
}

#[test]
fn two_sources_for_one_target_are_refused_before_anything_is_done() {
    let place = Place::new();
    let files = [("a/x", b"one"), ("b/x", b"two")].map(|(name, bytes)| place.write(name, bytes));
    for arguments in [&["encrypt", "-R", "a", "b"][..], &["encrypt", "-R", "./a", "b/"]] {
        for more in [&["-o", "out"][..], &["-o", "out", "--force", "--remove-source"]] {
            let output = place.refused(&[arguments, more].concat(), 2, "would both become out/x.bywash");
            assert!(stderr(&output).contains("a/x and "), "{}", stderr(&output));
        }
    }
    fs::create_dir(place.at("there")).unwrap();
    place.refused(&["encrypt", "a/x", "b/x", "-o", "there", "--force", "--remove-source"], 2, "would both become");
    assert!(files.iter().all(|file| file.exists()) && !place.at("out").exists());
    assert_eq!(fs::read_dir(place.at("there")).unwrap().count(), 0);
    // A folder that is still to be made takes single files too.
    place.write("c", b"three");
    succeed(&mut place.bywash(&["encrypt", "-R", "a", "c", "-o", "out"]));
    assert!(place.at("out/x.bywash").exists() && place.at("out/c.bywash").exists());
}

/// What a writer's journal holds is the file's content, although the file itself has not got it yet.
#[test]
fn a_file_whose_writer_was_interrupted_is_opened_as_its_journal_says() {
    let place = Place::new();
    let (old, new) = (text(200_000), [text(150_000), text(1000)].concat());
    place.write("file", &old);
    succeed(&mut place.bywash(&["encrypt", "file"]));
    let sealed = place.at("file.bywash");
    let before = fs::read(&sealed).unwrap();

    let open = || fs::File::options().read(true).write(true).open(&sealed).unwrap();
    let mut keyring = Keyring::new();
    keyring.add_key_file(&fs::read(place.at("key")).unwrap().try_into().unwrap());
    let header = Header::read(open()).unwrap();
    let (client, journals) = (Client::new(Config::default()), Arc::new(FolderJournals::beside(&sealed).unwrap()));
    let container = Container::open_rw(&client, &header, keyring.open(&header).unwrap(), Arc::new(open()), journals).unwrap();
    container.write_at(&new[150_000..], 150_000).unwrap();
    container.set_len(new.len() as u64).unwrap();
    container.sync().unwrap();
    drop(container);
    // The power is cut before any of it reaches the file.
    fs::write(&sealed, &before).unwrap();

    // Its journal is beside it, whatever leads there.
    fs::create_dir(place.at("links")).unwrap();
    symlink("../file.bywash", place.at("links/link.bywash")).unwrap();
    for path in ["file.bywash", "links/link.bywash"] {
        place.refused(&["fsck", path], 8, "journal");
        place.refused(&["decrypt", "-o", "-", path], 8, "journal");
        assert!(stdout(&succeed(&mut place.bywash(&["info", path]))).contains("its writer was interrupted"));
    }
    succeed(&mut place.bywash(&["decrypt", "links/link.bywash", "-o", "back"]));
    assert!(fs::read(place.at("back")).unwrap() == new);
    fs::remove_file(place.at("back")).unwrap();
    assert!(place.refused(&["decrypt", "-o", "-", "file.bywash"], 8, "journal").stdout.is_empty());
    // Without it the file would be a mixture of two states.
    fs::remove_file(place.at("file")).unwrap();
    let journal =
        fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.file_name().is_some_and(is_journal));
    let journal = journal.unwrap();
    let passed = succeed(&mut place.bywash(&["encrypt", "-R", "-v", "--remove-source", "."]));
    assert!(stderr(&passed).contains("passed over: the journal of a file") && journal.exists(), "{}", stderr(&passed));
    place.refused(&["encrypt", journal.to_str().unwrap()], 2, "is the journal of a file");
    succeed(&mut place.bywash(&["decrypt", "--remove-source", "file.bywash", "-o", "back"]));
    assert!(fs::read(place.at("back")).unwrap() == new);
    assert!(!sealed.exists());
}

#[test]
fn what_is_wrong_is_said_with_its_exit_code() {
    let place = Place::new();
    place.write("file", &text(300_000));
    succeed(&mut place.bywash(&["encrypt", "file"]));
    let sealed = fs::read(place.at("file.bywash")).unwrap();

    succeed(bywash().current_dir(place.folder.path()).args(["encrypt", "file", "-o", "p.bywash", "--passphrase-file", "passphrase"]));
    place.write("wrong", b"incorrect horse\n");
    fs::set_permissions(place.at("wrong"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut wrong = bywash();
    refused(
        wrong.current_dir(place.folder.path()).args(["decrypt", "p.bywash", "-o", "x", "--passphrase-file", "wrong"]),
        7,
        "wrong passphrase",
    );
    place.refused(&["decrypt", "p.bywash", "-o", "x"], 7, "none of the keys given opens it: it can be opened with a passphrase");

    place.write("header.bywash", &sealed);
    flip(&place.at("header.bywash"), 60);
    place.refused(&["decrypt", "header.bywash"], 8, "the header is damaged");
    place.write("version.bywash", &sealed);
    flip(&place.at("version.bywash"), 9);
    place.refused(&["decrypt", "version.bywash"], 1, "format version 257 is unknown");
    place.write("cut.bywash", &sealed[..sealed.len() - 100]);
    place.refused(&["decrypt", "cut.bywash"], 8, "damaged");
    place.write("none.bywash", b"plain text");
    place.refused(&["decrypt", "none.bywash"], 8, "not a file encrypted by bywash");
    assert!(!place.at("header").exists() && !place.at("cut").exists());

    place.write("bad.bywash", &sealed);
    let header = sealed.len() - 300_000 - 5 * 40;
    for chunk in [1, 3] {
        flip(&place.at("bad.bywash"), header + chunk * 65_576 + 500);
    }
    let found = place.refused(&["fsck", "bad.bywash"], 8, "2 of 5 chunks damaged");
    for chunk in [1, 3] {
        let expected = format!("chunk {chunk} at offset {} (text from {}) is damaged", header + chunk * 65_576, chunk * 65_536);
        assert!(stderr(&found).contains(&expected), "{}", stderr(&found));
    }

    let long = "n".repeat(250);
    place.write(&long, b"x");
    place.refused(&["encrypt", &long], 1, "choose a shorter one for this file alone with -o");
    succeed(&mut place.bywash(&["encrypt", &long, "-o", "short.bywash"]));
    symlink("circle", place.at("circle")).unwrap();
    place.refused(&["encrypt", "circle"], 1, "lead in a circle");
    place.refused(&["encrypt", "missing"], 1, "check the path");
    place.refused(&["decrypt", "file"], 2, "say with -o");
    refused(bywash().args(["encrypt"]).arg(place.at("file")), 2, "-p (a passphrase), -k (a key file) or -r (a recipient)");
    place.refused(&["encrypt", "file", "--aead", "rot13"], 2, "aes-256-gcm-siv");
    place.refused(&["encrypt", "file", "--chunk-size", "5000"], 2, "power of two");
}

#[test]
fn full_and_read_only_disks() {
    let place = Place::new();
    place.write("file", &text(3_000_000));
    // Namespaces of its own: nothing is mounted for anybody else.
    let script = format!(
        "mount -t tmpfs -o size=1m none {0}/disk && {1} encrypt -k {0}/key {0}/file -o {0}/disk/f; echo $?; ls -A {0}/disk | wc -l;
         mount -o remount,ro {0}/disk && {1} encrypt -k {0}/key {0}/file -o {0}/disk/f; echo $?",
        place.folder.path().display(),
        env!("CARGO_BIN_EXE_bywash"),
    );
    fs::create_dir(place.at("disk")).unwrap();
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).env("NO_COLOR", "1").env("BYWASH_SOCKET", "none").output();
    let Ok(output) = output.inspect_err(|error| eprintln!("skipped: unshare does not start: {error}")) else { return };
    if stdout(&output).is_empty() || stderr(&output).contains("unshare:") || stderr(&output).contains("mount:") {
        return eprintln!("skipped: no file system can be mounted here: {}", stderr(&output));
    }
    assert_eq!(stdout(&output).split_whitespace().collect::<Vec<_>>(), ["1", "0", "4"], "{}", stderr(&output));
    assert!(
        stderr(&output).contains("its source is as it was") && stderr(&output).contains("Read-only file system"),
        "{}",
        stderr(&output)
    );
    assert!(fs::read(place.at("file")).unwrap() == text(3_000_000));
}

#[test]
fn a_key_in_the_vault_opens_files_and_never_leaves_it() {
    let place = Place::new();
    let (socket, keys) = (place.at("s"), place.at("keys"));
    let at_broker = |arguments: &[&str]| {
        let mut command = bywash();
        command.args(arguments).env("BYWASH_SOCKET", &socket).current_dir(place.folder.path());
        command
    };
    let mut broker = Running::start(bywash().args(["serve", "--socket"]).arg(&socket).arg("--keys").arg(&keys));
    eventually("the broker listens", || socket.exists());
    succeed(&mut at_broker(&["key", "generate", "box", "--algorithm", "p256", "--allow", "derive"]));
    succeed(&mut at_broker(&["key", "generate", "signer", "--algorithm", "p256"]));
    succeed(&mut at_broker(&["key", "generate", "other", "--algorithm", "ed25519"]));
    let recipient = stdout(&succeed(&mut at_broker(&["keygen", "--recipient", "bywash:box"])));
    for to in ["bywash:box", recipient.trim()] {
        let plain = text(300_000);
        let path = place.write("letter", &plain);
        succeed(&mut at_broker(&["encrypt", "--force", "-r", to, "letter"]));
        fs::remove_file(&path).unwrap();
        succeed(&mut at_broker(&["decrypt", "-i", "bywash:box", "letter.bywash"]));
        assert!(fs::read(&path).unwrap() == plain, "{to}");
    }
    refused(&mut at_broker(&["decrypt", "--force", "-i", "bywash:signer", "letter.bywash"]), 7, "may be used to sign and not to derive");
    refused(&mut at_broker(&["encrypt", "--force", "-r", "bywash:signer", "letter"]), 7, "may be used to sign and not to derive");
    refused(&mut at_broker(&["decrypt", "--force", "-i", "bywash:nobody", "letter.bywash"]), 7, "there is no such key");
    refused(&mut at_broker(&["encrypt", "--force", "-r", "bywash:other", "letter"]), 2, "not of the kind p256");
    // After a rotation the key file of before opens what was encrypted before.
    place.write("box.key", stdout(&succeed(&mut at_broker(&["key", "uri", "box"]))).as_bytes());
    refused(&mut at_broker(&["key", "rotate", "box"]), 2, "bywash rekey -i box.key --new-recipient bywash:box");
    succeed(&mut at_broker(&["key", "rotate", "--yes", "box"]));
    refused(&mut at_broker(&["decrypt", "--force", "-i", "bywash:box", "letter.bywash"]), 7, "its key file from before it was rotated");
    succeed(&mut at_broker(&["decrypt", "--force", "-i", "box.key", "letter.bywash"]));
    for to_old in [&["encrypt", "--force", "-r", "box.key", "letter"][..], &["keygen", "--recipient", "box.key"]] {
        refused(&mut at_broker(to_old), 2, "encrypt to bywash:box");
    }
    place.write("signer.key", stdout(&succeed(&mut at_broker(&["key", "uri", "signer"]))).as_bytes());
    refused(&mut at_broker(&["encrypt", "--force", "-r", "signer.key", "letter"]), 7, "may be used to sign and not to derive");
    succeed(&mut at_broker(&["rekey", "-i", "box.key", "--new-recipient", "bywash:box", "letter.bywash"]));
    place.write("box.key", stdout(&succeed(&mut at_broker(&["key", "uri", "box"]))).as_bytes());
    succeed(&mut at_broker(&["encrypt", "--force", "-r", "box.key", "letter"]));
    succeed(&mut at_broker(&["decrypt", "--force", "-i", "bywash:box", "letter.bywash"]));
    broker.signal("TERM");
    broker.wait();
    // Who only encrypts needs no broker.
    succeed(&mut at_broker(&["encrypt", "--force", "-r", recipient.trim(), "letter"]));
    refused(&mut at_broker(&["encrypt", "--force", "-r", "box.key", "letter"]), 7, "cannot be asked");
    refused(&mut at_broker(&["decrypt", "--force", "-i", "bywash:box", "letter.bywash"]), 7, "cannot be asked");
}

#[test]
fn folders_keep_their_modes_and_an_obstacle_stops_nothing_else() {
    let place = Place::new();
    place.write("tree/private/a", b"a");
    place.write("tree/closed/b", b"b");
    place.write("tree/c", b"c");
    let mode = |name: &str, bits| fs::set_permissions(place.at(name), fs::Permissions::from_mode(bits)).unwrap();
    mode("tree/private", 0o750);
    mode("tree", 0o711);
    // Results within the sources, two levels down, are not sources.
    succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "tree/out/deep"]));
    succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "tree/out/deep"]));
    assert!(place.at("tree/out/deep/private/a.bywash").exists() && !place.at("tree/out/deep/out/deep").exists());
    let bits = |name: &str| fs::metadata(place.at(name)).unwrap().mode() & 0o777;
    assert_eq!((bits("tree/out/deep"), bits("tree/out/deep/private")), (0o711, 0o750));
    mode("tree/closed", 0);
    if fs::read_dir(place.at("tree/closed")).is_ok() {
        return eprintln!("skipped: folders that may not be read, which this user may");
    }
    let refused = place.refused(&["encrypt", "-R", "tree", "-o", "other"], 4, "closed");
    assert!(place.at("other/private/a.bywash").exists(), "{}", stderr(&refused));
    mode("tree/closed", 0o700);
}

#[test]
fn a_name_that_would_command_the_terminal_is_shown() {
    let place = Place::new();
    let refused = place.refused(&["encrypt", "ab\u{1b}[2J"], 1, "ab\\u{1b}[2J");
    assert!(!stderr(&refused).contains('\u{1b}'));
}

/// Whether a GPU is here is found by asking for it.
#[test]
fn engines_are_named_or_preferred_and_give_the_same_files() {
    let place = Place::new();
    let plain = text(3_000_000);
    place.write("plain", &plain);
    let back = |name: &str| {
        succeed(&mut place.bywash(&["decrypt", "--engine", "cpu", "-o", "back", "-f", name]));
        assert!(fs::read(place.at("back")).unwrap() == plain, "{name}");
    };
    succeed(&mut place.bywash(&["encrypt", "--engine", "cpu", "--prefer", "throughput", "-o", "named", "plain"]));
    back("named");
    let preferred = place.bywash(&["encrypt", "--prefer", "cpu-free", "-o", "preferred", "plain"]).output().unwrap();
    if preferred.status.success() {
        back("preferred");
    } else {
        assert!(stderr(&preferred).contains("there is nothing to prefer beside the processor"), "{}", stderr(&preferred));
        assert!(!place.at("preferred").exists());
        eprintln!("skipped: files by a GPU; {}", stderr(&preferred));
    }
    place.refused(&["encrypt", "--prefer", "luck", "plain"], 2, "possible values: latency, throughput, cpu-free, energy");
}

#[test]
fn what_is_no_file_is_written_to_and_not_replaced() {
    let place = Place::new();
    place.write("file", b"text");
    succeed(&mut place.bywash(&["encrypt", "file"]));
    assert!(Command::new("mkfifo").arg(place.at("pipe")).status().unwrap().success());
    for way in [["encrypt", "file"], ["decrypt", "file.bywash"]] {
        let reader = std::thread::spawn({
            let pipe = place.at("pipe");
            move || fs::read(pipe).unwrap()
        });
        succeed(&mut place.bywash(&[way[0], way[1], "-f", "-o", "pipe"]));
        assert_eq!(reader.join().unwrap() == b"text", way[0] == "decrypt");
        // Whatever /dev/null is, this user may not replace it, or it is a device still.
        succeed(&mut place.bywash(&[way[0], way[1], "-o", "/dev/null"]));
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
    assert_eq!(stdout(&succeed(&mut place.bywash(&["decrypt", "file.bywash", "-o", "/dev/stdout"]))), "text");

    // A link is what it leads to; one that leads nowhere is left alone.
    place.write("real", b"old");
    symlink("real", place.at("link")).unwrap();
    place.refused(&["decrypt", "file.bywash", "-o", "link"], 1, "real: it is there already");
    succeed(&mut place.bywash(&["decrypt", "file.bywash", "-f", "-o", "link"]));
    assert!(place.at("link").is_symlink() && fs::read(place.at("real")).unwrap() == b"text");
    symlink("nowhere", place.at("dangling")).unwrap();
    place.refused(&["decrypt", "file.bywash", "-f", "-o", "dangling"], 1, "not a regular file");

    place.refused(&["encrypt", "file", "-f", "-o", "file"], 2, "would be replaced by its own result");
    place.refused(&["encrypt", "file", "-o", "folder/"], 2, "make it first");
    assert!(fs::read(place.at("file")).unwrap() == b"text" && !place.at("folder").exists());
}

#[test]
fn what_changed_is_done_anew_and_nothing_else() {
    let place = Place::new();
    for name in ["tree/same", "tree/changed", "tree/touched", "tree/others", "tree/strange"] {
        place.write(name, &text(100_000));
    }
    let run = |options: &[&str]| place.bywash(&[&["encrypt", "-R", "-o", "out", "tree"], options].concat());
    succeed(&mut run(&[]));
    let inode = |name: &str| fs::metadata(place.at(name)).unwrap().ino();
    let before = ["out/same.bywash", "out/changed.bywash", "out/touched.bywash"].map(inode);
    place.write("tree/changed", b"longer or shorter");
    // The same length, and another time.
    place.write("tree/touched", &[7; 100_000]);
    place.write("tree/new", b"new");
    refused(&mut run(&[]), 1, "its time or length is not that of this source");
    refused(&mut run(&["--update", "--force"]), 2, "cannot be used with");
    let done = succeed(&mut run(&["--update", "--verify"]));
    assert!(stderr(&done).contains("6 files") && stderr(&done).contains("4 of them done before"), "{}", stderr(&done));
    let after = ["out/same.bywash", "out/changed.bywash", "out/touched.bywash"].map(inode);
    assert!(before[0] == after[0] && before[1] != after[1] && before[2] != after[2]);
    succeed(&mut place.bywash(&["decrypt", "-R", "-o", "back", "out"]));
    for name in ["same", "changed", "touched", "new"] {
        assert!(fs::read(place.at("back").join(name)).unwrap() == fs::read(place.at("tree").join(name)).unwrap(), "{name}");
    }

    // A link that leads elsewhere now is exchanged, too.
    symlink("one", place.at("tree/link")).unwrap();
    succeed(&mut run(&["--update"]));
    fs::remove_file(place.at("tree/link")).unwrap();
    symlink("two", place.at("tree/link")).unwrap();
    refused(&mut run(&[]), 1, "out/link");
    succeed(&mut run(&["--update"]));
    assert_eq!(fs::read_link(place.at("out/link")).unwrap(), Path::new("two"));
    // One that was made after its source stays, and so does what is no link.
    fs::remove_file(place.at("out/link")).unwrap();
    symlink("three", place.at("out/link")).unwrap();
    refused(&mut run(&["--update"]), 1, "was made after its source");
    assert_eq!(fs::read_link(place.at("out/link")).unwrap(), Path::new("three"));
    succeed(&mut run(&["--force"]));
    assert_eq!(fs::read_link(place.at("out/link")).unwrap(), Path::new("two"));
    fs::remove_file(place.at("out/link")).unwrap();
    place.write("out/link", b"mine");
    for option in ["--update", "--force"] {
        refused(&mut run(&[option]), 1, "something else than a link is there");
    }
    assert_eq!(fs::read(place.at("out/link")).unwrap(), b"mine");
    fs::remove_file(place.at("out/link")).unwrap();

    // What was written to itself stays, and so does what has a journal.
    let now = std::time::SystemTime::now();
    let dated = |name: &str, seconds: u64| {
        let at = now + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(place.at(name)).unwrap().set_modified(at).unwrap();
    };
    dated("out/same.bywash", 100);
    refused(&mut run(&["--update"]), 1, "was written to after its source");
    dated("tree/same", 200);
    let salt = *Header::read(fs::File::open(place.at("out/same.bywash")).unwrap()).unwrap().salt();
    let digits: String = salt[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let journal = place.write(&format!("out/.bywash-journal-{digits}"), b"");
    refused(&mut run(&["--update"]), 8, "left a journal");
    fs::remove_file(&journal).unwrap();
    succeed(&mut run(&["--update"]));
    // So does what is there already and is to be compared with its source: its bytes are not all that it says.
    let salt = *Header::read(fs::File::open(place.at("out/same.bywash")).unwrap()).unwrap().salt();
    let digits: String = salt[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let journal = place.write(&format!("out/.bywash-journal-{digits}"), b"");
    refused(&mut run(&["--verify"]), 8, "left a journal");
    fs::remove_file(&journal).unwrap();
    // What cannot be a journal is named.
    fs::create_dir(&journal).unwrap();
    refused(&mut run(&["--verify"]), 1, &format!("its journal, out/.bywash-journal-{digits}"));
    fs::remove_dir(&journal).unwrap();
    succeed(&mut run(&["--verify"]));

    // What is none of ours stays, and what the key that is given does not open.
    place.write("out/strange.bywash", b"mine");
    succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("other")));
    succeed(bywash().current_dir(place.folder.path()).args([
        "encrypt",
        "-k",
        "other",
        "--force",
        "-o",
        "out/others.bywash",
        "tree/others",
    ]));
    place.write("tree/others", b"changed");
    let said = refused(&mut run(&["--update"]), 1, "does not open it");
    assert!(stderr(&said).contains("strange.bywash: it is there already") && stderr(&said).contains("2 failed"), "{}", stderr(&said));
    assert_eq!(fs::read(place.at("out/strange.bywash")).unwrap(), b"mine");
}

#[test]
fn a_wrong_key_is_not_said_of_each_file_of_a_folder() {
    let place = Place::new();
    (0..11).for_each(|number| drop(place.write(&format!("tree/{number}"), b"text")));
    succeed(&mut place.bywash(&["encrypt", "-R", "-o", "out", "tree"]));
    succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("other")));
    let run = |verbose: &[&str], named: usize, says: &str| {
        let mut command = bywash();
        command.current_dir(place.folder.path()).args(["decrypt", "-R", "-k", "other", "-o", "back", "out"]).args(verbose);
        let said = stderr(&refused(&mut command, 7, says));
        assert_eq!(said.lines().filter(|line| line.starts_with("bywash: out/")).count(), named, "{said}");
    };
    run(&[], 8, "and 3 files more that no key given opens; -v names them\n");
    run(&["-v"], 11, "11 failed");
}

#[test]
fn a_result_of_before_is_kept_only_if_it_is_what_is_asked_for() {
    let place = Place::new();
    let source = place.write("file", &text(200_000));
    succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("other")));
    succeed(bywash().arg("keygen").arg("-o").arg(place.at("identity")));
    let recipient = stdout(&succeed(bywash().arg("keygen").arg("--recipient").arg(place.at("identity"))));
    let recipient = recipient.trim();
    let alone = |arguments: &[&str]| {
        let mut command = bywash();
        command.current_dir(place.folder.path()).args(arguments);
        command
    };
    succeed(&mut place.bywash(&["encrypt", "file"]));
    refused(&mut alone(&["encrypt", "file", "-k", "other"]), 1, "what is given now does not open it");
    place.refused(&["encrypt", "file", "-r", recipient], 1, "opens in other ways");
    refused(&mut alone(&["decrypt", "file.bywash", "-k", "other"]), 7, "none of the keys given opens it");
    assert!(stderr(&succeed(&mut place.bywash(&["encrypt", "--verify", "file"]))).contains("is verified and is kept"));
    assert!(stderr(&succeed(&mut place.bywash(&["decrypt", "--verify", "file.bywash"]))).contains("is verified and is kept"));

    // For whom it is nobody can tell but him.
    succeed(&mut alone(&["encrypt", "file", "-r", recipient, "-o", "his"]));
    refused(&mut alone(&["encrypt", "file", "-r", recipient, "-o", "his"]), 1, "for whom cannot be told");

    // Damaged on the disk, with its length and time: nothing is removed for it.
    let time = fs::metadata(&source).unwrap().modified().unwrap();
    flip(&place.at("file.bywash"), 100_000);
    fs::File::options().write(true).open(place.at("file.bywash")).unwrap().set_modified(time).unwrap();
    succeed(&mut place.bywash(&["encrypt", "file"]));
    place.refused(&["encrypt", "--remove-source", "file"], 8, "is damaged");
    assert!(source.exists());
    succeed(&mut place.bywash(&["encrypt", "--force", "file"]));

    // What an interrupted run left to remove, the next one removes; a file's other names do not keep it.
    fs::hard_link(&source, place.at("name")).unwrap();
    succeed(&mut place.bywash(&["encrypt", "name"]));
    succeed(&mut place.bywash(&["encrypt", "--remove-source", "file", "name"]));
    assert!(!source.exists() && !place.at("name").exists());
    succeed(&mut place.bywash(&["decrypt", "file.bywash", "name.bywash"]));
    assert!(fs::read(&source).unwrap() == text(200_000));
}

#[test]
fn folders_and_links_come_back_as_they_were() {
    let place = Place::new();
    place.write("tree/a/file", b"text");
    symlink("file", place.at("tree/a/link")).unwrap();
    let old = |path: &Path, seconds: &str| {
        assert!(Command::new("touch").args(["-h", "-d", seconds]).arg(path).status().unwrap().success());
    };
    let all = ["tree/a/link", "tree/a/file", "tree/a", "tree"];
    all.iter().zip(["@1000000001", "@1000000002", "@1000000003", "@1000000004"]).for_each(|(name, seconds)| old(&place.at(name), seconds));
    fs::set_permissions(place.at("tree/a"), fs::Permissions::from_mode(0o751)).unwrap();
    // One that an interrupted run made.
    fs::create_dir_all(place.at("sealed/a")).unwrap();
    fs::set_permissions(place.at("sealed/a"), fs::Permissions::from_mode(0o700)).unwrap();
    succeed(&mut place.bywash(&["encrypt", "-R", "tree", "-o", "sealed"]));
    succeed(&mut place.bywash(&["decrypt", "-R", "sealed/a", "-o", "back"]));
    let of = |path: PathBuf| fs::symlink_metadata(&path).map(|is| (is.mtime(), is.mode(), is.uid(), is.gid())).unwrap();
    for name in ["", "file", "link"] {
        let came_back = of(place.at("back").join(name));
        assert_eq!(came_back, of(place.at("tree/a").join(name)), "{name}");
    }
}
