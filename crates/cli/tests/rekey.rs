//! `bywash rekey`, `info` and `decrypt --salvage`, as a user types them.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
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
    place.write("new", b"battery staple\n");
    fs::set_permissions(place.at("new"), fs::Permissions::from_mode(0o600)).unwrap();
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
    assert_eq!(shell.info("--passphrase-file new file.bywash")[0]["opened_slot"], 1);
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
    shell.refused("rekey -k key --remove 5 file.bywash", 1, "it has no slot 5: it has 4");
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
        (&told[0]["kind"], &told[0]["cipher"], &told[0]["opened_slot"]),
        (&"volume".into(), &serde_json::Value::Null, &serde_json::Value::Null)
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
        shell.refused("rekey --passphrase-file new --new-passphrase-file passphrase vault", 7, "wrong passphrase");
        shell.refused("rekey --passphrase-file passphrase --new-key-file key vault", 2, "one passphrase and nothing else");
        shell.run("rekey --passphrase-file passphrase --new-passphrase-file new vault");
        let after: serde_json::Value = serde_json::from_slice(&fs::read(place.at("vault/gocryptfs.conf")).unwrap()).unwrap();
        for field in ["Creator", "FeatureFlags", "Version"] {
            assert_eq!(before[field], after[field], "{field}");
        }
        shell.refused("fsck --passphrase-file passphrase vault", 7, "wrong passphrase");
        shell.run("fsck --passphrase-file new vault");
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
    shell.refused("decrypt --salvage -k key sealed/bad.bywash -o out/bad", 1, "out/bad.salvaged: ");
    shell.refused("decrypt --salvage -k key -o - sealed/bad.bywash", 2, "needs a file");
    shell.refused("decrypt --salvage --remove-source -k key sealed/bad.bywash", 2, "cannot be used with");
    assert!(Path::new(&cut).exists());
}
