//! Keys that clients use by name: who may, for what, how often; what is logged; what happens to sessions when a key changes.

mod support;

use bywash_core::{Algorithm, Data, Direction, Error, Key, KeyReference, Operation, SessionParams};
use bywash_protocol::keys::{KeyAlgorithm, KeyCommand, KeyInfo, KeyPolicy, KeyUse};
use bywash_protocol::{BrokerMessage, ClientMessage, PublicKey, Role, VERSION};
use bywash_vault::Vault;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Raw, Served, as_user, can_be_another, serve, until};

/// A broker with an empty vault.
struct Kept {
    served: Served,
    audit: PathBuf,
    _folder: tempfile::TempDir,
}

fn kept() -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let (keys, audit) = (folder.path().join("keys"), folder.path().join("audit"));
    let vault = Arc::new(Vault::open(&keys, None).unwrap());
    let log = audit.clone();
    let served = serve(move |config| {
        config.vault = Some(vault);
        config.audit = Some(log);
        config.allowed_uids = vec![65534];
    });
    Kept { served, audit, _folder: folder }
}

fn owner(kept: &Kept) -> Raw {
    Raw::connect_as(&kept.served.path, VERSION, Role::Observe, None).unwrap()
}

fn command(owner: &mut Raw, command: KeyCommand<'_>) -> Result<Vec<u8>, Error> {
    match owner.ask(&ClientMessage::Keys { request: 5, command })? {
        BrokerMessage::Key { request: 5, public } => Ok(public),
        other => panic!("{other:?}"),
    }
}

fn generate(owner: &mut Raw, name: &str, algorithm: KeyAlgorithm, policy: KeyPolicy) -> Vec<u8> {
    command(owner, KeyCommand::Generate { name, algorithm, policy }).unwrap()
}

fn list(owner: &mut Raw) -> Vec<KeyInfo> {
    let BrokerMessage::Keys { bytes, .. } = owner.ask(&ClientMessage::Keys { request: 6, command: KeyCommand::List }).unwrap() else {
        panic!("no list")
    };
    let file = std::fs::File::from(owner.packet.files.pop().unwrap());
    let mut text = vec![0; bytes as usize];
    file.read_exact_at(&mut text, 0).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn by_name(algorithm: Algorithm, name: &str, public: &[u8]) -> SessionParams {
    SessionParams::new(algorithm, Key::Vault(KeyReference { name: name.into(), public: public.to_vec() })).unwrap()
}

fn run(client: &Raw, session: u32, algorithm: Algorithm, input: &[u8]) -> Result<Vec<u8>, Error> {
    let mut output = vec![0; algorithm.output_len(input.len())];
    let data = Data::Copy { input, output: &mut output };
    client.run(session, algorithm, &mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })?;
    Ok(output)
}

fn verifies(public: &[u8], digest: &[u8], signature: &mut [u8]) -> bool {
    let (algorithm, point) = match PublicKey::from_der(public).unwrap() {
        PublicKey::P256(point) => (Algorithm::EcdsaP256Verify, point),
        PublicKey::P384(point) => (Algorithm::EcdsaP384Verify, point),
        other => panic!("{other:?}"),
    };
    let params = SessionParams::new(algorithm, Key::EcPublic(point)).unwrap();
    let data = Data::Copy { input: digest, output: &mut [] };
    let mut operation = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: signature };
    bywash_manager::here().open(&params).unwrap().run(&mut operation).is_ok()
}

/// Seed, public key and signature of the message 72 (RFC 8032 s7.1, TEST 2).
const RFC8032: [&str; 3] = [
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
];

fn decode(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The lines of the audit log about an event.
fn lines(audit: &Path, event: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(audit).unwrap();
    // The last may be half there: a write that crosses a page is seen in two parts.
    let text = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")));
    lines.filter(|line: &serde_json::Value| line["event"] == event).collect()
}

#[test]
fn a_key_signs_by_name_and_every_use_is_logged() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let mut client = Raw::connect(&kept.served.path).unwrap();
    let session = client.open(&by_name(Algorithm::EcdsaP256Sign, "web", &public)).unwrap();
    for _ in 0..7 {
        let mut signature = run(&client, session, Algorithm::EcdsaP256Sign, &[3; 32]).unwrap();
        assert!(verifies(&public, &[3; 32], &mut signature));
    }
    assert_eq!(list(&mut boss)[0].used, Some(7));
    drop(client);
    until("the session's uses are in the log", || !lines(&kept.audit, "use").is_empty());
    let used = &lines(&kept.audit, "use")[0];
    assert_eq!((&used["key"], &used["counts"]["done"], &used["pid"]), (&"web".into(), &7.into(), &std::process::id().into()));
    assert_eq!((lines(&kept.audit, "generate").len(), lines(&kept.audit, "open").len()), (1, 1));
    assert_eq!(std::fs::metadata(&kept.audit).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&kept.audit).unwrap();
    assert!(!text.contains("private"), "nothing of the key: {text}");
}

