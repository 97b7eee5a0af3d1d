//! A process that answers and may have few descriptors itself.

mod common;

use common::{Fixture, compiled};
use rustix::process::{Resource, Rlimit, setrlimit};

#[test]
fn a_wait_for_as_many_as_the_run_may_have_is_answered_for_each() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(program) = compiled("edges.c", "hook-edges-crowd", &[]) else { return };
    setrlimit(Resource::Nofile, Rlimit { current: Some(900), maximum: Some(900) }).unwrap();
    let [volume, outside] = [fixture.lower(), fixture.outside()];
    let ran = fixture.run(&program, &[volume.to_str().unwrap(), outside.to_str().unwrap(), "crowd"]);
    assert_eq!(ran.ok(), "all is well\n");
}
