//! What unmodified programs see of a volume under the hook.

mod common;

use common::{Fixture, compiled};
use std::fs;

const SECRET: &str = "attack at dawn";

#[test]
fn programs_of_the_shell_read_and_write_and_the_disk_holds_ciphertext() {
    let Some(fixture) = Fixture::new() else { return };
    let printed = fixture.shell(
        "set -e
        printf 'b attack at dawn\\na attack at dawn\\n' > $DIR/words
        cat $DIR/words > /dev/null
        sort $DIR/words > $DIR/sorted
        cp $DIR/sorted $DIR/copy
        sed -n 2p $DIR/copy
        cat < $DIR/sorted
        echo more >> $DIR/copy
        wc -c < $DIR/copy
        mkdir $DIR/folder
        mv $DIR/copy $DIR/folder/moved
        ln $DIR/folder/moved $DIR/second
        ln -s folder/moved $DIR/link
        tail -n 1 $DIR/link
        readlink $DIR/link
        stat -c '%s %h' $DIR/second
        ls $DIR $DIR/folder
        cp $DIR/words $OUT/outside
        cp $OUT/outside $DIR/inside
        cmp $DIR/words $DIR/inside
        chmod 600 $DIR/inside
        touch -d @1000000000 $DIR/inside
        stat -c '%a %Y' $DIR/inside
        rm $DIR/inside
        test ! -e $DIR/inside
        cp -r $DIR/folder $DIR/other
        diff -r $DIR/folder $DIR/other
        rm -r $DIR/other
        sed -i s/more/less/ $DIR/second
        tail -n 1 $DIR/second
        tar -C $DIR -cf $OUT/archive link folder
        mkdir $DIR/unpacked
        tar -C $DIR/unpacked -xf $OUT/archive
        test \"$(readlink $DIR/unpacked/link)\" = folder/moved
        cmp $DIR/folder/moved $DIR/unpacked/link
        truncate -s 5 $DIR/second
        cat $DIR/second; echo
        cd $DIR && cat sorted | wc -l",
    );
    let expected = "b attack at dawn\na attack at dawn\nb attack at dawn\n39\nmore\nfolder/moved\n39 2\n";
    let printed = printed.ok();
    assert!(printed.starts_with(expected), "{printed}");
    assert!(printed.ends_with("600 1000000000\nless\na att\n2\n"), "{printed}");
    assert!(!fixture.holds(SECRET) && !fixture.holds("words") && !fixture.holds("sorted"));
    assert_eq!(fs::read_to_string(fixture.outside().join("outside")).unwrap(), "b attack at dawn\na attack at dawn\n");
    fixture.check();
}

#[test]
fn what_the_hook_wrote_is_read_through_the_mount_and_the_other_way_round() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.shell("mkdir $DIR/a && head -c 3000000 /dev/zero | tr '\\0' x > $DIR/a/hooked && ln -s a/hooked $DIR/link").ok();
    let can_mount = fixture.mounted(|upper| {
        assert!(fs::read(upper.join("link")).unwrap() == vec![b'x'; 3_000_000]);
        fs::write(upper.join("a/mounted"), SECRET).unwrap();
        fs::write(upper.join("y".repeat(200)), "long").unwrap();
    });
    if can_mount {
        assert_eq!(fixture.shell("cat $DIR/a/mounted; cat $DIR/yyyy*").ok(), format!("{SECRET}long"));
    }
}

/// `program.c` built so; each of its parts says what is wrong.
fn c_program(name: &str, options: &[&str]) {
    let (Some(fixture), Some(program)) = (Fixture::new(), compiled("program.c", name, options)) else { return };
    let folder = fixture.lower();
    let printed = fixture.run(&program, &[folder.to_str().unwrap()]).ok();
    assert_eq!(printed, "all is well\n");
    assert!(!fixture.holds(SECRET));
    fixture.check();
}

#[test]
fn a_dynamic_program_with_stdio_forks_and_threads() {
    c_program("hook-dynamic", &[]);
}

#[test]
fn a_static_program() {
    c_program("hook-static", &["-static"]);
}

#[test]
fn a_program_of_bare_system_calls() {
    let (Some(fixture), Some(program)) = (Fixture::new(), compiled("bare.c", "hook-bare", &["-static", "-nostdlib", "-ffreestanding"]))
    else {
        return;
    };
    let file = fixture.lower().join("file");
    assert_eq!(fixture.run(&program, &[file.to_str().unwrap()]).ok(), SECRET);
    assert!(!fixture.holds(SECRET));
}

#[test]
fn busybox() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::metadata(path).is_ok()) else {
        return eprintln!("skipped: busybox is not installed (apt install busybox-static)");
    };
    let script = "echo attack at dawn > $DIR/a; cat $DIR/a; cp $DIR/a $DIR/b; sort $DIR/a $DIR/b; sed -n 1p $DIR/b; ls $DIR";
    let printed = fixture.run(busybox, &["sh", "-c", script]).ok();
    assert_eq!(printed, "attack at dawn\n".repeat(4) + "a\nb\n");
    assert!(!fixture.holds(SECRET));
}

#[test]
fn a_killed_program_leaves_a_sound_volume() {
    let Some(fixture) = Fixture::new() else { return };
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "i=0; while :; do i=$((i+1)); printf '%0100000d' 7 > $DIR/$i; [ $i != 5 ] || echo five; done"]);
    let ran = fixture.run_with(&mut command, |child| {
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        child.kill().unwrap();
    });
    assert!(!ran.output.status.success());
    fixture.check();
    let lengths = fixture.shell("for i in 1 2 3 4 5; do wc -c < $DIR/$i; done; cat $DIR/* > /dev/null").ok();
    assert_eq!(lengths, "100000\n".repeat(5));
}