#[test]
fn keys_of_every_curve_sign_by_name_and_do_nothing_else() {
    let kept = kept();
    let mut boss = owner(&kept);
    let mut client = Raw::connect(&kept.served.path).unwrap();
    let p384 = generate(&mut boss, "p384", KeyAlgorithm::P384, KeyPolicy::default());
    let session = client.open(&by_name(Algorithm::EcdsaP384Sign, "p384", &p384)).unwrap();
    let mut signature = run(&client, session, Algorithm::EcdsaP384Sign, &[3; 48]).unwrap();
    assert!(verifies(&p384, &[3; 48], &mut signature));
    // RFC 8032 s7.1, TEST 2, and a message of more than one block of anything.
    let [seed, public, wanted] = RFC8032.map(decode);
    let pkcs8 = [&[0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20][..], &seed].concat();
    let import = KeyCommand::Import { name: "ed", private: &pkcs8, policy: KeyPolicy::default() };
    let ed25519 = command(&mut boss, import).unwrap();
    assert_eq!(PublicKey::from_der(&ed25519), Some(PublicKey::Ed25519(public)));
    let session = client.open(&by_name(Algorithm::Ed25519Sign, "ed", &ed25519)).unwrap();
    assert_eq!(run(&client, session, Algorithm::Ed25519Sign, &[0x72]).unwrap(), wanted);
    assert_eq!(run(&client, session, Algorithm::Ed25519Sign, &[7; 100_000]).unwrap().len(), 64);
    let mut why = |algorithm, name: &str, public: &[u8]| client.open(&by_name(algorithm, name, public)).unwrap_err().to_string();
    let refused = why(Algorithm::EcdhP384, "p384", &p384);
    assert!(
        refused.contains("may be used to sign and not to derive") && refused.contains("`bywash key policy p384 --allow sign,derive`"),
        "{refused}"
    );
    assert!(why(Algorithm::EcdsaP256Sign, "p384", &p384).contains("of kind p384 and"));
    assert!(why(Algorithm::X25519, "ed", &ed25519).contains("of kind ed25519 and"));
    drop(client);
    until("both keys' uses are in the log", || lines(&kept.audit, "use").len() == 2);
    let algorithms: Vec<_> = lines(&kept.audit, "use").iter().map(|line| line["algorithm"].clone()).collect();
    assert!(algorithms.contains(&"ECDSA-P384 sign".into()) && algorithms.contains(&"Ed25519 sign".into()), "{algorithms:?}");
    let log = std::fs::read_to_string(&kept.audit).unwrap();
    assert!(!log.contains(RFC8032[0]) && !log.contains(&format!("{:?}", &seed[..4])[1..]), "nothing of the key: {log}");
}

#[test]
fn what_does_not_exist_or_does_not_fit_is_refused_in_words() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let mut client = Raw::connect(&kept.served.path).unwrap();
    let mut why = |algorithm, name: &str, public: &[u8]| client.open(&by_name(algorithm, name, public)).unwrap_err().to_string();
    assert!(why(Algorithm::EcdsaP256Sign, "nothing", &public).contains("bywash:nothing: there is no such key"));
    assert!(why(Algorithm::Rsa2048Private, "web", &public).contains("of kind p256 and"));
    assert!(why(Algorithm::EcdhP256, "web", &public).contains("may be used to sign and not to derive"));
    assert!(why(Algorithm::EcdsaP256Sign, "web", b"another's").contains("bywash key uri web"));
    assert_eq!(lines(&kept.audit, "refused").len(), 4);
    let error = command(&mut boss, KeyCommand::Import { name: "bad", private: &[48, 0], policy: KeyPolicy::default() }).unwrap_err();
    assert!(matches!(error, Error::VaultKey { .. }), "{error}");
    let served = serve(|_| {});
    let error = Raw::connect(&served.path).unwrap().open(&by_name(Algorithm::EcdsaP256Sign, "web", &public)).unwrap_err();
    assert!(error.to_string().contains("serve --keys"), "{error}");
}

