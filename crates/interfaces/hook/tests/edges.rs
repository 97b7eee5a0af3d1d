//! What is rare: programs at the edges of what is served, where a mistake hangs, loses a file or leaves plaintext on the disk.

mod common;

use common::{Fixture, Ran, compiled};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

/// A part of `edges.c`; each says what is wrong.
#[track_caller]
fn part(fixture: &Fixture, part: &str) -> Option<Ran> {
    let program = compiled("edges.c", &format!("hook-edges-{}", part.replace(' ', "-")), &[])?;
    let [volume, outside] = [fixture.lower(), fixture.outside().canonicalize().unwrap()];
    let ran = fixture.run(&program, &[volume.to_str().unwrap(), outside.to_str().unwrap(), part]);
    assert_eq!((ran.stdout().as_str(), ran.stderr().as_str()), ("all is well\n", ""), "{} {:?}", ran.output.status, ran.told);
    Some(ran)
}

#[test]
fn names_of_one_file_are_renamed_and_exchanged_as_on_linux() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "renames").map(Ran::ok);
    fixture.check();
}

#[test]
fn a_folder_that_is_open_is_that_folder_whatever_becomes_of_its_name() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "removed").map(Ran::ok);
    part(&fixture, "moved").map(Ran::ok);
    fixture.check();
}

#[test]
fn a_folder_in_whose_place_another_came_is_let_go() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "replaced").map(Ran::ok);
    fixture.check();
}

#[test]
fn a_path_from_a_descriptor_that_leads_out_is_refused_by_name() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(ran) = part(&fixture, "out") else { return };
    let [line] = &ran.told[..] else { panic!("{:?}", ran.told) };
    assert!(line.starts_with("openat ../outside: ") && line.contains("leads out of it"), "{line}");
}

#[test]
fn what_is_written_to_a_file_opened_so_is_on_the_disk_at_once() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(program) = compiled("edges.c", "hook-edges-synced", &[]) else { return };
    let [volume, outside] = [fixture.lower(), fixture.outside()];
    let mut command = Command::new(program);
    let mut on_the_disk = 0;
    let ran = fixture.run_with(command.arg(&volume).arg(&outside).arg("synced"), |_| {
        common::eventually(|| outside.join("written").exists());
        on_the_disk = fixture.size();
        fs::write(outside.join("seen"), "").unwrap();
    });
    assert_eq!(ran.ok(), "all is well\n");
    assert!(on_the_disk > 3000, "{on_the_disk} bytes of a text of 3000");
}

#[test]
fn the_volumes_folder_has_the_number_that_it_has_for_others() {
    let Some(fixture) = Fixture::new() else { return };
    let number = fs::metadata(fixture.lower()).unwrap().ino();
    let script = "stat -c %i $DIR; cd $DIR && mkdir folder && ls -ai | sed -n 's/^ *\\([0-9]*\\) \\.$/\\1/p'; ls -ai folder | sed -n 's/^ *\\([0-9]*\\) \\.\\.$/\\1/p'; find .";
    let expected = format!("{number}\n{number}\n{number}\n.\n./folder\n");
    assert_eq!(fixture.shell(script).ok(), expected);
}

#[test]
fn a_wait_with_a_file_is_none_and_the_others_are_what_they_are() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "waits").map(Ran::ok);
}

#[test]
fn a_slash_behind_a_name_wants_a_folder() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "slashes").map(Ran::ok);
    fixture.check();
}

#[test]
fn an_append_is_one_however_large_it_is() {
    let Some(fixture) = Fixture::new() else { return };
    part(&fixture, "appends").map(Ran::ok);
}

#[test]
fn a_path_with_a_root_of_its_own_does_not_lead_around_the_volume() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(ran) = part(&fixture, "in root") else { return };
    assert!(ran.told.iter().all(|line| line.starts_with("openat2 ") && line.contains("rules for how its path may lead")), "{:?}", ran.told);
    assert!(!ran.told.is_empty() && !fixture.holds("leaked"));
}

#[test]
fn neither_the_volume_nor_what_it_is_in_is_moved() {
    let Some(fixture) = Fixture::new() else { return };
    let Some(ran) = part(&fixture, "moves") else { return };
    assert!(ran.told.iter().all(|line| line.starts_with("rename") && line.contains("can be moved")), "{:?}", ran.told);
    // Neither whole nor, by copying, as plaintext.
    let script = "echo attack at dawn > $DIR/file; mv $DIR/.. $DIR/../../moved-hook && echo leaked > $DIR/../../moved-hook/lower/leaked; mv $DIR $OUT/moved; cat $DIR/file";
    let ran = fixture.shell(script);
    assert_eq!(ran.stdout(), "attack at dawn\n", "{}", ran.stderr());
    assert!(ran.stderr().matches("resource busy").count() == 2, "{}", ran.stderr());
    assert!(!fixture.holds("leaked") && !fixture.outside().join("moved").exists());
    fixture.check();
}

