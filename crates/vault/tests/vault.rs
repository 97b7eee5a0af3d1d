//! Keys in their folder: taken from every usual source, sealed, rotated, removed, and refused where they are no good.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, RsaPublicKey, SessionParams};
use bywash_protocol::PublicKey;
use bywash_protocol::keys::{KeyAlgorithm, KeyPolicy, KeyUse};
use bywash_vault::{Material, Vault, source};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn openssl(folder: &Path, line: &str) {
    let output = Command::new("/usr/bin/openssl").args(line.split(' ')).current_dir(folder).env_remove("OPENSSL_CONF").output();
    let output = output.expect("openssl is in tests/packages.txt");
    assert!(output.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(error: &Error) -> String {
    error.to_string()
}

/// Signs with the vault's key and verifies with its public half, both on the CPU engine.
fn works(vault: &Vault, name: &str) -> bool {
    let found = vault.find(name, None).unwrap();
    let here = bywash_manager::here();
    let run = |params: SessionParams, input: &[u8], tag: &mut [u8]| {
        let mut output = vec![0; params.algorithm().output_len(input.len())];
        let data = Data::Copy { input, output: &mut output };
        here.open(&params).unwrap().run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag }).map(|_| output)
    };
    let algorithm = found.material.algorithm().signature();
    let key = found.material.key(name, algorithm).unwrap();
    let sign = |input: &[u8]| run(SessionParams::new(algorithm, key.clone()).unwrap(), input, &mut []).unwrap();
    let ecdsa = |verify, point| {
        let verify = SessionParams::new(verify, Key::EcPublic(point)).unwrap();
        run(verify, &[9; 48], &mut sign(&[9; 48])).is_ok()
    };
    match PublicKey::from_der(found.material.public()).unwrap() {
        PublicKey::P256(point) => ecdsa(Algorithm::EcdsaP256Verify, point),
        PublicKey::P384(point) => ecdsa(Algorithm::EcdsaP384Verify, point),
        // The engines verify no Ed25519; another library does.
        PublicKey::Ed25519(public) => UnparsedPublicKey::new(&ED25519, public).verify(b"message", &sign(b"message")).is_ok(),
        PublicKey::Rsa { modulus, exponent } => {
            let public = match algorithm {
                Algorithm::Rsa2048Private => Algorithm::Rsa2048Public,
                Algorithm::Rsa3072Private => Algorithm::Rsa3072Public,
                _ => Algorithm::Rsa4096Public,
            };
            let public = SessionParams::new(public, Key::RsaPublic(RsaPublicKey { modulus, exponent })).unwrap();
            let input = [&[1][..], &vec![7; algorithm.output_len(0) - 1]].concat();
            run(public, &sign(&input), &mut []).unwrap() == input
        }
    }
}

