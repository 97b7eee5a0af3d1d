//! What cannot be done safely is refused by name, and nothing of it reaches the disk.

mod common;

use common::{Fixture, compiled};

#[test]
fn what_is_refused_is_named_with_the_way_out() {
    let (Some(fixture), Some(program)) = (Fixture::new(), compiled("refused.c", "hook-refused", &[])) else { return };
    let folder = fixture.lower();
    let ran = fixture.run(&program, &[folder.to_str().unwrap()]);
    assert_eq!((ran.stdout().as_str(), ran.stderr().as_str()), ("all is refused\n", ""), "{:?}", ran.told);
    let calls =
        ["mmap", "fcntl", "dup2", "io_uring_setup", "poll", "chdir", "flock", "setxattr", "bind", "mknodat", "openat", "chroot", "execve"];
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
fn a_program_in_a_volume_is_not_started_and_no_shell_takes_its_ciphertext_for_a_script() {
    let Some(fixture) = Fixture::with_plain_names() else { return };
    let ran = fixture.shell("printf '#!/bin/sh\necho ran\n' > $DIR/program-of-ours; chmod +x $DIR/program-of-ours; PATH=$DIR:$PATH; $DIR/program-of-ours; echo $?; program-of-ours; echo $?; cat $DIR/program-of-ours | sh");
    assert_eq!(ran.stdout(), "126\n126\nran\n", "{}", ran.stderr());
    assert!(ran.told.iter().all(|line| line.starts_with("execve ") && line.contains("cannot be started")) && !ran.told.is_empty());
}

#[test]
fn a_way_out_is_one() {
    let Some(fixture) = Fixture::new() else { return };
    let ran = fixture.shell("setpriv --reuid 65534 --clear-groups cat $DIR/file; mv $DIR $DIR-moved");
    if !rustix::process::geteuid().is_root() || ran.stderr().contains("setpriv") {
        return eprintln!("skipped: nobody can become somebody else: {}", ran.stderr());
    }
    let [other, moved] = &ran.told[..] else { panic!("{:?}", ran.told) };
    assert!(other.ends_with("only the user who started the run is served; `bywash mount --allow-other` serves others too"), "{other}");
    assert!(moved.ends_with("can be moved; move it when the run has ended"), "{moved}");
}

#[test]
fn what_programs_have_another_way_for_is_refused_silently() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.shell("echo text > $OUT/file && mv $OUT/file $DIR/file && mv $DIR/file $OUT/file && cat $OUT/file").ok();
    let ran = fixture.shell("ln $OUT/file $DIR/file");
    assert!(!ran.output.status.success() && ran.stderr().contains("cross-device"), "{}", ran.stderr());
}
