//! C programs under `LD_PRELOAD`, one process for each scenario of `descriptors.c`, `processes.c` and `signals.c`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The compiled programs, made once, in the build's own scratch folder.
fn program(name: &str) -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = |name: &str| folder.join(format!("cryptodev-{name}"));
    MADE.get_or_init(|| {
        ["descriptors", "processes", "signals"].into_iter().for_each(|name| compile(name, &place(name), &[]));
        ["library", "plugin"].into_iter().for_each(|name| compile(name, &place(name), &["-shared", "-fPIC"]));
    });
    place(name)
}

fn compile(name: &str, to: &Path, more: &[&str]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var_os("CC").filter(|compiler| !compiler.is_empty()).unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"])
        .args(more)
        .arg("-I")
        .arg(here.join("../abi/include"))
        .arg("-o")
        .arg(to)
        .arg(here.join("tests").join(format!("{name}.c")))
        .output()
        .expect("a C compiler (cc, or $CC)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The library under test, beside which cargo has put the half that it loads.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let library = test.parent().expect("its folder").join("libbywash_cryptodev_preload.so");
    assert!(library.is_file(), "{} is not there", library.display());
    assert!(
        library.with_file_name("libbywash_cryptodev_loaded.so").is_file(),
        "the half that is loaded is not beside {}",
        library.display()
    );
    library
}

fn under_preload(name: &str, scenario: &str) -> Command {
    let mut command = Command::new(program(name));
    command.arg(scenario).env("LD_PRELOAD", library()).env("BYWASH_SOCKET", "none").env("BYWASH_ROUTE", "here");
    command
}

fn passed(output: &Output) {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}{stderr}", output.status);
}

fn passes(name: &str, scenario: &str) {
    passed(&under_preload(name, scenario).output().expect("the program"));
}

macro_rules! scenarios {
    ($($program:literal: $($test:ident = $scenario:literal;)*)*) => { $($(
        #[test]
        fn $test() {
            passes($program, $scenario);
        }
    )*)* };
}

scenarios! {
    "descriptors":
    published_vectors = "cipher";
    copies_of_a_descriptor_share_its_sessions = "copies";
    another_open_has_sessions_of_its_own = "separate-opens";
    ranges_of_descriptors_are_closed = "ranges";
    a_close_behind_our_back_is_found_out = "behind";
    nothing_can_be_read_or_written = "transfers";
    the_path_is_recognised = "paths";
    success_leaves_errno_alone = "errno";
    polls_see_the_asynchronous_pair = "polling";
    readiness_stays_in_its_process = "polling-fork";
    a_program_that_inherits_the_descriptor_can_use_it = "exec";
    what_its_parent_has_under_way_is_still_shown = "exec-beside";
    a_program_that_reads_what_it_inherits_waits_for_nothing = "exec-read";
    threads_that_use_a_descriptor_for_the_first_time_at_once_have_one_device = "first-uses";
    descriptions_that_are_found_closed_make_room_for_others = "found-out";
    "processes":
    bad_pointers_are_an_error = "pointers";
    texts_of_every_length_arrive_whole = "lengths";
    a_handler_set_before_is_never_called_for_us = "handler-before";
    a_handler_set_afterwards_is_never_called_for_us = "handler-after";
    other_faults_and_sent_signals_kill_as_ever = "deaths";
    parent_and_child_both_go_on = "fork";
    no_keystream_is_used_twice_after_a_fork = "fork-ctr";
    a_child_of_vfork_closes_its_own = "vfork";
    a_child_of_vfork_opens_none = "vfork-open";
    a_child_that_libc_knows_nothing_of_is_whole = "fork-syscall";
    forks_while_other_threads_work = "fork-threads";
    forks_in_signal_handlers_in_the_midst_of_requests = "fork-handler";
    forks_in_signal_handlers_in_the_midst_of_forks = "fork-fork";
    a_thread_is_cancelled_after_its_request = "cancel";
    children_are_whole_however_many_threads_arrive_during_a_fork = "fork-crowd";
    a_close_in_a_signal_handler_waits_for_no_fork = "close-handler";
    threads_open_and_close_at_once = "threads";
}