/// A block under PKCS#1 v1.5's padding for signatures.
fn signature_block() -> Vec<u8> {
    [&[0, 1][..], &[0xFF; 202], &[0], &[9; 51]].concat()
}

#[test]
fn a_key_that_may_only_sign_decrypts_nothing() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::Rsa2048, KeyPolicy::default());
    let mut client = Raw::connect(&kept.served.path).unwrap();
    let session = client.open(&by_name(Algorithm::Rsa2048Private, "web", &public)).unwrap();
    run(&client, session, Algorithm::Rsa2048Private, &signature_block()).unwrap();
    let ciphertext = [&[0][..], &[0x5A; 255]].concat();
    let error = run(&client, session, Algorithm::Rsa2048Private, &ciphertext).unwrap_err();
    assert!(error.to_string().contains("--allow"), "{error}");
    let policy = KeyPolicy { uses: vec![KeyUse::Decrypt], ..KeyPolicy::default() };
    command(&mut boss, KeyCommand::Policy { name: "web", policy }).unwrap();
    assert_eq!(
        run(&client, session, Algorithm::Rsa2048Private, &ciphertext),
        Err(Error::NoSession { id: session }),
        "opened under other rules"
    );
    let session = client.open(&by_name(Algorithm::Rsa2048Private, "web", &public)).unwrap();
    run(&client, session, Algorithm::Rsa2048Private, &ciphertext).unwrap();
}

#[test]
fn sessions_that_come_and_go_do_not_fill_the_log_and_no_use_is_left_out() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let mut client = Raw::connect(&kept.served.path).unwrap();
    const USES: u64 = 2000;
    let begun = Instant::now();
    for _ in 0..USES {
        let session = client.open(&by_name(Algorithm::EcdsaP256Sign, "web", &public)).unwrap();
        run(&client, session, Algorithm::EcdsaP256Sign, &[1; 32]).unwrap();
        client.socket.send(&ClientMessage::Close { session }, &[], Duration::from_secs(5)).unwrap();
    }
    let done = || lines(&kept.audit, "use").iter().map(|line| line["counts"]["done"].as_u64().unwrap()).sum::<u64>();
    until("every use is in the log", || done() == USES);
    // A store of 200, 200 more a second, and every two seconds one line for all others.
    let (found, most) = (lines(&kept.audit, "use").len() as u64, 300 + 201 * (begun.elapsed().as_secs() + 1));
    assert!(found < most, "{found} lines, {most} at most");
}

#[test]
fn a_rate_holds_for_all_clients_together() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy { rate: Some(5), ..KeyPolicy::default() });
    let mut clients: Vec<Raw> = (0..2).map(|_| Raw::connect(&kept.served.path).unwrap()).collect();
    let sessions: Vec<u32> =
        clients.iter_mut().map(|client| client.open(&by_name(Algorithm::EcdsaP256Sign, "web", &public)).unwrap()).collect();
    let mut over = None;
    for attempt in 0..10_000 {
        let which = attempt % 2;
        if let Err(error) = run(&clients[which], sessions[which], Algorithm::EcdsaP256Sign, &[1; 32]) {
            over = Some((attempt, error.to_string()));
            break;
        }
    }
    let (attempt, error) = over.expect("5 a second end before 10,000 are through");
    assert!(attempt >= 5 && error.contains("--rate"), "after {attempt}: {error}");
}

