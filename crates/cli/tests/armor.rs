//! `bywash encrypt --armor`: encrypted files as text, and what becomes of text on its way.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
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
        let mailed = format!("\r\n{}", stdout(&sealed).replace('\n', " \r\n"));
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
    place.refused(&["encrypt", "-a", "-R", "."], 2, "--recursive");
    place.refused(&["encrypt", "-a", "note", "key"], 2, "several files");
    place.refused(&["encrypt", "-a", "--remove-source", "note"], 2, "stream");
}

/// What needs the file's own bytes says so, and text that was changed on its way is named by its line.
#[test]
fn text_is_refused_in_words() {
    let place = Place::new();
    fs::write(place.at("note"), text(1000)).unwrap();
    let sealed = stdout(&succeed(&mut place.bywash(&["encrypt", "-a", "note"])));
    fs::write(place.at("note.bywash"), &sealed).unwrap();
    for command in [&["fsck", "note.bywash"][..], &["info", "note.bywash"], &["decrypt", "note.bywash", "note.bywash"]] {
        place.refused(command, if command[0] == "decrypt" { 2 } else { 1 }, "note.bywash");
    }
    place.refused(&["fsck", "note.bywash"], 1, "encrypted, but as text (encrypt --armor)");
    let lines: Vec<&str> = sealed.lines().collect();
    let refused = |text: &str, says: &str| {
        fs::write(place.at("note.txt"), text).unwrap();
        place.refused(&["decrypt", "note.txt"], 8, says);
    };
    refused(&lines[..lines.len() - 1].join("\n"), "note.txt: the file is truncated after line");
    refused(&sealed.replace(lines[9], &lines[9][..48]), "note.txt: line 11 of its text is damaged");
    refused(&sealed.replace(lines[9], ""), "note.txt: line 10 of its text is damaged: it is no base64");
    refused(&sealed.replace(lines[9], lines[10]), "is damaged");
}