#[test]
fn keys_come_in_every_usual_dress() {
    let folder = tempfile::tempdir().unwrap();
    let (at, vault) = (folder.path(), Vault::open(&folder.path().join("keys"), None).unwrap());
    openssl(at, "genrsa -out rsa.pem 2048");
    openssl(at, "rsa -in rsa.pem -traditional -out rsa1.pem");
    openssl(at, "rsa -in rsa.pem -traditional -outform DER -out rsa1.der");
    openssl(at, "pkcs8 -topk8 -nocrypt -in rsa.pem -outform DER -out rsa8.der");
    openssl(at, "pkcs8 -topk8 -in rsa.pem -passout pass:word -out rsa8e.pem");
    openssl(at, "pkcs8 -topk8 -scrypt -in rsa.pem -passout pass:word -outform DER -out rsa8s.der");
    openssl(at, "ecparam -name prime256v1 -genkey -out ec1.pem");
    openssl(at, "pkcs8 -topk8 -nocrypt -in ec1.pem -out ec8.pem");
    openssl(at, "ec -in ec1.pem -outform DER -out ec1.der");
    openssl(at, "ecparam -name secp384r1 -genkey -out p384.pem");
    openssl(at, "pkcs8 -topk8 -nocrypt -in p384.pem -outform DER -out p384.der");
    openssl(at, "genpkey -algorithm ED25519 -out ed.pem");
    openssl(at, "pkcs8 -topk8 -in ed.pem -passout pass:word -out ede.pem");
    openssl(at, "pkey -in ed.pem -outform DER -out ed.der");
    openssl(at, "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out rsa3072.pem");
    let rsa = ["rsa.pem", "rsa1.pem", "rsa1.der", "rsa8.der", "rsa8e.pem", "rsa8s.der", "rsa3072.pem"];
    let curves = ["ec1.pem", "ec8.pem", "ec1.der", "p384.pem", "p384.der", "ed.pem", "ede.pem", "ed.der"];
    for file in rsa.into_iter().chain(curves) {
        let bytes = std::fs::read(at.join(file)).unwrap();
        let pkcs8 = source::to_pkcs8(&bytes, Some(b"word")).unwrap_or_else(|why| panic!("{file}: {why}"));
        vault.import(file, &pkcs8, KeyPolicy::default()).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(works(&vault, file), "{file}");
    }
    let list = vault.list();
    for (kind, dresses) in [(KeyAlgorithm::Rsa2048, 6), (KeyAlgorithm::P256, 3), (KeyAlgorithm::P384, 2), (KeyAlgorithm::Ed25519, 3)] {
        let prints: Vec<_> = list.iter().filter(|key| key.algorithm == kind).map(|key| &key.fingerprint).collect();
        assert_eq!(prints.len(), dresses, "{kind}");
        assert!(prints.windows(2).all(|pair| pair[0] == pair[1]), "the same {kind} key in {dresses} dresses");
    }
}

#[test]
fn keys_of_every_kind_are_made_stored_and_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let vault = Vault::open(&at, Some(b"passphrase")).unwrap();
    for kind in KeyAlgorithm::ALL {
        let made = vault.generate(kind.name(), kind, KeyPolicy::default()).unwrap();
        assert_eq!((made.algorithm(), works(&vault, kind.name())), (kind, true), "{kind}");
    }
    for kind in [KeyAlgorithm::P384, KeyAlgorithm::Ed25519] {
        let first = vault.find(kind.name(), None).unwrap().material;
        let second = vault.rotate(kind.name(), None, Duration::ZERO).unwrap();
        assert_eq!(second.algorithm(), kind);
        assert_ne!(second.public(), first.public());
    }
    let before = vault.list();
    drop(vault);
    let vault = Vault::open(&at, Some(b"passphrase")).unwrap();
    assert_eq!(vault.list(), before);
    assert!(KeyAlgorithm::ALL.into_iter().all(|kind| works(&vault, kind.name())), "after a restart too");
}

/// RFC 8410 s10.3: an Ed25519 key in PKCS#8 without its public half, and with it.
const RFC8410: [&str; 2] = [
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\nMHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
     oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\nZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PRIVATE KEY-----\n",
];

#[test]
fn ed25519_keys_are_those_of_rfc_8410() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(&folder.path().join("keys"), None).unwrap();
    let public = [
        0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00, 0x19, 0xBF, 0x44, 0x09, 0x69, 0x84, 0xCD, 0xFE, 0x85, 0x41,
        0xBA, 0xC1, 0x67, 0xDC, 0x3B, 0x96, 0xC8, 0x50, 0x86, 0xAA, 0x30, 0xB6, 0xB6, 0xCB, 0x0C, 0x5C, 0x38, 0xAD, 0x70, 0x31, 0x66, 0xE1,
    ];
    for (name, pem) in ["bare", "whole"].into_iter().zip(RFC8410) {
        let pkcs8 = source::to_pkcs8(pem.as_bytes(), None).unwrap();
        assert_eq!(vault.import(name, &pkcs8, KeyPolicy::default()).unwrap().public(), public, "{name}");
        assert!(works(&vault, name), "{name}");
    }
    let mut foreign = source::to_pkcs8(RFC8410[1].as_bytes(), None).unwrap();
    *foreign.last_mut().unwrap() ^= 1;
    let why = text(&vault.import("foreign", &foreign, KeyPolicy::default()).unwrap_err());
    assert!(why.contains("do not belong together"), "{why}");
}

