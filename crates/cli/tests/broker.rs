//! A broker of its own for every test: served, joined, watched, recorded, ended.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use bywash_broker::Stats;
use bywash_core::trace::{HEADER, Record, by_arrival};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Running, bywash, eventually, stderr, stdout, succeed};
use tempfile::TempDir;

/// A broker on a socket in a folder of its own.
struct Served {
    broker: Running,
    socket: PathBuf,
    folder: TempDir,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("broker.sock");
        let broker = Running::start(bywash().arg("serve").arg("--socket").arg(&socket).args(arguments));
        let served = Self { broker, socket, folder };
        eventually("the broker answers", || served.ask(&["stats"]).status.success());
        served
    }

    /// A command that knows this broker.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bywash();
        command.env("BYWASH_SOCKET", &self.socket).args(arguments);
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command starts")
    }

    fn stats(&self) -> Stats {
        serde_json::from_str(&stdout(&succeed(&mut self.command(&["stats", "--json"])))).expect("statistics are JSON")
    }

    /// Ends it as an operator does.
    fn end(self) -> String {
        self.end_by(&["TERM"])
    }

    fn end_by(mut self, signals: &[&str]) -> String {
        signals.iter().for_each(|signal| self.broker.signal(signal));
        let status = self.broker.wait();
        let log = log_of(&mut self.broker);
        assert!(status.success(), "{status}\n{log}");
        assert!(!self.socket.exists(), "the socket is taken away");
        log
    }
}

/// Everything that an ended command wrote to stderr.
fn log_of(ended: &mut Running) -> String {
    let mut text = String::new();
    ended.0.stderr.take().expect("stderr is piped").read_to_string(&mut text).expect("text");
    text
}

/// Encrypts a megabyte and more.
fn encrypt(folder: &Path) -> Vec<String> {
    let plain = folder.join("plain");
    fs::write(&plain, vec![7; 1_200_000]).expect("written");
    let (plain, sealed) = (plain.to_str().expect("text"), folder.join("sealed"));
    let words = ["openssl", "enc", "-aes-256-ctr", "-K", &"11".repeat(32), "-iv", &"22".repeat(16), "-in", plain, "-out"];
    words.iter().map(|word| (*word).to_owned()).chain([sealed.to_str().expect("text").to_owned()]).collect()
}

fn report(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("a report is JSON")
}

#[test]
fn a_run_without_a_broker_hosts_one_and_says_what_ran_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let output = succeed(bywash().args(["run", "--report"]).arg(&path).arg("--").args(encrypt(folder.path())));
    assert!(stderr(&output).contains(" here (AES-256-CTR 1.2 MB), 0 at the broker; modelled: none"), "{}", stderr(&output));
    let report = report(&fs::read_to_string(&path).unwrap());
    assert_eq!(report["status"], 0);
    assert_eq!(report["account"]["processes"], 1);
    assert_eq!(report["account"]["here"][0]["algorithm"], "AES-256-CTR");
    assert_eq!(report["account"]["here"][0]["bytes"], 1_200_000);
}

#[test]
fn what_is_sent_to_the_queue_runs_at_the_broker() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    let data = folder.path().join("data");
    fs::write(&data, "to be signed").unwrap();
    succeed(Command::new("openssl").args(["genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"]).arg(&key));
    let sign = |command: &mut Command, signature: &Path| {
        succeed(command.args(["openssl", "dgst", "-sha256", "-sign"]).arg(&key).arg("-out").arg(signature).arg(&data))
    };
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    let output = sign(bywash().args(["run", "--route", "queue", "--json", "--"]), &ours);
    sign(&mut Command::new("env"), &theirs);
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap(), "PKCS #1 v1.5 signatures are deterministic");
    let report = report(&stderr(&output));
    assert!(report["account"]["broker"].as_array().unwrap().iter().any(|line| line["algorithm"] == "RSA-2048 private"), "{report}");
}

#[test]
fn a_program_without_openssl_is_said_to_be_out_of_reach() {
    let output = succeed(bywash().args(["run", "--", "true"]));
    assert!(stderr(&output).contains("no process used the provider"), "{}", stderr(&output));
    assert!(stderr(&output).contains("bywash doctor -- true"), "{}", stderr(&output));
}

#[test]
fn a_run_joins_a_broker_that_answers() {
    let served = Served::start(&[]);
    let output = succeed(served.command(&["run", "--"]).args(encrypt(served.folder.path())));
    assert!(stderr(&output).contains("AES-256-CTR 1.2 MB"), "{}", stderr(&output));
    let stats = served.stats();
    assert!(stats.runs.iter().any(|run| run.work.iter().any(|work| work.algorithm == "AES-256-CTR")), "{stats:?}");
    assert!(stdout(&succeed(&mut served.command(&["stats"]))).contains("AES-256-CTR"));
    assert!(stdout(&succeed(&mut served.command(&["stats", "--prometheus"]))).contains("# TYPE "));
    served.end();
}

