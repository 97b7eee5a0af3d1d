//! A statically linked program under the supervisor, part by part (`client.c`), and what happens when either of them is killed.

use bywash_client::{Clients, Config, Route};
use bywash_cryptodev_supervisor::{Supervision, Supervisor, support};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Whether this machine can run these tests; if not, the reason has been printed.
fn client() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        support().map_err(|error| error.to_string())?;
        // A test that starts itself again has built it already, and others run it meanwhile.
        if let Some(program) = std::env::var_os("BYWASH_TEST_PROGRAM") {
            return Ok(program.into());
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cryptodev-client");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-static", "-pthread", "-I"]).arg(here.join("../abi/include"));
        let output = compiler.arg(here.join("tests/client.c")).arg("-o").arg(&program).output();
        match output {
            Err(error) => Err(format!("no C compiler: {error}")),
            Ok(output) if !output.status.success() => Err(format!("cc -static: {}", String::from_utf8_lossy(&output.stderr))),
            Ok(_) => Ok(program),
        }
    });
    match built {
        Ok(program) => Some(program),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// What computes in this process.
fn here() -> Clients {
    Clients::new(Config { route: Route::Here, ..Config::default() }).unwrap()
}

fn start(command: &mut Command) -> (Child, Supervisor) {
    let supervision = Supervision::prepare(command).unwrap();
    let child = command.spawn().unwrap();
    let supervisor = supervision.begin(here(), Some(Box::new(|why| eprintln!("explained: {why}")))).unwrap();
    (child, supervisor)
}

/// Runs a part to its end; nothing of it is left then.
fn run(part: &str) -> Option<ExitStatus> {
    let (mut child, supervisor) = start(Command::new(client()?).arg(part));
    let status = child.wait().unwrap();
    supervisor.wait();
    until(|| supervisor.open_descriptions() == 0, "descriptions are open after the program's end");
    Some(status)
}

fn passes(part: &str) {
    if let Some(status) = run(part) {
        if status.code() == Some(77) {
            eprintln!("skipped: {part}: this kernel or the dispatcher cannot do what the part asks");
            return;
        }
        assert!(status.success(), "{part}: {status}");
    }
}

fn until(condition: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn opens_encrypts_and_closes() {
    passes("once");
}

#[test]
fn other_files_and_other_requests_are_the_kernels() {
    passes("elsewhere");
}

#[test]
fn bad_pointers_are_errors() {
    passes("faults");
}

#[test]
fn the_same_buffers_may_hold_another_text_each_time() {
    passes("again");
}

#[test]
fn a_field_that_points_to_memory_that_cannot_be_written_is_named() {
    let Some(client) = client() else { return };
    let mut command = Command::new(client);
    let supervision = Supervision::prepare(command.arg("unwritable")).unwrap();
    let mut child = command.spawn().unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&said);
    let explain = move |why: &str| told.lock().unwrap().push(why.to_owned());
    let supervisor = supervision.begin(here(), Some(Box::new(explain))).unwrap();
    assert!(child.wait().unwrap().success());
    supervisor.wait();
    let said = said.lock().unwrap();
    let begins = [
        "CIOCCRYPT: dst: the 16 bytes at 0x40 ",
        "CIOCCRYPT: mac: the 20 bytes at 0x80 ",
        "CIOCCRYPT: iv: the 16 bytes at 0x",
        "CIOCCRYPT: the argument: the 48 bytes at 0x",
    ];
    assert_eq!(said.len(), begins.len(), "{said:?}");
    for (line, begin) in said.iter().zip(begins) {
        assert!(line.starts_with(begin) && line.ends_with("cannot be written; give the address of memory that can (EFAULT)"), "{line}");
    }
}

#[test]
fn parent_and_child_go_on_with_live_contexts() {
    passes("forks");
}

#[test]
fn copies_of_a_descriptor_share_its_sessions() {
    passes("dups");
}

#[test]
fn many_threads() {
    passes("threads");
}

#[test]
fn poll_tells_of_the_asynchronous_pair() {
    passes("asynchronous");
}

#[test]
fn what_the_program_reads_and_writes_itself_spoils_poll_for_one_request() {
    passes("reads");
}

#[test]
fn copies_for_a_thread_with_a_table_of_its_own_and_without_the_first_thread() {
    passes("survivors");
}

#[test]
fn no_more_than_the_piece_under_way_is_written_into_a_program_that_another_thread_executes() {
    passes("execute");
}

#[test]
fn signals_meanwhile_change_nothing() {
    passes("interrupted");
}

#[test]
fn ten_thousand_opens_leave_nothing() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let Some(status) = run("once") else { return };
    assert!(status.success());
    let before = descriptors();
    passes("leak");
    // Other tests of this process have descriptors of their own.
    until(|| descriptors() < before + 100, "descriptors are left behind");
}

