//! Passphrases typed on a terminal, and what Ctrl-C does there.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex};
use support::place::Place;
use support::{Running, bywash, eventually, succeed};

const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGTERM: i32 = 15;

/// A command on a terminal of its own.
struct Terminal {
    keys: File,
    /// The terminal itself, open so that it lasts.
    screen: File,
    shown: Arc<Mutex<String>>,
    running: Running,
}

impl Terminal {
    fn start(place: &Place, arguments: &str) -> Self {
        Self::run(place, env!("CARGO_BIN_EXE_bywash"), arguments)
    }

    fn run(place: &Place, program: &str, arguments: &str) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
        let (keys, screen) = (File::from(controller), open());
        // util-linux: it becomes a session's leader with this as its terminal, and then the command, with no signal ignored, as tests under nohup have it.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "env", "--default-signal", program]).args(arguments.split(' ')).current_dir(place.folder.path());
        command.env("NO_COLOR", "1").env("TERM", "xterm").env_remove("BYWASH_SOCKET");
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let (shown, mut from) = (Arc::new(Mutex::new(String::new())), keys.try_clone().unwrap());
        let to = shown.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Self { keys, screen, shown, running: Running(child) }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until it is shown that often.
    fn awaits(&self, what: &str, times: usize) {
        eventually(&format!("{what} {times} times"), || self.shown().matches(what).count() >= times);
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn is_echoing(&self) -> bool {
        tcgetattr(&self.screen).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    fn ends(&mut self) -> ExitStatus {
        self.running.wait()
    }
}

#[test]
fn a_passphrase_is_asked_for_twice_and_never_shown() {
    let place = Place::new();
    place.write("file", b"text");
    let mut terminal = Terminal::start(&place, "encrypt -p file");
    terminal.awaits("Passphrase: ", 1);
    assert!(!terminal.is_echoing(), "silent before it asks");
    terminal.types("correct horse\n");
    terminal.awaits("The same again: ", 1);
    terminal.types("correct hose\n");
    assert_eq!(terminal.ends().code(), Some(1), "{}", terminal.shown());
    terminal.awaits("the two passphrases differ", 1);
    assert!(terminal.is_echoing());

    let mut terminal = Terminal::start(&place, "encrypt -p file");
    terminal.awaits("Passphrase: ", 1);
    terminal.types("correct horse\n");
    terminal.awaits("The same again: ", 1);
    terminal.types("correct horse\n");
    assert!(terminal.ends().success(), "{}", terminal.shown());
    assert!(!terminal.shown().contains("horse") && terminal.is_echoing());
    // It is what was typed, without the end of the line.
    succeed(bywash().current_dir(place.folder.path()).args(["fsck", "--passphrase-file", "passphrase", "file.bywash"]));
}

#[test]
fn an_ssh_keys_passphrase_is_asked_for_by_its_name() {
    let (place, folder) = (Place::new(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../interfaces/files/tests/ssh"));
    for name in ["encrypted", "encrypted.pub"] {
        fs::copy(folder.join(name), place.at(name)).unwrap();
    }
    fs::write(place.at("note"), "for you").unwrap();
    succeed(&mut place.bywash(&["encrypt", "-r", "encrypted.pub", "-o", "note.bywash", "note"]));
    for (typed, is_right) in [("hunter2\n", false), ("correct horse\n", true)] {
        let mut terminal = Terminal::start(&place, "decrypt -i encrypted -o opened note.bywash");
        terminal.awaits("Passphrase of encrypted: ", 1);
        terminal.types(typed);
        assert_eq!(terminal.ends().code(), Some(if is_right { 0 } else { 7 }), "{}", terminal.shown());
        assert!(!terminal.shown().contains(typed.trim()) && place.at("opened").exists() == is_right, "{}", terminal.shown());
    }
}

#[test]
fn whoever_is_ended_while_asking_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    place.write("file", b"text");
    for (prompt, signal) in [("Passphrase: ", SIGINT), ("The same again: ", SIGINT), ("Passphrase: ", SIGTERM), ("Passphrase: ", SIGQUIT)] {
        let mut terminal = Terminal::start(&place, "encrypt -p file");
        terminal.awaits("Passphrase: ", 1);
        if prompt == "The same again: " {
            terminal.types("correct horse\n");
            terminal.awaits(prompt, 1);
        }
        eventually("the terminal is silent", || !terminal.is_echoing());
        match signal {
            SIGINT => terminal.types("\u{3}"),
            SIGQUIT => terminal.types("\u{1c}"),
            _ => terminal.running.signal("TERM"),
        }
        assert_eq!(terminal.ends().signal(), Some(signal), "{prompt}: {}", terminal.shown());
        assert!(terminal.is_echoing(), "{prompt}, signal {signal}");
    }
    assert!(!place.at("file.bywash").exists());
    // At whatever moment.
    for _ in 0..30 {
        let mut terminal = Terminal::start(&place, "encrypt -p file");
        terminal.awaits("Pass", 1);
        terminal.running.signal("TERM");
        assert_eq!(terminal.ends().signal(), Some(SIGTERM), "{}", terminal.shown());
        assert!(terminal.is_echoing());
    }
}

/// Shells show what is typed again when they get the terminal (Ctrl-Z), and leave it so when they give it back.
#[test]
fn a_prompt_that_was_stopped_asks_again_and_shows_nothing() {
    let place = Place::new();
    place.write("file", b"text");
    let mut terminal = Terminal::start(&place, "encrypt -p file");
    terminal.awaits("Passphrase: ", 1);
    for (prompt, times) in [("Passphrase: ", 2), ("Passphrase: ", 3), ("The same again: ", 2)] {
        terminal.running.signal("STOP");
        let mut modes = tcgetattr(&terminal.screen).unwrap();
        modes.local_modes.insert(LocalModes::ECHO);
        tcsetattr(&terminal.screen, OptionalActions::Now, &modes).unwrap();
        terminal.running.signal("CONT");
        terminal.awaits(prompt, times);
        assert!(!terminal.is_echoing(), "{prompt}");
        if times == 3 {
            terminal.types("correct horse\n");
            terminal.awaits("The same again: ", 1);
        }
    }
    terminal.types("correct horse\n");
    assert!(terminal.ends().success(), "{}", terminal.shown());
    assert!(!terminal.shown().contains("horse") && terminal.is_echoing());
}

#[test]
fn ctrl_z_leaves_the_terminal_to_the_shell_as_it_was_and_goes_on() {
    let place = Place::new();
    place.write("file", b"text");
    // It changes nothing about the terminal itself.
    let mut terminal = Terminal::run(&place, "dash", "-i");
    terminal.types(&format!("{} encrypt -p file\n", env!("CARGO_BIN_EXE_bywash")));
    for times in 1..=2 {
        terminal.awaits("Passphrase: ", times);
        eventually("it is silent", || !terminal.is_echoing());
        terminal.types("\u{1a}");
        terminal.awaits("Stopped", times);
        assert!(terminal.is_echoing(), "{}", terminal.shown());
        terminal.types("fg\n");
    }
    terminal.awaits("Passphrase: ", 3);
    eventually("it is silent", || !terminal.is_echoing());
    terminal.types("correct horse\n");
    terminal.awaits("The same again: ", 1);
    terminal.types("correct horse\n");
    eventually("it is encrypted", || place.at("file.bywash").exists());
    // It works after questions as well.
    File::options().write(true).open(place.at("file.bywash")).unwrap().set_len(1 << 42).unwrap();
    terminal.types(&format!("{} fsck -j 1 -p file.bywash\n", env!("CARGO_BIN_EXE_bywash")));
    terminal.awaits("Passphrase: ", 4);
    eventually("it is silent", || !terminal.is_echoing());
    terminal.types("correct horse\n");
    // What is typed before that, the terminal forgets with Ctrl-Z.
    terminal.awaits("TiB", 1);
    terminal.types("\u{1a}");
    terminal.awaits("Stopped", 3);
    terminal.types("kill %1; fg\n");
    terminal.awaits("Terminated", 1);
    terminal.types("exit\n");
    assert!(!terminal.shown().contains("horse"), "{}", terminal.shown());
    terminal.ends();
}

/// Asking must not leave the signals' handlers behind.
#[test]
fn work_ends_when_it_is_interrupted_also_after_a_passphrase_was_typed() {
    let place = Place::new();
    place.write("file", b"text");
    succeed(bywash().current_dir(place.folder.path()).args(["encrypt", "--passphrase-file", "passphrase", "file"]));
    // Minutes of looking at nothing.
    File::options().write(true).open(place.at("file.bywash")).unwrap().set_len(1 << 42).unwrap();
    for (signal, says) in [(SIGINT, "interrupted before the file was done"), (SIGTERM, "")] {
        let mut terminal = Terminal::start(&place, "fsck -j 1 -p file.bywash");
        terminal.awaits("Passphrase: ", 1);
        terminal.types("correct horse\n");
        // The bar says that it is at work.
        terminal.awaits(" left", 2);
        match signal {
            SIGINT => terminal.types("\u{3}"),
            _ => terminal.running.signal("TERM"),
        }
        assert_eq!(terminal.ends().signal(), Some(signal), "{}", terminal.shown());
        eventually("it says so", || terminal.shown().contains(says));
    }
}

/// What holds a mount is asked to unmount, and not ended before.
#[test]
fn a_mount_is_unmounted_when_it_is_interrupted_though_a_passphrase_was_typed() {
    let place = Place::new();
    fs::create_dir(place.at("plain")).unwrap();
    succeed(bywash().current_dir(place.folder.path()).args(["mount", "--init", "--passphrase-file", "passphrase", "vault"]));
    if File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return eprintln!("skipped: there is no /dev/fuse to mount with");
    }
    let mut terminal = Terminal::start(&place, "mount --foreground -p vault plain");
    terminal.awaits("Passphrase: ", 1);
    terminal.types("correct horse\n");
    let is_mounted = || fs::read_to_string("/proc/mounts").unwrap().contains(place.at("plain").to_str().unwrap());
    eventually("it is mounted", is_mounted);
    fs::write(place.at("plain/new"), "text").unwrap();
    terminal.types("\u{3}");
    assert!(terminal.ends().success(), "{}", terminal.shown());
    assert!(!is_mounted());
}
