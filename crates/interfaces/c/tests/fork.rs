//! Forks under load, with a broker, with this process's own manager, and with neither.

#[path = "../../../client/tests/common/broker.rs"]
#[allow(dead_code, reason = "shared with the client's tests, which use all of it")]
mod broker;
#[path = "common/compiler.rs"]
mod compiler;

use bywash_protocol::Geometry;
use compiler::{compile, library_folder};
use std::path::Path;
use std::process::Command;

/// Forks of one process.
const FORKS: u32 = 40;
/// Processes that fork once, while their threads use for the first time what is made when it is first used: one child in 170 waited for the thread that was making it.
const FIRST_FORKS: u32 = 300;

fn fork_under_load(program: &Path, socket: &Path, route: &str, forks: u32) {
    let mut command = Command::new(program);
    command.arg(forks.to_string()).env("LD_LIBRARY_PATH", library_folder()).env("BYWASH_SOCKET", socket).env("BYWASH_ROUTE", route);
    let ran = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{socket:?} {route}: {stdout}{stderr}");
}

#[test]
fn parents_and_children_go_on_after_a_fork_under_load() {
    let place = tempfile::tempdir().unwrap();
    let (program, socket) = (place.path().join("fork"), place.path().join("s"));
    if !compile("tests/fork.c", &program) {
        return;
    }
    let toy = broker::ToyBroker::start(&socket, Geometry::default());
    fork_under_load(&program, &socket, "queue", FORKS);
    assert!(toy.clients.lock().unwrap().len() > 1, "children made connections of their own");
    for route in ["queue", "here"] {
        fork_under_load(&program, Path::new("none"), route, FORKS);
        (0..FIRST_FORKS / 2).for_each(|_| fork_under_load(&program, Path::new("none"), route, 1));
    }
}

/// A container's first process forks the first of a container within: both have the number 1.
#[test]
fn a_child_with_its_parents_number_makes_a_connection_of_its_own() {
    let apart = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork"]);
        command
    };
    if !apart().args(["unshare", "--pid", "--fork", "true"]).output().is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: this system lets nobody make PID namespaces here, or has no unshare(1)");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (program, socket) = (place.path().join("fork"), place.path().join("s"));
    if !compile("tests/fork.c", &program) {
        return;
    }
    let toy = broker::ToyBroker::start(&socket, Geometry::default());
    for socket in [&*socket, Path::new("none")] {
        let mut command = apart();
        command.arg(&program).args(["1", "nested"]).env("LD_LIBRARY_PATH", library_folder());
        let ran = command.env("BYWASH_SOCKET", socket).env("BYWASH_ROUTE", "queue").output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{socket:?}: {}: {stdout}{stderr}", ran.status);
        assert_eq!(toy.clients.lock().unwrap().len(), 2, "the parent's and the child's");
    }
}