#[test]
fn top_once_shows_a_frame_and_top_wants_a_terminal() {
    let served = Served::start(&[]);
    let frame = stdout(&succeed(&mut served.command(&["top", "--once"])));
    for part in ["engines", "cpu", "algorithms", "clients", "policy placement"] {
        assert!(frame.contains(part), "{part} in\n{frame}");
    }
    let refused = served.ask(&["top"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--once"), "{}", stderr(&refused));
}

#[test]
fn a_second_broker_on_the_socket_is_refused() {
    let served = Served::start(&[]);
    let second = served.ask(&["serve"]);
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(stderr(&second).contains("broker.sock"), "{}", stderr(&second));
    assert!(served.ask(&["stats"]).status.success(), "the first one goes on");
}

#[test]
fn without_permission_on_the_socket_it_says_so_and_runs_by_itself() {
    let served = Served::start(&["--socket-mode", "0600"]);
    fs::set_permissions(served.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let as_nobody = |arguments: &[&str]| served.command(arguments).uid(65534).gid(65534).output();
    let Ok(refused) = as_nobody(&["stats"]) else {
        eprintln!("skipped: only root can become another user");
        return;
    };
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--allow-uid"), "{}", stderr(&refused));
    let ran = as_nobody(&["run", "--", "openssl", "version"]).unwrap();
    assert!(ran.status.success() && stderr(&ran).contains("no permission"), "{}", stderr(&ran));
    let doctor = as_nobody(&["doctor"]).unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    assert!(stdout(&doctor).contains("--socket-mode"), "{}", stdout(&doctor));
}

#[test]
fn a_record_of_a_command_is_a_well_formed_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let speed = ["openssl", "speed", "-seconds", "1", "-bytes", "16384", "-evp", "aes-256-gcm"];
    let output = succeed(bywash().args(["record", "--output"]).arg(&trace).args(["--route", "queue", "--"]).args(encrypt(folder.path())));
    assert!(stderr(&output).contains("requests recorded in"), "{}", stderr(&output));
    succeed(bywash().args(["record", "--output"]).arg(&trace).arg("--").args(speed));
    let text = fs::read_to_string(&trace).unwrap();
    assert_eq!(text.lines().next(), Some(HEADER));
    let records: Vec<Record> = by_arrival(&text, "trace.csv").unwrap_or_else(|error| panic!("{error}"));
    assert!(records.iter().any(|record| record.algorithm.name() == "AES-256-GCM" && record.bytes == 16384), "{} records", records.len());
    assert!(records.iter().all(|record| record.start <= record.done));
}

#[test]
fn a_running_broker_is_recorded_for_a_time() {
    let served = Served::start(&[]);
    let trace = served.folder.path().join("trace.csv");
    let recorder = served.command(&["record", "--for", "2s", "-o"]).arg(&trace).spawn().unwrap();
    let mut recorder = Running(recorder);
    eventually("the recording begins", || served.stats().recording);
    succeed(served.command(&["run", "--"]).args(encrypt(served.folder.path())));
    assert!(recorder.wait().success());
    let text = fs::read_to_string(&trace).unwrap();
    assert!(text.starts_with(HEADER) && text.contains("AES-256-CTR"), "{text}");
}

#[test]
fn a_recording_ends_with_its_broker() {
    let served = Served::start(&[]);
    let trace = served.folder.path().join("trace.csv");
    let mut record = Running::start(served.command(&["record", "--for", "1h", "-o"]).arg(&trace));
    eventually("it records", || trace.exists());
    served.broker.signal("KILL");
    assert_eq!(record.wait().code(), Some(3));
    let said = log_of(&mut record);
    assert!(said.contains("broker.sock has ended") && said.contains(trace.to_str().unwrap()), "{said}");
}

#[test]
fn a_recording_that_cannot_be_written_ends_at_once_and_says_why() {
    let served = Served::start(&[]);
    // A file that cannot grow, as in a volume that is full.
    let file = memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let mut record = Running::start(&mut served.command(&["record", "--for", "1h", "-o", &path]));
    assert_eq!(record.wait().code(), Some(1));
    let said = log_of(&mut record);
    assert!(said.contains(&path) && said.contains("could not be written"), "{said}");
    assert!(!served.stats().recording);
    let trace = served.folder.path().join("trace.csv");
    succeed(served.command(&["record", "--for", "10ms", "-o"]).arg(&trace));
}

#[test]
fn a_broker_that_lets_nobody_in_or_does_not_answer_is_told_as_such() {
    let full = Served::start(&["--clients-per-uid-max", "1"]);
    let trace = full.folder.path().join("trace.csv");
    let record = || Running::start(full.command(&["record", "--for", "1h", "-o"]).arg(&trace));
    let mut one = record();
    eventually("it records", || {
        // Who looked whether the broker answers may be counted still.
        if one.0.try_wait().expect("it can be waited for").is_some() {
            one = record();
        }
        trace.exists()
    });
    for command in [&["stats"][..], &["doctor"]] {
        let said = full.ask(command);
        assert!(!said.status.success() && format!("{}{}", stdout(&said), stderr(&said)).contains("clients_per_uid_max"), "{said:?}");
    }
    let stopped = Served::start(&[]);
    stopped.broker.signal("STOP");
    let said = stopped.ask(&["stats"]);
    stopped.broker.signal("CONT");
    assert!(said.status.code() == Some(3) && stderr(&said).contains("broker.sock has not answered for 5 s"), "{said:?}");
    assert_eq!(stopped.ask(&["stats", "--recent", "0"]).status.code(), Some(2));
}

#[test]
fn what_cannot_serve_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (file, long) = (folder.path().join("file"), folder.path().join("s".repeat(108)));
    fs::write(&file, "mine").unwrap();
    let serve = |socket: &Path, more: &[&str]| bywash().args(["serve", "--socket"]).arg(socket).args(more).output().unwrap();
    assert!(stderr(&serve(&long, &[])).contains("longer than 107 bytes"));
    assert!(!serve(&file, &[]).status.success());
    let unkeyed = serve(&folder.path().join("s"), &["--keys-passphrase", "/nowhere"]);
    assert!(unkeyed.status.code() == Some(5) && stderr(&unkeyed).contains("--keys"), "{unkeyed:?}");
    let mistyped = serve(&folder.path().join("nwo/here/s"), &[]);
    assert!(stderr(&mistyped).contains("there is no folder") && stderr(&mistyped).contains("/nwo "), "{mistyped:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let said = bywash().args(["stats", "--socket"]).arg(&file).output().unwrap();
    assert!(stderr(&said).contains("is no socket, but a file"), "{said:?}");
}

#[test]
fn a_report_that_cannot_be_written_is_said_before_the_command_starts() {
    let folder = tempfile::tempdir().unwrap();
    let run = bywash()
        .args(["run", "--report"])
        .arg(folder.path().join("none/report"))
        .arg("--")
        .arg("touch")
        .arg(folder.path().join("ran"))
        .output();
    assert_eq!(run.unwrap().status.code(), Some(125));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn sigterm_under_load_loses_nothing() {
    let served = Served::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = format!("for i in 1 2 3 4 5 6 7 8; do {} || exit 9; done", encrypt(folder.path()).join(" "));
    let mut loads: Vec<Running> =
        (0..3).map(|_| Running::start(&mut served.command(&["run", "--route", "queue", "--quiet", "--", "sh", "-c", &script]))).collect();
    eventually("load arrives", || served.stats().runs.iter().any(|run| !run.work.is_empty()));
    served.end();
    for load in &mut loads {
        let status = load.wait();
        assert!(status.success(), "{status}\n{}", log_of(load));
    }
}

#[test]
fn a_closed_terminal_drains_a_broker_but_not_one_under_nohup() {
    let start = |how: &str| {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("broker.sock");
        let serve = [how, env!("CARGO_BIN_EXE_bywash"), "serve", "--socket"];
        let served = Served { broker: Running::start(Command::new("env").args(serve).arg(&socket)), socket, folder };
        eventually("the broker answers", || served.ask(&["stats"]).status.success());
        served
    };
    let log = start("--default-signal=HUP").end_by(&["HUP", "HUP"]);
    assert!(log.contains("broker ended"), "{log}");
    let served = start("--ignore-signal=HUP");
    served.broker.signal("HUP");
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(served.ask(&["stats"]).status.success(), "it serves on");
    served.end();
}

#[test]
fn without_a_broker_there_is_nothing_to_look_at() {
    for arguments in [&["stats"][..], &["top", "--once"], &["record", "-o", "/dev/null"]] {
        let output = bywash().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("bywash serve"), "{}", stderr(&output));
    }
    let named = bywash().args(["run", "--socket", "/nowhere/x.sock", "--", "true"]).output().unwrap();
    assert_eq!(named.status.code(), Some(125));
    assert!(stderr(&named).contains("/nowhere/x.sock"), "{}", stderr(&named));
}

#[test]
fn what_cannot_be_had_to_keep_keys_out_of_swap_is_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("broker.sock");
    let plain = bywash().arg("serve").arg("--socket").arg(&socket).get_program().to_owned();
    // Without the privilege to lock memory, and with a limit on it.
    let privilege = if rustix::process::geteuid().is_root() { "setpriv --bounding-set=-ipc_lock" } else { "env" };
    let script = format!("ulimit -l 64 && exec {privilege} \"$0\" serve --socket \"$1\"");
    let mut broker = Running::start(Command::new("bash").arg("-c").arg(script).arg(plain).arg(&socket));
    eventually("the broker answers", || bywash().env("BYWASH_SOCKET", &socket).arg("stats").output().is_ok_and(|o| o.status.success()));
    broker.signal("TERM");
    assert!(broker.wait().success());
    let log = log_of(&mut broker);
    assert!(log.contains("keys may reach swap") && log.contains("ulimit -l unlimited"), "{log}");
}
