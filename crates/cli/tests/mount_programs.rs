//! Programs that know nothing of volumes work in one: under `bywash run --files`, and as a user who is not root. What is not installed is said, and left out.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{bywash, stderr, stdout, succeed};

/// Nobody's number.
const NOBODY: u32 = 65_534;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        succeed(bywash().arg("keygen").arg("--key-file").arg(place.at("key")));
        succeed(place.command().args(["mount", "--init", "-k", "key", "vault"]));
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = bywash();
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// What a shell says in the volume; none where it cannot be.
    fn shell(&self, script: &str) -> Option<String> {
        let script = format!("set -e; cd vault; {script}");
        is_possible(&self.command().args(["run", "-q", "--files", "vault", "-k", "key", "--", "sh", "-c", &script]).output().unwrap())
    }

    fn assert_clean(&self) {
        succeed(self.command().args(["fsck", "-k", "key", "vault"]));
    }
}

fn is_possible(output: &Output) -> Option<String> {
    let said = stderr(output);
    let is_lacking = ["nothing can be mounted here", "no user namespace", "fusermount3"];
    if !output.status.success() && is_lacking.iter().any(|lack| said.contains(lack)) {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{}{said}", stdout(output));
    Some(stdout(output))
}

fn has(program: &str) -> bool {
    let is_there = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status().unwrap().success();
    if !is_there {
        eprintln!("skipped: {program} is not installed");
    }
    is_there
}

/// A script in a volume, which is sound afterwards.
fn in_a_volume(programs: &[&str], script: &str, says: &str) {
    if !programs.iter().all(|program| has(program)) {
        return;
    }
    let place = Place::new();
    let Some(said) = place.shell(script) else { return };
    assert_eq!(said, says);
    place.assert_clean();
}

#[test]
fn git_keeps_its_history() {
    let script = "git init -q . && git config user.name a && git config user.email b && for n in 1 2 3; do echo $n > file; mkdir -p d/$n; echo $n > d/$n/f; \
                  git add -A; git commit -qm $n; done; git gc -q; git fsck --strict 2>&1; git log --format=%s; git clone -q . ../clone 2>&1; git checkout -q HEAD~2; cat file; git status --short";
    in_a_volume(&["git"], script, "3\n2\n1\n1\n");
}

#[test]
fn a_database_commits_and_is_whole() {
    let script = r#"cat > program <<'END'
import sqlite3, os
for mode in ("delete", "wal"):
    db = sqlite3.connect("data.db")
    db.execute("pragma journal_mode=" + mode)
    db.execute("create table if not exists t (n integer primary key, text)")
    for n in range(20):
        with db:
            db.executemany("insert into t (text) values (?)", [("x" * n * 50,)] * 20)
    db.execute("vacuum")
    print(db.execute("pragma integrity_check").fetchone()[0], db.execute("select count(*) from t").fetchone()[0])
    db.close()
END
python3 program"#;
    in_a_volume(&["python3"], script, "ok 400\nok 800\n");
}

#[test]
fn programs_are_built_and_run_there() {
    let script = r#"printf '#include <stdio.h>\nint main(void) { FILE *f = fopen("out", "a"); fprintf(f, "%%d\\n", 42); return fclose(f); }\n' > main.c
cc -O1 -o dynamic main.c; cc -O1 -static -o static main.c; ./dynamic; ./static; cat out; printf 'all: a b\n\tcat a b > all\n%%: %%.in\n\tcp $< $@\n' > makefile
echo 1 > a.in; echo 2 > b.in; make -s; cat all"#;
    in_a_volume(&["cc", "make"], script, "42\n42\n1\n2\n");
}

#[test]
fn files_are_sorted_edited_copied_and_packed() {
    let script = "seq 20000 | sort -R > list; sort -n -o list list; seq 20000 | cmp - list; sed -i 's/^1$/one/' list; head -1 list; mkdir -p from/sub; ln list from/hard; ln -s hard from/soft; \
                  chmod 640 from/hard; cp -a from to; diff -r from to; tar cf all.tar from; mkdir out; tar xf all.tar -C out; diff -r from out/from; stat -c '%a %h' to/hard; \
                  dd if=/dev/zero of=zeros bs=4k count=100 conv=fsync 2>/dev/null; truncate -s 1M zeros; cp --sparse=always zeros holes; cmp zeros holes; mv from moved; rm -r to out; ls";
    in_a_volume(&["tar"], script, "one\n640 1\nall.tar\nholes\nlist\nmoved\nzeros\n");
}

#[test]
fn programs_without_a_c_library_of_the_system_work_too() {
    let script = "B=$(command -v busybox); $B sh -c 'echo b > f; echo a >> f; busybox sort -o f f; busybox sed -i s/a/c/ f; busybox cp f g; busybox cat g'";
    in_a_volume(&["busybox"], script, "c\nb\n");
    let go = "printf 'package main\\nimport \"os\"\\nfunc main() { os.WriteFile(\"f\", []byte(\"go\"), 0644); b, _ := os.ReadFile(\"f\"); os.Stdout.Write(b) }\\n' > main.go; \
              HOME=$PWD/.. GOCACHE=$PWD/../cache go run main.go";
    in_a_volume(&["go"], go, "go");
}

/// What root does to stand where a user stands who is not: in namespaces of its own, a device that he may open.
const AS_NOBODY: &str = r#"
mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || exit 77
as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as test -x "$BYWASH" || { echo "the program is where nobody else may look" >&2; exit 77; }
"#;

fn as_nobody(place: &Place, script: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes another user; every other test here is that user's");
        return None;
    }
    let program = bywash().get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(format!("{AS_NOBODY}{script}")).env("BYWASH", program).env("HOME", place.0.path());
    let output = command
        .env("BYWASH_SOCKET", "none")
        .env("BYWASH_PROVIDER", support::provider())
        .current_dir(place.0.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", stderr(&output));
        return None;
    }
    Some(output)
}