#[test]
fn removed_and_rotated_keys_end_their_sessions() {
    let kept = kept();
    let mut boss = owner(&kept);
    let first = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let mut client = Raw::connect(&kept.served.path).unwrap();
    let open = |client: &mut Raw, public: &[u8]| client.open(&by_name(Algorithm::EcdsaP256Sign, "web", public));
    let old = open(&mut client, &first).unwrap();
    let second = command(&mut boss, KeyCommand::Rotate { name: "web", private: None, grace_s: 1000 }).unwrap();
    assert!(run(&client, old, Algorithm::EcdsaP256Sign, &[1; 32]).is_err(), "all sessions of the name end");
    let (old, new) = (open(&mut client, &first).unwrap(), open(&mut client, &second).unwrap());
    for (session, public) in [(old, &first), (new, &second)] {
        let mut signature = run(&client, session, Algorithm::EcdsaP256Sign, &[1; 32]).unwrap();
        assert!(verifies(public, &[1; 32], &mut signature), "each public half has its own key");
    }
    let third = command(&mut boss, KeyCommand::Rotate { name: "web", private: None, grace_s: 0 }).unwrap();
    assert!(open(&mut client, &first).is_err() && open(&mut client, &second).is_err());
    let last = open(&mut client, &third).unwrap();
    command(&mut boss, KeyCommand::Remove { name: "web" }).unwrap();
    assert_eq!(run(&client, last, Algorithm::EcdsaP256Sign, &[1; 32]), Err(Error::NoSession { id: last }));
    assert!(open(&mut client, &third).unwrap_err().to_string().contains("no such key"));
    assert!(list(&mut boss).is_empty());
}

#[test]
fn removing_a_key_in_full_use_harms_nobody() {
    let kept = kept();
    let mut boss = owner(&kept);
    let public = generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let path = kept.served.path.clone();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (path, params) = (path.clone(), by_name(Algorithm::EcdsaP256Sign, "web", &public));
            std::thread::spawn(move || {
                let mut client = Raw::connect(&path).unwrap();
                let session = client.open(&params).unwrap();
                (0..).find_map(|_| run(&client, session, Algorithm::EcdsaP256Sign, &[1; 32]).err()).unwrap()
            })
        })
        .collect();
    let boss = std::cell::RefCell::new(boss);
    until("all are at work", || list(&mut boss.borrow_mut())[0].used > Some(200));
    let mut boss = boss.into_inner();
    command(&mut boss, KeyCommand::Remove { name: "web" }).unwrap();
    for thread in threads {
        assert!(matches!(thread.join().unwrap(), Error::NoSession { .. }));
    }
    generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
}

/// Asks for a key as another user.
#[test]
fn child_of_the_test_of_users() {
    let Some(client) = support::as_child() else { return };
    let mut client = client.unwrap();
    match client.ask(&ClientMessage::Describe { request: 1, name: "web", public: None }) {
        Ok(BrokerMessage::Key { public, .. }) => {
            let opened = client.open(&by_name(Algorithm::EcdsaP256Sign, "web", &public));
            println!("described, open: {}", opened.is_ok());
        }
        Ok(other) => println!("{other:?}"),
        Err(error) => println!("refused: {error}"),
    }
    let list = client.ask(&ClientMessage::Keys { request: 2, command: KeyCommand::List });
    println!("list: {}", list.map_or_else(|error| error.to_string(), |_| "given".into()));
}

#[test]
fn other_users_need_leave_for_each_key_and_command_nothing() {
    if !can_be_another() {
        return;
    }
    let kept = kept();
    let mut boss = owner(&kept);
    generate(&mut boss, "web", KeyAlgorithm::P256, KeyPolicy::default());
    let refused = as_user(65534, &kept.served, None);
    assert!(refused.contains("refused") && refused.contains("bywash key policy web --allow-uid 65534"), "{refused}");
    assert!(refused.contains("list: key bywash:: only root"), "{refused}");
    command(&mut boss, KeyCommand::Policy { name: "web", policy: KeyPolicy { uids: vec![65534], ..KeyPolicy::default() } }).unwrap();
    assert!(as_user(65534, &kept.served, None).contains("described, open: true"));
    command(&mut boss, KeyCommand::Policy { name: "web", policy: KeyPolicy { gids: vec![65534], ..KeyPolicy::default() } }).unwrap();
    assert!(as_user(65534, &kept.served, None).contains("described, open: true"), "by its group");
    command(&mut boss, KeyCommand::Policy { name: "web", policy: KeyPolicy { gids: vec![65533], ..KeyPolicy::default() } }).unwrap();
    assert!(as_user(65534, &kept.served, None).contains("refused"), "another group");
    let log = lines(&kept.audit, "refused");
    assert!(log.iter().any(|line| line["uid"] == 65534 && line["key"] == "web"), "{log:?}");
}
