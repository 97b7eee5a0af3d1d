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

fn fork_under_load(program: &Path, socket: &Path, route: &str) {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_folder()).env("BYWASH_SOCKET", socket).env("BYWASH_ROUTE", route);
    let ran = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{socket:?} {route}: {stdout}{stderr}");
    eprintln!("{route} at {}: {stdout}", socket.display());
}

#[test]
fn parents_and_children_go_on_after_a_fork_under_load() {
    let place = tempfile::tempdir().unwrap();
    let (program, socket) = (place.path().join("fork"), place.path().join("s"));
    if !compile("tests/fork.c", &program) {
        return;
    }
    let toy = broker::ToyBroker::start(&socket, Geometry::default());
    fork_under_load(&program, &socket, "queue");
    assert!(toy.clients.lock().unwrap().len() > 1, "children made connections of their own");
    fork_under_load(&program, Path::new("none"), "queue");
    fork_under_load(&program, Path::new("none"), "here");
}