#[test]
fn bad_keys_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (at, vault) = (folder.path(), Vault::open(&folder.path().join("keys"), None).unwrap());
    openssl(at, "genrsa -out small.pem 1024");
    openssl(at, "genrsa -out odd.pem 2064");
    openssl(at, "genrsa -aes128 -traditional -passout pass:word -out old.pem 2048");
    openssl(at, "genrsa -aes128 -passout pass:word -out locked.pem 2048");
    openssl(at, "genpkey -algorithm ED448 -out ed.pem");
    openssl(at, "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out k1.pem");
    let good =
        ["genrsa -out rsa.good 2048", "ecparam -name prime256v1 -genkey -out p256.good", "ecparam -name secp384r1 -genkey -out p384.good"];
    good.into_iter().chain(["genpkey -algorithm ED25519 -out ed25519.good"]).for_each(|line| openssl(at, line));
    let why = |file: &str, passphrase: Option<&[u8]>| match source::to_pkcs8(&std::fs::read(at.join(file)).unwrap(), passphrase) {
        Err(why) => why,
        Ok(pkcs8) => text(&vault.import("x", &pkcs8, KeyPolicy::default()).unwrap_err()),
    };
    assert!(why("small.pem", None).contains("too small: it has 1024 bits"), "{}", why("small.pem", None));
    assert!(why("odd.pem", None).contains("it has 2064 bits"));
    assert!(why("old.pem", Some(b"word")).contains("openssl pkcs8 -topk8"));
    assert!(why("locked.pem", None).contains("--passphrase-file"));
    assert!(why("locked.pem", Some(b"wrong")).contains("passphrase right?"));
    assert!(why("ed.pem", None).contains("not kept") && why("k1.pem", None).contains("P-256"));
    std::fs::write(at.join("text"), "no key").unwrap();
    assert!(why("text", None).contains("PKCS#8, PKCS#1 and SEC1"));
    // A bit turned anywhere never makes a key that is kept and does not work.
    for (kind, step) in [("rsa", 61), ("p256", 1), ("p384", 1), ("ed25519", 1)] {
        let good = source::to_pkcs8(&std::fs::read(at.join(format!("{kind}.good"))).unwrap(), None).unwrap();
        for at in (0..good.len()).step_by(step) {
            let mut spoilt = good.to_vec();
            spoilt[at] ^= 1;
            if vault.import("spoilt", &spoilt, KeyPolicy::default()).is_ok() {
                assert!(works(&vault, "spoilt"), "{kind}, byte {at}");
                vault.remove("spoilt").unwrap();
            }
        }
    }
    assert!(vault.list().is_empty(), "nothing is left of what was refused");
}

