//! One broker a socket, and who may connect to it.

mod support;

use bywash_broker::{Broker, BrokerConfig};
use bywash_core::Error;
use bywash_protocol::{Role, VERSION};
use std::os::unix::fs::PermissionsExt;
use support::{Raw, as_user, can_be_another, manager, serve, until};

#[test]
fn a_second_broker_is_told_the_firsts_pid() {
    let served = serve(|_| {});
    let error = Broker::bind(BrokerConfig::new(served.path.clone(), manager())).err().unwrap().to_string();
    assert!(error.contains(&format!("pid {}", std::process::id())) && error.contains("broker.sock"), "{error}");
    assert!(Raw::connect(&served.path).is_ok(), "the first goes on");
}

#[test]
fn a_dead_brokers_socket_is_replaced_and_other_files_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Broker::bind(BrokerConfig::new(path.clone(), manager())).unwrap());
    assert!(!path.exists(), "a broker that ends takes its socket along");
    std::fs::write(&path, "somebody's").unwrap();
    let error = Broker::bind(BrokerConfig::new(path.clone(), manager())).err().unwrap().to_string();
    assert!(error.contains("not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");
}

#[test]
fn a_lock_file_that_somebody_laid_out_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let (path, precious) = (directory.path().join("b.sock"), directory.path().join("precious"));
    std::fs::write(&precious, "precious").unwrap();
    let lay: [fn(&std::path::Path, &std::path::Path); 2] = [
        |precious, lock| std::fs::hard_link(precious, lock).unwrap(),
        |precious, lock| std::os::unix::fs::symlink(precious, lock).unwrap(),
    ];
    for lay in lay {
        let lock = directory.path().join("b.sock.lock");
        lay(&precious, &lock);
        assert!(Broker::bind(BrokerConfig::new(path.clone(), manager())).is_err());
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
        std::fs::remove_file(lock).unwrap();
    }
}

#[test]
fn the_socket_is_private_unless_others_are_allowed() {
    let mode = |served: &support::Served| std::fs::metadata(&served.path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&serve(|_| {})), 0o600);
    assert_eq!(mode(&serve(|config| config.allowed_uids = vec![1])), 0o666);
    assert_eq!(mode(&serve(|config| config.mode = Some(0o660))), 0o660);
}

#[test]
fn another_version_is_told_so() {
    let served = serve(|_| {});
    let error = Raw::connect_as(&served.path, VERSION + 1, Role::Compute, None).err().unwrap().to_string();
    assert!(error.contains("protocol"), "{error}");
}

#[test]
fn connections_of_one_user_are_bounded_and_come_back() {
    let served = serve(|config| config.quotas.clients_per_uid_max = 3);
    let mut clients: Vec<_> = (0..3).map(|_| Raw::connect(&served.path).unwrap()).collect();
    let error = Raw::connect(&served.path).err().unwrap();
    assert!(matches!(error, Error::Quota { limit: 3, setting: "clients_per_uid_max", .. }), "{error}");
    clients.pop();
    until("there is room again", || served.handle.clients() == 2);
    until("a connection is counted out", || Raw::connect(&served.path).is_ok());
}

/// Connects as another user.
#[test]
fn child_of_the_test_of_users() {
    match support::as_child() {
        Some(Ok(_)) => println!("admitted"),
        Some(Err(error)) => println!("refused: {error}"),
        None => {}
    }
}

#[test]
fn other_users_need_leave_or_the_runs_token() {
    if !can_be_another() {
        return;
    }
    let private = serve(|config| config.mode = Some(0o666));
    let refused = as_user(65534, &private, None);
    assert!(refused.contains("refused") && refused.contains("--allow-uid 65534"), "{refused}");
    assert_eq!(private.handle.stats().denied, 1);
    let allowing = serve(|config| config.allowed_uids = vec![65534]);
    assert!(as_user(65534, &allowing, None).contains("admitted"));
    assert!(as_user(65533, &allowing, None).contains("refused"));
    let token = serve(|config| config.run_token = Some("0123456789abcdef".into()));
    assert!(as_user(65534, &token, Some("0123456789abcdef")).contains("admitted"));
    assert!(as_user(65534, &token, Some("0123456789abcdeX")).contains("refused"));
    assert!(as_user(65534, &token, None).contains("refused"));
}