#[test]
fn a_program_that_is_not_there_says_so_and_is_not_the_filters_fault() {
    if client().is_none() {
        return;
    }
    let mut command = Command::new("/no/such/program");
    let supervision = Supervision::prepare(&mut command).unwrap();
    assert_eq!(command.spawn().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert!(supervision.why().is_none());
}

#[test]
fn a_listener_within_a_listener_is_refused_in_words() {
    // The inner run is this test again, under the outer one's filter.
    if std::env::var_os("BYWASH_TEST_INNER").is_some() {
        let mut command = Command::new("/bin/true");
        let supervision = Supervision::prepare(&mut command).unwrap();
        assert!(command.spawn().is_err());
        let why = supervision.why().unwrap().to_string();
        assert!(why.contains("inner --static"), "{why}");
        return;
    }
    if client().is_none() {
        return;
    }
    let name = "a_listener_within_a_listener_is_refused_in_words";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let (mut child, supervisor) = start(command.args([name, "--exact"]).env("BYWASH_TEST_INNER", "1"));
    assert!(child.wait().unwrap().success());
    supervisor.wait();
}

#[test]
fn a_killed_program_leaves_nothing_and_holds_up_nobody() {
    let Some(client) = client() else { return };
    for _ in 0..20 {
        let (mut child, supervisor) = start(Command::new(client).arg("forever").stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        supervisor.wait();
        until(|| supervisor.open_descriptions() == 0, "a killed program's description stays");
    }
}

/// What is left when the supervisor is killed: this test again is the supervisor.
#[test]
fn a_killed_supervisor_leaves_no_program_hanging() {
    let Some(client) = client() else { return };
    if std::env::var_os("BYWASH_TEST_SUPERVISOR").is_some() {
        let (mut child, _supervisor) = start(Command::new(client).arg("waits"));
        child.wait().unwrap();
        return;
    }
    let name = "a_killed_supervisor_leaves_no_program_hanging";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env("BYWASH_TEST_SUPERVISOR", "1").env("BYWASH_TEST_PROGRAM", client);
    let mut supervisor = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(supervisor.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.ends_with("ready")));
    let mut stdin = supervisor.stdin.take().unwrap();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    writeln!(stdin).unwrap();
    let said: Vec<String> = said.collect();
    assert_eq!(said, ["Function not implemented"; 2]);
}

/// This test again supervises a program that opens and closes in eight threads, and is stopped and goes on meanwhile, as by Ctrl-Z and `fg`.
#[test]
fn an_open_gives_a_descriptor_though_the_supervisor_is_stopped_meanwhile() {
    let Some(client) = client() else { return };
    if std::env::var_os("BYWASH_TEST_SUPERVISOR").is_some() {
        return passes("storm");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["an_open_gives_a_descriptor_though_the_supervisor_is_stopped_meanwhile", "--exact", "--nocapture"]);
    let mut supervisor = command.env("BYWASH_TEST_SUPERVISOR", "1").env("BYWASH_TEST_PROGRAM", client).spawn().unwrap();
    let number = Pid::from_child(&supervisor);
    let status = loop {
        for signal in [Signal::STOP, Signal::CONT] {
            kill_process(number, signal).unwrap();
            std::thread::sleep(Duration::from_micros(100));
        }
        if let Some(status) = supervisor.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success(), "{status}");
}

/// A signal with a handler, not restarted, to the threads that answer.
#[test]
fn an_open_gives_a_descriptor_though_signals_interrupt_the_supervisor() {
    extern "C" fn nothing(_: libc::c_int) {}
    if client().is_none() {
        return;
    }
    // SAFETY: a whole action, of zeros but for a handler that does nothing; for a signal that nobody else here uses.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()), 0);
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                for thread in std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok) {
                    let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
                    let number: i32 = thread.file_name().to_str().unwrap().parse().unwrap();
                    if name.trim_end() == "cryptodev" {
                        // SAFETY: numbers only; a thread that has ended meanwhile is an error.
                        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, libc::SIGUSR1) };
                    }
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let status = run("storm");
        over.store(true, SeqCst);
        assert!(status.unwrap().success());
    });
}

