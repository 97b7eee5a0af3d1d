//! What is made is what `openssl` takes for it.

use bywash_dds_material::{Error, Governance, Material};
use std::path::Path;
use std::process::Command;

fn openssl(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl").current_dir(folder).args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn identities_and_documents_are_verified_and_a_strangers_authority_is_not_enough() {
    let place = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| place.path().join(name));
    let [one, _] = folders.each_ref().map(|folder| Material::make(folder, Governance::ROS2).unwrap());
    let alice = one.participant("alice").unwrap();

    assert!(openssl(alice.folder(), &["verify", "-CAfile", "identity_ca.cert.pem", "cert.pem"]).0);
    let stranger = folders[1].join("identity_ca.cert.pem");
    assert!(!openssl(alice.folder(), &["verify", "-CAfile", &stranger.to_string_lossy(), "cert.pem"]).0);
    for (document, word) in [("governance.p7s", "<rtps_protection_kind>SIGN<"), ("permissions.p7s", "<subject_name>CN=alice<")] {
        let (good, text) = openssl(alice.folder(), &["smime", "-verify", "-text", "-in", document, "-CAfile", "permissions_ca.cert.pem"]);
        assert!(good && text.contains(word), "{document}: {text}");
        let stranger = folders[1].join("permissions_ca.cert.pem");
        assert!(!openssl(alice.folder(), &["smime", "-verify", "-in", document, "-CAfile", &stranger.to_string_lossy()]).0);
    }
}

#[test]
fn configurations_name_files_that_are_there() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::ALL).unwrap();
    let bob = material.participant("bob").unwrap();
    let cyclone = std::fs::read_to_string(bob.cyclone(Some("/some/where.so".as_ref())).unwrap().trim_start_matches("file://")).unwrap();
    assert!(cyclone.contains("path=\"/some/where.so\""), "{cyclone}");
    let named: Vec<&str> = cyclone.split("file:").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    let of_fastdds = bob.fastdds_properties();
    let also = of_fastdds.iter().filter_map(|(_, value)| value.strip_prefix("file://"));
    assert_eq!(named.len(), 6);
    assert!(named.into_iter().chain(also).all(|path| Path::new(path).is_file()));
    assert!(bob.fastdds().unwrap().is_file());
}

#[test]
fn authorities_stay_and_a_new_governance_reaches_who_is_there() {
    let place = tempfile::tempdir().unwrap();
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
    Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let authority = read("identity_ca.cert.pem");
    let bob = Material::make(place.path(), Governance::ALL).unwrap().participant("bob").unwrap();
    assert_eq!(authority, read("identity_ca.cert.pem"));
    assert_eq!(read("alice/governance.p7s"), read("bob/governance.p7s"));
    assert!(openssl(bob.folder(), &["verify", "-CAfile", "../alice/identity_ca.cert.pem", "cert.pem"]).0);
    // A link to the folder's own, as in a keystore of ROS 2, is not copied onto itself.
    std::fs::remove_file(place.path().join("alice/governance.p7s")).unwrap();
    std::os::unix::fs::symlink("../governance.p7s", place.path().join("alice/governance.p7s")).unwrap();
    Material::make(place.path(), Governance::DATA).unwrap();
    assert_eq!(read("alice/governance.p7s"), read("bob/governance.p7s"));
    assert!(read("governance.p7s").contains("data_protection_kind"));
    // Who is of an authority that cannot go on is not left behind.
    std::fs::write(place.path().join("permissions_ca.key.pem"), "").unwrap();
    assert!(matches!(Material::make(place.path(), Governance::DATA), Err(Error::Authority(_))));
    assert_eq!(authority, read("identity_ca.cert.pem"));
}

#[test]
fn a_name_that_would_leave_the_folder_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::OFF).unwrap();
    for name in ["", "../x", "a/CN=b", "<b>"] {
        assert!(matches!(material.participant(name), Err(Error::Name(_))), "{name}");
    }
}

/// Two of Cyclone's own tools find each other with it, and one without does not come in.
#[test]
fn cyclone_takes_it() {
    if Command::new("ddsperf").arg("-h").output().is_err() {
        eprintln!("skipped: ddsperf is not here (Debian: cyclonedds-tools)");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::ALL).unwrap();
    let start = |uri: &str, mode: &str| {
        let mut command = Command::new("ddsperf");
        command.args(["-D", "4", "-i", "77"]).args(mode.split(' ')).env("CYCLONEDDS_URI", uri);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let [alice, bob] = ["alice", "bob"].map(|name| material.participant(name).unwrap().cyclone(None).unwrap());
    let stranger = place.path().join("stranger.xml");
    std::fs::write(&stranger, bywash_dds_material::cyclone_configuration("")).unwrap();
    let said = [alice, format!("file://{}", stranger.display())].map(|uri| {
        let (mut answers, asks) = (start(&bob, "pong"), start(&uri, "ping waitset size 1k"));
        let said = String::from_utf8(asks.wait_with_output().unwrap().stdout).unwrap();
        answers.wait().unwrap();
        said
    });
    let has_answers = |text: &str| text.lines().any(|line| line.contains("mean") && line.contains("us"));
    assert!(has_answers(&said[0]), "no answers came: {}", said[0]);
    assert!(!has_answers(&said[1]), "a stranger had answers: {}", said[1]);
}