#[test]
fn a_sealed_folder_opens_under_its_passphrase_alone_and_shows_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let policy = KeyPolicy { uids: vec![33], gids: vec![48], uses: vec![KeyUse::Sign, KeyUse::Derive], rate: Some(9) };
    let plain = {
        let vault = Vault::open(&at, None).unwrap();
        vault.generate("web", KeyAlgorithm::P256, policy.clone()).unwrap();
        std::fs::read_to_string(at.join("web.key")).unwrap()
    };
    assert!(plain.contains("\"plain\""), "without a passphrase it stands as it is");
    let info = {
        let vault = Vault::open(&at, Some(b"a long passphrase")).unwrap();
        assert!(vault.is_sealed() && works(&vault, "web"));
        vault.list()
    };
    let sealed = std::fs::read_to_string(at.join("web.key")).unwrap();
    assert!(sealed.contains("\"sealed\"") && !sealed.contains("\"plain\""), "encrypted when a passphrase was first given");
    for file in ["web.key", "seal.json"] {
        assert_eq!(std::fs::metadata(at.join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
    assert!(text(&Vault::open(&at, None).unwrap_err()).contains("--keys-passphrase"));
    assert!(text(&Vault::open(&at, Some(b"another")).unwrap_err()).contains("not this folder's"));
    // Who lacks the passphrase cannot give themselves leave.
    std::fs::write(at.join("web.key"), sealed.replacen("33", "34", 1)).unwrap();
    assert!(text(&Vault::open(&at, Some(b"a long passphrase")).unwrap_err()).contains("without the passphrase"));
    std::fs::write(at.join("web.key"), &sealed).unwrap();
    let seal = std::fs::read(at.join("seal.json")).unwrap();
    std::fs::remove_file(at.join("seal.json")).unwrap();
    assert!(text(&Vault::open(&at, Some(b"a long passphrase")).unwrap_err()).contains("seal.json is not there"));
    assert!(!at.join("seal.json").exists(), "no other one is made");
    std::fs::write(at.join("seal.json"), seal).unwrap();
    let vault = Vault::open(&at, Some(b"a long passphrase")).unwrap();
    assert_eq!((vault.list(), &vault.list()[0].policy), (info, &policy));
}

#[test]
fn once_all_keys_are_sealed_none_in_plain_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (at, other) = (folder.path().join("keys"), folder.path().join("other"));
    Vault::open(&other, None).unwrap().generate("planted", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    Vault::open(&at, Some(b"passphrase")).unwrap().generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    std::fs::copy(other.join("planted.key"), at.join("planted.key")).unwrap();
    let why = text(&Vault::open(&at, Some(b"passphrase")).unwrap_err());
    assert!(why.contains("planted") && why.contains("without the passphrase") && why.contains("bywash key import"), "{why}");
    assert!(std::fs::read_to_string(at.join("planted.key")).unwrap().contains("\"plain\""), "it is left as it is");
    // Nor can it be taken back that all are.
    let seal = std::fs::read_to_string(at.join("seal.json")).unwrap();
    let unmarked = seal.replace(",\n  \"all_sealed\": true", "");
    assert!(unmarked != seal, "{seal}");
    std::fs::write(at.join("seal.json"), unmarked).unwrap();
    assert!(text(&Vault::open(&at, Some(b"passphrase")).unwrap_err()).contains("seal.json: was changed by someone without the passphrase"));
    std::fs::write(at.join("seal.json"), seal).unwrap();
    // The way out that was named: what is one's own is moved away and taken over from there.
    std::fs::rename(at.join("planted.key"), folder.path().join("moved")).unwrap();
    let vault = Vault::open(&at, Some(b"passphrase")).unwrap();
    assert!(works(&vault, "web"));
    let moved = std::fs::read(folder.path().join("moved")).unwrap();
    vault.import("own", &source::to_pkcs8(&moved, None).unwrap(), KeyPolicy::default()).unwrap();
    let public = |vault: &Vault, name| vault.find(name, None).unwrap().material.public().to_vec();
    assert_eq!(public(&vault, "own"), public(&Vault::open(&other, None).unwrap(), "planted"));
    let sealed = std::fs::read(at.join("own.key")).unwrap();
    assert!(source::to_pkcs8(&sealed, None).unwrap_err().contains("is encrypted"));
    assert!(source::to_pkcs8(&moved[..moved.len() / 2], None).unwrap_err().contains("is damaged in line"));
}

/// A seal as it was before, under "passphrase".
const OLD_SEAL: &str = r#"{"kdf": "scrypt", "log_n": 10, "r": 8, "p": 1, "salt": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "check": {"nonce": "AAECAwQFBgcICQoL", "text": "7P4Rnq6QNz1CnQJ+RrywWwNs5A1DnOKPJjudnqvY"}}"#;

#[test]
fn seals_from_before_that_was_noted_open_and_note_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    Vault::open(&at, None).unwrap().generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    std::fs::write(at.join("seal.json"), OLD_SEAL).unwrap();
    std::fs::set_permissions(at.join("seal.json"), std::fs::Permissions::from_mode(0o600)).unwrap();
    for _ in 0..2 {
        assert!(works(&Vault::open(&at, Some(b"passphrase")).unwrap(), "web"), "half way through at first, by its file");
    }
    assert!(std::fs::read_to_string(at.join("seal.json")).unwrap().contains("\"all_sealed\": true"));
    assert!(std::fs::read_to_string(at.join("web.key")).unwrap().contains("\"sealed\""));
}

#[test]
fn rotation_keeps_the_old_key_for_its_grace() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let vault = Vault::open(&at, None).unwrap();
    let first = vault.generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    let second = vault.rotate("web", None, Duration::from_secs(100)).unwrap();
    let find = |vault: &Vault, public: Option<&[u8]>| vault.find("web", public).map(|found| found.material.public().to_vec());
    assert_eq!(find(&vault, None).unwrap(), second.public());
    assert_eq!(find(&vault, Some(first.public())).unwrap(), first.public(), "who knows the old public half gets the old key");
    assert!(text(&vault.rotate("web", Some(&first.pkcs8()), Duration::ZERO).unwrap_err()).contains("has had"));
    drop(vault);
    let vault = Vault::open(&at, None).unwrap();
    assert_eq!(find(&vault, Some(first.public())).unwrap(), first.public(), "after a restart too");
    let third = vault.rotate("web", None, Duration::ZERO).unwrap();
    let gone = text(&find(&vault, Some(second.public())).unwrap_err());
    assert!(gone.contains("bywash key uri web"), "{gone}");
    assert_eq!(find(&vault, Some(third.public())).unwrap(), third.public());
    assert!(find(&vault, Some(first.public())).is_err());
}

