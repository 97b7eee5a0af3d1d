//! Folders whose owner is somebody else, and keys that lie where results go.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};
use support::place::Place;
use support::{stderr, stdout, succeed};

const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Who owns a folder that another user backs up, or restores, has links made again on the other side, and may put a folder where the link was, with files in it.
#[test]
fn nothing_is_written_through_links_that_a_source_had() {
    for (way, name, sealed) in [("encrypt", "evil", "evil.bywash"), ("decrypt", "evil.bywash", "evil")] {
        let place = Place::new();
        place.write("evil", b"text");
        succeed(&mut place.bywash(&["encrypt", "evil"]));
        for folder in ["theirs", "victim"] {
            fs::create_dir(place.at(folder)).unwrap();
        }
        fs::set_permissions(place.at("victim"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink(place.at("victim"), place.at("theirs/x")).unwrap();
        let run = [way, "-R", "-o", "ours", "theirs"];
        succeed(&mut place.bywash(&run));
        assert!(place.at("ours/x").is_symlink());

        fs::remove_file(place.at("theirs/x")).unwrap();
        fs::create_dir(place.at("theirs/x")).unwrap();
        fs::set_permissions(place.at("theirs/x"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(place.at(name), place.at("theirs/x").join(name)).unwrap();
        place.write(&format!("theirs/good/{name}"), &fs::read(place.at(name)).unwrap());
        let said = place.refused(&run, 1, "a folder is to be there, and something else is");
        assert!(stderr(&said).contains(&format!("ours/x/{sealed}")), "{}", stderr(&said));
        place.refused(&[&run[..], &["--force"]].concat(), 1, "a folder is to be there");
        assert_eq!((mode(&place.at("victim")), fs::read_dir(place.at("victim")).unwrap().count()), (0o700, 0));
        assert!(place.at("ours/good").join(sealed).exists(), "the others are done");

        // Nor where what is named is done already, if one goes by what a link leads to.
        fs::copy(place.at("ours/good").join(sealed), place.at("victim").join(sealed)).unwrap();
        let times = fs::metadata(place.at("theirs/x").join(name)).unwrap().modified().unwrap();
        fs::File::options().write(true).open(place.at("victim").join(sealed)).unwrap().set_modified(times).unwrap();
        place.refused(&run, 1, "symbolic link");
    }
}

/// One that was a folder when its owner was given it, in what was made of theirs.
#[test]
fn a_folder_of_results_that_became_a_link_is_not_followed() {
    let place = Place::new();
    place.write("theirs/s/t/file", b"text");
    fs::create_dir(place.at("victim")).unwrap();
    fs::set_permissions(place.at("victim"), fs::Permissions::from_mode(0o700)).unwrap();
    let run = ["encrypt", "-R", "-o", "ours", "theirs"];
    succeed(&mut place.bywash(&run));
    fs::remove_dir_all(place.at("ours/s")).unwrap();
    symlink(place.at("victim"), place.at("ours/s")).unwrap();
    place.refused(&run, 1, "ours/s");
    assert_eq!((mode(&place.at("victim")), fs::read_dir(place.at("victim")).unwrap().count()), (0o700, 0));

    // The folder that is named itself may be a link.
    symlink("real", place.at("named")).unwrap();
    fs::create_dir(place.at("real")).unwrap();
    succeed(&mut place.bywash(&["encrypt", "-R", "-o", "named", "theirs"]));
    succeed(&mut place.bywash(&["decrypt", "-R", "-o", "named/back", "named"]));
    assert_eq!(fs::read(place.at("real/back/s/t/file")).unwrap(), b"text");
}

/// A command as somebody who is not root; none where that cannot be.
fn as_nobody(place: &Place, arguments: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes another user");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), "--clear-groups", env!("CARGO_BIN_EXE_bywash")]).args(arguments).args(["-k", "key"]);
    let output = command.current_dir(place.folder.path()).env("BYWASH_SOCKET", "none").output().unwrap();
    if stderr(&output).contains("failed to execute") {
        eprintln!("skipped: the program is where nobody else may look");
        return None;
    }
    Some(output)
}

/// What is in it can be opened by who knows its name, and the journal beside it be looked for.
#[test]
fn a_folder_that_may_be_gone_through_and_not_read_will_do() {
    let place = Place::new();
    place.write("folder/file", b"text");
    succeed(&mut place.bywash(&["encrypt", "folder/file"]));
    chown(place.at("key"), Some(NOBODY), Some(NOBODY)).unwrap_or_default();
    for (path, mode) in [("", 0o755), ("folder", 0o711)] {
        fs::set_permissions(place.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let Some(checked) = as_nobody(&place, &["fsck", "folder/file.bywash"]) else { return };
    assert!(checked.status.success(), "{}", stderr(&checked));
    let opened = as_nobody(&place, &["decrypt", "-o", "-", "folder/file.bywash"]).unwrap();
    assert_eq!(stdout(&opened), "text", "{}", stderr(&opened));
}

/// Their results get that mode at the end, though something was missing then.
#[test]
fn folders_that_nobody_may_write_to_are_gone_on_with() {
    let place = Place::new();
    place.write("data/inner/one", b"text");
    place.write("data/inner/two", b"text");
    // As of a run that had no room for one of them.
    place.write("sealed/inner/other", b"");
    for (path, mode) in [("", 0o755), ("data/inner", 0o555), ("sealed", 0o755), ("sealed/inner", 0o555)] {
        fs::set_permissions(place.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for path in ["key", "data", "data/inner", "data/inner/one", "data/inner/two", "sealed", "sealed/inner"] {
        chown(place.at(path), Some(NOBODY), Some(NOBODY)).unwrap_or_default();
    }
    let Some(sealed) = as_nobody(&place, &["encrypt", "-R", "-o", "sealed", "data"]) else { return };
    assert!(sealed.status.success(), "{}", stderr(&sealed));
    assert!(place.at("sealed/inner/one.bywash").exists() && place.at("sealed/inner/two.bywash").exists());
    assert_eq!(fs::metadata(place.at("sealed/inner")).unwrap().permissions().mode() & 0o777, 0o555);
}

/// Where results are, what is called so would pass for a journal, or be in the way of one.
#[test]
fn no_link_or_folder_becomes_a_journal() {
    let journal = ".bywash-journal-0123456789abcdef0123456789abcdef";
    let place = Place::new();
    place.write("theirs/file", b"text");
    symlink("file", place.at("theirs").join(journal)).unwrap();
    place.write("theirs/inner/.bywash-unfinished-1-2/file", b"text");
    let said = place.refused(&["encrypt", "-R", "-o", "ours", "theirs"], 1, "so rename it");
    for name in [journal, "inner/.bywash-unfinished-1-2"] {
        assert!(stderr(&said).contains(&format!("theirs/{name}: ")), "{}", stderr(&said));
        assert!(place.at("ours").join(name).symlink_metadata().is_err());
    }
    assert!(place.at("ours/file.bywash").exists() && place.at("ours/inner").is_dir(), "the others are done");
    // Beside their sources results put nothing there that was not.
    succeed(&mut place.bywash(&["encrypt", "-R", "theirs"]));
    assert!(place.at("theirs/inner/.bywash-unfinished-1-2/file.bywash").exists());
}

#[test]
fn a_link_to_a_key_is_not_led_elsewhere() {
    let place = Place::new();
    fs::create_dir_all(place.at("ours")).unwrap();
    fs::create_dir_all(place.at("theirs")).unwrap();
    symlink("../key", place.at("ours/key")).unwrap();
    symlink("evil", place.at("theirs/key")).unwrap();
    for option in ["--update", "--force"] {
        let mut run = support::bywash();
        run.current_dir(place.folder.path()).args(["encrypt", option, "-R", "-k", "ours/key", "-o", "ours", "theirs"]);
        support::refused(&mut run, 2, "one of the keys");
    }
    assert_eq!(fs::read_link(place.at("ours/key")).unwrap(), Path::new("../key"));
    // One that leads there already is nobody's trouble.
    fs::remove_file(place.at("theirs/key")).unwrap();
    symlink("../key", place.at("theirs/key")).unwrap();
    for option in ["--update", "--force"] {
        succeed(&mut place.bywash(&["encrypt", option, "-R", "-o", "ours", "theirs"]));
    }
}

#[test]
fn what_is_in_the_way_of_a_folder_is_not_to_be_forced() {
    let place = Place::new();
    place.write("tree/file", b"text");
    place.write("out", b"mine");
    let said = place.refused(&["encrypt", "-R", "-o", "out", "tree"], 1, "a folder is to be there, and something else is");
    assert!(!stderr(&said).contains("--force"), "{}", stderr(&said));
    fs::create_dir_all(place.at("folder/file.bywash")).unwrap();
    let said = place.refused(&["encrypt", "-R", "-o", "folder", "tree"], 1, "no regular file, which no result replaces");
    assert!(!stderr(&said).contains("--force"), "{}", stderr(&said));
}

#[test]
fn a_key_is_never_replaced_by_what_it_opens() {
    let place = Place::new();
    place.write("file", b"text");
    place.write("names/key", b"text");
    succeed(&mut place.bywash(&["encrypt", "names/key", "file"]));
    fs::rename(place.at("names/key.bywash"), place.at("key.bywash")).unwrap();
    let key = fs::read(place.at("key")).unwrap();
    symlink("key", place.at("link")).unwrap();
    fs::hard_link(place.at("key"), place.at("other")).unwrap();
    for target in ["key", "./key", "link", "other"] {
        place.refused(&["encrypt", "--force", "-o", target, "file"], 2, "one of the keys");
        place.refused(&["decrypt", "--force", "-o", target, "file.bywash"], 2, "one of the keys");
    }
    place.refused(&["decrypt", "--force", "key.bywash"], 2, "one of the keys");
    place.refused(&["decrypt", "-R", "--force", "."], 2, "one of the keys");
    // Nor by what is saved of a damaged file, and nothing was made before.
    place.write("sub/deep/file", b"text");
    succeed(&mut place.bywash(&["encrypt", "-R", "sub"]));
    fs::copy(place.at("key"), place.at("file.salvaged")).unwrap();
    support::place::flip(&place.at("file.bywash"), 180);
    fs::create_dir(place.at("both")).unwrap();
    fs::rename(place.at("file.bywash"), place.at("both/file.bywash")).unwrap();
    fs::rename(place.at("sub"), place.at("both/sub")).unwrap();
    succeed(&mut place.bywash(&["decrypt", "-R", "-o", "made", "both/sub"]));
    fs::rename(place.at("file.salvaged"), place.at("made/file.salvaged")).unwrap();
    let mut salvage = support::bywash();
    salvage.current_dir(place.folder.path()).args([
        "decrypt",
        "--salvage",
        "--force",
        "-R",
        "-k",
        "made/file.salvaged",
        "-o",
        "made",
        "both",
    ]);
    support::refused(&mut salvage, 2, "one of the keys");
    assert!(!place.at("made/sub").exists(), "nothing was done");
    assert_eq!(fs::read(place.at("made/file.salvaged")).unwrap(), key);
    // Nor does a result take a name that a journal would have.
    place.refused(&["encrypt", "-o", ".bywash-journal-0123456789abcdef0123456789abcdef", "names/key"], 1, "journals of others");
    support::refused(
        place.bywash(&["encrypt", "--force", "-o", "key"]).stdin(fs::File::open(place.at("file")).unwrap()),
        2,
        "one of the keys",
    );
    assert_eq!(fs::read(place.at("key")).unwrap(), key);
}

#[test]
fn an_identity_is_not_encrypted_for_itself_and_removed() {
    let place = Place::new();
    fs::create_dir(place.at("home")).unwrap();
    let keygen = |option: &str| succeed(support::bywash().args(["keygen", option]).arg(place.at("home/me.identity")));
    keygen("-o");
    let recipient = stdout(&keygen("--recipient"));
    place.write("home/file", b"text");
    let run = |arguments: &[&str]| {
        let mut command = support::bywash();
        command.current_dir(place.folder.path()).args(["encrypt", "--remove-source", "-r", recipient.trim()]).args(arguments);
        command
    };
    support::refused(&mut run(&["home/me.identity"]), 2, "one of the keys");
    let done = succeed(&mut run(&["-R", "-v", "home"]));
    assert!(stderr(&done).contains("me.identity: passed over: one of the keys"), "{}", stderr(&done));
    assert!(place.at("home/me.identity").exists() && !place.at("home/file").exists());
    // For somebody else it is a file like others.
    succeed(&mut place.bywash(&["encrypt", "--remove-source", "home/me.identity"]));
    assert!(!place.at("home/me.identity").exists());
}
