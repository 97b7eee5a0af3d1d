//! The end of a run, and of programs that crash.

mod common;

use common::{Fixture, eventually};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;

#[test]
fn what_is_acknowledged_before_the_end_is_kept_and_nothing_is_after_it() {
    let Some(fixture) = Fixture::new() else { return };
    let script = "exec 3>> $DIR/log 4>> $OUT/acknowledged; while printf x >> $DIR/log; do printf x >&4; done 2> /dev/null";
    let (mut child, hooked) = fixture.start(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), &Arc::default());
    let acknowledged = fixture.outside().join("acknowledged");
    eventually(|| fs::metadata(&acknowledged).is_ok_and(|file| file.len() > 20));
    hooked.finish().unwrap();
    // It is told of every write that is not kept.
    eventually(|| child.try_wait().unwrap().is_some());
    let kept = fixture.shell("wc -c < $DIR/log").ok().trim().parse::<u64>().unwrap();
    let acknowledged = fs::metadata(&acknowledged).unwrap().len();
    assert!((acknowledged..=acknowledged + 1).contains(&kept), "{kept} kept of {acknowledged}");
}

#[test]
fn a_crash_leaves_no_memory_in_the_volumes_folder() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with(['|', '/', '@']) {
        return eprintln!("skipped: core dumps go elsewhere here: {pattern}");
    }
    let Some(fixture) = Fixture::new() else { return };
    let most = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: most, maximum: most }).unwrap();
    let count = || fixture.lower().read_dir().unwrap().count();
    let before = count();
    let ran = fixture.shell("cd $DIR; secret='attack at dawn' sh -c 'kill -SEGV $$'; ulimit -c");
    assert_eq!(ran.stdout(), "0\n", "{}", ran.stderr());
    assert!(count() == before && !fixture.holds("attack at dawn"));
}
