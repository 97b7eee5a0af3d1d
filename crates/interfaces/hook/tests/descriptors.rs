//! Files of a volume by the numbers of descriptors, as `/dev/stdin` names them.

mod common;

use common::Fixture;

#[test]
fn a_file_is_known_by_the_number_of_its_descriptor() {
    let Some(fixture) = Fixture::new() else { return };
    let script = "set -e
        echo attack at dawn > $DIR/file; mkdir $DIR/folder; echo below > $DIR/folder/below
        chmod 640 /proc/self/fd/0 < $DIR/file; stat -c %a $DIR/file
        stat -L -c '%F %s' /dev/stdin < $DIR/file
        cat /dev/stdin < $DIR/file
        exec 0< $DIR/folder; cat /proc/self/fd/0/below /dev/fd/0/below; ls /dev/stdin/
        exec 0< $DIR/file; sh -c 'echo more | tee -a /proc/$PPID/fd/1 > /dev/null' > $DIR/copy; truncate -s 6 /dev/stdin
        rm $DIR/file; cat /dev/stdin; echo";
    assert_eq!(fixture.shell(script).ok(), "640\nregular file 15\nattack at dawn\nbelow\nbelow\nbelow\nattack\n");
    assert!(!fixture.holds("attack") && !fixture.holds("more"));
    fixture.check();
}

#[test]
fn what_is_behind_a_number_of_another_kind_is_the_kernels() {
    let Some(fixture) = Fixture::new() else { return };
    let script = "echo text > $OUT/file; cat /dev/stdin < $OUT/file; echo piped | cat /dev/stdin; readlink /proc/self/fd/0 < $DIR/none || ls /proc/self/fd/77";
    let ran = fixture.shell(script);
    assert_eq!((ran.stdout().as_str(), ran.told.len()), ("text\npiped\n", 0), "{}{:?}", ran.stderr(), ran.told);
}
