//! `bywash rekey`, `info` and `decrypt --salvage`, as a user types them.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};
use support::place::{Place, flip, text};
use support::{bywash, refused, stderr, stdout, succeed};

/// What a command line in a folder does, with no key but those in it.
struct Shell<'a>(&'a Place);

impl Shell<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = bywash();
        command.current_dir(self.0.folder.path()).args(line.split(' ')).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        succeed(&mut self.command(line))
    }

    fn refused(&self, line: &str, exit: i32, says: &str) {
        refused(&mut self.command(line), exit, says);
    }

    fn info(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_slice(&self.run(&format!("info --json {arguments}")).stdout).unwrap()
    }

    fn kinds(&self, path: &str) -> Vec<String> {
        let slots = self.info(path)[0]["slots"].clone();
        slots.as_array().unwrap().iter().map(|slot| slot["kind"].as_str().unwrap().to_owned()).collect()
    }
}

/// With a second passphrase, a second key file and an identity.
fn place() -> Place {
    let place = Place::new();
    for (name, passphrase) in [("new", "battery staple\n"), ("third", "stronger\n")] {
        let path = place.write(name, passphrase.as_bytes());
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    Shell(&place).run("keygen --key-file other");
    Shell(&place).run("keygen -o me.identity");
    place
}

#[test]
fn a_passphrase_is_exchanged_and_everything_else_stays() {
    let (place, text) = (place(), text(300_000));
    let shell = Shell(&place);
    let file = place.write("file", &text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    shell.run("encrypt --passphrase-file passphrase -k key file");
    let before = fs::metadata(place.at("file.bywash")).unwrap();
    shell.refused("rekey --passphrase-file new file.bywash", 7, "a passphrase or a key file");
    let said = shell.run("rekey --passphrase-file passphrase --new-passphrase-file new file.bywash");
    assert_eq!(stderr(&said), "file.bywash: it can be opened with a passphrase or a key file\n");
    let after = fs::metadata(place.at("file.bywash")).unwrap();
    let of = |metadata: &fs::Metadata| (metadata.mode(), metadata.mtime(), metadata.len());
    assert_eq!(of(&before), of(&after));
    assert_ne!(before.ino(), after.ino());
    shell.refused("decrypt --passphrase-file passphrase -o - file.bywash", 7, "none of the keys");
    for key in ["--passphrase-file new", "-k key"] {
        assert!(shell.run(&format!("decrypt {key} -o - file.bywash")).stdout == text, "{key}");
    }
    assert_eq!(shell.info("--passphrase-file new file.bywash")[0]["opened_slots"], serde_json::json!([1]));
    // A run that does it again finds it done.
    let again = shell.run("rekey --json --passphrase-file passphrase --new-passphrase-file new file.bywash");
    assert!(stdout(&again).contains("done before"), "{}", stdout(&again));
    // And encrypting knows its result again.
    assert!(stderr(&shell.run("encrypt --passphrase-file new -k key file")).contains("was there already"));
}

#[test]
fn slots_are_added_and_removed_and_nobody_is_shut_out() {
    let place = place();
    let shell = Shell(&place);
    place.write("file", b"text");
    shell.run("encrypt -k key file");
    let me = stdout(&shell.run("keygen --recipient me.identity"));
    shell.run(&format!("rekey -k key --add --new-recipient {} file.bywash", me.trim()));
    assert_eq!(shell.kinds("file.bywash"), ["key-file", "x25519"]);
    shell.run("rekey -i me.identity --add --new-key-file other --new-passphrase-file new file.bywash");
    assert_eq!(shell.kinds("file.bywash"), ["key-file", "x25519", "passphrase", "key-file"]);

    shell.refused("rekey -k key --remove 1 file.bywash", 2, "slot 1 is the one that the key given opens");
    shell.refused("rekey -k key --remove 5 file.bywash", 2, "it has no slot 5: it has 4");
    shell.refused("rekey -k key --add --only file.bywash", 2, "cannot be used with");
    shell.run("rekey -k other --remove 1 --remove 3 file.bywash");
    assert_eq!(shell.kinds("file.bywash"), ["x25519", "key-file"]);
    shell.refused("decrypt -k key -o - file.bywash", 7, "none of the keys");
    shell.run("rekey -k other --only --new-key-file key file.bywash");
    assert_eq!(shell.kinds("file.bywash"), ["key-file"]);
    assert_eq!(shell.run("decrypt -k key -o - file.bywash").stdout, b"text");
    // Nothing to be asked on.
    shell.refused("rekey -k key file.bywash", 2, "there is no terminal");
}

/// Links lead to the file, other names of it and its journal stand in the way.
#[test]
fn what_a_file_is_called_and_whether_somebody_writes_to_it() {
    let place = place();
    let shell = Shell(&place);
    place.write("file", b"text");
    shell.run("encrypt -k key file");
    symlink("file.bywash", place.at("link.bywash")).unwrap();
    shell.run("rekey -k key --new-key-file other link.bywash");
    assert!(place.at("link.bywash").is_symlink());
    assert_eq!(shell.run("decrypt -k other -o - file.bywash").stdout, b"text");
    fs::hard_link(place.at("file.bywash"), place.at("twin.bywash")).unwrap();
    shell.refused("rekey -k other --new-key-file key file.bywash", 1, "several names");
    fs::remove_file(place.at("twin.bywash")).unwrap();

    let held = fs::File::open(place.at("file.bywash")).unwrap();
    held.lock().unwrap();
    shell.refused("rekey -k other --new-key-file key file.bywash", 1, "has it open");
    drop(held);
    shell.refused("rekey -k other --new-key-file key file", 8, "not a file encrypted by bywash");
    assert_eq!(shell.run("decrypt -k other -o - file.bywash").stdout, b"text");
    assert!(fs::read_dir(place.folder.path()).unwrap().all(|entry| !entry.unwrap().file_name().to_string_lossy().starts_with('.')));
}

#[test]
fn a_folder_is_gone_through_and_a_failure_stops_nothing_else() {
    let place = place();
    let shell = Shell(&place);
    for (name, len) in [("tree/a", 10), ("tree/b/c", 5_000_000), ("tree/b/d", 0)] {
        place.write(name, &text(len));
    }
    shell.run("encrypt -R -k key -o out tree");
    flip(&place.at("out/a.bywash"), 60);
    // A damaged chunk is not the header's affair, and stays as damaged.
    flip(&place.at("out/b/c.bywash"), 1_000_000);
    let output = shell.command("rekey -R --json -k key --new-key-file other out").output().unwrap();
    assert_eq!(output.status.code(), Some(8), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let statuses: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| file["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["failed", "done", "done"]);
    let fsck = shell.command("fsck -R --json -k other out").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&fsck.stdout).unwrap();
    let damaged = &report["files"][1]["damaged"];
    assert_eq!((damaged.as_array().unwrap().len(), &damaged[0]["what"], &damaged[0]["chunks"]), (1, &"not-authentic".into(), &1.into()));
    assert_eq!(report["files"][2]["status"], "good");
}

#[test]
fn a_volume_gets_another_passphrase() {
    let place = place();
    let shell = Shell(&place);
    shell.run("mount --init --passphrase-file passphrase --chunk-size 16K vault");
    let told = shell.info("vault");
    assert_eq!(
        (&told[0]["kind"], &told[0]["cipher"], &told[0]["opened_slots"]),
        (&"volume".into(), &serde_json::Value::Null, &serde_json::json!([]))
    );
    let told = shell.info("--passphrase-file passphrase vault");
    assert_eq!(
        (&told[0]["cipher"], &told[0]["chunk_bytes"], &told[0]["names"]),
        (&"aes-256-gcm".into(), &16384.into(), &"encrypted".into())
    );
    shell.run("rekey --passphrase-file passphrase --new-passphrase-file new --new-key-file key vault");
    assert_eq!(shell.kinds("vault"), ["passphrase", "key-file"]);
    shell.refused("fsck --passphrase-file passphrase vault", 7, "none of the keys");
    for key in ["--passphrase-file new", "-k key"] {
        shell.run(&format!("fsck {key} vault"));
    }
    assert!(stdout(&shell.run("info vault/bywash.volume")).contains("the key of the volume in its folder"));
    let words = stdout(&shell.run("info -k key vault"));
    assert!(words.contains("slot 2  a key file: opened by what was given") && words.contains("aes-256-gcm, 16 KiB together"), "{words}");
}

/// gocryptfs itself opens what it is left with.
#[test]
fn a_volume_of_gocryptfs_gets_another_passphrase() {
    let place = place();
    let shell = Shell(&place);
    let gocryptfs = |arguments: &[&str]| Command::new("gocryptfs").current_dir(place.folder.path()).args(arguments).output();
    for options in [&[][..], &["-aessiv", "-hkdf=false"], &["-plaintextnames"]] {
        fs::create_dir(place.at("vault")).unwrap();
        let init = [&["-q", "-init", "-scryptn", "10", "-passfile", "passphrase"], options, &["vault"]].concat();
        match gocryptfs(&init) {
            Ok(made) if made.status.success() => {}
            Ok(made) => panic!("{}", stderr(&made)),
            Err(_) => return eprintln!("skipped: gocryptfs is not installed (apt-get install gocryptfs)"),
        }
        let told = shell.info("vault");
        assert_eq!((&told[0]["kind"], &told[0]["slots"][0]["cost"]), (&"gocryptfs".into(), &"scrypt: N 1024, r 8, p 1".into()));
        let before: serde_json::Value = serde_json::from_slice(&fs::read(place.at("vault/gocryptfs.conf")).unwrap()).unwrap();
        shell.refused("rekey --passphrase-file new --new-passphrase-file third vault", 7, "wrong passphrase");
        shell.refused("rekey --passphrase-file passphrase --new-key-file key vault", 2, "one passphrase and nothing else");
        shell.run("rekey --passphrase-file passphrase --new-passphrase-file new vault");
        let after: serde_json::Value = serde_json::from_slice(&fs::read(place.at("vault/gocryptfs.conf")).unwrap()).unwrap();
        for field in ["Creator", "FeatureFlags", "Version"] {
            assert_eq!(before[field], after[field], "{field}");
        }
        shell.refused("fsck --passphrase-file passphrase vault", 7, "wrong passphrase");
        shell.run("fsck --passphrase-file new vault");
        // A run that was killed before it could say so is run again, and what it left of itself opens the volume no more.
        let left = ["vault/.bywash-unfinished-key-1-0", "vault/.bywash-unfinished-1-0"].map(|name| place.at(name));
        for path in &left {
            fs::copy(place.at("vault/gocryptfs.conf"), path).unwrap();
        }
        shell.run("rekey --passphrase-file passphrase --new-passphrase-file new vault");
        // Where names are plain, what is called as others are may be a program's that is at work in a mount.
        assert_eq!(left.each_ref().map(|path| path.exists()), [false, true]);
        fs::remove_file(&left[1]).unwrap();
        // It checks the old passphrase, and both ways of sealing its key are the same.
        fs::write(place.at("both"), "battery staple\ncorrect horse\n").unwrap();
        let change = Command::new("gocryptfs")
            .current_dir(place.folder.path())
            .args(["-q", "-passwd", "vault"])
            .stdin(fs::File::open(place.at("both")).unwrap())
            .output()
            .unwrap();
        assert!(change.status.success(), "{options:?}: {}{}", stdout(&change), stderr(&change));
        shell.run("fsck --passphrase-file passphrase vault");
        fs::remove_dir_all(place.at("vault")).unwrap();
    }
}

#[test]
fn what_is_good_of_a_damaged_file_is_saved_under_another_name() {
    let (place, text) = (place(), text(300_000));
    let shell = Shell(&place);
    for name in ["tree/good", "tree/bad", "tree/cut"] {
        place.write(name, &text);
    }
    shell.run("encrypt -R -k key -o sealed tree");
    flip(&place.at("sealed/bad.bywash"), 144 + 65576 + 100);
    let cut = place.at("sealed/cut.bywash");
    fs::File::options().write(true).open(&cut).unwrap().set_len(144 + 2 * 65576).unwrap();
    shell.refused("decrypt -k key sealed/cut.bywash", 8, "the file is truncated after it");

    shell.refused("decrypt -R --salvage -k key sealed -o out", 8, "1 of 5 chunks damaged; 234.5 kB of text saved in out/bad.salvaged");
    let read = |name: &str| fs::read(place.at(name)).unwrap();
    assert!(read("out/good") == text && !place.at("out/bad").exists() && !place.at("out/good.salvaged").exists());
    let saved = read("out/bad.salvaged");
    assert_eq!(saved.len(), text.len());
    assert!(saved[..65536] == text[..65536] && saved[131072..] == text[131072..] && saved[65536..131072].iter().all(|byte| *byte == 0));
    assert!(read("out/cut.salvaged") == text[..131072]);
    assert_eq!(fs::metadata(place.at("out/bad.salvaged")).unwrap().mtime(), fs::metadata(place.at("sealed/bad.bywash")).unwrap().mtime());
    // It is not taken for the text, and not written over.
    shell.refused("decrypt -k key sealed/bad.bywash -o out/bad", 8, "chunk 1 at offset");
    shell.refused("decrypt --salvage -k key sealed/bad.bywash -o out/bad", 8, "out/bad.salvaged is there already and is kept");
    shell.refused("decrypt --salvage -k key -o - sealed/bad.bywash", 2, "needs a file");
    shell.refused("decrypt --salvage --remove-source -k key sealed/bad.bywash", 2, "cannot be used with");
    assert!(cut.exists());
    // What is saved has a name of its own.
    place.write("tree/bad.salvaged", b"another");
    shell.run("encrypt -k key -o sealed/bad.salvaged.bywash tree/bad.salvaged");
    shell.refused("decrypt -R -f --salvage -k key sealed -o again", 2, "the text of another file goes");
}

/// Who is to be shut out is, though the work was done in part before, or by two locks for one key.
#[test]
fn what_is_done_again_shuts_out_whom_it_should() {
    let place = place();
    let shell = Shell(&place);
    let opens = |key: &str| shell.command(&format!("decrypt {key} -o - file.bywash")).output().unwrap().status.success();
    place.write("file", b"text");
    // Two slots for the old passphrase.
    shell.run("encrypt --passphrase-file passphrase -k key -k key -k other file");
    assert_eq!(shell.kinds("file.bywash"), ["passphrase", "key-file", "key-file"]);
    shell.run("rekey -k key --add --new-passphrase-file passphrase file.bywash");
    assert_eq!(shell.kinds("file.bywash").len(), 3, "it has that passphrase already");
    shell.run("rekey --passphrase-file passphrase -k key --new-passphrase-file new file.bywash");
    assert_eq!(shell.kinds("file.bywash"), ["passphrase", "key-file"]);
    assert!(opens("--passphrase-file new") && opens("-k other") && !opens("-k key") && !opens("--passphrase-file passphrase"));
    // The old key opens nothing here, the new one does, and another is left that was to go.
    shell.refused("rekey -k key --only --new-passphrase-file new file.bywash", 7, "none of the keys given");
    shell.refused("rekey -k key --new-passphrase-file new --new-key-file key file.bywash", 7, "none of the keys given");
    shell.refused("rekey -k key --remove 2 --new-passphrase-file new file.bywash", 7, "none of the keys given");
    shell.run("rekey -k other --only --new-passphrase-file new file.bywash");
    assert!(opens("--passphrase-file new") && !opens("-k other"));
    let again = shell.run("rekey -k other --new-passphrase-file new file.bywash");
    assert!(stderr(&again).starts_with("1 of the files: opened by what is new already, and not by the keys given"), "{}", stderr(&again));
    assert!(stdout(&shell.run("rekey --json -k other --only --new-passphrase-file new file.bywash")).contains("done before"));
}

#[test]
fn slots_are_removed_by_number_from_one_file_alone() {
    let place = place();
    let shell = Shell(&place);
    place.write("tree/a", b"text");
    place.write("tree/b", b"text");
    shell.run("encrypt -R -k key -k other tree");
    shell.refused("rekey -R -k key --remove 2 tree", 2, "one file's slots");
    assert_eq!(shell.kinds("tree/a.bywash").len(), 2);
    shell.run("rekey -R -k key --only tree");
    assert_eq!(shell.kinds("tree/b.bywash").len(), 1);
}

/// What takes a name while the work is under way stays: the file is held up in its copy by a large one that comes before it in the same batch.
#[test]
fn a_file_that_is_replaced_meanwhile_stays() {
    let place = place();
    let shell = Shell(&place);
    place.write("tree/a", b"old");
    place.write("tree/z", &text(100_000_000));
    shell.run("encrypt -R -k key tree");
    place.write("a", b"newer");
    shell.run("encrypt -k key a");
    let rekey = shell.command("rekey -R -j 1 -k key --new-key-file other tree").stderr(Stdio::piped()).spawn().unwrap();
    // It has begun with the large one when it reads that.
    let io = format!("/proc/{}/io", rekey.id());
    let read = || fs::read_to_string(&io).ok()?.lines().next()?.strip_prefix("rchar: ")?.parse::<u64>().ok();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while read().is_some_and(|read| read < 30_000_000) && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    fs::rename(place.at("a.bywash"), place.at("tree/a.bywash")).unwrap();
    let output = rekey.wait_with_output().unwrap();
    match output.status.code() {
        // It was slow to be seen, and the copy was in place by then.
        Some(0) => eprintln!("skipped: the work was done before it was disturbed"),
        code => {
            assert!(code == Some(1) && stderr(&output).contains("somebody replaced or changed it meanwhile"), "{}", stderr(&output));
            assert_eq!(shell.run("decrypt -k other -o - tree/z.bywash").stdout.len(), 100_000_000);
        }
    }
    assert_eq!(shell.run("decrypt -k key -o - tree/a.bywash").stdout, b"newer");
}

/// A copy that a killed run left opens for its new key, and would for good; one that decryption left may be anybody's to read.
#[test]
fn what_a_killed_run_left_goes() {
    let place = place();
    let shell = Shell(&place);
    place.write("file", b"text");
    shell.run("encrypt -k key file");
    let left = place.at(".bywash-unfinished-1-0");
    fs::copy(place.at("file.bywash"), &left).unwrap();
    let held = fs::File::open(&left).unwrap();
    held.lock().unwrap();
    shell.run("rekey -k key --new-key-file other file.bywash");
    assert!(left.exists(), "it is another run's");
    drop(held);
    // Also by the run that finds its own work done before; and what never became a file of ours.
    place.write(".bywash-unfinished-1-1", b"");
    let again = shell.run("rekey -k key --new-key-file other file.bywash");
    assert!(stderr(&again).contains(".bywash-unfinished-1-0: left by a run that was killed; removed"), "{}", stderr(&again));
    assert!(!left.exists() && !place.at(".bywash-unfinished-1-1").exists());

    for (line, remains) in [
        ("encrypt -k key again", false),
        ("decrypt -f -k other file.bywash", false),
        ("fsck -k other file.bywash", true),
        ("info -k other file.bywash", true),
        ("decrypt -k other -o - file.bywash", true),
    ] {
        place.write("again", b"text");
        place.write(".bywash-unfinished-1-0", b"a secret");
        shell.run(line);
        assert_eq!(left.exists(), remains, "{line}");
    }
    // Where it is met among what is to be encrypted, though the results go elsewhere; not where nothing is written.
    place.write("tree/inner/.bywash-unfinished-9-0", b"a secret");
    place.write("tree/file", b"text");
    shell.run("encrypt -R -k key -o sealed tree");
    assert!(!place.at("tree/inner/.bywash-unfinished-9-0").exists());
    place.write("sealed/.bywash-unfinished-9-0", b"");
    shell.run("decrypt -R -k key -o back sealed");
    assert!(place.at("sealed/.bywash-unfinished-9-0").exists());
    // Who names one wants something of it.
    fs::copy(place.at("file.bywash"), &left).unwrap();
    shell.run("decrypt -k other -o saved .bywash-unfinished-1-0");
    shell.run("rekey -k other --new-key-file key .bywash-unfinished-1-0");
    assert!(left.exists() && place.at("saved").exists());
    symlink(".bywash-unfinished-1-0", place.at("leads.bywash")).unwrap();
    shell.run("decrypt -k key -o saved-again leads.bywash");
    assert!(left.exists());
    // What it becomes is not one, nor is what has only a name like it; and nothing becomes one.
    shell.run("encrypt -k key --remove-source .bywash-unfinished-1-0");
    place.write(".bywash-unfinished-thesis.pdf", b"mine");
    shell.run("encrypt -f -k key file");
    assert!(place.at(".bywash-unfinished-1-0.bywash").exists() && place.at(".bywash-unfinished-thesis.pdf").exists());
    shell.refused("decrypt -k key -o .bywash-unfinished-7-7 file.bywash", 1, "is what unfinished files are called");
    // What is in use, and stays, is told of.
    let held = fs::File::open(place.write("tree/.bywash-unfinished-1-0", b"a secret")).unwrap();
    held.lock_shared().unwrap();
    let told = stderr(&shell.run("encrypt -R -v -k key tree"));
    assert!(told.contains("tree/.bywash-unfinished-1-0: passed over: left unfinished by another run"), "{told}");
    drop(held);
    // A folder of that name is nobody's leftover, and a link is not followed.
    fs::create_dir(&left).unwrap();
    symlink("file", place.at(".bywash-unfinished-1-1")).unwrap();
    shell.run("encrypt -f -k key file");
    assert!(left.is_dir() && place.at("file").exists() && place.at(".bywash-unfinished-1-1").is_symlink());
}

/// A folder with a copy of a volume's key is a folder: what is beside it is looked at and rekeyed, whatever else was tried there before.
#[test]
fn a_copied_volume_file_hides_nothing() {
    let place = place();
    let shell = Shell(&place);
    shell.run("mount --init -k key vault");
    fs::create_dir_all(place.at("plain")).unwrap();
    place.write("backup/file", b"text");
    shell.run("encrypt --remove-source -k key backup/file");
    fs::copy(place.at("vault/bywash.volume"), place.at("backup/bywash.volume")).unwrap();
    shell.refused("mount -k key backup plain", 8, "identity");
    shell.refused("fsck --recover -k key backup", 8, "identity");
    shell.run("fsck -R --recover -k key backup");
    shell.run("rekey -R -k key --new-key-file other backup");
    for name in ["backup/bywash.volume", "backup/file.bywash"] {
        shell.refused(&format!("info -k key {name}"), 7, "none of the keys");
    }
    flip(&place.at("backup/file.bywash"), 150);
    shell.refused("fsck -R -k other backup", 8, "backup/file.bywash: 1 of the 1 chunks");
    assert_eq!(fs::read_dir(place.at("backup")).unwrap().count(), 2);

    // A volume that has lost its identity is not passed over as if it were such a folder.
    shell.run("mount --init -k key lost");
    place.write("lost/sealed-name", b"");
    fs::remove_file(place.at("lost/.bywash-folder")).unwrap();
    shell.refused("fsck -k key lost", 8, "identity");
    shell.refused("fsck -R -k key lost", 1, "lost: a volume's key is in it and not the volume's identity");
    shell.refused("rekey -R -k key --new-key-file other lost", 1, "not the volume's identity");
    shell.refused("info -R lost", 1, "not the volume's identity");
    fs::remove_dir_all(place.at("lost")).unwrap();

    // gocryptfs' key likewise: its volumes have an identity for the names in the root, unless names are plain.
    let config = r#"{"Creator":"gocryptfs 2.3","EncryptedKey":"","ScryptObject":{"Salt":"","N":1024,"R":8,"P":1,"KeyLen":32},
        "Version":2,"FeatureFlags":["GCMIV128","HKDF","DirIV","EMENames","LongNames","Raw64"]}"#;
    place.write("other-backup/gocryptfs.conf", config.as_bytes());
    place.write("other-backup/file", b"text");
    shell.run("encrypt --remove-source -k key other-backup/file");
    shell.run("rekey -R -k key --new-key-file other other-backup");
    shell.run("info -k other other-backup/file.bywash");
    place.write("other-backup/gocryptfs.diriv", &[0; 16]);
    shell.refused("rekey -R -k other --new-key-file key other-backup", 2, "one passphrase and nothing else");

    fs::remove_dir_all(place.at("other-backup")).unwrap();

    // Met twice, or as a link, it is rekeyed once.
    shell.run("rekey -R -k key --new-key-file other vault vault .");
    shell.run("info -k other vault/bywash.volume");
    fs::rename(place.at("vault/bywash.volume"), place.at("elsewhere")).unwrap();
    symlink("../elsewhere", place.at("vault/bywash.volume")).unwrap();
    shell.run("rekey -k other --new-key-file key vault");
    assert!(place.at("vault/bywash.volume").is_symlink());
    shell.run("info -k key elsewhere");
}

/// What belongs together there is encrypted already.
#[test]
fn volumes_are_not_taken_apart() {
    let place = place();
    let shell = Shell(&place);
    place.write("tree/file", b"text");
    shell.run("mount --init -k key tree/vault");
    let names = || {
        let mut names: Vec<_> = fs::read_dir(place.at("tree/vault")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    shell.refused(
        "encrypt -R --remove-source -k key tree",
        1,
        "tree/vault: it is a volume and nothing was done with it here; it is encrypted already",
    );
    assert!(names() == before && place.at("tree/file.bywash").exists() && !place.at("tree/file").exists());
    shell.refused("decrypt -R -k key -o out tree", 1, "mount it");
    assert!(place.at("out/file").exists() && !place.at("out/vault").exists());
    shell.refused("encrypt -R -k key tree/vault", 1, "copy it as it is");
    shell.refused("decrypt -i key -o - tree/file.bywash", 5, "give it with -k");
    // Nor is a key encrypted for itself and removed.
    fs::copy(place.at("key"), place.at("out/key")).unwrap();
    let told = stderr(&shell.run("encrypt -R -v --remove-source -k out/key out"));
    assert!(place.at("out/key").exists() && told.contains("out/key: passed over: one of the keys for what is encrypted"), "{told}");
    assert!(place.at("out/file.bywash").exists() && !place.at("out/file").exists());
    shell.refused("encrypt --remove-source -k out/key out/key", 2, "would be encrypted with it and removed");
}

#[test]
fn who_is_named_by_nobody_is_not_taken_for_somebody() {
    let place = place();
    let shell = Shell(&place);
    place.write("file", b"text");
    place.write("team.txt", b"# the team\n\n");
    shell.refused("encrypt -k key -r team.txt file", 5, "team.txt: there is no recipient in it");
    shell.run("encrypt -k key -k other file");
    shell.refused("rekey -k key --only --new-recipient team.txt file.bywash", 5, "there is no recipient in it");
    shell.refused("rekey -k key --remove 2 --new-key-file other file.bywash", 2, "slot 2 is to be removed, and is what the new key opens");
    assert_eq!(shell.kinds("file.bywash").len(), 2);
}

/// Each of many files is open in three places until its copy has its name.
#[test]
fn few_descriptors_are_enough_for_many_files() {
    let place = place();
    (0..200).for_each(|number| _ = place.write(&format!("tree/{number}"), b"text"));
    let line = |line: &str| format!("{} {line}", env!("CARGO_BIN_EXE_bywash"));
    let script = ["encrypt -R -j 8 -k key tree", "rekey -R -j 8 -k key --new-key-file other tree"].map(line).join(" && ");
    let limited = Command::new("sh").current_dir(place.folder.path()).args(["-c", &format!("ulimit -n 128; {script}")]).output().unwrap();
    assert!(limited.status.success(), "{}", stderr(&limited));
    Shell(&place).run("fsck -R -k other tree");
}

#[test]
fn volumes_in_folders_are_not_passed_over_quietly() {
    let place = place();
    let shell = Shell(&place);
    fs::create_dir_all(place.at("tree/inner")).unwrap();
    shell.run("mount --init -k key tree/inner/vault");
    place.write("tree/file", b"text");
    shell.run("encrypt -k key tree/file");
    shell.run("rekey -R -k key --new-key-file other tree");
    shell.run("fsck -k other tree/inner/vault");
    shell.refused("fsck -R -k other tree", 1, "tree/inner/vault: it is a volume and nothing was done with it here");
    assert_eq!(shell.info("-R tree").as_array().unwrap().len(), 2);
    // A copy of a volume's file makes no volume: it is rekeyed, and what is beside it.
    fs::copy(place.at("tree/inner/vault/bywash.volume"), place.at("tree/bywash.volume")).unwrap();
    shell.run("rekey -R -k other --new-key-file key tree");
    for file in ["tree/file.bywash", "tree/bywash.volume", "tree/inner/vault/bywash.volume"] {
        shell.refused(&format!("info -k other {file}"), 7, "none of the keys");
        shell.run(&format!("info -k key {file}"));
    }
    shell.run("rekey -k key --new-key-file other tree/file.bywash tree/file.bywash");
    shell.run("rekey -R -k key --new-key-file other tree");
    fs::create_dir(place.at("tree/foreign")).unwrap();
    fs::write(place.at("tree/foreign/gocryptfs.conf"), "{}").unwrap();
    fs::write(place.at("tree/foreign/gocryptfs.diriv"), [0; 16]).unwrap();
    shell.refused("rekey -R -k other --new-key-file key tree", 1, "tree/foreign: it is a volume");
}

#[test]
fn where_gocryptfs_has_its_key_nothing_else_is_replaced() {
    let place = place();
    let shell = Shell(&place);
    fs::create_dir(place.at("vault")).unwrap();
    let init = ["-q", "-init", "-scryptn", "10", "-passfile", "passphrase", "vault"];
    match Command::new("gocryptfs").current_dir(place.folder.path()).args(init).status() {
        Ok(made) => assert!(made.success()),
        Err(_) => return eprintln!("skipped: gocryptfs is not installed (apt-get install gocryptfs)"),
    }
    shell.refused("info --passphrase-file new vault", 7, "wrong passphrase");
    shell.refused("rekey -k key --new-passphrase-file new vault", 2, "passphrase alone");
    let config = place.at("vault/gocryptfs.conf");
    fs::hard_link(&config, place.at("twin")).unwrap();
    shell.refused("rekey --passphrase-file passphrase --new-passphrase-file new vault", 1, "several names");
    fs::rename(&config, place.at("elsewhere")).unwrap();
    fs::remove_file(place.at("twin")).unwrap();
    symlink("../elsewhere", &config).unwrap();
    shell.refused("rekey --passphrase-file passphrase --new-passphrase-file new vault", 1, "symbolic link");
    fs::rename(place.at("elsewhere"), &config).unwrap();
    let held = fs::File::open(&config).unwrap();
    held.lock().unwrap();
    shell.refused("rekey --passphrase-file passphrase --new-passphrase-file new vault", 1, "has it open");
}

/// A name, or what made a volume, is nobody's line.
#[test]
fn what_is_told_of_a_stranger_is_told_in_one_line() {
    let place = place();
    let shell = Shell(&place);
    place.write("a\n  slot 1  forged", b"text");
    succeed(&mut place.bywash(&["encrypt", "a\n  slot 1  forged"]));
    let mut info = shell.command("info");
    let said = stdout(&succeed(info.arg("a\n  slot 1  forged.bywash")));
    assert_eq!(said.lines().count(), 4, "{said}");
    // Cut between two chunks, a file has a length, which is not the text's.
    place.write("cut", &text(200_000));
    shell.run("encrypt -k key cut");
    fs::File::options().write(true).open(place.at("cut.bywash")).unwrap().set_len(144 + 2 * 65576).unwrap();
    shell.run("info cut.bywash");
    shell.refused("info -k key cut.bywash", 8, "truncated after it");
    shell.refused("rekey -k key --new-key-file other cut.bywash", 8, "truncated after it");
}
