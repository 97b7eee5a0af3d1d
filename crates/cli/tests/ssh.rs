//! SSH keys as recipients and identities, as `ssh-keygen` made them.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::path::Path;
use support::place::Place;
use support::{bywash, piped, refused, stderr, stdout, succeed};

fn key(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interfaces/files/tests/ssh").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_is_sealed_for_an_ssh_key_opens_with_it() {
    let place = Place::new();
    let public = fs::read_to_string(key("id_ed25519.pub")).unwrap();
    let recipient = public.trim().strip_suffix(" note").unwrap();
    for given in [key("id_ed25519.pub").as_str(), public.trim(), recipient] {
        let sealed = piped(bywash().args(["encrypt", "-r", given]), b"for you");
        assert!(sealed.status.success(), "{}", stderr(&sealed));
        let opened = piped(bywash().args(["decrypt", "-i", &key("id_ed25519")]), &sealed.stdout);
        assert_eq!((opened.stdout, opened.status.success()), (b"for you".to_vec(), true));
        let other = piped(bywash().args(["decrypt", "-k"]).arg(place.at("key")), &sealed.stdout);
        assert!(other.status.code() == Some(7) && stderr(&other).contains("an SSH key (-i ~/.ssh/id_ed25519)"), "{}", stderr(&other));
        fs::write(place.at("sealed"), sealed.stdout).unwrap();
        assert!(stdout(&succeed(bywash().arg("info").arg(place.at("sealed")))).contains("SSH key"));
    }
    for name in ["id_ed25519", "encrypted"] {
        let told = stdout(&succeed(bywash().args(["keygen", "--recipient", &key(name)])));
        assert_eq!(format!("{} note", told.trim()), fs::read_to_string(key(&format!("{name}.pub"))).unwrap().trim());
    }
}

#[test]
fn a_key_in_the_wrong_place_is_told_where_it_belongs() {
    let place = Place::new();
    refused(bywash().args(["encrypt", "-r", &key("id_ed25519")]), 5, "ends in .pub");
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7 a@b";
    refused(bywash().args(["encrypt", "-r", rsa]), 2, "ssh-keygen -t ed25519");
    fs::write(place.at("team"), format!("{}{rsa}\n", fs::read_to_string(key("id_ed25519.pub")).unwrap())).unwrap();
    refused(bywash().args(["encrypt", "-r"]).arg(place.at("team")), 5, "team:2: nothing is encrypted for an SSH key of the kind ssh-rsa");
    // Without a terminal nobody can be asked for its passphrase; `setsid` takes it away.
    let sealed = piped(bywash().args(["encrypt", "-r", &key("encrypted.pub")]), b"text");
    fs::write(place.at("sealed"), sealed.stdout).unwrap();
    let mut alone = std::process::Command::new("setsid");
    alone.args(["-w", env!("CARGO_BIN_EXE_bywash"), "decrypt", "-i", &key("encrypted"), "-o", "-"]).arg(place.at("sealed"));
    refused(&mut alone, 2, "ssh-keygen -p");
}

#[test]
fn recipients_are_told_of_what_comes_through_a_pipe() {
    let place = Place::new();
    let identity = succeed(bywash().arg("keygen")).stdout;
    fs::write(place.at("me.identity"), &identity).unwrap();
    let told = stdout(&succeed(bywash().args(["keygen", "--recipient"]).arg(place.at("me.identity"))));
    for (bytes, told) in [(identity, told), (fs::read(key("encrypted")).unwrap(), fs::read_to_string(key("encrypted.pub")).unwrap())] {
        let piped = piped(bywash().args(["keygen", "--recipient", "/dev/stdin"]), &bytes);
        assert_eq!(stdout(&piped).trim(), told.trim().trim_end_matches(" note"), "{}", stderr(&piped));
    }
}