#[test]
fn names_are_unique_and_removed_keys_gone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let vault = Vault::open(&at, None).unwrap();
    vault.generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    assert!(text(&vault.generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap_err()).contains("key rotate web"));
    assert!(text(&vault.generate("../x", KeyAlgorithm::P256, KeyPolicy::default()).unwrap_err()).contains("1 to 64"));
    assert!(text(&Vault::open(&at, None).unwrap_err()).contains("running broker"), "one at a time");
    vault.remove("web").unwrap();
    assert!(!at.join("web.key").exists());
    assert!(text(&vault.find("web", None).unwrap_err()).contains("bywash key list"));
    assert!(vault.remove("web").is_err());
    // Somebody was there before: what was wanted.
    vault.generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    std::fs::remove_file(at.join("web.key")).unwrap();
    vault.remove("web").unwrap();
    assert!(vault.find("web", None).is_err());
}

#[test]
fn a_file_that_cannot_be_written_keeps_no_key_in_use_whose_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(&folder.path().join("keys"), None).unwrap();
    for name in ["a", "b", "c"] {
        vault.generate(name, KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
        vault.rotate(name, None, Duration::from_secs(1)).unwrap();
    }
    // Where the file of one would be written first there is a folder.
    let obstacle = folder.path().join("keys/a.new");
    std::fs::create_dir_all(obstacle.join("full")).unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    let (swept, stored) = vault.sweep();
    assert_eq!(swept, ["a", "b", "c"]);
    assert!(text(&stored.unwrap_err()).contains("a.key"));
    let (swept, stored) = vault.sweep();
    assert!(swept.is_empty() && stored.is_err(), "it is tried again");
    let in_file = || std::fs::read_to_string(folder.path().join("keys/a.key")).unwrap().matches("\"public\"").count();
    assert_eq!(in_file(), 2);
    std::fs::remove_dir_all(&obstacle).unwrap();
    assert_eq!((vault.sweep(), in_file()), ((Vec::new(), Ok(())), 1));
}

#[test]
fn a_policy_allows_only_what_a_key_can_do() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(&folder.path().join("keys"), None).unwrap();
    let policy = |uses: &[KeyUse]| KeyPolicy { uses: uses.to_vec(), ..KeyPolicy::default() };
    let derive = policy(&[KeyUse::Sign, KeyUse::Derive]);
    let why = text(&vault.generate("ed", KeyAlgorithm::Ed25519, derive.clone()).unwrap_err());
    assert!(why.contains("ed25519 cannot derive") && why.ends_with("allowed to sign"), "{why}");
    vault.generate("ec", KeyAlgorithm::P384, derive.clone()).unwrap();
    assert!(text(&vault.set_policy("ec", policy(&[KeyUse::Decrypt])).unwrap_err()).contains("p384 cannot decrypt"));
    let edwards = Material::generate(KeyAlgorithm::Ed25519).unwrap().pkcs8();
    assert!(text(&vault.rotate("ec", Some(&edwards), Duration::ZERO).unwrap_err()).contains("ed25519 cannot derive"));
    vault.set_policy("ec", policy(&[KeyUse::Sign])).unwrap();
    vault.rotate("ec", Some(&edwards), Duration::ZERO).unwrap();
    assert!(works(&vault, "ec"));
}