fn give(place: &Place, path: &Path) {
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(place, &entry.unwrap().path()));
    }
}

#[test]
fn a_user_runs_a_program_on_his_files_and_mounts_them() {
    let place = Place::new();
    fs::create_dir(place.at("plain")).unwrap();
    give(&place, place.0.path());
    let script = r#"set -e
as "$BYWASH" run -q --files vault -k key -- sh -c 'cd vault && echo text > file && mkdir folder && mv file folder && stat -c "%u %U" folder/file && id -u'
as "$BYWASH" mount -k key vault plain
as cat plain/folder/file
as sh -c 'echo more >> plain/folder/file; chmod 600 plain/folder/file'
# Not even root looks into a user's mount.
! ls plain 2>/dev/null
as "$BYWASH" umount plain
as "$BYWASH" run -q --files vault -k key -- cat vault/folder/file
as "$BYWASH" fsck -k key vault"#;
    let Some(output) = as_nobody(&place, script) else { return };
    if is_possible(&output).is_some() {
        assert_eq!(stdout(&output), "65534 nobody\n65534\ntext\ntext\nmore\n");
    }
}

/// The kernel asks for less than we need: for rights to the folder that a folder is removed from, and not for leave to read what is only written to.
#[test]
fn a_user_may_do_in_a_volume_what_modes_let_him_do_elsewhere() {
    let place = Place::new();
    fs::create_dir(place.at("plain")).unwrap();
    give(&place, place.0.path());
    // Not by `run --files`, which has all rights to his files in a namespace of its own.
    let there = r#"set -e; cd plain
mkdir r w n; chmod 555 r; chmod 300 w; chmod 000 n; rmdir r w n
mkdir old new; chmod 555 old; mv -T new old; rmdir old
mkdir full; echo text > full/file; chmod 555 full
! rmdir full 2>/dev/null; stat -c %a full; cat full/file
touch file; chmod 200 file; echo a >> file; : > file; echo b >> file; echo c >> file; stat -c %a file
chmod 600 file; cat file"#;
    fs::write(place.at("there"), there).unwrap();
    let script = r#"set -e; as "$BYWASH" mount -k key vault plain; as sh there; as "$BYWASH" umount plain; as "$BYWASH" fsck -k key vault"#;
    let Some(output) = as_nobody(&place, script) else { return };
    if is_possible(&output).is_some() {
        assert_eq!(stdout(&output), "555\ntext\n200\nb\nc\n", "{}", stderr(&output));
    }
}

