//! What a connection lets its process do is not for who has it from there: a child of fork, or the same process as another user.

mod support;

use bywash_protocol::keys::{KeyAlgorithm, KeyCommand, KeyPolicy};
use bywash_protocol::message::{MESSAGE_BYTES_MAX, encode};
use bywash_protocol::{BrokerMessage, ClientMessage, ControlSocket, Role, StatsFormat, VERSION, WireParams};
use bywash_vault::Vault;
use rustix::fs::Uid;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::set_thread_res_uid;
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::{Raw, Served, can_be_another, ctr, serve, until};

const NOBODY: Uid = Uid::from_raw_unchecked(65534);

/// A broker with one key in its vault, and the folder of that.
fn with_a_key() -> (Served, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(&folder.path().join("keys"), None).unwrap();
    vault.generate("web", KeyAlgorithm::Ed25519, KeyPolicy::default()).unwrap();
    (serve(|config| config.vault = Some(Arc::new(vault))), folder)
}

fn policy() -> ClientMessage<'static> {
    let policy = KeyPolicy { uids: vec![33], ..KeyPolicy::default() };
    ClientMessage::Keys { request: 1, command: KeyCommand::Policy { name: "web", policy } }
}

/// The child's side of the next test: says what it is told to on its standard input, which is its parent's connection.
#[test]
fn child_with_its_parents_connection() {
    let Ok(said) = std::env::var("BYWASH_TEST_SAID") else { return };
    let said: Vec<u8> = said.split(',').map(|byte| byte.parse().unwrap()).collect();
    send(std::io::stdin(), &said, SendFlags::NOSIGNAL).unwrap();
    let mut answer = vec![0; MESSAGE_BYTES_MAX];
    let len = recv(std::io::stdin(), &mut answer, RecvFlags::empty()).unwrap().1;
    println!("answered: {len} {}", String::from_utf8_lossy(&answer[..len]));
}

/// Has a child say something on a connection; whether it was answered.
fn is_answered(connection: &Raw, message: &ClientMessage<'_>) -> bool {
    !answer_to_child(&connection.socket, message).contains("answered: 0")
}

/// Has a child say something on a connection; what it prints of the answer.
fn answer_to_child(connection: &ControlSocket, message: &ClientMessage<'_>) -> String {
    let mut said = vec![0; MESSAGE_BYTES_MAX];
    let len = encode(message, &mut said).unwrap();
    let said: Vec<String> = said[..len].iter().map(ToString::to_string).collect();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_with_its_parents_connection", "--nocapture"])
        .env("BYWASH_TEST_SAID", said.join(","))
        .stdin(Stdio::from(rustix::io::dup(connection).unwrap()))
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.contains("answered: "), "{output}");
    output
}

#[test]
fn a_child_that_introduces_itself_on_its_parents_connection_is_told_why_it_cannot() {
    let served = serve(|_| ());
    let socket = ControlSocket::connect(&served.path).unwrap();
    let hello = ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: "child", run: None };
    let told = answer_to_child(&socket, &hello);
    assert!(told.contains("has to make one of its own"), "{told}");
    assert_eq!(served.handle.stats().denied, 1);
}

#[test]
fn a_child_does_nothing_by_its_parents_connection() {
    let (served, _folder) = with_a_key();
    let params = ctr();
    let all = [
        policy(),
        ClientMessage::Keys { request: 1, command: KeyCommand::Remove { name: "web" } },
        ClientMessage::StartRecording { request: 1 },
        ClientMessage::Describe { request: 1, name: "web", public: None },
        ClientMessage::Stats { request: 1, format: StatsFormat::Recent },
        ClientMessage::Open { request: 1, params: WireParams::new(&params).unwrap() },
    ];
    for message in &all {
        let parent = Raw::connect(&served.path).unwrap();
        assert!(!is_answered(&parent, message), "{message:?}");
    }
    let stats = served.handle.stats();
    assert_eq!((stats.denied, stats.corrupt), (all.len() as u64, 0), "told, and nobody kept out for it");
    until("those connections have ended", || served.handle.clients() == 0);
    let mut owner = Raw::connect(&served.path).unwrap();
    assert!(matches!(owner.ask(&policy()).unwrap(), BrokerMessage::Key { .. }), "the key is there, and obeys its owner");
}

#[test]
fn who_has_become_another_user_commands_no_more() {
    if !can_be_another() {
        return;
    }
    let (served, _folder) = with_a_key();
    let mut owner = Raw::connect_as(&served.path, VERSION, Role::Observe, None).unwrap();
    assert!(owner.ask(&policy()).is_ok());
    let became = std::thread::spawn(move || {
        set_thread_res_uid(NOBODY, NOBODY, NOBODY).unwrap();
        let refused = owner.ask(&policy()).unwrap_err().to_string();
        assert!(refused.contains("only root"), "{refused}");
        let refused = owner.ask(&ClientMessage::StartRecording { request: 2 }).unwrap_err().to_string();
        assert!(refused.contains("only root"), "{refused}");
        let describe = ClientMessage::Describe { request: 3, name: "web", public: None };
        assert!(owner.ask(&describe).is_ok(), "what it may use it uses as before");
    });
    became.join().unwrap();
}
