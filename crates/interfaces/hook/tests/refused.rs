//! What cannot be done safely is refused by name, and nothing of it reaches the disk.

mod common;

use common::{Fixture, compiled};

#[test]
fn what_is_refused_is_named_with_the_way_out() {
    let (Some(fixture), Some(program)) = (Fixture::new(), compiled("refused.c", "hook-refused", &[])) else { return };
    let folder = fixture.lower();
    let ran = fixture.run(&program, &[folder.to_str().unwrap()]);
    assert_eq!((ran.stdout().as_str(), ran.stderr().as_str()), ("all is refused\n", ""), "{:?}", ran.told);
    let calls = ["mmap", "fcntl", "dup2", "io_uring_setup", "poll", "chdir", "flock", "setxattr", "bind", "mknodat", "openat", "chroot"];
    for call in calls {
        let line = ran.told.iter().find(|line| line.split([' ', ':']).next() == Some(call));
        let line = line.unwrap_or_else(|| panic!("nothing is said of {call}: {:#?}", ran.told));
        assert!(line.contains("--files-by hook"), "{line}");
    }
    let line = ran.told.iter().find(|line| line.starts_with("mmap")).unwrap();
    assert!(line.contains("/file: memory maps"), "{line}");
    assert!(!fixture.holds("attack at dawn") && !fixture.holds("socket"));
    fixture.check();
}

#[test]
fn what_programs_have_another_way_for_is_refused_silently() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.shell("echo text > $OUT/file && mv $OUT/file $DIR/file && mv $DIR/file $OUT/file && cat $OUT/file").ok();
    let ran = fixture.shell("ln $OUT/file $DIR/file");
    assert!(!ran.output.status.success() && ran.stderr().contains("cross-device"), "{}", ran.stderr());
}
