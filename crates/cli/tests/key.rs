//! `bywash key`: at a broker and in a folder.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{Running, bywash, eventually, stderr, stdout, succeed};

fn openssl(arguments: &[&str]) -> Output {
    succeed(Command::new("/usr/bin/openssl").args(arguments).env_remove("OPENSSL_CONF"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a folder whose name is text")
}

#[test]
fn keys_are_kept_at_a_broker_and_its_folder_is_its_own_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let (socket, keys, pem) = (place.path().join("s"), place.path().join("keys"), place.path().join("key.pem"));
    let key = |arguments: &[&str]| {
        let mut command = bywash();
        command.arg("key").args(arguments).env("BYWASH_SOCKET", &socket);
        command
    };
    openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", text(&pem)]);
    let mut broker = Running::start(bywash().args(["serve", "--socket", text(&socket), "--keys", text(&keys)]));
    eventually("the broker listens", || socket.exists());
    succeed(&mut key(&["import", "web", "--from", text(&pem), "--allow-uid", "33", "--rate", "100"]));
    succeed(&mut key(&["generate", "other", "--algorithm", "p256", "--allow", "sign,derive"]));
    let list = stdout(&succeed(&mut key(&["list"])));
    assert!(list.contains("web") && list.contains("owner,33") && list.contains("100/s") && list.contains("sign, derive"), "{list}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&succeed(&mut key(&["list", "--json"])))).unwrap();
    assert_eq!((&json[0]["name"], &json[1]["uri"]), (&"other".into(), &"bywash:web".into()));
    let public = stdout(&succeed(&mut key(&["public", "web"])));
    assert_eq!(public, stdout(&openssl(&["pkey", "-in", text(&pem), "-pubout"])), "the key that was imported");
    let uri = stdout(&succeed(&mut key(&["uri", "web"])));
    assert!(uri.contains("BEGIN BYWASH KEY URI"), "{uri}");
    std::fs::write(place.path().join("uri"), &uri).unwrap();
    let reference = key(&["import", "copy", "--from", text(&place.path().join("uri"))]).output().unwrap();
    assert!(stderr(&reference).contains("only names a key"), "{}", stderr(&reference));
    // A file of a folder of keys, which is moved away where a key in plain is not to be.
    succeed(&mut key(&["import", "copy", "--from", text(&keys.join("other.key"))]));
    let public_of = |name| stdout(&succeed(&mut key(&["public", name])));
    assert_eq!(public_of("copy"), public_of("other"));
    succeed(&mut key(&["rotate", "web", "--grace", "1h"]));
    assert!(stdout(&succeed(&mut key(&["list"]))).contains("old until"));
    assert_ne!(public, stdout(&succeed(&mut key(&["public", "web"]))));
    let careless = key(&["remove", "web"]).output().unwrap();
    assert_eq!(careless.status.code(), Some(2), "{}", stderr(&careless));
    let careless = key(&["remove", "other"]).output().unwrap();
    assert!(stderr(&careless).contains("what is encrypted to it is lost"), "{}", stderr(&careless));
    let mistyped = key(&["remove", "wbe"]).output().unwrap();
    assert!(mistyped.status.code() != Some(2) && stderr(&mistyped).contains("there is no such key"), "{mistyped:?}");
    let unsaid = key(&["policy", "web"]).output().unwrap();
    assert!(unsaid.status.code() == Some(2) && stderr(&unsaid).contains("go back to its default"), "{unsaid:?}");
    assert!(stdout(&succeed(&mut key(&["list"]))).contains("owner,33"), "nothing changed");
    succeed(&mut key(&["remove", "web", "--yes"]));
    let gone = key(&["public", "web"]).output().unwrap();
    assert!(stderr(&gone).contains("there is no such key"), "{}", stderr(&gone));
    let busy = key(&["list", "--keys", text(&keys)]).output().unwrap();
    assert!(busy.status.code() == Some(5) && stderr(&busy).contains("running broker"), "{}", stderr(&busy));
    broker.signal("TERM");
    broker.wait();
    assert!(stdout(&succeed(&mut key(&["list", "--keys", text(&keys)]))).contains("other"), "and afterwards it is the folder's");
    let mistyped = key(&["list", "--keys", text(&place.path().join("kesy"))]).output().unwrap();
    assert!(mistyped.status.code() == Some(5) && stderr(&mistyped).contains("no folder"), "{mistyped:?}");
    assert!(!place.path().join("kesy").exists());
    let alone = key(&["list"]).output().unwrap();
    assert!(alone.status.code() == Some(3) && stderr(&alone).contains("--keys DIR"), "{}", stderr(&alone));
}
