//! `bywash encrypt --armor`: encrypted files as text, and what becomes of text on its way.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};
use support::place::{Place, text};
use support::{piped, stderr, stdout, succeed};

const BEGIN: &str = "-----BEGIN BYWASH ENCRYPTED FILE-----\n";

#[test]
fn what_is_sealed_as_text_opens_wherever_it_comes_from() {
    let place = Place::new();
    for len in [0, 1, 700_000] {
        let sealed = piped(&mut place.bywash(&["encrypt", "-a"]), &text(len));
        assert!(sealed.status.success() && stdout(&sealed).starts_with(BEGIN), "{}", stderr(&sealed));
        assert!(stdout(&sealed).lines().all(|line| line.len() <= 64));
        // As a mail's reader saves it.
        let mailed = format!("Dear Bob,\r\n\r\n{}Alice\r\n", stdout(&sealed).replace('\n', " \r\n"));
        for sealed in [&sealed.stdout, mailed.as_bytes()] {
            let opened = piped(&mut place.bywash(&["decrypt"]), sealed);
            assert!(opened.status.success() && opened.stdout == text(len), "{}", stderr(&opened));
            fs::write(place.at("mail.txt"), sealed).unwrap();
            let opened = succeed(&mut place.bywash(&["decrypt", "mail.txt"]));
            assert_eq!((opened.stdout, opened.stderr), (text(len), vec![]));
            succeed(&mut place.bywash(&["decrypt", "-o", "opened", "--force", "mail.txt"]));
            assert_eq!(fs::read(place.at("opened")).unwrap(), text(len));
        }
    }
}

#[test]
fn a_file_goes_to_stdout_or_to_where_it_is_said() {
    let place = Place::new();
    fs::write(place.at("note"), "for you").unwrap();
    let shown = succeed(&mut place.bywash(&["encrypt", "-a", "note"]));
    assert!(stdout(&shown).starts_with(BEGIN) && !place.at("note.bywash").exists());
    succeed(&mut place.bywash(&["encrypt", "-a", "-o", "note.txt", "note"]));
    place.refused(&["encrypt", "-a", "-o", "note.txt", "note"], 1, "--force");
    assert_eq!(stdout(&succeed(&mut place.bywash(&["decrypt", "note.txt"]))), "for you");
    for folder in [&["encrypt", "-a", "."][..], &["encrypt", "-a", "-R", "."]] {
        place.refused(folder, 2, ". is a folder, and no stream; `tar c FOLDER");
    }
    place.refused(&["encrypt", "-a", "note", "key"], 2, "several files");
    place.refused(&["encrypt", "-a", "--remove-source", "note"], 2, "text (--armor)");
    fs::copy(place.at("note.txt"), place.at("note.bywash")).unwrap();
    for name in ["note.txt", "note.bywash"] {
        let both = succeed(&mut place.bywash(&["decrypt", name, name]));
        assert_eq!(stdout(&both), "for youfor you");
    }
}

#[test]
fn a_stream_into_a_file_keeps_its_metadata_and_does_not_replace_its_source() {
    let place = Place::new();
    let (note, time) = (place.write("note", b"for you"), UNIX_EPOCH + Duration::from_secs(1_577_836_800));
    let file = fs::File::open(&note).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    file.set_modified(time).unwrap();
    succeed(&mut place.bywash(&["encrypt", "-a", "-o", "note.txt", "note"]));
    succeed(&mut place.bywash(&["decrypt", "-o", "back", "note.txt"]));
    for name in ["note.txt", "back"] {
        let metadata = fs::metadata(place.at(name)).unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.modified().unwrap()), (0o640, time), "{name}");
    }
    place.refused(&["encrypt", "-a", "--force", "-o", "note", "note"], 2, "note would be replaced by its own result");
    place.refused(&["decrypt", "--force", "-o", "note.txt", "note.txt"], 2, "note.txt would be replaced by its own result");
    assert_eq!(fs::read(note).unwrap(), b"for you");
}

/// What needs the file's own bytes says so, and text that was changed on its way is named by its line.
#[test]
fn text_is_refused_in_words() {
    let place = Place::new();
    fs::write(place.at("note"), text(1000)).unwrap();
    let sealed = stdout(&succeed(&mut place.bywash(&["encrypt", "-a", "note"])));
    fs::write(place.at("note.bywash"), &sealed).unwrap();
    place.refused(&["fsck", "note.bywash"], 1, "encrypted, but as text (encrypt --armor)");
    place.refused(&["rekey", "note.bywash", "--new-key-file", "key"], 1, "encrypt anew what is in it");
    fs::write(place.at("mail.txt"), &sealed).unwrap();
    place.refused(&["decrypt", "mail.txt", "note"], 2, "mail.txt: it is text (encrypt --armor)");
    let told = stdout(&succeed(&mut place.bywash(&["info", "note.bywash"])));
    assert!(told.contains("encrypted file as text") && told.contains("1,000 bytes") && told.contains("opened by what was given"), "{told}");
    fs::write(place.at("other.bywash"), "no such file").unwrap();
    let told = place.refused(&["info", "--json", "note.bywash", "other.bywash"], 8, "other.bywash");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&told[0]["kind"], &told[0]["exit"], &told[1]["exit"]), (&"text".into(), &serde_json::Value::Null, &8.into()), "{told}");
    assert!(told[1]["error"].as_str().unwrap().contains("not a file encrypted by bywash"), "{told}");
    let lines: Vec<&str> = sealed.lines().collect();
    let refused = |text: &str, says: &str| {
        fs::write(place.at("note.txt"), text).unwrap();
        place.refused(&["decrypt", "note.txt"], 8, says);
    };
    refused(&lines[..lines.len() - 1].join("\n"), "note.txt: the file is truncated after line");
    refused(&sealed.replace(lines[9], &lines[9][..48]), "note.txt: line 11 of its text is damaged");
    refused(&sealed.replace(lines[9], ""), "note.txt: line 10 of its text is damaged: it is no base64");
    refused(&sealed.replace(lines[9], lines[10]), "is damaged");
    refused(
        &sealed.replace('\n', "\n> ").replacen("-----BEGIN", "> -----BEGIN", 1),
        "note.txt: line 1 of its text is damaged: something stands beside it",
    );
}