#[test]
fn files_that_others_may_read_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    Vault::open(&at, None).unwrap().generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&at.join("web.key"), 0o640);
    assert!(text(&Vault::open(&at, None).unwrap_err()).contains("chmod 600"));
    mode(&at.join("web.key"), 0o600);
    mode(&at, 0o777);
    assert!(text(&Vault::open(&at, None).unwrap_err()).contains("go-w"));
    mode(&at, 0o700);
    std::fs::write(at.join("web.key"), "{}").unwrap();
    assert!(text(&Vault::open(&at, None).unwrap_err()).contains("web.key: is damaged"));
}

#[test]
fn what_is_no_plain_file_of_ours_is_not_read_and_leftovers_go() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    Vault::open(&at, Some(b"passphrase")).unwrap().generate("web", KeyAlgorithm::P256, KeyPolicy::default()).unwrap();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    for whole in ["web.key", "seal.json"] {
        let text = std::fs::read(at.join(whole)).unwrap();
        std::fs::write(at.join("web.new"), &text[..text.len() / 2]).unwrap();
        mode(&at.join("web.new"), 0o600);
        drop(Vault::open(&at, Some(b"passphrase")).unwrap());
        assert!(!at.join("web.new").exists(), "what a crash left of {whole}");
    }
    mode(&at.join("seal.json"), 0o622);
    assert!(text(&Vault::open(&at, Some(b"passphrase")).unwrap_err()).contains("seal.json: others may write it"));
    mode(&at.join("seal.json"), 0o600);
    std::fs::rename(at.join("web.key"), folder.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), at.join("web.key")).unwrap();
    assert!(text(&Vault::open(&at, Some(b"passphrase")).unwrap_err()).contains("web.key"), "a link may change where it leads");
    std::fs::remove_file(at.join("web.key")).unwrap();
    std::fs::write(at.join("web.key"), vec![b' '; 300 << 10]).unwrap();
    mode(&at.join("web.key"), 0o600);
    assert!(text(&Vault::open(&at, Some(b"passphrase")).unwrap_err()).contains("none of ours"), "it is not read to its end");
}

#[test]
fn a_folder_of_other_keys_that_is_named_by_mistake_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["www.new", "www.key"] {
        std::fs::write(folder.path().join(name), "-----BEGIN PRIVATE KEY-----\n").unwrap();
        std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(text(&Vault::open(folder.path(), None).unwrap_err()).contains("www.key"));
    assert!(folder.path().join("www.new").exists(), "a key that is to be used next");
}

#[test]
fn a_damaged_file_is_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    Vault::open(&at, None).unwrap().generate("web", KeyAlgorithm::Ed25519, KeyPolicy::default()).unwrap();
    let file = at.join("web.key");
    let good = std::fs::read_to_string(&file).unwrap();
    let (_, secret) = good.split_once("\"plain\": \"").unwrap();
    let secret = &secret[..secret.find('"').unwrap()];
    let bad = [
        good.replace("plain", "sealed"),
        good.replace("\"plain\": ", ""),
        good.replace(&format!("\"plain\": \"{secret}\""), &format!("\"{secret}\": 1")),
        good.replace("\"format\": 1", &format!("\"format\": \"{secret}\"")),
        good.replace("\"uids\"", &format!("\"{secret}\"")),
    ];
    for bad in bad {
        assert!(bad != good && bad.contains(secret));
        std::fs::write(&file, &bad).unwrap();
        let why = text(&Vault::open(&at, None).unwrap_err());
        assert!(why.contains("web.key") && why.contains("damaged in line") && !why.contains(&secret[..16]), "{why}");
    }
    std::fs::write(&file, good).unwrap();
    assert!(works(&Vault::open(&at, None).unwrap(), "web"));
}