/// Room for so many threads and no more: none, or two of the three with which answering begins. Nobody answers then; the program is told so, and not left waiting.
#[test]
fn without_threads_a_program_goes_on_without_the_device() {
    /// Of each thread: much more than all else that a thread makes a process ask for.
    const STACK: u64 = 1 << 30;
    let Some(client) = client() else { return };
    let Some(threads) = std::env::var("BYWASH_TEST_THREADS").ok().and_then(|threads| threads.parse::<u64>().ok()) else {
        for threads in 0..3 {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["without_threads_a_program_goes_on_without_the_device", "--exact", "--test-threads=1"]);
            command
                .env("BYWASH_TEST_THREADS", threads.to_string())
                .env("BYWASH_TEST_PROGRAM", client)
                .env("RUST_MIN_STACK", STACK.to_string());
            let output = command.output().unwrap();
            assert!(output.status.success(), "room for {threads}: {}", String::from_utf8_lossy(&output.stdout));
        }
        return;
    };
    let mut command = Command::new(client);
    let supervision = Supervision::prepare(command.arg("unanswered")).unwrap();
    let mut child = command.spawn().unwrap();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let size = pages.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64;
    let maximum = getrlimit(Resource::As).maximum;
    let current = Some(size + threads * STACK + STACK / 2);
    setrlimit(Resource::As, Rlimit { current, maximum }).unwrap();
    let begun = supervision.begin(here(), None).map(drop);
    setrlimit(Resource::As, Rlimit { current: maximum, maximum }).unwrap();
    let why = begun.unwrap_err().to_string();
    assert!(why.contains("cannot have a thread"), "{why}");
    let end = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("the program hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
}

/// Builds a program and runs it; a compiler that is not there or cannot do it is a reason to skip.
fn built_passes(compiler: &mut Command, program: &Path) {
    match compiler.output() {
        Err(error) => return eprintln!("skipped: {}: {error}", compiler.get_program().display()),
        Ok(output) if !output.status.success() => return eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr)),
        Ok(_) => {}
    }
    let (mut child, supervisor) = start(&mut Command::new(program));
    assert!(child.wait().unwrap().success());
    supervisor.wait();
}

#[test]
fn a_go_program() {
    if client().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("client");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.go"));
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod");
    built_passes(&mut go, &program);
}

#[test]
fn a_rust_program_linked_statically() {
    if client().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("client");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "-C", "target-feature=+crt-static", "-o"]).arg(&program);
    rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.rs"));
    built_passes(&mut rustc, &program);
}

/// Who is supervised is whoever descends from the first program, for as long as there is anybody.
#[test]
fn a_script_that_starts_the_program_and_ends_before_it() {
    let Some(client) = client() else { return };
    let script = format!("({} threads; {} once) & exit 3", client.display(), client.display());
    let (mut child, supervisor) = start(Command::new("sh").args(["-c", &script]));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    supervisor.wait();
    until(|| supervisor.open_descriptions() == 0, "descriptions stay");
}