/// A script of root's with mounts of its own.
fn as_root(place: &Place, script: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root mounts small disks");
        return None;
    }
    fs::create_dir(place.at("plain")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).env("BYWASH", bywash().get_program()).env("BYWASH_SOCKET", "none");
    let output = command.current_dir(place.0.path()).stdin(Stdio::null()).output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    Some(output)
}

/// Whoever ends it: `umount`, a mount that was idle for long, a signal.
#[test]
fn what_cannot_be_stored_keeps_a_volume_mounted() {
    let script = r#"set -e
mkdir disk; mount -t tmpfs -o size=330m none disk || exit 77
cp -a vault disk/vault
BEGIN
# In use until all is as it is to be.
exec 9<plain
head -c 2000000 /dev/zero > plain/file; sync plain/file
tr '\0' x < /dev/zero | head -c 1500000 | dd of=plain/file conv=notrunc bs=1M iflag=fullblock 2>/dev/null
head -c 400000000 /dev/zero > disk/filler 2>/dev/null || true
exec 9<&-
TRY
head -c 3 plain/file; echo
rm disk/filler
END
for wait in $(seq 200); do mountpoint -q plain || break; sleep 0.1; done
for wait in $(seq 100); do "$BYWASH" fsck -k key disk/vault 2>/dev/null && break; sleep 0.1; done
"$BYWASH" fsck -k key disk/vault
"$BYWASH" mount -k key disk/vault plain
tr -d x < plain/file | wc -c
"$BYWASH" umount plain"#;
    let umount = r#"if "$BYWASH" umount plain 2>log; then echo "it is gone"; fi"#;
    let foreground = r#""$BYWASH" mount --foreground -k key disk/vault plain 2>log & pid=$!
for wait in $(seq 100); do mountpoint -q plain && break; sleep 0.1; done; mountpoint -q plain || exit 77"#;
    let background = |options: &str| format!(r#""$BYWASH" mount {options} -k key disk/vault plain || exit 77"#);
    let ways = [
        (background(""), umount, r#""$BYWASH" umount plain"#, "it stays mounted: make room and try again"),
        // Whenever nothing was asked for so long all is stored, in use or not: the disk is full before that.
        (background("--idle 6s --log log"), "sleep 9", "", "idle, and not unmounted: what was written last cannot be stored"),
        (
            foreground.to_owned(),
            "kill $pid; kill -HUP $pid; sleep 2",
            "\"$BYWASH\" umount plain; wait",
            "it stays mounted: what was written last cannot be stored",
        ),
    ];
    for (begin, attempt, end, says) in ways {
        let place = Place::new();
        let script = script.replace("BEGIN", &begin).replace("TRY", attempt).replace("END", end);
        let Some(output) = as_root(&place, &script) else { return };
        assert_eq!(stdout(&output), "xxx\n500000\n", "{attempt}: {}", stderr(&output));
        let log = fs::read_to_string(place.at("log")).unwrap();
        assert!(log.contains(says), "{attempt}: {log}");
    }
}

/// A run for one program waits until there is room, or until somebody who was told so gives it up.
#[test]
fn what_cannot_be_stored_is_given_up_by_a_signal_alone() {
    // The program has the file open until there is no room left; what was synced of it before was little, and its journal has little room that could be used again.
    let script = r#"mkdir disk; mount -t tmpfs -o size=330m none disk || exit 77
cp -a vault disk/vault; trap '' HUP
"$BYWASH" run -q --files disk/vault HOW -k key -- sh -c '
    head -c 2000000 /dev/zero > disk/vault/file; exec <disk/vault/file
    tr "\\0" x < /dev/zero | head -c 1000 | dd of=disk/vault/file conv=notrunc,fsync bs=1M iflag=fullblock
    tr "\\0" y < /dev/zero | head -c 1500000 | dd of=disk/vault/file conv=notrunc bs=1M iflag=fullblock
    head -c 400000000 /dev/zero > disk/filler
    exit 7' 2>log & pid=$!
for wait in $(seq 1200); do grep -q 'make room\|fuse\|user namespace' log && break; sleep 0.1; done
grep -q 'fuse\|user namespace' log && { cat log >&2; exit 77; }
grep -q 'make room' log || { cat log >&2; exit 1; }
END
wait $pid; echo "it ended with $?"
rm -f disk/filler
"$BYWASH" run -q --files disk/vault HOW -k key -- sh -c 'tr -d x < disk/vault/file | wc -c; tr -d y < disk/vault/file | wc -c'
"$BYWASH" fsck -k key disk/vault || echo "it is damaged""#;
    let room = ("rm disk/filler", "it ended with 7\n2000000\n500000\n", "all is stored now");
    // One that it was started with ignored gives nothing up.
    let signal = (
        "sleep 1.2; kill -HUP $pid; sleep 1.2; grep 'given up' log; for n in 1 2 3; do kill $pid 2>/dev/null; sleep 1.2; done",
        "it ended with 1\n",
        "given up",
    );
    for how in ["", "--files-by hook"] {
        for (end, says, told) in [room, signal] {
            let place = Place::new();
            let Some(output) = as_root(&place, &script.replace("HOW", how).replace("END", end)) else { return };
            let log = fs::read_to_string(place.at("log")).unwrap();
            assert!(stdout(&output).starts_with(says), "{how}, {end}: {}{}{log}", stdout(&output), stderr(&output));
            assert!(!stdout(&output).contains("damaged") && log.contains(told), "{how}, {end}: {}{log}", stdout(&output));
        }
    }
}

#[test]
fn a_full_disk_and_one_that_cannot_be_written_lose_nothing() {
    let place = Place::new();
    let script = r#"set -e
mkdir disk; mount -t tmpfs -o size=4m none disk || exit 77
cp -a vault disk/vault
"$BYWASH" mount --log log -k key disk/vault plain || exit 77
echo precious > plain/synced; sync plain/synced
head -c 100000 /dev/zero > plain/changed
if head -c 8000000 /dev/urandom > plain/large 2>/dev/null; then echo "it fits"; fi
if truncate -s 1G plain/huge 2>/dev/null; then echo "it fits"; fi
cat plain/synced
rm -f plain/large plain/huge
echo again > plain/after; cat plain/after
"$BYWASH" umount plain
mount -o remount,ro disk
"$BYWASH" fsck -k key disk/vault
"$BYWASH" mount --read-only -k key disk/vault plain
cat plain/synced
if touch plain/new 2>/dev/null; then echo "it is written"; fi
"$BYWASH" umount plain
"$BYWASH" mount -k key disk/vault plain 2>&1 | grep -c 'read-only\|Read-only'"#;
    let Some(output) = as_root(&place, script) else { return };
    assert_eq!(stdout(&output), "precious\nagain\nprecious\n1\n", "{}", stderr(&output));
}

/// Short files, longer ones that are kept back until they are closed, and some that are not: what a program was not refused is there afterwards.
#[test]
fn who_writes_to_a_full_disk_hears_of_it() {
    let place = Place::new();
    let script = r#"set -e
mkdir disk; mount -t tmpfs -o size=16m none disk || exit 77
cp -a vault disk/vault
"$BYWASH" mount --log log -k key disk/vault plain || exit 77
for size in 9000000 900000 150000 3000; do
    count=0
    while [ $count -lt 200 ] && head -c $size /dev/urandom > plain/new 2>/dev/null; do
        mv plain/new "plain/$size.$count"
        (cd plain && sha256sum "$size.$count") >> sums
        count=$((count + 1))
    done
    rm -f plain/new
    [ $count -lt 200 ] && echo "$size: full"
done
wc -l < sums > count
"$BYWASH" umount plain
"$BYWASH" mount -k key disk/vault plain
[ "$(ls plain | wc -l)" = "$(cat count)" ]
(cd plain && sha256sum --check --quiet ../sums) && echo whole
"$BYWASH" umount plain
"$BYWASH" fsck -k key disk/vault"#;
    let Some(output) = as_root(&place, script) else { return };
    assert_eq!(stdout(&output), "9000000: full\n900000: full\n150000: full\n3000: full\nwhole\n", "{}", stderr(&output));
}