#[test]
fn a_file_never_grows_beyond_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let vault = Vault::open(&at, None).unwrap();
    vault.generate("web", KeyAlgorithm::Ed25519, KeyPolicy::default()).unwrap();
    let long = KeyPolicy { uids: vec![u32::MAX; 20_000], ..KeyPolicy::default() };
    assert!(text(&vault.set_policy("web", long).unwrap_err()).contains("too many"));
    drop(vault);
    assert_eq!(Vault::open(&at, None).unwrap().list()[0].policy, KeyPolicy::default(), "it is as it was");
}

#[test]
fn groups_are_stored_and_files_from_before_them_open() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("keys");
    let vault = Vault::open(&at, Some(b"passphrase")).unwrap();
    vault.generate("old", KeyAlgorithm::P256, KeyPolicy { uids: vec![33], ..KeyPolicy::default() }).unwrap();
    vault.generate("new", KeyAlgorithm::P256, KeyPolicy { gids: vec![48], ..KeyPolicy::default() }).unwrap();
    drop(vault);
    assert!(!std::fs::read_to_string(at.join("old.key")).unwrap().contains("gids"), "the bytes that a seal binds are as they were");
    let vault = Vault::open(&at, Some(b"passphrase")).unwrap();
    assert_eq!(vault.find("new", None).unwrap().policy.gids, [48]);
    assert_eq!(vault.find("old", None).unwrap().policy, KeyPolicy { uids: vec![33], ..KeyPolicy::default() });
}

#[test]
fn keys_come_from_a_tokens_attributes() {
    let ec = Material::generate(KeyAlgorithm::P256).unwrap();
    let Key::EcPrivate(scalar) = ec.key("ec", Algorithm::EcdsaP256Sign).unwrap() else { panic!("another kind of key") };
    let p256 = [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7];
    let again = Material::from_pkcs8(&source::from_ec(&p256, &scalar).unwrap()).unwrap();
    assert_eq!(again.public(), ec.public());
    assert!(source::from_ec(&p256, &[7]).is_some(), "leading zeros may be left out");
    assert!(source::from_ec(&p256, &[1; 33]).is_none() && source::from_ec(&p256[..9], &scalar).is_none());
    let p384 = Material::generate(KeyAlgorithm::P384).unwrap();
    let Key::EcPrivate(scalar) = p384.key("ec", Algorithm::EcdsaP384Sign).unwrap() else { panic!("another kind of key") };
    let again = Material::from_pkcs8(&source::from_ec(&[6, 5, 0x2B, 0x81, 4, 0, 0x22], &scalar).unwrap()).unwrap();
    assert_eq!(again.public(), p384.public());
    assert!(source::from_ec(&p256, &scalar).is_none(), "too long for the curve");
    let edwards = Material::generate(KeyAlgorithm::Ed25519).unwrap();
    let Key::EcPrivate(seed) = edwards.key("ed", Algorithm::Ed25519Sign).unwrap() else { panic!("another kind of key") };
    for curve in [&[6, 3, 0x2B, 0x65, 0x70][..], b"\x13\x0Cedwards25519"] {
        let again = Material::from_pkcs8(&source::from_edwards(curve, &seed).unwrap()).unwrap();
        assert_eq!(again.public(), edwards.public());
        assert!(source::from_edwards(curve, &seed[1..]).is_none(), "every byte of a seed counts");
    }
    assert!(source::from_edwards(&[6, 3, 0x2B, 0x65, 0x71], &seed).is_none(), "Ed448");
    let rsa = Material::generate(KeyAlgorithm::Rsa2048).unwrap();
    let Key::RsaPrivate(key) = rsa.key("rsa", Algorithm::Rsa2048Private).unwrap() else { panic!("another kind of key") };
    let (n, e) = (&key.public.modulus[..], &key.public.exponent[..]);
    let numbers = [n, e, &key.private_exponent, &key.prime1, &key.prime2, &key.exponent1, &key.exponent2, &key.coefficient];
    assert_eq!(Material::from_pkcs8(&source::from_rsa(&numbers).unwrap()).unwrap().public(), rsa.public());
}