#[test]
fn a_volume_that_somebody_else_moves_is_known_where_it_is() {
    let Some(fixture) = Fixture::new() else { return };
    let [lower, moved] = [fixture.lower(), fixture.lower().with_file_name("moved")];
    let script = "cd $DIR; echo one > $DIR/one; touch $OUT/begun; while ! test -e $OUT/moved; do sleep 0.02; done; cat one
        echo attack at dawn > $OUT/../moved/second; echo attack at noon > third-one; echo attack at dusk > ../moved/fourth; cd $OUT/../moved; cat second third-one fourth
        echo outside > $OUT/../moved/../beside";
    let outside = fixture.outside();
    let ran = fixture.run_with(Command::new("sh").args(["-c", script]), |_| {
        common::eventually(|| outside.join("begun").exists());
        fs::rename(&lower, &moved).unwrap();
        fs::write(outside.join("moved"), "").unwrap();
    });
    fs::rename(&moved, &lower).unwrap();
    assert_eq!(ran.ok(), "one\nattack at dawn\nattack at noon\nattack at dusk\n");
    assert_eq!(fs::read_to_string(outside.with_file_name("beside")).unwrap(), "outside\n");
    // Long enough to stand nowhere by chance: a sealed name is letters.
    assert!(!["attack", "second", "third-one", "fourth"].into_iter().any(|word| fixture.holds(word)));
    fixture.check();
}

#[test]
fn an_open_that_finds_no_number_leaves_the_file_as_it_was() {
    let Some(fixture) = Fixture::new() else { return };
    let script = "echo precious > $DIR/file; sh -c 'ulimit -n 400; echo new > $DIR/file'; sh -c 'ulimit -n 400; echo new > $DIR/new'; cat $DIR/file; ls $DIR";
    let ran = fixture.shell(script);
    assert_eq!(ran.stdout(), "precious\nfile\n", "{}", ran.stderr());
    assert!(ran.told.len() == 2 && ran.told.iter().all(|line| line.contains("ulimit -n")), "{:?}", ran.told);
    // One that has some numbers left is served with those.
    assert_eq!(fixture.shell("sh -c 'ulimit -n 600; echo new > $DIR/file; cat $DIR/file $DIR/file'").ok(), "new\nnew\n");
}

/// A small disk in memory, until it is dropped.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_descriptor_is_closed_also_where_its_program_hears_that_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "hook-test"]).arg(folder.path()).output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        return eprintln!("skipped: a small disk cannot be mounted");
    }
    let disk = Disk(folder.path().to_owned());
    let Some(fixture) = Fixture::new_in(folder) else { return };
    let ran = part(&fixture, "full");
    assert!(ran.is_none_or(|ran| ran.told.is_empty()));
    fixture.check();
    assert_eq!(fixture.shell("wc -c < $DIR/closed; wc -c < $DIR/replaced").ok(), "40000\n40000\n");
    drop(disk);
}

#[test]
fn a_line_that_names_a_file_stays_one_line() {
    let Some(fixture) = Fixture::new() else { return };
    let ran =
        fixture.shell("name=$(printf 'a\\nbywash: good\\033[2J\\342\\200\\256'); ln -s /etc/passwd \"$DIR/$name\"; cat \"$DIR/$name\"");
    let [line] = &ran.told[..] else { panic!("{:?}", ran.told) };
    assert!(line.contains("/a\\nbywash: good\\u{1b}[2J\\u{202e}: a link"), "{line}");
}

#[test]
fn a_program_that_keeps_its_memory_to_itself_is_said_to() {
    let Some(fixture) = Fixture::new() else { return };
    // Root may look everywhere but for what is dropped here, in this thread and those that it starts.
    let without = std::thread::scope(|scope| {
        let run = || {
            let mut sets = capabilities(None).unwrap();
            for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
                set.remove(CapabilitySet::SYS_PTRACE);
            }
            set_capabilities(None, sets).unwrap();
            part(&fixture, "unreadable")
        };
        scope.spawn(run).join().unwrap()
    });
    let Some(ran) = without else { return };
    let [line] = &ran.told[..] else { panic!("{:?}", ran.told) };
    assert!(line.starts_with("a program hook-edges-un") && line.contains("keeps its memory to itself"), "{line}");
}
