//! Folders whose owner is somebody else, and keys that lie where results go.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use support::place::Place;
use support::{stderr, stdout, succeed};

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