#[test]
fn what_was_wrong_is_told_when_it_is_asked_for() {
    let output = under_preload("processes", "refused").env("BYWASH_EXPLAIN", "1").output().expect("the program");
    passed(&output);
    let told = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with("bywash: /dev/crypto: CIOCGSESSION: ") && lines[0].contains("EINVAL"), "{told}");
    assert!(lines[1].starts_with("bywash: /dev/crypto: CIOCCRYPT: ") && lines[1].contains("EINVAL"), "{told}");
    let silent = under_preload("processes", "refused").output().expect("the program");
    passed(&silent);
    assert_eq!(String::from_utf8_lossy(&silent.stderr), "");
}

#[test]
fn nobody_who_reads_standard_error_is_no_reason_to_die() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = under_preload("processes", "refused");
    let output = command.env("BYWASH_EXPLAIN", "1").stderr(Stdio::from(OwnedFd::from(writer))).output().expect("the program");
    assert!(output.status.success(), "{}", output.status);
    let closed = format!("exec {} refused 2>&-", program("processes").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &closed]).env("LD_PRELOAD", library()).env("BYWASH_SOCKET", "none").env("BYWASH_EXPLAIN", "1");
    passed(&shell.output().expect("a shell"));
}

#[test]
fn a_file_that_takes_the_number_of_standard_error_gets_no_lines() {
    let output = under_preload("processes", "refused-taken").env("BYWASH_EXPLAIN", "1").output().expect("the program");
    passed(&output);
}

/// The library of the C program is loaded behind ours, as all libraries of a program are: its constructor would run before ours.
#[test]
fn a_library_may_take_a_lock_before_forks() {
    let both = format!("{}:{}", library().display(), program("library").display());
    passed(&under_preload("processes", "fork-library").env("LD_PRELOAD", both).output().expect("the program"));
}

/// The same library does at that moment what another thread would do.
#[test]
fn a_handler_set_while_ours_are_installed_stays_and_is_never_called_for_us() {
    let both = format!("{}:{}", library().display(), program("library").display());
    for scenario in ["first", "twice", "between", "begun"] {
        passed(&under_preload("signals", scenario).env("LD_PRELOAD", &both).output().expect("the program"));
    }
}

#[test]
fn a_thread_that_a_constructor_waits_for_needs_no_lock_of_the_loader() {
    passed(&under_preload("processes", "plugin").env("PLUGIN", program("plugin")).output().expect("the program"));
}

/// Scripts look before they open.
#[test]
fn commands_find_a_character_device() {
    let script = "test -c /dev/crypto && test -r /dev/crypto && test -w /dev/crypto && ! test -x /dev/crypto && ls -l /dev/crypto && \
        stat -c '%F %a' /dev/crypto && ! test -e /dev/crypto-not";
    for shell in ["sh", "bash"] {
        let output = Command::new(shell).args(["-c", script]).env("LD_PRELOAD", library()).env("BYWASH_SOCKET", "none").output();
        let Ok(output) = output else {
            eprintln!("skipped: there is no {shell}");
            continue;
        };
        passed(&output);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("crw-rw-rw-") && said.contains("character special file 666"), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn turned_off_there_is_no_device() {
    let output = under_preload("processes", "refused").env("BYWASH_CRYPTODEV", "off").output().expect("the program");
    assert!(String::from_utf8_lossy(&output.stderr).contains("errno 2"), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_library_shows_what_it_stands_in_front_of_and_nothing_else() {
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library()).output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no nm");
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout);
    let ours: Vec<_> = shown.lines().filter(|name| name.to_lowercase().contains("rust") || name.contains("bywash")).collect();
    assert!(shown.contains("ioctl") && ours.is_empty(), "{shown}");
    let loaded = library().with_file_name("libbywash_cryptodev_loaded.so");
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(loaded).output().expect("nm");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "bywash_cryptodev_loaded_v1");
}

/// A shared unwinder would be one more library for every process of a run.
#[test]
fn the_library_brings_its_unwinder_along() {
    let compiler = std::env::var_os("CC").filter(|compiler| !compiler.is_empty()).unwrap_or_else(|| "cc".into());
    let found = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output().expect("a C compiler (cc, or $CC)");
    if !Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_absolute() {
        eprintln!("skipped: this compiler has no static unwinder");
        return;
    }
    let Ok(output) = Command::new("readelf").arg("-d").arg(library()).output() else {
        eprintln!("skipped: there is no readelf");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("NEEDED") && !said.contains("libgcc_s"), "{said}");
}
